/* SPDX-License-Identifier: MIT */
/* Headers by hash: see blocks.h. */
#include "head/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>

#define SWEEP_EVERY 64u   /* headers added between two sweeps */

static int
nibble(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A raw JSON string "0x..." of 32 bytes. */
static bool
hash_parse(struct egw_slice raw, unsigned char out[HASH_LEN])
{
  unsigned i;

  if (raw.len != 4 + 2 * HASH_LEN || raw.ptr[0] != '"' || raw.ptr[1] != '0' || raw.ptr[2] != 'x')
    return false;
  for (i = 0; i < HASH_LEN; i++) {
    int a = nibble(raw.ptr[3 + 2 * i]), b = nibble(raw.ptr[4 + 2 * i]);

    if (a < 0 || b < 0)
      return false;
    out[i] = (unsigned char)(a << 4 | b);
  }
  return true;
}

void
hash_text(const unsigned char hash[HASH_LEN], char out[67])
{
  static const char digits[] = "0123456789abcdef";
  unsigned i;

  out[0] = '0';
  out[1] = 'x';
  for (i = 0; i < HASH_LEN; i++) {
    out[2 + 2 * i] = digits[hash[i] >> 4];
    out[3 + 2 * i] = digits[hash[i] & 15];
  }
  out[66] = '\0';
}

bool
block_parse(struct egw_slice object, struct block *out)
{
  memset(out, 0, sizeof(*out));
  return egw_json_kind(object) == EGW_JSON_OBJECT &&
         egw_json_u64(egw_json_member(object, "number"), &out->number) == 0 &&
         egw_json_u64(egw_json_member(object, "timestamp"), &out->time) == 0 &&
         hash_parse(egw_json_member(object, "hash"), out->hash) &&
         hash_parse(egw_json_member(object, "parentHash"), out->parent);
}

static struct egw_slice
key_of(const unsigned char hash[HASH_LEN])
{
  return (struct egw_slice){ (const char *)hash, HASH_LEN };
}

struct block *
blocks_find(const struct blocks *blocks, const unsigned char hash[HASH_LEN])
{
  return strmap_get(&blocks->by_hash, key_of(hash));
}

/* Lets go of what has left the window. */
static void
sweep(struct blocks *blocks)
{
  size_t cursor = 0;
  struct egw_slice key;
  struct block *block;

  blocks->added = 0;
  while ((block = strmap_next(&blocks->by_hash, &cursor, &key)) != NULL) {
    if (!blocks->any || block->number + HEAD_WINDOW > blocks->high ||
        blocks_is_canonical(blocks, block))
      continue;
    strmap_take(&blocks->by_hash, key);
    free(block);
  }
}

struct block *
blocks_add(struct blocks *blocks, const struct block *block)
{
  struct block *known = blocks_find(blocks, block->hash), *copy;

  if (known != NULL)
    return known;
  if (blocks->added++ >= SWEEP_EVERY)
    sweep(blocks);
  copy = malloc(sizeof(*copy));
  if (copy == NULL)
    return NULL;
  *copy = *block;
  if (strmap_put(&blocks->by_hash, key_of(copy->hash), copy) < 0) {
    free(copy);
    return NULL;
  }
  return copy;
}

struct block *
blocks_at(const struct blocks *blocks, uint64_t number)
{
  if (!blocks->any || number < blocks->low || number > blocks->high)
    return NULL;
  return blocks->canonical[number % HEAD_WINDOW];
}

bool
blocks_is_canonical(const struct blocks *blocks, const struct block *block)
{
  return blocks_at(blocks, block->number) == block;
}

/* Whether `parent` can stand right below `child`. */
static bool
follows(const struct block *child, const struct block *parent)
{
  return child->number != 0 && parent->number == child->number - 1;
}

enum reach
blocks_reach(const struct blocks *blocks, struct block *block, struct block **missing)
{
  while (!blocks_is_canonical(blocks, block)) {
    struct block *parent = blocks_find(blocks, block->parent);

    if (!blocks->any || block->number <= blocks->low)
      return REACH_BELOW;
    if (parent != NULL && !follows(block, parent))
      return REACH_BELOW; /* a header that lies about its number: no branch of ours */
    if (parent == NULL) {
      *missing = block;
      return REACH_GAP;
    }
    block = parent;
  }
  return REACH_LINKED;
}

unsigned
blocks_set_tip(struct blocks *blocks, struct block *block)
{
  uint64_t high = blocks->high, number = block->number;
  struct block *b = block;
  unsigned dropped = 0;
  uint64_t n;

  for (n = number + 1; n <= high; n++) {
    blocks->canonical[n % HEAD_WINDOW] = NULL;
    dropped++;
  }
  while (!blocks_is_canonical(blocks, b)) {
    if (b->number <= high)
      dropped++;
    blocks->canonical[b->number % HEAD_WINDOW] = b;
    b = blocks_find(blocks, b->parent);
  }
  blocks->high = number;
  if (blocks->high - blocks->low >= HEAD_WINDOW)
    blocks->low = blocks->high - HEAD_WINDOW + 1;
  return dropped;
}

void
blocks_restart(struct blocks *blocks, struct block *block)
{
  memset(blocks->canonical, 0, sizeof(blocks->canonical));
  blocks->canonical[block->number % HEAD_WINDOW] = block;
  blocks->low = blocks->high = block->number;
  blocks->any = true;
}

bool
blocks_extend_down(struct blocks *blocks)
{
  struct block *lowest = blocks_at(blocks, blocks->low), *parent;

  if (lowest == NULL || blocks->low == 0 || blocks->high - blocks->low + 1 >= HEAD_WINDOW)
    return false;
  parent = blocks_find(blocks, lowest->parent);
  if (parent == NULL || !follows(lowest, parent))
    return false;
  blocks->low--;
  blocks->canonical[blocks->low % HEAD_WINDOW] = parent;
  return true;
}

void
blocks_free(struct blocks *blocks)
{
  size_t cursor = 0;
  struct egw_slice key;
  struct block *block;

  while ((block = strmap_next(&blocks->by_hash, &cursor, &key)) != NULL)
    free(block);
  strmap_free(&blocks->by_hash);
  memset(blocks, 0, sizeof(*blocks));
}
