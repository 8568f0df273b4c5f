/* SPDX-License-Identifier: MIT */
/* A call's story: what happened to it, step by step, for whoever asked (egw_explain() and its
 * kin in ethrpc-gw/middleware.h). A sub-call's steps belong to the call of the client. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "chain/parts.h"

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
  root(call)->explained = true;
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

void
egw_explain(struct egw_call *call, const char *fmt, ...)
{
  struct egw_call *top = root(call);
  char step[STEP_MAX];
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
  n = (int)strnlen(step, sizeof(step));
  at = story_room(top, (size_t)n);
  if (at == NULL)
    return;
  memcpy(at, step, (size_t)n);
  at[n] = '\0';
  top->story_len += (size_t)n;
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
