/* SPDX-License-Identifier: MIT */
/* A call's story: what happened to it, step by step, for whoever asked (egw_explain() and its
 * kin in ethrpc-gw/middleware.h). A sub-call's steps belong to the call of the client. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "chain/parts.h"
#include "obs/secret.h"
#include "rpc/request.h"

#define STORY_MAX 4096u   /* bytes; what comes later is left out */
#define STEP_MAX 256u

static struct egw_call *
root(const struct egw_call *call)
{
  while (call->sub != NULL && call->sub->parent != NULL)
    call = call->sub->parent;
  return (struct egw_call *)(uintptr_t)call; /* the core's own, whoever looks at it */
}

bool
egw_explains(const struct egw_call *call)
{
  return root(call)->explained;
}

void
egw_explain_on(struct egw_call *call)
{
  static const char *const names[CLIENT_KINDS] = { "http", "ws", "ipc", "internal" };
  struct egw_call *top = root(call);

  if (top->explained)
    return;
  top->explained = true;
  egw_explain(top, "received: %.*s over %s", (int)(top->method.len > 64 ? 64 : top->method.len),
              top->method.ptr, names[request_client_kind(top)]);
}

/* Room for `more` bytes and a NUL behind what is there. */
static char *
story_room(struct egw_call *call, size_t more)
{
  size_t cap = call->story_cap == 0 ? 256 : call->story_cap;
  char *text;

  if (call->story_len + more + 1 > STORY_MAX)
    return NULL;
  while (cap < call->story_len + more + 1)
    cap *= 2;
  if (cap != call->story_cap) {
    text = arena_alloc(call->arena, cap);
    if (text == NULL)
      return NULL;
    if (call->story_len != 0)
      memcpy(text, call->story, call->story_len);
    call->story = text;
    call->story_cap = cap;
  }
  return call->story + call->story_len;
}

/* A story goes into a header and into lines of logs; a client's method names are in it. */
static void
copy_visible(char *to, const char *from, size_t len)
{
  for (size_t i = 0; i < len; i++)
    to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?';
  to[len] = '\0';
}

void
egw_explain(struct egw_call *call, const char *fmt, ...)
{
  struct egw_call *top = root(call);
  char step[2 * STEP_MAX];
  char *at;
  va_list args;
  int n, m;

  if (!top->explained)
    return;
  n = snprintf(step, sizeof(step), "%s+%.3fms ", top->story_len != 0 ? "; " : "",
               (double)(clock_us() - top->started_us) / 1000.0);
  va_start(args, fmt);
  m = vsnprintf(step + n, sizeof(step) - (size_t)n, fmt, args);
  va_end(args);
  if (m < 0)
    return;
  /* What nodes and transports say may hold a URL. Cut behind it: half a secret is not found. */
  n = (int)secret_scrub(step, strnlen(step, sizeof(step) - 1));
  n = n < (int)STEP_MAX ? n : (int)STEP_MAX - 1;
  at = story_room(top, (size_t)n);
  if (at == NULL)
    return;
  copy_visible(at, step, (size_t)n);
  top->story_len += (size_t)n;
}

/* Which call a step is about: nothing for the client's own. */
static void
print_whose(const struct egw_call *call, char *out, size_t cap)
{
  out[0] = '\0';
  if (call->sub != NULL)
    snprintf(out, cap, " (sub-call %.*s)", (int)(call->method.len > 64 ? 64 : call->method.len),
             call->method.ptr);
}

void
story_turned(struct egw_call *call)
{
  const char *stage = call->chain->at[call->pos].stage->name;
  char whose[96];

  if (!egw_explains(call))
    return;
  print_whose(call, whose, sizeof(whose));
  if (call->fault != RPC_FAULT_NONE)
    egw_explain(call, "%s failed: %s%s", stage, rpc_fault_info(call->fault)->label, whose);
  else if (call->reply.is_error)
    egw_explain(call, "%s refused: error %lld%s", stage, (long long)call->reply.code, whose);
  else
    egw_explain(call, "%s answered%s", stage, whose);
}

void
story_over(struct egw_call *call)
{
  if (!call->explained)
    return;
  if (call->fault != RPC_FAULT_NONE)
    egw_explain(call, "done: %s", rpc_fault_info(call->fault)->label);
  else if (call->reply.is_error)
    egw_explain(call, "done: error %lld", (long long)call->reply.code);
  else
    egw_explain(call, "done: result");
}

const char *
egw_explained(const struct egw_call *call)
{
  const struct egw_call *top = root(call);

  return top->story_len != 0 ? top->story : "";
}

void
egw_set_cache_status(struct egw_call *call, const char *status)
{
  call->cache_status = status;
  if (status != NULL)
    egw_explain(call, "cache: %s", status);
}

const char *
egw_cache_status(const struct egw_call *call)
{
  return call->cache_status;
}

void
egw_http_status(struct egw_call *call, int status)
{
  call->http_status = status;
}
