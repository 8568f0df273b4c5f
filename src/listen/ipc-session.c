/* SPDX-License-Identifier: MIT */
/* One IPC connection: JSON values in, one line for each answer out.
 *
 * The socket is always polled for something, so that a client that is gone is noticed also
 * while nothing is read from it (EPOLLHUP comes unasked). What others ask of a session from
 * within their own callbacks (answers, events, its end) is done by its job, later in the same
 * turn: so answers of one turn leave together, and a session never disappears under its
 * caller. */
#include "listen/ipc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gateway/gateway.h"
#include "rpc/envelope.h"

#define IPC_IOV 64

static struct ipc_session *
of_session(struct session *session)
{
  return container_of(session, struct ipc_session, session);
}

static const struct conf_limits *
limits_of(const struct ipc_session *s)
{
  return &s->session.listener->conf->limits;
}

static struct metrics *
metrics_of(const struct ipc_session *s)
{
  return s->session.worker->metrics;
}

static void
run_soon(struct ipc_session *s)
{
  if (s->state != IPC_CLOSED)
    worker_run_soon(s->session.worker, &s->job);
}

/* --- the end -------------------------------------------------------------------------- */

static void
on_closed(uv_handle_t *handle)
{
  struct ipc_session *s = handle->data;
  struct ipc_server *server = s->server;

  frame_free(&s->frame);
  free(s);
  ipc_handle_gone(server);
}

/* The connection is over: nobody may use the session after this. */
static void
close_now(struct ipc_session *s)
{
  if (s->state == IPC_CLOSED)
    return;
  s->state = IPC_CLOSED;
  worker_timer_stop(s->session.worker, &s->timer);
  stream_detach(&s->stream);
  session_gone(&s->session);
  stream_clear(&s->stream);
  list_remove(&s->job.node);
  list_remove(&s->node);
  uv_close((uv_handle_t *)&s->poll, on_closed);
  close(s->fd);
  peer_release(s->session.listener, &s->peer);
}

void
ipc_session_cut(struct ipc_session *s)
{
  close_now(s);
}

/* Reads no more. What is in flight is still answered. */
static void
begin_ending(struct ipc_session *s)
{
  if (s->state != IPC_OPEN)
    return;
  s->state = IPC_ENDING;
  if (s->session.state == SESSION_OPEN)
    s->session.state = SESSION_DRAINING;
  s->value_due = 0;
  frame_free(&s->frame);
  run_soon(s);
}

void
ipc_session_drain(struct ipc_session *s)
{
  begin_ending(s);
}

/* --- timer ---------------------------------------------------------------------------- */

static void
arm_timer(struct ipc_session *s)
{
  uint64_t now = egw_now_ms(s->session.worker), due = s->value_due;

  if (s->stall.due != 0 && (due == 0 || s->stall.due < due))
    due = s->stall.due;
  if (due == 0)
    worker_timer_stop(s->session.worker, &s->timer);
  else if (!wheel_armed(&s->timer) || s->timer.due > due)
    worker_timer_start(s->session.worker, &s->timer, due > now ? due - now : 1);
}

static void
on_timer(struct wheel_timer *timer)
{
  struct ipc_session *s = container_of(timer, struct ipc_session, timer);
  uint64_t now = egw_now_ms(s->session.worker);

  if (s->value_due != 0 && now >= s->value_due) {
    metric_add(&metrics_of(s)->refused[REFUSED_TIMEOUT], 1);
    egw_log(EGW_DEBUG, "ipc", "session %llu: an unfinished request took too long",
            (unsigned long long)s->session.number);
    close_now(s);
  } else if (stall_over(&s->stall, &s->stream, s->fd)) {
    metric_add(&metrics_of(s)->refused[REFUSED_SLOW_READER], 1);
    egw_log(EGW_DEBUG, "ipc", "session %llu: the client does not read",
            (unsigned long long)s->session.number);
    close_now(s);
  } else {
    arm_timer(s);
  }
}

/* --- polling -------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void
set_events(struct ipc_session *s)
{
  int events = UV_PRIORITIZED; /* for EPOLLHUP; a unix socket has no urgent data */

  if (s->state == IPC_CLOSED)
    return;
  if (s->state == IPC_OPEN && !s->blocked)
    events |= UV_READABLE;
  if (s->choked)
    events |= UV_WRITABLE;
  if (events == s->events)
    return;
  s->events = events;
  uv_poll_start(&s->poll, events, on_poll);
}

/* --- output --------------------------------------------------------------------------- */

/* Gathers the oldest bytes: of one message, and of those behind it if they are whole. */
static unsigned
gather(struct ipc_session *s, struct iovec *iov, unsigned max)
{
  const struct out *out = stream_next(&s->stream);
  unsigned n = 0, some;

  if (out == NULL || out->aborted)
    return 0;
  for (;;) {
    some = out_peek(out, iov + n, max - n);
    n += some;
    if (n == max || some < out->count || out->open || out->node.next == &s->stream.outs)
      return n;
    out = container_of(out->node.next, struct out, node);
    if (out->open || out->aborted)
      return n;
  }
}

