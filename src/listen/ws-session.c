/* SPDX-License-Identifier: MIT */
/* One WebSocket connection: its states, timers, and what the core asks of it.
 *
 *   HANDSHAKE -> OPEN -> CLOSING -> CLOSE_SENT -> (freed when lws lets go)
 *                  |________|___________|____-> DEAD -> (freed)
 *
 * What others ask from within their own callbacks (answers, events, its end) is done by the
 * job, later in the same turn: answers of one turn leave together, and a session never ends
 * under its caller. */
#include "listen/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "listen/facts.h"

static struct ws_session *
of_session(struct session *session)
{
  return container_of(session, struct ws_session, session);
}

static const struct conf_limits *
limits_of(const struct ws_session *s)
{
  return &s->session.listener->conf->limits;
}

void
ws_session_run_soon(struct ws_session *s)
{
  worker_run_soon(s->session.worker, &s->job);
}

void
ws_session_read(struct ws_session *s, bool on)
{
  s->blocked = !on;
  lws_rx_flow_control(s->wsi, on ? 1 : 0);
}

/* --- the end -------------------------------------------------------------------------- */

/* The core must not know the session any more. What was queued is dropped. */
static void
leave_core(struct ws_session *s)
{
  if (s->session.state == SESSION_GONE)
    return;
  stream_detach(&s->stream);
  session_gone(&s->session);
  stream_clear(&s->stream);
  ws_receive_drop(s);
  s->stall.due = 0;
  s->message_due = 0;
}

void
ws_session_close(struct ws_session *s, int code, const char *reason, bool abrupt)
{
  if (s->state == WS_OPEN && (s->code == 0 || (abrupt && !s->abrupt))) {
    s->code = code;
    s->abrupt = abrupt;
    snprintf(s->reason, sizeof(s->reason), "%s", reason == NULL ? "" : reason);
  }
  ws_session_run_soon(s);
}

void
ws_session_left(struct ws_session *s)
{
  leave_core(s);
  s->state = WS_CLOSE_SENT;
  s->end_due = egw_now_ms(s->session.worker) + limits_of(s)->write_timeout;
  ws_session_arm(s);
}

/* From the job: the close handshake (RFC 6455 7.1.2). Frames of the client are still read, for
 * its close frame is among them. */
static void
begin_closing(struct ws_session *s)
{
  egw_log(EGW_DEBUG, "ws", "session %llu: closing with %d: %s",
          (unsigned long long)s->session.number, s->code, s->reason);
  leave_core(s);
  s->state = WS_CLOSING;
  s->end_due = egw_now_ms(s->session.worker) + limits_of(s)->write_timeout;
  ws_session_read(s, true);
}

void
ws_session_kill(struct ws_session *s)
{
  if (s->state == WS_DEAD)
    return;
  s->state = WS_DEAD;
  ws_session_run_soon(s);
}

/* From the job: lws finds out by itself that the socket is dead, and closes. What a client
 * that does not read has not taken is dropped by the kernel too. */
static void
die(struct ws_session *s)
{
  struct linger none = { .l_onoff = 1, .l_linger = 0 };
  int fd = lws_get_socket_fd(s->wsi);

  leave_core(s);
  worker_timer_stop(s->session.worker, &s->timer);
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
  shutdown(fd, SHUT_RDWR);
  ws_session_read(s, true);
  lws_callback_on_writable(s->wsi);
}

void
ws_session_closed(struct ws_session *s)
{
  s->state = WS_DEAD;
  leave_core(s);
  worker_timer_stop(s->session.worker, &s->timer);
  list_remove(&s->job.node);
  s->wsi = NULL;
}

void
ws_session_free(struct ws_session *s)
{
  ws_session_closed(s);
  list_remove(&s->node);
  peer_release(s->session.listener, &s->peer);
  free((void *)(uintptr_t)s->session.facts); /* its own: see ws_session_new() */
  free(s);
}

void
ws_session_drain(struct ws_session *s)
{
  if (s->state != WS_OPEN)
    return;
  if (s->session.state == SESSION_OPEN)
    s->session.state = SESSION_DRAINING;
  ws_session_read(s, false);
  ws_session_run_soon(s);
}

/* --- timer ---------------------------------------------------------------------------- */

static void
earlier(uint64_t *due, uint64_t other)
{
  if (other != 0 && (*due == 0 || other < *due))
    *due = other;
}

/* When the client's silence is to be looked at. */
static uint64_t
ping_due(const struct ws_session *s)
{
  uint64_t interval = limits_of(s)->ping_interval;

  if (interval == 0 || s->state != WS_OPEN)
    return 0;
  return (s->pinged > s->heard ? s->pinged : s->heard) + interval;
}

void
ws_session_arm(struct ws_session *s)
{
  uint64_t now = egw_now_ms(s->session.worker), due = s->end_due;

  if (s->state == WS_DEAD)
    return;
  earlier(&due, ping_due(s));
  earlier(&due, s->message_due);
  earlier(&due, s->stall.due);
  if (due == 0)
    worker_timer_stop(s->session.worker, &s->timer);
  else if (!wheel_armed(&s->timer) || s->timer.due > due)
    worker_timer_start(s->session.worker, &s->timer, due > now ? due - now : 1);
}

/* A client that has not been heard of for an interval is asked, and cut after another one.
 * While nothing is read from it, its answer could not be seen. */
static bool
silent(struct ws_session *s, uint64_t now)
{
  uint64_t due = ping_due(s);

  if (due == 0 || now < due)
    return false;
  if (s->pinged > s->heard && !s->blocked)
    return true;
  s->pinged = now;
  s->ping_wanted = true;
  ws_session_run_soon(s);
  return false;
}

