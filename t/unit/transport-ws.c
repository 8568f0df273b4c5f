/* SPDX-License-Identifier: MIT */
/* Transport ws against a scripted WebSocket node. */
#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tap.h"
#include "test-node.h"
#include "transport-host.h"

static char dir[] = "/tmp/egw-ws-XXXXXX";

static const char *const quick[] = { "reconnect_min", "10ms", "reconnect_max", "80ms", NULL };
static const char *const one[] = { "connections", "1", NULL };

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

static struct egw_link *
open_link(struct thost *host, const struct node *node, const char *scheme, const char *name,
          const struct egw_link_limits *limits)
{
  char url[256];

  snprintf(url, sizeof url, "%s://%s:%u/", scheme, name, node->port);
  return thost_open(host, url, limits);
}

static struct egw_link *
start(struct thost **host, struct node **node, const char *const *options)
{
  struct egw_link *link;

  *node = node_new(NULL, 0, NULL);
  *host = thost_new("ws", options);
  if (*node == NULL || *host == NULL)
    skip_all("no plugin or no node");
  link = open_link(*host, *node, "ws", "127.0.0.1", NULL);
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

static bool
head_has(struct node *node, const char *text)
{
  bool found;

  pthread_mutex_lock(&node->lock);
  found = strstr(node->head, text) != NULL;
  pthread_mutex_unlock(&node->lock);
  return found;
}

/* --- replies ---------------------------------------------------------------------------- */

static void
test_replies(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, e = { 0 };
  char expected[64];

  snprintf(expected, sizeof expected, "\r\nHost: 127.0.0.1:%u\r\n", node->port);
  ok(head_has(node, expected), "the Host header has name and port");
  ok(!head_has(node, "Extensions") && !head_has(node, "Authorization")
     && !head_has(node, "Origin"), "nothing is said that was not asked for");
  thost_submit(link, &a, "echo", "[1,\"\\u00e9\"]");
  ok(thost_wait(host, &a, 2000) && a.outcome == EGW_OK, "a call is answered");
  ok(a.data != NULL && strstr(a.data, "\"result\":[1,\"\\u00e9\"]") != NULL, "its reply");
  thost_submit(link, &b, "dribble", "[\"split into single bytes\"]");
  ok(thost_wait(host, &b, 2000), "a reply in single bytes");
  ok(b.data != NULL && strstr(b.data, "single bytes") != NULL, "is put together");
  thost_submit(link, &c, "push", "[3]");
  ok(thost_wait(host, &c, 2000), "a call answered after messages of the node's own");
  ok(strstr(thost_pushed(link), "\"params\":3") != NULL, "the messages arrived");
  thost_submit(link, &d, "noise", "[]");
  ok(thost_wait(host, &d, 2000) && d.outcome == EGW_OK, "a message that is not JSON, then it");
  thost_submit(link, &e, "empty", "[]");
  ok(thost_wait(host, &e, 2000) && e.outcome == EGW_OK, "an empty message, then a good one");
  ok(strstr(thost_pushed(link), "not json\n\n") != NULL, "both were handed on");
  is_int(thost_link_conns_ever(link), 1, "all on one connection");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1), call_free(&d, 1), call_free(&e, 1);
  finish(host, node);
}

#define MANY 100

static void
test_order(void)
{
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
  is_int(node->requests, MANY + 1, "each request was sent once");
  call_free(late, MANY), call_free(&release, 1);
  finish(host, node);
}

static void
try_sizes(struct thost *host, struct egw_link *link, size_t most)
{
  static const size_t sizes[] = { 2000, 70000, 300000, 1700000, 17000000 };
  static const size_t frames[] = { 0, 5000, 6000000 };
  struct thost_call big, small;
  char params[64];

  for (unsigned i = 0; i < 5 && sizes[i] <= most; i++)
    for (unsigned f = 0; f < 3; f++) {
      memset(&big, 0, sizeof big);
      memset(&small, 0, sizeof small);
      snprintf(params, sizeof params, "[%zu,%zu]", sizes[i], frames[f]);
      thost_submit(link, &big, "big", params);
      thost_submit(link, &small, "echo", "[]");
      ok(thost_wait(host, &big, 20000) && big.outcome == EGW_OK && big.len > sizes[i],
         "a reply of %zu bytes in frames of %zu", sizes[i], frames[f]);
      ok(thost_wait(host, &small, 2000) && small.outcome == EGW_OK, "and one next to it");
      call_free(&big, 1), call_free(&small, 1);
    }
}

