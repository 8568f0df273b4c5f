/* SPDX-License-Identifier: MIT */
/* The middleware `ratelimit`: exact numbers of calls over time, bursts, costs; which calls
 * count; what is wrong in a configuration. */
#include "ratelimit-kit.h"
#include "../lib/plugtest-parts.h"

static unsigned
burst_method(struct plugtest *host, const char *method, unsigned n)
{
  unsigned allowed = 0;

  while (n-- > 0)
    allowed += try_spec(host, &(struct plugtest_spec){ .method = method }, NULL);
  return allowed;
}

/* --- counts and times ---------------------------------------------------------------- */

static void
test_refusal(void)
{
  static const struct {
    const char *options, *body;
  } cases[] = {
    { "per_client = \"10/s\"; burst = 1;",
      "{\"code\":-32005,\"message\":\"rate limit exceeded, try again in 100ms\","
      "\"data\":{\"rate\":{\"backoff_seconds\":0.1}}}" },
    { "per_client = \"4/s\"; burst = 1;",
      "{\"code\":-32005,\"message\":\"rate limit exceeded, try again in 250ms\","
      "\"data\":{\"rate\":{\"backoff_seconds\":0.25}}}" },
    { "per_client = \"250/s\"; burst = 1;",
      "{\"code\":-32005,\"message\":\"rate limit exceeded, try again in 4ms\","
      "\"data\":{\"rate\":{\"backoff_seconds\":0.004}}}" },
    { "per_client = \"30/m\";",
      "{\"code\":-32005,\"message\":\"rate limit exceeded, try again in 2000ms\","
      "\"data\":{\"rate\":{\"backoff_seconds\":2.0}}}" },
    { "per_client = \"1/h\";",
      "{\"code\":-32005,\"message\":\"rate limit exceeded, try again in 3600000ms\","
      "\"data\":{\"rate\":{\"backoff_seconds\":3600.0}}}" },
    { "per_client = \"none\"; total = \"3/s\";", NULL },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    struct plugtest *host = host_with(cases[i].options);
    struct plugtest_spec spec = { .method = "eth_call" };
    const struct plugtest_end *e = NULL;

    for (unsigned n = 0; n < 4; n++)
      e = plugtest_ask(host, &spec);
    ok(e->is_error && e->code == -32005 && e->sent == 0, "refused: %s", cases[i].options);
    if (cases[i].body != NULL)
      is_bytes(e->body, e->body_len, cases[i].body, "in these words");
    done(host);
  }
}

static void
test_refill(void)
{
  struct plugtest *host = host_with("per_client = \"10/s\";");
  unsigned wait = 0;
  bool allowed;

  is_int(burst(host, A, 30), 10, "10/s: ten at once");
  allowed = try(host, A, &wait);
  ok(!allowed && wait == 100, "the next one in 100 ms: %u", wait);
  plugtest_advance(host, 99);
  ok(!try(host, A, &wait) && wait == 1, "after 99 ms it is refused");
  plugtest_advance(host, 1);
  is_int(burst(host, A, 5), 1, "after 100 ms one");
  plugtest_advance(host, 350);
  is_int(burst(host, A, 5), 3, "after 350 ms more, three");
  plugtest_advance(host, 50);
  is_int(burst(host, A, 5), 1, "and the half that was left is not lost");
  plugtest_advance(host, 1000000);
  is_int(burst(host, A, 30), 10, "it does not grow over the burst");
  is_int(plugtest_metric(host, "allowed"), 25, "allowed calls are counted");
  is_int(plugtest_metric(host, "refused"), 20 + 1 + 1 + 4 + 2 + 4 + 20, "refused ones too");
  is_int(plugtest_metric(host, "clients"), 1, "it was one client");
  done(host);
}

/* A call takes whole units, the clock has whole milliseconds: none is given away. */
static void
test_rounding(void)
{
  struct plugtest *host = host_with("per_client = \"7/s\"; burst = 1;");
  unsigned wait = 0;

  is_int(burst(host, A, 5), 1, "7/s: one at once");
  (void)try(host, A, &wait);
  is_int(wait, 143, "the next one in a seventh of a second");
  plugtest_advance(host, 142);
  is_int(burst(host, A, 5), 0, "which is not over after 142 ms");
  plugtest_advance(host, 1);
  is_int(burst(host, A, 5), 1, "but after 143");
  done(host);
}

