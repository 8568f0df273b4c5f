/* SPDX-License-Identifier: MIT */
/* WebSocket sessions over real connections, with requests answered by the kit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../lib/listen-kit.h"
#include "../lib/tap.h"

enum { CONT = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

static void
stop(const char *name)
{
  const char *why = kit_stop(0);

  ok(why == NULL, "%s: nothing is left", name);
  if (why != NULL)
    printf("#   %s\n", why);
}

static void
send_text(int fd, const char *text)
{
  kit_frame_send(fd, TEXT, true, text, strlen(text));
}

static bool
next_is(int fd, const char *want)
{
  struct kit_frame m;

  if (!kit_message_read(fd, &m) || m.op != TEXT || m.len != strlen(want) ||
      memcmp(m.payload, want, m.len) != 0) {
    printf("# op %u, %zu bytes: %.100s\n", m.op, m.len, m.payload == NULL ? "" : m.payload);
    return false;
  }
  return true;
}

/* A message {"result":"xxx..."} with `n` x. */
static bool
next_is_big(int fd, size_t n)
{
  struct kit_frame m;
  size_t i;

  if (!kit_message_read(fd, &m) || m.op != TEXT || m.len != n + 13)
    return false;
  for (i = 0; i < n; i++)
    if (m.payload[11 + i] != 'x')
      return false;
  return memcmp(m.payload, "{\"result\":\"", 11) == 0 &&
         strcmp(m.payload + 11 + n, "\"}") == 0;
}

/* A close frame with `code` comes, after any data; its answer is sent, and then the end. */
static bool
closes_with(int fd, unsigned code)
{
  struct kit_frame f;
  char byte, want[2] = { (char)(code >> 8), (char)code };

  do {
    if (!kit_frame_read(fd, &f))
      return false;
  } while (f.op != CLOSE);
  if (f.len < 2 || memcmp(f.payload, want, 2) != 0)
    return false;
  kit_frame_send(fd, CLOSE, true, f.payload, 2);
  return kit_read(fd, &byte, 1) == 0;
}

static bool
ended(int fd)
{
  char bytes[4096];
  long n;

  do
    n = kit_read(fd, bytes, sizeof(bytes));
  while (n > 0);
  return n != -1;
}

/* --- messages ------------------------------------------------------------------------- */

static void
check_messages(int fd)
{
  struct kit_frame m;

  send_text(fd, "[1]");
  ok(next_is(fd, "{\"result\":[1]}"), "a text message");
  kit_frame_send(fd, BINARY, true, "[2]", 3);
  ok(next_is(fd, "{\"result\":[2]}"), "a binary message is answered by text");
  kit_frame_send(fd, TEXT, true, "", 0);
  ok(next_is(fd, "{\"result\":}"), "an empty message is a request");
  send_text(fd, "none");
  send_text(fd, "[3]");
  ok(next_is(fd, "{\"result\":[3]}"), "no answer for what needs none");
  send_text(fd, "big 40");
  ok(next_is_big(fd, 40), "an answer of 53 bytes");
  send_text(fd, "big 60000");
  ok(next_is_big(fd, 60000), "an answer of 60 kB");
  send_text(fd, "big 5000000");
  ok(next_is_big(fd, 5000000), "an answer of 5 MB");
  send_text(fd, "big 70000");
  ok(kit_frame_read(fd, &m) && m.fin && m.op == TEXT && m.len == 70013,
     "a small one is one frame");
  send_text(fd, "stream 3000000");
  ok(next_is_big(fd, 3000000), "an answer in pieces");
  send_text(fd, "stream 0");
  ok(next_is_big(fd, 0), "an empty one in pieces");
}

