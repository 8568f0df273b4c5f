/* SPDX-License-Identifier: MIT */
/* Events from the inbox to the subscriptions of this worker. */
#include "push/local.h"

#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "listen/session.h"
#include "push/pending.h"
#include "push/push.h"
#include "push/resume.h"
#include "push/subscription.h"
#include "rpc/request.h"
#include "upstream/upstream.h"

/* An event in the inbox. */
struct parcel {
  struct list node;
  struct hub_event *event;
};

struct push {
  struct egw_worker *worker;
  pthread_mutex_t lock;              /* of `inbox` */
  struct list inbox;
  bool posted;                       /* the worker knows of it */
  atomic_uint count[HUB_KINDS];      /* subscriptions here, for local_post() */
  struct list *lists;                /* by network and kind: subscription.hub_node */
  struct list waiting;               /* calls that wait for the head: call->push_node */
  struct subscription *delivering;   /* NULL: it ended meanwhile */
};

static struct list *
list_of(struct push *push, const struct network *network, enum hub_kind kind)
{
  return &push->lists[network->index * HUB_KINDS + kind];
}

/* --- events ---------------------------------------------------------------------------------- */

static void
deliver_logs(struct push *push, struct subscription *sub, const struct log_set *logs)
{
  size_t i;

  for (i = 0; i < logs->count && push->delivering != NULL; i++)
    if (log_filter_matches(sub->filter.filter, &logs->v[i]))
      push_deliver(sub, logs->buf, logs->v[i].raw);
}

/* A block goes whose logs were told to nobody but, perhaps, as somebody's past. */
static bool
is_blank(const struct hub_event *event)
{
  return event->kind == HUB_LOGS && event->logs == NULL && !event->broken;
}

static void
deliver(struct push *push, struct subscription *sub, const struct hub_event *event)
{
  struct log_set *past;

  resume_turn(sub, event);
  past = resume_removed(sub, event);
  if (past == NULL && (!hub_is_new(event, sub->since) || is_blank(event)))
    return;
  push->delivering = sub;
  if (event->broken)
    sub->session->ops->close(sub->session, true, 1011, "an event was lost");
  else if (event->kind == HUB_LOGS)
    deliver_logs(push, sub, past != NULL ? past : event->logs);
  else
    push_deliver(sub, event->buf, egw_buf_slice(event->buf));
  push->delivering = NULL;
  log_set_unref(past);
}

/* Delivering may end sessions with all their subscriptions: a marker keeps the place. */
static void
deliver_all(struct push *push, const struct hub_event *event)
{
  struct list *list = list_of(push, event->network, event->kind), *node = list->next;
  struct list marker;

  list_init(&marker);
  while (node != list) {
    list_remove(&marker);
    list_insert(node, &marker);
    deliver(push, container_of(node, struct subscription, hub_node), event);
    node = marker.next;
  }
  list_remove(&marker);
}

static void
on_inbox(void *arg)
{
  struct push *push = arg;
  struct list mine, *node;

  list_init(&mine);
  pthread_mutex_lock(&push->lock);
  while ((node = list_shift(&push->inbox)) != NULL)
    list_append(&mine, node);
  push->posted = false;
  pthread_mutex_unlock(&push->lock);
  while ((node = list_shift(&mine)) != NULL) {
    struct parcel *parcel = container_of(node, struct parcel, node);

    deliver_all(push, parcel->event);
    hub_event_unref(parcel->event);
    free(parcel);
  }
}

void
local_post(struct egw_worker *worker, struct hub_event *event)
{
  struct push *push = worker->push;
  struct parcel *parcel;

  if (push == NULL || atomic_load(&push->count[event->kind]) == 0) /* see hub_moved() */
    return;
  parcel = calloc(1, sizeof(*parcel));
  if (parcel == NULL) {
    egw_log(EGW_ERROR, "push", "out of memory: an event is lost");
    return;
  }
  parcel->event = event;
  atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
  pthread_mutex_lock(&push->lock);
  list_append(&push->inbox, &parcel->node);
  if (!push->posted)
    push->posted = egw_post(worker, on_inbox, push) == 0;
  pthread_mutex_unlock(&push->lock);
}

