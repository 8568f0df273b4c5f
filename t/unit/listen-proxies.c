/* SPDX-License-Identifier: MIT */
/* Whom a trusted proxy forwards for: which of the header's addresses is believed. */
#include "listen/proxies.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include "listen/parts.h"
#include "../lib/tap.h"

#define LINES 4
#define NOBODY ""   /* the header is there, but names nobody */

struct proxy_case {
  const char *lines[LINES];    /* "F:..." Forwarded, "X:..." X-Forwarded-For */
  const char *client;
};

/* Trusted are 127.0.0.1, 10.0.0.0/8 and 2001:db8:1::/48. */
static const struct proxy_case cases[] = {
  /* X-Forwarded-For */
  { { "X:9.9.9.9" }, "9.9.9.9" },
  { { "X: 9.9.9.9 " }, "9.9.9.9" },
  { { "X:1.1.1.1, 9.9.9.9" }, "9.9.9.9" },
  { { "X:1.1.1.1,9.9.9.9,10.1.2.3" }, "9.9.9.9" },
  { { "X:1.1.1.1, 9.9.9.9, 10.1.2.3, 127.0.0.1" }, "9.9.9.9" },
  { { "X:1.1.1.1", "X:9.9.9.9" }, "9.9.9.9" },
  { { "X:1.1.1.1, 9.9.9.9", "X:10.1.2.3" }, "9.9.9.9" },
  { { "X:10.0.0.7" }, "10.0.0.7" },
  { { "X:10.0.0.7, 10.0.0.8, 127.0.0.1" }, "10.0.0.7" },
  { { "X:2001:db8::9" }, "2001:db8::9" },
  { { "X:[2001:db8::9]:443" }, "2001:db8::9" },
  { { "X:[2001:DB8:0::9]" }, "2001:db8::9" },
  { { "X:9.9.9.9:1234" }, "9.9.9.9" },
  { { "X:::ffff:9.9.9.9" }, "9.9.9.9" },
  { { "X:9.9.9.9, 2001:db8:1::5" }, "9.9.9.9" },
  { { "X:9.9.9.9, ::ffff:10.0.0.1" }, "9.9.9.9" },
  { { "X:,, 9.9.9.9 ,," }, "9.9.9.9" },
  { { "X:garbage, 9.9.9.9" }, "9.9.9.9" },
  { { "X:\"1.1.1.1, 9.9.9.9" }, "9.9.9.9" },
  { { "X:9.9.9.9, garbage" }, NOBODY },
  { { "X:9.9.9.9, unknown, 10.0.0.1" }, NOBODY },
  { { "X:1.1.1.1, unknown" }, NOBODY },
  { { "X:\"9.9.9.9\"" }, NOBODY },
  { { "X:9.9.9.9:" }, NOBODY },
  { { "X:9.9.9.9:123456" }, NOBODY },
  { { "X:9.9.9.9:12a" }, NOBODY },
  { { "X:[9.9.9.9]" }, NOBODY },
  { { "X:[::1" }, NOBODY },
  { { "X:9.9.9" }, NOBODY },
  { { "X:999.9.9.9" }, NOBODY },
  { { "X:9.9.9.9 8.8.8.8" }, NOBODY },
  { { "X:9.9.9.9;8.8.8.8" }, NOBODY },
  { { "X:" }, NOBODY },
  { { "X:,," }, NOBODY },
  /* Forwarded */
  { { "F:for=9.9.9.9" }, "9.9.9.9" },
  { { "F:For=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=\"9.9.9.9\"" }, "9.9.9.9" },
  { { "F:for=\"9.9.9.9:47011\"" }, "9.9.9.9" },
  { { "F:for=\"[2001:db8::9]\"" }, "2001:db8::9" },
  { { "F:For=\"[2001:db8::9]:4711\"" }, "2001:db8::9" },
  { { "F:for=\"[2001:db8::9]:_port.-a\"" }, "2001:db8::9" },
  { { "F:for=9.9.9.9;proto=http;by=203.0.113.43" }, "9.9.9.9" },
  { { "F:proto=http; by=\"_x\" ;for=9.9.9.9;" }, "9.9.9.9" },
  { { "F:for=1.1.1.1, for=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=1.1.1.1,for=9.9.9.9 , for=10.0.0.1;by=10.0.0.2" }, "9.9.9.9" },
  { { "F:for=1.1.1.1", "F:for=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=10.0.0.9" }, "10.0.0.9" },
  { { "F:for=_hidden, for=9.9.9.9" }, "9.9.9.9" },
  { { "F:garbage, for=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=\"x", "F:for=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=9.9.9.9;host=\"a, for=1.1.1.1\"" }, "9.9.9.9" },
  { { "F:for=9.9.9.9;host=\"a\\\", for=1.1.1.1\"" }, "9.9.9.9" },
  { { "F:for=9.9.9.9;host=\"a;for=1.1.1.1\"" }, "9.9.9.9" },
  { { "F:for=9.9.9.9;host=\"\"" }, "9.9.9.9" },
  { { "F:for=9.9.9.9;secret=\"\\\\\"" }, "9.9.9.9" },
  { { "F:for=\"x, for=9.9.9.9" }, NOBODY },
  { { "F:for=\", for=\"[2001:db8::9]\"" }, NOBODY },
  { { "F:for=_hidden" }, NOBODY },
  { { "F:for=unknown" }, NOBODY },
  { { "F:for=9.9.9.9, for=_hidden" }, NOBODY },
  { { "F:for=9.9.9.9, for=unknown, for=10.0.0.1" }, NOBODY },
  { { "F:for=9.9.9.9, by=10.0.0.1" }, NOBODY },
  { { "F:for=9.9.9.9;for=9.9.9.9" }, NOBODY },
  { { "F:for=9.9.9.9:80" }, NOBODY },
  { { "F:for=2001:db8::9" }, NOBODY },
  { { "F:for=\"2001:db8::9\"" }, NOBODY },
  { { "F:for=[2001:db8::9]" }, NOBODY },
  { { "F:for=\"[9.9.9.9]\"" }, NOBODY },
  { { "F:for=\"9.9.9.9" }, NOBODY },
  { { "F:for=9.9.9.9\"" }, NOBODY },
  { { "F:for=\"9.9.9.9\"x" }, NOBODY },
  { { "F:for=\"\\9.9.9.9\"" }, NOBODY },
  { { "F:for=\"9.9.9.9\\" }, NOBODY },
  { { "F:for=\"" }, NOBODY },
  { { "F:for=" }, NOBODY },
  { { "F:for" }, NOBODY },
  { { "F:=9.9.9.9" }, NOBODY },
  { { "F:for =9.9.9.9" }, NOBODY },
  { { "F:for= 9.9.9.9" }, NOBODY },
  { { "F:for=9.9.9.9;host=\"a" }, NOBODY },
  { { "F:9.9.9.9" }, NOBODY },
  { { "F:" }, NOBODY },
  /* both: one may be the client's own */
  { { "F:for=9.9.9.9", "X:9.9.9.9" }, "9.9.9.9" },
  { { "X:9.9.9.9", "F:for=1.1.1.1, for=9.9.9.9" }, "9.9.9.9" },
  { { "F:for=9.9.9.9", "X:1.1.1.1" }, NOBODY },
  { { "F:for=_hidden", "X:9.9.9.9" }, NOBODY },
  { { "F:for=9.9.9.9", "X:garbage" }, NOBODY },
  { { "F:garbage", "X:9.9.9.9" }, NOBODY },
  { { "F:", "X:9.9.9.9" }, NOBODY },
};

