/* SPDX-License-Identifier: MIT */
/* A call at the bottom of its chain: attempts at upstreams until one gives a valid reply.
 *
 * What may be tried again: whatever was NOT_SENT; anything else only for methods that are
 * idempotent. First on an upstream that was not tried; with none left, once more on the last
 * one, on a fresh connection. The next attempt always starts from the run queue, since the end
 * of an exchange is reported from within a transport. */
#include <string.h>
#include "base/buf.h"
#include "obs/log.h"
#include "push/push.h"
#include "rpc/request.h"
#include "upstream/parts.h"

#define WAITED_MS 300u  /* NOT_SENT after so long: asking the same upstream again at once is no use */
#define FALLBACK_MS 2000u  /* for a second opinion, while there is an answer already */
#define HEAVY_COST 50u /* methods from here on get all the time there is for one attempt */

static void on_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why);

static bool
idempotent(const struct egw_call *call)
{
  return call->info != NULL && call->info->idempotent;
}

/* --- attempts -------------------------------------------------------------------------------- */

static uint32_t
attempt_time(const struct egw_call *call)
{
  uint64_t now = uv_now(&call->worker->loop);
  uint64_t left = call->deadline_ms > now ? call->deadline_ms - now : 1;
  uint64_t one = call->dispatch.last->upstream->conf->timeout;

  if (one == 0)
    one = call->network->conf->attempt_timeout;
  /* Without a time given, half of what is left goes to this one while others are untried. */
  if (one == 0 && group_has_other(call))
    one = left / 2;
  /* A few ms more than the call has: the call's own deadline speaks first. */
  left += 20;
  if (one != 0 && one < left && idempotent(call) && call->info->cost < HEAVY_COST)
    left = one;
  if (call->dispatch.fallback) /* before the call's own deadline */
    left = left / 2 < FALLBACK_MS ? left / 2 : FALLBACK_MS;
  return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static void
attempt(struct egw_call *call, struct egw_link *link)
{
  struct dispatch *d = &call->dispatch;
  struct xchg_request what;

  d->tried |= UINT64_C(1) << link->upstream->position;
  d->last = link;
  d->began_ms = uv_now(&call->worker->loop);
  d->attempts++;
  egw_explain(call, "asked %s%s", link->upstream->name, d->fresh ? " on a fresh connection" : "");
  what = (struct xchg_request){
    .method = call->method,
    .params = call->params,
    .call = call,
    .done = on_done,
    .timeout_ms = attempt_time(call),
    .fresh = d->fresh,
    .idempotent = idempotent(call),
    .subscribing = push_subscribes(call),
    .batching = d->attempts == 1 ? call->batching : NULL,
  };
  if (xchg_start(link, &what, &d->xchg) < 0) {
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_NOT_SENT, "out of memory");
    chain_reply(call);
  }
}

static void
on_retry(struct worker_job *job)
{
  struct egw_call *call = container_of(job, struct egw_call, job);
  struct dispatch *d = &call->dispatch;
  struct egw_link *link = group_pick(call);

  attempt(call, link != NULL ? link : d->last);
}

uint32_t
call_caps(const struct egw_call *call)
{
  return push_subscribes(call) ? EGW_T_PUSH : 0;
}

void
dispatch_start(struct egw_call *call)
{
  struct egw_link *link;

  memset(&call->dispatch, 0, sizeof(call->dispatch));
  call->dispatch.fresh = call->route.fresh;
  want_of(call);
  link = group_pick(call);
  if (link == NULL) {
    call_set_fault(call, call_caps(call) != 0 ? RPC_FAULT_NO_PUSH : RPC_FAULT_NO_UPSTREAM,
                   EGW_NOT_SENT, "no upstream");
    chain_reply(call);
    return;
  }
  attempt(call, link);
}

