/* SPDX-License-Identifier: MIT */
/* A stand-in node for measurements: answers any JSON-RPC request at once with its id and a
 * result of a given size. HTTP/1.1 on a loopback port, JSON lines on a unix socket; one thread.
 *
 *   bench/node [--port N] [--ipc PATH] [--bytes N] [--service-us N] [--mix] [--chain]
 *
 * --mix: results of a size by method instead, see node-result.c; --chain: and such as a node of a
 * chain gives them, so that what follows heads and looks at blocks finds them right.
 *
 * With a service time each call takes so long: over HTTP a connection's calls, and the members of
 * an array, one after the other; different connections, and calls over IPC, at the same time.
 *
 * It looks for "id": in the request and copies what stands there; it checks nothing. Arrays
 * are answered item by item. No part of the gateway is in it. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "node.h"

#define READ_STEP 65536u
#define EVENTS 256
#define KEPT 65536u          /* bytes of memory that a connection keeps */

enum conn_kind { CONN_LISTEN_HTTP, CONN_LISTEN_IPC, CONN_HTTP, CONN_IPC };

/* Bytes of a connection's output up to `upto` may go out from `due` on. */
struct mark {
  uint64_t due;
  size_t upto;
};

struct conn {
  enum conn_kind kind;
  int fd;
  struct text in, out;
  size_t sent, ripe;
  bool waiting;       /* for EPOLLOUT */
  struct mark *marks; /* service time: `count` of them, in order */
  size_t count, cap;
  uint64_t free_at;   /* when the last call of an HTTP connection is through */
  struct conn *next, *prev; /* while there are marks: in the list `slow` */
};

static int epoll_fd, timer_fd;
static uint64_t service_us;
static struct conn slow = { .next = &slow, .prev = &slow };

void
die(const char *what)
{
  fprintf(stderr, "bench/node: %s: %s\n", what, strerror(errno));
  exit(1);
}

void
text_room(struct text *text, size_t more)
{
  size_t cap = text->cap != 0 ? text->cap : 4096;

  while (cap - text->len < more)
    cap *= 2;
  if (cap == text->cap)
    return;
  text->data = realloc(text->data, cap);
  if (text->data == NULL)
    die("memory");
  text->cap = cap;
}

void
text_add(struct text *text, const char *data, size_t len)
{
  text_room(text, len + 1);
  memcpy(text->data + text->len, data, len);
  text->len += len;
  text->data[text->len] = '\0';
}

static void
text_drop(struct text *text, size_t n)
{
  memmove(text->data, text->data + n, text->len - n);
  text->len -= n;
}

