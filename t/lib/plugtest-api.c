/* SPDX-License-Identifier: MIT */
/* The plugin test host: the functions of middleware.h. */
#include "plugtest-parts.h"

#include <ethrpc-gw/json.h>
#include "rpc/method.h"

/* A plugin must not touch a call after finish(). */
static void
check_alive(const struct egw_call *call, const char *what)
{
  if (call->phase == PHASE_OVER && !call->running)
    plugtest_fault(call->host, "%s on a call that is over", what);
}

struct egw_slice
egw_method(const struct egw_call *call)
{
  check_alive(call, "egw_method()");
  return (struct egw_slice){ call->method, call->method_len };
}

struct egw_slice
egw_params(const struct egw_call *call)
{
  check_alive(call, "egw_params()");
  return (struct egw_slice){ call->params, strlen(call->params) };
}

struct egw_slice
egw_client_id(const struct egw_call *call)
{
  check_alive(call, "egw_client_id()");
  if (call->kind == EGW_KIND_NOTIFICATION || call->kind == EGW_KIND_SUBCALL)
    return (struct egw_slice){ NULL, 0 };
  return (struct egw_slice){ call->id, strlen(call->id) };
}

const struct egw_method_info *
egw_method_info(const struct egw_call *call)
{
  return method_find((struct egw_slice){ call->method, call->method_len });
}

uint32_t
egw_kind(const struct egw_call *call)
{
  check_alive(call, "egw_kind()");
  return call->kind;
}

const char *
egw_network(const struct egw_call *call)
{
  check_alive(call, "egw_network()");
  return call->network;
}

uint64_t
egw_deadline_ms(const struct egw_call *call)
{
  check_alive(call, "egw_deadline_ms()");
  return call->deadline;
}

uint64_t
egw_started_us(const struct egw_call *call)
{
  check_alive(call, "egw_started_us()");
  return call->started_ms * 1000;
}

uint64_t
egw_call_number(const struct egw_call *call)
{
  check_alive(call, "egw_call_number()");
  return call->number;
}

void
egw_client(const struct egw_call *call, struct egw_client *out)
{
  check_alive(call, "egw_client()");
  *out = (struct egw_client){ .transport = call->transport, .peer = call->peer,
                              .listener = call->listener, .local = call->local,
                              .session = call->session, .identity = call->identity,
                              .uid = call->uid };
  if (call->spec_path_key != NULL)
    out->path_key = (struct egw_slice){ call->spec_path_key, strlen(call->spec_path_key) };
}

void *
egw_alloc(struct egw_call *call, size_t size)
{
  struct piece *piece;
  bool was;

  check_alive(call, "egw_alloc()");
  if (plugtest_fails_now())
    return NULL;
  was = plugtest_pause();
  piece = plugtest_must(calloc(1, sizeof *piece + size));
  plugtest_resume(was);
  piece->next = call->pieces;
  call->pieces = piece;
  return piece->bytes;
}

/* --- answers ----------------------------------------------------------------------------- */

static void
set_reply(struct egw_call *call, struct egw_buf *buf)
{
  bool held = call->phase == PHASE_HELD_DOWN || call->phase == PHASE_HELD_UP;

  if (!call->running && !held)
    plugtest_fault(call->host, "an answer to a call that the stage does not have");
  plugtest_clear_reply(call);
  call->reply_buf = buf;
  call->reply.buf = buf;
  call->reply.body = egw_buf_slice(buf);
  call->reply_set = true;
}

enum egw_verdict
egw_answer(struct egw_call *call, struct egw_buf *result)
{
  if (egw_json_kind(egw_buf_slice(result)) == EGW_JSON_NONE)
    plugtest_fault(call->host, "egw_answer() with no JSON value");
  set_reply(call, result);
  return EGW_DONE;
}

enum egw_verdict
egw_answer_error(struct egw_call *call, struct egw_buf *error)
{
  struct egw_slice text = egw_buf_slice(error), code = egw_json_member(text, "code");
  char digits[32] = "";

  if (egw_json_kind(text) != EGW_JSON_OBJECT || egw_json_kind(code) != EGW_JSON_NUMBER)
    plugtest_fault(call->host, "egw_answer_error() with no error object");
  set_reply(call, error);
  call->reply.is_error = true;
  if (code.len < sizeof digits)
    memcpy(digits, code.ptr, code.len);
  call->reply.code = strtoll(digits, NULL, 10);
  call->reply.message = egw_json_member(text, "message");
  call->reply.data = egw_json_member(text, "data");
  return EGW_DONE;
}

