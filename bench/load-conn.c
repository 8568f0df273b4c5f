/* SPDX-License-Identifier: MIT */
/* Connections. One that is lost is counted, with the calls that were asked on it, and dialled
 * again. Nothing here waits but conns_serve(). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define EVENTS 256
#define READ_MAX 262144u
#define DIAL_AT_ONCE 64u     /* less than any server's backlog */
#define RETRY_NS 10000000u
#define ID_BASE 1000000000000000u

static struct conn *conns;
static struct conn idle = { .next = &idle, .prev = &idle };
static struct conn lost = { .next = &lost, .prev = &lost };
static int poll_fd;
static unsigned long dialling, ready;
static uint64_t sequence;
static char room[READ_MAX];

static void
list_remove(struct conn *conn)
{
  if (conn->next == NULL)
    return;
  conn->next->prev = conn->prev;
  conn->prev->next = conn->next;
  conn->next = conn->prev = NULL;
}

static void
list_add(struct conn *list, struct conn *conn)
{
  list_remove(conn);
  conn->next = list;
  conn->prev = list->prev;
  list->prev->next = conn;
  list->prev = conn;
}

static void
watch(struct conn *conn, int op, bool out)
{
  struct epoll_event event = { .events = EPOLLIN | (out ? (uint32_t)EPOLLOUT : 0u),
                               .data = { .ptr = conn } };

  conn->asked_out = out;
  if (epoll_ctl(poll_fd, op, conn->fd, &event) < 0)
    die("epoll_ctl");
}

/* --- dialling -------------------------------------------------------------------------------- */

static void
conn_close(struct conn *conn)
{
  if (conn->fd >= 0)
    close(conn->fd);
  dialling -= conn->state == CONNECTING || conn->state == UPGRADING;
  ready -= conn->state == READY;
  conn->fd = -1;
  conn->state = LOST;
  conn->out_len = conn->out_at = 0;
  conn->retry_at = now_ns() + RETRY_NS;
  list_add(&lost, conn);
}

static void
conn_lost(struct conn *conn)
{
  unsigned int i;

  run_event(conn->state == READY ? &counts.lost : &counts.refused);
  conn_close(conn);
  for (i = 0; i < options.pipeline && conn->busy > 0; i++)
    if (conn->slots[i].id != 0) {
      conn->slots[i].id = 0;
      conn->busy--;
      run_failed(conn->slots[i].due);
    }
}

static void
conn_is_ready(struct conn *conn)
{
  dialling--;
  ready++;
  conn->state = READY;
  reply_begin(&conn->reply);
  list_add(&idle, conn);
}

static int
connect_to(struct conn *conn)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  struct linger linger = { 1, 0 };   /* no ports kept by TIME_WAIT */
  int one = 1;

  if (options.kind == IPC) {
    if (strlen(options.where) >= sizeof(un.sun_path))
      fail("the path is too long");
    memcpy(un.sun_path, options.where, strlen(options.where) + 1);
    return connect(conn->fd, (struct sockaddr *)&un, sizeof(un));
  }
  in.sin_port = htons((uint16_t)strtoul(options.where, NULL, 10));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
  setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return connect(conn->fd, (struct sockaddr *)&in, sizeof(in));
}

