/* SPDX-License-Identifier: MIT */
/* IPC sessions over real sockets, with requests answered by the kit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../lib/listen-kit.h"
#include "../lib/tap.h"

static const char broken[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,";

static void
stop(const char *name)
{
  const char *why = kit_stop(0);

  ok(why == NULL, "%s: nothing is left", name);
  if (why != NULL)
    printf("#   %s\n", why);
}

static void
say(int fd, const char *text)
{
  kit_send(fd, text, strlen(text));
}

static bool
next_is(int fd, const char *want)
{
  char line[512] = "";

  if (kit_read_line(fd, line, sizeof(line)) && strcmp(line, want) == 0)
    return true;
  printf("# line: %.100s\n", line);
  return false;
}

static bool
next_begins(int fd, const char *want)
{
  char line[512] = "";

  return kit_read_line(fd, line, sizeof(line)) && strncmp(line, want, strlen(want)) == 0;
}

static bool
next_is_big(int fd, size_t n)
{
  char *text = malloc(n + 14);
  bool good = kit_read_all(fd, text, n + 14);
  size_t i;

  for (i = 0; i < n && good; i++)
    good = text[11 + i] == 'x';
  good = good && memcmp(text, "{\"result\":\"", 11) == 0 &&
         memcmp(text + 11 + n, "\"}\n", 3) == 0;
  free(text);
  return good;
}

static bool
ends(int fd)
{
  char byte;

  return kit_read(fd, &byte, 1) == 0;
}

/* The end, after whatever there is. A close with unread bytes is a reset. */
static bool
ended(int fd)
{
  char bytes[65536];
  long n;

  do
    n = kit_read(fd, bytes, sizeof(bytes));
  while (n > 0);
  return n != -1;
}

static bool
no_sessions(void *arg)
{
  (void)arg;
  return kit_sessions() == 0;
}

/* --- messages ------------------------------------------------------------------------- */

static void
check_messages(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "{\"id\":1}");
  ok(next_is(fd, "{\"result\":{\"id\":1}}"), "without a newline");
  say(fd, "{\"id\":2}\r\n{\"id\":3}[4]\n");
  ok(next_is(fd, "{\"result\":{\"id\":2}}") && next_is(fd, "{\"result\":{\"id\":3}}") &&
         next_is(fd, "{\"result\":[4]}"),
     "three at once");
  say(fd, "{\"a\":\"\xc3");
  say(fd, "\xa4\\u00");
  say(fd, "e4\"}");
  ok(next_is(fd, "{\"result\":{\"a\":\"\xc3\xa4\\u00e4\"}}"), "in three writes");
  say(fd, "\xef\xbb\xbf{}");
  ok(next_is(fd, "{\"result\":{}}"), "behind a byte order mark");
  say(fd, "5 ");
  ok(next_is(fd, "{\"result\":5}"), "a number");
  say(fd, "[\"none\"][6]");
  ok(next_is(fd, "{\"result\":[6]}"), "no answer for what needs none");
  say(fd, "[\"big 5000000\"]");
  ok(next_is_big(fd, 5000000), "an answer of 5 MB");
  say(fd, "[\"stream 3000000\"]");
  ok(next_is_big(fd, 3000000), "an answer in pieces");
  say(fd, "[\"stream 0\"]");
  ok(next_is_big(fd, 0), "an empty one in pieces");
  say(fd, "[\"later\"][7]");
  ok(next_is(fd, "{\"result\":[7]}"), "a later request overtakes");
  kit_push(5);
  ok(next_is(fd, "xxxxx"), "an event");
  kit_release();
  ok(next_is(fd, "{\"result\":[\"later\"]}"), "an earlier one");
  close(fd);
  stop("messages");
}

static void
check_broken(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "{\"a\" 1}");
  ok(next_begins(fd, broken), "an error for a broken value");
  say(fd, "[2]");
  ok(next_is(fd, "{\"result\":[2]}"), "the connection stays");
  say(fd, "not json\n[3]");
  ok(next_begins(fd, broken), "one error for a broken line");
  ok(next_is(fd, "{\"result\":[3]}"), "and the next line is good");
  say(fd, "{\"a\":[1");
  shutdown(fd, SHUT_WR);
  ok(next_begins(fd, broken), "an error for what was cut off");
  ok(ends(fd), "then the end");
  close(fd);
  stop("broken");
}

static void
check_half_close(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[\"later\"]\n[\"later\"]\n[\"big 3000000\"]17");
  shutdown(fd, SHUT_WR);
  while (atomic_load(&kit.requests) < 4)
    poll(NULL, 0, 1);
  ok(next_is_big(fd, 3000000), "a long answer after the end of the input");
  ok(next_is(fd, "{\"result\":17}"), "a number is ended by the end");
  kit_release();
  ok(next_is(fd, "{\"result\":[\"later\"]}") && next_is(fd, "{\"result\":[\"later\"]}"),
     "what was in flight is answered");
  ok(ends(fd), "then the end");
  close(fd);

  fd = kit_connect(KIT_IPC);
  say(fd, "[\"later\"]");
  while (atomic_load(&kit.requests) < 5)
    poll(NULL, 0, 1);
  close(fd);
  ok(kit_eventually(no_sessions, NULL), "a client that is gone altogether is noticed");
  is_int(kit.cancelled, 1, "and its request cancelled");
  stop("half-close");
}

