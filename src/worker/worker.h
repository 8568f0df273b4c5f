/* SPDX-License-Identifier: MIT */
/* A worker: one thread, one libuv loop, and all that lives on it. Shared nothing: sessions,
 * calls, timers and links stay on their worker; egw_post() is the only way in from outside.
 *
 * One turn of the loop: timers -> run queue drained, hooks -> poll -> callbacks -> run queue
 * drained. What is put on the run queue is therefore done before the loop sleeps. */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>
#include <ethrpc-gw/loop.h>
#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ticks.h"
#include "base/wheel.h"
#include "obs/metrics.h"

struct gateway;
struct egw_link;
struct network;
struct egw_call;

enum worker_state { WORKER_NEW, WORKER_RUNNING, WORKER_DRAINING, WORKER_STOPPING, WORKER_STOPPED };

/* Called in every turn after the run queue is drained and before the loop may sleep; true:
 * it did something, go round again. */
struct worker_hook {
  struct list node;
  bool (*fn)(struct worker_hook *hook);
};

/* A piece of work for this turn. The node is idle when fn is called. */
struct worker_job {
  struct list node;
  void (*fn)(struct worker_job *job);
};

/* Cheap calls of one turn of the loop that go to one upstream, so that they go out together. */
struct pick_run {
  struct network *network;
  struct egw_link *link;
  int64_t turn;
  unsigned left;                 /* so many more of them */
};

struct egw_worker {
  struct gateway *gateway;
  unsigned index, count;
  enum worker_state state;
  pthread_t thread;
  bool thread_started;

  uv_loop_t loop;
  uv_prepare_t prepare;
  uv_check_t check;
  uv_timer_t wheel_timer;
  struct wheel wheel;
  uint64_t wheel_due;            /* what wheel_timer is set to; 0: not running */
  struct list run_queue;         /* worker_job */
  struct list hooks;

  uv_async_t mailbox_async;
  pthread_mutex_t mailbox_lock;
  struct mail *mail_first, **mail_end;
  bool mailbox_closed;

  struct ticks_base ticks;       /* since the worker was made */
  struct arena_pool arenas;
  struct metrics *metrics;

  /* chain/: calls by ticket; upstream/: links by upstream index; stages' per-worker state */
  struct u64map calls;           /* calls with a ticket, by number */
  struct list live_calls;
  uint64_t next_call;
  struct stage_mine *stages;     /* by stage index */
  unsigned stage_count;
  struct egw_link **links;       /* by upstream index */
  unsigned link_count, next_link;
  struct pick_run run;           /* group.c */
  void **transports;             /* per-worker state of transport instances, by upstream index */
  struct push *push;
  struct head_worker *heads;     /* head/snapshot.c */
  struct egw_resolver *resolver;

  /* listen/ */
  struct listen_worker *listen;
  struct list sessions;          /* free for listen/ to use */
  uint64_t next_session;
};

/* Puts a job on the run queue (once: it is moved to the end if it is there). Worker's thread. */
void worker_run_soon(struct egw_worker *worker, struct worker_job *job);
void worker_hook_add(struct egw_worker *worker, struct worker_hook *hook);
void worker_hook_remove(struct worker_hook *hook);

/* Monotonic microseconds, read anew. Any thread. */
uint64_t clock_us(void);

/* Wheel timers of the core (egw_timer is the plugins' face of the same). */
void worker_timer_start(struct egw_worker *worker, struct wheel_timer *timer, uint64_t ms);
void worker_timer_stop(struct egw_worker *worker, struct wheel_timer *timer);

/* Main thread: makes the loop and the thread-independent parts; worker_free() after join. */
int worker_init(struct egw_worker *worker, struct gateway *gateway, unsigned index,
                unsigned count) EGW_MUST_CHECK;
void worker_free(struct egw_worker *worker);

/* Runs the loop on the calling thread until nothing keeps it alive. */
void worker_loop(struct egw_worker *worker);

/* Closes the worker's own handles, so that worker_loop() can end. Worker's thread. */
void worker_close(struct egw_worker *worker);

#endif
