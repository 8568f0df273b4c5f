/* SPDX-License-Identifier: MIT */
/* The plugin test host: the life of a call. The steps are those of the gateway's chain, with
 * one stage, and every rule of middleware.h that can be checked is checked. */
#include "plugtest-parts.h"

#include <stdarg.h>
#include <ethrpc-gw/json.h>
#include "rpc/method.h"

/* --- making and freeing ------------------------------------------------------------------ */

static const char *
or_else(const char *text, const char *fallback)
{
  return text == NULL ? fallback : text;
}

struct egw_call *
plugtest_call_new(struct plugtest *host, const struct plugtest_spec *spec)
{
  const char *method = or_else(spec->method, "eth_chainId");
  struct plugtest_call *handle = plugtest_must(calloc(1, sizeof *handle));
  struct egw_call *call = &handle->call;

  call->host = host;
  call->method_len = spec->method_len > 0 ? spec->method_len : strlen(method);
  call->method = plugtest_must(calloc(1, call->method_len + 1));
  memcpy(call->method, method, call->method_len);
  call->params = call->own_params = plugtest_copy(or_else(spec->params, "[]"));
  call->id = plugtest_copy(or_else(spec->id, "1"));
  call->kind = spec->kind == 0 ? EGW_KIND_CALL : spec->kind;
  call->transport = plugtest_copy(or_else(spec->transport, "http"));
  call->peer = plugtest_copy(or_else(spec->peer, "127.0.0.1"));
  call->listener = plugtest_copy(or_else(spec->listener, "127.0.0.1:8645"));
  call->network = plugtest_copy(or_else(spec->network, "test"));
  call->local = !spec->remote;
  call->session = spec->session == 0 ? 1 : spec->session;
  call->uid = spec->uid - 1;
  call->explained = spec->explain;
  if (spec->authorization != NULL)
    call->spec_authorization = plugtest_copy(spec->authorization);
  if (spec->api_key != NULL)
    call->spec_api_key = plugtest_copy(spec->api_key);
  if (spec->path_key != NULL)
    call->spec_path_key = plugtest_copy(spec->path_key);
  if (spec->identity != NULL)
    call->identity = call->spec_identity = plugtest_copy(spec->identity);
  call->number = ++host->next_number;
  call->started_ms = host->now_ms;
  call->deadline = host->now_ms + (spec->timeout_ms == 0 ? 30000 : spec->timeout_ms);
  call->state = plugtest_must(calloc(1, plugtest_plugin(host)->call_size + 1));
  list_init(&call->queued);
  list_append(&host->calls, &call->node);
  plugtest_enqueue(call, STEP_BEGIN);
  return call;
}

static void
free_pieces(struct egw_call *call)
{
  struct piece *piece;

  while ((piece = call->pieces) != NULL) {
    call->pieces = piece->next;
    free(piece);
  }
}

void
plugtest_call_free(struct egw_call *call)
{
  list_remove(&call->node);
  list_remove(&call->queued);
  free_pieces(call);
  plugtest_clear_reply(call);
  free(call->method);
  free(call->own_params);
  free(call->id);
  free(call->transport);
  free(call->peer);
  free(call->listener);
  free(call->network);
  free(call->state);
  free(call->spec_authorization);
  free(call->spec_api_key);
  free(call->spec_path_key);
  free(call->spec_identity);
  free((char *)(uintptr_t)call->end.story);
  free((char *)(uintptr_t)call->end.identity);
  free((char *)(uintptr_t)call->end.message);
  free((char *)(uintptr_t)call->end.body);
  free((char *)(uintptr_t)call->end.upstream);
  free(container_of(call, struct plugtest_call, call));
}

/* --- replies ----------------------------------------------------------------------------- */

void
plugtest_clear_reply(struct egw_call *call)
{
  egw_buf_unref(call->reply_buf);
  call->reply_buf = NULL;
  call->reply_set = false;
  memset(&call->reply, 0, sizeof call->reply);
  call->reply.upstream_index = EGW_NO_UPSTREAM;
}

