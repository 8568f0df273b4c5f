/* SPDX-License-Identifier: MIT */
/* Fuzzes the header by which proxies tell whom they forward for. A client sends any bytes, the
 * proxy adds its element behind them: whatever the client sent, it can't be taken for another
 * one. In a field of its own or in X-Forwarded-For the proxy's word always counts; behind quotes
 * that were left open in Forwarded it may be lost, but nothing else comes in its place. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "listen/parts.h"
#include "listen/proxies.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ELEMENT ", for=\"[2001:db8::9]:80\";host=\"a,b\";proto=http"
#define ADDRESS ", 2001:db8::9"

static const char *const trusted[] = { "127.0.0.1", "10.0.0.0/8" };
static const struct egw_strings list = { trusted, 2 };

static void
check(bool holds)
{
  if (!holds)
    abort();
}

static struct egw_slice
join(const uint8_t *data, size_t size, const char *tail)
{
  size_t len = strlen(tail);
  char *text = malloc(size + len);

  check(text != NULL);
  memcpy(text, data, size);
  memcpy(text + size, tail, len);
  return (struct egw_slice){ text, size + len };
}

static const char *
ask(const struct proxies *proxies, struct client_facts *facts, const char *name,
    struct egw_slice first, struct egw_slice second)
{
  struct sockaddr_storage peer = { .ss_family = AF_INET };
  struct gate_head head = { .header_count = second.ptr == NULL ? 1 : 2 };

  ((struct sockaddr_in *)(void *)&peer)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  head.headers[0] = (struct gate_header){ { name, strlen(name) }, first };
  head.headers[1] = (struct gate_header){ { name, strlen(name) }, second };
  *facts = (struct client_facts){ .forwarded = false };
  proxies_ask(proxies, &peer, &head, facts);
  check(facts->forwarded && memchr(facts->peer, '\0', sizeof facts->peer) != NULL);
  return facts->peer;
}

/* What is found is an address. */
static void
check_alone(const struct proxies *proxies, const char *name, struct egw_slice value)
{
  struct client_facts facts;
  struct net_address address;
  const char *peer = ask(proxies, &facts, name, value, (struct egw_slice){ NULL, 0 });

  check(peer[0] == '\0' || net_read((struct egw_slice){ peer, strlen(peer) }, &address) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const struct egw_slice none = { NULL, 0 };
  struct proxies *proxies = proxies_new(&list);
  struct egw_slice alone = join(data, size, "");
  struct egw_slice longer = join(data, size, ELEMENT), address = join(data, size, ADDRESS);
  struct client_facts facts;
  const char *peer;

  check(proxies != NULL);
  check_alone(proxies, "Forwarded", alone);
  check_alone(proxies, "X-Forwarded-For", alone);
  peer = ask(proxies, &facts, "forwarded", alone, EGW_LIT("for=\"[2001:db8::9]\""));
  check(strcmp(peer, "2001:db8::9") == 0);
  peer = ask(proxies, &facts, "x-forwarded-for", address, none);
  check(strcmp(peer, "2001:db8::9") == 0);
  peer = ask(proxies, &facts, "forwarded", longer, none);
  check(peer[0] == '\0' || strcmp(peer, "2001:db8::9") == 0);
  proxies_free(proxies);
  free((void *)(uintptr_t)alone.ptr);
  free((void *)(uintptr_t)longer.ptr);
  free((void *)(uintptr_t)address.ptr);
  return 0;
}
