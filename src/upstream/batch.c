/* SPDX-License-Identifier: MIT */
/* Small exchanges that share one wire request; see batch.h. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "gateway/gateway.h"
#include "upstream/parts.h"

#define STRIKES 3u                   /* useless arrays in a row: no more of them for a while */
#define LEARNED_MS (5u * 60 * 1000)  /* how long what a node refused is believed */
#define SPARE_ELEMENTS 8u            /* room for what a node makes up */
#define LATE_MS 1000u                /* nothing came for so long: each call by itself */

static void on_flush(struct worker_job *job);
static void on_array_late(struct wheel_timer *timer);
static void on_array_done(struct egw_xchg *carrier, enum egw_outcome outcome, const char *why);

/* --- waiting for the end of the turn ------------------------------------------------- */

void
batch_open(struct egw_link *link)
{
  struct batcher *b = &link->batch;

  list_init(&b->gathering);
  list_init(&b->alone);
  list_init(&b->flush.node);
  b->flush.fn = on_flush;
  pace_init(&b->pace);
}

static void
flush_soon(struct egw_link *link)
{
  if (list_empty(&link->batch.flush.node))
    worker_run_soon(link->worker, &link->batch.flush);
}

/* The calls an array to this node may have; 1: none is sent. */
static uint32_t
most_calls(struct egw_link *link)
{
  const struct conf_upstream *conf = link->upstream->conf;
  struct batcher *b = &link->batch;
  uint32_t most = (uint32_t)conf->max_batch;

  if (b->limit != 0 && uv_now(&link->worker->loop) >= b->limit_until_ms) {
    b->limit = 0; /* it may have changed its mind */
    b->strikes = 0;
  }
  if (b->limit != 0 && b->limit < most)
    most = b->limit;
  return most == 0 ? 1 : most;
}

static bool
may_gather(const struct egw_xchg *x)
{
  uint32_t caps = x->link->upstream->transport->caps;

  return x->batching != NULL && x->idempotent && !x->fresh && !x->subscribing &&
         x->wants == NULL && (caps & EGW_T_BATCH) != 0 && (caps & EGW_T_MULTIPLEX) == 0 &&
         !x->link->closing;
}

static void
wait_here(struct egw_xchg *x)
{
  struct batcher *b = &x->link->batch;

  x->gathered = true;
  list_append(x->by_itself ? &b->alone : &b->gathering, &x->batch_node);
  if (!x->by_itself)
    b->waiting++;
  flush_soon(x->link);
}

bool
batch_gather(struct egw_xchg *x)
{
  if (!may_gather(x) || most_calls(x->link) == 1)
    return false;
  wait_here(x);
  return true;
}

static void
stop_waiting(struct egw_xchg *x)
{
  list_remove(&x->batch_node);
  x->gathered = false;
  if (!x->by_itself)
    x->link->batch.waiting--;
}

static struct egw_xchg *
first_of(struct list *list)
{
  return list_empty(list) ? NULL : container_of(list->next, struct egw_xchg, batch_node);
}

/* --- arrays -------------------------------------------------------------------------- */

static struct array *
array_new(struct egw_link *link, unsigned most)
{
  size_t room = (size_t)most + SPARE_ELEMENTS, members = most * sizeof(struct egw_xchg *);
  struct array *a = calloc(1, sizeof(*a) + members + room * sizeof(struct rpc_span));

  if (a == NULL)
    return NULL;
  a->link = link;
  a->elements.items = (struct rpc_span *)(void *)((char *)a->members + members);
  a->elements.room = room;
  return a;
}

/* Takes up to `most` that fit into one request. */
static size_t
array_fill(struct array *a, unsigned most)
{
  struct batcher *b = &a->link->batch;
  uint64_t room = a->link->upstream->conf->max_batch_bytes;
  struct egw_xchg *x;
  size_t bytes = 2;

  while (a->count < most && (x = first_of(&b->gathering)) != NULL) {
    most = x->batching->max_calls < most ? x->batching->max_calls : most;
    room = x->batching->max_bytes < room ? x->batching->max_bytes : room;
    if (a->count != 0 && (a->count >= most || bytes + x->body->len + 1 > room))
      break;
    stop_waiting(x);
    bytes += x->body->len + 1;
    a->members[a->count++] = x;
  }
  return bytes;
}

