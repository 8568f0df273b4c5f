/* SPDX-License-Identifier: MIT */
/* Calls about filters: read, taken to the owner, answered. */
#include "push/filter-ask.h"

#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "push/filters.h"
#include "push/local.h"
#include "push/pending.h"
#include "push/push.h"
#include "rpc/method.h"
#include "upstream/upstream.h"

static void
ask_free(struct filter_ask *ask)
{
  list_remove(&ask->node);
  log_filter_free(ask->filter);
  egw_buf_unref(ask->object);
  egw_buf_unref(ask->result);
  free(ask);
}

void
filter_asks_free(struct hub *hub)
{
  struct list *node;

  while ((node = hub->asks.next) != &hub->asks)
    ask_free(container_of(node, struct filter_ask, node));
}

void
filter_ask_fail(struct filter_ask *ask, int code, const char *message)
{
  ask->code = code;
  ask->message = message;
}

void
filter_ask_text(struct filter_ask *ask, const char *text)
{
  ask->result = egw_buf_new(strlen(text) + 3);
  if (ask->result == NULL || egw_buf_printf(ask->result, "\"%s\"", text) < 0)
    filter_ask_fail(ask, -32603, "out of memory");
}

/* --- the answer ---------------------------------------------------------------------------------------- */

/* The filter's own object as params: the call goes on to a node as eth_getLogs. */
static void
become_get_logs(struct egw_call *call, struct filter_ask *ask)
{
  struct egw_slice object = egw_buf_slice(ask->object);
  struct egw_buf *params = egw_buf_new(object.len + 2);

  if (params == NULL || egw_buf_printf(params, "[%.*s]", (int)object.len, object.ptr) < 0 ||
      egw_set_params(call, egw_buf_slice(params)) < 0) {
    egw_buf_unref(params);
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
    chain_reply(call);
    return;
  }
  egw_buf_unref(params);
  call->method = EGW_LIT("eth_getLogs");
  call->info = method_find(call->method);
  dispatch_start(call);
}

static void
answer(struct egw_call *call, struct filter_ask *ask)
{
  if (ask->message != NULL) {
    egw_refuse(call, ask->code, ask->message);
  } else if (ask->what == FILTER_LOGS) {
    become_get_logs(call, ask);
    return;
  } else if (ask->result == NULL) {
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
  } else {
    call_set_result(call, ask->result, egw_buf_slice(ask->result));
    ask->result = NULL;
  }
  chain_reply(call);
}

/* In the mail, or no more: a worker that ends does not deliver what is in its mailbox. */
static void
note_mail(struct filter_ask *ask, bool in_mail)
{
  pthread_mutex_lock(&ask->hub->lock);
  list_remove(&ask->node);
  if (in_mail)
    list_append(&ask->hub->asks, &ask->node);
  pthread_mutex_unlock(&ask->hub->lock);
}

/* Back on the call's worker. */
static void
on_answer(void *arg)
{
  struct filter_ask *ask = arg;
  struct egw_call *call = egw_find(ask->worker, ask->ticket);

  note_mail(ask, false);
  if (call != NULL && call->phase == CALL_BELOW && !call->cancelled)
    answer(call, ask);
  ask_free(ask);
}

/* On the owner. */
static void
on_ask(void *arg)
{
  struct filter_ask *ask = arg;

  filters_answer(ask->hub, ask);
  if (egw_post(ask->worker, on_answer, ask) == 0)
    return;
  note_mail(ask, false);
  ask_free(ask);
}

/* --- the question ---------------------------------------------------------------------------------------- */

static void
ask_owner(struct egw_call *call, struct filter_ask *ask)
{
  struct egw_worker *owner = call->network->head->owner; /* the hub may not have begun yet */

  ask->worker = call->worker;
  ask->hub = call->network->hub;
  if (call->worker == owner) {
    filters_answer(ask->hub, ask);
    answer(call, ask);
    ask_free(ask);
    return;
  }
  ask->ticket = egw_ticket(call);
  note_mail(ask, true);
  if (ask->ticket != 0 && egw_post(owner, on_ask, ask) == 0)
    return;
  note_mail(ask, false);
  ask_free(ask);
  call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
  chain_reply(call);
}

static void
refuse(struct egw_call *call, struct filter_ask *ask, const char *why)
{
  ask_free(ask);
  egw_refuse(call, -32602, why);
  chain_reply(call);
}

/* Full transactions come only where a node pushes. */
static void
refuse_bodies(struct egw_call *call, struct filter_ask *ask)
{
  ask_free(ask);
  call_set_fault(call, RPC_FAULT_NO_PUSH, EGW_NOT_SENT, "no upstream sends bodies");
  chain_reply(call);
}

static bool
read_kind(const struct egw_call *call, enum filter_what *what, enum hub_kind *kind)
{
  static const struct { const char *name; enum filter_what what; enum hub_kind kind; } names[] = {
    { "eth_newFilter", FILTER_NEW, HUB_LOGS },
    { "eth_newBlockFilter", FILTER_NEW, HUB_HEADS },
    { "eth_newPendingTransactionFilter", FILTER_NEW, HUB_PENDING },
    { "eth_getFilterChanges", FILTER_CHANGES, HUB_HEADS },
    { "eth_getFilterLogs", FILTER_LOGS, HUB_HEADS },
    { "eth_uninstallFilter", FILTER_UNINSTALL, HUB_HEADS },
  };
  size_t i;

  if (call->info == NULL || call->info->method_class != EGW_CLASS_STATEFUL)
    return false;
  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(call->info->name, names[i].name) == 0) {
      *what = names[i].what;
      *kind = names[i].kind;
      return true;
    }
  return false;
}

/* The head is known, or need not be. */
static void
go(struct egw_call *call)
{
  struct filter_ask *ask = calloc(1, sizeof(*ask));
  struct egw_slice first = egw_json_element(call->params, 0);
  const char *why = NULL;
  long n = 0;

  if (ask == NULL) {
    call_set_fault(call, RPC_FAULT_INTERNAL, EGW_ABORTED, "out of memory");
    chain_reply(call);
    return;
  }
  list_init(&ask->node);
  (void)read_kind(call, &ask->what, &ask->kind);
  if (ask->what != FILTER_NEW) {
    n = egw_json_string(first, ask->id, sizeof(ask->id) - 1);
    if (egw_json_kind(first) != EGW_JSON_STRING) {
      refuse(call, ask, "the filter's id is missing");
      return;
    }
    ask->id[n < 0 ? 0 : n] = '\0'; /* too long: none of ours */
  } else if (ask->kind == HUB_LOGS) {
    ask->filter = log_filter_new(first, &why);
    ask->object = egw_buf_copy(first.ptr != NULL ? first : EGW_LIT("{}"));
    if (ask->filter == NULL || ask->object == NULL) {
      refuse(call, ask, why);
      return;
    }
  } else {
    ask->kind = ask->kind == HUB_PENDING && egw_json_kind(first) == EGW_JSON_TRUE ?
                    HUB_PENDING_FULL : ask->kind;
  }
  if (ask->kind == HUB_PENDING_FULL && !pending_any_pushes(call->network))
    refuse_bodies(call, ask);
  else
    ask_owner(call, ask);
}

bool
filters_take(struct egw_call *call)
{
  enum filter_what what;
  enum hub_kind kind;

  if (!read_kind(call, &what, &kind) || !network_serves_push(call->network))
    return false;
  if (what != FILTER_NEW) {
    go(call);
    return true;
  }
  if (!local_wait_head(call, go))
    chain_reply(call);
  return true;
}
