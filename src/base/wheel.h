/* SPDX-License-Identifier: MIT */
/* Timer wheel: O(1) start and stop, driven from outside by a clock in milliseconds, so that
 * tests run it on a virtual one. A timer never fires early and at most WHEEL_TICK late (plus
 * what the driver is late). One thread. */
#ifndef BASE_WHEEL_H
#define BASE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

#define WHEEL_TICK 4u     /* milliseconds of a slot */
#define WHEEL_SLOTS 1024u /* a power of two */

struct wheel_timer {
  struct list node;       /* list_init()ed or zero before first use */
  uint64_t due;           /* ms; 0: idle */
  void (*fn)(struct wheel_timer *timer);
};

struct wheel {
  struct list slot[WHEEL_SLOTS];
  uint64_t tick;          /* slots up to here have been run */
  uint64_t count;         /* armed timers */
  uint64_t soonest;       /* lower bound of the earliest due time; 0: unknown */
};

void wheel_init(struct wheel *wheel, uint64_t now_ms);
/* Starting an armed timer moves it. */
void wheel_start(struct wheel *wheel, struct wheel_timer *timer, uint64_t due_ms);
void wheel_stop(struct wheel *wheel, struct wheel_timer *timer);
bool wheel_armed(const struct wheel_timer *timer);

/* Runs every timer due at `now_ms`, in no particular order within a tick. Timers may start and
 * stop any timer, themselves included. */
void wheel_run(struct wheel *wheel, uint64_t now_ms);

/* Milliseconds until wheel_run() should be called again; UINT64_MAX when nothing is armed. */
uint64_t wheel_next(struct wheel *wheel, uint64_t now_ms);

#endif