/* Somebody asks each `step` ms: the burst, and then what the rate gives, to the call. */
static void
test_rates(void)
{
  static const struct {
    const char *options;
    uint64_t burst, calls, period;
    uint64_t step, steps;
  } rates[] = {
    { "per_client = \"10/s\";", 10, 10, 1000, 1, 5000 },
    { "per_client = \"7/s\";", 7, 7, 1000, 1, 5000 },
    { "per_client = \"999/s\"; burst = 10;", 10, 999, 1000, 1, 5000 },
    { "per_client = \"1000/m\";", 16, 1000, 60000, 3, 20000 },
    { "per_client = \"100/m\"; burst = 3;", 3, 100, 60000, 7, 20000 },
    { "per_client = \"36000/h\";", 10, 36000, 3600000, 10, 5000 },
    { "per_client = \"777/h\"; burst = 2;", 2, 777, 3600000, 1000, 7200 },
    { "per_client = \"none\"; total = \"10/s\";", 5, 10, 1000, 1, 5000 },
    { "per_client = \"500/s\"; burst = 500; total = \"7/s\";", 3, 7, 1000, 1, 5000 },
  };

  for (size_t i = 0; i < COUNT(rates); i++) {
    struct plugtest *host = host_with(rates[i].options);
    unsigned allowed = 0;

    for (uint64_t n = 0; n < rates[i].burst + 5; n++)
      allowed += try(host, A, NULL);
    is_int(allowed, (long long)rates[i].burst, "%s: the burst", rates[i].options);
    for (uint64_t n = 0; n < rates[i].steps; n++) {
      plugtest_advance(host, rates[i].step);
      allowed += try(host, A, NULL);
    }
    is_int(allowed,
           (long long)(rates[i].burst +
                       rates[i].steps * rates[i].step * rates[i].calls / rates[i].period),
           "%s: %u ms", rates[i].options, (unsigned)(rates[i].steps * rates[i].step));
    done(host);
  }
}

/* What a refusal says holds: not a millisecond before, but then. */
static void
test_waits(void)
{
  static const char *const all[] = {
    "per_client = \"13/s\";", "per_client = \"997/m\"; burst = 1;", "per_client = \"5/h\";",
    "per_client = \"13/s\"; total = \"11/s\";", "per_client = \"13/s\"; cost = \"method\";",
  };
  static const char *const methods[] = { "eth_chainId", "eth_call", "trace_block", "foo_bar" };

  for (size_t i = 0; i < COUNT(all); i++) {
    struct plugtest *host = host_with(all[i]);
    unsigned wrong = 0, refused = 0;

    for (unsigned n = 0; n < 400; n++) {
      struct plugtest_spec spec = { .method = methods[n % COUNT(methods)] };
      unsigned wait;

      if (try_spec(host, &spec, &wait))
        continue;
      refused++;
      plugtest_advance(host, wait - 1);
      wrong += try_spec(host, &spec, NULL);
      plugtest_advance(host, 1);
      wrong += !try_spec(host, &spec, NULL);
    }
    ok(refused > 100 && wrong == 0, "%s: %u of %u refusals say a wrong time", all[i], wrong,
       refused);
    done(host);
  }
}