static struct egw_buf *
array_text(const struct array *a, size_t bytes)
{
  struct egw_buf *buf = egw_buf_new(bytes);
  unsigned i;

  if (buf == NULL)
    return NULL;
  for (i = 0; i < a->count; i++) {
    const struct egw_buf *body = a->members[i]->body;

    if (egw_buf_append(buf, i == 0 ? "[" : ",", 1) < 0 ||
        egw_buf_append(buf, body->data, body->len) < 0) {
      egw_buf_unref(buf);
      return NULL;
    }
  }
  if (egw_buf_append(buf, "]", 1) == 0)
    return buf;
  egw_buf_unref(buf);
  return NULL;
}

/* One call that a node never answers holds up its array, whose other calls have time-outs. */
static void
watch(struct array *a, uint64_t soonest_ms)
{
  uint64_t now = uv_now(&a->link->worker->loop);
  uint64_t half = soonest_ms > now ? (soonest_ms - now) / 2 : 0;

  a->carrier->timeout.fn = on_array_late;
  worker_timer_start(a->link->worker, &a->carrier->timeout, half < LATE_MS ? half : LATE_MS);
}

/* Makes it one wire request. false: no memory. */
static bool
array_seal(struct array *a, size_t bytes)
{
  struct egw_buf *text = array_text(a, bytes);
  uint64_t soonest_ms = UINT64_MAX;
  unsigned i;

  a->carrier = text != NULL ? xchg_new_carrier(a->link, a, text, on_array_done) : NULL;
  if (a->carrier == NULL)
    return false;
  a->carrier->in.parser.elements = &a->elements;
  a->left = a->count;
  for (i = 0; i < a->count; i++) {
    struct egw_xchg *x = a->members[i];

    x->array = a;
    x->slot = i;
    if (x->deadline_ms > a->carrier->deadline_ms)
      a->carrier->deadline_ms = x->deadline_ms;
    if (x->deadline_ms < soonest_ms)
      soonest_ms = x->deadline_ms;
  }
  watch(a, soonest_ms);
  metric_add(&a->link->metrics.batches, 1);
  metric_add(&a->link->metrics.batched, a->count);
  return true;
}

/* Sends up to `most` of those who wait, as an array if that is more than one. `compare`: the
 * time it takes is wanted. */
static void
send_some(struct egw_link *link, unsigned most, bool compare)
{
  struct array *a = most > 1 ? array_new(link, most) : NULL;
  size_t bytes = a != NULL ? array_fill(a, most) : 0;
  struct egw_xchg *x;

  if (a == NULL && (x = first_of(&link->batch.gathering)) != NULL) {
    stop_waiting(x);
    xchg_submit(x);
  }
  if (a == NULL)
    return;
  if (a->count > 1 && array_seal(a, bytes)) {
    if (compare) {
      link->batch.comparison.n = a->count;
      link->batch.comparison.array = a;
    }
    xchg_submit(a->carrier);
    return;
  }
  for (unsigned i = 0; i < a->count; i++)
    xchg_submit(a->members[i]);
  free(a);
}

/* Nobody waits for it any more. */
static void
array_give_up(struct array *a)
{
  struct comparison *c = &a->link->batch.comparison;

  if (c->array == a)
    *c = (struct comparison){ 0 };
  xchg_abort(a->carrier);
  free(a);
}

/* --- the end of the turn ------------------------------------------------------------- */

/* One call of the crowd by itself, behind an array: if the node has time for both at once it
 * is the array that takes longer. */
static void
send_yardstick(struct egw_link *link)
{
  struct comparison *c = &link->batch.comparison;
  struct egw_xchg *x = first_of(&link->batch.gathering);

  if (x == NULL || c->n == 0)
    *c = (struct comparison){ 0 }; /* there is nothing to compare with */
  else
    c->lone = x;
  if (x == NULL)
    return;
  stop_waiting(x);
  xchg_submit(x);
}

