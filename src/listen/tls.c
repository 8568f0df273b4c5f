/* SPDX-License-Identifier: MIT */
/* TLS connections: handshake, first head, pump. See tls.h.
 *
 * The pump has one buffer for each direction and reads into it only when it is empty: a side
 * that does not read makes the other one wait, and a connection's memory is bounded. */
#include "listen/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "listen/door.h"
#include "listen/gate.h"

#define BUFFER GATE_HEAD_MAX
#define PUMP_TURN 16          /* buffers moved for one connection in one turn */

enum tls_state {
  TLS_HANDSHAKE,
  TLS_HEAD,       /* the first request head is awaited */
  TLS_PUMP,       /* between the client and the server's end of the socket pair */
  TLS_LAST,       /* only what is in `out` is still to be sent */
  TLS_GONE        /* waits for the loop to let go of the handles */
};

struct pipe_buffer {
  size_t from, to;             /* the bytes that wait */
  char bytes[BUFFER];
};

struct tls_conn {
  struct list node;
  struct tls_door *door;
  struct listener *listener;
  struct peer peer;
  enum tls_state state;
  SSL *ssl;
  int fd, inner;               /* the client's socket; our end of the pair, -1: none */
  uv_poll_t poll, inner_poll;
  int events, inner_events;    /* polled now */
  unsigned handles;
  bool want_write;             /* OpenSSL can't go on before the socket takes bytes */
  bool client_ended, server_ended;
  bool ended_told;             /* the server knows that the client has ended */
  struct wheel_timer timer;    /* handshake, head; later: the client must take something */
  uint64_t moved;              /* bytes sent to the client */
  uint64_t moved_before;       /* at the last look of the timer */
  struct pipe_buffer in, out;  /* client -> server, server -> client */
};

struct tls_door {
  struct listen_worker *lw;
  struct list conns;
  unsigned count;              /* not yet freed */
  unsigned flushing;
  bool stopping;
  void (*gone)(struct listen_worker *lw);
};

static void drive(struct tls_conn *c);

/* --- the end -------------------------------------------------------------------------- */

static void
leave_if_done(struct tls_door *door)
{
  struct listen_worker *lw = door->lw;
  void (*gone)(struct listen_worker *lw) = door->gone;

  if (!door->stopping || door->count > 0)
    return;
  free(door);
  gone(lw);
}

static void
on_closed(uv_handle_t *handle)
{
  struct tls_conn *c = handle->data;
  struct tls_door *door = c->door;

  if (--c->handles > 0)
    return;
  free(c);
  door->count--;
  leave_if_done(door);
}

static void
set_state(struct tls_conn *c, enum tls_state state)
{
  c->door->flushing -= c->state == TLS_PUMP && c->server_ended;
  c->state = state;
}

static void
note_server_ended(struct tls_conn *c)
{
  if (c->state == TLS_PUMP && !c->server_ended)
    c->door->flushing++;
  c->server_ended = true;
}

/* Ends the connection. `gently`: what was sent last must reach the client. */
static void
finish(struct tls_conn *c, bool gently)
{
  if (c->state == TLS_GONE)
    return;
  set_state(c, TLS_GONE);
  list_remove(&c->node);
  worker_timer_stop(c->door->lw->worker, &c->timer);
  peer_release(c->listener, &c->peer);
  uv_close((uv_handle_t *)&c->poll, on_closed);
  if (c->inner >= 0) {
    uv_close((uv_handle_t *)&c->inner_poll, on_closed);
    close(c->inner);
  }
  if (gently)
    SSL_shutdown(c->ssl);
  ERR_clear_error();
  SSL_free(c->ssl);
  if (gently)
    linger_close(c->door->lw, c->fd);
  else
    close(c->fd);
}

/* --- polling -------------------------------------------------------------------------- */

static void
on_poll(uv_poll_t *poll, int status, int events)
{
  struct tls_conn *c = poll->data;

  (void)events;
  if (status < 0)
    finish(c, false);
  else
    drive(c);
}

/* The server has closed its end with bytes unread: libuv calls that an error and stops
 * polling, but what the server wrote before is still there to be read. */