/* Nothing is lost or doubled when reading stops and goes on. */
static void
check_flow(void)
{
  enum { N = 5000 };
  static unsigned seen[N];
  unsigned i, wrong = 0;
  char text[64], line[128];
  size_t len = 0;
  char *all = malloc(N * 16);
  int fd;

  kit_limits()->max_in_flight = 3;
  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[\"later\"]");
  for (i = 0; i < N; i++) {
    snprintf(text, sizeof(text), "[%u]%s", i, i % 7 == 0 ? "\n" : "");
    memcpy(all + len, text, strlen(text));
    len += strlen(text);
  }
  kit_send(fd, all, len);
  free(all);
  for (i = 0; i < N; i++) {
    unsigned n;

    if (i == N / 2)
      kit_release();
    if (!kit_read_line(fd, line, sizeof(line)))
      break;
    if (sscanf(line, "{\"result\":[%u]}", &n) == 1 && n < N)
      seen[n]++;
    else
      i--;
  }
  for (i = 0; i < N; i++)
    wrong += seen[i] != 1;
  is_int(wrong, 0, "each of %d pipelined requests is answered once", N);
  close(fd);
  stop("flow control");
}

/* --- limits --------------------------------------------------------------------------- */

static void
check_limits(void)
{
  char *big = malloc(1 << 20);
  int fd;

  memset(big, 'y', 1 << 20);
  big[0] = '"';
  kit_limits()->body_timeout = 200;
  kit_start();
  fd = kit_connect(KIT_IPC);
  kit_send(fd, big, 1 << 20);
  say(fd, "x");
  ok(next_begins(fd, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32007,"),
     "a value over the limit: an error");
  ok(ended(fd), "then the end");
  close(fd);
  fd = kit_connect(KIT_IPC);
  say(fd, "[1]{\"a\":");
  ok(next_is(fd, "{\"result\":[1]}"), "a request and a half");
  ok(ends(fd), "too slow: the end");
  is_int(kit_refused(REFUSED_TIMEOUT), 1, "is counted");
  close(fd);
  fd = kit_connect(KIT_IPC);
  say(fd, "[1]");
  ok(next_is(fd, "{\"result\":[1]}"), "an idle connection");
  poll(NULL, 0, 300); /* longer than the limit that must not apply to it */
  say(fd, "[2]");
  ok(next_is(fd, "{\"result\":[2]}"), "stays");
  close(fd);
  ok(kit_eventually(no_sessions, NULL), "all are gone");
  kit.gateway.budget.limit = 100000;
  fd = kit_connect(KIT_IPC);
  kit_send(fd, big, 300000);
  say(fd, "\"[3]");
  ok(next_begins(fd, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32055,"),
     "no room in the budget: an error");
  ok(next_is(fd, "{\"result\":[3]}"), "the session goes on");
  close(fd);
  free(big);
  stop("limits");
}

static void
check_peers(void)
{
  static const char *const nobody[] = { "65534" };
  int fd;

  if (geteuid() == 65534) {
    tap_skip("this is user 65534");
    return;
  }
  kit_uids(nobody, 1);
  kit_start();
  fd = kit_connect(KIT_IPC);
  ok(ends(fd), "a user that is not on the list is refused");
  is_int(kit_refused(REFUSED_PEER), 1, "and counted");
  close(fd);
  kit_uids(NULL, 0);
  stop("peers");
}

static void
check_caps(void)
{
  int a, b;

  kit_limits()->max_connections = 1;
  kit_start();
  a = kit_connect(KIT_IPC);
  say(a, "[1]");
  ok(next_is(a, "{\"result\":[1]}"), "the first connection");
  b = kit_connect(KIT_IPC);
  ok(ends(b), "the second one is over the cap");
  close(b);
  close(a);
  ok(kit_eventually(no_sessions, NULL), "the first one leaves");
  b = kit_connect(KIT_IPC);
  say(b, "[2]");
  ok(next_is(b, "{\"result\":[2]}"), "and makes room");
  close(b);
  stop("caps");
}

/* --- slow clients, cuts, drain -------------------------------------------------------- */

static void
check_slow_reader(void)
{
  int slow, good;
  unsigned i, got = 0;
  char *event = malloc(40001);

  kit_start();
  slow = kit_connect(KIT_IPC);
  good = kit_connect(KIT_IPC);
  say(slow, "[\"later\"]");
  say(good, "[\"later\"]");
  while (atomic_load(&kit.requests) < 2)
    poll(NULL, 0, 1);
  for (i = 0; i < 100; i++) {
    kit_push(40000);
    got += kit_read_all(good, event, 40001) && event[40000] == '\n';
  }
  is_int(got, 100, "the reader gets all events at once");
  is_int(kit_refused(REFUSED_SLOW_READER), 1, "the slow one is cut");
  is_int(kit_sessions(), 1, "and gone");
  ok(ended(slow), "it sees the end");
  close(slow);
  close(good);
  free(event);
  stop("slow reader");
}

static void
check_stuck_reader(void)
{
  int fd;

  kit_limits()->write_timeout = 200;
  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[\"stream 20000000\"]");
  ok(kit_read(fd, &(char){ 0 }, 1) == 1, "a long answer begins");
  ok(kit_eventually(no_sessions, NULL), "nothing is taken: the session ends");
  close(fd);
  stop("stuck reader");
}

/* So slowly that the socket stays full for longer than the limit: but it does read. */
static void
check_steady_reader(void)
{
  char bytes[4096];
  int fd, i;

  kit_limits()->write_timeout = 200;
  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[\"big 5000000\"]");
  for (i = 0; i < 30 && kit_read_all(fd, bytes, sizeof(bytes)); i++)
    poll(NULL, 0, 20); /* the client's pace */
  is_int(i, 30, "a slow reader gets on");
  is_int(kit_sessions(), 1, "and is not cut");
  close(fd);
  stop("steady reader");
}

static void
check_cut(void)
{
  int fd;

  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[\"cut 200000\"]");
  ok(ended(fd), "an answer breaks off: so does the connection");
  close(fd);
  stop("cut");
}

static void
check_drain(void)
{
  int idle, busy;

  kit_start();
  idle = kit_connect(KIT_IPC);
  busy = kit_connect(KIT_IPC);
  say(idle, "[1]");
  say(busy, "[\"later\"]");
  ok(next_is(idle, "{\"result\":[1]}"), "an idle session");
  while (atomic_load(&kit.requests) < 2)
    poll(NULL, 0, 1);
  kit_drain();
  ok(ends(idle), "ends");
  say(busy, "[2]");
  kit_release();
  ok(next_is(busy, "{\"result\":[\"later\"]}"), "what was in flight is answered");
  ok(ended(busy), "then the end");
  close(idle);
  close(busy);
  stop("drain");
}

static void
check_many(void)
{
  unsigned before, i, good = 0;

  kit_start();
  before = kit_descriptors();
  for (i = 0; i < 1000; i++) {
    int fd = kit_connect(KIT_IPC);

    switch (i % 5) {
    case 0:
      say(fd, "[1]");
      good += next_is(fd, "{\"result\":[1]}");
      break;
    case 1:
      say(fd, "[\"later\"]");
      break;
    case 2:
      say(fd, "[\"la");
      break;
    case 3:
      say(fd, "[1]");
      shutdown(fd, SHUT_WR);
      good += next_is(fd, "{\"result\":[1]}");
      break;
    default:
      break;
    }
    close(fd);
  }
  is_int(good, 400, "1000 connections, four hundred with an answer");
  ok(kit_eventually(no_sessions, NULL), "all are gone");
  is_int(kit_descriptors(), before, "no descriptor is left over");
  stop("many");
}

/* No descriptor for the next client: the loop must not spin, and goes on when there is one. */
static void
check_descriptors(void)
{
  struct rlimit old, low;
  int fds[64], n = 0, fd;
  int64_t turns;

  getrlimit(RLIMIT_NOFILE, &old);
  kit_start();
  fd = kit_connect(KIT_IPC);
  say(fd, "[1]");
  ok(next_is(fd, "{\"result\":[1]}"), "a served client");
  fds[n++] = kit_connect(KIT_IPC);
  low = old;
  low.rlim_cur = kit_descriptors() + 1;
  setrlimit(RLIMIT_NOFILE, &low);
  while (n < 64 && (fds[n] = kit_connect(KIT_IPC)) >= 0)
    n++;
  turns = metric_read(&kit.worker.metrics->loop_turns);
  poll(NULL, 0, 250);
  ok(metric_read(&kit.worker.metrics->loop_turns) - turns < 2000, "no busy loop");
  say(fd, "[2]");
  ok(next_is(fd, "{\"result\":[2]}"), "the served client goes on");
  setrlimit(RLIMIT_NOFILE, &old);
  say(fds[n - 1], "[3]");
  ok(next_is(fds[n - 1], "{\"result\":[3]}"), "the last one is served when there is room");
  while (n > 0)
    close(fds[--n]);
  close(fd);
  stop("descriptors");
}

static void
check_stop_open(void)
{
  int fds[20], i;

  kit_start();
  for (i = 0; i < 20; i++) {
    fds[i] = kit_connect(KIT_IPC);
    say(fds[i], i % 2 == 0 ? "[\"later\"]" : "[\"stream 100000000\"]");
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
  check_messages();
  check_broken();
  check_half_close();
  check_flow();
  check_limits();
  check_peers();
  check_caps();
  check_slow_reader();
  check_stuck_reader();
  check_steady_reader();
  check_cut();
  check_drain();
  check_many();
  check_descriptors();
  check_stop_open();
  return done_testing();
}
