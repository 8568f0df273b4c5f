/* SPDX-License-Identifier: MIT */
/* Closed-loop load over any of the gateway's transports:
 *
 *   bench/load http|ws|ipc PORT-OR-PATH CONNECTIONS MILLISECONDS [BODY]
 *
 * Each connection asks BODY (http: without one a GET) as soon as it has the answer before; all
 * from one thread. The answers are read, not looked at, but for their ends. Prints "RESULT answers
 * microseconds p50 p99 bytes": latencies in microseconds, the bytes of one answer without what
 * carries it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define READ_MAX 262144u
#define HEAD_MAX 4096u
#define SAMPLES_MAX 16777216u

enum kind { HTTP, WS, IPC };

struct conn {
  int fd;
  uint64_t asked;
  uint64_t left;             /* bytes of the answer still to come, when `started` */
  bool started, last;        /* last: WS, no frame comes after this one */
  char head[HEAD_MAX];       /* what precedes the bytes of an answer, as far as it is here */
  size_t len;
  uint64_t bytes;
};

static enum kind kind;
static char room[READ_MAX];
static char *request;
static size_t request_len;
static uint32_t *samples;
static size_t answers;
static uint64_t answer_bytes;

static void
die(const char *what)
{
  fprintf(stderr, "bench/load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t
now_us(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
write_all(int fd, const char *data, size_t len)
{
  while (len > 0) {
    ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
    if (n < 0)
      die("send");
    data += n;
    len -= (size_t)n;
  }
}

/* --- requests ---------------------------------------------------------------------------- */

static void
make_request(const char *body)
{
  size_t len = body != NULL ? strlen(body) : 0, cap = len + 256, head = 0, i;

  request = calloc(1, cap);
  if (request == NULL)
    die("memory");
  if (kind == IPC) {
    request_len = (size_t)snprintf(request, cap, "%s\n", body);
  } else if (kind == HTTP && body == NULL) {
    request_len = (size_t)snprintf(request, cap, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  } else if (kind == HTTP) {
    request_len = (size_t)snprintf(request, cap, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n"
                                   "%s", len, body);
  } else {
    request[head++] = (char)0x81;
    request[head++] = (char)(0x80 | (len < 126 ? len : 126));
    if (len > 65535)
      die("body");
    for (i = 2; len >= 126 && i > 0; i--)
      request[head++] = (char)(len >> 8 * (i - 1));
    head += 4;               /* the mask: zero */
    memcpy(request + head, body, len);
    request_len = head + len;
  }
}

static void
ask(struct conn *conn)
{
  conn->started = conn->last = false;
  conn->left = conn->bytes = 0;
  conn->len = 0;
  conn->asked = now_us();
  write_all(conn->fd, request, request_len);
}

/* --- answers ----------------------------------------------------------------------------- */

/* Looks for the end of what precedes the answer's bytes, which may come in parts. Bytes of `data`
 * that belong to it; the conn is `started` when it is whole. */
static size_t
take_http_head(struct conn *conn, const char *data, size_t len)
{
  size_t had = conn->len, room_left = HEAD_MAX - 1 - had;
  size_t n = len < room_left ? len : room_left;
  const char *end, *field;

  memcpy(conn->head + had, data, n);
  conn->head[had + n] = '\0';
  conn->len += n;
  end = strstr(conn->head, "\r\n\r\n");
  if (end == NULL)
    return n;
  field = strcasestr(conn->head, "\ncontent-length:");
  if (field == NULL || field > end || strncmp(conn->head, "HTTP/1.1 200", 12) != 0) {
    errno = EPROTO;
    die(conn->head);
  }
  conn->left = strtoull(field + 16, NULL, 10);
  conn->started = conn->last = true;
  return (size_t)(end + 4 - conn->head) - had;
}

static size_t
take_ws_head(struct conn *conn, const char *data, size_t len)
{
  size_t n = 0, i, wide;

  while (n < len) {
    conn->head[conn->len++] = data[n++];
    wide = conn->len < 2 ? 0 : (conn->head[1] & 0x7f) == 126 ? 2 :
           (conn->head[1] & 0x7f) == 127 ? 8 : 0;
    if (conn->len < 2 + wide)
      continue;
    conn->left = (uint64_t)(conn->head[1] & 0x7f);
    for (i = 0; i < wide; i++)
      conn->left = (i == 0 ? 0 : conn->left << 8) | (unsigned char)conn->head[2 + i];
    conn->last = (conn->head[0] & 0x80) != 0;
    conn->started = true;
    conn->len = 0;
    break;
  }
  return n;
}

static void
answered(struct conn *conn)
{
  if (answers < SAMPLES_MAX)
    samples[answers] = (uint32_t)(now_us() - conn->asked);
  answers++;
  answer_bytes = conn->bytes;
}

/* Whether the answer is whole after these bytes. */
static bool
take(struct conn *conn, const char *data, size_t len)
{
  size_t n;

  if (kind == IPC) {
    conn->bytes += len;
    return data[len - 1] == '\n';
  }
  while (len > 0) {
    if (!conn->started) {
      n = kind == HTTP ? take_http_head(conn, data, len) : take_ws_head(conn, data, len);
    } else {
      n = len < conn->left ? len : (size_t)conn->left;
      conn->left -= n;
      conn->bytes += n;
    }
    data += n;
    len -= n;
    if (conn->started && conn->left == 0) {
      if (conn->last)
        return true;
      conn->started = false;
    }
  }
  return false;
}

static void
receive(struct conn *conn)
{
  ssize_t n = recv(conn->fd, room, sizeof(room), MSG_DONTWAIT);

  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    die("the connection ended");
  if (!take(conn, room, (size_t)n))
    return;
  answered(conn);
  ask(conn);
}

/* --- connections ------------------------------------------------------------------------- */

static int
dial_unix(const char *path)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (strlen(path) >= sizeof(un.sun_path))
    die("path too long");
  memcpy(un.sun_path, path, strlen(path) + 1);
  if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
    die("connect");
  return fd;
}

static void
upgrade(int fd)
{
  static const char text[] =
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  char reply[HEAD_MAX];
  size_t len = 0;

  write_all(fd, text, sizeof(text) - 1);
  while (len < 4 || memcmp(reply + len - 4, "\r\n\r\n", 4) != 0) {
    if (len == sizeof(reply) || read(fd, reply + len, 1) != 1)
      die("handshake");
    len++;
  }
}

static int
dial_tcp(const char *port)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  struct linger linger = { 1, 0 };   /* no ports kept by TIME_WAIT */
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

  in.sin_port = htons((uint16_t)strtol(port, NULL, 10));
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
    die("connect");
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (kind == WS)
    upgrade(fd);
  return fd;
}

static struct conn *
dial_all(const char *where, unsigned long count, int poll)
{
  struct conn *conns = calloc(count, sizeof(*conns));
  struct rlimit limit;
  unsigned long i;

  if (conns == NULL)
    die("memory");
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  for (i = 0; i < count; i++) {
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = &conns[i] } };

    conns[i].fd = kind == IPC ? dial_unix(where) : dial_tcp(where);
    if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[i].fd, &event) < 0)
      die("epoll_ctl");
  }
  return conns;
}

