/* SPDX-License-Identifier: MIT */
/* Headers by hash, and the canonical chain through them. Owner's thread. */
#ifndef HEAD_BLOCKS_H
#define HEAD_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>
#include "base/map.h"
#include "head/head.h"

#define HASH_LEN 32u

/* A header as a node gave it. */
struct block {
  uint64_t number, time;             /* time: seconds since 1970 */
  unsigned char hash[HASH_LEN], parent[HASH_LEN];
  struct egw_buf *raw;               /* in struct blocks: the header, see header_raw(); or NULL */
  uint64_t serial;                   /* in struct blocks: how many were added before it */
};

/* The header part of a raw block as a node pushes it: the members as they are, without the
 * lists of transactions, uncles and withdrawals. NULL: no memory, or no object
 * with members. */
struct egw_buf *header_raw(struct egw_slice object) EGW_MUST_CHECK;

/* Reads number, hash, parentHash and timestamp (0: there is none) of a raw block or header
 * object. false: it is none, or one without hash (pending). */
bool block_parse(struct egw_slice object, struct block *out);

/* "0x" and 64 hex digits. */
void hash_text(const unsigned char hash[HASH_LEN], char out[67]);

struct blocks {
  struct strmap by_hash;             /* struct block, by its hash */
  struct block *canonical[HEAD_WINDOW]; /* by number % HEAD_WINDOW */
  uint64_t low, high;                /* canonical from low to high; any: whether there is one */
  bool any;
  uint64_t added;                    /* headers ever kept */
};

/* The one with this hash, or NULL. */
struct block *blocks_find(const struct blocks *blocks, const unsigned char hash[HASH_LEN]);

/* Keeps a copy (once), with a reference to `raw` (NULL: not known); NULL: no memory. What
 * another node said of a block of this hash is replaced, unless it is canonical. May free
 * any header that is not canonical and was not added lately. */
struct block *blocks_add(struct blocks *blocks, const struct block *block, struct egw_buf *raw);

bool blocks_is_canonical(const struct blocks *blocks, const struct block *block);
struct block *blocks_at(const struct blocks *blocks, uint64_t number);

/* Whether the block could stand in the place of the lowest canonical one: it has the same
 * parent, be that known or not. A genesis has none: another one is that of another chain. */
bool blocks_at_bottom(const struct blocks *blocks, const struct block *block);

enum reach {
  REACH_LINKED,      /* its ancestors lead to the canonical chain, or to the parent of its lowest */
  REACH_GAP,         /* the parent of *missing is not known */
  REACH_BELOW        /* the branch leaves the window at its lower end, or is longer than that */
};
/* Walks the ancestors of `block` until the canonical chain. */
enum reach blocks_reach(const struct blocks *blocks, struct block *block, struct block **missing);

/* Makes `block`, which is REACH_LINKED, the highest canonical one. The number of blocks
 * that are canonical no more. */
unsigned blocks_set_tip(struct blocks *blocks, struct block *block);

/* Starts the canonical chain anew with this block alone. */
void blocks_restart(struct blocks *blocks, struct block *block);

/* The parent of the lowest canonical block, if it is known, becomes canonical too; false:
 * it is not known, or the window is full. */
bool blocks_extend_down(struct blocks *blocks);

void blocks_free(struct blocks *blocks);

#endif
