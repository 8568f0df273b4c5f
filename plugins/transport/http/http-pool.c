/* SPDX-License-Identifier: MIT */
/* A link's queue and its easy handles. */
#include <stdlib.h>
#include "http.h"

#define IDLE_JOBS_MAX 16u /* easy handles kept for later; each is about 10 kB */

/* --- jobs ------------------------------------------------------------------------------ */

static struct http_job *
take_job(struct http_link *l)
{
  struct list *node = list_shift(&l->idle);

  if (node == NULL)
    return easy_new(l);
  l->idle_count--;
  return container_of(node, struct http_job, node);
}

/* The job's easy handle is not in the multi any more. */
static void
put_job(struct http_job *job)
{
  struct http_link *l = job->owner;

  list_remove(&job->node);
  list_remove(&job->later);
  if (job->state != JOB_IDLE)
    l->running_count--;
  job->state = JOB_IDLE;
  easy_clear(job);
  if (l->idle_count >= IDLE_JOBS_MAX) {
    easy_free(job);
    return;
  }
  list_insert(&l->idle, &job->node);
  l->idle_count++;
}

static void
on_stall_timer(struct egw_timer *timer)
{
  struct http_link *l = timer->arg;
  uint64_t now = egw_now_ms(l->hub->worker);
  struct list *node, *tmp;

  l->stall_armed = false;
  list_for_each_safe(node, tmp, &l->running) {
    struct http_job *job = container_of(node, struct http_job, node);
    struct egw_xchg *xchg = job->xchg;

    if (xchg == NULL || job->paused || job->heard_ms == 0
        || now - job->heard_ms < l->http->stall_timeout)
      continue;
    easy_tell(job);
    pool_abort(job);
    egw_xchg_done(xchg, EGW_TIMED_OUT, "the reply stalled");
  }
  if (list_empty(&l->running))
    return;
  l->stall_armed = true;
  egw_timer_start(l->hub->worker, timer, l->http->stall_timeout / 4);
}

static void
arm_stall_timer(struct http_link *l)
{
  if (l->stall_armed)
    return;
  l->stall_armed = true;
  l->stall_timer.fn = on_stall_timer;
  l->stall_timer.arg = l;
  egw_timer_start(l->hub->worker, &l->stall_timer, l->http->stall_timeout / 4);
}

/* Gives the exchange to libcurl. 0 or -1; the exchange stays the caller's then. */
static int
start_job(struct http_link *l, struct http_xchg *x)
{
  struct http_job *job = take_job(l);

  if (job == NULL)
    return -1;
  if (easy_prepare(job, x->xchg) != 0
      || curl_multi_add_handle(l->hub->multi, job->easy) != CURLM_OK) {
    put_job(job);
    return -1;
  }
  x->job = job;
  job->state = JOB_RUNNING;
  list_append(&l->running, &job->node);
  l->running_count++;
  arm_stall_timer(l);
  return 0;
}

/* --- the queue ------------------------------------------------------------------------- */

void
pool_pump(struct http_link *l)
{
  while (!list_empty(&l->waiting) && l->running_count < l->cap) {
    struct http_xchg *x;

    if (!names_ready(l))
      return;
    if (headers_refresh(l) != 0) {
      pool_fail_waiting(l, EGW_NOT_SENT, "memory is short");
      return;
    }
    x = container_of(list_shift(&l->waiting), struct http_xchg, node);
    if (start_job(l, x) != 0)
      egw_xchg_done(x->xchg, EGW_NOT_SENT, "memory is short");
  }
}

void
pool_fail_waiting(struct http_link *l, enum egw_outcome outcome, const char *why)
{
  struct list *node;

  while ((node = list_shift(&l->waiting)) != NULL)
    egw_xchg_done(container_of(node, struct http_xchg, node)->xchg, outcome, why);
}

/* --- ends ------------------------------------------------------------------------------ */

/* Sends the exchange anew on a connection of its own. False: it can't be. */
static bool
send_again(struct http_job *job)
{
  job->retried = job->fresh = true;
  curl_easy_setopt(job->easy, CURLOPT_FRESH_CONNECT, 1L);
  return curl_multi_add_handle(job->owner->hub->multi, job->easy) == CURLM_OK;
}

void
pool_ended(struct http_job *job, CURLcode code)
{
  struct http_link *l = job->owner;
  struct egw_xchg *xchg = job->xchg;
  enum egw_outcome outcome;
  const char *why;

  if (xchg != NULL && easy_may_retry(job, code)) {
    curl_multi_remove_handle(l->hub->multi, job->easy);
    if (send_again(job))
      return;
  }
  if (xchg != NULL) {
    easy_tell(job);
    outcome = easy_outcome(job, code, &why);
  }
  curl_multi_remove_handle(l->hub->multi, job->easy);
  put_job(job);
  if (xchg != NULL)
    egw_xchg_done(xchg, outcome, why);
  pool_pump(l);
}

void
pool_abort(struct http_job *job)
{
  struct http_link *l = job->owner;

  job->xchg = NULL;
  job->state = JOB_DOOMED;
  if (l->hub->busy) {
    hub_later(l->hub, job);
    return;
  }
  curl_multi_remove_handle(l->hub->multi, job->easy);
  put_job(job);
  if (!list_empty(&l->waiting)) {
    /* Not now: the core is in the middle of something, and may abort those too. */
    l->pump_wanted = true;
    hub_wake(l->hub);
  }
}

void
pool_catch_up(struct http_job *job)
{
  CURLcode code;

  if (job->state == JOB_DOOMED) {
    curl_multi_remove_handle(job->owner->hub->multi, job->easy);
    put_job(job);
    job->owner->pump_wanted = true;
    return;
  }
  if (!job->resume || !job->paused) {
    job->resume = false;
    return;
  }
  job->resume = job->paused = false;
  job->heard_ms = egw_now_ms(job->owner->hub->worker);
  job->owner->hub->busy = true;
  code = curl_easy_pause(job->easy, CURLPAUSE_CONT);
  job->owner->hub->busy = false;
  if (code != CURLE_OK)
    pool_ended(job, code);
}

void
pool_close(struct http_link *l)
{
  struct list *node;

  if (l->hub == NULL)
    return;
  if (l->stall_armed)
    egw_timer_stop(l->hub->worker, &l->stall_timer);
  l->stall_armed = false;
  pool_fail_waiting(l, EGW_ABORTED, "the link is closed");
  while ((node = list_shift(&l->running)) != NULL) {
    struct http_job *job = container_of(node, struct http_job, node);
    struct egw_xchg *xchg = job->xchg;

    curl_multi_remove_handle(l->hub->multi, job->easy);
    put_job(job);
    if (xchg != NULL)
      egw_xchg_done(xchg, EGW_ABORTED, "the link is closed");
  }
  while ((node = list_shift(&l->idle)) != NULL)
    easy_free(container_of(node, struct http_job, node));
  l->idle_count = 0;
}