static void
set_fault(struct egw_call *call, enum egw_outcome outcome, const char *why)
{
  plugtest_clear_reply(call);
  call->reply.outcome = outcome;
  call->reply.is_error = true;
  call->reply.code = -32603;
  call->reply.why = why;
  call->reply_set = true;
}

/* The test may look at it long after. */
static void
keep_end(struct egw_call *call)
{
  struct plugtest_end *end = &call->end;
  const struct egw_reply *r = &call->reply;
  char *body = plugtest_must(calloc(1, r->body.len + 1));
  char *message = plugtest_must(calloc(1, r->message.len + 1));

  if (r->body.len > 0)
    memcpy(body, r->body.ptr, r->body.len);
  if (r->message.len > 0)
    (void)egw_json_string(r->message, message, r->message.len);
  *end = (struct plugtest_end){
    .over = true,
    .cancelled = call->cancelled && !call->timed_out,
    .timed_out = call->timed_out,
    .skipped = call->skipped,
    .outcome = r->outcome,
    .is_error = r->is_error,
    .partial = r->partial,
    .code = r->code,
    .message = message,
    .body = body,
    .body_len = r->body.len,
    .upstream = plugtest_copy(or_else(r->upstream, "")),
    .sent = end->sent,
    .http_status = call->http_status,
    .cache_status = call->cache_status,
    .story = plugtest_copy(call->story),
    .identity = plugtest_copy(or_else(call->identity, "")),
    .took_ms = call->host->now_ms - call->started_ms,
  };
}

static void
cancel_children(struct egw_call *parent)
{
  struct list *node;

  list_for_each(node, &parent->host->calls) {
    struct egw_call *call = container_of(node, struct egw_call, node);

    if (call->parent != parent || call->phase == PHASE_OVER)
      continue;
    call->done = NULL;
    plugtest_call_cancel(call, EGW_ABORTED, "the parent ended");
  }
}

/* The call's end: finish(), once, if request() ran. */
static void
deliver(struct egw_call *call)
{
  const struct egw_middleware *m = plugtest_plugin(call->host);
  bool over = call->phase == PHASE_OVER;
  struct egw_at at;

  if (over) {
    plugtest_fault(call->host, "a call ended twice");
    return;
  }
  call->phase = PHASE_OVER;
  call->timer_due = 0;
  list_remove(&call->queued);
  cancel_children(call);
  keep_end(call);
  if (call->ran && m->finish != NULL) {
    plugtest_at(call, &at);
    call->running = true;
    plugtest_enter(call->host);
    m->finish(&at, call);
    plugtest_leave(call->host);
    call->running = false;
  }
  free_pieces(call);
  if (call->done != NULL)
    plugtest_enqueue(call, STEP_DONE_SUB);
  else
    plugtest_clear_reply(call);
}

/* --- steps ------------------------------------------------------------------------------- */

void
plugtest_at(struct egw_call *call, struct egw_at *at)
{
  struct plugtest *host = call->host;

  *at = (struct egw_at){ .self = host->self, .mine = host->mine, .state = call->state,
                         .stage = &host->stage, .worker = &host->worker };
}

void
plugtest_enqueue(struct egw_call *call, enum step step)
{
  if (call->phase != PHASE_OVER)
    call->phase = step == STEP_BEGIN ? PHASE_NEW : PHASE_QUEUED;
  call->step = step;
  list_remove(&call->queued);
  list_append(&call->host->queue, &call->queued);
}

static enum egw_verdict
run_request(struct egw_call *call)
{
  struct egw_at at;
  enum egw_verdict verdict;

  plugtest_at(call, &at);
  call->ran = call->running = true;
  plugtest_enter(call->host);
  verdict = plugtest_plugin(call->host)->request(&at, call);
  plugtest_leave(call->host);
  call->running = false;
  return verdict;
}