static void
check_fragments(int fd)
{
  static const char text[] = "[\"\xc3\xa4\xe2\x82\xac\"]";
  size_t i, len = strlen(text);
  unsigned before = kit_pongs;
  char payload[125];
  struct kit_frame f;
  char *big = malloc(300000);

  kit_frame_send(fd, TEXT, false, text, 3);
  kit_frame_send(fd, CONT, false, "", 0);
  kit_frame_send(fd, CONT, true, text + 3, len - 3);
  ok(next_is(fd, "{\"result\":[\"\xc3\xa4\xe2\x82\xac\"]}"), "cut inside a character");
  for (i = 0; i < len; i++)
    kit_frame_send(fd, i == 0 ? BINARY : CONT, i == len - 1, text + i, 1);
  ok(next_is(fd, "{\"result\":[\"\xc3\xa4\xe2\x82\xac\"]}"), "one byte a frame");
  memset(payload, 'p', sizeof(payload));
  kit_frame_send(fd, TEXT, false, "[", 1);
  kit_frame_send(fd, PING, true, payload, 125);
  ok(kit_frame_read(fd, &f) && f.op == PONG && f.len == 125 &&
         memcmp(f.payload, payload, 125) == 0,
     "a pong of 125 bytes between fragments");
  kit_frame_send(fd, PING, true, "", 0);
  ok(kit_frame_read(fd, &f) && f.op == PONG && f.len == 0 && f.fin, "an empty one");
  kit_frame_send(fd, PONG, true, "\xff\xfe", 2);
  kit_frame_send(fd, CONT, true, "4]", 2);
  ok(next_is(fd, "{\"result\":[4]}"), "and the message goes on, in spite of a pong");
  is_int(kit_pongs, before, "no further pong");
  memset(big, 'y', 300000);
  kit_frame_send(fd, TEXT, false, big, 100000);
  kit_frame_send(fd, CONT, true, big, 200000);
  ok(kit_message_read(fd, &f) && f.len == 300011, "a request of 300 kB in two frames");
  free(big);
}

/* Bytes that came with the handshake are not lost. */
static void
check_early(void)
{
  int fd;

  kit_start();
  /* "[1]" under the mask 00 00 00 00 */
  fd = kit_connect_with("\x81\x83\0\0\0\0[1]", 9);
  ok(fd >= 0, "the handshake is answered");
  ok(next_is(fd, "{\"result\":[1]}"), "a message right behind the handshake");
  send_text(fd, "[2]");
  ok(next_is(fd, "{\"result\":[2]}"), "and one after it");
  close(fd);
  stop("early bytes");
}

static void
check_plain(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_WS);
  ok(fd >= 0, "the handshake is answered");
  check_messages(fd);
  check_fragments(fd);
  kit_frame_send(fd, CLOSE, true, "\x03\xe8", 2);
  ok(closes_with(fd, 1000), "a close is answered");
  close(fd);
  fd = kit_connect(KIT_WS);
  send_text(fd, "later");
  close(fd);
  stop("messages");
}

/* Many requests on the way at once: reading stops and goes on, nothing is lost or doubled. */
static void
check_flow(void)
{
  enum { N = 3000 };
  unsigned seen[N] = { 0 }, i, wrong = 0;
  char text[64];
  int fd;

  kit_limits()->max_in_flight = 3;
  kit_start();
  fd = kit_connect(KIT_WS);
  send_text(fd, "later");
  for (i = 0; i < N; i++) {
    snprintf(text, sizeof(text), "[%u]", i);
    if (i % 3 == 0) {
      kit_frame_send(fd, TEXT, false, text, 1);
      kit_frame_send(fd, CONT, true, text + 1, strlen(text + 1));
    } else {
      kit_frame_send(fd, TEXT, true, text, strlen(text));
    }
  }
  kit_release();
  for (i = 0; i < N + 1; i++) {
    struct kit_frame m;
    unsigned n;

    if (!kit_message_read(fd, &m))
      break;
    if (sscanf(m.payload, "{\"result\":[%u]}", &n) == 1 && n < N)
      seen[n]++;
  }
  for (i = 0; i < N; i++)
    wrong += seen[i] != 1;
  is_int(wrong, 0, "each of %d pipelined requests is answered once", N);
  close(fd);
  stop("flow control");
}

/* --- refusals ------------------------------------------------------------------------- */

