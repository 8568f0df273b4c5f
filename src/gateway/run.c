/* SPDX-License-Identifier: MIT */
/* Running a generation: workers started, signals awaited, drained, stopped.
 *
 *   STARTING -> READY -- SIGTERM or SIGINT --> DRAINING -- all answered, or the time is up,
 *   or a second signal --> STOPPED
 *
 * The order of the end, which MHD and lws force: stop accepting; answer or cancel every call;
 * end the sessions; close the links; let the loops turn until the libraries are through; stop
 * the loops; unload. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "chain/call.h"
#include "gateway/gateway.h"
#include "gateway/notify.h"
#include "head/head.h"
#include "obs/log.h"
#include "push/local.h"
#include "upstream/upstream.h"

#define WORKERS_DEFAULT_MAX 8
#define DESCRIPTORS_MAX 65536u
#define DRAIN_LOOK_MS 10u          /* how often a draining worker looks whether it is idle */
#define CLOSE_LOOK_MS 2u
#define CLOSE_PATIENCE_MS 3000u    /* for libraries that do not end by themselves */

/* What the main thread knows of one worker. */
struct worker_run {
  struct egw_worker *worker;
  struct gateway_run *run;
  struct wheel_timer look;         /* draining, closing: looks again */
  uint64_t closing_since_ms;
  bool parts_gone;                 /* listen_worker_stop() is through */
};

struct gateway_run {
  struct gateway *gateway;
  struct worker_run *workers;
  uv_loop_t loop;                  /* the main thread's */
  uv_signal_t sigterm, sigint, sighup;
  uv_async_t changed;              /* a worker reports */
  uv_timer_t drain_timer;
  atomic_uint started, idle, failed;
  bool draining, stopping;
  int status;
};

static void report(struct gateway_run *run, atomic_uint *counter);

/* --- the workers' side ----------------------------------------------------------------------------- */

static void
on_closed(struct worker_run *wr)
{
  struct egw_worker *worker = wr->worker;

  links_stop(worker);
  stages_stop(worker);
  worker_close(worker);
}

/* Links have ended when their transports say so. */
static void
on_close_look(struct wheel_timer *timer)
{
  struct worker_run *wr = container_of(timer, struct worker_run, look);
  struct egw_worker *worker = wr->worker;
  uint64_t waited = uv_now(&worker->loop) - wr->closing_since_ms;

  if ((links_closed(worker) && wr->parts_gone) || waited > CLOSE_PATIENCE_MS) {
    if (waited > CLOSE_PATIENCE_MS)
      egw_log(EGW_WARN, "gateway", "worker %u: some connections did not end in time",
              worker->index);
    on_closed(wr);
    return;
  }
  worker_timer_start(worker, timer, CLOSE_LOOK_MS);
}

static void
on_listen_stopped(struct egw_worker *worker)
{
  struct gateway_run *run = worker->gateway->run;

  run->workers[worker->index].parts_gone = true;
}

static void
worker_stop(void *arg)
{
  struct worker_run *wr = arg;
  struct egw_worker *worker = wr->worker;

  if (worker->state >= WORKER_STOPPING)
    return;
  worker->state = WORKER_STOPPING;
  calls_cancel_all(worker, RPC_FAULT_SHUTDOWN);
  if (worker->listen != NULL)
    listen_worker_stop(worker, on_listen_stopped);
  else
    wr->parts_gone = true;
  head_stop(worker);
  links_close(worker);
  wr->closing_since_ms = uv_now(&worker->loop);
  wr->look.fn = on_close_look;
  worker_timer_start(worker, &wr->look, CLOSE_LOOK_MS);
}

static void
on_drain_look(struct wheel_timer *timer)
{
  struct worker_run *wr = container_of(timer, struct worker_run, look);

  if (list_empty(&wr->worker->live_calls) && listen_worker_sessions(wr->worker) == 0)
    report(wr->run, &wr->run->idle);
  else
    worker_timer_start(wr->worker, timer, DRAIN_LOOK_MS);
}

static void
worker_drain(void *arg)
{
  struct worker_run *wr = arg;

  if (wr->worker->state >= WORKER_DRAINING)
    return;
  wr->worker->state = WORKER_DRAINING;
  listen_worker_drain(wr->worker);
  wr->look.fn = on_drain_look;
  worker_timer_start(wr->worker, &wr->look, 1);
}