static void
on_inner_poll(uv_poll_t *poll, int status, int events)
{
  struct tls_conn *c = poll->data;

  (void)events;
  if (status < 0)
    c->inner_events = 0;
  drive(c);
}

static void
set_events(uv_poll_t *poll, int *now, int events, uv_poll_cb fn)
{
  if (*now == events)
    return;
  *now = events;
  if (events == 0)
    uv_poll_stop(poll);
  else
    uv_poll_start(poll, events, fn);
}

static void
poll_what_is_needed(struct tls_conn *c)
{
  bool reads = c->state < TLS_PUMP || (c->state == TLS_PUMP && c->in.from == c->in.to &&
                                       !c->client_ended);
  bool writes = c->want_write || (c->state >= TLS_PUMP && c->out.from < c->out.to);

  if (c->state == TLS_GONE)
    return;
  set_events(&c->poll, &c->events, (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0),
             on_poll);
  if (c->inner < 0)
    return;
  reads = c->out.from == c->out.to && !c->server_ended;
  writes = c->in.from < c->in.to && !c->server_ended;
  set_events(&c->inner_poll, &c->inner_events,
             (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0), on_inner_poll);
}

/* --- OpenSSL -------------------------------------------------------------------------- */

enum outcome { DONE, BLOCKED, ENDED, FAILED };

static enum outcome
judge(struct tls_conn *c, int rc)
{
  int error = SSL_get_error(c->ssl, rc);

  c->want_write = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return BLOCKED;
  if (error == SSL_ERROR_ZERO_RETURN)
    return ENDED;
  ERR_clear_error();
  return FAILED;
}

/* Reads behind what is in the buffer. */
static enum outcome
read_client(struct tls_conn *c)
{
  int n = SSL_read(c->ssl, c->in.bytes + c->in.to, (int)(BUFFER - c->in.to));

  if (n <= 0)
    return judge(c, n);
  c->in.to += (size_t)n;
  return DONE;
}

static enum outcome
write_client(struct tls_conn *c)
{
  int n = SSL_write(c->ssl, c->out.bytes + c->out.from, (int)(c->out.to - c->out.from));

  if (n <= 0)
    return judge(c, n);
  c->moved += (uint64_t)n;
  c->out.from += (size_t)n;
  if (c->out.from == c->out.to)
    c->out.from = c->out.to = 0;
  return DONE;
}

/* --- handshake and head --------------------------------------------------------------- */

static void
start_timer(struct tls_conn *c, uint64_t ms)
{
  if (ms > 0)
    worker_timer_start(c->door->lw->worker, &c->timer, ms);
  else
    worker_timer_stop(c->door->lw->worker, &c->timer);
}

static void
count_refusal(struct tls_conn *c, enum refusal refusal)
{
  metric_add(&c->door->lw->worker->metrics->refused[refusal], 1);
}

/* false: nothing more to do now. */
static bool
shake_hands(struct tls_conn *c)
{
  int rc = SSL_do_handshake(c->ssl);
  enum outcome outcome = rc == 1 ? DONE : judge(c, rc);

  if (outcome == BLOCKED)
    return false;
  if (outcome != DONE) {
    count_refusal(c, REFUSED_TLS);
    finish(c, false);
    return false;
  }
  c->want_write = false;
  set_state(c, TLS_HEAD);
  start_timer(c, c->listener->conf->limits.head_timeout);
  return true;
}

static void
refuse(struct tls_conn *c, const struct gate_head *head)
{
  struct refusal_text text = door_refusal(c->listener, head);

  count_refusal(c, head->refusal);
  c->out.from = 0;
  c->out.to = refusal_print(&text, c->out.bytes, sizeof c->out.bytes);
  set_state(c, TLS_LAST);
}

/* The plain side: a socket pair, of which the server gets one end. -1: out of descriptors. */
static int
make_inner(struct tls_conn *c)
{
  int pair[2];

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
    return -1;
  if (uv_poll_init(&c->door->lw->worker->loop, &c->inner_poll, pair[0]) != 0) {
    close(pair[0]);
    close(pair[1]);
    return -1;
  }
  c->inner_poll.data = c;
  c->inner = pair[0];
  c->handles++;
  return pair[1];
}

