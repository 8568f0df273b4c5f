/* SPDX-License-Identifier: MIT */
/* Transport ipc against a scripted node on a unix socket. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tap.h"
#include "test-node.h"
#include "transport-host.h"

static char dir[] = "/tmp/egw-ipc-XXXXXX", path[64], url[80];

static const char *const quick[] = { "reconnect_min", "10ms", "reconnect_max", "80ms", NULL };

static bool
is_up(void *link)
{
  return thost_link_up(link);
}

static bool
is_down(void *link)
{
  return thost_link_downs(link) > 0;
}

static bool
never(void *arg)
{
  (void)arg;
  return false;
}

/* Waits for a condition on the node, the loop running meanwhile. */
#define UNTIL(host, condition, ms)                                                          \
  do {                                                                                      \
    for (unsigned until_n = 0; !(condition) && until_n < (ms); until_n++)                   \
      thost_turn((host), 1);                                                                \
  } while (0)

static unsigned
open_files(void)
{
  DIR *d = opendir("/proc/self/fd");
  unsigned n = 0;

  while (readdir(d) != NULL)
    n++;
  closedir(d);
  return n;
}

/* Makes a host and a link to a node that listens. */
static struct egw_link *
start(struct thost **host, struct node **node, const char *const *options)
{
  struct egw_link *link;

  *node = node_new(path, 0, NULL);
  *host = thost_new("ipc", options);
  if (*node == NULL || *host == NULL)
    skip_all("no plugin or no node");
  link = thost_open(*host, url, NULL);
  ok(thost_run(*host, is_up, link, 2000), "connects at once, before anything is asked");
  return link;
}

static void
finish(struct thost *host, struct node *node)
{
  is_int(thost_free(host), 0, "no rule of the contract was broken");
  if (node != NULL)
    node_free(node);
}

static void
call_free(struct thost_call *calls, size_t n)
{
  for (size_t i = 0; i < n; i++)
    thost_call_free(&calls[i]);
}

/* --- replies ---------------------------------------------------------------------------- */

static void
test_replies(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

  thost_submit(link, &a, "echo", "[1,\"\\u00e9\"]");
  ok(!a.bound && !a.sent, "an exchange is not bound before it is written");
  ok(thost_wait(host, &a, 2000), "a call is answered");
  is_int(a.outcome, EGW_OK, "its outcome");
  ok(a.bound && a.sent, "it was bound and sent");
  ok(a.data != NULL && strstr(a.data, "\"result\":[1,\"\\u00e9\"]") != NULL, "its reply");
  thost_submit(link, &b, "dribble", "[\"split into single bytes\"]");
  ok(thost_wait(host, &b, 2000), "a reply in single bytes");
  ok(b.data != NULL && strstr(b.data, "single bytes") != NULL, "is put together");
  thost_submit(link, &c, "push", "[3]");
  ok(thost_wait(host, &c, 2000), "a call answered after messages of the node's own");
  ok(strstr(thost_pushed(link), "\"params\":3") != NULL, "the messages arrived");
  thost_submit(link, &d, "echo", "[]");
  ok(thost_wait(host, &d, 2000), "and the connection is still good");
  is_int(thost_link_conns_ever(link), 1, "one call at a time needs one connection");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1), call_free(&d, 1);
  finish(host, node);
}

#define MANY 100

static void
test_order(void)
{
  static const char *const one[] = { "connections", "1", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, one);
  static struct thost_call late[MANY], release;
  unsigned right = 0;

  memset(late, 0, sizeof late);
  memset(&release, 0, sizeof release);
  for (unsigned i = 0; i < MANY; i++)
    thost_submit(link, &late[i], "late", "[]");
  thost_submit(link, &release, "release", "[]");
  ok(thost_wait(host, &release, 2000), "%d calls in flight on one connection", MANY);
  for (unsigned i = 0; i < MANY; i++)
    right += late[i].done && late[i].outcome == EGW_OK;
  is_int(right, MANY, "answered in reverse order, each gets its own answer");
  is_int(thost_link_conns_ever(link), 1, "still one connection");
  is_int(node->requests, MANY + 1, "each request was sent once");
  call_free(late, MANY), call_free(&release, 1);
  finish(host, node);
}

