/* SPDX-License-Identifier: MIT */
/* The part of a session that is common to HTTP, WebSocket and IPC. */
#include <ethrpc-gw/middleware.h>
#include "listen/session.h"

#include <string.h>
#include "gateway/gateway.h"
#include "listen/parts.h"
#include "push/push.h"
#include "rpc/request.h"

#define WAITING_MAX 10000u  /* calls read ahead of those that run */
#define REQUESTS_TIMES 4u   /* and their text, in times of the largest request */

void
session_init(struct session *session, const struct session_ops *ops, enum client_kind kind,
             struct egw_worker *worker, struct listener *listener, struct network *network)
{
  memset(session, 0, sizeof *session);
  session->ops = ops;
  session->worker = worker;
  session->listener = listener;
  session->network = network;
  session->kind = kind;
  session->state = SESSION_OPEN;
  session->local = listener->local;
  /* Unique without anything shared: each worker counts in a residue class of its own. */
  session->number = worker->next_session++ * worker->count + worker->index;
  list_init(&session->requests);
  list_init(&session->subscriptions);
  list_init(&session->calls_waiting);
  if (listener->admin)
    return;
  worker->listen->sessions++;
  metric_add(&worker->metrics->sessions_opened[kind], 1);
}

bool
session_may_read(struct session *session)
{
  const struct conf_limits *limits = &session->listener->conf->limits;

  if (session->state != SESSION_OPEN)
    return false;
  if (session->calls_waiting_count < WAITING_MAX &&
      session->request_bytes / REQUESTS_TIMES < limits->max_request)
    return true;
  session->read_blocked = true;
  return false;
}

/* The bytes are there already, so the budget counts them whether it has room or not: it is what
 * comes next that is refused then. */
void
session_queue(struct session *session, size_t more, size_t less)
{
  struct budget *budget = &session->worker->gateway->budget;

  /* Pieces of an open answer may be sent before their producer has told of them. */
  if (less > session->queue_bytes + more)
    less = session->queue_bytes + more;
  session->queue_bytes += more;
  session->queue_bytes -= less;
  metric_add(&session->worker->metrics->queue_bytes, (int64_t)more - (int64_t)less);
  if (more > less)
    budget_force(budget, more - less);
  else if (less > more)
    budget_give(budget, less - more);
}

void
session_sent(struct session *session)
{
  if (session->state != SESSION_GONE)
    request_start_waiting(session);
  if (!session->read_blocked || session->state != SESSION_OPEN || !session_may_read(session))
    return;
  session->read_blocked = false;
  if (session->ops->ready != NULL)
    session->ops->ready(session);
}

void
session_gone(struct session *session)
{
  struct egw_worker *worker = session->worker;

  if (session->state == SESSION_GONE)
    return;
  session->state = SESSION_GONE;
  request_cancel_all(session);
  push_session_gone(session);
  if (session->listener->admin)
    return;
  worker->listen->sessions--;
  metric_add(&worker->metrics->sessions_closed[session->kind], 1);
}

void
session_client(const struct session *session, struct egw_client *out)
{
  static const char *const names[CLIENT_KINDS] = { "http", "ws", "ipc", "internal" };
  const struct client_facts *facts = session->facts;

  *out = (struct egw_client){
    .transport = names[session->kind],
    .peer = session->peer,
    .listener = session->listener->name,
    .local = session->local,
    .session = session->number,
    .uid = session->has_uid ? (int64_t)session->uid : -1,
  };
  if (facts == NULL)
    return;
  out->path_key = facts->path_key;
  if (facts->forwarded)
    out->local = false;
  if (facts->peer[0] != '\0')
    out->peer = facts->peer;
}