/* The end of the JSON value at `data`, or 0 when it is not complete. */
static size_t
value_end(const char *data, size_t len)
{
  size_t i;
  int depth = 0;
  bool string = false;

  for (i = 0; i < len; i++) {
    char c = data[i];
    if (string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        string = false;
    } else if (c == '"') {
      string = true;
    } else if (c == '{' || c == '[') {
      depth++;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

/* The id of a request: what stands behind "id":, up to the comma or the brace. */
static void
find_id(const char *data, size_t len, const char **id, size_t *id_len)
{
  const char *at = memmem(data, len, "\"id\":", 5);
  size_t n = 0, left;

  *id = "null";
  *id_len = 4;
  if (at == NULL)
    return;
  at += 5;
  left = len - (size_t)(at - data);
  while (left > 0 && *at == ' ') {
    at++;
    left--;
  }
  if (left > 0 && *at == '"')
    for (n = 1; n < left && at[n] != '"'; n++)
      ;
  while (n < left && at[n] != ',' && at[n] != '}')
    n++;
  *id = at;
  *id_len = n;
}

static void
answer_one(struct text *out, const char *request, size_t len)
{
  const char *id;
  size_t id_len;

  find_id(request, len, &id, &id_len);
  text_add(out, "{\"jsonrpc\":\"2.0\",\"id\":", 22);
  text_add(out, id, id_len);
  text_add(out, ",", 1);
  result_add(out, request, len);
  text_add(out, "}", 1);
}

/* One message: an object, or an array of them. Returns how many calls are in it. */
static size_t
answer(struct text *out, const char *message, size_t len)
{
  size_t at = 1, n, calls = 0;
  bool first = true;

  if (message[0] != '[') {
    answer_one(out, message, len);
    return 1;
  }
  text_add(out, "[", 1);
  while (at < len && (n = value_end(message + at, len - at)) > 0) {
    if (!first)
      text_add(out, ",", 1);
    first = false;
    answer_one(out, message + at, n);
    calls++;
    at += n;
    while (at < len && message[at] != '{')
      at++;
  }
  text_add(out, "]", 1);
  return calls;
}

/* --- service time ---------------------------------------------------------------------- */

static uint64_t
now_us(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
conn_unlist(struct conn *conn)
{
  if (conn->next == NULL)
    return;
  conn->next->prev = conn->prev;
  conn->prev->next = conn->next;
  conn->next = conn->prev = NULL;
}

/* `slow` is in the order in which something is due: most often what comes in last is last. */
static void
conn_list(struct conn *conn)
{
  struct conn *before = slow.prev;

  while (before != &slow && before->marks[0].due > conn->marks[0].due)
    before = before->prev;
  conn->prev = before;
  conn->next = before->next;
  before->next->prev = conn;
  before->next = conn;
}

/* What was put into `out` last answers `calls` calls. */
static void
conn_hold(struct conn *conn, size_t calls)
{
  uint64_t now = service_us != 0 ? now_us() : 0;
  struct mark mark = { now + service_us, conn->out.len };

  if (service_us == 0) {
    conn->ripe = conn->out.len;
    return;
  }
  if (conn->kind == CONN_HTTP) {
    mark.due = (conn->free_at > now ? conn->free_at : now) + service_us * calls;
    conn->free_at = mark.due;
  }
  if (conn->count == conn->cap) {
    conn->cap = conn->cap == 0 ? 8 : conn->cap * 2;
    conn->marks = realloc(conn->marks, conn->cap * sizeof(*conn->marks));
    if (conn->marks == NULL)
      die("memory");
  }
  conn->marks[conn->count++] = mark;
  if (conn->next == NULL)
    conn_list(conn);
}

/* Lets go what is due. */
static void
conn_ripen(struct conn *conn, uint64_t now)
{
  size_t n = 0;

  conn_unlist(conn);
  while (n < conn->count && conn->marks[n].due <= now)
    conn->ripe = conn->marks[n++].upto;
  memmove(conn->marks, conn->marks + n, (conn->count - n) * sizeof(*conn->marks));
  conn->count -= n;
  if (conn->count != 0)
    conn_list(conn);
}

static size_t
content_length(const char *head, size_t len)
{
  const char *at = head, *end = head + len, *line;

  while ((line = memchr(at, '\n', (size_t)(end - at))) != NULL) {
    at = line + 1;
    if ((size_t)(end - at) > 15 && strncasecmp(at, "content-length:", 15) == 0)
      return strtoul(at + 15, NULL, 10);
  }
  return 0;
}

/* Takes one HTTP request; how many bytes it had, 0 when it is not whole yet. */
static size_t
take_http(struct conn *conn, const char *data, size_t len)
{
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                             "Content-Length: 0000000000\r\n\r\n";
  const char *end = memmem(data, len, "\r\n\r\n", 4);
  size_t head_len, body_len, began, calls, n, i;

  if (end == NULL)
    return 0;
  head_len = (size_t)(end - data) + 4;
  body_len = content_length(data, head_len);
  if (len - head_len < body_len)
    return 0;
  text_add(&conn->out, head, sizeof(head) - 1);
  began = conn->out.len;
  calls = answer(&conn->out, data + head_len, body_len);
  n = conn->out.len - began;
  for (i = began - 5; n > 0; i--, n /= 10)
    conn->out.data[i] = (char)('0' + n % 10);
  conn_hold(conn, calls);
  return head_len + body_len;
}

static size_t
take_ipc(struct conn *conn, const char *data, size_t len)
{
  size_t skip = 0, n;

  while (skip < len && (data[skip] == '\n' || data[skip] == ' '))
    skip++;
  n = value_end(data + skip, len - skip);
  if (n == 0)
    return 0;
  (void)answer(&conn->out, data + skip, n);
  text_add(&conn->out, "\n", 1);
  conn_hold(conn, 1);
  return skip + n;
}

static void
conn_close(struct conn *conn)
{
  close(conn->fd);
  conn_unlist(conn);
  free(conn->marks);
  free(conn->in.data);
  free(conn->out.data);
  free(conn);
}

static void
conn_watch(struct conn *conn, int op)
{
  struct epoll_event event = { .events = EPOLLIN | (conn->waiting ? (uint32_t)EPOLLOUT : 0u),
                               .data = { .ptr = conn } };

  if (epoll_ctl(epoll_fd, op, conn->fd, &event) < 0)
    die("epoll_ctl");
}

static void
conn_new(int fd, enum conn_kind kind)
{
  struct conn *conn = calloc(1, sizeof(*conn));

  if (conn == NULL)
    die("memory");
  conn->fd = fd;
  conn->kind = kind;
  text_room(&conn->in, 1);
  text_room(&conn->out, 1);
  conn_watch(conn, EPOLL_CTL_ADD);
}

static void
conn_accept(struct conn *listener)
{
  int fd, one = 1;

  while ((fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    if (listener->kind == CONN_LISTEN_HTTP)
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    conn_new(fd, listener->kind == CONN_LISTEN_HTTP ? CONN_HTTP : CONN_IPC);
  }
}

/* Lets go of the memory of what is sent, when that is worth it. */
static void
conn_drop_sent(struct conn *conn)
{
  size_t i, n = conn->sent;

  if (n < conn->out.len && (n < KEPT || n < conn->out.len / 2))
    return;
  text_drop(&conn->out, n);
  conn->ripe -= n;
  conn->sent = 0;
  for (i = 0; i < conn->count; i++)
    conn->marks[i].upto -= n;
  if (conn->out.len == 0 && conn->out.cap > KEPT) {
    free(conn->out.data);
    memset(&conn->out, 0, sizeof(conn->out));
  }
}

/* Writes what it can; 0, or -1 at the end of the connection. */
static int
conn_flush(struct conn *conn)
{
  bool wait;

  while (conn->sent < conn->ripe) {
    ssize_t n = send(conn->fd, conn->out.data + conn->sent, conn->ripe - conn->sent,
                     MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
      break;
    if (n < 0)
      return -1;
    conn->sent += (size_t)n;
  }
  wait = conn->sent < conn->ripe;
  conn_drop_sent(conn);
  if (wait != conn->waiting) {
    conn->waiting = wait;
    conn_watch(conn, EPOLL_CTL_MOD);
  }
  return 0;
}

static int
conn_read(struct conn *conn)
{
  size_t at = 0, took;
  ssize_t n;

  text_room(&conn->in, READ_STEP);
  n = recv(conn->fd, conn->in.data + conn->in.len, READ_STEP, 0);
  if (n < 0 && errno == EAGAIN)
    return 0;
  if (n <= 0)
    return -1;
  conn->in.len += (size_t)n;
  do {
    took = conn->kind == CONN_HTTP ? take_http(conn, conn->in.data + at, conn->in.len - at)
                                   : take_ipc(conn, conn->in.data + at, conn->in.len - at);
    at += took;
  } while (took > 0 && at < conn->in.len);
  text_drop(&conn->in, at);
  return 0;
}

static void
conn_ready(struct conn *conn, uint32_t events)
{
  if (conn->kind == CONN_LISTEN_HTTP || conn->kind == CONN_LISTEN_IPC) {
    conn_accept(conn);
    return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && conn_read(conn) != 0) {
    conn_close(conn);
    return;
  }
  if (conn_flush(conn) != 0)
    conn_close(conn);
}

/* Answers what is due, and sets the timer to what is due next. */
static void
serve_slow(void)
{
  struct itimerspec when = { 0 };
  uint64_t now = now_us(), first = 0;
  struct conn *conn;

  while ((conn = slow.next) != &slow && conn->marks[0].due <= now) {
    conn_ripen(conn, now);
    if (conn_flush(conn) != 0)
      conn_close(conn);
  }
  if (slow.next != &slow)
    first = slow.next->marks[0].due;
  when.it_value.tv_sec = (time_t)(first / 1000000);
  when.it_value.tv_nsec = (long)(first % 1000000 * 1000);
  if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0)
    die("timer");
}

static void
start_timer(void)
{
  struct epoll_event event = { .events = EPOLLIN | EPOLLET };

  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event) < 0)
    die("timer");
}

static void
listen_http(int port)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
  socklen_t len = sizeof(in);
  int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 || listen(fd, 4096) < 0)
    die("listening");
  if (getsockname(fd, (struct sockaddr *)&in, &len) < 0)
    die("getsockname");
  printf("port=%d\n", ntohs(in.sin_port));
  conn_new(fd, CONN_LISTEN_HTTP);
}

static void
listen_ipc(const char *path)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  if (strlen(path) >= sizeof(un.sun_path)) {
    errno = ENAMETOOLONG;
    die(path);
  }
  memcpy(un.sun_path, path, strlen(path) + 1);
  unlink(path);
  if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0 || listen(fd, 4096) < 0)
    die(path);
  conn_new(fd, CONN_LISTEN_IPC);
}