/* The head is all right: the server gets its end, and the peer's place. */
static void
hand_over(struct tls_conn *c, enum gate_kind kind, struct gate_head *head)
{
  struct listen_worker *lw = c->door->lw;
  struct network *network = NULL;
  struct egw_slice rest;
  int fd;

  if (kind == GATE_WEBSOCKET &&
      (network = door_network(lw->door, c->listener, head)) == NULL) {
    refuse(c, head);
    return;
  }
  fd = make_inner(c);
  if (fd < 0) {
    gate_refuse(head, 503, REFUSED_DESCRIPTORS, "overloaded");
    refuse(c, head);
    return;
  }
  set_state(c, TLS_PUMP);
  start_timer(c, c->listener->conf->limits.write_timeout);
  if (kind == GATE_HTTP) {
    http_adopt(lw->http, c->listener, fd, &c->peer);
  } else {
    rest = (struct egw_slice){ c->in.bytes + head->length, c->in.to - head->length };
    ws_adopt(lw->ws, c->listener, fd, &c->peer, network, head, rest);
    c->in.from = c->in.to = 0;
  }
  c->peer.counted = false;
}

static bool
read_head(struct tls_conn *c)
{
  struct gate_head head;
  enum outcome outcome = read_client(c);
  enum gate_kind kind;

  if (outcome == BLOCKED)
    return false;
  if (outcome != DONE) {
    finish(c, false);
    return false;
  }
  kind = gate_check(c->listener, c->in.bytes, c->in.to, &head);
  if (kind == GATE_REFUSED)
    refuse(c, &head);
  else if (kind != GATE_MORE)
    hand_over(c, kind, &head);
  return true;
}

/* --- the pump ------------------------------------------------------------------------- */

