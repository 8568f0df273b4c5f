/* SPDX-License-Identifier: MIT */
/* The store: keys to values, bounded by bytes, shared by all workers.
 *
 * Sharded; each shard has a mutex that is held for one lookup or insertion. Values are
 * counted buffers: a hit is a reference, nothing is copied. Eviction is S3-FIFO (Yang et
 * al., SOSP 2023): new entries pass a small queue, and only those asked for again there
 * move on to the main one, so that a client that walks through the chain once does not
 * flush what others use; a list of the hashes of those thrown out lets one that comes back
 * go straight to the main queue.
 *
 * Any thread. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

struct store;

/* The block that an entry depends on: it is true only while that block is canonical. */
struct store_pin {
  uint64_t number;
  unsigned char hash[32];
};

/* What was found. */
struct store_found {
  struct egw_buf *value;       /* a reference */
  bool pinned;
  struct store_pin pin;
};

/* How the store has changed, for metrics: added to by the functions that get it. */
struct store_change {
  int64_t bytes, entries;
  uint64_t evicted;            /* entries that had to go for others */
  uint64_t evicted_ms;         /* the sum of the time they were kept */
};

/* At most `limit` bytes of keys, values and bookkeeping. NULL: no memory. */
struct store *store_new(uint64_t limit) EGW_MUST_CHECK;
void store_free(struct store *store);

/* false: it is not there. Keys are compared in full. */
bool store_get(struct store *store, struct egw_slice key, struct store_found *out);

/* How often everything was thrown out. */
unsigned store_cleared(const struct store *store);

struct store_terms {
  const struct store_pin *pin; /* NULL: for ever */
  uint64_t now_ms;
  unsigned cleared;            /* store_cleared() before the question was asked: an answer from
                                  before the last time stays out */
};

/* Whether a value of `len` bytes is small enough to be kept under the key; `pinned`: to a block. */
bool store_fits(const struct store *store, struct egw_slice key, size_t len, bool pinned);

/* Keeps `value` (the reference is taken) under a copy of the key. What is there already stays,
 * unless it is pinned to something else. false: it stays out, does not fit, or memory is
 * short. */
bool store_put(struct store *store, struct egw_slice key, struct egw_buf *value,
               const struct store_terms *terms, struct store_change *change);

/* The entry's block is final: it stays for ever. And: its block is gone, so it goes.
 * Neither does anything to an entry that is not pinned to `pin`. true: it was. */
bool store_unpin(struct store *store, struct egw_slice key, const struct store_pin *pin);
bool store_drop(struct store *store, struct egw_slice key, const struct store_pin *pin,
                struct store_change *change);

/* Throws everything out. */
void store_clear(struct store *store, struct store_change *change);

#endif