static void
on_timer(struct wheel_timer *timer)
{
  struct ws_session *s = container_of(timer, struct ws_session, timer);
  uint64_t now = egw_now_ms(s->session.worker);
  metric_cell *refused = s->session.worker->metrics->refused;

  if (s->end_due != 0 && now >= s->end_due) {
    if (s->state == WS_HANDSHAKE)
      metric_add(&refused[REFUSED_TIMEOUT], 1);
    ws_session_kill(s);
  } else if (stall_over(&s->stall, &s->stream, lws_get_socket_fd(s->wsi))) {
    metric_add(&refused[REFUSED_SLOW_READER], 1);
    ws_session_kill(s);
  } else if (silent(s, now)) {
    egw_log(EGW_DEBUG, "ws", "session %llu: no pong", (unsigned long long)s->session.number);
    ws_session_kill(s);
  } else if (ws_receive_late(s, now)) {
    metric_add(&refused[REFUSED_TIMEOUT], 1);
    ws_session_close(s, LWS_CLOSE_STATUS_POLICY_VIOLATION, "message too slow", true);
  } else {
    ws_session_arm(s);
  }
}

/* --- operations ----------------------------------------------------------------------- */

/* Whether the session is to be closed now. */
static bool
wants_close(struct ws_session *s)
{
  if (s->code != 0)
    return s->abrupt || stream_empty(&s->stream);
  if (s->session.state != SESSION_DRAINING || s->pending > 0 || !stream_empty(&s->stream))
    return false;
  s->code = LWS_CLOSE_STATUS_GOINGAWAY;
  snprintf(s->reason, sizeof(s->reason), "going away");
  return true;
}

static void
on_job(struct worker_job *job)
{
  struct ws_session *s = container_of(job, struct ws_session, job);

  if (s->wsi == NULL || s->state == WS_HANDSHAKE)
    return;
  if (s->state == WS_OPEN && s->code != 0 && s->abrupt)
    begin_closing(s);
  if (s->state != WS_DEAD && ws_flush(s, false) != 0)
    s->state = WS_DEAD;
  if (s->state == WS_OPEN && wants_close(s)) {
    begin_closing(s);
    ws_session_run_soon(s);
  }
  if (s->state == WS_DEAD)
    die(s);
  else
    ws_session_arm(s);
}

static void
on_wake(struct stream *stream)
{
  ws_session_run_soon(container_of(stream, struct ws_session, stream));
}

static void
op_reply(struct session *session, void *cookie, struct out *out)
{
  struct ws_session *s = of_session(session);

  (void)cookie;
  s->pending--;
  if (out != NULL)
    stream_add(&s->stream, out, false);
  ws_session_run_soon(s);
}

static void
op_push(struct session *session, struct out *out)
{
  struct ws_session *s = of_session(session);

  if (s->code == 0 && stream_full(&s->stream, out->bytes, limits_of(s)->max_queue)) {
    metric_add(&session->worker->metrics->refused[REFUSED_SLOW_READER], 1);
    ws_session_close(s, 1013, "too many events wait for the client to read", true);
  }
  if (s->state == WS_OPEN && s->code == 0)
    stream_add(&s->stream, out, true);
  else
    out_free(out);
}

static void
op_ready(struct session *session)
{
  struct ws_session *s = of_session(session);

  if (s->state == WS_OPEN && s->blocked && session->state == SESSION_OPEN)
    ws_session_read(s, true);
}

static void
op_close(struct session *session, bool now, int ws_code, const char *reason)
{
  ws_session_close(of_session(session), ws_code, reason, now);
}

static const struct session_ops ws_ops = {
  .reply = op_reply,
  .push = op_push,
  .ready = op_ready,
  .close = op_close,
};

/* --- the beginning -------------------------------------------------------------------- */

struct ws_session *
ws_session_new(struct ws_server *server, struct listener *listener, struct peer *peer,
               struct network *network, const struct client_facts *facts)
{
  struct egw_worker *worker = server->lw->worker;
  struct ws_session *s = calloc(1, sizeof(*s));
  void *kept = facts_empty(facts) ? NULL : malloc(facts_size(facts));

  if (s == NULL || (kept == NULL && !facts_empty(facts))) {
    free(kept);
    free(s);
    return NULL;
  }
  s->server = server;
  s->peer = *peer;
  peer->counted = false; /* its place is the session's now */
  s->job.fn = on_job;
  list_init(&s->job.node);
  s->timer.fn = on_timer;
  list_init(&s->timer.node);
  session_init(&s->session, &ws_ops, CLIENT_WS, worker, listener, network);
  snprintf(s->session.peer, sizeof(s->session.peer), "%s", s->peer.text);
  if (kept != NULL)
    s->session.facts = facts_copy(kept, facts);
  stream_init(&s->stream, &s->session, on_wake, (struct egw_slice){ NULL, 0 });
  list_append(&server->sessions, &s->node);
  s->end_due = egw_now_ms(worker) + listener->conf->limits.handshake_timeout;
  ws_session_arm(s);
  return s;
}

void
ws_session_established(struct ws_session *s)
{
  s->state = WS_OPEN;
  s->end_due = 0;
  s->heard = egw_now_ms(s->session.worker);
  egw_log(EGW_DEBUG, "ws", "%s: session %llu of %s", s->session.listener->name,
          (unsigned long long)s->session.number, s->session.peer);
  ws_session_arm(s);
  if (s->server->draining)
    ws_session_drain(s);
}