/* Takes `n` sent bytes off, in the order of gather(). */
static void
take_sent(struct ipc_session *s, size_t n)
{
  while (n > 0) {
    struct out *out = stream_next(&s->stream);
    size_t part = n < out->bytes ? n : out->bytes;

    n -= part;
    stream_consume(&s->stream, out, part);
    if (out->bytes == 0 && !out->open)
      stream_end(&s->stream, out);
  }
}

/* Sends once. Bytes; 0: nothing to send or the socket is full; -1: the connection is over. */
static ssize_t
send_some(struct ipc_session *s)
{
  struct iovec iov[IPC_IOV];
  struct msghdr message = { .msg_iov = iov, .msg_iovlen = gather(s, iov, IPC_IOV) };
  ssize_t sent;

  if (message.msg_iovlen == 0)
    return 0;
  do
    sent = sendmsg(s->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    s->choked = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
    return s->choked ? 0 : -1;
  }
  metric_add(&metrics_of(s)->bytes_out[CLIENT_IPC], sent);
  take_sent(s, (size_t)sent);
  return sent;
}

/* A message was cut: the client must not wait for its rest, nor take what it has for whole. */
static bool
next_is_cut(struct ipc_session *s)
{
  const struct out *out = stream_next(&s->stream);

  return out != NULL && out->aborted;
}

static void
flush(struct ipc_session *s)
{
  size_t total = 0;
  ssize_t sent = 0;

  while (!s->choked && total < IPC_WRITE && (sent = send_some(s)) > 0)
    total += (size_t)sent;
  if (sent < 0 || next_is_cut(s)) {
    close_now(s);
    return;
  }
  if (s->session.queue_bytes > 0 && total >= IPC_WRITE)
    s->choked = true; /* enough for this turn; the loop will say at once that there is room */
  stall_note(&s->stall, &s->stream, s->fd, total > 0);
  if (total > 0)
    session_sent(&s->session);
}

/* --- input ---------------------------------------------------------------------------- */

static void
answer_fault(struct ipc_session *s, enum rpc_fault fault)
{
  struct out *out = stream_fault(fault);

  if (out == NULL)
    s->cut = true;
  else
    stream_add(&s->stream, out, false);
  run_soon(s);
}

static void
start_request(struct ipc_session *s, struct egw_buf *text)
{
  s->pending++;
  if (request_start(&s->session, NULL, text, NULL) == NULL) {
    s->pending--;
    answer_fault(s, RPC_FAULT_INTERNAL);
  }
}

static void
deal_with(struct ipc_session *s, enum frame_found found, struct egw_buf *text)
{
  metric_cell *refused = metrics_of(s)->refused;

  switch (found) {
  case FRAME_MORE:
    return;
  case FRAME_VALUE:
    start_request(s, text);
    break;
  case FRAME_BROKEN:
    answer_fault(s, RPC_FAULT_PARSE);
    break;
  case FRAME_OVERLOADED:
    metric_add(&refused[REFUSED_OVERLOAD], 1);
    answer_fault(s, RPC_FAULT_OVERLOADED);
    break;
  case FRAME_TOO_LARGE:
    metric_add(&refused[REFUSED_SIZE], 1);
    answer_fault(s, RPC_FAULT_REQUEST_TOO_LARGE);
    begin_ending(s);
    break;
  case FRAME_LOST:
    begin_ending(s);
    break;
  case FRAME_NO_MEMORY:
    s->cut = true;
    run_soon(s);
    break;
  }
  if (s->state == IPC_OPEN && !session_may_read(&s->session))
    s->blocked = true;
}

/* Starts the requests among the bytes at hand, as far as may be. */
static void
process(struct ipc_session *s)
{
  enum frame_found found = FRAME_VALUE;

  while (s->state == IPC_OPEN && !s->blocked && !s->cut && found != FRAME_MORE) {
    struct egw_buf *text = NULL;

    found = frame_next(&s->frame, &text);
    if (found != FRAME_MORE)
      s->value_due = 0;
    deal_with(s, found, text);
  }
  if (s->state != IPC_OPEN)
    return;
  if (s->blocked)
    frame_keep(&s->frame);
  if (s->blocked || !frame_unfinished(&s->frame))
    s->value_due = 0;
  else if (s->value_due == 0)
    s->value_due = egw_now_ms(s->session.worker) + limits_of(s)->body_timeout;
}

/* The client has sent its last byte. It may have gone altogether, or be waiting for answers.
 */
static void
at_end_of_input(struct ipc_session *s)
{
  struct pollfd pollfd = { .fd = s->fd };
  struct egw_buf *text = NULL;
  enum frame_found found;

  if (poll(&pollfd, 1, 0) > 0 && (pollfd.revents & (POLLHUP | POLLERR)) != 0) {
    close_now(s);
    return;
  }
  found = frame_finish(&s->frame, &text);
  deal_with(s, found, text);
  begin_ending(s);
}

