/* SPDX-License-Identifier: MIT */
/* The http transport: connections that are kept, die, or may not be used; the queue; giving up
 * in each phase; readers that are full; nothing left behind. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http-node.h"
#include "tap.h"
#include "transport-host.h"

#define CALLS_MAX 64

static struct thost *host;
static struct hnode node;
static struct thost_call calls[CALLS_MAX];

static void
start(const char *const *options)
{
  host = thost_new("http", options);
  if (host == NULL || hnode_start(&node, thost_uv(host), 0) != 0) {
    printf("Bail out! no host or no node\n");
    exit(1);
  }
}

static void
stop(const char *what)
{
  hnode_stop(&node);
  is_int(thost_free(host), 0, "%s: no rule broken, nothing left on the loop", what);
  memset(&node, 0, sizeof node);
}

static struct egw_link *
open_path(const char *path)
{
  char url[256];

  snprintf(url, sizeof url, "http://127.0.0.1:%u%s", node.port, path);
  return thost_open(host, url, NULL);
}

static void
submit(struct egw_link *link, struct thost_call *call)
{
  thost_submit(link, call, "eth_blockNumber", "[]");
}

/* One exchange; whether it was answered. */
static bool
ask(struct egw_link *link, bool idempotent, bool fresh)
{
  struct thost_call call = { .idempotent = idempotent, .fresh = fresh };
  bool good;

  submit(link, &call);
  good = thost_wait(host, &call, 5000) && call.outcome == EGW_OK;
  if (!good)
    printf("# outcome %d: %s\n", (int)call.outcome, call.why);
  thost_call_free(&call);
  return good;
}

/* Submits `n` calls at once. */
static void
submit_many(struct egw_link *link, unsigned n)
{
  memset(calls, 0, sizeof calls);
  for (unsigned i = 0; i < n; i++) {
    calls[i].idempotent = true;
    submit(link, &calls[i]);
  }
}

static unsigned
wait_many(unsigned n)
{
  unsigned good = 0;

  for (unsigned i = 0; i < n; i++) {
    thost_wait(host, &calls[i], 5000);
    good += calls[i].done && calls[i].outcome == EGW_OK;
    thost_call_free(&calls[i]);
  }
  return good;
}

static bool
node_is_empty(void *arg)
{
  return ((struct hnode *)arg)->open == 0;
}

static bool
got_requests(void *arg)
{
  return node.requests >= *(unsigned *)arg;
}

static bool
wait_requests(unsigned n)
{
  return thost_run(host, got_requests, &n, 5000);
}

static bool
never(void *arg)
{
  (void)arg;
  return false;
}

/* --- kept connections ----------------------------------------------------------------- */

static void
test_reuse(void)
{
  struct egw_link *link;
  unsigned good = 0;

  start(NULL);
  link = open_path("/ok");
  for (int i = 0; i < 50; i++)
    good += ask(link, true, false);
  is_int(good, 50, "reads one after the other");
  is_int(node.accepted, 1, "all on one connection");
  ok(ask(link, true, true), "a fresh one");
  is_int(node.accepted, 2, "has a connection of its own");
  ok(ask(link, false, false), "one that is not idempotent");
  is_int(node.accepted, 3, "has a connection of its own");
  stop("reuse");
}

static void
test_dead_connections(bool reset, unsigned n)
{
  struct egw_link *link;
  unsigned good = 0;

  start(NULL);
  link = open_path("/ok");
  submit_many(link, n);
  is_int(wait_many(n), n, "%u reads at once", n);
  is_int(node.accepted, n, "each on its connection");
  hnode_end_all(&node, reset);
  for (unsigned i = 0; i < n; i++)
    good += ask(link, true, false);
  is_int(good, n, "kept connections end by %s: every read succeeds", reset ? "RST" : "FIN");
  stop("dead connections");
}

/* The node closes a connection 50 ms after its last answer; the reads come just then. */
static void
test_idle_race(void)
{
  struct egw_link *link;
  unsigned good = 0, n = 40;

  start(NULL);
  link = open_path("/idle50");
  for (unsigned i = 0; i < n; i++) {
    good += ask(link, true, false);
    thost_run(host, never, NULL, 46 + i % 8);
  }
  is_int(good, n, "reads about 50 ms apart of a node that closes after 50 ms");
  is_int(node.requests, n, "the node saw each once");
  stop("idle race");
}

