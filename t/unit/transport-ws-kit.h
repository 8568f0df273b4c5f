/* SPDX-License-Identifier: MIT */
/* What the tests of the ws transport share. */
#ifndef T_UNIT_TRANSPORT_WS_KIT_H
#define T_UNIT_TRANSPORT_WS_KIT_H

#include <unistd.h>
#include "tap.h"
#include "test-node.h"
#include "transport-host.h"

static inline bool
is_up(void *link)
{
  return thost_link_up(link);
}

static inline bool
is_down(void *link)
{
  return thost_link_downs(link) > 0;
}

static inline bool
never(void *arg)
{
  (void)arg;
  return false;
}

/* Runs the loop until a condition on the node holds. */
#define UNTIL(host, condition, ms)                                                          \
  do {                                                                                      \
    for (unsigned until_n = 0; !(condition) && until_n < (ms); until_n++)                   \
      thost_turn((host), 1);                                                                \
  } while (0)

static inline struct egw_link *
open_link(struct thost *host, const struct node *node, const char *scheme, const char *name,
          const struct egw_link_limits *limits)
{
  char url[256];

  snprintf(url, sizeof url, "%s://%s:%u/", scheme, name, node->port);
  return thost_open(host, url, limits);
}

/* Makes a host and a link to a node that listens. */
static inline struct egw_link *
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

static inline void
finish(struct thost *host, struct node *node)
{
  is_int(thost_free(host), 0, "no rule of the contract was broken");
  if (node != NULL)
    node_free(node);
}

static inline void
call_free(struct thost_call *calls, size_t n)
{
  for (size_t i = 0; i < n; i++)
    thost_call_free(&calls[i]);
}

static inline void
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

static inline void
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

#endif
