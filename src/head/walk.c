/* SPDX-License-Identifier: MIT */
/* Walking back by parent hashes: to link a head that came with a gap, and to fill the window below
 * the first one. */
#include <stdio.h>
#include <string.h>
#include "head/parts.h"
#include "obs/log.h"

#define WALK_MAX 512u      /* a head so far above the tip is not walked to, but taken up */
#define WALKED_MAX HEAD_WINDOW /* ancestors asked for in a row: the chain grows meanwhile */
#define LOST_MS 5000u      /* heads that can't be linked for so long are believed without */
#define BACKFILL_TRIES 3u
#define CLAIMS_BELIEVED 2u
#define BACKFILL_DEEP 384u     /* for clients that resume */
#define BACKFILL_LEAST 32u
#define BACKFILL_DEFAULT 128u  /* blocks wanted below the tip while finality is not known */

/* The parent of `block` is asked for by its hash. */
static int
ask_parent(struct question *q, struct follower *f, const struct block *block,
           void (*fn)(struct question *))
{
  char hash[67], params[96];

  hash_text(block->parent, hash);
  snprintf(params, sizeof(params), "[\"%s\",false]", hash);
  return question_ask(q, f, "eth_getBlockByHash", params, fn);
}

/* The chain is taken up anew at the follower's target. */
static void
restart(struct follower *f)
{
  struct tracker *tracker = f->tracker;
  struct block *block = blocks_find(&tracker->blocks, f->target.hash);

  if (block == NULL)
    return;
  if (tracker->tip != NULL)
    egw_log(EGW_WARN, "head", "%s: the chain is taken up anew at block %llu", f->upstream->name,
            (unsigned long long)block->number);
  tracker_restart(tracker, block);
  follower_saw(f, &f->target, NULL);
}

/* No other upstream speaks against a far jump. */
static bool
alone(const struct follower *f)
{
  unsigned i;

  for (i = 0; i < f->tracker->count; i++) {
    const struct follower *other = &f->tracker->followers[i];

    if (other != f && other->has_head && other->identity != IDENTITY_STRANGER &&
        follower_alive(other))
      return false;
  }
  return true;
}

/* The target, far from the tip or the first of all, has a parent as it should (or not). */
static void
judge_far(struct follower *f, bool has_parent)
{
  const struct tracker *t = f->tracker;

  f->claims++;
  if (has_parent && t->tip != NULL && f->target.number - t->tip->number < WALK_MAX) {
    /* Far, but true: walked to all the same, so that nobody misses the blocks in between. */
    f->tracker->believed = f->target.number;
    follower_saw(f, &f->target, NULL);
    return;
  }
  if (has_parent || f->target.number == 0 || (alone(f) && f->claims >= CLAIMS_BELIEVED)) {
    restart(f);
    return;
  }
  if (f->claims == 1) /* it may go on like that for long */
    egw_log(EGW_WARN, "head", "%s claims block %llu, which has no parent: not believed",
            f->upstream->name, (unsigned long long)f->target.number);
  f->has_target = false;
}

/* Keeps the answer if it is the parent of `child`. */
static bool
take_parent(struct question *q, const struct block *child)
{
  const struct block *parent = &q->block;

  return q->has_block && parent->number + 1 == child->number &&
         memcmp(parent->hash, child->parent, HASH_LEN) == 0 &&
         blocks_add(&q->follower->tracker->blocks, parent, q->raw) != NULL;
}

/* The head can't be linked: the node has lost that branch, or it is another node now, or it
 * has no ancestors to show (it began at a snapshot). If that goes on and nobody else speaks
 * for another chain, its word is taken. */
static void
give_up(struct follower *f, bool answered)
{
  uint64_t now = uv_now(&f->tracker->worker->loop);

  if (f->lost_since_ms == 0 && answered)
    f->lost_since_ms = now;
  if (f->lost_since_ms != 0 && now - f->lost_since_ms >= LOST_MS && alone(f)) {
    restart(f);
    return;
  }
  f->has_target = false;
  f->identity = IDENTITY_UNKNOWN;
}

static void
on_walked(struct question *q)
{
  struct follower *f = q->follower;
  bool same = memcmp(f->walk_target, f->target.hash, HASH_LEN) == 0;
  bool got = take_parent(q, &f->walk_child);

  if (!f->has_target)
    return;
  if (same && tracker_is_far(f->tracker, &f->target))
    judge_far(f, got);
  else if (same && !got)
    give_up(f, q->answered);
  else
    follower_saw(f, &f->target, NULL);
}

