/* SPDX-License-Identifier: MIT */
/* Exchanges: one wire request each. Whoever starts one hears of its end once, by done(), unless
 * it aborts it; after done() the exchange is gone. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "gateway/gateway.h"
#include "push/push.h"
#include "upstream/parts.h"
#include "upstream/upstream.h"

static void
on_timeout(struct wheel_timer *timer)
{
  struct egw_xchg *xchg = container_of(timer, struct egw_xchg, timeout);

  xchg_finish(xchg, EGW_TIMED_OUT, "no answer in time");
}

/* The memory of an exchange: itself and the transport's state behind it. `body` is taken. */
static struct egw_xchg *
make(struct egw_link *link, uint64_t id, struct egw_buf *body)
{
  size_t at = (sizeof(struct egw_xchg) + 15) / 16 * 16;
  struct egw_xchg *xchg = calloc(1, at + link->upstream->transport->xchg_size);

  if (xchg == NULL) {
    egw_buf_unref(body);
    return NULL;
  }
  xchg->state = (char *)xchg + at;
  xchg->link = link;
  xchg->id = id;
  xchg->body = body;
  xchg->reply = &xchg->in;
  inbound_begin(&xchg->in);
  list_init(&xchg->node);
  list_init(&xchg->conn_node);
  list_init(&xchg->tell.node);
  list_init(&xchg->batch_node);
  return xchg;
}

static struct egw_xchg *
make_request(struct egw_link *link, const struct xchg_request *what)
{
  struct egw_buf *body = egw_buf_new(80 + what->method.len + what->params.len);
  uint64_t id = ++link->next_id;
  struct egw_xchg *xchg;

  if (body == NULL || rpc_request_print(body, id, what->method, what->params) < 0) {
    egw_buf_unref(body);
    return NULL;
  }
  xchg = make(link, id, body);
  if (xchg == NULL)
    return NULL;
  xchg->call = what->call;
  xchg->wants = what->wants;
  xchg->done = what->done;
  xchg->owner = what->owner;
  xchg->fresh = what->fresh;
  xchg->idempotent = what->idempotent;
  xchg->subscribing = what->subscribing;
  xchg->batching = what->batching;
  return xchg;
}

int
xchg_start(struct egw_link *link, const struct xchg_request *what, struct egw_xchg **slot)
{
  struct egw_xchg *xchg = make_request(link, what);

  if (xchg == NULL)
    return -1;
  *slot = xchg;
  list_append(&link->xchgs, &xchg->node);
  link->in_flight++;
  metric_add(&link->metrics.in_flight, 1);
  metric_add(&link->metrics.bytes_out, (int64_t)xchg->body->len);
  xchg->started_us = clock_us();
  xchg->deadline_ms = uv_now(&link->worker->loop) + what->timeout_ms;
  xchg->timeout.fn = on_timeout;
  worker_timer_start(link->worker, &xchg->timeout, what->timeout_ms);
  if (!batch_gather(xchg))
    xchg_submit(xchg);
  return 0;
}

void
xchg_submit(struct egw_xchg *xchg)
{
  xchg->link->upstream->transport->submit(xchg->link, xchg);
}

struct egw_xchg *
xchg_new_carrier(struct egw_link *link, struct array *array, struct egw_buf *body,
                 void (*done)(struct egw_xchg *xchg, enum egw_outcome outcome,
                              const char *why))
{
  struct egw_xchg *xchg = make(link, ++link->next_id, body);

  if (xchg == NULL)
    return NULL;
  xchg->carries = array;
  xchg->done = done;
  xchg->idempotent = true;
  xchg->started_us = clock_us();
  list_append(&link->xchgs, &xchg->node);
  return xchg;
}

/* Takes the exchange off everything that knows it. */
static void
detach(struct egw_xchg *xchg)
{
  struct egw_link *link = xchg->link;

  worker_timer_stop(link->worker, &xchg->timeout);
  list_remove(&xchg->node);
  list_remove(&xchg->tell.node);
  conn_forget(xchg);
  if (xchg->carries != NULL)
    return;
  batch_leave(xchg);
  link->in_flight--;
  metric_add(&link->metrics.in_flight, -1);
}

/* The transport forgets it, if it knows it. */
static void
withdraw(struct egw_xchg *xchg)
{
  if (xchg->array == NULL && !xchg->gathered)
    xchg->link->upstream->transport->abort(xchg->link, xchg);
}

static void
count_end(const struct egw_xchg *xchg, enum egw_outcome outcome)
{
  struct link_metrics *m = &xchg->link->metrics;

  if (xchg->carries != NULL)
    return;
  metric_add(&m->outcomes[outcome], 1);
  if (outcome != EGW_OK)
    return;
  metric_add(&m->latency_sum_us, (int64_t)(clock_us() - xchg->started_us));
  metric_add(&m->latency_count, 1);
}