static void
test_sizes(void)
{
  static const size_t lengths[] = { 100, 200, 60000, 70000, 400000, 5000000 };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, NULL);
  struct thost_call call;
  char *params = malloc(5000001);

  try_sizes(host, link, 17000000);
  for (unsigned i = 0; i < 6; i++) {
    memset(&call, 0, sizeof call);
    memset(params, 'y', lengths[i]);
    memcpy(params, "[\"", 2);
    memcpy(params + lengths[i] - 2, "\"]", 3);
    thost_submit(link, &call, "echo", params);
    ok(thost_wait(host, &call, 5000) && call.data != NULL && strstr(call.data, params) != NULL,
       "a request with %zu bytes of params", lengths[i]);
    call_free(&call, 1);
  }
  free(params);
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

/* The node stops reading: what lws has taken may have been sent, what waits behind was not. */
static void
test_frozen(void)
{
  static const char *const pings[] = { "connections", "1", "ping_interval", "60ms",
                                       "pong_timeout", "80ms", "reconnect_min", "10ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, pings);
  struct thost_call a = { 0 }, b = { 0 }, idle = { 0 };

  UNTIL(host, node->pings >= 3, 3000);
  ok(node->pings >= 3, "an idle connection is kept alive by pings");
  is_int(thost_link_downs(link), 0, "and stays");
  thost_submit(link, &idle, "echo", "[]");
  ok(thost_wait(host, &idle, 2000) && idle.outcome == EGW_OK, "it is good after that");
  thost_submit(link, &a, "freeze", "[]");
  ok(thost_wait(host, &a, 3000), "a node that neither reads nor answers is given up");
  is_int(a.outcome, EGW_MAYBE_SENT, "its call may have been acted on");
  ok(strstr(thost_link_why(link), "ping") != NULL, "with the reason");
  thost_submit(link, &b, "echo", "[]");
  ok(thost_wait(host, &b, 2000) && b.outcome == EGW_OK, "and a new connection is made");
  call_free(&a, 1), call_free(&b, 1), call_free(&idle, 1);
  finish(host, node);
}

static void
test_frozen_full(void)
{
  static const char *const pings[] = { "connections", "1", "ping_interval", "100ms",
                                       "pong_timeout", "150ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, pings);
  struct thost_call a = { 0 }, big = { 0 }, behind = { 0 };
  size_t len = 30000002;
  char *params = malloc(len + 1);

  memset(params, 'z', len);
  memcpy(params, "[\"", 2);
  memcpy(params + len - 2, "\"]", 3);
  thost_submit(link, &a, "freeze", "[]");
  UNTIL(host, node->requests == 1, 2000);
  thost_submit(link, &big, "echo", params);
  thost_submit(link, &behind, "echo", "[]");
  UNTIL(host, big.sent, 2000);
  ok(thost_wait(host, &behind, 3000), "a connection that takes no more is given up too");
  is_int(big.outcome, EGW_MAYBE_SENT, "what was partly written may have been acted on");
  is_int(behind.outcome, EGW_NOT_SENT, "what waited behind was not sent");
  free(params);
  call_free(&a, 1), call_free(&big, 1), call_free(&behind, 1);
  finish(host, node);
}

static void
test_abort(void)
{
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, one);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 }, early = { 0 };

  thost_submit(link, &a, "echo", "[]");
  thost_abort(&a);
  thost_submit(link, &b, "mute", "[]");
  UNTIL(host, b.sent, 2000);
  thost_abort(&b);
  thost_submit(link, &c, "early", "[1]");
  ok(thost_wait(host, &c, 2000) && c.outcome == EGW_OK, "calls go on after those given up");
  is_int(node->requests, 2, "the one given up before it was written was not sent");
  thost_submit(link, &early, "echo", "[7]");
  ok(thost_wait(host, &early, 2000) && strstr(early.data, "[7]") != NULL,
     "an answer that came before its request was written is not taken for it");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1), call_free(&early, 1);
  finish(host, node);
}

/* --- connecting ------------------------------------------------------------------------- */

/* A port on which nobody listens. */
static unsigned
free_port(void)
{
  struct node *node = node_new(NULL, 0, NULL);
  unsigned port = node->port;

  node_free(node);
  return port;
}