static const struct option long_options[] = {
  { "port", required_argument, NULL, 'p' },  { "ipc", required_argument, NULL, 'i' },
  { "bytes", required_argument, NULL, 'b' }, { "service-us", required_argument, NULL, 's' },
  { "mix", no_argument, NULL, 'm' },         { "chain", no_argument, NULL, 'c' },
  { NULL, 0, NULL, 0 },
};

int
main(int argc, char **argv)
{
  struct epoll_event events[EVENTS];
  const char *ipc = NULL;
  size_t bytes = 8;
  bool mix = false, chain = false;
  int port = 0, option, i, n;

  while ((option = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
    switch (option) {
    case 'p': port = (int)strtol(optarg, NULL, 10); break;
    case 'i': ipc = optarg; break;
    case 'b': bytes = strtoul(optarg, NULL, 10); break;
    case 's': service_us = strtoul(optarg, NULL, 10); break;
    case 'm': mix = true; break;
    case 'c': chain = true; break;
    default: return 2;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  /* Memory of large answers is used again, not given back and faulted in anew. */
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  result_make(bytes, mix, chain);
  start_timer();
  listen_http(port);
  if (ipc != NULL)
    listen_ipc(ipc);
  fflush(stdout);
  while ((n = epoll_wait(epoll_fd, events, EVENTS, -1)) >= 0 || errno == EINTR) {
    for (i = 0; i < n; i++)
      if (events[i].data.ptr != NULL)
        conn_ready(events[i].data.ptr, events[i].events);
    if (service_us != 0)
      serve_slow();
  }
  die("epoll_wait");
}
