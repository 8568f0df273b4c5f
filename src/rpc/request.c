/* SPDX-License-Identifier: MIT */
/* A client's message: split into calls, run, joined, answered. */
#include "rpc/request.h"

#include <string.h>
#include "base/buf.h"
#include "base/checked.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "listen/facts.h"
#include "listen/listen.h"
#include "listen/session.h"
#include "push/push.h"
#include "rpc/answer.h"
#include "rpc/envelope.h"
#include "rpc/method.h"
#include "rpc/notes.h"

/* Who sent a request, for as long as its calls last: the session may go before they are over. */
struct asker {
  struct egw_client client;
  const struct client_facts *facts; /* or NULL */
};

struct request {
  struct session *session;
  struct network *network;
  void *cookie;
  struct list node;              /* session->requests */
  struct arena arena;
  struct worker_job job;         /* answers when nothing had to be waited for */
  struct egw_buf *text;
  size_t text_bytes;
  bool batch, cancelled;
  size_t count, pending;
  struct member *members;
  struct out *out;               /* streaming: the open answer */
  const struct asker *asker;     /* made when a stage asks, or when the session goes */
  struct call_note *notes;       /* by member, if the client wants any; or NULL */
  int status;                    /* that goes with the answer; 0: the usual one */
};

/* --- who asks ---------------------------------------------------------------------------------- */

static const struct client_facts *
keep_facts(struct request *request)
{
  const struct client_facts *facts = request->session->facts;
  void *memory = facts == NULL ? NULL : arena_alloc(&request->arena, facts_size(facts));

  return memory == NULL ? NULL : facts_copy(memory, facts);
}

/* NULL when memory is short. */
static const struct asker *
make_asker(struct request *request)
{
  const struct session *session = request->session;
  struct asker *asker = arena_alloc(&request->arena, sizeof(*asker));
  const char *peer = arena_copy(&request->arena,
                                (struct egw_slice){ session->peer, strlen(session->peer) });

  if (asker == NULL || peer == NULL)
    return NULL;
  asker->facts = keep_facts(request);
  if (asker->facts == NULL && session->facts != NULL)
    return NULL;
  session_client(session, &asker->client);
  asker->client.peer = peer;
  if (asker->facts == NULL)
    return asker;
  asker->client.path_key = asker->facts->path_key;
  if (asker->facts->peer[0] != '\0')
    asker->client.peer = asker->facts->peer;
  return asker;
}

static const struct asker *
asker_of(struct request *request)
{
  if (request->asker == NULL && !request->cancelled)
    request->asker = make_asker(request);
  return request->asker;
}

/* --- what goes with an answer ------------------------------------------------------------------ */

/* Without memory the client does without. */
static void
make_notes(struct request *request)
{
  const struct answer_notes *wanted = request->session->notes;

  if (wanted != NULL && (wanted->want_cache || wanted->want_story))
    request->notes = arena_alloc(&request->arena, request->count * sizeof(*request->notes));
}

static void
note_call(struct request *request, const struct egw_call *call)
{
  const struct member *m = &request->members[call->index];

  if (request->notes != NULL)
    request->notes[call->index] = (struct call_note){
      .cache = call->cache_status,
      .story = call->story_len != 0 ? call->story : NULL,
    };
  if (!request->batch && !m->silent && (call->reply.is_error || call->fault != RPC_FAULT_NONE) &&
      call->http_status >= 400 && call->http_status <= 599)
    request->status = call->http_status;
}

