/* SPDX-License-Identifier: MIT */
/* Headers by hash: see blocks.h. */
#include "head/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

#define SWEEP_EVERY 64u   /* headers added between two sweeps */
#define ADDED_KEPT (4 * HEAD_WINDOW) /* the last so many stay, wherever they belong */

void
hash_text(const unsigned char hash[HASH_LEN], char out[67])
{
  egw_hex_print(hash, HASH_LEN, out);
}

bool
block_parse(struct egw_slice object, struct block *out)
{
  memset(out, 0, sizeof(*out));
  if (egw_json_u64(egw_json_member(object, "timestamp"), &out->time) < 0)
    out->time = 0; /* some chains push headers without */
  return egw_json_kind(object) == EGW_JSON_OBJECT &&
         egw_json_u64(egw_json_member(object, "number"), &out->number) == 0 &&
         egw_hex_read(egw_json_member(object, "hash"), out->hash, HASH_LEN) == HASH_LEN &&
         egw_hex_read(egw_json_member(object, "parentHash"), out->parent, HASH_LEN) == HASH_LEN;
}

static bool
is_list(struct egw_slice key)
{
  return egw_json_equals(key, "transactions") || egw_json_equals(key, "uncles") ||
         egw_json_equals(key, "withdrawals");
}

struct egw_buf *
header_raw(struct egw_slice object)
{
  struct egw_buf *buf = egw_buf_new(1024);
  struct egw_slice key, value;
  size_t cursor = 0;
  const char *before = "{";
  bool good = buf != NULL && egw_json_kind(object) == EGW_JSON_OBJECT;

  while (good && egw_json_next(object, &cursor, &key, &value)) {
    if (is_list(key))
      continue;
    good = egw_buf_append(buf, before, 1) == 0 && egw_buf_append(buf, key.ptr, key.len) == 0 &&
           egw_buf_append(buf, ":", 1) == 0 && egw_buf_append(buf, value.ptr, value.len) == 0;
    before = ",";
  }
  if (!good || before[0] == '{' || egw_buf_append(buf, "}", 1) < 0) {
    egw_buf_unref(buf);
    return NULL;
  }
  return buf;
}

static void
block_free(struct block *block)
{
  egw_buf_unref(block->raw);
  free(block);
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

/* Lets go of what has left the window, and of other branches that nobody spoke of lately: a
 * chain that stands still, or is moved back again and again, never leaves the window. */
static void
sweep(struct blocks *blocks)
{
  size_t cursor = 0;
  struct egw_slice key;
  struct block *block;

  while ((block = strmap_next(&blocks->by_hash, &cursor, &key)) != NULL) {
    bool near = block->number + HEAD_WINDOW > blocks->high || !blocks->any;

    if (blocks_is_canonical(blocks, block) ||
        (near && blocks->added - block->serial < ADDED_KEPT))
      continue;
    strmap_take(&blocks->by_hash, key);
    block_free(block);
  }
}

/* The node that speaks now is not to suffer from what another one said of its block. */
static void
replace(const struct blocks *blocks, struct block *known, const struct block *block)
{
  if (blocks_is_canonical(blocks, known) ||
      (known->number == block->number && memcmp(known->parent, block->parent, HASH_LEN) == 0))
    return;
  known->number = block->number;
  known->time = block->time;
  memcpy(known->parent, block->parent, HASH_LEN);
  egw_buf_unref(known->raw);
  known->raw = NULL;
}

struct block *
blocks_add(struct blocks *blocks, const struct block *block, struct egw_buf *raw)
{
  struct block *known = blocks_find(blocks, block->hash), *copy;

  if (known != NULL) {
    replace(blocks, known, block);
    if (known->raw == NULL && raw != NULL)
      known->raw = egw_buf_ref(raw);
    return known;
  }
  if (++blocks->added % SWEEP_EVERY == 0)
    sweep(blocks);
  copy = malloc(sizeof(*copy));
  if (copy == NULL)
    return NULL;
  *copy = *block;
  copy->raw = NULL;
  copy->serial = blocks->added;
  if (strmap_put(&blocks->by_hash, key_of(copy->hash), copy) < 0) {
    free(copy);
    return NULL;
  }
  if (raw != NULL)
    copy->raw = egw_buf_ref(raw);
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

bool
blocks_at_bottom(const struct blocks *blocks, const struct block *block)
{
  const struct block *lowest = blocks_at(blocks, blocks->low);

  return lowest != NULL && block->number == blocks->low && block->number != 0 &&
         memcmp(block->parent, lowest->parent, HASH_LEN) == 0;
}

enum reach
blocks_reach(const struct blocks *blocks, struct block *block, struct block **missing)
{
  const uint64_t top = block->number;

  while (!blocks_is_canonical(blocks, block)) {
    struct block *parent = blocks_find(blocks, block->parent);

    if (!blocks->any || block->number < blocks->low || top - block->number >= HEAD_WINDOW - 1)
      return REACH_BELOW;
    if (blocks_at_bottom(blocks, block))
      return REACH_LINKED;
    if (block->number == blocks->low)
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
    bool bottom = blocks_at_bottom(blocks, b);

    if (b->number <= high)
      dropped++;
    blocks->canonical[b->number % HEAD_WINDOW] = b;
    if (bottom)
      break;
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
    block_free(block);
  strmap_free(&blocks->by_hash);
  memset(blocks, 0, sizeof(*blocks));
}