static void
test_sizes(void)
{
  static const size_t sizes[] = { 2000, 300000, 1700000, 17000000 };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call big = { 0 }, small = { 0 };
  char params[64];
  char *request = malloc(400003);

  for (unsigned i = 0; i < 4; i++)
    for (unsigned piece = 0; piece <= 4096; piece += 4096) {
      memset(&big, 0, sizeof big);
      memset(&small, 0, sizeof small);
      snprintf(params, sizeof params, "[%zu,%u]", sizes[i], piece);
      thost_submit(link, &big, "big", params);
      thost_submit(link, &small, "echo", "[]");
      ok(thost_wait(host, &big, 20000) && big.outcome == EGW_OK && big.len > sizes[i],
         "a reply of %zu bytes%s", sizes[i], piece == 0 ? "" : " in writes of 4096");
      ok(thost_wait(host, &small, 2000) && small.outcome == EGW_OK, "and one next to it");
      call_free(&big, 1), call_free(&small, 1);
    }
  memset(request, 'y', 400002);
  memcpy(request, "[\"", 2);
  memcpy(request + 400000, "\"]", 3);
  memset(&big, 0, sizeof big);
  thost_submit(link, &big, "echo", request);
  ok(thost_wait(host, &big, 5000) && big.len > 400000, "a request of 400 kB");
  free(request);
  call_free(&big, 1);
  finish(host, node);
}

/* --- losses ----------------------------------------------------------------------------- */

static void
test_lost(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, quick);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 };

  thost_submit(link, &a, "mute", "[]");
  UNTIL(host, node->requests == 1, 2000);
  ok(a.sent, "a call in flight");
  node_kill(node);
  ok(thost_wait(host, &a, 2000), "ends when the connection is lost");
  is_int(a.outcome, EGW_MAYBE_SENT, "it may have reached the node");
  is_int(thost_link_downs(link), 1, "the link is down");
  ok(strstr(thost_link_why(link), "closed") != NULL, "with the reason");
  thost_submit(link, &b, "echo", "[]");
  ok(!b.done, "a call meanwhile waits for the next attempt");
  ok(thost_wait(host, &b, 2000) && b.outcome == EGW_OK, "and is answered then");
  ok(thost_link_up(link), "the link is up again");
  thost_submit(link, &c, "drop", "[]");
  ok(thost_wait(host, &c, 2000), "the node closes instead of an answer");
  is_int(c.outcome, EGW_MAYBE_SENT, "it may have been acted on");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1);
  finish(host, node);
}

/* What is not yet written when the connection is lost was not sent. */
static void
test_not_sent(void)
{
  static const char *const one[] = { "connections", "1", "reconnect_min", "10ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, one);
  struct thost_call frozen = { 0 }, partly = { 0 }, behind = { 0 }, gone = { 0 };
  size_t len = 8000002;
  char *params = malloc(len + 1);

  memset(params, 'z', len);
  memcpy(params, "[\"", 2);
  memcpy(params + len - 2, "\"]", 3);
  thost_submit(link, &frozen, "freeze", "[]");
  UNTIL(host, node->requests == 1, 2000);
  thost_submit(link, &partly, "echo", params);
  thost_submit(link, &behind, "echo", "[]");
  thost_submit(link, &gone, "echo", "[]");
  UNTIL(host, partly.sent, 2000);
  ok(partly.sent && !behind.bound, "a large request is partly written, another waits");
  thost_abort(&gone);
  ok(!gone.bound, "one that waits is given up");
  node_kill(node);
  ok(thost_wait(host, &behind, 2000), "the connection is lost");
  is_int(frozen.outcome, EGW_MAYBE_SENT, "what was written may have been acted on");
  is_int(partly.outcome, EGW_MAYBE_SENT, "so may what was partly written");
  is_int(behind.outcome, EGW_NOT_SENT, "what waited was not sent");
  free(params);
  call_free(&frozen, 1), call_free(&partly, 1), call_free(&behind, 1), call_free(&gone, 1);
  finish(host, node);
}

static void
test_abort(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 };

  thost_submit(link, &a, "echo", "[]");
  thost_abort(&a);
  thost_submit(link, &b, "mute", "[]");
  UNTIL(host, b.sent, 2000);
  thost_abort(&b);
  thost_submit(link, &c, "echo", "[]");
  ok(thost_wait(host, &c, 2000) && c.outcome == EGW_OK, "calls go on after those given up");
  is_int(node->requests, 2, "the one given up before it was written was not sent");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1);
  finish(host, node);
}

static void
test_noise(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, quick);
  struct thost_call a = { 0 }, b = { 0 };

  thost_submit(link, &a, "noise", "[]");
  ok(thost_wait(host, &a, 2000), "the node sends what is not JSON");
  is_int(a.outcome, EGW_MAYBE_SENT, "the call ends with the connection");
  ok(strstr(a.why, "not JSON") != NULL, "with the reason");
  thost_submit(link, &b, "echo", "[]");
  ok(thost_wait(host, &b, 2000) && b.outcome == EGW_OK, "the next one is answered");
  call_free(&a, 1), call_free(&b, 1);
  finish(host, node);
}