static void
check_too_large(void)
{
  char head[14] = "\x81\xff\0\0\0\0\0\xff\xff\xff\0\0\0\0";
  char *big = calloc(1, 1 << 20);
  int fd, other, requests;
  struct kit_frame f;

  kit_start();
  other = kit_connect(KIT_WS);
  fd = kit_connect(KIT_WS);
  requests = atomic_load(&kit.requests);
  kit_frame_send(fd, TEXT, false, big, (1 << 20) - 1);
  kit_frame_send(fd, CONT, true, big, 1);
  ok(kit_message_read(fd, &f) && f.len == (1 << 20) + 11, "a message of exactly the limit");
  is_int(atomic_load(&kit.requests), requests + 1, "is a request");
  kit_frame_send(fd, TEXT, false, big, 1 << 20);
  kit_frame_send(fd, CONT, true, big, 1);
  ok(closes_with(fd, 1009), "one byte more: 1009");
  close(fd);
  fd = kit_connect(KIT_WS);
  kit_send(fd, head, sizeof(head));
  kit_send(fd, big, 1000);
  ok(kit_frame_read(fd, &f) && f.op == CLOSE && memcmp(f.payload, "\x03\xf1", 2) == 0,
     "a frame announced with 16 MB: 1009 at its beginning");
  close(fd);
  send_text(other, "[1]");
  ok(next_is(other, "{\"result\":[1]}"), "others don't notice");
  close(other);
  free(big);
  stop("too large");
}

static void
check_overload(void)
{
  char *big = malloc(100000);
  struct kit_frame f;
  int fd;

  memset(big, 'y', 100000);
  kit_start();
  kit.gateway.budget.limit = 50000;
  fd = kit_connect(KIT_WS);
  kit_frame_send(fd, TEXT, true, big, 100000);
  ok(kit_message_read(fd, &f) &&
         strstr(f.payload, "\"id\":null,\"error\":{\"code\":-32055,") != NULL,
     "no room in the budget: an error");
  send_text(fd, "[1]");
  ok(next_is(fd, "{\"result\":[1]}"), "the session goes on");
  kit_frame_send(fd, TEXT, false, big, 20000);
  kit_frame_send(fd, PING, true, "p", 1);
  ok(kit_frame_read(fd, &f) && f.op == PONG, "a message under way");
  ok(kit.gateway.budget.used >= 15000, "is in the budget");
  close(fd);
  free(big);
  stop("overload");
}

/* --- slow and silent clients ---------------------------------------------------------- */

static int
connect_slow(void)
{
  int fd = kit_connect(KIT_WS), size = 32768;

  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
  return fd;
}

static void
check_slow_reader(void)
{
  int slow, good, i;
  unsigned got = 0;
  struct kit_frame m;

  kit_start();
  slow = connect_slow();
  good = kit_connect(KIT_WS);
  send_text(slow, "later");
  send_text(good, "later");
  send_text(good, "[1]");
  ok(next_is(good, "{\"result\":[1]}"), "both have a request");
  send_text(slow, "[1]");
  ok(next_is(slow, "{\"result\":[1]}"), "on their sessions");
  for (i = 0; i < 300; i++) {
    kit_push(40000);
    got += kit_message_read(good, &m) && m.len == 40000;
  }
  is_int(got, 300, "the reader gets all events at once");
  is_int(kit_refused(REFUSED_SLOW_READER), 1, "the slow one is cut");
  is_int(kit_sessions(), 1, "and known to nobody any more");
  ok(closes_with(slow, 1013), "it reads 1013 in the end");
  close(slow);
  close(good);
  stop("slow reader");
}

/* It does not even take the close frame. */
static void
check_stuck_reader(void)
{
  int fd;

  kit_limits()->write_timeout = 300;
  kit_start();
  fd = connect_slow();
  send_text(fd, "big 20000000");
  ok(kit_read(fd, &(char){ 0 }, 1) == 1, "a long answer begins");
  while (kit_sessions() > 0)
    poll(NULL, 0, 10);
  ok(true, "nothing is taken: the session ends");
  ok(ended(fd), "and so does the connection");
  close(fd);
  stop("stuck reader");
}

