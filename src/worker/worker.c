/* SPDX-License-Identifier: MIT */
/* The worker's loop: run queue, hooks, timers. See worker.h. */
#include "worker/worker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "worker/mailbox.h"
#include "worker/resolve.h"

#define STALL_US 5000       /* callbacks of one turn taking longer are counted as a stall */
#define ARENA_CHUNKS 256    /* free arena chunks a worker keeps (1 MiB) */

uint64_t
clock_us(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* --- run queue and hooks -------------------------------------------------------------- */

void
worker_run_soon(struct egw_worker *worker, struct worker_job *job)
{
  if (job->node.next != NULL)
    list_remove(&job->node);
  list_append(&worker->run_queue, &job->node);
}

void
worker_hook_add(struct egw_worker *worker, struct worker_hook *hook)
{
  list_append(&worker->hooks, &hook->node);
}

void
worker_hook_remove(struct worker_hook *hook)
{
  if (hook->node.next != NULL)
    list_remove(&hook->node);
}

/* Runs jobs until none is left, then the hooks, until neither has anything to do. */
static void
run_all(struct egw_worker *worker)
{
  struct list *node, *tmp;
  bool again;

  do {
    while ((node = list_shift(&worker->run_queue)) != NULL) {
      struct worker_job *job = container_of(node, struct worker_job, node);

      job->fn(job);
    }
    again = false;
    list_for_each_safe(node, tmp, &worker->hooks) {
      struct worker_hook *hook = container_of(node, struct worker_hook, node);

      if (hook->fn(hook))
        again = true;
    }
  } while (again || !list_empty(&worker->run_queue));
}

/* --- timers --------------------------------------------------------------------------- */

static void arm_wheel(struct egw_worker *worker);

static void
on_wheel_timer(uv_timer_t *timer)
{
  struct egw_worker *worker = timer->data;

  worker->wheel_due = 0;
  wheel_run(&worker->wheel, uv_now(&worker->loop));
  arm_wheel(worker);
}

/* Sets the loop's one timer to the wheel's next due time, when that has come nearer. */
static void
arm_wheel(struct egw_worker *worker)
{
  uint64_t now = uv_now(&worker->loop);
  uint64_t wait = wheel_next(&worker->wheel, now);

  if (wait == UINT64_MAX)
    return;
  if (worker->wheel_due != 0 && worker->wheel_due <= now + wait)
    return;
  worker->wheel_due = now + wait;
  uv_timer_start(&worker->wheel_timer, on_wheel_timer, wait, 0);
}

void
worker_timer_start(struct egw_worker *worker, struct wheel_timer *timer, uint64_t ms)
{
  if (timer->node.next == NULL)
    list_init(&timer->node);
  wheel_start(&worker->wheel, timer, uv_now(&worker->loop) + (ms == 0 ? 1 : ms));
  if (worker->wheel_due == 0 || worker->wheel_due > timer->due)
    arm_wheel(worker);
}

void
worker_timer_stop(struct egw_worker *worker, struct wheel_timer *timer)
{
  if (timer->node.next != NULL)
    wheel_stop(&worker->wheel, timer);
}

/* --- turns ---------------------------------------------------------------------------- */

/* How long the callbacks of this phase took: the loop's clock was set when it woke up (or, for
 * the phase of timers, when the turn began), in whole milliseconds. */
static void
note_stall(struct egw_worker *worker)
{
  uint64_t woke_us = uv_now(&worker->loop) * 1000 + 999;
  uint64_t now_us = clock_us();

  if (now_us > woke_us && now_us - woke_us > STALL_US) {
    metric_add(&worker->metrics->loop_stalls, 1);
    metric_max(&worker->metrics->loop_stall_max_us, (int64_t)(now_us - woke_us));
  }
}

static void
on_prepare(uv_prepare_t *prepare)
{
  struct egw_worker *worker = prepare->data;

  run_all(worker);
  metric_add(&worker->metrics->loop_turns, 1);
  note_stall(worker);
}

static void
on_check(uv_check_t *check)
{
  struct egw_worker *worker = check->data;

  run_all(worker);
  note_stall(worker);
}

void
worker_loop(struct egw_worker *worker)
{
  uv_run(&worker->loop, UV_RUN_DEFAULT);
}

/* --- life ----------------------------------------------------------------------------- */

static int
init_handles(struct egw_worker *worker)
{
  if (uv_prepare_init(&worker->loop, &worker->prepare) != 0 ||
      uv_check_init(&worker->loop, &worker->check) != 0 ||
      uv_timer_init(&worker->loop, &worker->wheel_timer) != 0)
    return -1;
  worker->prepare.data = worker;
  worker->check.data = worker;
  worker->wheel_timer.data = worker;
  uv_prepare_start(&worker->prepare, on_prepare);
  uv_check_start(&worker->check, on_check);
  return mailbox_init(worker);
}

int
worker_init(struct egw_worker *worker, struct gateway *gateway, unsigned index, unsigned count)
{
  memset(worker, 0, sizeof(*worker));
  worker->gateway = gateway;
  worker->index = index;
  worker->count = count;
  list_init(&worker->run_queue);
  list_init(&worker->hooks);
  list_init(&worker->sessions);
  list_init(&worker->live_calls);
  arena_pool_init(&worker->arenas, ARENA_CHUNKS);
  worker->metrics = metrics_new();
  if (worker->metrics == NULL)
    return -1;
  if (uv_loop_init(&worker->loop) != 0)
    return -1;
  uv_update_time(&worker->loop);
  ticks_begin(&worker->ticks, clock_us());
  wheel_init(&worker->wheel, uv_now(&worker->loop));
  if (init_handles(worker) < 0)
    return -1;
  return resolver_init(worker);
}

static void
close_handle(uv_handle_t *handle)
{
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

void
worker_close(struct egw_worker *worker)
{
  worker->state = WORKER_STOPPED;
  mailbox_close(worker);
  resolver_close(worker);
  close_handle((uv_handle_t *)&worker->prepare);
  close_handle((uv_handle_t *)&worker->check);
  close_handle((uv_handle_t *)&worker->wheel_timer);
}

void
worker_free(struct egw_worker *worker)
{
  if (uv_loop_close(&worker->loop) == UV_EBUSY)
    egw_log(EGW_WARN, "worker", "worker %u ended with open handles", worker->index);
  mailbox_free(worker);
  resolver_free(worker);
  u64map_free(&worker->calls);
  arena_pool_free(&worker->arenas);
  metrics_free(worker->metrics);
  worker->metrics = NULL;
}

/* --- the public face ------------------------------------------------------------------ */

uint64_t
egw_now_ms(const struct egw_worker *worker)
{
  return uv_now(&worker->loop);
}

unsigned
egw_worker_index(const struct egw_worker *worker)
{
  return worker->index;
}

unsigned
egw_worker_count(const struct egw_worker *worker)
{
  return worker->count;
}

struct uv_loop_s *
egw_worker_uv(struct egw_worker *worker)
{
  return &worker->loop;
}

/* struct egw_timer is a wheel timer in disguise: its `host` words hold one. */
struct timer_face {
  void (*fn)(struct egw_timer *timer);
  void *arg;
  struct wheel_timer wheel;
};
_Static_assert(sizeof(struct timer_face) <= sizeof(struct egw_timer), "egw_timer is too small");

static void
on_plugin_timer(struct wheel_timer *wheel)
{
  struct timer_face *face = container_of(wheel, struct timer_face, wheel);

  face->fn((struct egw_timer *)(void *)face);
}

void
egw_timer_start(struct egw_worker *worker, struct egw_timer *timer, uint64_t ms)
{
  struct timer_face *face = (struct timer_face *)(void *)timer;

  face->wheel.fn = on_plugin_timer;
  worker_timer_start(worker, &face->wheel, ms);
}

void
egw_timer_stop(struct egw_worker *worker, struct egw_timer *timer)
{
  struct timer_face *face = (struct timer_face *)(void *)timer;

  worker_timer_stop(worker, &face->wheel);
}
