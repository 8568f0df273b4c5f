/* SPDX-License-Identifier: MIT */
/* Following one upstream: its newest block by polling and by newHeads. Nothing it says counts
 * before it has said which chain it serves. */
#include <string.h>
#include "head/parts.h"
#include "obs/log.h"

#define POLL_SPACING_MS 20u    /* between two polls, whatever asks for them */

/* --- heads ------------------------------------------------------------------------------------ */

static void
accept_head(struct follower *f, const struct block *block)
{
  f->has_head = true;
  f->head = *block;
  f->has_target = false;
  f->walked = 0;
  f->claims = 0;
  f->lost_since_ms = 0;
  f->linked_touched = f->seen_touched;
  f->heard_ms = uv_now(&f->tracker->worker->loop);
  atomic_store_explicit(&f->upstream->head, block->number + 1, memory_order_relaxed);
  tracker_choose(f->tracker);
}

/* The head is on no branch that is known, nor will be: the node lags or is being
 * synchronised, or its chain was moved back or begun anew behind our back. The latter is
 * found out first. */
static void
take_below(struct follower *f, const struct block *block)
{
  if (f->below || !f->has_head) {
    f->below = true;
    accept_head(f, block);
    return;
  }
  f->below = true;
  f->has_target = false;
  f->identity = IDENTITY_UNKNOWN;
  f->polled_ms = 0;
  follower_poll(f);
}

void
follower_saw(struct follower *f, const struct block *block, struct egw_buf *raw)
{
  struct tracker *tracker = f->tracker;
  struct block *mine, *missing;
  enum reach reach;

  if (f->identity != IDENTITY_KNOWN)
    return;
  mine = blocks_add(&tracker->blocks, block, raw);
  if (mine == NULL || mine->number != block->number)
    return;
  if (f->has_head && memcmp(f->head.hash, block->hash, HASH_LEN) == 0) {
    accept_head(f, block);
    return;
  }
  f->target = *block;
  f->has_target = true;
  reach = tracker_is_far(tracker, block) ? REACH_GAP
                                         : blocks_reach(&tracker->blocks, mine, &missing);
  if (reach == REACH_GAP) {
    /* The chain grows while a gap is filled. */
    if (tracker->believed != 0 && !tracker_is_far(tracker, block) &&
        block->number > tracker->believed)
      tracker->believed = block->number;
    follower_walk(f);
  } else if (reach == REACH_BELOW) {
    take_below(f, block);
  } else {
    f->below = false;
    accept_head(f, block);
  }
}

/* --- polling ------------------------------------------------------------------------------------ */

static void
schedule(struct follower *f)
{
  worker_timer_start(f->tracker->worker, &f->poll_timer, follower_pause_ms(f));
}

/* The poll found a block that the feed should have brought long ago. */
static bool
feed_missed(const struct follower *f, const struct block *block)
{
  uint64_t now = uv_now(&f->tracker->worker->loop);

  return feed_alive(f) && f->has_head && block->number > f->head.number &&
         now - f->fed_ms > 2 * follower_poll_ms(f) &&
         block->number > f->polled_before;
}

static void
on_polled(struct question *q)
{
  struct follower *f = q->follower;

  if (q->has_block) {
    f->seen_touched = f->poll_touched;
    if (feed_missed(f, &q->block)) {
      egw_log(EGW_WARN, "head", "%s: its newHeads are silent at block %llu", f->upstream->name,
              (unsigned long long)q->block.number);
      feed_close(f);
    }
    f->polled_before = q->block.number;
    follower_saw(f, &q->block, q->raw);
  } else {
    tracker_choose(f->tracker);
  }
  if (f->poll_again) {
    f->poll_again = false;
    follower_poll(f);
    return;
  }
  if (!wheel_armed(&f->poll_timer))
    schedule(f);
}

/* What must come before the latest block is asked for. false: nothing. */
static bool
something_first(struct follower *f)
{
  bool up = f->link->health == LINK_UP;

  if (up && !f->was_up)
    f->identity = IDENTITY_UNKNOWN; /* it may be another node that came back */
  f->was_up = up;
  if (!up)
    return true; /* the link's own probes look after it */
  if (f->identity != IDENTITY_KNOWN) {
    follower_identify(f);
    return true;
  }
  if (f->feed == NULL)
    feed_open(f);
  return false;
}

void
follower_poll(struct follower *f)
{
  struct tracker *tracker = f->tracker;
  uint64_t now = uv_now(&tracker->worker->loop);

  if (tracker->stopped)
    return;
  if (f->poll.waiting) {
    f->poll_again = true;
    return;
  }
  if (f->polled_ms != 0 && now - f->polled_ms < POLL_SPACING_MS) {
    worker_timer_start(tracker->worker, &f->poll_timer, POLL_SPACING_MS - (now - f->polled_ms));
    return;
  }
  f->polled_ms = now;
  worker_timer_stop(tracker->worker, &f->poll_timer);
  if (something_first(f)) {
    schedule(f);
    return;
  }
  f->poll_touched = atomic_load_explicit(&tracker->head->touched, memory_order_acquire);
  if (question_ask(&f->poll, f, "eth_getBlockByNumber", "[\"latest\",false]", on_polled) < 0)
    schedule(f);
}

static void
on_poll_timer(struct wheel_timer *timer)
{
  struct follower *f = container_of(timer, struct follower, poll_timer);

  tracker_choose(f->tracker); /* it may have become silent */
  follower_poll(f);
}

void
follower_start(struct follower *f)
{
  f->poll_timer.fn = on_poll_timer;
  f->was_up = true;
  follower_poll(f);
}

void
follower_stop(struct follower *f)
{
  question_stop(&f->poll);
  question_stop(&f->walk);
  question_stop(&f->ask_identity);
  feed_close(f);
  worker_timer_stop(f->tracker->worker, &f->poll_timer);
  worker_timer_stop(f->tracker->worker, &f->feed_timer);
}