static int
worker_begin(struct egw_worker *worker)
{
  if (stages_start(worker) < 0 || links_open(worker) < 0 || head_start(worker) < 0)
    return -1;
  return listen_worker_start(worker, &worker->gateway->listeners);
}

static void *
worker_main(void *arg)
{
  struct worker_run *wr = arg;
  struct egw_worker *worker = wr->worker;

  uv_update_time(&worker->loop);
  if (worker_begin(worker) == 0) {
    worker->state = WORKER_RUNNING;
    report(wr->run, &wr->run->started);
  } else {
    report(wr->run, &wr->run->failed);
  }
  worker_loop(worker);
  return NULL;
}

/* --- the main thread's side -------------------------------------------------------------------------- */

/* Called by workers. */
static void
report(struct gateway_run *run, atomic_uint *counter)
{
  atomic_fetch_add(counter, 1);
  uv_async_send(&run->changed);
}

static void
post_all(struct gateway_run *run, void (*fn)(void *))
{
  unsigned i;

  for (i = 0; i < run->gateway->worker_count; i++)
    if (run->workers[i].worker->thread_started)
      (void)egw_post(run->workers[i].worker, fn, &run->workers[i]);
}

static void
stop(struct gateway_run *run)
{
  if (run->stopping)
    return;
  run->stopping = true;
  atomic_store(&run->gateway->state, GATEWAY_STOPPED);
  post_all(run, worker_stop);
  uv_stop(&run->loop);
}

static void
on_drain_over(uv_timer_t *timer)
{
  egw_log(EGW_WARN, "gateway", "the drain time is over; what is left is cut");
  stop(timer->data);
}

static void
on_signal(uv_signal_t *handle, int signum)
{
  struct gateway_run *run = handle->data;
  struct gateway *gateway = run->gateway;

  if (signum == SIGHUP) {
    egw_log(EGW_WARN, "gateway", "SIGHUP: reloading is not possible yet; restart instead");
    return;
  }
  if (run->draining) {
    egw_log(EGW_INFO, "gateway", "second signal: stopping at once");
    stop(run);
    return;
  }
  run->draining = true;
  egw_log(EGW_INFO, "gateway", "draining signal=%s", signum == SIGINT ? "SIGINT" : "SIGTERM");
  atomic_store(&gateway->state, GATEWAY_DRAINING);
  notify_stopping();
  uv_timer_start(&run->drain_timer, on_drain_over, gateway->conf->drain_timeout, 0);
  post_all(run, worker_drain);
}

static void
on_changed(uv_async_t *async)
{
  struct gateway_run *run = async->data;
  struct gateway *gateway = run->gateway;

  if (atomic_load(&run->failed) != 0) {
    run->status = 1;
    stop(run);
    return;
  }
  if (atomic_load(&run->started) == gateway->worker_count)
    atomic_store_explicit(&gateway->started, true, memory_order_release);
  if (atomic_load(&gateway->state) == GATEWAY_STARTING &&
      atomic_load(&run->started) == gateway->worker_count) {
    atomic_store(&gateway->state, GATEWAY_READY);
    egw_log(EGW_INFO, "gateway", "ready workers=%u", gateway->worker_count);
    notify_ready();
  }
  if (run->draining && atomic_load(&run->idle) == gateway->worker_count)
    stop(run);
}

static unsigned
worker_count(const struct conf *conf)
{
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

  if (conf->workers > 0)
    return (unsigned)conf->workers;
  return n < 1 ? 1 : n > WORKERS_DEFAULT_MAX ? WORKERS_DEFAULT_MAX : (unsigned)n;
}

/* As many descriptors as the system lets us have, within reason: libwebsockets makes tables of that
 * size. */
static void
raise_descriptors(void)
{
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max &&
      limit.rlim_cur < DESCRIPTORS_MAX) {
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
  }
}

static int
make_workers(struct gateway_run *run)
{
  struct gateway *gateway = run->gateway;
  unsigned i, n = worker_count(gateway->conf);

  gateway->workers = calloc(n, sizeof(*gateway->workers));
  run->workers = calloc(n, sizeof(*run->workers));
  if (gateway->workers == NULL || run->workers == NULL)
    return -1;
  for (i = 0; i < n; i++) {
    if (worker_init(&gateway->workers[i], gateway, i, n) < 0)
      return -1;
    gateway->worker_count = i + 1;
    if (head_worker_init(&gateway->workers[i]) < 0 || local_init(&gateway->workers[i]) < 0)
      return -1;
    run->workers[i] = (struct worker_run){ .worker = &gateway->workers[i], .run = run };
  }
  return 0;
}

