/* SPDX-License-Identifier: MIT */
/* Places and windows. */
#include "walk.h"

#include <stdlib.h>
#include <string.h>

#define EARLY_MS 100u           /* an answer that waits longer than this, and... */
#define COST_AT_ONCE 500u       /* of the fetches of a walk together */
#define EARLY_TIMES 4u          /* ...so many times the node's time, was fetched early */

struct walk *
walk_new(const struct shape *shape, const struct egw_method_info *method, int64_t step,
         unsigned window_max, uint64_t now_ms)
{
  unsigned cap = 64;
  struct walk *walk;

  while (cap < window_max + WALK_LATE + WALK_GAP + 1)
    cap *= 2;
  walk = calloc(1, sizeof(*walk) + cap * sizeof(walk->places[0]));
  if (walk == NULL)
    return NULL;
  if (shape_keep(&walk->shape, shape, method) < 0) {
    free(walk);
    return NULL;
  }
  walk->step = step;
  walk->origin = shape->number;
  walk->swept = -1;
  walk->window_max = window_max;
  walk->window = window_max < WALK_FIRST ? window_max : WALK_FIRST;
  walk->most = method->cost == 0 ? COST_AT_ONCE : COST_AT_ONCE / method->cost;
  walk->last_ms = now_ms;
  walk->cap = cap;
  return walk;
}

void
walk_free(struct walk *walk)
{
  shape_free(&walk->shape);
  free(walk);
}

bool
walk_number(const struct walk *walk, int64_t n, uint64_t *number)
{
  int64_t far = n * walk->step; /* places are few and steps bounded: it fits */

  if (far < 0 && walk->origin < (uint64_t)-far)
    return false;
  *number = walk->origin + (uint64_t)far;
  return *number < SHAPE_NUMBER_MAX;
}

bool
walk_place(const struct walk *walk, uint64_t number, int64_t *n)
{
  int64_t far = (int64_t)(number - walk->origin);

  if (far % walk->step != 0)
    return false;
  *n = far / walk->step;
  return true;
}

static struct place *
slot_of(struct walk *walk, int64_t n)
{
  return &walk->places[(uint64_t)n & (walk->cap - 1)];
}

struct place *
walk_at(struct walk *walk, int64_t n)
{
  struct place *p = slot_of(walk, n);

  return p->state != PLACE_NONE && p->n == n ? p : NULL;
}

struct place *
walk_take(struct walk *walk, int64_t n)
{
  struct place *p = slot_of(walk, n);

  if (p->state != PLACE_NONE)
    return NULL;
  *p = (struct place){ .walk = walk, .n = n };
  return p;
}

/* Answers that wait for the client much longer than they took: fewer would do. */
static void
note_early(struct walk *walk, const struct place *p, uint64_t best_ms, uint64_t now_ms)
{
  uint64_t waited = now_ms - p->since_ms;

  if (waited <= EARLY_MS || waited <= EARLY_TIMES * best_ms) {
    walk->early = 0;
    return;
  }
  if (++walk->early < walk->window || walk->window <= WALK_FIRST)
    return;
  walk->early = 0;
  walk->window -= walk->window / 4;
}

void
walk_advance(struct walk *walk, int64_t n, enum walk_step step, uint64_t best_ms,
             uint64_t now_ms)
{
  uint64_t since = now_ms - walk->last_ms;
  const struct place *p = walk_at(walk, n);

  walk->pace_ms = walk->pace_ms == 0 ? since : (7 * walk->pace_ms + since) / 8;
  walk->last_ms = now_ms;
  if (n > walk->front)
    walk->front = n;
  if (walk->asked < walk->front)
    walk->asked = walk->front;
  if (step == STEP_READY && p != NULL) {
    note_early(walk, p, best_ms, now_ms);
    return;
  }
  /* The client had to wait: the window does not cover the node's time at this pace. */
  walk->early = 0;
  walk->window = walk->window * 2 < walk->window_max ? walk->window * 2 : walk->window_max;
}

struct place *
walk_sweep(struct walk *walk)
{
  while (walk->swept + 1 <= walk->front - WALK_LATE) {
    struct place *p = walk_at(walk, walk->swept + 1);

    if (p != NULL && p->state == PLACE_FLYING)
      return NULL; /* somebody may still be waiting for it */
    walk->swept++;
    if (p != NULL)
      return p;
  }
  return NULL;
}
