/* SPDX-License-Identifier: MIT */
/* A real worker whose loop the test turns itself, for parts of plugins that need libuv and
 * time. Included once by a test program; everything is static. */
#ifndef T_LIB_WORKER_KIT_H
#define T_LIB_WORKER_KIT_H

#include <stdlib.h>
#include "worker/worker.h"

static struct egw_worker kit_worker;
static bool kit_over;

static uint64_t kit_deadline;

/* Wakes the loop, for conditions that come true elsewhere. */
static void
kit_tick(uv_timer_t *timer)
{
  kit_over = uv_now(timer->loop) >= kit_deadline;
}

/* Turns the loop until `done` says so; false after `ms`. */
static inline bool
kit_until(bool (*done)(void), uint64_t ms)
{
  uv_timer_t timer;

  kit_over = false;
  uv_update_time(&kit_worker.loop);
  kit_deadline = uv_now(&kit_worker.loop) + ms;
  uv_timer_init(&kit_worker.loop, &timer);
  uv_timer_start(&timer, kit_tick, 1, 2);
  while (!done() && !kit_over)
    uv_run(&kit_worker.loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&timer, NULL);
  uv_run(&kit_worker.loop, UV_RUN_NOWAIT);
  return !kit_over;
}

static bool
kit_never(void)
{
  return false;
}

/* Lets `ms` pass: to see that something does not happen. */
static inline void
kit_pass(uint64_t ms)
{
  kit_until(kit_never, ms);
}

static inline void
kit_start(void)
{
  if (worker_init(&kit_worker, NULL, 0, 1) != 0)
    abort();
}

/* Ends the worker; whether no handle was left open. */
static inline bool
kit_end(void)
{
  bool clean;

  worker_close(&kit_worker);
  uv_run(&kit_worker.loop, UV_RUN_DEFAULT);
  clean = !uv_loop_alive(&kit_worker.loop);
  worker_free(&kit_worker);
  return clean;
}

#endif