void
dispatch_cancel(struct egw_call *call)
{
  struct egw_xchg *xchg = call->dispatch.xchg;

  call->dispatch.xchg = NULL;
  if (xchg != NULL && uv_now(&call->worker->loop) >= call->deadline_ms &&
      call->phase == CALL_BELOW)
    link_note_failure(xchg->link, EGW_TIMED_OUT, "no answer in time");
  if (call->job.node.next != NULL)
    list_remove(&call->job.node);
  if (xchg != NULL)
    xchg_abort(xchg);
}

/* --- failures ------------------------------------------------------------------------------- */

static enum rpc_fault
fault_of(const struct egw_call *call, enum egw_outcome outcome)
{
  switch (outcome) {
  case EGW_NOT_SENT:
    return RPC_FAULT_NO_UPSTREAM;
  case EGW_MAYBE_SENT:
    return idempotent(call) ? RPC_FAULT_NO_UPSTREAM : RPC_FAULT_UNKNOWN_OUTCOME;
  case EGW_TIMED_OUT:
    return RPC_FAULT_TIMEOUT;
  case EGW_BAD_REPLY:
  case EGW_OK:
  case EGW_ABORTED:
    break;
  }
  return RPC_FAULT_BAD_REPLY;
}

/* Whether the call may be sent again after this outcome, and where is there a point in it. */
static bool
may_retry(struct egw_call *call, enum egw_outcome outcome, enum rpc_fault fault)
{
  struct dispatch *d = &call->dispatch;

  if (call->cancelled || call->route.once || (outcome != EGW_NOT_SENT && !idempotent(call)))
    return false;
  if (fault == RPC_FAULT_REPLY_TOO_LARGE || fault == RPC_FAULT_OVERLOADED)
    return false;
  if (group_has_other(call))
    return true;
  /* A transport that keeps connections has waited for one already. */
  if (outcome == EGW_NOT_SENT && uv_now(&call->worker->loop) - d->began_ms > WAITED_MS)
    return false;
  return outcome != EGW_TIMED_OUT && !d->fresh;
}

static void
failed(struct egw_call *call, enum egw_outcome outcome, enum rpc_fault fault, const char *why,
       int http_status, uint32_t retry_after_ms)
{
  struct dispatch *d = &call->dispatch;

  if (http_status == 429 || http_status == 503)
    link_note_busy(d->last, retry_after_ms);
  else
    link_note_failure(d->last, outcome, why);
  egw_log(EGW_DEBUG, "upstream", "%s: %s", d->last->upstream->name, why != NULL ? why : "failed");
  egw_explain(call, "%s failed: %s", d->last->upstream->name, why != NULL ? why : "failed");
  if (may_retry(call, outcome, fault)) {
    /* A connection that broke may have siblings that are dead too. */
    d->fresh = !group_has_other(call);
    call->job.fn = on_retry;
    worker_run_soon(call->worker, &call->job);
    return;
  }
  if (d->fallback) { /* what an earlier one said is better than nothing */
    chain_reply(call);
    return;
  }
  call_set_fault(call, fault != RPC_FAULT_NONE ? fault : fault_of(call, outcome), outcome, why);
  call->reply.upstream = d->last->upstream->name;
  call->reply.upstream_index = d->last->upstream->position;
  call->reply.http_status = http_status;
  call->reply.retry_after_ms = retry_after_ms;
  chain_reply(call);
}

/* --- replies ---------------------------------------------------------------------------------- */

