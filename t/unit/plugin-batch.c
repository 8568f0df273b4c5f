/* SPDX-License-Identifier: MIT */
/* The middleware `batch`: which calls it lets travel together, and by what limits. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"

static char so[1000];

static struct plugtest *
host_with(const char *options)
{
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  return host;
}

/* Whether a call of the method may travel with others. */
static bool
marked(struct plugtest *host, const char *method, uint32_t kind, struct egw_batching *out)
{
  unsigned at = plugtest_reached(host);

  (void)plugtest_ask(host, &(struct plugtest_spec){ .method = method, .kind = kind });
  return plugtest_reached(host) == at + 1 && plugtest_reached_batch(host, at, out);
}

static void
test_limits(void)
{
  struct egw_batching got = { 0 };
  struct plugtest *host = host_with("");

  ok(marked(host, "eth_chainId", EGW_KIND_CALL, &got), "a cheap read may travel with others");
  is_int(got.max_calls, 32, "32 of them");
  is_int(got.max_bytes, 65536, "in 64 KiB");
  is_int(got.busy, 4, "to a link with 4 in flight");
  is_int(plugtest_metric(host, "offered"), 1, "which is counted");
  is_int(plugtest_free(host), 0, "no rule was broken");

  host = host_with("max_calls = 7; max_bytes = \"2KiB\"; busy = 3;");
  ok(marked(host, "eth_chainId", EGW_KIND_CALL, &got), "with options");
  ok(got.max_calls == 7 && got.max_bytes == 2048 && got.busy == 3, "they are what counts");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static const struct {
  const char *method;
  uint32_t kind;
  bool together;
} cases[] = {
  { "eth_blockNumber", EGW_KIND_CALL, true },
  { "eth_getBalance", EGW_KIND_CALL, true },
  { "eth_call", EGW_KIND_CALL, true },
  { "eth_call", EGW_KIND_SUBCALL, true },
  { "eth_call", EGW_KIND_NOTIFICATION, true },
  { "eth_getBlockByNumber", EGW_KIND_CALL, false },       /* costs more */
  { "eth_getLogs", EGW_KIND_CALL, false },
  { "debug_traceTransaction", EGW_KIND_CALL, false },
  { "eth_sendRawTransaction", EGW_KIND_CALL, false },     /* may not be sent twice */
  { "eth_sendTransaction", EGW_KIND_CALL, false },
  { "eth_getFilterChanges", EGW_KIND_CALL, false },
  { "eth_newFilter", EGW_KIND_CALL, false },
  { "foo_bar", EGW_KIND_CALL, false },                    /* unknown */
  { "eth_subscribe", EGW_KIND_SUBSCRIBE, false },
  { "eth_unsubscribe", EGW_KIND_UNSUBSCRIBE, false },
};

static void
test_methods(void)
{
  struct plugtest *host = host_with("");
  struct egw_batching got;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    ok(marked(host, cases[i].method, cases[i].kind, &got) == cases[i].together,
       "%s (kind %u) %s",
       cases[i].method, cases[i].kind, cases[i].together ? "may" : "goes alone");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_choice(void)
{
  struct plugtest *host = host_with("max_cost = 15; deny = ( \"eth_call\", \"eth_getStor*\" "
                                    ");");
  struct egw_batching got;

  ok(marked(host, "eth_getBlockByNumber", EGW_KIND_CALL, &got), "max_cost: a block may");
  ok(!marked(host, "eth_getLogs", EGW_KIND_CALL, &got), "what costs more goes alone");
  ok(!marked(host, "eth_call", EGW_KIND_CALL, &got), "deny: by name");
  ok(!marked(host, "eth_getStorageAt", EGW_KIND_CALL, &got), "and by what a name begins with");
  ok(marked(host, "eth_getBalance", EGW_KIND_CALL, &got), "others may");
  ok(marked(host, "eth_callX", EGW_KIND_CALL, &got) == false, "an unknown one goes alone");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_refused(void)
{
  static const char *const wrong[] = { "max_calls = 1;", "max_calls = 1001;", "busy = 1;",
                                       "max_cost = 0;", "max_cost = 101;",
                                       "max_bytes = 100;", "deny = 5;" };

  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    struct plugtest *host = plugtest_new(so, wrong[i]);

    ok(plugtest_refused(host), "refused: %s", wrong[i]);
    plugtest_free(host);
  }
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

  snprintf(so, sizeof(so), "%s/plugins/middleware/batch/batch.so",
           build != NULL ? build : ".");
  test_limits();
  test_methods();
  test_choice();
  test_refused();
  plugtest_generic(so, "", &(struct plugtest_spec){ .method = "eth_call" }, report);
  return done_testing();
}
