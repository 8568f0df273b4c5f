/* SPDX-License-Identifier: MIT */
/* Transport ws against a scripted WebSocket node: replies, losses, several connections. */
#include <signal.h>
#include "transport-ws-kit.h"

static const char *const quick[] = { "reconnect_min", "10ms", "reconnect_max", "80ms", NULL };
static const char *const one[] = { "connections", "1", NULL };

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

int
main(void)
{
  signal(SIGPIPE, SIG_IGN);
  test_replies();
  test_order();
  test_sizes();
  test_lost();
  test_frozen();
  test_frozen_full();
  test_abort();
  test_spread();
  test_pause();
  return done_testing();
}