/* A node that answers what it was not asked yet must not end what is still here. */
static void
test_early(void)
{
  static const char *const one[] = { "connections", "1", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, one);
  struct thost_call a = { 0 }, b = { 0 };

  thost_submit(link, &a, "early", "[]");
  ok(thost_wait(host, &a, 2000), "a node answers an id that was not used yet");
  thost_submit(link, &b, "echo", "[7]");
  ok(thost_wait(host, &b, 2000), "the call with that id");
  ok(b.data != NULL && strstr(b.data, "[7]") != NULL, "gets the answer to its own request");
  call_free(&a, 1), call_free(&b, 1);
  finish(host, node);
}

/* --- connecting ------------------------------------------------------------------------- */

static void
test_absent(void)
{
  static const struct egw_link_limits limits = { .connect_timeout_ms = 150, .max_reply = 999 };
  struct thost *host = thost_new("ipc", quick);
  struct egw_link *link = thost_open(host, url, &limits);
  struct node *node;
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };

  thost_submit(link, &a, "echo", "[]");
  ok(thost_wait(host, &a, 2000), "no socket: a call made before that is known");
  is_int(a.outcome, EGW_NOT_SENT, "fails at once");
  ok(thost_run(host, is_down, link, 2000), "the link is down");
  ok(strstr(thost_link_why(link), "no such socket") != NULL, "with the reason");
  ok(!thost_logged(host, path), "the path is not in the log");
  thost_submit(link, &b, "echo", "[]");
  thost_run(host, never, NULL, 50);
  ok(!b.done, "a later call waits");
  ok(thost_wait(host, &b, 2000), "but not for ever");
  is_int(b.outcome, EGW_NOT_SENT, "it was not sent");
  is_int(thost_link_downs(link), 1, "down is said once");
  thost_submit(link, &c, "echo", "[]");
  thost_abort(&c);
  node = node_new(path, 0, NULL);
  thost_submit(link, &d, "echo", "[]");
  ok(thost_wait(host, &d, 2000) && d.outcome == EGW_OK, "the socket comes: an answer");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1), call_free(&d, 1);
  finish(host, node);
}

/* A node that accepts and closes at once is asked less and less often. */
static void
test_backoff(void)
{
  static const char *const slow[] = { "reconnect_min", "50ms", "reconnect_max", "2s", NULL };
  struct node *node = node_new(path, 0, NULL);
  struct thost *host = thost_new("ipc", slow);
  struct egw_link *link;
  struct thost_call a = { 0 };
  unsigned attempts;

  node->mode = NODE_RESET;
  link = thost_open(host, url, NULL);
  thost_run(host, never, NULL, 1000);
  attempts = node->accepted;
  ok(attempts >= 3 && attempts <= 7, "a node that closes at once: %u attempts in a second",
     attempts);
  node->mode = NODE_SERVE;
  thost_submit(link, &a, "echo", "[]");
  ok(thost_wait(host, &a, 4000) && a.outcome == EGW_OK, "it is used when it has recovered");
  call_free(&a, 1);
  finish(host, node);
}

static void
test_descriptors(void)
{
  static const char *const often[] = { "reconnect_min", "1ms", "reconnect_max", "1ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, often);
  unsigned before = open_files();

  for (unsigned i = 0; i < 1000; i++) {
    unsigned established = node->established;

    node_kill(node);
    UNTIL(host, node->established > established, 1000);
  }
  thost_run(host, is_up, link, 2000);
  ok(thost_link_ups(link) >= 900, "connected again %u times", thost_link_ups(link));
  ok(open_files() <= before + 3, "without using up descriptors (%u, then %u)", before,
     open_files());
  finish(host, node);
}

static void
test_close(void)
{
  struct node *node = node_new(path, 0, NULL);
  struct thost *host = thost_new("ipc", NULL);
  struct egw_link *link = thost_open(host, url, NULL);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 };

  thost_submit(link, &a, "echo", "[]");
  thost_close(link);
  ok(a.done && a.outcome == EGW_ABORTED, "closed before it is connected: a call is aborted");
  link = thost_open(host, url, NULL);
  thost_run(host, is_up, link, 2000);
  thost_submit(link, &b, "mute", "[]");
  UNTIL(host, b.sent, 2000);
  thost_submit(link, &c, "mute", "[]");
  thost_close(link);
  ok(b.done && b.outcome == EGW_MAYBE_SENT, "closed with a call in flight: it ends");
  ok(c.done && c.outcome == EGW_ABORTED, "one not written is aborted");
  UNTIL(host, node->live == 0, 2000);
  is_int(node->live, 0, "the connections are closed");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1);
  finish(host, node);
}

static void
test_bad_paths(void)
{
  char longer[200] = "ipc:/";
  struct thost *host = thost_new("ipc", NULL);
  struct egw_link *link;
  char file[80], file_url[96];

  memset(longer + 5, 'p', 120);
  ok(thost_open(host, longer, NULL) == NULL, "a path too long for a socket is refused");
  snprintf(file, sizeof file, "%s/plain", dir);
  snprintf(file_url, sizeof file_url, "ipc:%s", file);
  fclose(fopen(file, "w"));
  link = thost_open(host, file_url, NULL);
  ok(thost_run(host, is_down, link, 2000), "a plain file is no socket");
  unlink(file);
  finish(host, NULL);
}

