/* SPDX-License-Identifier: MIT */
/* Caps and deadlines of HTTP connections over real sockets: too many connections, slow heads,
 * bodies and readers, clients that leave, draining and stopping. */
#include "../lib/http-kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "listen/limits.h"
#include "../lib/tap.h"

#define HEAD "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

static struct kit kit;
static struct conf_limits limits; /* of its listener */
static struct reply reply;

static int
fresh(void)
{
  return kit_connect(kit_port(&kit));
}

static uint64_t
now_ms(void)
{
  return clock_us() / 1000;
}

/* --- counting addresses --------------------------------------------------------------- */

static struct sockaddr_storage
address(const char *text)
{
  struct sockaddr_storage addr;
  struct sockaddr_in *in = (void *)&addr;
  struct sockaddr_in6 *in6 = (void *)&addr;

  memset(&addr, 0, sizeof addr);
  if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
    addr.ss_family = AF_INET;
  else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
    addr.ss_family = AF_INET6;
  else
    addr.ss_family = AF_UNIX;
  return addr;
}

static bool
take(struct client_counts *counts, const char *text, uint64_t max)
{
  struct sockaddr_storage addr = address(text);

  return client_counts_take(counts, &addr, max);
}

static void
give(struct client_counts *counts, const char *text)
{
  struct sockaddr_storage addr = address(text);

  client_counts_give(counts, &addr);
}

static void
test_counts(void)
{
  struct client_counts *counts = client_counts_new();

  ok(take(counts, "10.0.0.1", 2) && take(counts, "10.0.0.1", 2), "two of an address");
  ok(!take(counts, "10.0.0.1", 2), "not three");
  ok(take(counts, "10.0.0.2", 2), "another address");
  give(counts, "10.0.0.1");
  ok(take(counts, "10.0.0.1", 2), "one left, one may come");
  ok(take(counts, "2001:db8:1:2:aaaa::1", 2) && take(counts, "2001:db8:1:2:bbbb::2", 2),
     "two of an IPv6 network");
  ok(!take(counts, "2001:db8:1:2::3", 2),
     "a third address of the same /64 is the same client");
  ok(take(counts, "2001:db8:1:3::3", 2), "one of another /64 is not");
  ok(take(counts, "::1", 1) && take(counts, "0.0.0.1", 1), "IPv4 and IPv6 do not meet");
  ok(take(counts, "unix", 1) && take(counts, "unix", 1), "unix peers are not counted");
  ok(take(counts, "10.0.0.3", 0), "0 is no limit");
  is_int(client_counts_size(counts), 7, "addresses are kept");
  give(counts, "10.0.0.1");
  give(counts, "10.0.0.1");
  give(counts, "10.0.0.1");
  is_int(client_counts_size(counts), 6, "and forgotten with the last connection");
  client_counts_free(counts);
}

/* --- too many ------------------------------------------------------------------------- */

static void
test_connections(void)
{
  int held[8], fd;
  atomic_uint *count = &kit.gateway.listeners.v[0].connections;

  limits.max_connections = 8;
  kit_limit(&kit, &limits);
  for (int i = 0; i < 8; i++) {
    held[i] = fresh();
    kit_post(held[i], "", "echo");
    kit_read(held[i], &reply, false);
  }
  is_int(reply.status, 200, "as many connections as there may be");
  fd = fresh();
  kit_post(fd, "", "echo");
  kit_read(fd, &reply, false);
  is_int(reply.status, 503, "one more is told so");
  ok(strstr(reply.body, "-32055") != NULL && kit_closed(fd), "in JSON, and closed");
  close(fd);
  ok(kit_refused(&kit, REFUSED_CONNECTIONS) >= 1, "it is counted");
  kit_post(held[3], "", "echo");
  kit_read(held[3], &reply, false);
  is_int(reply.status, 200, "the others go on");
  for (int i = 0; i < 8; i++)
    close(held[i]);
  for (int i = 0; i < KIT_WAIT && atomic_load(count) > 0; i++)
    kit_sessions(&kit);
  is_int(atomic_load(count), 0, "places are given back");
  limits.max_connections = 1000;
  kit_limit(&kit, &limits);
  limits.max_connections_per_client = 2;
  kit_limit(&kit, &limits);
  held[0] = fresh();
  held[1] = fresh();
  kit_sessions(&kit);
  fd = fresh();
  kit_post(fd, "", "echo");
  kit_read(fd, &reply, false);
  is_int(reply.status, 503, "one client has its own limit");
  ok(kit_refused(&kit, REFUSED_PER_CLIENT) >= 1, "that is counted by itself");
  close(fd);
  close(held[0]);
  close(held[1]);
  limits.max_connections_per_client = 1000;
  kit_limit(&kit, &limits);
}

