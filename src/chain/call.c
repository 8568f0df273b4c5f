/* SPDX-License-Identifier: MIT */
/* Calls: making them and setting their replies. */
#include "chain/call.h"

#include <string.h>
#include "chain/parts.h"
#include "rpc/method.h"

static void
on_deadline(struct wheel_timer *timer)
{
  call_cancel(container_of(timer, struct egw_call, deadline), RPC_FAULT_TIMEOUT);
}

static uint64_t
next_number(struct egw_worker *worker)
{
  return (uint64_t)worker->index << 48 | ++worker->next_call;
}

struct egw_call *
call_new(struct egw_worker *worker, struct network *network, struct arena *arena,
         struct egw_slice method, struct egw_slice params, uint32_t kind)
{
  const struct egw_method_info *info = method_find(method);
  unsigned index = info != NULL ? method_index(info) : method_count();
  const struct chain *chain = network->chains[index];
  struct egw_call *call = arena_alloc(arena, sizeof(*call));

  if (call == NULL)
    return NULL;
  call->states = arena_alloc(arena, chain->state_size == 0 ? 1 : chain->state_size);
  if (call->states == NULL)
    return NULL;
  call->worker = worker;
  call->network = network;
  call->chain = chain;
  call->arena = arena;
  call->method = method;
  call->params = params;
  call->info = info;
  call->method_index = index;
  call->kind = kind;
  call->number = next_number(worker);
  call->started_us = clock_us();
  call->deadline_ms = uv_now(&worker->loop) + network->conf->timeout;
  call->deadline.fn = on_deadline;
  list_init(&call->children);
  list_init(&call->waiting);
  list_append(&worker->live_calls, &call->live);
  worker_timer_start(worker, &call->deadline, network->conf->timeout);
  metric_add(&worker->metrics->calls_in_flight, 1);
  return call;
}

/* --- replies ---------------------------------------------------------------------------- */

void
call_clear_reply(struct egw_call *call)
{
  egw_buf_unref(call->reply_buf);
  call->reply_buf = NULL;
  call->fault = RPC_FAULT_NONE;
  memset(&call->reply, 0, sizeof(call->reply));
  call->reply.upstream_index = EGW_NO_UPSTREAM;
}

void
call_set_result(struct egw_call *call, struct egw_buf *buf, struct egw_slice result)
{
  call_clear_reply(call);
  call->reply_buf = buf;
  call->reply.buf = buf;
  call->reply.body = result;
  call->reply.outcome = EGW_OK;
}

void
call_set_error(struct egw_call *call, struct egw_buf *buf, struct egw_slice error, int64_t code,
               struct egw_slice message, struct egw_slice data)
{
  call_set_result(call, buf, error);
  call->reply.is_error = true;
  call->reply.code = code;
  call->reply.message = message;
  call->reply.data = data;
}

void
call_set_fault(struct egw_call *call, enum rpc_fault fault, enum egw_outcome outcome,
               const char *why)
{
  call_clear_reply(call);
  call->fault = fault;
  call->reply.outcome = outcome;
  call->reply.is_error = true;
  call->reply.code = rpc_fault_info(fault)->code;
  call->reply.why = why;
}

/* --- timers of stages --------------------------------------------------------------------- */

static void
on_stage_timer(struct wheel_timer *timer)
{
  struct call_timer *ct = container_of(timer, struct call_timer, timer);

  chain_timer_fired(ct->call, ct->pos);
}

static unsigned
stage_position(const struct egw_call *call, const struct egw_stage *stage)
{
  unsigned i;

  for (i = 0; i < call->chain->count; i++)
    if (call->chain->at[i].stage == stage)
      return i;
  return call->chain->count;
}

void
egw_call_timer(const struct egw_at *at, struct egw_call *call, uint64_t ms)
{
  unsigned i, pos = stage_position(call, at->stage);

  if (pos == call->chain->count)
    return;
  if (call->timers == NULL) {
    if (ms == 0)
      return;
    call->timers = arena_alloc(call->arena, call->chain->count * sizeof(*call->timers));
    if (call->timers == NULL) {
      egw_log(EGW_ERROR, "chain", "out of memory: a timer of stage %s is lost", at->stage->name);
      return;
    }
    for (i = 0; i < call->chain->count; i++)
      call->timers[i] = (struct call_timer){ .call = call, .pos = i, .timer.fn = on_stage_timer };
  }
  if (ms == 0)
    worker_timer_stop(call->worker, &call->timers[pos].timer);
  else
    worker_timer_start(call->worker, &call->timers[pos].timer, ms);
}

void
call_stop_timers(struct egw_call *call)
{
  unsigned i;

  if (call->timers == NULL)
    return;
  for (i = 0; i < call->chain->count; i++)
    worker_timer_stop(call->worker, &call->timers[i].timer);
}