/* The node takes the request on a kept connection and closes it without an answer. */
static void
test_no_second_sending(void)
{
  struct thost_call call = { .idempotent = false };
  struct egw_link *ok_link, *drop;

  start(NULL);
  ok_link = open_path("/ok");
  drop = open_path("/drop");
  ok(ask(ok_link, true, false), "a connection is kept");
  submit(drop, &call);
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_MAYBE_SENT,
     "dropped, not idempotent: maybe sent");
  is_int(node.requests, 2, "it was sent once");
  call = (struct thost_call){ .idempotent = true };
  submit(drop, &call);
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_MAYBE_SENT, "dropped, idempotent");
  is_int(node.requests, 4, "it was sent anew on a fresh connection, and no more");
  stop("no second sending");
}

/* --- the queue ------------------------------------------------------------------------ */

static void
test_queue(void)
{
  static const char *const three[] = { "max_connections", "3", NULL };
  struct egw_link *link;
  uint64_t last = 0;
  bool in_order = true;

  start(three);
  link = open_path("/silent");
  submit_many(link, 10);
  ok(wait_requests(3), "three of ten requests reach the node");
  thost_run(host, never, NULL, 50);
  is_int(node.requests, 3, "no more than three");
  thost_abort(&calls[7]);
  thost_abort(&calls[0]);
  ok(wait_requests(4), "giving one up lets the next go");
  ok(strstr(node.body, "\"id\":4,") != NULL, "which is the first in line");
  thost_close(link);
  for (int i = 1; i < 10; i++)
    if (i != 7)
      in_order = in_order && calls[i].done && calls[i].outcome == EGW_ABORTED;
  ok(in_order, "closing the link ends those in flight and in line");
  link = open_path("/ok");
  submit_many(link, 30);
  for (int i = 0; i < 30; i++) {
    thost_wait(host, &calls[i], 5000);
    in_order = in_order && calls[i].outcome == EGW_OK && calls[i].id > last;
    last = calls[i].id;
    thost_call_free(&calls[i]);
  }
  ok(in_order, "thirty more are answered");
  is_int(node.open, 3, "over three connections");
  stop("queue");
}

/* --- giving up ------------------------------------------------------------------------ */

static bool
has_body(void *arg)
{
  return ((struct thost_call *)arg)->len > 0;
}

static bool
is_paused(void *arg)
{
  return ((struct thost_call *)arg)->paused;
}

static void
test_abort(void)
{
  struct egw_link *ok_link, *silent, *stall, *big;
  struct thost_call call;
  unsigned seen;

  start(NULL);
  ok_link = open_path("/ok");
  silent = open_path("/silent");
  stall = open_path("/stall");
  big = open_path("/big/4000000");

  call = (struct thost_call){ .fresh = true };
  submit(ok_link, &call);
  thost_abort(&call);
  ok(ask(ok_link, true, false), "given up at once: the link works");

  call = (struct thost_call){ .fresh = true };
  submit(silent, &call);
  thost_turn(host, 1);
  thost_abort(&call);
  ok(ask(ok_link, true, false), "given up while connecting: the link works");

  seen = node.requests;
  call = (struct thost_call){ .fresh = true };
  submit(silent, &call);
  ok(wait_requests(seen + 1), "a request is with the node");
  thost_abort(&call);
  ok(ask(ok_link, true, false), "given up while waiting: the link works");

  call = (struct thost_call){ .fresh = true };
  submit(stall, &call);
  ok(thost_run(host, has_body, &call, 5000), "a reply began");
  thost_abort(&call);
  thost_call_free(&call);
  ok(ask(ok_link, true, false), "given up in the reply: the link works");

  call = (struct thost_call){ .pause_every = 1000 };
  submit(big, &call);
  ok(thost_run(host, is_paused, &call, 5000), "a reader is full");
  thost_abort(&call);
  thost_call_free(&call);
  ok(ask(ok_link, true, false), "given up while paused: the link works");

  call = (struct thost_call){ .pause_every = 1000 };
  submit(big, &call);
  ok(thost_run(host, is_paused, &call, 5000), "a reader is full");
  thost_more(&call);
  thost_abort(&call);
  thost_call_free(&call);
  ok(ask(ok_link, true, false), "given up right after more(): the link works");
  is_int(node.open, 1, "connections of what was given up are closed");
  stop("abort");
}

