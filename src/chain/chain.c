/* SPDX-License-Identifier: MIT */
/* The trampoline: one loop takes every step of every call. Stages never call each other, a
 * callback never runs inside another one of the same call, and there is no recursion.
 *
 *  client            listen/         rpc/            chain/ (down)                 route/      upstream/         transport
 *  bytes  --------->  session  --->  scan -> call -> stage0 -> stage1 -> ... ->  dispatch -> group: pick link -> submit ----> node
 *                                                      |  ^ answers itself (DONE)                                   |
 *  bytes  <---------  output q <---  join batch <-   stage0 <- stage1 <- ... (up) <------- exchange done/data <-----+
 *                                                      any stage: WAIT (holds the call), AGAIN (down again from here)
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "chain/call.h"
#include "chain/parts.h"
#include "push/push.h"
#include "rpc/method.h"
#include "rpc/request.h"
#include "upstream/upstream.h"

#define SLOW_US 5000 /* a callback that takes longer is named in the log */

static void chain_run(struct egw_call *call, enum egw_verdict verdict);

/* --- callbacks --------------------------------------------------------------------------- */

void
chain_at(const struct egw_call *call, unsigned pos, struct egw_at *at)
{
  struct egw_stage *stage = call->chain->at[pos].stage;

  *at = (struct egw_at){
    .self = stage->self,
    .mine = call->worker->stages[stage->index].mine,
    .state = call->states + call->chain->at[pos].state_at,
    .stage = stage,
    .worker = call->worker,
  };
}

static void
note_slow(struct egw_call *call, const struct egw_stage *stage, uint64_t ticks)
{
  uint64_t took;

  if (ticks <= ticks_least(SLOW_US))
    return;
  took = ticks_us(&call->worker->ticks, ticks, clock_us());
  if (took <= SLOW_US)
    return;
  metric_add(&call->worker->metrics->stage_slow, 1);
  egw_log(EGW_WARN, "chain", "stage %s took %llu us in one callback", stage->name,
          (unsigned long long)took);
}

/* Runs request(), reply() or timer() of the stage at call->pos. */
static enum egw_verdict
run_stage(struct egw_call *call, enum chain_callback which)
{
  struct egw_stage *stage = call->chain->at[call->pos].stage;
  const struct egw_middleware *mw = stage->mw;
  uint64_t began = ticks_now();
  enum egw_verdict verdict = EGW_NEXT;
  struct egw_at at;

  chain_at(call, call->pos, &at);
  call->running = true;
  if (which == CHAIN_REQUEST && mw->request != NULL)
    verdict = mw->request(&at, call);
  else if (which == CHAIN_REPLY && mw->reply != NULL)
    verdict = mw->reply(&at, call, &call->reply);
  else if (which == CHAIN_TIMER && mw->timer != NULL)
    verdict = mw->timer(&at, call);
  call->running = false;
  note_slow(call, stage, ticks_now() - began);
  return verdict;
}

/* A verdict that breaks the rules: named in the log; the call ends with an internal error. */
static void
bad_verdict(struct egw_call *call, const char *what)
{
  const struct egw_stage *stage = call->chain->at[call->pos].stage;

  egw_log(EGW_ERROR, "chain", "stage %s %s", stage->name, what);
#ifdef EGW_DEVELOPER
  abort();
#endif
  call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "a stage broke the rules");
  call->phase = CALL_UP;
}

/* --- the end of a call ----------------------------------------------------------------- */

static void
run_finish(struct egw_call *call)
{
  unsigned i;

  for (i = call->chain->count; i-- > 0;) {
    const struct egw_middleware *mw = call->chain->at[i].stage->mw;
    struct egw_at at;

    if ((call->ran >> i & 1) == 0 || mw->finish == NULL)
      continue;
    chain_at(call, i, &at);
    mw->finish(&at, call);
  }
}

static void
count_call(struct egw_call *call)
{
  enum call_outcome outcome = CALL_RESULT;

  if (call->fault == RPC_FAULT_CANCELLED)
    outcome = CALL_CANCELLED;
  else if (call->fault != RPC_FAULT_NONE)
    outcome = CALL_FAULT;
  else if (call->reply.is_error && call->reply.upstream == NULL &&
           call->reply.code == rpc_fault_info(RPC_FAULT_METHOD_DENIED)->code)
    outcome = CALL_DENIED;
  else if (call->reply.is_error)
    outcome = CALL_ERROR;
  metrics_call(call->worker->metrics, call->method_index, outcome, request_client_kind(call),
               clock_us() - call->started_us);
  metric_add(&call->worker->metrics->calls_in_flight, -1);
}