/* An error object in the form every client accepts, without configured secrets. */
static struct egw_buf *
rebuild_error(const struct rpc_reply *reply)
{
  struct egw_buf *buf = egw_buf_new(reply->body.len + 128);
  char text[512] = "upstream error";
  long n = reply->message.ptr != NULL ? egw_json_string(reply->message, text, sizeof(text) - 1) : -1;

  if (buf == NULL)
    return NULL;
  if (n >= 0)
    text[n] = '\0';
  log_scrub(text);
  if (egw_buf_printf(buf, "{\"code\":%lld,\"message\":", (long long)reply->code) < 0 ||
      egw_json_quote(buf, (struct egw_slice){ text, strlen(text) }) < 0 ||
      (reply->data.ptr != NULL && !log_has_secret(reply->data) &&
       (egw_buf_append(buf, ",\"data\":", 8) < 0 ||
        egw_buf_append(buf, reply->data.ptr, reply->data.len) < 0)) ||
      egw_buf_append(buf, "}", 1) < 0) {
    egw_buf_unref(buf);
    return NULL;
  }
  return buf;
}

static void
take_error(struct egw_call *call, struct egw_buf *buf, const struct rpc_reply *reply)
{
  struct egw_buf *own;
  struct egw_slice body;

  if (!reply->repair && !log_has_secret(reply->body)) {
    call_set_error(call, egw_buf_ref(buf), reply->body, reply->code, reply->message, reply->data);
    return;
  }
  own = rebuild_error(reply);
  if (own == NULL) {
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_BAD_REPLY, "out of memory");
    return;
  }
  body = egw_buf_slice(own);
  call_set_error(call, own, body, reply->code, egw_json_member(body, "message"),
                 egw_json_member(body, "data"));
}

/* Finds what the complete message says. false: it is of no use, for the reason in *why. */
static bool
judge(struct egw_xchg *xchg, struct rpc_reply *reply, const char **why)
{
  struct inbound *in = xchg->reply;

  if (in->state != INBOUND_COMPLETE) {
    *why = in->why != NULL ? in->why : "the reply ended early";
    return false;
  }
  inbound_judge(in, reply);
  if (reply->kind == RPC_REPLY_RESULT || (reply->kind == RPC_REPLY_ERROR && reply->has_id)) {
    *why = "a reply to something else";
    return reply->has_id && reply->id == xchg->id;
  }
  if (xchg->conn == NULL && in->buf != NULL &&
      rpc_reply_loose_error(egw_buf_slice(in->buf), reply))
    return true;
  *why = reply->why != NULL ? reply->why : "not a reply";
  return false;
}

/* The reply may be that of a node that lags: another one is asked, if there is one. */
static bool
ask_elsewhere(struct egw_call *call)
{
  if (call->cancelled || call->route.once || !idempotent(call) || !group_has_other(call))
    return false;
  egw_explain(call, "%s lags, another one is asked", call->dispatch.last->upstream->name);
  call->dispatch.fallback = true;
  call->dispatch.fresh = false;
  call->job.fn = on_retry;
  worker_run_soon(call->worker, &call->job);
  return true;
}

static void
take_reply(struct egw_call *call, struct egw_xchg *xchg, const struct rpc_reply *reply)
{
  struct egw_link *link = xchg->link;
  bool best;

  link_note_ok(link);
  if (reply->kind == RPC_REPLY_ERROR) {
    metric_add(&link->metrics.errors, 1);
    take_error(call, xchg->reply->buf, reply);
  } else if (!push_subscribes(call) || !push_subscribed(call, xchg, reply)) {
    call_set_result(call, egw_buf_ref(xchg->reply->buf), reply->body);
  }
  egw_explain(call, "%s answered", link->upstream->name);
  best = heed_reply(call, link->upstream);
  call->reply.upstream = link->upstream->name;
  call->reply.upstream_index = link->upstream->position;
  call->reply.http_status = xchg->http_status;
  call->reply.retry_after_ms = xchg->retry_after_ms;
  if (!best && ask_elsewhere(call))
    return;
  chain_reply(call);
}

/* --- long replies -------------------------------------------------------------------------- */

void
dispatch_head(struct egw_xchg *xchg)
{
  struct egw_call *call = xchg->call;
  struct inbound *in = xchg->reply;

  call_set_result(call, egw_buf_ref(in->buf), buf_from(in->buf, (size_t)in->parser.result_begin));
  call->reply.partial = true;
  call->reply.upstream = xchg->link->upstream->name;
  call->reply.upstream_index = xchg->link->upstream->position;
  call->reply.http_status = xchg->http_status;
  chain_reply(call);
}

