/* SPDX-License-Identifier: MIT */
/* Connections of multiplexed transports: where messages end, whose they are, and what happens to
 * what was in flight when one breaks. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "push/push.h"
#include "upstream/parts.h"

/* A long reply whose reader is slow pauses the whole connection. What else is in flight on it does
 * not wait longer than this: it is asked again elsewhere, if it may be. */
#define HELD_UP_MS 50u

/* Bytes of broken input to skip while looking for the next line: far beyond any one message. */
#define SKIP_MAX (UINT64_C(1) << 30)

static void
on_held_up(struct wheel_timer *timer)
{
  struct egw_conn *conn = container_of(timer, struct egw_conn, held_up);
  struct list *node, *tmp;

  if (!conn->paused)
    return;
  list_for_each_safe(node, tmp, &conn->bound) {
    struct egw_xchg *xchg = container_of(node, struct egw_xchg, conn_node);

    if (xchg != conn->current && xchg->idempotent && !xchg->subscribing)
      xchg_finish(xchg, EGW_ABORTED, "held up behind a slow reader");
  }
}

struct egw_conn *
egw_conn_new(struct egw_link *link)
{
  size_t at = (sizeof(struct egw_conn) + 15) / 16 * 16;
  struct egw_conn *conn = calloc(1, at + link->upstream->transport->conn_size);

  if (conn == NULL)
    return NULL;
  conn->state = (char *)conn + at;
  conn->link = link;
  conn->held_up.fn = on_held_up;
  list_init(&conn->bound);
  list_init(&conn->subscriptions);
  list_init(&conn->early);
  list_append(&link->conns, &conn->node);
  metric_add(&link->metrics.connects, 1);
  return conn;
}

void *
egw_conn_state(const struct egw_conn *conn)
{
  return conn->state;
}

struct egw_link *
egw_conn_link(const struct egw_conn *conn)
{
  return conn->link;
}

unsigned
egw_conn_in_flight(const struct egw_conn *conn)
{
  return conn->in_flight;
}

/* --- binding -------------------------------------------------------------------------------- */

void
egw_xchg_bind(struct egw_xchg *xchg, struct egw_conn *conn)
{
  struct egw_link *link = xchg->link;

  if (u64map_put(&link->by_id, xchg->id, xchg) < 0) {
    /* Its reply can't be matched; the time-out will end it. */
    egw_log(EGW_ERROR, "upstream", "out of memory: a reply of %s will be lost",
            link->upstream->name);
    return;
  }
  xchg->conn = conn;
  list_append(&conn->bound, &xchg->conn_node);
  conn->in_flight++;
  if (xchg->subscribing)
    conn->subscribing++;
}

void
egw_xchg_sent(struct egw_xchg *xchg)
{
  xchg->sent = true;
}

void
conn_forget(struct egw_xchg *xchg)
{
  struct egw_conn *conn = xchg->conn;

  if (conn == NULL)
    return;
  u64map_take(&xchg->link->by_id, xchg->id);
  list_remove(&xchg->conn_node);
  conn->in_flight--;
  if (conn->current != xchg)
    return;
  conn->current = NULL;
  if (conn->in.state != INBOUND_COMPLETE && conn->in.state != INBOUND_BAD) {
    inbound_end(&conn->in, conn->link->worker->gateway);
    conn->in.state = INBOUND_DISCARD;
  }
  if (conn->paused) {
    conn->paused = false;
    conn->resume.fn = conn_resume;
    worker_run_soon(conn->link->worker, &conn->resume);
  }
}

void
conn_subscribing_over(struct egw_conn *conn)
{
  if (--conn->subscribing == 0)
    push_early_drop(conn);
}

/* --- messages ------------------------------------------------------------------------------- */

static void
end_exchange(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  xchg->conn->current = NULL;
  xchg_complete(xchg, outcome, why);
}

static struct egw_xchg *
find(struct egw_conn *conn, uint64_t id)
{
  struct egw_xchg *xchg = u64map_get(&conn->link->by_id, id);

  return xchg != NULL && xchg->conn == conn ? xchg : NULL;
}

/* A complete message: a reply to somebody, or an event. Anything else is dropped: a node may send
 * what it likes, and the exchange that misses its reply has a time-out. */
static void
take_message(struct egw_conn *conn)
{
  struct egw_xchg *xchg = conn->current;
  struct rpc_reply reply;

  inbound_judge(&conn->in, &reply);
  if (reply.kind == RPC_REPLY_PUSH && conn->in.buf != NULL) {
    push_event(conn, conn->in.buf, reply.method, reply.body);
  } else {
    if (xchg == NULL && reply.has_id)
      xchg = find(conn, reply.id);
    if (xchg != NULL) {
      xchg->reply = &conn->in;
      end_exchange(xchg, EGW_OK, NULL);
    } else {
      egw_log(EGW_DEBUG, "upstream", "%s: a message that is no reply to anything",
              conn->link->upstream->name);
    }
  }
  conn->current = NULL;
  inbound_end(&conn->in, conn->link->worker->gateway);
  conn->phase = CONN_BETWEEN;
}

static void
begin_message(struct egw_conn *conn)
{
  inbound_begin(&conn->in);
  conn->current = NULL;
  conn->id_known = false;
  conn->phase = CONN_MESSAGE;
}