void
follower_walk(struct follower *f)
{
  struct tracker *tracker = f->tracker;
  struct block *target = blocks_find(&tracker->blocks, f->target.hash), *child = target;

  if (f->walk.waiting || target == NULL)
    return;
  if (tracker_is_far(tracker, target)) {
    if (target->number == 0) {
      judge_far(f, false);
      return;
    }
  } else if (blocks_reach(&tracker->blocks, target, &child) != REACH_GAP) {
    return;
  }
  f->walk_child = *child;
  memcpy(f->walk_target, target->hash, HASH_LEN);
  f->walk_ms = uv_now(&tracker->worker->loop);
  if (++f->walked > WALKED_MAX) {
    f->walked = 0; /* the next head goes on from what is known by now */
    if (alone(f)) {
      restart(f);
      return;
    }
    f->has_target = false;
  } else if (ask_parent(&f->walk, f, child, on_walked) < 0) {
    f->has_target = false;
  }
}

/* --- below the first one --------------------------------------------------------------------------- */

static bool
wants_more(const struct tracker *tracker)
{
  const struct blocks *b = &tracker->blocks;
  const struct finality *fin = &tracker->finality;

  if (!b->any || b->low == 0 || b->high - b->low + 1 >= HEAD_WINDOW / 2)
    return false;
  if (atomic_load_explicit(&tracker->head->deep, memory_order_acquire) &&
      b->high - b->low + 1 < BACKFILL_DEEP)
    return true;
  if (b->high - b->low + 1 < BACKFILL_LEAST)
    return true;
  if (fin->has_finalized)
    return b->low > fin->finalized.number;
  return b->high - b->low + 1 < BACKFILL_DEFAULT;
}

static void
set_depth(struct tracker *tracker)
{
  bool deep = atomic_load_explicit(&tracker->head->deep, memory_order_acquire);

  tracker->depth = deep ? HEAD_DEEP : HEAD_FILLED;
  tracker_publish(tracker);
}

static void
on_backfilled(struct question *q)
{
  struct tracker *tracker = q->follower->tracker;
  uint64_t low = tracker->blocks.low;

  bool next = q - tracker->backfill == (ptrdiff_t)((low - 1) % BACKFILL_AT_ONCE);

  if (q->has_block && blocks_add(&tracker->blocks, &q->block, q->raw) != NULL &&
      (!next || blocks_extend_down(&tracker->blocks))) {
    tracker->backfill_failures = next ? 0 : tracker->backfill_failures;
    tracker_backfill(tracker);
    return;
  }
  /* It is pruned, or on another branch there: the next head tries again, but nobody waits
   * for it. */
  if (next && q->answered && ++tracker->backfill_failures < BACKFILL_TRIES)
    tracker_backfill(tracker);
  else if (tracker->backfill_failures >= BACKFILL_TRIES)
    set_depth(tracker);
}

static void
ask_number(struct tracker *tracker, struct follower *f, unsigned slot, uint64_t number)
{
  char params[48];

  snprintf(params, sizeof(params), "[\"0x%llx\",false]", (unsigned long long)number);
  if (question_ask(&tracker->backfill[slot], f, "eth_getBlockByNumber", params,
                   on_backfilled) == 0)
    tracker->backfill_number[slot] = number;
}

/* The next few, by number, at the same time; only what links becomes part of the chain. The
 * first one is asked for again if it did not. */
static void
ask_below(struct tracker *tracker, struct follower *f)
{
  uint64_t low = tracker->blocks.low, i;

  for (i = 1; i <= BACKFILL_AT_ONCE && i <= low; i++) {
    unsigned slot = (unsigned)((low - i) % BACKFILL_AT_ONCE);

    if (!tracker->backfill[slot].waiting &&
        (i == 1 || tracker->backfill_number[slot] != low - i))
      ask_number(tracker, f, slot, low - i);
  }
}

void
tracker_backfill(struct tracker *tracker)
{
  unsigned i;

  if (tracker->tip == NULL)
    return;
  while (wants_more(tracker) && blocks_extend_down(&tracker->blocks))
    ;
  if (!wants_more(tracker) || tracker->backfill_failures >= BACKFILL_TRIES)
    set_depth(tracker);
  if (!wants_more(tracker))
    return;
  for (i = 0; i < tracker->count; i++) {
    struct follower *f = &tracker->followers[i];

    if (f->has_head && follower_alive(f) && f->head.number >= tracker->blocks.low) {
      ask_below(tracker, f);
      return;
    }
  }
}