static enum outcome
read_inner(struct tls_conn *c)
{
  ssize_t n = recv(c->inner, c->out.bytes, BUFFER, MSG_DONTWAIT);

  if (n > 0) {
    c->out.from = 0;
    c->out.to = (size_t)n;
    return DONE;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return BLOCKED;
  return ENDED; /* a reset of the pair says only that the server did not read all */
}

static enum outcome
write_inner(struct tls_conn *c)
{
  ssize_t n = send(c->inner, c->in.bytes + c->in.from, c->in.to - c->in.from,
                   MSG_DONTWAIT | MSG_NOSIGNAL);

  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return BLOCKED;
  if (n < 0)
    c->in.from = c->in.to; /* nobody reads it any more; the answer may still be on its way */
  else
    c->in.from += (size_t)n;
  if (c->in.from == c->in.to)
    c->in.from = c->in.to = 0;
  return DONE;
}

/* Client to server. Whether something moved; false with the connection gone after an error. */
static bool
pump_in(struct tls_conn *c)
{
  enum outcome outcome;

  if (c->in.from < c->in.to)
    return write_inner(c) == DONE;
  if (c->client_ended) {
    if (!c->ended_told)
      shutdown(c->inner, SHUT_WR);
    c->ended_told = true;
    return false;
  }
  if (c->server_ended)
    return false;
  outcome = read_client(c);
  if (outcome == ENDED)
    c->client_ended = true;
  else if (outcome == FAILED)
    finish(c, false);
  return outcome == DONE || outcome == ENDED;
}

/* Server to client. */
static bool
pump_out(struct tls_conn *c)
{
  enum outcome outcome;

  if (c->out.from < c->out.to) {
    outcome = write_client(c);
    if (outcome == FAILED || outcome == ENDED)
      finish(c, false);
    return outcome == DONE;
  }
  if (c->server_ended) {
    finish(c, true);
    return false;
  }
  outcome = read_inner(c);
  if (outcome == ENDED)
    note_server_ended(c);
  return outcome != BLOCKED;
}

/* What OpenSSL has decrypted already does not show on the socket, so it is not left there. */
static void
pump(struct tls_conn *c)
{
  for (int i = 0; c->state == TLS_PUMP && (i < PUMP_TURN || SSL_pending(c->ssl) > 0); i++) {
    bool moved = pump_out(c);

    if (c->state == TLS_PUMP && pump_in(c))
      moved = true;
    if (!moved)
      return;
  }
}

static void
send_last(struct tls_conn *c)
{
  enum outcome outcome = DONE;

  while (outcome == DONE && c->out.from < c->out.to)
    outcome = write_client(c);
  if (outcome != BLOCKED)
    finish(c, outcome == DONE);
}

static void
drive(struct tls_conn *c)
{
  bool more = true;

  while (more && c->state < TLS_PUMP)
    more = c->state == TLS_HANDSHAKE ? shake_hands(c) : read_head(c);
  if (c->state == TLS_PUMP)
    pump(c);
  if (c->state == TLS_LAST)
    send_last(c);
  poll_what_is_needed(c);
}

/* --- time ----------------------------------------------------------------------------- */

static void
on_timer(struct wheel_timer *timer)
{
  struct tls_conn *c = container_of(timer, struct tls_conn, timer);
  struct gate_head head = { .status = 408, .refusal = REFUSED_TIMEOUT,
                            .why = "the request head took too long" };

  if (c->state == TLS_HEAD && c->in.to > 0) {
    refuse(c, &head);
    start_timer(c, c->listener->conf->limits.write_timeout);
    drive(c);
    return;
  }
  if (c->state == TLS_PUMP && (c->out.from == c->out.to || c->moved != c->moved_before)) {
    c->moved_before = c->moved;
    start_timer(c, c->listener->conf->limits.write_timeout);
    return;
  }
  count_refusal(c, c->state >= TLS_PUMP ? REFUSED_SLOW_READER : REFUSED_TIMEOUT);
  finish(c, false);
}

/* --- from outside --------------------------------------------------------------------- */

struct tls_door *
tls_door_new(struct listen_worker *lw)
{
  struct tls_door *door = calloc(1, sizeof *door);

  if (door == NULL)
    return NULL;
  door->lw = lw;
  list_init(&door->conns);
  return door;
}

static struct tls_conn *
conn_new(struct tls_door *door, struct listener *listener, int fd)
{
  struct tls_conn *c = malloc(sizeof *c);

  if (c == NULL)
    return NULL;
  memset(c, 0, offsetof(struct tls_conn, in)); /* not the buffers */
  c->in.from = c->in.to = c->out.from = c->out.to = 0;
  c->ssl = SSL_new(listener->tls);
  if (c->ssl == NULL || SSL_set_fd(c->ssl, fd) != 1 ||
      uv_poll_init(&door->lw->worker->loop, &c->poll, fd) != 0) {
    ERR_clear_error();
    SSL_free(c->ssl);
    free(c);
    return NULL;
  }
  SSL_set_accept_state(c->ssl);
  c->door = door;
  c->listener = listener;
  c->fd = fd;
  c->inner = -1;
  c->poll.data = c;
  c->handles = 1;
  c->timer.fn = on_timer;
  list_append(&door->conns, &c->node);
  door->count++;
  return c;
}

void
tls_accept(struct tls_door *door, struct listener *listener, int fd, struct peer *peer)
{
  struct tls_conn *c = conn_new(door, listener, fd);

  if (c == NULL) {
    peer_release(listener, peer);
    close(fd);
    return;
  }
  c->peer = *peer;
  start_timer(c, listener->conf->limits.handshake_timeout);
  drive(c);
}

unsigned
tls_door_flushing(const struct tls_door *door)
{
  return door->flushing;
}

void
tls_door_drain(struct tls_door *door)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &door->conns) {
    struct tls_conn *c = container_of(node, struct tls_conn, node);

    if (c->state == TLS_HANDSHAKE || (c->state == TLS_HEAD && c->in.to == 0))
      finish(c, false);
  }
}

void
tls_door_stop(struct tls_door *door, void (*gone)(struct listen_worker *lw))
{
  struct list *node, *tmp;

  door->stopping = true;
  door->gone = gone;
  door->count++; /* not freed under the walk */
  list_for_each_safe(node, tmp, &door->conns)
    finish(container_of(node, struct tls_conn, node), false);
  door->count--;
  leave_if_done(door);
}