static void
give_notes(const struct request *request)
{
  struct answer_notes *notes = request->session->notes;

  if (notes == NULL)
    return;
  notes->status = request->status;
  if (request->notes == NULL)
    return;
  if (notes->want_cache)
    notes->cache = notes_cache(request->members, request->notes, request->count);
  if (notes->want_story)
    notes->story = notes_story(request->members, request->notes, request->count);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void
request_free(struct request *request)
{
  struct arena arena = request->arena;
  size_t i;

  for (i = 0; i < request->count; i++)
    egw_buf_unref(request->members[i].buf);
  egw_buf_unref(request->text);
  if (request->job.node.next != NULL)
    list_remove(&request->job.node);
  list_remove(&request->node);
  arena_free(&arena); /* the request itself goes with it */
}

/* All members are there: gives the answer to the session. */
static void
answer(struct request *request)
{
  struct session *session = request->session;
  void *cookie = request->cookie;
  struct out *out;

  if (request->cancelled) {
    request_free(request);
    return;
  }
  out = answer_join(request->members, request->count, request->batch,
                    &session->listener->conf->limits);
  list_remove(&request->node);
  session->request_bytes -= request->text_bytes;
  give_notes(request);
  session->ops->reply(session, cookie, out);
  if (session->state != SESSION_GONE) {
    push_answered(session, request);
    session_sent(session);
  }
  request_free(request);
}

static void
on_job(struct worker_job *job)
{
  answer(container_of(job, struct request, job));
}

/* --- the beginning ------------------------------------------------------------------------------ */

static uint32_t
kind_of(const struct rpc_request *r)
{
  const struct egw_method_info *info;
  static const char un[] = "unsubscribe";

  if (r->id.ptr == NULL)
    return EGW_KIND_NOTIFICATION;
  info = method_find(r->method);
  if (info == NULL || info->method_class != EGW_CLASS_SUBSCRIPTION)
    return EGW_KIND_CALL;
  if (r->method.len >= sizeof(un) - 1 &&
      memcmp(r->method.ptr + r->method.len - (sizeof(un) - 1), un, sizeof(un) - 1) == 0)
    return EGW_KIND_UNSUBSCRIBE;
  return EGW_KIND_SUBSCRIBE;
}

/* Makes the call of one member, or settles it with an error. */
static void
start_member(struct request *request, size_t index, const struct rpc_message *message)
{
  struct member *m = &request->members[index];
  struct session *session = request->session;
  struct rpc_request r;
  struct egw_call *call = NULL;

  rpc_message_request(message, index, &r);
  m->id = r.id;
  m->silent = r.id.ptr == NULL && r.fault == RPC_FAULT_NONE;
  m->fault = r.fault;
  if (r.fault == RPC_FAULT_NONE && budget_full(&session->worker->gateway->budget))
    m->fault = RPC_FAULT_OVERLOADED;
  if (m->fault != RPC_FAULT_NONE)
    return;
  if (r.method.ptr == r.method_text) /* it held escapes: the copy must live as long as the call */
    r.method.ptr = arena_copy(&request->arena, r.method);
  if (r.method.ptr != NULL)
    call = call_new(session->worker, request->network, &request->arena, r.method, r.params,
                    kind_of(&r));
  if (call == NULL) {
    m->fault = RPC_FAULT_INTERNAL;
    return;
  }
  call->id = r.id;
  call->request = request;
  call->kind_of_client = session->kind;
  call->index = index;
  call->can_stream = !request->batch && !m->silent;
  if (request->notes != NULL && session->notes->want_story)
    egw_explain_on(call);
  m->call = call;
  request->pending++;
  session->calls_in_flight++;
  session->calls_waiting_count++;
  list_append(&session->calls_waiting, &call->waiting);
}

/* --- starting calls ------------------------------------------------------------------------------
 *
 * A session may have read many calls, in arrays or one by one; so many run at a time, and none
 * is started while more output waits than its queue may hold. What one client can make the
 * gateway hold is thus its queue and the replies of the calls that run. */

static bool
may_start(const struct session *session)
{
  const struct conf_limits *limits = &session->listener->conf->limits;

  return session->calls_running < (uint64_t)limits->max_in_flight &&
         (limits->max_queue == 0 || session->queue_bytes < limits->max_queue);
}

void
request_start_waiting(struct session *session)
{
  struct list *node;

  while (may_start(session) && (node = list_shift(&session->calls_waiting)) != NULL) {
    session->calls_waiting_count--;
    session->calls_running++;
    chain_start(container_of(node, struct egw_call, waiting));
  }
}

void
request_not_started(struct egw_call *call)
{
  struct request *request = call->request;

  if (request == NULL || list_empty(&call->waiting))
    return;
  list_remove(&call->waiting);
  if (request->cancelled)
    return; /* the session may be gone */
  request->session->calls_waiting_count--;
  request->session->calls_running++; /* it ends as one that ran */
}

static int
split(struct request *request, const struct rpc_message *message)
{
  size_t i, size;

  request->batch = message->shape == RPC_BATCH;
  request->count = message->shape == RPC_BATCH ? message->count : 1;
  if (!size_mul(request->count, sizeof(*request->members), &size))
    return -1;
  request->members = arena_alloc(&request->arena, size);
  if (request->members == NULL) {
    request->count = 0;
    return -1;
  }
  make_notes(request);
  if (message->shape == RPC_UNUSABLE) {
    request->members[0].fault = message->fault;
    return 0;
  }
  for (i = 0; i < request->count; i++)
    start_member(request, i, message);
  return 0;
}

struct request *
request_start(struct session *session, struct network *network, struct egw_buf *text,
              void *cookie)
{
  struct rpc_message message;
  struct arena arena;
  struct request *request;
  int rc;

  arena_init(&arena, &session->worker->arenas);
  request = arena_alloc(&arena, sizeof(*request));
  if (request == NULL) {
    egw_buf_unref(text);
    arena_free(&arena);
    return NULL;
  }
  request->arena = arena;
  request->session = session;
  request->network = network != NULL ? network : session->network;
  request->cookie = cookie;
  request->text = text;
  request->text_bytes = egw_buf_slice(text).len;
  session->request_bytes += request->text_bytes;
  request->job.fn = on_job;
  list_append(&session->requests, &request->node);
  metric_add(&session->worker->metrics->requests[session->kind], 1);
  rpc_message_parse(egw_buf_slice(text), (size_t)session->listener->conf->limits.max_batch_items,
                    &message);
  rc = split(request, &message);
  rpc_message_free(&message);
  if (rc < 0) {
    session->request_bytes -= request->text_bytes;
    request_free(request);
    return NULL;
  }
  request_start_waiting(session);
  if (request->pending == 0)
    worker_run_soon(session->worker, &request->job);
  return request;
}

void
request_run(struct request *request)
{
  if (request->pending == 0 && !list_empty(&request->job.node)) {
    list_remove(&request->job.node);
    answer(request);
  } else if (!request->batch && request->members[0].call != NULL) {
    chain_now(request->members[0].call);
  }
}

/* From here on the session may go at any time: takes what is counted there along, and what the
 * calls may still ask for. */
static void
leave_session(struct request *request)
{
  struct session *session = request->session;
  size_t i;

  (void)asker_of(request);
  request->cancelled = true;
  session->request_bytes -= request->text_bytes;
  for (i = 0; i < request->count; i++) {
    struct egw_call *call = request->members[i].call;

    if (call == NULL)
      continue;
    session->calls_in_flight--;
    if (list_empty(&call->waiting))
      session->calls_running--;
    else
      session->calls_waiting_count--;
  }
}

void
request_cancel(struct request *request)
{
  size_t i;

  leave_session(request);
  list_remove(&request->node);
  if (request->out != NULL) {
    request->out->drained = NULL;
    request->out = NULL;
    call_cancel(request->members[0].call, RPC_FAULT_CANCELLED); /* frees the request */
    return;
  }
  for (i = 0; i < request->count; i++)
    if (request->members[i].call != NULL)
      call_cancel(request->members[i].call, RPC_FAULT_CANCELLED);
}

void
request_cancel_all(struct session *session)
{
  struct list *node;

  while ((node = list_shift(&session->requests)) != NULL)
    request_cancel(container_of(node, struct request, node));
}

/* --- the chain's side ---------------------------------------------------------------------------- */

static void
close_stream(struct request *request, enum rpc_fault fault)
{
  struct session *session = request->session;
  struct out *out = request->out;

  request->out = NULL;
  if (request->cancelled)
    return;
  out->drained = NULL;
  if (fault == RPC_FAULT_NONE)
    out->aborted = out_add_static(out, EGW_LIT("}")) < 0;
  else if (out->bytes == out->total) /* none of it has gone out: it can still be an error */
    out->aborted = answer_fail(out, request->members[0].id, fault) < 0;
  else
    out->aborted = true;
  out->open = false;
  list_remove(&request->node);
  session->request_bytes -= request->text_bytes;
  if (out->changed != NULL)
    out->changed(out, out->changed_arg); /* may end the session */
  if (session->state != SESSION_GONE)
    session_sent(session);
}

void
request_call_over(struct request *request, struct egw_call *call)
{
  struct member *m = &request->members[call->index];

  m->call = NULL;
  if (!request->cancelled) {
    request->session->calls_in_flight--;
    request->session->calls_running--;
    request_start_waiting(request->session);
  }
  request->pending--;
  if (request->out != NULL || call->phase == CALL_STREAMING || call->reply.partial) {
    if (request->out != NULL)
      close_stream(request, call->fault);
    else
      egw_buf_unref(call->reply_buf);
    request_free(request);
    return;
  }
  m->fault = call->fault;
  m->buf = call->reply_buf;
  m->body = call->reply.body;
  m->is_error = call->reply.is_error;
  note_call(request, call);
  if (request->pending == 0)
    answer(request);
}

struct out *
request_stream(struct request *request, struct egw_call *call)
{
  struct session *session = request->session;
  struct out *out = answer_open(request->members[call->index].id);

  if (out == NULL)
    return NULL;
  request->out = out;
  note_call(request, call);
  give_notes(request);
  session->ops->reply(session, request->cookie, out);
  /* The session may have ended within reply(): then the request was cancelled, and this call
   * with it. */
  return request->cancelled ? NULL : out;
}

void
request_stream_cut(struct request *request, struct egw_call *call)
{
  (void)call;
  if (request->out != NULL)
    request->out->drained = NULL;
}

/* --- facts ------------------------------------------------------------------------------------- */

static const struct egw_call *
root(const struct egw_call *call)
{
  while (call->request == NULL && call->sub != NULL && call->sub->parent != NULL)
    call = call->sub->parent;
  return call;
}

struct session *
request_session(const struct egw_call *call)
{
  call = root(call);
  return call->request != NULL && !call->request->cancelled ? call->request->session : NULL;
}

enum client_kind
request_client_kind(const struct egw_call *call)
{
  return call->request != NULL ? call->kind_of_client : CLIENT_INTERNAL;
}

/* The name that the nearest stage above has given: sub-calls go under their parent's. */
static const char *
identity_of(const struct egw_call *call)
{
  while (call->identity == NULL && call->sub != NULL && call->sub->parent != NULL)
    call = call->sub->parent;
  return call->identity;
}

void
request_client(const struct egw_call *call, struct egw_client *out)
{
  const struct egw_call *top = root(call);
  const struct asker *asker = top->request == NULL ? NULL : asker_of(top->request);

  if (asker != NULL)
    *out = asker->client;
  else
    *out = (struct egw_client){ .transport = "internal", .peer = "", .listener = "",
                                .local = top->request == NULL, .uid = -1 };
  out->identity = identity_of(call);
}

struct egw_slice
request_header(const struct egw_call *call, const char *name)
{
  const struct egw_call *top = root(call);
  const struct asker *asker = top->request == NULL ? NULL : asker_of(top->request);

  if (asker == NULL || asker->facts == NULL)
    return (struct egw_slice){ NULL, 0 };
  if (strcmp(name, "authorization") == 0)
    return asker->facts->authorization;
  if (strcmp(name, "x-api-key") == 0)
    return asker->facts->api_key;
  return strcmp(name, "user-agent") == 0 ? asker->facts->user_agent
                                         : (struct egw_slice){ NULL, 0 };
}
