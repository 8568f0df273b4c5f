/* SPDX-License-Identifier: MIT */
/* The two ends of a measurement of heads told to many subscribers over WebSocket:
 *
 *   bench/fanout get PORT CONNECTIONS EACH HEADS
 *
 * subscribes EACH times on each of the connections, prints "ready", and for each head, when all
 * have it, "head NUMBER NANOSECONDS BYTES": when the last one came, and the sum of the messages.
 *
 *   bench/fanout send CONNECTIONS EACH FILE
 *
 * is what a gateway is compared with: it answers such subscriptions, prints "port=N", "ready" when
 * there are all of them, and at each line of its standard input (any text) sends the next line
 * of FILE, a header, to all: one send() for each event, from one buffer, nothing else. It prints
 * "sent NUMBER-OF-LINE NANOSECONDS" with the time at which it began.
 *
 * Times are of CLOCK_MONOTONIC. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADS_MAX 4096u
#define EVENTS 512
#define READ_MAX 262144u
#define ID_LEN 34u           /* "0x" and 128 bits, as the gateway's */

struct conn {
  int fd;
  char *rest;                /* the beginning of a frame */
  size_t len, cap;
};

/* A head on its way. */
struct head {
  uint64_t number, bytes;
  unsigned count;
};

static char room[READ_MAX + 65536];
static struct head heads[HEADS_MAX];
static unsigned known, whole, answers;

