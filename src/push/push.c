/* SPDX-License-Identifier: MIT */
/* Subscriptions between calls, sessions and connections. See push.h. */
#include "push/push.h"

#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "listen/listen.h"
#include "listen/session.h"
#include "push/filters.h"
#include "push/local.h"
#include "push/notice.h"
#include "push/resume.h"
#include "push/subscription.h"
#include "rpc/request.h"

/* --- subscribing ------------------------------------------------------------------------------ */

bool
push_subscribes(const struct egw_call *call)
{
  return call->kind == EGW_KIND_SUBSCRIBE || call->push != NULL;
}

static struct subscription *
find_by_client_id(struct session *session, struct egw_slice id)
{
  struct list *node;

  list_for_each(node, &session->subscriptions) {
    struct subscription *sub = container_of(node, struct subscription, session_node);

    if (egw_json_equals(id, sub->id))
      return sub;
  }
  return NULL;
}

static void
unsubscribe(struct egw_call *call, struct session *session)
{
  struct egw_slice id = egw_json_element(call->params, 0);
  struct subscription *sub = session == NULL ? NULL : find_by_client_id(session, id);
  struct egw_buf *buf = egw_buf_copy(sub != NULL ? EGW_LIT("true") : EGW_LIT("false"));

  if (sub != NULL) {
    session->subscription_count--;
    metric_add(&call->worker->metrics->subscriptions, -1);
    subscription_free(sub, true);
  }
  if (buf == NULL)
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
  else
    call_set_result(call, buf, egw_buf_slice(buf));
  chain_reply(call);
}

bool
push_has_room(const struct session *session)
{
  return session->subscription_count <
         (uint64_t)session->listener->conf->limits.max_subscriptions;
}

bool
push_takes(struct egw_call *call)
{
  struct session *session = request_session(call);
  enum rpc_fault fault = RPC_FAULT_NONE;

  if (filters_take(call))
    return true;
  if (call->kind == EGW_KIND_UNSUBSCRIBE) {
    unsubscribe(call, session);
    return true;
  }
  if (call->kind != EGW_KIND_SUBSCRIBE) {
    /* As a notification or a sub-call nobody could take the events. */
    if (call->push != NULL || call->info == NULL ||
        call->info->method_class != EGW_CLASS_SUBSCRIPTION)
      return false;
    fault = RPC_FAULT_NO_SUBSCRIPTIONS;
  } else if (session == NULL || session->ops->push == NULL) {
    fault = RPC_FAULT_NO_SUBSCRIPTIONS;
  } else if (!push_has_room(session)) {
    fault = RPC_FAULT_TOO_MANY_SUBSCRIPTIONS;
  }
  if (fault == RPC_FAULT_NONE)
    return local_takes(call);
  call_set_fault(call, fault, EGW_ABORTED, rpc_fault_info(fault)->label);
  chain_reply(call);
  return true;
}

void
push_cancel(struct egw_call *call)
{
  local_cancel(call);
}

static void deliver(struct subscription *sub, struct egw_buf *buf, struct egw_slice method,
                    struct egw_slice result);
static struct egw_slice event_result(struct egw_slice params);

void
push_take_early(struct subscription *sub, struct egw_conn *conn)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &conn->early) {
    struct early_event *e = container_of(node, struct early_event, node);
    struct egw_slice id = egw_json_member(e->params, "subscription");
    char text[256];
    long n = egw_json_string(id, text, sizeof(text));

    if (n < 0 || strmap_get(&conn->by_subscription, (struct egw_slice){ text, (size_t)n }) != sub)
      continue;
    deliver(sub, e->buf, e->method, event_result(e->params));
    list_remove(&e->node);
    conn->early_count--;
    egw_buf_unref(e->buf);
    free(e);
  }
}