/* Each network's head is tracked by one worker. */
static void
share_heads(struct gateway *gateway)
{
  size_t i;

  for (i = 0; i < gateway->network_count; i++)
    gateway->heads[i].owner = &gateway->workers[i % gateway->worker_count];
}

static int
start_threads(struct gateway_run *run)
{
  unsigned i;

  for (i = 0; i < run->gateway->worker_count; i++) {
    struct worker_run *wr = &run->workers[i];

    if (pthread_create(&wr->worker->thread, NULL, worker_main, wr) != 0)
      return -1;
    wr->worker->thread_started = true;
  }
  return 0;
}

static int
init_loop(struct gateway_run *run)
{
  if (uv_loop_init(&run->loop) != 0)
    return -1;
  if (uv_async_init(&run->loop, &run->changed, on_changed) != 0 ||
      uv_timer_init(&run->loop, &run->drain_timer) != 0 ||
      uv_signal_init(&run->loop, &run->sigterm) != 0 ||
      uv_signal_init(&run->loop, &run->sigint) != 0 ||
      uv_signal_init(&run->loop, &run->sighup) != 0)
    return -1;
  run->changed.data = run->drain_timer.data = run;
  run->sigterm.data = run->sigint.data = run->sighup.data = run;
  uv_signal_start(&run->sigterm, on_signal, SIGTERM);
  uv_signal_start(&run->sigint, on_signal, SIGINT);
  uv_signal_start(&run->sighup, on_signal, SIGHUP);
  return 0;
}

/* One line for each listener, with the port the kernel chose where the configuration said 0. */
static void
log_listeners(const struct listeners *listeners)
{
  size_t i;

  for (i = 0; i < listeners->n; i++) {
    const struct listener *l = &listeners->v[i];

    if (l->conf->address == NULL)
      egw_log(EGW_INFO, "listen", "listening name=%s path=%s", l->name, l->conf->path);
    else
      egw_log(EGW_INFO, "listen", "listening name=%s address=%s port=%u%s%s", l->name,
              l->conf->address, l->port, l->tls != NULL ? " tls" : "", l->admin ? " admin" : "");
  }
}

static void
close_one(uv_handle_t *handle, void *arg)
{
  (void)arg;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void
end(struct gateway_run *run)
{
  struct gateway *gateway = run->gateway;
  unsigned i;

  for (i = 0; i < gateway->worker_count; i++)
    if (gateway->workers[i].thread_started)
      pthread_join(gateway->workers[i].thread, NULL);
  listen_close(&gateway->listeners);
  for (i = 0; i < gateway->worker_count; i++) {
    links_free(&gateway->workers[i]);
    stages_free(&gateway->workers[i]);
    local_free(&gateway->workers[i]);
    head_worker_free(&gateway->workers[i]);
    worker_free(&gateway->workers[i]);
  }
  uv_walk(&run->loop, close_one, NULL);
  uv_run(&run->loop, UV_RUN_DEFAULT);
  uv_loop_close(&run->loop);
  free(run->workers);
  free(gateway->workers);
  gateway->workers = NULL;
  gateway->worker_count = 0;
}

int
gateway_run(struct gateway *gateway)
{
  struct gateway_run run = { .gateway = gateway };

  signal(SIGPIPE, SIG_IGN);
  raise_descriptors();
  gateway->run = &run;
  if (init_loop(&run) < 0 || make_workers(&run) < 0) {
    egw_log(EGW_ERROR, "gateway", "out of memory or descriptors");
    return 1;
  }
  if (listen_open(&gateway->listeners, gateway->conf, gateway->worker_count) < 0)
    run.status = 1;
  else if (share_heads(gateway), start_threads(&run) < 0) {
    egw_log(EGW_ERROR, "gateway", "a worker's thread can't be started");
    run.status = 1;
    stop(&run);
  } else {
    log_listeners(&gateway->listeners);
    uv_run(&run.loop, UV_RUN_DEFAULT);
  }
  end(&run);
  egw_log(EGW_INFO, "gateway", "stopped");
  return run.status;
}
