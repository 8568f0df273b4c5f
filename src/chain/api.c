/* SPDX-License-Identifier: MIT */
/* What middleware may ask and do: the functions of ethrpc-gw/middleware.h on one call. */
#include <string.h>
#include "chain/parts.h"
#include <ethrpc-gw/json.h>
#include "rpc/request.h"

struct egw_slice
egw_method(const struct egw_call *call)
{
  return call->method;
}

struct egw_slice
egw_params(const struct egw_call *call)
{
  return call->params;
}

struct egw_slice
egw_client_id(const struct egw_call *call)
{
  return call->id;
}

const struct egw_method_info *
egw_method_info(const struct egw_call *call)
{
  return call->info;
}

uint32_t
egw_kind(const struct egw_call *call)
{
  return call->kind;
}

const char *
egw_network(const struct egw_call *call)
{
  return call->network->name;
}

uint64_t
egw_deadline_ms(const struct egw_call *call)
{
  return call->deadline_ms;
}

uint64_t
egw_started_us(const struct egw_call *call)
{
  return call->started_us;
}

uint64_t
egw_call_number(const struct egw_call *call)
{
  return call->number;
}

void
egw_client(const struct egw_call *call, struct egw_client *out)
{
  request_client(call, out);
}

struct egw_slice
egw_header(const struct egw_call *call, const char *name)
{
  return request_header(call, name);
}

int
egw_set_identity(struct egw_call *call, const char *name)
{
  const char *copy = arena_copy(call->arena, (struct egw_slice){ name, strlen(name) + 1 });

  if (copy == NULL)
    return -1;
  call->identity = copy;
  return 0;
}

int
egw_set_params(struct egw_call *call, struct egw_slice params)
{
  const char *copy = arena_copy(call->arena, params);

  if (copy == NULL)
    return -1;
  call->params = (struct egw_slice){ copy, params.len };
  return 0;
}

void *
egw_alloc(struct egw_call *call, size_t size)
{
  return arena_alloc(call->arena, size);
}

enum egw_verdict
egw_answer(struct egw_call *call, struct egw_buf *result)
{
  call_set_result(call, result, egw_buf_slice(result));
  return EGW_DONE;
}

enum egw_verdict
egw_refuse(struct egw_call *call, int code, const char *message)
{
  struct egw_buf *buf = egw_buf_new(64 + strlen(message));
  struct egw_slice text = { message, strlen(message) };

  if (buf == NULL || rpc_error_print(buf, code, text) < 0) {
    egw_buf_unref(buf);
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
    return EGW_DONE;
  }
  call_set_error(call, buf, egw_buf_slice(buf), code, (struct egw_slice){ 0 },
                 (struct egw_slice){ 0 });
  return EGW_DONE;
}

static int64_t
error_code(struct egw_slice error)
{
  struct egw_slice text = egw_json_member(error, "code");
  bool negative = text.len > 1 && text.ptr[0] == '-';
  uint64_t n;

  if (negative) {
    text.ptr++;
    text.len--;
  }
  if (egw_json_u64(text, &n) < 0 || n > INT64_MAX)
    return 0;
  return negative ? -(int64_t)n : (int64_t)n;
}

enum egw_verdict
egw_answer_part(struct egw_call *call, struct egw_buf *buf, struct egw_slice part, bool is_error)
{
  if (is_error)
    call_set_error(call, buf, part, error_code(part), egw_json_member(part, "message"),
                   egw_json_member(part, "data"));
  else
    call_set_result(call, buf, part);
  return EGW_DONE;
}

enum egw_verdict
egw_answer_error(struct egw_call *call, struct egw_buf *error)
{
  return egw_answer_part(call, error, egw_buf_slice(error), true);
}

uint64_t
egw_ticket(const struct egw_call *call)
{
  /* The ticket is made at the first asking; the caller sees a const call, the core owns it. */
  struct egw_call *mine = u64map_get(&call->worker->calls, call->number);

  if (mine == NULL) {
    mine = (struct egw_call *)(uintptr_t)call;
    if (u64map_put(&mine->worker->calls, mine->number, mine) < 0)
      return 0;
    mine->ticketed = true;
  }
  return call->number;
}

struct egw_call *
egw_find(struct egw_worker *worker, uint64_t ticket)
{
  return ticket == 0 ? NULL : u64map_get(&worker->calls, ticket);
}

void
egw_count(const struct egw_at *at, unsigned id, int64_t n)
{
  const struct stage_mine *sm = &at->worker->stages[at->stage->index];

  if (id < at->stage->plugin->metric_count)
    metric_add(&sm->metrics[id], n);
}