/* Delivers the reply and frees what the call holds. Client calls live in their request's arena,
 * which may be gone when this returns. */
static void
call_over(struct egw_call *call)
{
  struct call_sub *sub = call->sub;
  struct request *request = call->request;

  call->phase = CALL_OVER;
  worker_timer_stop(call->worker, &call->deadline);
  call_stop_timers(call);
  call_cancel_children(call);
  story_over(call);
  run_finish(call);
  count_call(call);
  if (call->ticketed)
    u64map_take(&call->worker->calls, call->number);
  list_remove(&call->live);
  push_call_over(call);
  if (sub != NULL) {
    subcall_over(call);
    return;
  }
  request_call_over(request, call);
}

/* --- steps --------------------------------------------------------------------------------- */

/* The call is at the bottom: to push/ or to an upstream. */
static void
go_below(struct egw_call *call)
{
  call->phase = CALL_BELOW;
  call->owner = OWNER_BELOW;
  if (push_takes(call))
    return;
  dispatch_start(call);
}

/* A partial reply has passed all stages: its pieces go to the client from here on. */
static void
go_streaming(struct egw_call *call)
{
  struct out *out = call->cancelled ? NULL : request_stream(call->request, call);

  call->phase = CALL_STREAMING;
  call->owner = OWNER_BELOW;
  call->stream = out;
  if (out == NULL && !call->cancelled) {
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
    dispatch_cancel(call);
    call_over(call);
    return;
  }
  dispatch_stream(call, out);
}

/* Takes the step that `verdict` asks for. true: the loop goes on. */
static bool
take_step(struct egw_call *call, enum egw_verdict verdict)
{
  bool up = call->phase == CALL_UP;

  if (call->cancelled && up && verdict != EGW_DONE)
    verdict = EGW_NEXT;
  switch (verdict) {
  case EGW_NEXT:
    call->pos = up ? call->pos - 1 : call->pos + 1;
    return true;
  case EGW_DONE:
    if (call->reply_buf == NULL && call->fault == RPC_FAULT_NONE)
      bad_verdict(call, "said DONE without a reply");
    story_turned(call);
    call->phase = CALL_UP;
    call->pos--;
    return true;
  case EGW_WAIT:
    call->owner = OWNER_STAGE;
    return false;
  case EGW_AGAIN:
    if (call->reply.partial)
      dispatch_cancel(call);
    call_clear_reply(call);
    call->phase = CALL_DOWN;
    call->pos++;
    return true;
  }
  bad_verdict(call, "gave an unknown verdict");
  call->pos--;
  return true;
}

/* `pos` counts down through 0 to UINT_MAX, which means "above the first stage". */
static void
chain_run(struct egw_call *call, enum egw_verdict verdict)
{
  bool first = true;

  call->owner = OWNER_CORE;
  for (;;) {
    const struct egw_stage *stage;

    if (!first && !take_step(call, verdict))
      return;
    first = false;
    if (call->phase == CALL_DOWN) {
      if (call->pos >= call->chain->count) {
        go_below(call);
        return;
      }
      stage = call->chain->at[call->pos].stage;
      verdict = EGW_NEXT;
      if ((stage->mw->kinds & call->kind) == 0)
        continue;
      call->ran |= UINT64_C(1) << call->pos;
      verdict = run_stage(call, CHAIN_REQUEST);
    } else {
      if (call->pos >= call->chain->count) {
        if (call->reply.partial)
          go_streaming(call);
        else
          call_over(call);
        return;
      }
      verdict = (call->ran >> call->pos & 1) != 0 ? run_stage(call, CHAIN_REPLY) : EGW_NEXT;
    }
  }
}

/* --- the run queue --------------------------------------------------------------------- */

/* A queued step: `verdict` of the stage at pos, as if it had just returned it. */
static void
on_resumed(struct worker_job *job)
{
  struct egw_call *call = container_of(job, struct egw_call, job);

  call->owner = OWNER_CORE;
  if (take_step(call, call->verdict))
    chain_run(call, EGW_NEXT);
}

static void
on_begin(struct worker_job *job)
{
  chain_run(container_of(job, struct egw_call, job), EGW_NEXT);
}