void
local_broken(struct hub *hub, enum hub_kind kind, const char *why)
{
  struct hub_event *event = hub_event_new(hub, kind);

  egw_log(EGW_ERROR, "push", "%s: subscriptions to %s are ended: %s", hub->network->name,
          kind == HUB_HEADS ? "heads" : "logs", why);
  if (event == NULL)
    return;
  event->broken = true;
  hub_tell(hub, event);
}

/* --- waiting for the head ------------------------------------------------------------------------ */

/* The tip as of now, not as of the last poll: what comes after it is new to the client, and
 * nothing else. And a window below it, so that a reorganisation can be told. */
static bool
is_fresh(const struct egw_call *call)
{
  const struct head_snapshot *now = head_now(call->worker, call->network);

  return now->pub.known && now->touched >= call->push_look &&
         now->depth >= (call->push_past ? HEAD_DEEP : HEAD_FILLED);
}

bool
local_wait_head(struct egw_call *call, void (*then)(struct egw_call *))
{
  struct push *push = call->worker->push;

  if (!group_usable(call->worker, call->network)) {
    call_set_fault(call, RPC_FAULT_NO_UPSTREAM, EGW_NOT_SENT, "no upstream");
    return false;
  }
  call->push_then = then;
  list_append(&push->waiting, &call->push_node);
  atomic_fetch_add(&call->network->head->waiting, 1);
  head_want(call->network);
  call->push_look = head_look(call->network);
  return true;
}

void
local_cancel(struct egw_call *call)
{
  if (call->push_node.next == NULL || list_empty(&call->push_node))
    return;
  list_remove(&call->push_node);
  atomic_fetch_sub(&call->network->head->waiting, 1);
}

void
local_head_known(struct egw_worker *worker, const struct network *network)
{
  struct push *push = worker->push;
  struct list *node, *tmp;

  if (push == NULL)
    return;
  list_for_each_safe(node, tmp, &push->waiting) {
    struct egw_call *call = container_of(node, struct egw_call, push_node);

    if (call->network != network || !is_fresh(call))
      continue;
    local_cancel(call);
    call->push_then(call);
  }
}

/* --- subscribing ------------------------------------------------------------------------------------ */

static bool
kind_of(const struct egw_call *call, enum hub_kind *kind)
{
  struct egw_slice name = egw_json_element(call->params, 0);
  struct egw_slice more = egw_json_element(call->params, 1);

  if (egw_json_equals(name, "newHeads")) {
    *kind = HUB_HEADS;
    return true;
  }
  if (egw_json_equals(name, "logs")) {
    *kind = HUB_LOGS;
    return true;
  }
  if (egw_json_equals(name, "syncing")) {
    *kind = HUB_SYNCING;
    return true;
  }
  *kind = egw_json_kind(more) == EGW_JSON_TRUE ? HUB_PENDING_FULL : HUB_PENDING;
  return egw_json_equals(name, "newPendingTransactions");
}

static void
attach(struct subscription *sub, enum hub_kind kind)
{
  struct hub *hub = sub->network->hub;
  struct push *push = sub->worker->push;

  sub->hub_kind = kind;
  sub->served = true;
  list_append(list_of(push, sub->network, kind), &sub->hub_node);
  atomic_fetch_add(&push->count[kind], 1);
  if (sub->filter.filter != NULL)
    hub_filter_add(hub, &sub->filter);
  hub_want(hub, kind, 1);
  sub->since = head_now(sub->worker, sub->network)->pub.version; /* after all of that */
}

void
local_forget(struct subscription *sub)
{
  struct push *push = sub->worker->push;

  if (!sub->served)
    return;
  sub->served = false;
  if (push->delivering == sub)
    push->delivering = NULL;
  list_remove(&sub->hub_node);
  atomic_fetch_sub_explicit(&push->count[sub->hub_kind], 1, memory_order_acq_rel);
  hub_want(sub->network->hub, sub->hub_kind, -1);
  if (sub->filter.filter != NULL)
    hub_filter_remove(sub->network->hub, &sub->filter);
  log_filter_free(sub->filter.filter);
  sub->filter.filter = NULL;
}

static void
refuse(struct egw_call *call, const char *why)
{
  egw_refuse(call, -32602, why);
  chain_reply(call);
}

static void
fail(struct egw_call *call)
{
  call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
  chain_reply(call);
}

/* Answers, after what has to be told of the past is on its way: it ends where the present
 * begins. */