static enum egw_verdict
run_reply(struct egw_call *call)
{
  const struct egw_middleware *m = plugtest_plugin(call->host);
  struct egw_at at;
  enum egw_verdict verdict;

  if (!call->ran || m->reply == NULL)
    return EGW_NEXT;
  plugtest_at(call, &at);
  call->running = true;
  plugtest_enter(call->host);
  verdict = m->reply(&at, call, &call->reply);
  plugtest_leave(call->host);
  call->running = false;
  return verdict;
}

void
plugtest_take(struct egw_call *call, enum egw_verdict verdict, bool up)
{
  call->timer_due = verdict == EGW_WAIT ? call->timer_due : 0;
  switch (verdict) {
  case EGW_NEXT:
    if (up)
      deliver(call);
    else
      plugtest_go_below(call);
    return;
  case EGW_DONE:
    if (!call->reply_set) {
      plugtest_fault(call->host, "EGW_DONE without a reply");
      set_fault(call, EGW_ABORTED, "no reply");
    }
    deliver(call);
    return;
  case EGW_WAIT:
    call->phase = up ? PHASE_HELD_UP : PHASE_HELD_DOWN;
    return;
  case EGW_AGAIN:
    if (!up && call->step == STEP_BEGIN)
      plugtest_fault(call->host, "EGW_AGAIN from request()");
    plugtest_go_below(call);
    return;
  }
  plugtest_fault(call->host, "unknown verdict %d", (int)verdict);
  deliver(call);
}

static void
begin(struct egw_call *call)
{
  const struct egw_middleware *m = plugtest_plugin(call->host);
  const struct egw_method_info *info = egw_method_info(call);

  call->skipped = (m->kinds & call->kind) == 0 ||
                  (m->wants != NULL && !m->wants(call->host->self, info));
  if (call->skipped || (call->is_sub && !call->from_top))
    plugtest_go_below(call);
  else
    plugtest_take(call, run_request(call), false);
}

static void
reply_step(struct egw_call *call)
{
  enum egw_verdict verdict;

  if (!call->cancelled)
    plugtest_make_reply(call);
  verdict = run_reply(call);
  if (call->cancelled && verdict != EGW_DONE)
    verdict = EGW_NEXT;
  plugtest_take(call, verdict, true);
}

static void
done_sub(struct egw_call *call)
{
  egw_sub_fn *done = call->done;

  call->done = NULL;
  if (done != NULL) {
    plugtest_enter(call->host);
    done(call->arg, &call->reply);
    plugtest_leave(call->host);
  }
  plugtest_clear_reply(call);
}

void
plugtest_step(struct egw_call *call)
{
  enum step step = call->step;

  list_remove(&call->queued);
  switch (step) {
  case STEP_NONE: break;
  case STEP_BEGIN: begin(call); break;
  case STEP_VERDICT: plugtest_take(call, call->verdict, call->up); break;
  case STEP_REPLY: reply_step(call); break;
  case STEP_DONE_SUB: done_sub(call); break;
  }
}

/* --- taking back ------------------------------------------------------------------------- */

void
plugtest_call_cancel(struct egw_call *call, enum egw_outcome outcome, const char *why)
{
  const struct egw_middleware *m = plugtest_plugin(call->host);
  bool held = call->phase == PHASE_HELD_DOWN || call->phase == PHASE_HELD_UP;
  struct egw_at at;

  if (call->phase == PHASE_OVER || call->cancelled)
    return;
  call->cancelled = true;
  call->timed_out = outcome == EGW_TIMED_OUT;
  call->pending = NULL;
  call->timer_due = 0;
  if (held && m->cancel != NULL) {
    plugtest_at(call, &at);
    plugtest_enter(call->host);
    m->cancel(&at, call);
    plugtest_leave(call->host);
  }
  set_fault(call, outcome, why);
  if (call->phase == PHASE_BELOW)
    plugtest_enqueue(call, STEP_REPLY); /* the stages above see the fault */
  else
    deliver(call);
}