static const char *const trusted[] = { "127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48" };
static const struct egw_strings list = { trusted, 3 };
static struct proxies *proxies;

static void
ask(const char *const lines[LINES], const char *peer, struct client_facts *facts)
{
  struct sockaddr_storage address = { .ss_family = AF_INET };
  struct gate_head head = { .header_count = 0 };
  char copies[LINES][100];

  inet_pton(AF_INET, peer, &((struct sockaddr_in *)(void *)&address)->sin_addr);
  for (size_t i = 0; i < LINES && lines[i] != NULL; i++) {
    const char *name = lines[i][0] == 'F' ? "forwarded" : "X-FORWARDED-FOR";
    size_t len = strlen(lines[i] + 2);

    memcpy(copies[i], lines[i] + 2, len); /* and no NUL behind */
    head.headers[head.header_count++] =
        (struct gate_header){ { name, strlen(name) }, { copies[i], len } };
  }
  *facts = (struct client_facts){ .forwarded = false };
  proxies_ask(proxies, &address, &head, facts);
}

static void
test_cases(void)
{
  struct client_facts facts;

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct proxy_case *c = &cases[i];

    ask(c->lines, "127.0.0.1", &facts);
    if (!ok(facts.forwarded && strcmp(facts.peer, c->client) == 0, "%s %s", c->lines[0],
            c->lines[1] == NULL ? "" : c->lines[1]))
      printf("#   got \"%s\", want \"%s\"\n", facts.peer, c->client);
  }
}

static void
test_peers(void)
{
  static const char *const lines[LINES] = { "F:for=9.9.9.9", "X:9.9.9.9" };
  static const char *const none[LINES] = { NULL };
  struct sockaddr_storage local = { .ss_family = AF_UNIX };
  struct gate_head head = { .header_count = 0 };
  struct client_facts facts;

  ask(lines, "10.99.0.1", &facts);
  ok(facts.forwarded && strcmp(facts.peer, "9.9.9.9") == 0, "a proxy of the network");
  ask(lines, "11.0.0.1", &facts);
  ok(!facts.forwarded && facts.peer[0] == '\0', "anybody else is not listened to");
  ask(none, "127.0.0.1", &facts);
  ok(!facts.forwarded && facts.peer[0] == '\0', "a proxy's own request");
  proxies_ask(proxies, &local, &head, &facts);
  ok(!facts.forwarded, "a peer without an address");
  proxies_free(proxies);
  proxies = NULL;
  ask(lines, "127.0.0.1", &facts);
  ok(!facts.forwarded && facts.peer[0] == '\0', "no proxies are configured");
}

int
main(void)
{
  proxies = proxies_new(&list);
  if (!ok(proxies != NULL, "proxies"))
    return 1;
  test_cases();
  test_peers();
  done_testing();
}