struct subscription *
push_make(struct egw_call *call, struct session *session)
{
  struct subscription *sub = subscription_new(session, call->network, call->method, call->params);

  if (sub == NULL)
    return NULL;
  sub->waiting = call->request;
  sub->opening = call;
  list_append(&session->subscriptions, &sub->session_node);
  session->subscription_count++;
  metric_add(&call->worker->metrics->subscriptions, 1);
  call->push = sub;
  return sub;
}

static void
drop(struct subscription *sub)
{
  sub->session->subscription_count--;
  metric_add(&sub->worker->metrics->subscriptions, -1);
  subscription_free(sub, true);
}

bool
push_subscribed(struct egw_call *call, struct egw_xchg *xchg, const struct rpc_reply *reply)
{
  struct session *session = request_session(call);
  struct subscription *sub = call->push;
  struct egw_buf *answer = NULL;

  if (xchg->conn == NULL || egw_json_kind(reply->body) != EGW_JSON_STRING)
    return false;
  if (sub == NULL && session != NULL)
    sub = push_make(call, session);
  if (sub == NULL || subscription_attach(sub, xchg->conn, reply->body) < 0) {
    upstream_unsubscribe(xchg->conn, call->method, reply->body);
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "the subscription can't be kept");
    return true;
  }
  push_take_early(sub, xchg->conn);
  answer = egw_buf_new(SUBSCRIPTION_ID_LEN + 2);
  if (answer == NULL || egw_buf_printf(answer, "\"%s\"", sub->id) < 0) {
    egw_buf_unref(answer);
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
    return true;
  }
  call_set_result(call, answer, egw_buf_slice(answer));
  return true;
}

void
push_call_over(struct egw_call *call)
{
  struct subscription *sub = call->push;

  if (sub == NULL || call->request == NULL)
    return;
  call->push = NULL;
  sub->opening = NULL;
  if (call->fault != RPC_FAULT_NONE || call->reply.is_error)
    drop(sub);
}

void
push_answered(struct session *session, const struct request *request)
{
  struct list *node, *tmp, *held;

  list_for_each_safe(node, tmp, &session->subscriptions) {
    struct subscription *sub = container_of(node, struct subscription, session_node);

    if (sub->waiting != request)
      continue;
    sub->waiting = NULL;
    while (session->state != SESSION_GONE && (held = list_shift(&sub->held)) != NULL)
      session->ops->push(session, container_of(held, struct out, node));
    if (session->state == SESSION_GONE)
      return; /* it took its subscriptions with it */
  }
}

/* --- events ------------------------------------------------------------------------------------ */

static struct egw_slice
event_result(struct egw_slice params)
{
  return egw_json_member(params, "result");
}

/* {"jsonrpc":"2.0","method":M,"params":{"subscription":"ID","result":R}} with the node's own bytes
 * for M and R. */
static struct out *
event_message(const struct subscription *sub, struct egw_buf *buf, struct egw_slice method,
              struct egw_slice result)
{
  struct out *out = out_new(4, 160);

  if (out == NULL)
    return NULL;
  if (out_add_copy(out, EGW_LIT("{\"jsonrpc\":\"2.0\",\"method\":")) < 0 ||
      out_add_copy(out, method) < 0 ||
      out_add_copy(out, EGW_LIT(",\"params\":{\"subscription\":\"")) < 0 ||
      out_add_copy(out, (struct egw_slice){ sub->id, SUBSCRIPTION_ID_LEN }) < 0 ||
      out_add_copy(out, EGW_LIT("\",\"result\":")) < 0 ||
      out_add(out, egw_buf_ref(buf), result) < 0 || out_add_static(out, EGW_LIT("}}")) < 0) {
    out_free(out);
    return NULL;
  }
  return out;
}

static void
deliver(struct subscription *sub, struct egw_buf *buf, struct egw_slice method,
        struct egw_slice result)
{
  struct session *session = sub->session;
  struct out *out;