static void
test_large_numbers(void)
{
  struct plugtest *host = host_with("per_client = \"1000000000/s\"; burst = 1000000000;"
                                    "total = \"1000000000/s\"; cost = \"method\";");

  is_int(burst_method(host, "trace_block", 1000), 1000, "the largest rate lets all through");
  plugtest_advance(host, UINT64_C(1) << 52);
  is_int(burst_method(host, "trace_block", 1000), 1000, "and so it does in 140,000 years");
  done(host);
  host = host_with("per_client = \"536870912/s\"; burst = 1;");
  is_int(burst(host, A, 5), 1, "one at once");
  plugtest_advance(host, UINT64_C(1) << 34);
  is_int(burst(host, A, 5), 1, "2^30 * 5 units in each of 2^34 ms are not 0");
  done(host);
  host = host_with("per_client = \"1/h\"; burst = 1000000000; total = \"1000000000/h\";");
  is_int(burst(host, A, 1000), 1000, "the largest burst at the smallest rate");
  plugtest_advance(host, UINT64_C(1) << 52);
  is_int(burst(host, A, 1000), 1000, "it is there again later");
  done(host);
  host = host_with("per_client = \"1/h\"; total = \"1/h\"; cost = \"method\";");
  is_int(burst_method(host, "debug_traceBlockByHash", 3), 1, "the smallest, once");
  plugtest_advance(host, 10 * 3600000 - 1);
  is_int(burst_method(host, "debug_traceBlockByHash", 3), 0, "a heavy call: 10 hours");
  plugtest_advance(host, 1);
  is_int(burst_method(host, "debug_traceBlockByHash", 3), 1, "to the millisecond");
  done(host);
}

/* --- what a call costs, and which calls ---------------------------------------------- */

static void
test_costs(void)
{
  static const struct {
    const char *method;
    unsigned flat, by_method;
  } costs[] = {
    { "eth_chainId", 12, 120 },  { "eth_getBalance", 12, 24 },
    { "eth_call", 12, 12 },      { "eth_getBlockByNumber", 12, 8 },
    { "eth_getLogs", 12, 3 },    { "trace_block", 12, 2 },
    { "foo_unknown", 12, 12 },   { "debug_traceBlockByHash", 12, 1 },
  };

  for (size_t i = 0; i < COUNT(costs); i++) {
    struct plugtest *host = host_with("per_client = \"12/s\";");

    is_int(burst_method(host, costs[i].method, 200), costs[i].flat, "flat: %s",
           costs[i].method);
    done(host);
    host = host_with("per_client = \"12/s\"; cost = \"method\";");
    is_int(burst_method(host, costs[i].method, 200), costs[i].by_method, "by method: %s",
           costs[i].method);
    done(host);
  }
}

static void
test_own_costs(void)
{
  static const struct {
    const char *method;
    unsigned allowed;
  } costs[] = {
    { "eth_getLogs", 6 }, { "trace_block", 24 }, { "trace_call", 12 }, { "eth_chainId", 200 },
    { "eth_call", 120 },  { "eth_getBlockByNumber", 80 }, { "debug_traceBlockByHash", 1 },
  };

  for (size_t i = 0; i < COUNT(costs); i++) {
    struct plugtest *host =
      host_with("per_client = \"120/s\"; cost = \"method\"; costs = ("
                "{ method = \"eth_getLogs\"; cost = 20; },"
                "{ method = \"eth_chainId\"; cost = 0; },"
                "{ method = \"trace_block\"; cost = 5; },"
                "{ method = \"trace_*\"; cost = 10; },"
                "{ method = \"debug_*\"; cost = 1000; } );");

    is_int(burst_method(host, costs[i].method, 200), costs[i].allowed, "own costs: %s",
           costs[i].method);
    done(host);
  }
}

/* What the HTTP client sees; others have no status. */
static void
test_http_status(void)
{
  static const char *const options[] = { "per_client = \"1/h\";",
                                         "per_client = \"1/h\"; http_status = false;" };

  for (size_t i = 0; i < COUNT(options); i++) {
    struct plugtest *host = host_with(options[i]);
    const struct plugtest_end *e =
      plugtest_ask(host, &(struct plugtest_spec){ .explain = true });

    ok(!e->is_error && e->http_status == 0, "a call that passes has no status of its own");
    e = plugtest_ask(host, &(struct plugtest_spec){ .explain = true });
    is_int(e->http_status, i == 0 ? 429 : 0, "one that is refused, with \"%s\"", options[i]);
    ok(strstr(e->story, "ratelimit: refused, 3600000 ms too early") != NULL, "its story: %s",
       e->story);
    done(host);
  }
}