static void
conn_dial(struct conn *conn)
{
  list_remove(conn);
  conn->fd = socket(options.kind == IPC ? AF_UNIX : AF_INET,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (conn->fd < 0)
    die("socket");
  conn->state = CONNECTING;
  dialling++;
  if (connect_to(conn) < 0 && errno != EINPROGRESS)
    conn_lost(conn);
  else
    watch(conn, EPOLL_CTL_ADD, true);
}

/* --- writing --------------------------------------------------------------------------------- */

static void
keep_out(struct conn *conn, const char *data, size_t len)
{
  if (conn->out_len + len > conn->out_cap) {
    conn->out_cap = (conn->out_len + len) * 2;
    conn->out = realloc(conn->out, conn->out_cap);
    if (conn->out == NULL)
      die("memory");
  }
  memcpy(conn->out + conn->out_len, data, len);
  conn->out_len += len;
}

static void
conn_send(struct conn *conn, const char *data, size_t len)
{
  ssize_t n = 0;

  if (conn->out_len == 0) {
    n = send(conn->fd, data, len, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
      conn_lost(conn);
      return;
    }
    n = n < 0 ? 0 : n;
  }
  if ((size_t)n == len)
    return;
  keep_out(conn, data + n, len - (size_t)n);
  if (!conn->asked_out)
    watch(conn, EPOLL_CTL_MOD, true);
}

static void
conn_flush(struct conn *conn)
{
  ssize_t n;

  while (conn->out_at < conn->out_len) {
    n = send(conn->fd, conn->out + conn->out_at, conn->out_len - conn->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
      return;
    if (n < 0) {
      conn_lost(conn);
      return;
    }
    conn->out_at += (size_t)n;
  }
  conn->out_len = conn->out_at = 0;
  watch(conn, EPOLL_CTL_MOD, false);
}

static void
conn_connected(struct conn *conn)
{
  static const char upgrade[] =
    " HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  int error = 0;
  socklen_t len = sizeof(error);

  if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0) {
    conn_lost(conn);
    return;
  }
  watch(conn, EPOLL_CTL_MOD, false);
  if (options.kind != WS) {
    conn_is_ready(conn);
    return;
  }
  conn->state = UPGRADING;
  conn->reply.head_len = 0;
  conn_send(conn, "GET ", 4);
  if (conn->state == UPGRADING)
    conn_send(conn, options.target, strlen(options.target));
  if (conn->state == UPGRADING)
    conn_send(conn, upgrade, sizeof(upgrade) - 1);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Byte by byte, as a frame may follow at once. */
static void
conn_upgrade(struct conn *conn)
{
  struct reply *reply = &conn->reply;

  for (;;) {
    ssize_t n = recv(conn->fd, reply->head + reply->head_len, 1, 0);
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0 || ++reply->head_len == HEAD_MAX - 1) {
      conn_lost(conn);
      return;
    }
    reply->head[reply->head_len] = '\0';
    if (reply->head_len >= 4 && strcmp(reply->head + reply->head_len - 4, "\r\n\r\n") == 0)
      break;
  }
  if (strncmp(reply->head, "HTTP/1.1 101", 12) != 0) {
    conn_lost(conn);
    return;
  }
  conn_is_ready(conn);
}

/* The call that a reply is for; NULL when none waits for it. */
static struct slot *
slot_of(struct conn *conn)
{
  uint64_t id;
  struct slot *slot;

  if (!requests_have_ids())
    return conn->busy > 0 ? &conn->slots[0] : NULL;
  id = reply_id(&conn->reply);
  slot = &conn->slots[id % PIPELINE_MAX % options.pipeline];
  if (id != 0 && slot->id == id)
    return slot;
  run_event(&counts.strays);
  return options.pipeline == 1 && conn->busy > 0 ? &conn->slots[0] : NULL;
}

static void
conn_answered(struct conn *conn, uint64_t now)
{
  struct slot *slot = slot_of(conn);
  bool closes = conn->reply.closes;

  if (slot != NULL) {
    slot->id = 0;
    conn->busy--;
    run_answered(slot->due, now, &conn->reply);
  }
  reply_begin(&conn->reply);
  if (closes)
    conn_lost(conn);
  else
    list_add(&idle, conn);
}

/* What a control frame over WS asks for. */
static void
conn_control(struct conn *conn)
{
  static const char pong[6] = { (char)0x8a, (char)0x80 };

  if (conn->reply.opcode == 9)
    conn_send(conn, pong, sizeof(pong));
  conn->reply.opcode = 0;
}

static void
conn_take(struct conn *conn, const char *data, size_t len)
{
  uint64_t now = now_ns();
  bool whole;

  while (len > 0 && conn->state == READY) {
    size_t n = reply_take(&conn->reply, data, len, &whole);
    data += n;
    len -= n;
    if (conn->reply.bad)
      conn_lost(conn);
    else if (whole)
      conn_answered(conn, now);
    else if (options.kind == WS && conn->reply.opcode >= 8 && conn->reply.left == 0)
      conn_control(conn);
  }
}

static void
conn_read(struct conn *conn)
{
  size_t skip = reply_skippable(&conn->reply);
  /* The kernel drops what nobody looks at, instead of copying it here. */
  ssize_t n = skip > 0 ? recv(conn->fd, NULL, skip, MSG_TRUNC) : recv(conn->fd, room, READ_MAX, 0);

  if (n < 0 && errno == EAGAIN)
    return;
  if (n == 0 && conn->reply.started && conn->reply.body == BODY_TO_END) {
    conn_answered(conn, now_ns());
    return;
  }
  if (n <= 0) {
    conn_lost(conn);
    return;
  }
  if (skip > 0)
    reply_skip(&conn->reply, (size_t)n);
  else
    conn_take(conn, room, (size_t)n);
}

static void
conn_event(struct conn *conn, uint32_t events)
{
  if (conn->state == CONNECTING) {
    conn_connected(conn);
    return;
  }
  if ((events & EPOLLOUT) != 0 && conn->state != LOST)
    conn_flush(conn);
  if ((events & ~(uint32_t)EPOLLOUT) == 0)
    return;
  if (conn->state == UPGRADING)
    conn_upgrade(conn);
  else if (conn->state == READY)
    conn_read(conn);
}

/* --- all ------------------------------------------------------------------------------------- */

void
conns_open(void)
{
  struct slot *slots = calloc(options.connections * options.pipeline, sizeof(*slots));
  struct rlimit limit;
  unsigned long i;

  conns = calloc(options.connections, sizeof(*conns));
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (conns == NULL || slots == NULL || poll_fd < 0)
    die("memory");
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  for (i = 0; i < options.connections; i++) {
    conns[i].fd = -1;
    conns[i].slots = slots + i * options.pipeline;
    list_add(&lost, &conns[i]);
  }
}

void
conns_serve(uint64_t wait_ns)
{
  struct timespec wait;
  struct epoll_event events[EVENTS];
  uint64_t now = lost.next != &lost ? now_ns() : 0;
  int i, n;

  while (lost.next != &lost && lost.next->retry_at <= now && dialling < DIAL_AT_ONCE)
    conn_dial(lost.next);
  if (lost.next != &lost && wait_ns > RETRY_NS)
    wait_ns = RETRY_NS;
  wait.tv_sec = (time_t)(wait_ns / 1000000000u);
  wait.tv_nsec = (long)(wait_ns % 1000000000u);
  n = epoll_pwait2(poll_fd, events, EVENTS, &wait, NULL);
  if (n < 0 && errno != EINTR)
    die("epoll_pwait2");
  for (i = 0; i < n; i++) {
    conn_event(events[i].data.ptr, events[i].events);
    run_ask();
  }
}

unsigned long
conns_ready(void)
{
  return ready;
}

struct conn *
conn_free(void)
{
  return idle.next != &idle ? idle.next : NULL;
}

void
conn_ask(struct conn *conn, uint64_t due)
{
  size_t at = (size_t)(sequence % options.pipeline), len;
  const char *wire;

  while (conn->slots[at].id != 0)
    at = at + 1 < options.pipeline ? at + 1 : 0;
  conn->slots[at].id = ID_BASE + sequence++ * PIPELINE_MAX + at;
  conn->slots[at].due = due;
  conn->busy++;
  if (conn->busy < options.pipeline)
    list_add(&idle, conn);
  else
    list_remove(conn);
  wire = request_next(conn->slots[at].id, &len);
  conn_send(conn, wire, len);
}

void
conns_each_asked(void (*fn)(uint64_t due))
{
  unsigned long i, at;

  for (i = 0; i < options.connections; i++)
    for (at = 0; at < options.pipeline; at++)
      if (conns[i].slots[at].id != 0)
        fn(conns[i].slots[at].due);
}