  if (session == NULL) {
    sub->event(sub, result);
    return;
  }
  if (result.ptr != NULL && sub->network->hears_notices) {
    struct egw_buf *other = NULL;

    if (!notice_pass(sub, &other, &result))
      return;
    out = event_message(sub, other != NULL ? other : buf, method, result);
    egw_buf_unref(other);
  } else {
    out = result.ptr != NULL ? event_message(sub, buf, method, result) : NULL;
  }
  if (out == NULL) {
    /* An event is never lost silently: the client is told by the end of its session. */
    if (result.ptr != NULL)
      session->ops->close(session, true, 1011, "out of memory");
    return;
  }
  metric_add(&sub->worker->metrics->notifications, 1);
  if (sub->waiting == NULL) {
    session->ops->push(session, out);
    return;
  }
  if (sub->held_count >= SUBSCRIPTION_HELD_MAX) {
    out_free(out);
    session->ops->close(session, true, 1013, "too many events before the answer");
    return;
  }
  sub->held_count++;
  list_append(&sub->held, &out->node);
}

bool
push_tell(struct subscription *sub, struct egw_buf *buf, struct egw_slice result)
{
  struct session *session = sub->session;

  deliver(sub, buf, EGW_LIT("\"eth_subscription\""), result);
  return session->state != SESSION_GONE;
}

void
push_deliver(struct subscription *sub, struct egw_buf *buf, struct egw_slice result)
{
  if (!resume_busy(sub))
    deliver(sub, buf, EGW_LIT("\"eth_subscription\""), result);
  else if (!resume_hold(sub, buf, result))
    sub->session->ops->close(sub->session, true, 1013, "too many events while the past is told");
}

bool
network_serves_push(const struct network *network)
{
  return network->hub != NULL && network->conf->subscriptions == PUSH_SERVED;
}

static void
keep_early(struct egw_conn *conn, struct egw_buf *buf, struct egw_slice method,
           struct egw_slice params)
{
  struct early_event *e;

  if (conn->subscribing == 0 || conn->early_count >= EARLY_MAX)
    return;
  e = calloc(1, sizeof(*e));
  if (e == NULL)
    return;
  e->buf = egw_buf_ref(buf);
  e->method = method;
  e->params = params;
  list_append(&conn->early, &e->node);
  conn->early_count++;
}

void
push_event(struct egw_conn *conn, struct egw_buf *buf, struct egw_slice method,
           struct egw_slice params)
{
  struct egw_slice id = egw_json_member(params, "subscription");
  struct subscription *sub;
  char text[256];
  long n = egw_json_string(id, text, sizeof(text));

  if (n < 0) {
    egw_log(EGW_DEBUG, "push", "%s: an event without a subscription",
            conn->link->upstream->name);
    return;
  }
  sub = strmap_get(&conn->by_subscription, (struct egw_slice){ text, (size_t)n });
  if (sub != NULL)
    deliver(sub, buf, method, event_result(params));
  else
    keep_early(conn, buf, method, params);
}

void
push_early_drop(struct egw_conn *conn)
{
  struct list *node;

  while ((node = list_shift(&conn->early)) != NULL) {
    struct early_event *e = container_of(node, struct early_event, node);

    egw_buf_unref(e->buf);
    free(e);
  }
  conn->early_count = 0;
}

/* --- ends ------------------------------------------------------------------------------------- */

void
push_conn_lost(struct egw_conn *conn)
{
  struct list *node;

  push_early_drop(conn);
  while ((node = conn->subscriptions.next) != &conn->subscriptions) {
    struct subscription *sub = container_of(node, struct subscription, conn_node);

    subscription_detach(sub);
    if (sub->session == NULL)
      sub->lost(sub);
    else if (conn->link->worker->state < WORKER_STOPPING)
      subscription_renew(sub);
  }
}

void
push_session_gone(struct session *session)
{
  struct list *node;

  while ((node = session->subscriptions.next) != &session->subscriptions)
    drop(container_of(node, struct subscription, session_node));
}