static void
dispose(struct egw_xchg *xchg)
{
  if (xchg->subscribing && xchg->conn != NULL)
    conn_subscribing_over(xchg->conn);
  inbound_end(&xchg->in, xchg->link->worker->gateway);
  egw_buf_unref(xchg->body);
  free(xchg);
}

void
xchg_complete(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  if (xchg->finished)
    return;
  xchg->finished = true;
  batch_note_end(xchg, outcome);
  detach(xchg);
  count_end(xchg, outcome);
  xchg->done(xchg, outcome, why);
  dispose(xchg);
}

void
xchg_finish(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  if (xchg->finished)
    return;
  withdraw(xchg);
  xchg_complete(xchg, outcome, why);
}

void
xchg_abort(struct egw_xchg *xchg)
{
  if (xchg->finished || push_orphaned(xchg))
    return;
  xchg->finished = true;
  batch_note_end(xchg, EGW_ABORTED);
  withdraw(xchg);
  detach(xchg);
  count_end(xchg, EGW_ABORTED);
  dispose(xchg);
}

/* --- the transport's side ---------------------------------------------------------------- */

void *
egw_xchg_state(const struct egw_xchg *xchg)
{
  return xchg->state;
}

struct egw_buf *
egw_xchg_body(const struct egw_xchg *xchg)
{
  return xchg->body;
}

uint32_t
egw_xchg_time_left(const struct egw_xchg *xchg)
{
  uint64_t now = uv_now(&xchg->link->worker->loop);

  if (xchg->deadline_ms <= now)
    return 1;
  return xchg->deadline_ms - now > UINT32_MAX ? UINT32_MAX : (uint32_t)(xchg->deadline_ms - now);
}

bool
egw_xchg_fresh(const struct egw_xchg *xchg)
{
  return xchg->fresh;
}

bool
egw_xchg_idempotent(const struct egw_xchg *xchg)
{
  return xchg->idempotent;
}

struct egw_conn *
egw_xchg_wants(const struct egw_xchg *xchg)
{
  return xchg->wants;
}

void
egw_xchg_http(struct egw_xchg *xchg, int status, uint32_t retry_after_ms)
{
  xchg->http_status = status;
  xchg->retry_after_ms = retry_after_ms;
}

void
egw_xchg_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  xchg_complete(xchg, outcome, why);
}

/* What may follow a complete value in a body. */
static bool
only_space(const char *bytes, size_t len)
{
  size_t i;

  for (i = 0; i < len; i++)
    if (bytes[i] != ' ' && bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != '\t')
      return false;
  return true;
}

/* While a reply is passed on, the time-out is one of progress. */
static void
note_progress(struct egw_xchg *xchg)
{
  uint64_t ms = xchg->call != NULL ? xchg->call->network->conf->timeout : 30000;

  worker_timer_start(xchg->link->worker, &xchg->timeout, ms);
}

int
xchg_after_feed(struct egw_xchg *xchg)
{
  switch (xchg->reply->state) {
  case INBOUND_HELD:
    worker_timer_stop(xchg->link->worker, &xchg->timeout);
    xchg->paused = true;
    dispatch_head(xchg);
    return 1;
  case INBOUND_STREAM:
    if (xchg->out != NULL && xchg->out->bytes > STREAM_HIGH) {
      worker_timer_stop(xchg->link->worker, &xchg->timeout);
      xchg->paused = true;
      return 1;
    }
    note_progress(xchg);
    return 0;
  default:
    return 0;
  }
}

int
egw_xchg_data(struct egw_xchg *xchg, const char *bytes, size_t len)
{
  struct inbound *in = &xchg->in;
  size_t used;

  metric_add(&xchg->link->metrics.bytes_in, (int64_t)len);
  while (len != 0) {
    int paused;

    if (in->state == INBOUND_COMPLETE) {
      if (only_space(bytes, len))
        return 0;
      in->state = INBOUND_BAD;
      in->fault = RPC_FAULT_BAD_REPLY;
      in->why = "bytes after the reply";
      return -1;
    }
    inbound_feed(in, xchg->link, xchg, bytes, len, &used);
    bytes += used;
    len -= used;
    if (in->state == INBOUND_BAD || in->fault != RPC_FAULT_NONE) {
      in->state = INBOUND_BAD;
      return -1;
    }
    paused = xchg_after_feed(xchg);
    if (paused != 0)
      return paused; /* the value goes on, so everything was used */
  }
  return 0;
}

void
xchg_more(struct egw_xchg *xchg)
{
  struct egw_link *link = xchg->link;
  struct egw_conn *conn = xchg->conn;

  if (!xchg->paused)
    return;
  xchg->paused = false;
  note_progress(xchg);
  if (conn != NULL && conn->current == xchg) {
    conn->paused = false;
    link->upstream->transport->more(link, NULL, conn);
  } else {
    link->upstream->transport->more(link, xchg, NULL);
  }
}