void
chain_start(struct egw_call *call)
{
  chain_start_at(call, 0);
}

void
chain_now(struct egw_call *call)
{
  if (call->phase != CALL_DOWN || call->job.fn != on_begin || list_empty(&call->job.node))
    return;
  list_remove(&call->job.node);
  on_begin(&call->job);
}

void
chain_start_at(struct egw_call *call, unsigned pos)
{
  call->phase = CALL_DOWN;
  call->pos = pos;
  call->job.fn = on_begin;
  worker_run_soon(call->worker, &call->job);
}

void
chain_reply(struct egw_call *call)
{
  call->phase = CALL_UP;
  call->owner = OWNER_CORE;
  call->pos = call->chain->count - 1; /* UINT_MAX for an empty chain: above the first stage */
  call->job.fn = on_begin;
  worker_run_soon(call->worker, &call->job);
}

void
chain_stream_over(struct egw_call *call, enum egw_outcome outcome)
{
  if (outcome != EGW_OK) {
    call->fault = call->cancelled ? call->fault : RPC_FAULT_BAD_REPLY;
    call->reply.outcome = outcome;
  }
  call->owner = OWNER_CORE;
  call_over(call);
}

void
egw_resume(struct egw_call *call, enum egw_verdict verdict)
{
  if (call->owner != OWNER_STAGE || verdict == EGW_WAIT) {
    egw_log(EGW_ERROR, "chain", "a stage resumed a call that it does not hold");
#ifdef EGW_DEVELOPER
    abort();
#endif
    return;
  }
  call->owner = OWNER_CORE;
  call->verdict = verdict;
  call->job.fn = on_resumed;
  worker_run_soon(call->worker, &call->job);
}

void
chain_timer_fired(struct egw_call *call, unsigned pos)
{
  if (call->owner != OWNER_STAGE || call->pos != pos)
    return;
  call->owner = OWNER_CORE;
  call->verdict = run_stage(call, CHAIN_TIMER);
  if (call->verdict == EGW_WAIT) {
    call->owner = OWNER_STAGE;
    return;
  }
  call->job.fn = on_resumed;
  worker_run_soon(call->worker, &call->job);
}

/* --- cancelling -------------------------------------------------------------------------- */

static void
take_back(struct egw_call *call)
{
  const struct egw_middleware *mw;
  struct egw_at at;

  if (call->owner == OWNER_STAGE) {
    mw = call->chain->at[call->pos].stage->mw;
    chain_at(call, call->pos, &at);
    if (mw->cancel != NULL)
      mw->cancel(&at, call);
    call->pos--;
  } else if (call->phase == CALL_BELOW) {
    push_cancel(call);
    dispatch_cancel(call);
    call->pos = call->chain->count - 1;
  } else if (call->phase == CALL_NEW) {
    request_not_started(call);
    call->pos = UINT_MAX; /* no stage has seen it */
  } else if (call->phase == CALL_DOWN) {
    call->pos--; /* its next stage has not seen it */
  } else {
    if (call->job.fn == on_resumed && !list_empty(&call->job.node))
      call->pos--; /* its stage has had its say and let go of it */
    if (call->reply.partial)
      dispatch_cancel(call);
  }
}

void
call_cancel(struct egw_call *call, enum rpc_fault fault)
{
  if (call->phase == CALL_OVER || call->cancelled)
    return;
  call->cancelled = true;
  if (call->phase == CALL_STREAMING) {
    dispatch_cancel(call);
    call->fault = fault;
    if (call->stream != NULL)
      request_stream_cut(call->request, call);
    call_over(call);
    return;
  }
  take_back(call);
  call_cancel_children(call);
  call_set_fault(call, fault, fault == RPC_FAULT_TIMEOUT ? EGW_TIMED_OUT : EGW_ABORTED,
                 rpc_fault_info(fault)->label);
  call->phase = CALL_UP;
  call->owner = OWNER_CORE;
  call->job.fn = on_begin;
  worker_run_soon(call->worker, &call->job);
}

void
calls_cancel_all(struct egw_worker *worker, enum rpc_fault fault)
{
  struct list *node, *tmp;

  /* call_over() of one may end others (sub-calls), so each pass only marks. */
  list_for_each_safe(node, tmp, &worker->live_calls) {
    struct egw_call *call = container_of(node, struct egw_call, live);

    if (call->sub == NULL || call->sub->parent == NULL)
      call_cancel(call, fault);
  }
}