static void
die(const char *what)
{
  fprintf(stderr, "bench/fanout: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint64_t
now_ns(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
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

static void
read_head(int fd)
{
  char text[4096];
  size_t len = 0;

  while (len < 4 || memcmp(text + len - 4, "\r\n\r\n", 4) != 0) {
    if (len == sizeof(text) || read(fd, text + len, 1) != 1)
      die("handshake");
    len++;
  }
}

/* --- get --------------------------------------------------------------------------------- */

static int
dial(uint16_t port)
{
  static const char request[] =
    "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct linger linger = { 1, 0 };   /* thousands of ports are not kept by TIME_WAIT */
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
    die("connect");
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  write_all(fd, request, sizeof(request) - 1);
  read_head(fd);
  return fd;
}

/* One masked frame, its mask zero. */
static void
subscribe(int fd, unsigned id)
{
  char text[128], frame[136];
  int n = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":"
                   "\"eth_subscribe\",\"params\":[\"newHeads\"]}", id);

  if (n > 125)
    die("request");
  memset(frame, 0, 6);
  frame[0] = (char)0x81;
  frame[1] = (char)(0x80 | n);
  memcpy(frame + 6, text, (size_t)n);
  write_all(fd, frame, 6 + (size_t)n);
}

static void
take_event(const char *text, size_t len, unsigned all)
{
  const char *at = memmem(text, len, "\"number\":\"", 10);
  uint64_t number = at == NULL ? 0 : strtoull(at + 10, NULL, 16);
  unsigned i = known;

  while (i > 0 && heads[i - 1].number != number)
    i--;
  if (i == 0 && known < HEADS_MAX) {
    heads[known].number = number;
    i = ++known;
  }
  if (number == 0 || i == 0) {
    errno = EPROTO;
    die("an event");
  }
  heads[i - 1].bytes += len;
  if (++heads[i - 1].count == all) {
    printf("head %llu %llu %llu\n", (unsigned long long)number, (unsigned long long)now_ns(),
           (unsigned long long)heads[i - 1].bytes);
    fflush(stdout);
    whole++;
  }
}

/* The whole frames at the front of `data`; bytes used. */
static size_t
take_frames(const char *data, size_t len, unsigned all)
{
  size_t at = 0;

  while (len - at >= 2) {
    const unsigned char *frame = (const unsigned char *)data + at;
    size_t size = frame[1] & 0x7f, head = 2;

    if (size == 126) {
      if (len - at < 4)
        break;
      size = (size_t)frame[2] << 8 | frame[3];
      head = 4;
    }
    if (size == 127 || (frame[0] & 0xf) == 8) {
      errno = EPROTO;
      die("a frame");
    }
    if (len - at < head + size)
      break;
    if ((frame[0] & 0xf) == 1 && size > 60 && memmem(frame + head, 60, "\"method\"", 8) != NULL)
      take_event(data + at + head, size, all);
    else if ((frame[0] & 0xf) == 1)
      answers++;
    at += head + size;
  }
  return at;
}

static void
receive(struct conn *conn, unsigned all)
{
  ssize_t n;
  size_t len, used;

  memcpy(room, conn->rest != NULL ? conn->rest : "", conn->len);
  n = recv(conn->fd, room + conn->len, READ_MAX, MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n <= 0)
    die("the connection ended");
  len = conn->len + (size_t)n;
  used = take_frames(room, len, all);
  conn->len = len - used;
  if (conn->len > conn->cap) {
    conn->cap = 65536;
    conn->rest = realloc(conn->rest, conn->cap);
    if (conn->rest == NULL || conn->len > conn->cap)
      die("memory");
  }
  if (conn->len > 0)
    memcpy(conn->rest, room + used, conn->len);
}

static int
get(uint16_t port, unsigned count, unsigned each, unsigned want)
{
  struct conn *conns = calloc(count, sizeof(*conns));
  struct epoll_event events[EVENTS];
  int poll = epoll_create1(EPOLL_CLOEXEC), n, i;
  unsigned at, k;
  bool ready = false;

  if (conns == NULL || poll < 0)
    die("memory");
  for (at = 0; at < count; at++) {
    struct epoll_event event = { .events = EPOLLIN, .data = { .ptr = &conns[at] } };

    conns[at].fd = dial(port);
    for (k = 0; k < each; k++)
      subscribe(conns[at].fd, k);
    if (epoll_ctl(poll, EPOLL_CTL_ADD, conns[at].fd, &event) < 0)
      die("epoll_ctl");
  }
  while (whole < want) {
    n = epoll_wait(poll, events, EVENTS, -1);
    for (i = 0; i < n; i++)
      receive(events[i].data.ptr, count * each);
    if (!ready && answers == count * each) {
      ready = true;
      puts("ready");
      fflush(stdout);
    }
  }
  return 0;
}

/* --- send -------------------------------------------------------------------------------- */

static int
start_listening(void)
{
  struct sockaddr_in in = { .sin_family = AF_INET };
  socklen_t len = sizeof(in);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0 || listen(fd, 4096) < 0 ||
      getsockname(fd, (struct sockaddr *)&in, &len) < 0)
    die("listening");
  printf("port=%d\n", ntohs(in.sin_port));
  fflush(stdout);
  return fd;
}

/* Takes the subscriptions as they come, and answers each. */
static int
take_in(int listener, unsigned each)
{
  int fd = accept(listener, NULL, NULL), one = 1;
  char frame[256], answer[128];
  unsigned k;
  int n;

  if (fd < 0)
    die("accept");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  read_head(fd);
  n = snprintf(answer, sizeof(answer), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
               "Connection: Upgrade\r\n\r\n");
  write_all(fd, answer, (size_t)n);
  for (k = 0; k < each; k++) {
    if (recv(fd, frame, 6, MSG_WAITALL) != 6 ||
        recv(fd, frame, (size_t)(frame[1] & 0x7f), MSG_WAITALL) <= 0)
      die("a subscription");
    n = snprintf(answer + 2, sizeof(answer) - 2,
                 "{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":\"0x%032x\"}", k, k);
    answer[0] = (char)0x81;
    answer[1] = (char)n;
    write_all(fd, answer, (size_t)n + 2);
  }
  return fd;
}

/* The frame of one event; where the id stands in it. */
static size_t
make_frame(char *frame, size_t size, const char *header, size_t *id)
{
  int n = snprintf(frame + 4, size - 4, "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\","
                   "\"params\":{\"subscription\":\"0x%032x\",\"result\":%s}}", 0, header);

  if (n < 126 || (size_t)n >= size - 4 || n > 65535)
    die("a header");
  frame[0] = (char)0x81;
  frame[1] = 126;
  frame[2] = (char)(n >> 8);
  frame[3] = (char)n;
  *id = (size_t)(strstr(frame + 4, "\"0x") - frame) + 1;
  return 4 + (size_t)n;
}

static void
tell(const int *fds, unsigned count, unsigned each, const char *header)
{
  char frame[65536];
  size_t id, len = make_frame(frame, sizeof(frame), header, &id), i;
  unsigned at, k;

  for (at = 0; at < count; at++)
    for (k = 0; k < each; k++) {
      for (i = 0; i < 8; i++)
        frame[id + ID_LEN - 1 - i] = "0123456789abcdef"[k >> 4 * i & 15];
      write_all(fds[at], frame, len);
    }
}

static int
serve(unsigned count, unsigned each, const char *path)
{
  int *fds = calloc(count, sizeof(*fds)), listener = start_listening();
  FILE *file = fopen(path, "re");
  char line[65536], go[64];
  unsigned at, number = 0;

  if (fds == NULL || file == NULL)
    die(path);
  for (at = 0; at < count; at++)
    fds[at] = take_in(listener, each);
  puts("ready");
  fflush(stdout);
  while (fgets(go, sizeof(go), stdin) != NULL && fgets(line, sizeof(line), file) != NULL) {
    uint64_t began = now_ns();

    line[strcspn(line, "\n")] = '\0';
    tell(fds, count, each, line);
    printf("sent %u %llu\n", number++, (unsigned long long)began);
    fflush(stdout);
  }
  return 0;
}

static unsigned
number_of(const char *text)
{
  return (unsigned)strtoul(text, NULL, 10);
}

int
main(int argc, char **argv)
{
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (argc == 6 && strcmp(argv[1], "get") == 0)
    return get((uint16_t)number_of(argv[2]), number_of(argv[3]), number_of(argv[4]),
               number_of(argv[5]));
  if (argc == 5 && strcmp(argv[1], "send") == 0)
    return serve(number_of(argv[2]), number_of(argv[3]), argv[4]);
  fprintf(stderr, "usage: %s get PORT CONNECTIONS EACH HEADS | send CONNECTIONS EACH FILE\n",
          argv[0]);
  return 2;
}