/* Descriptors run out: the clients that are there are served, others are told, the loop
 * sleeps. */
static void
test_descriptors(void)
{
  enum { MANY = 120 };
  struct rlimit before, low;
  int fds[MANY], served = fresh(), told = 0, probe = dup(0);
  int64_t turns;

  kit_post(served, "", "echo");
  kit_read(served, &reply, false);
  close(probe);
  getrlimit(RLIMIT_NOFILE, &before);
  for (int i = 0; i < MANY; i++)
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  /* From here on this process can open 10 more. */
  low = (struct rlimit){ (rlim_t)(fds[MANY - 1] + 11), before.rlim_max };
  setrlimit(RLIMIT_NOFILE, &low);
  for (int i = 0; i < MANY; i++) {
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(kit_port(&kit)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    if (connect(fds[i], (struct sockaddr *)(void *)&in, sizeof in) != 0)
      break;
  }
  for (int i = 0; i < KIT_WAIT && kit_refused(&kit, REFUSED_DESCRIPTORS) < MANY - 20; i++)
    kit_sessions(&kit);
  ok(kit_refused(&kit, REFUSED_DESCRIPTORS) >= MANY - 20,
     "clients that find no descriptor left");
  kit_post(served, "", "echo on");
  kit_read(served, &reply, false);
  is_int(reply.status, 200, "one that is connected is served on");
  turns = metric_read(&kit.worker.metrics->loop_turns);
  for (int i = 0; i < 3; i++) {
    kit_post(served, "", "slow 50");
    kit_read(served, &reply, false);
  }
  ok(metric_read(&kit.worker.metrics->loop_turns) - turns < 200, "the loop does not spin");
  setrlimit(RLIMIT_NOFILE, &before);
  for (int i = 0; i < MANY; i++) {
    char c;

    if (recv(fds[i], &c, 1, MSG_DONTWAIT) == 1)
      told++;
    close(fds[i]);
  }
  ok(told >= MANY - 20, "%d of %d were told", told, MANY);
  close(served);
  served = fresh();
  kit_post(served, "", "echo");
  kit_read(served, &reply, false);
  is_int(reply.status, 200, "all is well afterwards");
  close(served);
}

/* --- too slow ------------------------------------------------------------------------- */

/* Half a head that stays half. */
static void
test_slow_head(void)
{
  uint64_t began = now_ms();
  int64_t turns = metric_read(&kit.worker.metrics->loop_turns);
  int fd = fresh(), silent = fresh();

  kit_send(fd, "POST / HTTP/1.1\r\nHost: loc");
  kit_read(fd, &reply, false);
  is_int(reply.status, 408, "half a head times out");
  ok(now_ms() - began >= 300 && now_ms() - began < 3000, "after the time for heads");
  ok(metric_read(&kit.worker.metrics->loop_turns) - turns < 100,
     "waiting for it costs nothing");
  ok(kit_closed(silent), "so does none");
  close(fd);
  close(silent);
  fd = fresh();
  kit_post(fd, "", "echo");
  kit_read(fd, &reply, false);
  kit_send(fd, "POST / HTTP/1.1\r\nHost: loc");
  kit_read(fd, &reply, false);
  is_int(reply.status, 408, "half a head of a later request, too");
  close(fd);
}

/* Bytes that come one by one do not put the deadline off. */
static void
test_dripping_head(void)
{
  const struct timespec pause = { .tv_nsec = 20000000 };
  uint64_t began = now_ms();
  int fd = fresh();
  char c;

  kit_send(fd, "POST / HTTP/1.1\r\nX: ");
  while (now_ms() - began < KIT_WAIT && recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
         errno == EAGAIN) {
    kit_send(fd, "x");
    nanosleep(&pause, NULL);
  }
  kit_read(fd, &reply, false);
  ok(reply.status == 408 && now_ms() - began < 3000, "a head that drips times out");
  close(fd);
}

static void
test_slow_body(void)
{
  int fd = fresh();

  kit_send(fd, HEAD "Content-Length: 10\r\n\r\necho");
  kit_read(fd, &reply, false);
  is_int(reply.status, 408, "half a body times out");
  ok(kit_closed(fd), "and ends the connection");
  close(fd);
}

static void
test_idle(void)
{
  uint64_t began = now_ms();
  int fd = fresh();

  kit_post(fd, "", "echo");
  kit_read(fd, &reply, false);
  ok(kit_closed(fd) && now_ms() - began >= 400 && now_ms() - began < 3000,
     "an idle connection is closed in time");
  close(fd);
}

static void
test_slow_reader(void)
{
  int fd = fresh(), small = 4096;
  int64_t before = kit_refused(&kit, REFUSED_SLOW_READER);

  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  kit_post(fd, "", "big 30000000");
  for (int i = 0; i < KIT_WAIT && kit_refused(&kit, REFUSED_SLOW_READER) == before; i++)
    kit_sessions(&kit);
  ok(kit_refused(&kit, REFUSED_SLOW_READER) == before + 1, "who does not read is cut off");
  close(fd);
}

/* --- gone ----------------------------------------------------------------------------- */

static void
test_gone(void)
{
  int cancelled = atomic_load(&kit_cancelled), fd = fresh();

  kit_post(fd, "", "hold");
  kit_wait(&kit_started, 1);
  close(fd);
  ok(kit_wait(&kit_cancelled, cancelled + 1), "a client that leaves cancels its call");
  fd = fresh();
  kit_post(fd, "", "stream 100000");
  kit_read(fd, &reply, true);
  close(fd);
  ok(kit_wait(&kit_cancelled, cancelled + 2), "and one that leaves amid a stream");
  for (int i = 0; i < KIT_WAIT && kit_sessions(&kit) > 0; i++)
    ;
  is_int(kit_sessions(&kit), 0, "no session is left");
}

/* The end comes together with the last bytes: a whole request, half a body, half a head of a
 * second request. */
static void
test_gone_at_once(void)
{
  const struct timespec pause = { .tv_nsec = 1000000 };
  uint64_t began;

  for (int i = 0; i < 60; i++) {
    int fd = fresh();

    kit_post(fd, "", "echo");
    if (i % 3 == 1)
      kit_send(fd, HEAD "Content-Length: 10\r\n\r\nhalf");
    if (i % 3 == 2)
      kit_send(fd, HEAD "Content");
    close(fd);
  }
  began = now_ms();
  while (kit_sessions(&kit) > 0 && now_ms() - began < KIT_WAIT)
    nanosleep(&pause, NULL);
  ok(now_ms() - began < 2000, "clients that leave with their last word are noticed");
}

/* --- admin ---------------------------------------------------------------------------- */

static void
test_admin(void)
{
  int fd = kit_connect(kit.gateway.listeners.v[1].port);

  kit_send(fd, "GET /health?x=y HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, false);
  ok(reply.status == 200 && strcmp(reply.body, "GET /health") == 0, "the admin listener");
  kit_send(fd, "HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, true);
  is_int(reply.status, 200, "HEAD");
  kit_send(fd, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  kit_read(fd, &reply, false);
  is_int(reply.status, 404, "another page");
  is_int(kit_sessions(&kit), 0, "does not count as a session");
  kit_send(fd, HEAD "Content-Length: 4\r\n\r\necho");
  kit_read(fd, &reply, false);
  is_int(reply.status, 405, "takes no calls");
  close(fd);
  fd = kit_connect(kit.gateway.listeners.v[1].port);
  kit_send(fd, "GET /health HTTP/1.1\r\nHost: evil.com\r\n\r\n");
  kit_read(fd, &reply, false);
  is_int(reply.status, 403, "has the same Host check");
  close(fd);
}

/* --- the end -------------------------------------------------------------------------- */

static void
test_drain(void)
{
  int started = atomic_load(&kit_started), idle, busy, streaming, half;

  idle = fresh();
  kit_post(idle, "", "echo");
  kit_read(idle, &reply, false);
  busy = fresh();
  kit_post(busy, "", "slow 300");
  streaming = fresh();
  kit_post(streaming, "", "drip 60");
  kit_wait(&kit_started, started + 3);
  half = fresh();
  kit_send(half, HEAD "Content-Len");
  kit_sessions(&kit);
  kit_drain(&kit);
  ok(kit_closed(idle), "draining ends the idle connection");
  is_int(fresh(), -1, "nobody else gets in");
  kit_read(busy, &reply, false);
  ok(reply.status == 200 && strcmp(reply_header(&reply, "Connection"), "close") == 0,
     "a call in flight is answered, with Connection: close");
  ok(kit_closed(busy), "and its connection closed");
  kit_send(half, "gth: 4\r\n\r\necho");
  kit_read(half, &reply, false);
  ok(reply.status == 200 && kit_closed(half), "a request under way is served");
  kit_read(streaming, &reply, false);
  ok(reply.whole && reply.len == 300 && kit_closed(streaming), "a stream comes to its end");
  for (int i = 0; i < KIT_WAIT && kit_sessions(&kit) > 0; i++)
    ;
  is_int(kit_sessions(&kit), 0, "then no session is left");
  close(idle);
  close(busy);
  close(streaming);
  close(half);
  kit_stop(&kit);
}

/* Stopping cuts whatever there is, in whatever state. */
static void
test_stop(void)
{
  static const char *const bodies[] = { "hold", "big 30000000", "stream 100000", "drip 100000",
                                        "echo" };
  int fds[8], started = atomic_load(&kit_started);

  kit_init(&kit);
  kit_start(&kit);
  for (int i = 0; i < 5; i++) {
    fds[i] = fresh();
    kit_post(fds[i], "", bodies[i]);
  }
  fds[5] = fresh();
  kit_send(fds[5], HEAD "Content-Length: 100\r\n\r\nhalf");
  fds[6] = fresh();
  kit_send(fds[6], "POST / HT");
  fds[7] = fresh();
  kit_wait(&kit_started, started + 5);
  kit_sessions(&kit);
  kit_stop(&kit);
  ok(kit_closed(fds[0]) && kit_closed(fds[7]), "stopping cuts connections");
  for (int i = 0; i < 8; i++)
    close(fds[i]);
}

int
main(void)
{
  test_counts();
  kit_init(&kit);
  kit.conf.has_admin = true;
  kit.conf.admin = kit.listeners[0];
  limits = kit.listeners[0].limits;
  kit_start(&kit);
  test_connections();
  test_descriptors();
  test_gone();
  test_gone_at_once();
  test_admin();
  limits.head_timeout = 300;
  kit_limit(&kit, &limits);
  test_slow_head();
  test_dripping_head();
  limits.body_timeout = 300;
  kit_limit(&kit, &limits);
  test_slow_body();
  limits.write_timeout = 300;
  kit_limit(&kit, &limits);
  test_slow_reader();
  limits.idle_timeout = 400;
  kit_limit(&kit, &limits);
  test_idle();
  limits.idle_timeout = 10000;
  kit_limit(&kit, &limits);
  limits.head_timeout = 5000;
  kit_limit(&kit, &limits);
  test_drain();
  test_stop();
  reply_free(&reply);
  return done_testing();
}