/* A stage above sends the call down again, as it may after the node failed. */
static void
test_again(void)
{
  struct plugtest *host = host_with("per_client = \"1/h\"; burst = 3;");
  struct plugtest_call *call;
  unsigned passed = 0;
  struct egw_at at;

  plugtest_script(host, &(struct plugtest_reply){ .never = true }, 1);
  call = plugtest_call(host, &(struct plugtest_spec){ .peer = A });
  plugtest_run(host);
  ok(plugtest_below(call), "a call is at the node");
  plugtest_at(&call->call, &at);
  for (unsigned i = 0; i < 10; i++)
    passed += plugtest_plugin(host)->request(&at, &call->call) == EGW_NEXT;
  is_int(passed, 10, "sent again, it passes");
  is_int(plugtest_metric(host, "allowed"), 1, "and is one call");
  plugtest_script(host, &(struct plugtest_reply){ .result = "1" }, 1);
  is_int(burst(host, A, 5), 2, "so two are left");
  done(host);
}

static void
test_kinds(void)
{
  static const uint32_t kinds[] = { EGW_KIND_CALL, EGW_KIND_NOTIFICATION, EGW_KIND_SUBSCRIBE,
                                    EGW_KIND_UNSUBSCRIBE, EGW_KIND_SUBCALL };
  struct plugtest *host = host_with("per_client = \"1/h\"; burst = 5;");
  unsigned sent = 0;

  is_int(plugtest_plugin(host)->flags & EGW_STAGE_GUARD, EGW_STAGE_GUARD, "it is a guard");
  for (unsigned round = 0; round < 2; round++)
    for (size_t i = 0; i < COUNT(kinds); i++)
      sent += plugtest_ask(host, &(struct plugtest_spec){ .kind = kinds[i] })->sent;
  is_int(sent, 5, "each kind counts");
  is_int(plugtest_ask(host, &(struct plugtest_spec){ .kind = EGW_KIND_NOTIFICATION })->sent, 0,
         "a notification over the limit is not executed");
  for (unsigned i = 0; i < 20; i++)
    sent += plugtest_ask(host, &(struct plugtest_spec){ .kind = EGW_KIND_SUBCALL, .peer = "",
                                                        .transport = "internal" })->sent;
  is_int(sent, 25, "what the gateway asks by itself does not");
  is_int(plugtest_metric(host, "allowed"), 5, "nor in the metric");
  done(host);
}

/* --- configuration ------------------------------------------------------------------- */

