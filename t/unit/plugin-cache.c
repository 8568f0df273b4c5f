/* SPDX-License-Identifier: MIT */
/* The middleware `cache` in its host: what is final is learned, hits, misses, and history that
 * changes. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"

static char so[1000];

#define HA "0x" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HB "0x" "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define BLOCK(n, hash) "{\"number\":\"" n "\",\"hash\":\"" hash "\"}"

static struct plugtest *
host_with(const char *options, const struct plugtest_reply *below, size_t count)
{
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  plugtest_script(host, below, count);
  return host;
}

static const struct plugtest_end *
ask(struct plugtest *host, const char *method, const char *params)
{
  return plugtest_ask(host, &(struct plugtest_spec){ .method = method, .params = params });
}

/* The node is asked for what is final until that is known. */
static void
settle(struct plugtest *host)
{
  ask(host, "eth_chainId", "[]");
  plugtest_advance(host, 5000);
}

static void
test_hits(void)
{
  struct plugtest_reply below[] = {
    { .method = "eth_blockNumber", .result = "\"0x80\"" },
    { .method = "eth_getBlockByNumber", .result = BLOCK("0x64", HA) },
    { .method = "eth_getBalance", .result = "\"0x5\"" },
    { .method = "eth_getCode", .result = "null" },
    { .method = "eth_getStorageAt", .is_error = true, .code = -32000, .message = "header not found" },
    { .result = "\"0x1\"" },
  };
  struct plugtest *host = host_with("", below, 6);

  settle(host);
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x64\"]")->sent == 1, "the first one asks the node");
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x64\"]")->sent == 0, "the second one does not");
  ok(strcmp(ask(host, "eth_getBalance", "[\"0xa\",\"0x64\"]")->body, "\"0x5\"") == 0, "the same bytes");
  ok(ask(host, "eth_getBalance", "[\"0xb\",\"0x64\"]")->sent == 1, "other params ask");
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x65\"]")->sent == 1 &&
         ask(host, "eth_getBalance", "[\"0xa\",\"0x65\"]")->sent == 1, "what is not final is not kept");
  ok(ask(host, "eth_getBalance", "[\"0xa\"]")->sent == 1 && ask(host, "eth_getBalance", "[\"0xa\"]")->sent == 1,
     "nor what names no block");
  ok(ask(host, "eth_getCode", "[\"0xa\",\"0x1\"]")->sent == 1 &&
         ask(host, "eth_getCode", "[\"0xa\",\"0x1\"]")->sent == 1, "nor null");
  ok(ask(host, "eth_getStorageAt", "[\"0xa\",\"0x0\",\"0x1\"]")->sent == 1 &&
         ask(host, "eth_getStorageAt", "[\"0xa\",\"0x0\",\"0x1\"]")->sent == 1, "nor an error");
  is_int(plugtest_metric(host, "hits"), 2, "two hits");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_unknown(void)
{
  struct plugtest_reply below[] = {
    { .method = "eth_blockNumber", .result = "\"0x80\"" },
    { .method = "eth_getBlockByNumber", .is_error = true, .code = -32602, .message = "no such tag" },
    { .result = "\"0x1\"" },
  };
  struct plugtest *host = host_with("", below, 3);

  settle(host);
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x1\"]")->sent == 1 &&
         ask(host, "eth_getBalance", "[\"0xa\",\"0x1\"]")->sent == 1,
     "a node that knows no finality: numbers are not kept");
  ok(ask(host, "eth_chainId", "[]")->sent == 0, "constants are");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_absurd(void)
{
  struct plugtest_reply mad[] = {
    { .method = "eth_blockNumber", .result = "\"0x3b9ac9ff\"" },
    { .method = "eth_getBlockByNumber", .result = BLOCK("0x3b9ac9ff", HA) },
    { .result = "\"0x1\"" },
  };
  struct plugtest_reply sane[] = {
    { .method = "eth_blockNumber", .result = "\"0x80\"" },
    { .method = "eth_getBlockByNumber", .result = BLOCK("0x64", HA) },
    { .result = "\"0x1\"" },
  };
  struct plugtest *host = host_with("", mad, 3);

  ask(host, "eth_chainId", "[]"); /* one sample */
  plugtest_script(host, sane, 3);
  plugtest_advance(host, 9000);
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x65\"]")->sent == 1 &&
         ask(host, "eth_getBalance", "[\"0xa\",\"0x65\"]")->sent == 1,
     "one absurd sample makes nothing final");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_history(void)
{
  struct plugtest_reply before[] = {
    { .method = "eth_blockNumber", .result = "\"0x80\"" },
    { .method = "eth_getBlockByNumber", .result = BLOCK("0x64", HA) },
    { .result = "\"0x1\"" },
  };
  struct plugtest_reply after[] = {
    { .method = "eth_blockNumber", .result = "\"0x80\"" },
    { .method = "eth_getBlockByNumber", .result = BLOCK("0x64", HB) },
    { .result = "\"0x2\"" },
  };
  struct plugtest *host = host_with("poll_interval = \"1s\";", before, 3);

  settle(host);
  ask(host, "eth_getBalance", "[\"0xa\",\"0x1\"]");
  ok(ask(host, "eth_getBalance", "[\"0xa\",\"0x1\"]")->sent == 0, "kept");
  plugtest_script(host, after, 3);
  plugtest_advance(host, 1500);
  is_int(plugtest_metric(host, "flushes"), 1, "a final block with another hash throws everything out");
  ok(strcmp(ask(host, "eth_getBalance", "[\"0xa\",\"0x1\"]")->body, "\"0x2\"") == 0, "the new answer");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/middleware/cache/cache.so", build == NULL ? "." : build);
  test_hits();
  test_unknown();
  test_absurd();
  test_history();
  plugtest_generic(so, "", &(struct plugtest_spec){ .method = "eth_chainId" }, report);
  return done_testing();
}
