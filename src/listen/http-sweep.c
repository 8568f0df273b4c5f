/* SPDX-License-Identifier: MIT */
/* Deadlines of HTTP connections, and clients that have left. libmicrohttpd's own timeout is
 * one of idleness, which a client that drips bytes never meets, and it does not look at a
 * connection whose request is waiting for an answer. So a sweeper looks at those with a
 * request every SWEEP_MS, and at the idle ones when the one that is idle longest is due.
 *
 * libmicrohttpd 0.9.75 also overlooks an end that is in the socket together with the bytes it
 * reads last (its epoll tells of each change once), so that connections that become idle are
 * looked at once, too; of an end that comes later it hears. */
#include "listen/http.h"

#include <errno.h>
#include "listen/acked.h"

#define SWEEP_MS 100
#define SWEEP_MAX 512     /* connections looked at in one sweep */

static const struct conf_limits *
limits_of(const struct http_conn *conn)
{
  return &conn->session.listener->conf->limits;
}

static bool
has_left(const struct http_conn *conn)
{
  char c;
  ssize_t n = recv(conn->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* The request was not read to its end in time; nothing of an answer was sent yet. */
static void
time_out(struct http_conn *conn)
{
  struct refusal_text text = { .status = 408, .why = "the request took too long",
                               .origin = conn->origin };

  metric_add(&conn->server->worker->metrics->refused[REFUSED_TIMEOUT], 1);
  refusal_send(conn->fd, &text);
  http_cut(conn);
}

/* Whether the client took something of the answer within its time. Behind TLS it is the pump
 * that watches. */
static bool
makes_progress(struct http_conn *conn, uint64_t now)
{
  uint64_t allowed = limits_of(conn)->write_timeout;
  uint64_t acked;
  bool moved;

  if (conn->looked == 0) {
    conn->looked = now;
    conn->acked = UINT64_MAX;
  }
  if (allowed == 0 || (conn->acked != UINT64_MAX && now - conn->looked < allowed))
    return true;
  if (!acked_bytes(conn->fd, &acked))
    return true;
  moved = acked != conn->acked;
  conn->looked = now;
  conn->acked = acked;
  return moved;
}

static void
look(struct http_conn *conn, uint64_t now)
{
  const struct conf_limits *limits = limits_of(conn);
  uint64_t age = now - conn->since;

  switch (conn->phase) {
  case HTTP_HEAD:
    if (limits->head_timeout > 0 && age >= limits->head_timeout)
      time_out(conn);
    else if (age >= SWEEP_MS && has_left(conn))
      http_cut(conn);
    break;
  case HTTP_BODY:
    /* A byte a millisecond on top is the least rate that is put up with. */
    if (limits->body_timeout > 0 && age >= limits->body_timeout + conn->body_len)
      time_out(conn);
    else if (age >= SWEEP_MS && has_left(conn))
      http_cut(conn);
    break;
  case HTTP_RUNNING:
    if (conn->suspended && age >= SWEEP_MS && has_left(conn))
      http_cut(conn);
    break;
  case HTTP_REPLYING:
    if (conn->suspended ? has_left(conn) : !makes_progress(conn, now)) {
      if (!conn->suspended)
        metric_add(&conn->server->worker->metrics->refused[REFUSED_SLOW_READER], 1);
      http_cut(conn);
    }
    break;
  case HTTP_IDLE:
  case HTTP_CUT:
    break;
  }
}

/* --- idle ones ------------------------------------------------------------------------ */

static void
end_idle(struct http_conn *conn)
{
  conn->phase = HTTP_CUT;
  list_remove(&conn->node);
  shutdown(conn->fd, SHUT_RDWR);
}

/* When the first idle connection of the port is due; UINT64_MAX: none. */
static uint64_t
idle_due(const struct http_port *port)
{
  const struct http_conn *conn;

  if (list_empty(&port->idle))
    return UINT64_MAX;
  conn = container_of(port->idle.next, struct http_conn, node);
  if (limits_of(conn)->idle_timeout == 0)
    return UINT64_MAX;
  return conn->since + limits_of(conn)->idle_timeout;
}

/* Moves those that have rested for a while to the idle ones, unless they have ended. */
static void
sweep_rested(struct http_port *port, uint64_t now)
{
  for (int i = 0; i < SWEEP_MAX && !list_empty(&port->rested); i++) {
    struct http_conn *conn = container_of(port->rested.next, struct http_conn, node);

    if (conn->since + SWEEP_MS > now)
      return;
    list_remove(&conn->node);
    list_append(&port->idle, &conn->node);
    if (has_left(conn))
      end_idle(conn);
  }
}

/* Ends those that are due and tells when the next one is. */
static uint64_t
sweep_port(struct http_port *port, uint64_t now)
{
  uint64_t due;

  sweep_rested(port, now);
  while ((due = idle_due(port)) <= now)
    end_idle(container_of(port->idle.next, struct http_conn, node));
  return list_empty(&port->rested) || due <= now + SWEEP_MS ? due : now + SWEEP_MS;
}

static void
end_silent(struct list *conns)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, conns) {
    struct http_conn *conn = container_of(node, struct http_conn, node);
    char c;

    /* A request that is there already is still served. */
    if (recv(conn->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
      end_idle(conn);
  }
}

void
http_sweep_idle(struct http_server *server)
{
  for (size_t i = 0; i < server->lw->listeners->n; i++) {
    end_silent(&server->ports[i].rested);
    end_silent(&server->ports[i].idle);
  }
}

/* --- the timer ------------------------------------------------------------------------ */

static void
arm(struct http_server *server, uint64_t due, uint64_t now)
{
  if (wheel_armed(&server->sweep) && server->sweep.due <= due)
    return;
  worker_timer_start(server->worker, &server->sweep, due <= now ? 1 : due - now);
}

static void
on_sweep(struct wheel_timer *timer)
{
  struct http_server *server = container_of(timer, struct http_server, sweep);
  uint64_t now = egw_now_ms(server->worker), due = UINT64_MAX, next;
  struct list looked;
  struct list *node;

  list_init(&looked);
  for (int i = 0; i < SWEEP_MAX && (node = list_shift(&server->active)) != NULL; i++) {
    list_append(&looked, node);
    look(container_of(node, struct http_conn, node), now);
  }
  list_splice(&server->active, &looked);
  for (size_t i = 0; i < server->lw->listeners->n; i++)
    if ((next = sweep_port(&server->ports[i], now)) < due)
      due = next;
  if (server->draining)
    http_sweep_idle(server);
  if (!list_empty(&server->active) || (server->draining && server->conns > 0))
    due = now + SWEEP_MS;
  if (due != UINT64_MAX)
    arm(server, due, now);
}

void
http_sweep_init(struct http_server *server)
{
  server->sweep.fn = on_sweep;
}

void
http_sweep_soon(struct http_conn *conn)
{
  arm(conn->server, conn->since + SWEEP_MS, conn->since);
}