static void
test_bad_options(void)
{
  static const char *const bads[][2] = {
    { "per_client = \"100\";", "per_client: \"100\" is no rate" },
    { "per_client = \"\";", "per_client: \"\" is no rate" },
    { "per_client = \"0/s\";", "per_client: \"0/s\" is no rate" },
    { "per_client = \"/s\";", "is no rate" },
    { "per_client = \"-1/s\";", "is no rate" },
    { "per_client = \"1.5/s\";", "is no rate" },
    { "per_client = \"10/d\";", "is no rate" },
    { "per_client = \"10/sec\";", "is no rate" },
    { "per_client = \"10/\";", "is no rate" },
    { "per_client = \" 10/s\";", "is no rate" },
    { "per_client = \"1000000001/s\";", "is no rate" },
    { "per_client = \"99999999999999999999999/s\";", "is no rate" },
    { "per_client = 100;", "per_client: " },
    { "total = \"many\";", "total: \"many\" is no rate" },
    { "per_client = \"none\";", "per_client: is \"none\" and there is no total" },
    { "per_client = \"none\"; total = \"5/s\"; burst = 3;", "burst: is for per_client" },
    { "burst = -1;", "burst: " },
    { "burst = 1000000001;", "burst: " },
    { "burst = \"5\";", "burst: " },
    { "cost = \"weight\";", "must be one of \"flat\", \"method\"" },
    { "exempt = ( \"localhost\" );", "exempt: \"localhost\" is neither an address" },
    { "exempt = ( \"10.0.0.0/33\" );", "\"10.0.0.0/33\" is neither" },
    { "exempt = ( \"10.0.0.1/8\" );", "\"10.0.0.1/8\" is neither" },
    { "exempt = ( \"10.0.0.0/\" );", "is neither" },
    { "exempt = ( \"10.0.0.0/8x\" );", "is neither" },
    { "exempt = ( \"10.0.0.0/999999999999\" );", "is neither" },
    { "exempt = ( \"10.0/8\" );", "is neither" },
    { "exempt = ( \"2001:db8::/129\" );", "is neither" },
    { "exempt = ( \"2001:db8::1/32\" );", "is neither" },
    { "exempt = ( \"::ffff:10.0.0.0/95\" );", "is neither" },
    { "exempt = ( \"\" );", "exempt: \"\" is neither" },
    { "exempt = ( \"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa\" );", "is neither" },
    { "exempt = \"local\";", "exempt: " },
    { "per_key = \"5\";", "per_key: \"5\"" },
    { "per_key = \"none\"; key_burst = 5;", "key_burst: is for per_key" },
    { "key_burst = -1;", "key_burst: " },
    { "keys = ( { rate = \"5/s\"; } );", "name" },
    { "keys = ( { name = \"a\"; } );", "rate" },
    { "keys = ( { name = \"a\"; rate = \"fast\"; } );", "rate: \"fast\"" },
    { "keys = ( { name = \"a\"; rate = \"1/s\"; }, { name = \"b\"; rate = \"1/s\"; },"
      "{ name = \"a\"; rate = \"2/s\"; } );", "keys: \"a\" is there twice" },
    { "per_client = \"none\"; keys = ( { name = \"a\"; rate = \"none\"; } );",
      "nothing would be limited" },
    { "costs = ( { method = \"eth_call\"; } );", "cost" },
    { "costs = ( { method = \"eth_*l\"; cost = 1; } );", "method: \"eth_*l\"" },
    { "costs = ( { method = \"\"; cost = 1; } );", "method: \"\"" },
    { "costs = ( { method = \"x_y\"; cost = 1001; } );", "cost: " },
    { "costs = ( { method = \"x_y\"; cost = -1; } );", "cost: " },
    { "max_clients = 0;", "max_clients: " },
    { "max_clients = 4194305;", "max_clients: " },
    { "per_clients = \"5/s\";", "did you mean \"per_client\"?" },
  };
  struct plugtest *host;

  for (size_t i = 0; i < COUNT(bads); i++) {
    host = plugtest_new(so, bads[i][0]);
    ok(plugtest_refused(host), "refused: %s", bads[i][0]);
    if (!ok(strstr(plugtest_messages(host), bads[i][1]) != NULL, "and why"))
      printf("#   %s\n", plugtest_messages(host));
    is_int(plugtest_free(host), 0, "no rule was broken");
  }
  host = plugtest_new(so, "per_client = \"a\"; total = \"b\"; exempt = ( \"c\", \"d\" );");
  ok(strstr(plugtest_messages(host), "\"a\"") != NULL &&
     strstr(plugtest_messages(host), "\"b\"") != NULL &&
     strstr(plugtest_messages(host), "\"c\"") != NULL &&
     strstr(plugtest_messages(host), "\"d\"") != NULL, "all errors are reported at once");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_defaults(void)
{
  struct plugtest *host = host_with("");

  is_int(burst(host, "127.0.0.1", 300), 100, "without options: 100/s");
  is_int(burst(host, "uid 0", 300), 100, "unix sockets too");
  done(host);
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  struct plugtest_spec call = { .method = "eth_call" };

  find_plugin();
  test_defaults();
  test_refusal();
  test_refill();
  test_rounding();
  test_rates();
  test_waits();
  test_large_numbers();
  test_costs();
  test_own_costs();
  test_http_status();
  test_kinds();
  test_again();
  test_bad_options();
  plugtest_generic(so, "", &call, report);
  plugtest_generic(so, "per_client = \"2/m\"; total = \"1/s\"; max_clients = 1;", &call,
                   report);
  return done_testing();
}
