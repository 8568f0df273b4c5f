/* SPDX-License-Identifier: MIT */
/* Timer wheel. A timer sits in the slot of the first tick at which it is due, whatever the
 * round; a visit to a slot takes only those that are really due. */
#include "base/wheel.h"

/* How many timers of later rounds wheel_next() looks at before it settles for a lower bound:
 * the bound makes one wake-up for nothing, a long walk would be paid after every firing. */
#define WHEEL_LOOK 256u

/* Far enough below the top for the arithmetic on ticks not to wrap. */
#define WHEEL_DUE_MAX (UINT64_MAX - 2u * WHEEL_TICK)

static uint64_t
wheel_tick_of(uint64_t due)
{
  return due / WHEEL_TICK + (due % WHEEL_TICK != 0);
}

static struct list *
wheel_slot(struct wheel *wheel, uint64_t tick)
{
  return &wheel->slot[tick & (WHEEL_SLOTS - 1)];
}

void
wheel_init(struct wheel *wheel, uint64_t now_ms)
{
  unsigned i;

  for (i = 0; i < WHEEL_SLOTS; i++)
    list_init(&wheel->slot[i]);
  wheel->tick = now_ms / WHEEL_TICK;
  wheel->count = 0;
  wheel->soonest = 0;
}

bool
wheel_armed(const struct wheel_timer *timer)
{
  return timer->due != 0;
}

void
wheel_start(struct wheel *wheel, struct wheel_timer *timer, uint64_t due_ms)
{
  uint64_t past = wheel->tick * WHEEL_TICK;

  wheel_stop(wheel, timer);
  if (due_ms <= past) /* that slot has been run: take the next one */
    due_ms = past + 1;
  if (due_ms > WHEEL_DUE_MAX)
    due_ms = WHEEL_DUE_MAX;
  timer->due = due_ms;
  list_append(wheel_slot(wheel, wheel_tick_of(due_ms)), &timer->node);
  if (wheel->count == 0 || (wheel->soonest != 0 && due_ms < wheel->soonest))
    wheel->soonest = due_ms;
  wheel->count++;
}

void
wheel_stop(struct wheel *wheel, struct wheel_timer *timer)
{
  if (timer->due == 0)
    return;
  list_remove(&timer->node);
  timer->due = 0;
  wheel->count--; /* `soonest` stays a lower bound */
}

/* Moves the timers of a slot that are due at `tick` to `out`. */
static void
wheel_collect(struct list *slot, uint64_t tick, struct list *out)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, slot) {
    if (wheel_tick_of(container_of(node, struct wheel_timer, node)->due) <= tick) {
      list_remove(node);
      list_append(out, node);
    }
  }
}

void
wheel_run(struct wheel *wheel, uint64_t now_ms)
{
  uint64_t target = now_ms / WHEEL_TICK, steps, i;
  struct list due, *node;

  if (target <= wheel->tick)
    return;
  if (wheel->count == 0 ||
      (wheel->soonest != 0 && wheel_tick_of(wheel->soonest) > target)) {
    wheel->tick = target;
    return;
  }
  steps = target - wheel->tick;
  if (steps > WHEEL_SLOTS) /* a jump of the clock: each slot once is all of them */
    steps = WHEEL_SLOTS;
  /* Collected before any callback runs: what callbacks start goes to later ticks, and what
   * they stop leaves this list. */
  list_init(&due);
  for (i = 1; i <= steps; i++)
    wheel_collect(wheel_slot(wheel, wheel->tick + i), target, &due);
  wheel->tick = target;
  wheel->soonest = 0;
  while ((node = list_shift(&due)) != NULL) {
    struct wheel_timer *timer = container_of(node, struct wheel_timer, node);

    timer->due = 0;
    wheel->count--;
    timer->fn(timer);
  }
}

/* A lower bound of the earliest due time, exact if it is near or few timers are in the way. */
static uint64_t
wheel_look(struct wheel *wheel)
{
  uint64_t tick, best, seen = 0;
  struct list *node, *slot;

  for (tick = wheel->tick + 1; tick <= wheel->tick + WHEEL_SLOTS; tick++) {
    slot = wheel_slot(wheel, tick);
    best = UINT64_MAX;
    list_for_each(node, slot) {
      uint64_t due = container_of(node, struct wheel_timer, node)->due;

      if (wheel_tick_of(due) == tick && due < best)
        best = due;
      if (++seen > WHEEL_LOOK)
        return (tick - 1) * WHEEL_TICK + 1;
    }
    if (best != UINT64_MAX)
      return best;
  }
  return (tick - 1) * WHEEL_TICK + 1;
}

uint64_t
wheel_next(struct wheel *wheel, uint64_t now_ms)
{
  uint64_t at;

  if (wheel->count == 0)
    return UINT64_MAX;
  /* A bound that has been passed by belongs to a timer that was stopped. */
  if (wheel->soonest <= wheel->tick * WHEEL_TICK)
    wheel->soonest = wheel_look(wheel);
  at = wheel_tick_of(wheel->soonest) * WHEEL_TICK;
  return at > now_ms ? at - now_ms : 0;
}