/* Whether new sockets can be watched: libuv refuses a descriptor that it believes watched. */
static bool
can_watch(void)
{
  uv_loop_t *loop = thost_uv(host);
  uv_poll_t polls[16];
  int fds[16], bad = 0;

  for (int i = 0; i < 16; i++) {
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bad += uv_poll_init(loop, &polls[i], fds[i]) != 0
           || uv_poll_start(&polls[i], UV_READABLE, NULL) != 0;
  }
  for (int i = 0; i < 16 && bad == 0; i++) {
    uv_poll_stop(&polls[i]);
    uv_close((uv_handle_t *)&polls[i], NULL);
    close(fds[i]);
  }
  thost_turn(host, 0);
  return bad == 0;
}

static bool
got_connection(void *arg)
{
  return node.accepted >= *(unsigned *)arg;
}

/* A node that accepts and does not go on with the TLS handshake. */
static void
test_abort_handshake(void)
{
  struct egw_link *link;
  char url[64];

  start(NULL);
  snprintf(url, sizeof url, "https://127.0.0.1:%u/", node.port);
  link = thost_open(host, url, NULL);
  for (unsigned i = 1; i <= 3; i++) {
    struct thost_call call = { .fresh = true };

    submit(link, &call);
    ok(thost_run(host, got_connection, &i, 5000), "the node accepted");
    thost_run(host, never, NULL, 20);
    ok(!call.done, "the handshake is under way");
    thost_abort(&call);
    ok(can_watch(), "given up in the handshake: its descriptor is free");
  }
  ok(ask(open_path("/ok"), true, false), "the loop works");
  stop("abort, handshake");
}

/* A backlog that is full: connecting goes on for ever. */
static void
test_abort_connecting(void)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), full[8];
  socklen_t len = sizeof in;
  struct egw_link *link;
  char url[64];

  if (bind(fd, (struct sockaddr *)&in, len) != 0 || listen(fd, 0) != 0
      || getsockname(fd, (struct sockaddr *)&in, &len) != 0)
    abort();
  for (int i = 0; i < 8; i++) {
    full[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    connect(full[i], (struct sockaddr *)&in, len);
  }
  start(NULL);
  snprintf(url, sizeof url, "http://127.0.0.1:%u/", (unsigned)ntohs(in.sin_port));
  link = thost_open(host, url, NULL);
  for (int i = 0; i < 3; i++) {
    struct thost_call call = { .fresh = true };

    submit(link, &call);
    thost_run(host, never, NULL, 20);
    ok(!call.done, "connecting is under way");
    thost_abort(&call);
    ok(can_watch(), "given up while connecting: its descriptor is free");
  }
  ok(ask(open_path("/ok"), true, false), "the loop works");
  for (int i = 0; i < 8; i++)
    close(full[i]);
  close(fd);
  stop("abort, connecting");
}

static void
test_abort_names(void)
{
  struct thost_call call = { .idempotent = true };
  struct egw_link *link;
  char url[64];

  start(NULL);
  thost_name(host, "node.test", "127.0.0.1");
  snprintf(url, sizeof url, "http://node.test:%u/ok", node.port);
  link = thost_open(host, url, NULL);
  submit(link, &call);
  thost_abort(&call);
  ok(ask(link, true, false), "given up before the name was known: the link works");
  is_int(node.requests, 1, "it was not sent");
  link = thost_open(host, url, NULL);
  call = (struct thost_call){ .idempotent = true };
  submit(link, &call);
  thost_close(link);
  ok(call.done && call.outcome == EGW_ABORTED, "closed before the name was known");
  stop("abort, names");
}

/* --- full readers --------------------------------------------------------------------- */

static bool
is_done_or_paused(void *arg)
{
  struct thost_call *call = arg;

  return call->done || call->paused;
}