static void
test_absent(void)
{
  static const struct egw_link_limits limits = { .connect_timeout_ms = 300, .max_reply = 999 };
  struct thost *host = thost_new("ws", quick);
  struct node *node, where = { .port = free_port() };
  struct egw_link *link = open_link(host, &where, "ws", "user:SECRETpw@127.0.0.1", &limits);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 };

  thost_submit(link, &a, "echo", "[]");
  ok(thost_wait(host, &a, 2000), "nobody listens: a call made before that is known");
  is_int(a.outcome, EGW_NOT_SENT, "fails at once");
  ok(thost_run(host, is_down, link, 2000), "the link is down");
  thost_submit(link, &b, "echo", "[]");
  thost_run(host, never, NULL, 50);
  ok(!b.done, "a later call waits");
  ok(thost_wait(host, &b, 2000) && b.outcome == EGW_NOT_SENT, "but not for ever");
  is_int(thost_link_downs(link), 1, "down is said once");
  node = node_new(NULL, where.port, NULL);
  thost_submit(link, &c, "echo", "[]");
  ok(thost_wait(host, &c, 2000) && c.outcome == EGW_OK, "the node comes: calls are answered");
  ok(!thost_logged(host, "SECRETpw") && !thost_logged(host, "U0VDUkVU"),
     "no secret is logged");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1);
  finish(host, node);
}

static void
test_backoff(void)
{
  static const char *const slow[] = { "reconnect_min", "50ms", "reconnect_max", "2s", NULL };
  struct node *node = node_new(NULL, 0, NULL);
  struct thost *host = thost_new("ws", slow);
  struct egw_link *link;
  struct thost_call a = { 0 };
  unsigned attempts;

  node->mode = NODE_RESET;
  link = open_link(host, node, "ws", "127.0.0.1", NULL);
  thost_run(host, never, NULL, 1000);
  attempts = node->accepted;
  ok(attempts >= 3 && attempts <= 7, "a node that resets at once: %u attempts in a second",
     attempts);
  node->mode = NODE_SERVE;
  thost_submit(link, &a, "echo", "[]");
  ok(thost_wait(host, &a, 4000) && a.outcome == EGW_OK, "it is used when it has recovered");
  call_free(&a, 1);
  finish(host, node);
}

static void
test_refusals(void)
{
  static const struct egw_link_limits limits = { .connect_timeout_ms = 200, .max_reply = 999 };
  struct node *node = node_new(NULL, 0, NULL), *second = node_new(NULL, 0, NULL);
  struct thost *host = thost_new("ws", one);
  struct egw_link *link;

  node->mode = NODE_REFUSE;
  link = open_link(host, node, "ws", "127.0.0.1", &limits);
  ok(thost_run(host, is_down, link, 2000), "a handshake answered with 403");
  ok(strstr(thost_link_why(link), "403") != NULL, "is told so: %s", thost_link_why(link));
  thost_close(link);
  node->mode = NODE_REDIRECT;
  snprintf(node->elsewhere, sizeof node->elsewhere, "http://127.0.0.1:%u/", second->port);
  link = open_link(host, node, "ws", "127.0.0.1", &limits);
  ok(thost_run(host, is_down, link, 2000), "a redirect");
  ok(strstr(thost_link_why(link), "redirect") != NULL, "is told so: %s", thost_link_why(link));
  is_int(second->accepted, 0, "it is not followed");
  thost_close(link);
  node->mode = NODE_SILENT;
  link = open_link(host, node, "ws", "127.0.0.1", &limits);
  ok(thost_run(host, is_down, link, 2000), "a handshake without an answer");
  ok(strstr(thost_link_why(link), "too long") != NULL, "is given up: %s",
     thost_link_why(link));
  UNTIL(host, node->live <= 1, 2000);
  thost_close(link);
  link = open_link(host, node, "ws", "127.0.0.1", &limits);
  UNTIL(host, node->accepted >= 4, 2000);
  thost_close(link);
  ok(true, "closed in the middle of a handshake");
  node_free(second);
  finish(host, node);
}

