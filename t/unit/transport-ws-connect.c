/* SPDX-License-Identifier: MIT */
/* Transport ws against a scripted WebSocket node: connecting and closing, names, credentials,
 * TLS, options. */
#include <dirent.h>
#include <signal.h>
#include "transport-ws-kit.h"

static char dir[] = "/tmp/egw-ws-XXXXXX";

static const char *const quick[] = { "reconnect_min", "10ms", "reconnect_max", "80ms", NULL };
static const char *const one[] = { "connections", "1", NULL };

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

static bool
head_has(struct node *node, const char *text)
{
  bool found;

  pthread_mutex_lock(&node->lock);
  found = strstr(node->head, text) != NULL;
  pthread_mutex_unlock(&node->lock);
  return found;
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
  snprintf(node->elsewhere, sizeof node->elsewhere, "http://127.0.0.1:%u/", second->port);
  node->mode = NODE_REDIRECT;
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
  test_absent();
  test_backoff();
  test_refusals();
  test_names();
  test_credentials();
  test_options();
  test_descriptors();
  test_close();
  test_tls();
  test_tls_traffic();
  rmdir(dir);
  return done_testing();
}