static void
read_some(struct ipc_session *s)
{
  char *bytes = s->server->read_buffer;
  ssize_t n = read(s->fd, bytes, IPC_READ);

  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR)
      close_now(s);
    return;
  }
  if (n == 0) {
    at_end_of_input(s);
    return;
  }
  metric_add(&metrics_of(s)->bytes_in[CLIENT_IPC], n);
  frame_feed(&s->frame, bytes, (size_t)n);
  process(s);
}

static void
on_poll(uv_poll_t *poll_handle, int status, int events)
{
  struct ipc_session *s = poll_handle->data;

  if (status < 0) {
    close_now(s);
    return;
  }
  if ((events & UV_WRITABLE) != 0)
    s->choked = false;
  if ((events & UV_READABLE) != 0 && s->state == IPC_OPEN && !s->blocked)
    read_some(s);
  else if ((events & UV_PRIORITIZED) != 0)
    close_now(s); /* the client is gone */
  run_soon(s);
}

/* --- operations ----------------------------------------------------------------------- */

static void
on_job(struct worker_job *job)
{
  struct ipc_session *s = container_of(job, struct ipc_session, job);

  if (s->resumed && !s->cut) {
    s->resumed = false;
    process(s);
  }
  if (s->cut) {
    close_now(s);
    return;
  }
  flush(s);
  if (s->state == IPC_ENDING && s->pending == 0 && stream_empty(&s->stream))
    close_now(s);
  if (s->state == IPC_CLOSED)
    return;
  set_events(s);
  arm_timer(s);
}

static void
on_wake(struct stream *stream)
{
  run_soon(container_of(stream, struct ipc_session, stream));
}

static void
op_reply(struct session *session, void *cookie, struct out *out)
{
  struct ipc_session *s = of_session(session);

  (void)cookie;
  s->pending--;
  if (out != NULL)
    stream_add(&s->stream, out, false);
  run_soon(s);
}

static void
op_push(struct session *session, struct out *out)
{
  struct ipc_session *s = of_session(session);

  if (s->cut || stream_full(&s->stream, out->bytes, limits_of(s)->max_queue)) {
    if (!s->cut)
      metric_add(&metrics_of(s)->refused[REFUSED_SLOW_READER], 1);
    s->cut = true;
    out_free(out);
    run_soon(s);
    return;
  }
  stream_add(&s->stream, out, true);
}

static void
op_ready(struct session *session)
{
  struct ipc_session *s = of_session(session);

  if (!s->blocked)
    return;
  s->blocked = false;
  s->resumed = true;
  run_soon(s);
}

static void
op_close(struct session *session, bool now, int ws_code, const char *reason)
{
  struct ipc_session *s = of_session(session);

  (void)ws_code;
  egw_log(EGW_DEBUG, "ipc", "session %llu: %s", (unsigned long long)session->number,
          reason == NULL ? "closed" : reason);
  if (now)
    s->cut = true;
  else
    begin_ending(s);
  run_soon(s);
}

static const struct session_ops ipc_ops = {
  .reply = op_reply,
  .push = op_push,
  .ready = op_ready,
  .close = op_close,
};

/* --- the beginning -------------------------------------------------------------------- */

static struct ipc_session *
new_session(struct ipc_server *server, struct listener *listener, int fd,
            const struct peer *peer, struct network *network)
{
  struct egw_worker *worker = server->lw->worker;
  struct ipc_session *s = calloc(1, sizeof(*s));

  if (s == NULL)
    return NULL;
  if (uv_poll_init(&worker->loop, &s->poll, fd) != 0) {
    free(s);
    return NULL;
  }
  s->server = server;
  s->fd = fd;
  s->peer = *peer;
  s->poll.data = s;
  s->job.fn = on_job;
  list_init(&s->job.node);
  s->timer.fn = on_timer;
  list_init(&s->timer.node);
  session_init(&s->session, &ipc_ops, CLIENT_IPC, worker, listener, network);
  snprintf(s->session.peer, sizeof(s->session.peer), "%s", peer->text);
  s->session.has_uid = peer->has_uid;
  s->session.uid = peer->uid;
  frame_init(&s->frame, RPC_CLIENT_DEPTH, listener->conf->limits.max_request,
             &worker->gateway->budget);
  stream_init(&s->stream, &s->session, on_wake, EGW_LIT("\n"));
  return s;
}

void
ipc_session_open(struct ipc_server *server, struct listener *listener, int fd,
                 const struct peer *peer)
{
  struct network *network = gateway_network(server->lw->worker->gateway, "/", 1);
  struct ipc_session *s = NULL;
  struct peer held = *peer;

  if (network != NULL)
    s = new_session(server, listener, fd, peer, network);
  if (s == NULL) {
    close(fd);
    peer_release(listener, &held);
    return;
  }
  list_append(&server->sessions, &s->node);
  server->handles++;
  set_events(s);
}