static void
test_names(void)
{
  struct thost *host = thost_new("ws", quick);
  struct node *node = node_new(NULL, 0, NULL);
  struct egw_link *link;
  char expected[64];

  thost_name(host, "node.example", "127.9.9.9 127.0.0.1");
  thost_name(host, "none.example", "");
  link = open_link(host, node, "ws", "node.example", NULL);
  ok(thost_run(host, is_up, link, 2000), "the second address of a name is tried");
  snprintf(expected, sizeof expected, "\r\nHost: node.example:%u\r\n", node->port);
  ok(head_has(node, expected), "the Host header has the name");
  ok(thost_resolved(host) > 0, "names are looked up by the host, not by lws");
  thost_close(link);
  link = open_link(host, node, "ws", "none.example", NULL);
  ok(thost_run(host, is_down, link, 2000), "a name without address");
  ok(strstr(thost_link_why(link), "no address") != NULL, "is told so");
  thost_close(link);
  link = open_link(host, node, "ws", "node.example", NULL);
  thost_close(link);
  ok(true, "closed while a name is looked up");
  finish(host, node);
}

static void
test_credentials(void)
{
  static const char *const bearer[] = { "bearer", "SECRETtoken", "headers", "X-Key: SECRETkey",
                                        "headers", "Origin: https://x.example", NULL };
  static const char *const jwt[] = {
    "jwt_secret", "0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", NULL
  };
  struct node *node = node_new(NULL, 0, NULL);
  struct thost *host = thost_new("ws", NULL);
  struct egw_link *link = open_link(host, node, "ws", "user:SECRETpw@127.0.0.1", NULL);
  char path[128];

  ok(thost_run(host, is_up, link, 2000), "user and password in the URL");
  ok(head_has(node, "\r\nAuthorization: Basic dXNlcjpTRUNSRVRwdw==\r\n"), "are sent as Basic");
  thost_close(link);
  snprintf(path, sizeof path, "ws://127.0.0.1:%u/v2/SECRETkey?a=b%%20c", node->port);
  link = thost_open(host, path, NULL);
  ok(thost_run(host, is_up, link, 2000), "a path with a key");
  ok(head_has(node, "GET /v2/SECRETkey?a=b%20c HTTP/1.1\r\n"), "is sent as it is");
  is_int(thost_free(host), 0, "no rule broken");
  host = thost_new("ws", bearer);
  link = open_link(host, node, "ws", "user:SECRETpw@127.0.0.1", NULL);
  ok(thost_run(host, is_up, link, 2000), "bearer and further headers");
  ok(head_has(node, "\r\nAuthorization: Bearer SECRETtoken\r\n") && !head_has(node, "Basic"),
     "the token is sent");
  ok(head_has(node, "\r\nX-Key: SECRETkey\r\n")
     && head_has(node, "\r\nOrigin: https://x.example\r\n"), "the headers are sent");
  is_int(thost_free(host), 0, "no rule broken");
  host = thost_new("ws", jwt);
  link = open_link(host, node, "ws", "127.0.0.1", NULL);
  ok(thost_run(host, is_up, link, 2000), "a JWT");
  ok(head_has(node, "\r\nAuthorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
              "eyJpYXQiOj"), "is sent");
  ok(!thost_logged(host, "SECRET"), "no secret is logged");
  finish(host, node);
}

static void
test_options(void)
{
  static const char *const bad[][5] = {
    { "jwt_secret", "0x12", NULL }, { "bearer", "a\nb", NULL },
    { "bearer", "x", "headers", "Authorization: y", NULL }, { "headers", "Host: x", NULL },
    { "headers", "no colon", NULL }, { "headers", "A: b\r\nC: d", NULL },
    { "ca_file", "/nonexistent.pem", NULL },
  };
  char path[200];

  for (unsigned i = 0; i < 7; i++) {
    struct thost *host = thost_new("ws", bad[i]);

    ok(host == NULL, "%s=%s is refused: %s", bad[i][0],
       strchr(bad[i][1], '\n') ? "..." : bad[i][1], thost_refusal());
    if (host != NULL)
      thost_free(host);
  }
  struct thost *host = thost_new("ws", NULL);

  snprintf(path, sizeof path, "ws://%0150d:1/", 0);
  ok(thost_open(host, path, NULL) == NULL, "a host name longer than lws can take is refused");
  finish(host, NULL);
}