static double
cpu_seconds(void)
{
  struct rusage u;

  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec)
         + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void
test_pause(void)
{
  struct thost_call call = { .pause_every = 1 << 20 };
  size_t n = 20 << 20, len, bad = 0;
  unsigned pauses = 0;
  double cpu;

  start(NULL);
  submit(open_path("/big/20971520"), &call);
  while (thost_run(host, is_done_or_paused, &call, 5000) && !call.done) {
    if (pauses++ == 3) {
      len = call.len;
      cpu = cpu_seconds();
      thost_run(host, never, NULL, 300);
      ok(call.len == len, "nothing comes while the reader is full");
      ok(cpu_seconds() - cpu < 0.1, "and the loop sleeps");
    }
    thost_more(&call);
  }
  ok(call.done && call.outcome == EGW_OK, "a reply of 20 MiB in pieces (%s)", call.why);
  ok(pauses >= 10, "with %u pauses", pauses);
  is_int(call.len, n + 37, "its length");
  for (size_t i = 34; call.len == n + 37 && i < 34 + n; i++)
    bad += call.data[i] != 'a';
  is_int(bad, 0, "its bytes");
  ok(call.len > 3 && strcmp(call.data + call.len - 3, "\"}\n") == 0, "its end");
  thost_call_free(&call);
  stop("pause");
}

/* A reader that is full after each piece. */
static void
test_pause_often(void)
{
  static const char *const paths[] = { "/chunked", "/big/300000" };

  for (int i = 0; i < 2; i++) {
    struct thost_call call = { .pause_every = 1 };
    unsigned pauses = 0;

    start(NULL);
    submit(open_path(paths[i]), &call);
    while (thost_run(host, is_done_or_paused, &call, 5000) && !call.done && ++pauses < 100000)
      thost_more(&call);
    ok(call.done && call.outcome == EGW_OK, "%s: answered after %u pauses", paths[i], pauses);
    is_int(call.len, i == 0 ? 39 : 300037, "%s: all of it, once", paths[i]);
    thost_call_free(&call);
    stop("pause often");
  }
}

/* --- nothing is left behind ----------------------------------------------------------- */

static unsigned
descriptors(void)
{
  DIR *dir = opendir("/proc/self/fd");
  unsigned n = 0;

  if (dir == NULL)
    return 0;
  while (readdir(dir) != NULL)
    n++;
  closedir(dir);
  return n;
}

static void
test_many(void)
{
  static const char *const paths[] = { "/ok",   "/close", "/reset",
                                       "/drop", "/short", "/status/500" };
  struct egw_link *links[6];
  unsigned before, done = 0;

  start(NULL);
  for (int i = 0; i < 6; i++)
    links[i] = open_path(paths[i]);
  for (int i = 0; i < 6; i++)
    done += ask(links[i], true, false);
  before = descriptors();
  done = 0;
  for (int i = 0; i < 1000; i++) {
    struct thost_call call = { .idempotent = i % 7 != 0, .fresh = i % 11 == 0 };

    submit(links[i % 6], &call);
    done += thost_wait(host, &call, 5000);
    thost_call_free(&call);
  }
  is_int(done, 1000, "a thousand exchanges end");
  ok(descriptors() <= before + 64, "without more descriptors than may be kept: %u, then %u",
     before, descriptors());
  for (int i = 0; i < 6; i++)
    thost_close(links[i]);
  hnode_end_all(&node, false);
  ok(thost_run(host, node_is_empty, &node, 1000), "the node has no connection left");
  before = descriptors();
  stop("many");
  ok(descriptors() < before, "descriptors are given back: %u, then %u", before, descriptors());
}

int
main(void)
{
  test_reuse();
  test_dead_connections(false, 8);
  test_dead_connections(true, 3);
  test_dead_connections(true, 6);
  test_dead_connections(true, 12);
  test_dead_connections(true, 40);
  test_idle_race();
  test_no_second_sending();
  test_queue();
  test_abort();
  test_abort_connecting();
  test_abort_handshake();
  test_abort_names();
  test_pause();
  test_pause_often();
  test_many();
  return done_testing();
}