static void
check_pings(void)
{
  struct kit_frame f;
  int fd, silent;
  unsigned i, pings = 0;

  kit_limits()->ping_interval = 250; /* a busy machine must be able to answer in time */
  kit_start();
  silent = kit_connect(KIT_WS);
  fd = kit_connect(KIT_WS);
  for (i = 0; i < 4 && kit_frame_read(fd, &f); i++) {
    pings += f.op == PING;
    kit_frame_send(fd, PONG, true, f.payload, f.len);
  }
  is_int(pings, 4, "an idle client is pinged and stays");
  ok(kit_frame_read(silent, &f) && f.op == PING, "a silent one is pinged too");
  ok(ended(silent), "and cut when no pong comes");
  send_text(fd, "[1]");
  do
    if (!kit_frame_read(fd, &f))
      break;
  while (f.op == PING);
  ok(f.op == TEXT, "the other is served");
  close(fd);
  close(silent);
  stop("pings");
}

static void
check_slow_message(void)
{
  int fd;

  kit_limits()->body_timeout = 100;
  kit_start();
  fd = kit_connect(KIT_WS);
  kit_frame_send(fd, TEXT, false, "[", 1);
  ok(closes_with(fd, 1008), "a message that does not go on: 1008");
  close(fd);
  stop("slow message");
}

/* --- cuts, drain, many ---------------------------------------------------------------- */

static void
check_cut(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_WS);
  send_text(fd, "cut 200000");
  ok(closes_with(fd, 1011), "an answer breaks off: 1011");
  close(fd);
  stop("cut");
}

static void
check_drain(void)
{
  int idle, busy;
  char byte;

  kit_start();
  idle = kit_connect(KIT_WS);
  busy = kit_connect(KIT_WS);
  send_text(busy, "later");
  send_text(busy, "[1]");
  ok(next_is(busy, "{\"result\":[1]}"), "a request is held");
  kit_drain();
  ok(closes_with(idle, 1001), "an idle session is closed with 1001");
  send_text(busy, "[2]");
  kit_release();
  ok(next_is(busy, "{\"result\":later}"), "what was in flight is answered");
  ok(closes_with(busy, 1001), "then 1001");
  ok(kit_read(busy, &byte, 1) <= 0, "and nothing more");
  close(idle);
  close(busy);
  stop("drain");
}

static bool
no_sessions(void *arg)
{
  (void)arg;
  return kit_sessions() == 0;
}

static void
check_many(void)
{
  unsigned before, i, good = 0;

  kit_start();
  close(kit_connect(KIT_WS));
  ok(kit_eventually(no_sessions, NULL), "the first one is gone");
  before = kit_descriptors();
  for (i = 0; i < 1000; i++) {
    int fd = kit_connect(KIT_WS);

    switch (i % 5) {
    case 0:
      send_text(fd, "[1]");
      good += next_is(fd, "{\"result\":[1]}");
      break;
    case 1:
      send_text(fd, "later");
      break;
    case 2:
      kit_frame_send(fd, TEXT, false, "[", 1);
      break;
    case 3: /* the close is a reset */
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
      break;
    default:
      break;
    }
    close(fd);
  }
  is_int(good, 200, "1000 connections, a fifth with an answer");
  ok(kit_eventually(no_sessions, NULL), "all are gone");
  is_int(kit_descriptors(), before, "no descriptor is left over");
  stop("many");
}

static void
check_stop_open(void)
{
  int fds[20], i;

  kit_start();
  for (i = 0; i < 20; i++) {
    fds[i] = kit_connect(KIT_WS);
    send_text(fds[i], i % 2 == 0 ? "later" : "stream 100000000");
  }
  ok(kit_read(fds[1], &(char){ 0 }, 1) == 1, "sessions in the midst of answers");
  ok(kit_stop(20) == NULL, "stop with open sessions: nothing is left");
  ok(ended(fds[0]) && ended(fds[1]), "clients see the end");
  for (i = 0; i < 20; i++)
    close(fds[i]);
}

int
main(void)
{
  kit_start(); /* libuv opens some descriptors for the process once */
  kit_stop(0);
  check_plain();
  check_early();
  check_flow();
  check_too_large();
  check_overload();
  check_slow_reader();
  check_stuck_reader();
  check_pings();
  check_slow_message();
  check_cut();
  check_drain();
  check_many();
  check_stop_open();
  return done_testing();
}
