/* SPDX-License-Identifier: MIT */
/* The safe and the finalized block: asked for after each move of the tip, of a node that has the tip.
 * Nodes that know no finality say so by an error or null; then there is none. */
#include <string.h>
#include "head/parts.h"

#define SPACING_MS 200u     /* between two rounds of questions, however fast blocks come */
#define AGAIN_MS 5000u      /* finality moves without a new head too; and after a failure */
#define SELDOM_MS 60000u    /* while no client asks anything, or no node knows of finality */

static void on_answer(struct question *q);

/* The block is to be on the canonical chain as far as that is known, and not beyond the
 * tip. */
static bool
believable(const struct tracker *t, uint64_t number, const unsigned char hash[HASH_LEN])
{
  const struct block *mine;

  if (t->tip == NULL || number > t->tip->number)
    return false;
  mine = blocks_at(&t->blocks, number);
  return mine == NULL || memcmp(mine->hash, hash, HASH_LEN) == 0;
}

void
finality_moved(struct tracker *t)
{
  struct finality *fin = &t->finality;

  if (fin->has_finalized && !believable(t, fin->finalized.number, fin->finalized.hash))
    fin->has_finalized = false;
  if (fin->has_safe && !believable(t, fin->safe.number, fin->safe.hash))
    fin->has_safe = false;
}

static uint64_t
pause_ms(const struct tracker *t)
{
  return t->idle || t->finality.refusals >= t->count ? SELDOM_MS : SPACING_MS;
}

/* Neither goes back, except with the chain. */
static void
take(struct tracker *t, const struct block *block)
{
  struct finality *fin = &t->finality;
  struct egw_block *at = fin->asking_safe ? &fin->safe : &fin->finalized;
  bool *has = fin->asking_safe ? &fin->has_safe : &fin->has_finalized;

  if (!believable(t, block->number, block->hash))
    return;
  if (*has && block->number < at->number && at->number <= t->tip->number)
    return;
  *has = true;
  at->number = block->number;
  memcpy(at->hash, block->hash, HASH_LEN);
}

static int
ask(struct tracker *t, struct follower *f)
{
  return question_ask(&t->finality.question, f, "eth_getBlockByNumber",
                      t->finality.asking_safe ? "[\"safe\",false]" : "[\"finalized\",false]",
                      on_answer);
}

static void
round_over(struct tracker *t)
{
  struct finality *fin = &t->finality;

  worker_timer_start(t->worker, &fin->timer, fin->dirty ? SPACING_MS : AGAIN_MS);
  tracker_backfill(t); /* how much is wanted depends on finality */
  tracker_publish(t);
}

static void
on_answer(struct question *q)
{
  struct tracker *t = q->follower->tracker;
  struct finality *fin = &t->finality;

  if (q->has_block)
    take(t, &q->block);
  if (q->has_block)
    fin->refusals = 0;
  else if (q->answered && !fin->asking_safe && fin->refusals < t->count)
    fin->refusals++; /* the next round goes to another one */
  if (!fin->asking_safe && q->answered) {
    fin->asking_safe = true;
    if (ask(t, q->follower) == 0)
      return;
  }
  round_over(t);
}

/* A node at the tip; others than those that know no finality come first. */
static struct follower *
someone(struct tracker *t)
{
  unsigned i;

  for (i = 0; i < t->count; i++) {
    struct follower *f = &t->followers[(t->finality.refusals + i) % t->count];

    if (f->has_head && t->tip != NULL && memcmp(f->head.hash, t->tip->hash, HASH_LEN) == 0 &&
        follower_alive(f))
      return f;
  }
  return NULL;
}

void
finality_ask(struct tracker *t)
{
  struct finality *fin = &t->finality;
  uint64_t now = uv_now(&t->worker->loop);
  struct follower *f;

  fin->dirty = true;
  if (fin->question.waiting)
    return;
  if (fin->asked_ms != 0 && now - fin->asked_ms < pause_ms(t)) {
    worker_timer_start(t->worker, &fin->timer, pause_ms(t) - (now - fin->asked_ms));
    return;
  }
  f = someone(t);
  fin->dirty = false;
  fin->asked_ms = now;
  fin->asking_safe = false;
  if (f == NULL || ask(t, f) < 0)
    worker_timer_start(t->worker, &fin->timer, AGAIN_MS);
}

static void
on_timer(struct wheel_timer *timer)
{
  struct finality *fin = container_of(timer, struct finality, timer);

  finality_ask(container_of(fin, struct tracker, finality));
}

void
finality_start(struct tracker *t)
{
  t->finality.timer.fn = on_timer;
}

void
finality_stop(struct tracker *t)
{
  question_stop(&t->finality.question);
  worker_timer_stop(t->worker, &t->finality.timer);
}