/* As soon as the id is complete the message has an owner; one without is not kept. */
static void
find_owner(struct egw_conn *conn)
{
  uint64_t id;

  if (conn->id_known || !rpc_reply_early_id(&conn->in.parser, NULL, &id))
    return;
  conn->id_known = true;
  conn->current = find(conn, id);
  if (conn->current != NULL)
    conn->current->reply = &conn->in;
  else if (conn->in.state == INBOUND_COLLECT) {
    inbound_end(&conn->in, conn->link->worker->gateway);
    conn->in.state = INBOUND_DISCARD;
  }
}

/* The message broke or is over a limit: its owner, if known, hears of it now. */
static void
report_fault(struct egw_conn *conn)
{
  if (conn->current == NULL || (conn->in.fault == RPC_FAULT_NONE && conn->in.state != INBOUND_BAD))
    return;
  end_exchange(conn->current, EGW_BAD_REPLY, conn->in.why);
  conn->in.fault = RPC_FAULT_NONE;
}

/* Feeds bytes of the current message. 0: go on, 1: pause. */
static int
feed(struct egw_conn *conn, const char *bytes, size_t len, size_t *used)
{
  struct inbound *in = &conn->in;

  inbound_feed(in, conn->link, conn->current, bytes, len, used);
  find_owner(conn);
  report_fault(conn);
  if (in->state == INBOUND_BAD) {
    inbound_end(in, conn->link->worker->gateway);
    conn->phase = CONN_SKIP;
    conn->skipped = 0;
  } else if (in->state == INBOUND_COMPLETE) {
    take_message(conn);
  } else if (conn->current != NULL && xchg_after_feed(conn->current) != 0) {
    conn->paused = true;
    worker_timer_start(conn->link->worker, &conn->held_up, HELD_UP_MS);
    return 1;
  }
  return 0;
}

/* --- bytes: values back to back ------------------------------------------------------------ */

/* Skips to the end of the line; *used: what was skipped. */
static int
skip_line(struct egw_conn *conn, const char *bytes, size_t len, size_t *used)
{
  const char *end = memchr(bytes, '\n', len);

  *used = end != NULL ? (size_t)(end - bytes) + 1 : len;
  conn->skipped += *used;
  if (end != NULL)
    conn->phase = CONN_BETWEEN;
  return conn->skipped > SKIP_MAX ? -1 : 0;
}

static size_t
skip_space(const char *bytes, size_t len)
{
  size_t i = 0;

  while (i < len && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t'))
    i++;
  return i;
}

static int
stream_data(struct egw_conn *conn, const char *bytes, size_t len)
{
  while (len != 0) {
    size_t used = 0;
    int rc = 0;

    if (conn->phase == CONN_BETWEEN) {
      used = skip_space(bytes, len);
      if (used < len)
        begin_message(conn);
    } else if (conn->phase == CONN_SKIP) {
      rc = skip_line(conn, bytes, len, &used);
    } else {
      rc = feed(conn, bytes, len, &used);
    }
    if (rc != 0)
      return rc;
    bytes += used;
    len -= used;
  }
  return 0;
}

/* --- bytes: framed messages ------------------------------------------------------------------- */

static int
framed_data(struct egw_conn *conn, const char *bytes, size_t len, unsigned flags)
{
  size_t used = 0;
  int rc = 0;

  if ((flags & EGW_CONN_FIRST) != 0)
    begin_message(conn);
  if (conn->phase == CONN_MESSAGE && len != 0)
    rc = feed(conn, bytes, len, &used);
  /* What follows a complete value in its frame is ignored, as is the rest of a broken one. */
  if ((flags & EGW_CONN_LAST) == 0)
    return rc;
  if (conn->phase == CONN_MESSAGE) {
    if (conn->current != NULL)
      end_exchange(conn->current, EGW_BAD_REPLY, "the message ended early");
    inbound_end(&conn->in, conn->link->worker->gateway);
  }
  conn->phase = CONN_BETWEEN;
  return 0;
}

int
egw_conn_data(struct egw_conn *conn, const char *bytes, size_t len, unsigned flags)
{
  metric_add(&conn->link->metrics.bytes_in, (int64_t)len);
  if ((flags & EGW_CONN_STREAM) != 0)
    return stream_data(conn, bytes, len);
  return framed_data(conn, bytes, len, flags);
}

void
conn_resume(struct worker_job *job)
{
  struct egw_conn *conn = container_of(job, struct egw_conn, resume);

  conn->link->upstream->transport->more(conn->link, NULL, conn);
}

void
egw_conn_lost(struct egw_conn *conn, const char *why)
{
  struct egw_xchg *current = conn->current;
  struct list *node;

  worker_timer_stop(conn->link->worker, &conn->held_up);
  conn->paused = false;
  conn->current = NULL;
  while ((node = conn->bound.next) != &conn->bound) {
    struct egw_xchg *xchg = container_of(node, struct egw_xchg, conn_node);
    enum egw_outcome outcome = xchg->sent ? EGW_MAYBE_SENT : EGW_NOT_SENT;

    xchg_complete(xchg, xchg == current ? EGW_BAD_REPLY : outcome, why);
  }
  push_conn_lost(conn);
  strmap_free(&conn->by_subscription);
  inbound_end(&conn->in, conn->link->worker->gateway);
  list_remove(&conn->node);
  if (conn->resume.node.next != NULL)
    list_remove(&conn->resume.node);
  metric_add(&conn->link->metrics.disconnects, 1);
  free(conn);
}
