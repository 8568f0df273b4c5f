/* SPDX-License-Identifier: MIT */
/* Sub-calls: calls that a stage starts below itself, or that a worker starts by itself. They have
 * an arena of their own and end with done(), once, unless their parent ended first. */
#include <stdlib.h>
#include <string.h>
#include "chain/parts.h"

void
subcall_over(struct egw_call *call)
{
  struct call_sub *sub = call->sub;
  struct arena arena = call->own_arena;
  struct egw_buf *buf = call->reply_buf;

  list_remove(&sub->sibling);
  if (sub->done != NULL)
    sub->done(sub->arg, &call->reply);
  egw_buf_unref(buf);
  arena_free(&arena); /* the call itself goes with it */
}

void
call_cancel_children(struct egw_call *call)
{
  struct list *node;

  while ((node = list_shift(&call->children)) != NULL) {
    struct call_sub *sub = container_of(node, struct call_sub, sibling);

    sub->done = NULL; /* its argument may go with the parent */
    sub->parent = NULL;
    call_cancel(sub->call, RPC_FAULT_CANCELLED);
  }
}

/* The first position of the chain below `stage`; stages stand in one array in their order. */
static unsigned
position_below(const struct chain *chain, const struct egw_stage *stage)
{
  unsigned i;

  for (i = 0; i < chain->count; i++)
    if (stage == NULL || chain->at[i].stage > stage)
      break;
  return i;
}

static struct egw_call *
make(struct egw_worker *worker, struct network *network, struct egw_slice method,
     struct egw_slice params, egw_sub_fn *done, void *arg)
{
  struct arena arena;
  struct egw_call *call = NULL;
  struct call_sub *sub;
  const char *method_copy, *params_copy;

  arena_init(&arena, &worker->arenas);
  method_copy = arena_copy(&arena, method);
  params_copy = arena_copy(&arena, params);
  sub = arena_alloc(&arena, sizeof(*sub));
  if (method_copy != NULL && params_copy != NULL && sub != NULL)
    call = call_new(worker, network, &arena, (struct egw_slice){ method_copy, method.len },
                    (struct egw_slice){ params_copy, params.len }, EGW_KIND_SUBCALL);
  if (call == NULL) {
    arena_free(&arena);
    return NULL;
  }
  sub->call = call;
  sub->done = done;
  sub->arg = arg;
  list_init(&sub->sibling);
  call->sub = sub;
  call->own_arena = arena;
  call->arena = &call->own_arena;
  return call;
}

static void
limit_time(struct egw_call *call, uint64_t ms)
{
  call->deadline_ms = uv_now(&call->worker->loop) + ms;
  worker_timer_start(call->worker, &call->deadline, ms);
}

int
egw_subcall(const struct egw_at *at, struct egw_call *parent, const struct egw_subcall *what,
            egw_sub_fn *done, void *arg)
{
  uint64_t now = uv_now(&at->worker->loop);
  struct egw_call *call = make(at->worker, at->stage->network, what->method, what->params, done,
                               arg);

  if (call == NULL)
    return -1;
  call->route = what->route;
  if (what->ticket != NULL) {
    *what->ticket = egw_ticket(call);
    if (*what->ticket == 0) {
      call->sub->done = NULL;
      call_cancel(call, RPC_FAULT_CANCELLED);
      return -1;
    }
  }
  if (parent != NULL) {
    uint64_t left = parent->deadline_ms > now ? parent->deadline_ms - now : 1;

    call->sub->parent = parent;
    list_append(&parent->children, &call->sub->sibling);
    limit_time(call, what->timeout_ms != 0 && what->timeout_ms < left ? what->timeout_ms : left);
  } else if (what->timeout_ms != 0) {
    limit_time(call, what->timeout_ms);
  }
  chain_start_at(call, parent == NULL && !what->below ? 0 : position_below(call->chain, at->stage));
  return 0;
}

void
egw_subcall_cancel(struct egw_worker *worker, uint64_t ticket)
{
  struct egw_call *call = egw_find(worker, ticket);

  if (call == NULL || call->sub == NULL || call->phase == CALL_OVER)
    return;
  call->sub->done = NULL;
  call_cancel(call, RPC_FAULT_CANCELLED);
}

struct egw_call *
call_new_internal(struct egw_worker *worker, struct network *network, struct egw_slice method,
                  struct egw_slice params, uint32_t timeout_ms, egw_sub_fn *done, void *arg)
{
  struct egw_call *call = make(worker, network, method, params, done, arg);

  if (call == NULL)
    return NULL;
  limit_time(call, timeout_ms);
  chain_start_at(call, call->chain->count);
  return call;
}