/* --- several connections ---------------------------------------------------------------- */

static void
test_spread(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call slow[6] = { { 0 } }, pinned[3] = { { 0 } };
  unsigned there = 0;

  for (unsigned i = 0; i < 6; i++)
    thost_submit(link, &slow[i], "mute", "[]");
  UNTIL(host, node->requests == 6, 2000);
  is_int(node->accepted, 2, "calls at the same time open a second connection, not more");
  for (unsigned i = 0; i < 3; i++) {
    pinned[i].wants = thost_call_conn(&slow[0]);
    thost_submit(link, &pinned[i], "mute", "[]");
  }
  UNTIL(host, node->requests == 9, 2000);
  for (unsigned i = 0; i < 3; i++)
    there += thost_call_conn(&pinned[i]) == thost_call_conn(&slow[0]);
  is_int(there, 3, "what must go out on a certain connection does");
  finish(host, node);
  call_free(slow, 6), call_free(pinned, 3);
}

/* A slow reader stops its own connection only. */
static void
test_pause(void)
{
  static const char *const one[] = { "connections", "1", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, one);
  struct thost_call big[20] = { { 0 } }, other[20] = { { 0 } };
  unsigned good = 0;

  for (unsigned i = 0; i < 3; i++) {
    thost_submit(link, &big[i], "late", "[]");
    UNTIL(host, big[i].sent, 2000);
    thost_hold_one(&big[i]);
    thost_submit(link, &other[i], "release", "[]");
    UNTIL(host, big[i].done, 2000);
    big[i].done = false;
  }
  thost_submit(link, &other[5], "echo", "[]");
  ok(thost_wait(host, &other[5], 2000), "with each connection held by a slow reader");
  ok(node->accepted >= 2 && node->accepted <= 4, "a call gets one of its own");
  thost_hold(link, false);
  for (unsigned i = 0; i < 3; i++)
    good += thost_wait(host, &other[i], 2000);
  is_int(good, 3, "what was held arrives when the readers go on");
  thost_submit(link, &big[10], "big", "[5000000,0]");
  UNTIL(host, big[10].sent, 2000);
  for (unsigned i = 0; i < 50 && !big[10].done; i++) {
    thost_hold(link, true);
    thost_run(host, never, NULL, 2);
    thost_hold(link, false);
    thost_run(host, never, NULL, 2);
  }
  ok(thost_wait(host, &big[10], 5000) && big[10].len > 5000000,
     "5 MB with many pauses arrive whole");
  finish(host, node);
  call_free(big, 20), call_free(other, 20);
}

/* All connections there may be are held: a call waits, for a while. */
static void
test_all_paused(void)
{
  static const struct egw_link_limits limits = { .connect_timeout_ms = 300, .max_reply = 999 };
  static const char *const one[] = { "connections", "1", NULL };
  struct node *node = node_new(path, 0, NULL);
  struct thost *host = thost_new("ipc", one);
  struct egw_link *link = thost_open(host, url, &limits);
  static struct thost_call held[40];
  struct thost_call last = { 0 };
  unsigned i, ended = 0;

  memset(held, 0, sizeof held);
  thost_run(host, is_up, link, 2000);
  thost_hold(link, true);
  for (i = 0; i < 40; i++) {
    thost_submit(link, &held[i], "echo", "[]");
    thost_wait(host, &held[i], 100);
  }
  is_int(node->accepted, 15, "the number of connections is bounded");
  for (i = 0; i < 40; i++) {
    thost_wait(host, &held[i], 2000);
    ended += held[i].done;
  }
  is_int(ended, 40, "every call ended");
  is_int(held[39].outcome, EGW_NOT_SENT, "those without a connection were not sent");
  thost_submit(link, &last, "echo", "[]");
  thost_hold(link, false);
  ok(thost_wait(host, &last, 2000) && last.outcome == EGW_OK, "and all is well afterwards");
  call_free(held, 40), call_free(&last, 1);
  finish(host, node);
}

int
main(void)
{
  signal(SIGPIPE, SIG_IGN);
  if (mkdtemp(dir) == NULL)
    skip_all("no temporary directory");
  snprintf(path, sizeof path, "%s/node.ipc", dir);
  snprintf(url, sizeof url, "ipc:%s", path);
  test_replies();
  test_order();
  test_sizes();
  test_lost();
  test_not_sent();
  test_abort();
  test_noise();
  test_early();
  test_absent();
  test_backoff();
  test_descriptors();
  test_close();
  test_bad_paths();
  test_spread();
  test_pause();
  test_all_paused();
  rmdir(dir);
  return done_testing();
}