static void
flush_gathered(struct egw_link *link)
{
  struct batcher *b = &link->batch;
  unsigned most = most_calls(link), size = 1, keep;
  const struct egw_xchg *first = first_of(&b->gathering);
  bool compare = false, first_array = true;

  if (b->waiting > 1 && most > 1 && link->in_flight >= first->batching->busy) {
    size = pace_size(&b->pace, b->waiting, uv_now(&link->worker->loop), &compare);
    size = size < most ? size : most;
    size = size < first->batching->max_calls ? size : first->batching->max_calls;
  }
  compare = compare && size > 1 && b->comparison.n == 0;
  keep = compare ? 1 : 0;
  if (compare)
    b->comparison.started_us = clock_us();
  while (b->waiting > keep) {
    unsigned n = b->waiting - keep, arrays = (n + size - 1) / size;

    /* Several of about the same size rather than full ones and a rest. */
    send_some(link, (n + arrays - 1) / arrays, compare && first_array);
    first_array = false;
  }
  if (compare)
    send_yardstick(link);
}

/* What is still on the run queue may bring more calls: once, they go first. */
static void
on_flush(struct worker_job *job)
{
  struct egw_link *link = container_of(job, struct egw_link, batch.flush);
  struct batcher *b = &link->batch;
  struct egw_xchg *x;

  if (!b->deferred && !list_empty(&link->worker->run_queue)) {
    b->deferred = true;
    worker_run_soon(link->worker, job);
    return;
  }
  b->deferred = false;
  while ((x = first_of(&b->alone)) != NULL) {
    stop_waiting(x);
    xchg_submit(x);
  }
  if (b->waiting != 0)
    flush_gathered(link);
}

/* --- ends ---------------------------------------------------------------------------- */

void
batch_leave(struct egw_xchg *x)
{
  struct array *a = x->array;

  if (x->gathered)
    stop_waiting(x);
  if (a == NULL)
    return;
  x->array = NULL;
  a->members[x->slot] = NULL;
  if (--a->left == 0 && !a->settling)
    array_give_up(a);
}

static void
compared(struct egw_link *link)
{
  struct comparison *c = &link->batch.comparison;

  if (c->lone_us == 0 || c->array_us == 0)
    return;
  pace_result(&link->batch.pace, c->n, c->lone_us, c->array_us, uv_now(&link->worker->loop));
  *c = (struct comparison){ 0 };
}

static int64_t
time_of(const struct comparison *c)
{
  return (int64_t)(clock_us() - c->started_us) + 1;
}

void
batch_note_end(struct egw_xchg *x, enum egw_outcome outcome)
{
  struct comparison *c = &x->link->batch.comparison;

  if (c->lone != x)
    return;
  c->lone = NULL;
  if (outcome == EGW_OK) {
    c->lone_us = time_of(c);
    compared(x->link);
  } else {
    *c = (struct comparison){ 0 };
  }
}

static void
note_array_end(struct array *a, bool good)
{
  struct comparison *c = &a->link->batch.comparison;

  if (c->array != a)
    return;
  c->array = NULL;
  if (good) {
    c->array_us = time_of(c);
    compared(a->link);
  } else {
    *c = (struct comparison){ 0 };
  }
}

/* --- what a node refuses ------------------------------------------------------------- */

static void
learn(struct egw_link *link, uint32_t limit)
{
  struct batcher *b = &link->batch;
  uint32_t before = most_calls(link);

  if (limit >= before)
    return;
  b->limit = limit == 0 ? 1 : limit;
  b->limit_until_ms = uv_now(&link->worker->loop) + LEARNED_MS;
  if (b->limit == 1)
    egw_log(EGW_INFO, "upstream", "%s takes no arrays: calls are sent one by one worker=%u",
            link->upstream->name, link->worker->index);
  else
    egw_log(EGW_INFO, "upstream", "%s refuses arrays of more than %u calls worker=%u",
            link->upstream->name, b->limit, link->worker->index);
}

static void
strike(struct egw_link *link)
{
  if (++link->batch.strikes >= STRIKES)
    learn(link, 1);
}