static void
on_drained(struct out *out, void *arg)
{
  struct egw_call *call = arg;

  if (call->dispatch.xchg != NULL && out->bytes <= STREAM_LOW)
    xchg_more(call->dispatch.xchg);
}

void
dispatch_stream(struct egw_call *call, struct out *out)
{
  struct egw_xchg *xchg = call->dispatch.xchg;

  worker_timer_stop(call->worker, &call->deadline); /* from here on progress is what counts */
  if (xchg == NULL) { /* it ended while the head was with the stages */
    chain_stream_over(call, EGW_BAD_REPLY);
    return;
  }
  egw_buf_unref(call->reply_buf);
  call->reply_buf = NULL;
  call->reply.buf = NULL;
  call->reply.body = (struct egw_slice){ 0 };
  xchg->out = out;
  out->drained = on_drained;
  out->arg = call;
  inbound_stream(xchg->reply, xchg);
  if (out->bytes <= STREAM_HIGH)
    xchg_more(xchg);
}

static void
on_stream_done(struct worker_job *job)
{
  struct egw_call *call = container_of(job, struct egw_call, job);

  chain_stream_over(call, call->dispatch.stream_outcome);
}

/* The exchange behind a partial reply has ended: if the head is still with the stages,
 * dispatch_stream() will find it gone. */
static void
stream_done(struct egw_call *call, struct egw_xchg *xchg, enum egw_outcome outcome,
            const char *why)
{
  struct rpc_reply reply;
  bool good = outcome == EGW_OK && xchg->out != NULL && judge(xchg, &reply, &why) &&
              reply.kind == RPC_REPLY_RESULT;

  if (good) {
    link_note_ok(xchg->link);
  } else {
    link_note_failure(xchg->link, outcome == EGW_OK ? EGW_BAD_REPLY : outcome, why);
    egw_log(EGW_WARN, "upstream", "%s: a long reply broke: %s", xchg->link->upstream->name,
            why != NULL ? why : "failed");
  }
  if (call->phase != CALL_STREAMING)
    return;
  call->dispatch.stream_outcome = good ? EGW_OK : EGW_BAD_REPLY;
  call->job.fn = on_stream_done;
  worker_run_soon(call->worker, &call->job);
}

/* A JSON-RPC error with status 429 or 503 is an answer only when nobody else can give one. */
static bool
is_busy(struct egw_call *call, const struct egw_xchg *xchg, const struct rpc_reply *reply,
        const char **why)
{
  if (reply->kind != RPC_REPLY_ERROR || (xchg->http_status != 429 && xchg->http_status != 503))
    return false;
  link_note_busy(xchg->link, xchg->retry_after_ms);
  *why = "busy";
  return idempotent(call) && !call->route.once && group_has_other(call);
}

static void
on_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct egw_call *call = xchg->call;
  enum rpc_fault fault = RPC_FAULT_NONE;
  struct rpc_reply reply;

  call->dispatch.xchg = NULL;
  if (call->reply.partial || call->phase == CALL_STREAMING) {
    stream_done(call, xchg, outcome, why);
    return;
  }
  if (outcome == EGW_OK && judge(xchg, &reply, &why) && !is_busy(call, xchg, &reply, &why)) {
    take_reply(call, xchg, &reply);
    return;
  }
  if (xchg->reply->fault == RPC_FAULT_REPLY_TOO_LARGE || xchg->reply->fault == RPC_FAULT_OVERLOADED)
    fault = xchg->reply->fault;
  failed(call, outcome == EGW_OK ? EGW_BAD_REPLY : outcome, fault, why, xchg->http_status,
         xchg->retry_after_ms);
}