static void
test_descriptors(void)
{
  static const char *const often[] = { "reconnect_min", "1ms", "reconnect_max", "1ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, often);
  unsigned before = open_files(), port = node->port;

  for (unsigned i = 0; i < 1000; i++) {
    unsigned established = node->established;

    node_kill(node);
    UNTIL(host, node->established > established, 2000);
  }
  thost_run(host, is_up, link, 2000);
  ok(thost_link_ups(link) >= 1000, "connected again %u times", thost_link_ups(link));
  ok(open_files() <= before + 3, "without using up descriptors (%u, then %u)", before,
     open_files());
  node_free(node);
  thost_run(host, never, NULL, 300);
  ok(open_files() <= before + 3, "nor when nobody listens (%u)", open_files());
  node = node_new(NULL, port, NULL);
  ok(thost_run(host, is_up, link, 2000), "and it comes up again");
  finish(host, node);
}

static void
test_close(void)
{
  struct node *node = node_new(NULL, 0, NULL);
  struct thost *host = thost_new("ws", NULL);
  struct egw_link *link = open_link(host, node, "ws", "127.0.0.1", NULL);
  struct thost_call a = { 0 }, b = { 0 }, c = { 0 };

  thost_submit(link, &a, "echo", "[]");
  thost_close(link);
  ok(a.done && a.outcome == EGW_ABORTED, "closed before it is connected: a call is aborted");
  link = open_link(host, node, "ws", "127.0.0.1", NULL);
  thost_run(host, is_up, link, 2000);
  thost_submit(link, &b, "mute", "[]");
  UNTIL(host, b.sent, 2000);
  thost_submit(link, &c, "mute", "[]");
  thost_close(link);
  ok(b.done && b.outcome == EGW_MAYBE_SENT, "closed with a call in flight: it ends");
  ok(c.done && c.outcome == EGW_ABORTED, "one not written is aborted");
  UNTIL(host, node->live == 0 && node->closes == 1, 2000);
  is_int(node->live, 0, "the connections are closed");
  is_int(node->closes, 1, "politely");
  call_free(&a, 1), call_free(&b, 1), call_free(&c, 1);
  finish(host, node);
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
  UNTIL(host, node->requests == 6 && node->accepted == 2, 2000);
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

static void
try_pauses(struct thost *host, struct egw_link *link)
{
  struct thost_call big = { 0 }, other = { 0 };

  thost_submit(link, &big, "big", "[3000000,0]");
  UNTIL(host, big.sent, 2000);
  thost_hold_one(&big);
  UNTIL(host, big.len > 0, 50);
  thost_submit(link, &other, "echo", "[]");
  ok(thost_wait(host, &other, 2000) && !big.done, "a call next to a slow reader is answered");
  for (unsigned i = 0; i < 50 && !big.done; i++) {
    thost_hold(link, true);
    thost_run(host, never, NULL, 2);
    thost_hold(link, false);
    thost_run(host, never, NULL, 2);
  }
  ok(thost_wait(host, &big, 5000) && big.len > 3000000, "3 MB with many pauses arrive whole");
  call_free(&big, 1), call_free(&other, 1);
}

static void
test_pause(void)
{
  static const char *const held[] = { "connections", "1", "ping_interval", "50ms",
                                      "pong_timeout", "50ms", NULL };
  struct thost *host;
  struct node *node;
  struct egw_link *link = start(&host, &node, held);
  struct thost_call big = { 0 };

  try_pauses(host, link);
  thost_submit(link, &big, "big", "[3000000,0]");
  UNTIL(host, big.sent, 2000);
  thost_hold_one(&big);
  thost_run(host, never, NULL, 400);
  ok(!big.done && thost_link_downs(link) == 0,
     "a connection held by a slow reader is not taken for dead");
  thost_hold(link, false);
  ok(thost_wait(host, &big, 5000) && big.len > 3000000, "and goes on");
  call_free(&big, 1);
  finish(host, node);
}

/* --- TLS -------------------------------------------------------------------------------- */

/* Whether a link to a node with that certificate comes up; `why` it does not. */
static bool
tls_works(const char *names, int from, int to, const char *host_name, bool trust,
          bool insecure, char *why, size_t cap)
{
  char pem[64];
  const char *options[8] = { 0 };
  struct thost *host;
  struct node *node;
  struct egw_link *link;
  void *tls;
  bool up;
  unsigned n = 0;

  snprintf(pem, sizeof pem, "%s/ca.pem", dir);
  tls = node_tls(names, from, to, pem);
  if (trust) {
    options[n++] = "ca_file";
    options[n++] = pem;
  }
  options[n++] = "insecure_skip_verify";
  options[n++] = insecure ? "true" : "false";
  node = node_new(NULL, 0, tls);
  host = thost_new("ws", options);
  thost_name(host, "node.example", "127.0.0.1");
  link = open_link(host, node, "wss", host_name, NULL);
  for (unsigned i = 0; i < 3000 && !thost_link_up(link) && thost_link_downs(link) == 0; i++)
    thost_turn(host, 1);
  up = thost_link_up(link);
  snprintf(why, cap, "%s", thost_link_why(link));
  is_int(thost_free(host), 0, "no rule of the contract was broken");
  node_free(node);
  node_tls_free(tls);
  unlink(pem);
  return up;
}

static void
test_tls(void)
{
  char why[160];

  ok(tls_works("DNS:node.example", -1, 1, "node.example", true, false, why, sizeof why),
     "wss: a certificate that is in order");
  ok(!tls_works("DNS:other.example", -1, 1, "node.example", true, false, why, sizeof why),
     "one for another name: %s", why);
  ok(!tls_works("DNS:node.example", -2, -1, "node.example", true, false, why, sizeof why),
     "one that has expired: %s", why);
  ok(!tls_works("DNS:node.example", 1, 2, "node.example", true, false, why, sizeof why),
     "one that is not valid yet: %s", why);
  ok(!tls_works("DNS:node.example", -1, 1, "node.example", false, false, why, sizeof why),
     "one of an unknown authority: %s", why);
  ok(tls_works("IP:127.0.0.1", -1, 1, "127.0.0.1", true, false, why, sizeof why),
     "one for an address");
  ok(!tls_works("DNS:127.0.0.1", -1, 1, "127.0.0.1", true, false, why, sizeof why),
     "one that has the address as a name: %s", why);
  ok(tls_works("DNS:other.example", 1, 2, "node.example", false, true, why, sizeof why),
     "insecure_skip_verify takes any");
}

static void
test_tls_traffic(void)
{
  char pem[64];
  const char *const options[] = { "ca_file", pem, "connections", "1", "reconnect_min", "5ms",
                                  "reconnect_max", "5ms", NULL };
  struct thost *host;
  struct node *node, *plain;
  struct egw_link *link;
  struct thost_call call = { 0 };
  void *tls;

  snprintf(pem, sizeof pem, "%s/ca.pem", dir);
  tls = node_tls("DNS:node.example", -1, 1, pem);
  node = node_new(NULL, 0, tls);
  host = thost_new("ws", options);
  thost_name(host, "node.example", "127.0.0.1");
  link = open_link(host, node, "wss", "node.example", NULL);
  ok(thost_run(host, is_up, link, 3000), "a link with TLS");
  try_sizes(host, link, 1700000);
  try_pauses(host, link);
  for (unsigned i = 0; i < 50; i++) {
    unsigned established = node->established;

    node_kill(node);
    UNTIL(host, node->established > established, 2000);
  }
  ok(thost_link_ups(link) >= 40, "connected again %u times", thost_link_ups(link));
  thost_submit(link, &call, "echo", "[]");
  ok(thost_wait(host, &call, 3000) && call.outcome == EGW_OK, "and good");
  thost_close(link);
  plain = node_new(NULL, 0, NULL);
  link = open_link(host, plain, "wss", "node.example", NULL);
  ok(thost_run(host, is_down, link, 3000), "a node that does not speak TLS: %s",
     thost_link_why(link));
  call_free(&call, 1);
  finish(host, node);
  node_free(plain);
  node_tls_free(tls);
  unlink(pem);
}

int
main(void)
{
  signal(SIGPIPE, SIG_IGN);
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  if (mkdtemp(dir) == NULL)
    skip_all("no temporary directory");
  test_replies();
  test_order();
  test_sizes();
  test_lost();
  test_frozen();
  test_frozen_full();
  test_abort();
  test_absent();
  test_backoff();
  test_refusals();
  test_names();
  test_credentials();
  test_options();
  test_descriptors();
  test_close();
  test_spread();
  test_pause();
  test_tls();
  test_tls_traffic();
  rmdir(dir);
  return done_testing();
}