/* Sends those who are left anew: halved, or one by one. */
static void
send_again(struct array *a, enum objection how)
{
  struct egw_link *link = a->link;
  unsigned i;

  metric_add(&link->metrics.batch_refusals, 1);
  if (how == OBJECTION_SMALLER)
    learn(link, a->count / 2);
  else if (how == OBJECTION_ARRAYS)
    learn(link, 1);
  else
    strike(link);
  for (i = 0; i < a->count; i++) {
    struct egw_xchg *x = a->members[i];

    if (x == NULL)
      continue;
    batch_leave(x);
    x->by_itself = how != OBJECTION_SMALLER || a->count <= 3;
    wait_here(x);
  }
}

static void
on_array_late(struct wheel_timer *timer)
{
  struct egw_xchg *carrier = container_of(timer, struct egw_xchg, timeout);
  struct array *a = carrier->carries;

  if (carrier->in.seen != a->seen) { /* it comes in, slowly */
    a->seen = carrier->in.seen;
    worker_timer_start(a->link->worker, timer, LATE_MS);
    return;
  }
  a->settling = true;
  note_array_end(a, false);
  xchg_abort(carrier);
  send_again(a, OBJECTION_UNCLEAR);
  free(a);
}

/* Tells those who are left what happened. For the link's health it is one failure. */
static void
fail_rest(struct array *a, enum egw_outcome outcome, const char *why)
{
  struct batcher *b = &a->link->batch;
  unsigned i;

  b->failing = FAIL_FIRST;
  for (i = 0; i < a->count; i++) {
    struct egw_xchg *x = a->members[i];

    if (x == NULL)
      continue;
    batch_leave(x);
    x->http_status = a->carrier->http_status;
    x->retry_after_ms = a->carrier->retry_after_ms;
    xchg_complete(x, outcome, why);
  }
  b->failing = FAIL_EACH;
}

/* No array came back. */
static void
settle_failure(struct array *a, enum egw_outcome outcome, const char *why)
{
  struct inbound *in = &a->carrier->in;
  struct egw_slice text = { 0 };
  enum objection how = OBJECTION_NONE;

  if (in->state == INBOUND_COMPLETE && in->buf != NULL)
    text = egw_buf_slice(in->buf);
  if (in->fault == RPC_FAULT_REPLY_TOO_LARGE)
    how = OBJECTION_SMALLER;
  else if (outcome == EGW_OK || (outcome == EGW_BAD_REPLY && in->state == INBOUND_BAD))
    how = objection_of(text, a->carrier->http_status);
  if (how != OBJECTION_NONE) {
    send_again(a, how);
    return;
  }
  if (outcome == EGW_MAYBE_SENT || outcome == EGW_BAD_REPLY)
    strike(a->link);
  fail_rest(a, outcome == EGW_OK ? EGW_BAD_REPLY : outcome, why);
}

static void
settle_array(struct array *a)
{
  enum objection refused;

  array_deal(a, &refused);
  if (a->left == 0) {
    a->link->batch.strikes = 0;
  } else if (refused != OBJECTION_NONE) {
    send_again(a, refused);
  } else {
    strike(a->link);
    fail_rest(a, EGW_BAD_REPLY, "missing in the reply to an array");
  }
}

static void
on_array_done(struct egw_xchg *carrier, enum egw_outcome outcome, const char *why)
{
  struct array *a = carrier->carries;
  const struct inbound *in = &carrier->in;
  bool array = outcome == EGW_OK && in->state == INBOUND_COMPLETE && in->buf != NULL &&
               in->parser.scan.top == EGW_JSON_ARRAY && a->elements.count != 0;

  a->settling = true;
  note_array_end(a, array);
  if (array)
    settle_array(a);
  else
    settle_failure(a, outcome, why);
  free(a);
}

void
batch_close(struct egw_link *link)
{
  struct batcher *b = &link->batch;
  struct egw_xchg *x;

  while ((x = first_of(&b->alone)) != NULL || (x = first_of(&b->gathering)) != NULL)
    xchg_complete(x, EGW_ABORTED, "the link is closed");
  list_remove(&b->flush.node);
}