enum egw_verdict
egw_answer_part(struct egw_call *call, struct egw_buf *buf, struct egw_slice part,
                bool is_error)
{
  struct egw_buf *copy = egw_buf_copy(part);

  egw_buf_unref(buf);
  if (copy == NULL) /* the script made an allocation fail: as the core does without memory */
    return egw_refuse(call, -32603, "Internal error");
  return is_error ? egw_answer_error(call, copy) : egw_answer(call, copy);
}

enum egw_verdict
egw_refuse(struct egw_call *call, int code, const char *message)
{
  struct egw_slice text = { message, strlen(message) };
  bool was = plugtest_pause();
  struct egw_buf *buf = plugtest_must(egw_buf_new(0));

  if (strpbrk(message, "{}") != NULL)
    plugtest_fault(call->host, "braces in the message of egw_refuse()");
  if (egw_buf_printf(buf, "{\"code\":%d,\"message\":", code) < 0 ||
      egw_json_quote(buf, text) < 0 || egw_buf_append(buf, "}", 1) < 0)
    abort();
  plugtest_resume(was);
  return egw_answer_error(call, buf);
}

void
egw_resume(struct egw_call *call, enum egw_verdict verdict)
{
  if (call->phase != PHASE_HELD_DOWN && call->phase != PHASE_HELD_UP) {
    plugtest_fault(call->host, "egw_resume() of a call that the stage does not hold");
    return;
  }
  if (verdict == EGW_WAIT) {
    plugtest_fault(call->host, "egw_resume() with EGW_WAIT");
    return;
  }
  call->up = call->phase == PHASE_HELD_UP;
  call->verdict = verdict;
  plugtest_enqueue(call, STEP_VERDICT);
}

/* --- tickets, timers, sub-calls, metrics ------------------------------------------------- */

uint64_t
egw_ticket(const struct egw_call *call)
{
  check_alive(call, "egw_ticket()");
  return call->number;
}

struct egw_call *
egw_find(struct egw_worker *worker, uint64_t ticket)
{
  struct list *node;

  list_for_each(node, &worker->host->calls) {
    struct egw_call *call = container_of(node, struct egw_call, node);

    if (call->number == ticket)
      return call->phase == PHASE_OVER ? NULL : call;
  }
  return NULL;
}

void
egw_call_timer(const struct egw_at *at, struct egw_call *call, uint64_t ms)
{
  (void)at;
  check_alive(call, "egw_call_timer()");
  call->timer_due = ms == 0 ? 0 : call->host->now_ms + ms;
}

/* Not strndup(): sanitizers may want an end behind the bytes that it was given. */
static char *
text_of(struct egw_slice slice)
{
  char *text = plugtest_must(malloc(slice.len + 1));

  if (slice.len > 0)
    memcpy(text, slice.ptr, slice.len);
  text[slice.len] = '\0';
  return text;
}

int
egw_subcall(const struct egw_at *at, struct egw_call *parent, const struct egw_subcall *what,
            egw_sub_fn *done, void *arg)
{
  struct plugtest *host = at->worker->host;
  struct plugtest_spec spec = { .kind = EGW_KIND_SUBCALL, .transport = "internal" };
  struct egw_call *call;
  char *method, *params;
  bool was;

  if (plugtest_fails_now())
    return -1;
  was = plugtest_pause();
  spec.method = method = text_of(what->method);
  spec.params = params = text_of(what->params);
  spec.timeout_ms = what->timeout_ms;
  call = plugtest_call_new(host, &spec);
  free(method);
  free(params);
  plugtest_resume(was);
  call->parent = parent;
  call->is_sub = true;
  call->from_top = parent == NULL && !what->below;
  call->route = what->route;
  if (what->ticket != NULL)
    *what->ticket = call->number;
  call->done = done;
  call->arg = arg;
  if (parent != NULL && call->deadline > parent->deadline)
    call->deadline = parent->deadline;
  return 0;
}

void
egw_count(const struct egw_at *at, unsigned id, int64_t n)
{
  struct plugtest *host = at->worker->host;

  if (id >= host->plugin->metric_count) {
    plugtest_fault(host, "egw_count() of metric %u, which is not in the table", id);
    return;
  }
  host->metrics[id] += n;
  if (n < 0 && host->plugin->head->metrics[id].kind == EGW_METRIC_COUNTER)
    plugtest_fault(host, "the counter %s went down", host->plugin->head->metrics[id].name);
}