static int
by_value(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

static void
report(uint64_t took)
{
  size_t n = answers < SAMPLES_MAX ? answers : SAMPLES_MAX;

  if (n == 0) {
    errno = ETIMEDOUT;
    die("no answer");
  }
  qsort(samples, n, sizeof(*samples), by_value);
  printf("RESULT %zu %llu %u %u %llu\n", answers, (unsigned long long)took, samples[n / 2],
         samples[(size_t)((double)n * 0.99)], (unsigned long long)answer_bytes);
}

int
main(int argc, char **argv)
{
  struct epoll_event events[EVENTS];
  struct conn *conns;
  unsigned long count, i;
  uint64_t began, end;
  int poll = epoll_create1(EPOLL_CLOEXEC), n, at;

  if (argc < 5) {
    fprintf(stderr, "usage: %s http|ws|ipc PORT-OR-PATH CONNECTIONS MILLISECONDS [BODY]\n",
            argv[0]);
    return 2;
  }
  kind = strcmp(argv[1], "ipc") == 0 ? IPC : strcmp(argv[1], "ws") == 0 ? WS : HTTP;
  count = strtoul(argv[3], NULL, 10);
  make_request(argc > 5 ? argv[5] : NULL);
  samples = malloc(SAMPLES_MAX * sizeof(*samples));
  if (samples == NULL || poll < 0)
    die("memory");
  conns = dial_all(argv[2], count, poll);
  began = now_us();
  end = began + strtoull(argv[4], NULL, 10) * 1000;
  for (i = 0; i < count; i++)
    ask(&conns[i]);
  while (now_us() < end) {
    n = epoll_wait(poll, events, EVENTS, 100);
    for (at = 0; at < n; at++)
      receive(events[at].data.ptr);
  }
  report(now_us() - began);
  return 0;
}