static void
answer(struct egw_call *call, struct subscription *sub)
{
  const struct head_snapshot *head = head_now(call->worker, call->network);
  struct egw_buf *text = egw_buf_new(SUBSCRIPTION_ID_LEN + 2);
  const char *why = NULL;
  uint64_t from = 0;

  if (text == NULL || egw_buf_printf(text, "\"%s\"", sub->id) < 0) {
    egw_buf_unref(text);
    fail(call);
    return;
  }
  if (call->push_past && resume_wanted(call, head, &from, &why) &&
      (why != NULL || resume_start(sub, head, from) < 0)) {
    egw_buf_unref(text);
    if (why != NULL)
      refuse(call, why);
    else
      fail(call);
    return;
  }
  if (sub->resume != NULL)
    sub->since = head->pub.version;
  call_set_result(call, text, egw_buf_slice(text));
  chain_reply(call);
}

/* The head is known and fresh: makes the subscription and answers; with an error, it ends
 * again (push_call_over). */
static void
subscribe(struct egw_call *call)
{
  struct session *session = request_session(call);
  struct log_filter *filter = NULL;
  struct subscription *sub;
  enum hub_kind kind;
  const char *why = NULL;

  if (!kind_of(call, &kind) || session == NULL) {
    call_set_fault(call, RPC_FAULT_NO_SUBSCRIPTIONS, EGW_ABORTED, "no session");
    chain_reply(call);
    return;
  }
  if (kind == HUB_LOGS) {
    filter = log_filter_new(egw_json_element(call->params, 1), &why);
    if (filter == NULL) {
      refuse(call, why);
      return;
    }
  }
  /* Asked again: others of the session have waited beside it. */
  if (!push_has_room(session) || !hub_has_room(call->network->hub)) {
    log_filter_free(filter);
    call_set_fault(call, RPC_FAULT_TOO_MANY_SUBSCRIPTIONS, EGW_ABORTED, "too many");
    chain_reply(call);
    return;
  }
  sub = push_make(call, session);
  if (sub == NULL) {
    log_filter_free(filter);
    fail(call);
    return;
  }
  sub->filter.filter = filter;
  attach(sub, kind);
  answer(call, sub);
}

bool
local_takes(struct egw_call *call)
{
  enum hub_kind kind;

  if (call->info == NULL || strcmp(call->info->name, "eth_subscribe") != 0 ||
      !kind_of(call, &kind) || !network_serves_push(call->network))
    return false;
  if (kind == HUB_PENDING_FULL && !pending_any_pushes(call->network)) {
    call_set_fault(call, RPC_FAULT_NO_PUSH, EGW_NOT_SENT, "no upstream sends bodies");
    chain_reply(call);
    return true;
  }
  call->push_past = (kind == HUB_HEADS || kind == HUB_LOGS) && resume_asked(call);
  if (call->push_past)
    atomic_store_explicit(&call->network->head->deep, true, memory_order_release);
  if (!local_wait_head(call, subscribe))
    chain_reply(call);
  return true;
}

/* --- life -------------------------------------------------------------------------------------------- */

int
local_init(struct egw_worker *worker)
{
  size_t i, n = worker->gateway->network_count * HUB_KINDS;
  struct push *push = calloc(1, sizeof(*push));

  if (push == NULL)
    return -1;
  push->worker = worker;
  list_init(&push->inbox);
  list_init(&push->waiting);
  for (i = 0; i < HUB_KINDS; i++)
    atomic_init(&push->count[i], 0);
  push->lists = calloc(n + 1, sizeof(*push->lists));
  if (push->lists == NULL || pthread_mutex_init(&push->lock, NULL) != 0) {
    free(push->lists);
    free(push);
    return -1;
  }
  for (i = 0; i < n; i++)
    list_init(&push->lists[i]);
  worker->push = push;
  return 0;
}

void
local_free(struct egw_worker *worker)
{
  struct push *push = worker->push;
  struct list *node;

  if (push == NULL)
    return;
  while ((node = list_shift(&push->inbox)) != NULL) {
    struct parcel *parcel = container_of(node, struct parcel, node);

    hub_event_unref(parcel->event);
    free(parcel);
  }
  pthread_mutex_destroy(&push->lock);
  free(push->lists);
  free(push);
  worker->push = NULL;
}
