/* SPDX-License-Identifier: MIT */
/* The middleware `failover`: second attempts beside a slow first one, and nonces of all
 * upstreams. */
#include "failover-kit.h"

#define BALANCE "eth_getBalance"
#define PARAMS "[\"0xa\",\"latest\"]"
#define BLOCK "eth_getBlockByNumber"

/* --- hedging ----------------------------------------------------------------------------- */

#define HEDGE "hedge = true; hedge_min = \"20ms\";"

static void
test_hedge(void)
{
  struct plugtest *host = host_with(HEDGE, 2);
  struct plugtest_call *c;

  SCRIPT(host, { .result = "1", .delay_ms = 500 }, { .result = "2", .delay_ms = 10 });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 19);
  is_int(plugtest_reached(host), 1, "one attempt at first");
  plugtest_advance(host, 2);
  is_int(plugtest_reached(host), 2, "a second one when it is slow");
  ok((only(host, 0) | only(host, 1)) == 3, "at another upstream");
  plugtest_advance(host, 10);
  ok(answered(c, "2") && plugtest_live(host) == 0,
     "the faster one wins, the other is cancelled");
  ok(strstr(plugtest_end(c)->story, "hedged to") != NULL, "the story says so");
  is_int(plugtest_metric(host, "hedge_wins"), 1, "counted");
  SCRIPT(host, { .result = "1", .delay_ms = 10 });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 10);
  ok(answered(c, "1") && plugtest_reached(host) == 3, "a fast one stays alone");
  start(host, "eth_getLogs", "[{}]");
  ok(only(host, 3) == 0, "logs cost too much to be hedged");
  end(host);
}

static void
test_hedge_null(void)
{
  struct plugtest *host = host_with(HEDGE, 2);
  struct plugtest_call *c;

  SCRIPT(host, { .result = "null", .delay_ms = 5 }, { .result = "{}", .delay_ms = 60 });
  c = start(host, "eth_getTransactionByHash", "[\"0x1\"]");
  plugtest_advance(host, 5);
  ok(!plugtest_end(c)->over && plugtest_reached(host) == 2,
     "null: the other one is asked at once");
  plugtest_advance(host, 60);
  ok(answered(c, "{}"), "its object is the answer");
  SCRIPT(host, { .result = "null", .delay_ms = 5 });
  c = start(host, "eth_getTransactionByHash", "[\"0x1\"]");
  plugtest_advance(host, 10);
  ok(answered(c, "null"), "null twice is null");
  SCRIPT(host, { .result = "null", .delay_ms = 5 }, { .never = true });
  c = start(host, "eth_getTransactionByHash", "[\"0x1\"]");
  plugtest_advance(host, 505);
  ok(answered(c, "null"), "a silent one is not waited for longer than half a second");
  SCRIPT(host, { .is_error = true, .code = -32603, .message = "sick", .delay_ms = 30 },
         { .result = "{}", .delay_ms = 100 });
  c = start(host, "eth_getTransactionByHash", "[\"0x1\"]");
  plugtest_advance(host, 130);
  ok(answered(c, "{}"), "an error does not win either");
  SCRIPT(host,
         { .is_error = true, .code = 3, .message = "execution reverted", .delay_ms = 30 },
         { .result = "{}", .delay_ms = 100 });
  c = start(host, "eth_call", "[{},\"latest\"]");
  plugtest_advance(host, 30);
  ok(plugtest_end(c)->over && plugtest_end(c)->code == 3, "unless it is an answer");
  end(host);
}

static void
test_hedge_fails(void)
{
  struct plugtest *host = host_with(HEDGE " attempts = 3;", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_MAYBE_SENT, .delay_ms = 5, .only_upstream = 1 },
         { .outcome = EGW_BAD_REPLY, .delay_ms = 5, .only_upstream = 2 });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 9);
  SCRIPT(host, { .result = "7" });
  plugtest_advance(host, 500);
  ok(answered(c, "7") && plugtest_reached(host) == 3, "both fail: then as without hedges");
  SCRIPT(host, { .outcome = EGW_TIMED_OUT, .delay_ms = 5, .only_upstream = 1 },
         { .outcome = EGW_TIMED_OUT, .delay_ms = 5, .only_upstream = 2 });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 100);
  ok(plugtest_end(c)->over && plugtest_end(c)->is_error,
     "and the error if there is nothing else");
  end(host);

  host = host_with(HEDGE, 2);
  SCRIPT(host, { .never = true });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 25);
  plugtest_cancel(c);
  is_int(plugtest_live(host), 0, "the client leaves: both attempts end");
  end(host);
}

static void
test_hedge_quantile(void)
{
  struct plugtest *host = host_with(HEDGE " hedge_quantile = 0.5; hedge_cost = 10;", 2);
  unsigned i;

  SCRIPT(host, { .result = "1", .delay_ms = 100 });
  for (i = 0; i < 30; i++) {
    start(host, BALANCE, PARAMS);
    plugtest_advance(host, 250);
  }
  i = plugtest_reached(host);
  start(host, BALANCE, PARAMS);
  plugtest_advance(host, 98);
  is_int(plugtest_reached(host), i + 1, "what most take is waited for");
  SCRIPT(host, { .never = true });
  start(host, BALANCE, PARAMS);
  plugtest_advance(host, 150);
  is_int(plugtest_reached(host), i + 3, "and no more");
  start(host, BLOCK, "[\"0x1\",false]");
  ok(only(host, i + 3) == 0, "hedge_cost leaves blocks out");
  end(host);
}

/* One says an error, the other nothing at all. */
static void
test_hedge_late(void)
{
  struct plugtest *host = host_with(HEDGE, 2);
  struct plugtest_call *c;

  SCRIPT(host, { .is_error = true, .code = -32603, .message = "sick", .delay_ms = 50 },
         { .never = true });
  c = plugtest_call(host, &(struct plugtest_spec){
                              .method = BALANCE, .params = PARAMS, .timeout_ms = 1000 });
  plugtest_advance(host, 999);
  ok(plugtest_end(c)->over && strcmp(plugtest_end(c)->message, "sick") == 0,
     "the client is told what one said, before its time is up");
  heads(host, 10, 10, 10);
  SCRIPT(host, { .result = "null", .delay_ms = 5 }, { .never = true });
  c = start(host, BLOCK, "[\"0xa\",false]");
  plugtest_advance(host, 600);
  ok(answered(c, "null"), "null for a block that exists waits no longer than another null");
  end(host);
}

/* A breaker that is open gets its call although all cheap reads are hedged. */
static void
test_hedge_trial(void)
{
  struct plugtest *host = host_with(HEDGE " breaker_failures = 1; breaker_open = \"1s\";", 2);
  unsigned at;

  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .only_upstream = 1 },
         { .result = "1", .upstream_index = 1 });
  start(host, BALANCE, PARAMS);
  start(host, BALANCE, PARAMS);
  is_int(plugtest_metric(host, "breaker_opened"), 1, "one of two fails: its breaker opens");
  at = plugtest_reached(host);
  start(host, BALANCE, PARAMS);
  start(host, BALANCE, PARAMS);
  ok(only(host, at) == 2 && only(host, at + 1) == 2, "it is not asked");
  plugtest_advance(host, 1000);
  at = plugtest_reached(host);
  SCRIPT(host, { .result = "1", .only_upstream = 1 }, { .result = "2", .only_upstream = 2 });
  ok(answered(start(host, BALANCE, PARAMS), "2") && only(host, at) == 1, "but tried in time");
  at = plugtest_reached(host);
  SCRIPT(host, { .result = "1", .only_upstream = 1 }, { .result = "1", .only_upstream = 2 });
  start(host, BALANCE, PARAMS);
  start(host, BALANCE, PARAMS);
  ok((only(host, at) | only(host, at + 1)) == 3, "and used again");
  end(host);
}

/* --- nonces ------------------------------------------------------------------------------ */

static void
test_nonce(void)
{
  struct plugtest *host = host_with("nonce = \"max\";", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .result = "\"0x5\"", .only_upstream = 1 },
         { .result = "\"0x7\"", .only_upstream = 2, .delay_ms = 50 });
  c = start(host, "eth_getTransactionCount", "[\"0x1\",\"pending\"]");
  plugtest_advance(host, 50);
  ok(answered(c, "\"0x7\"") && plugtest_reached(host) == 2, "the highest of all");
  SCRIPT(host, { .result = "\"0x5\"", .only_upstream = 1 },
         { .never = true, .only_upstream = 2 });
  c = start(host, "eth_getTransactionCount", "[\"0x1\",\"latest\"]");
  plugtest_advance(host, 999);
  ok(!plugtest_end(c)->over, "one is late");
  plugtest_advance(host, 1);
  ok(answered(c, "\"0x5\""), "but not waited for for ever");
  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .only_upstream = 1 },
         { .result = "\"0x7\"", .only_upstream = 2 });
  c = start(host, "eth_getTransactionCount", "[\"0x1\"]");
  ok(answered(c, "\"0x7\""), "one that fails does not count");
  SCRIPT(host, { .result = "\"0x3\"" });
  c = start(host, "eth_getTransactionCount", "[\"0x1\",\"0x5\"]");
  ok(answered(c, "\"0x3\"") && plugtest_reached(host) == 7, "of an old block one is asked");
  SCRIPT(host, { .outcome = EGW_NOT_SENT, .only_upstream = 1 },
         { .is_error = true, .code = -32603, .message = "sick", .only_upstream = 2 });
  c = start(host, "eth_getTransactionCount", "[\"0x1\",\"pending\"]");
  plugtest_advance(host, 3000);
  ok(plugtest_end(c)->over && strcmp(plugtest_end(c)->message, "sick") == 0,
     "all fail: what a node said");
  end(host);
  host = host_with("", 2);
  SCRIPT(host, { .result = "\"0x5\"" });
  start(host, "eth_getTransactionCount", "[\"0x1\",\"pending\"]");
  is_int(plugtest_reached(host), 1, "without nonce = max one is asked");
  end(host);
}

/* --- anything ---------------------------------------------------------------------------- */

static unsigned
dice(unsigned *seed, unsigned sides)
{
  *seed = *seed * 1103515245u + 12345u;
  return (*seed >> 16 & 0x7fff) % sides;
}

static void
random_script(struct plugtest *host, unsigned *seed)
{
  static const struct plugtest_reply sorts[] = {
    { .result = "\"0x1\"" },
    { .result = "null" },
    { .outcome = EGW_NOT_SENT },
    { .outcome = EGW_MAYBE_SENT },
    { .outcome = EGW_TIMED_OUT },
    { .outcome = EGW_BAD_REPLY, .http_status = 500 },
    { .outcome = EGW_BAD_REPLY, .http_status = 429, .retry_after_ms = 100 },
    { .is_error = true, .code = -32603, .message = "sick" },
    { .is_error = true, .code = 3, .message = "execution reverted" },
    { .is_error = true, .code = -32000, .message = "header not found" },
    { .is_error = true, .code = -32000, .message = "already known" },
    { .never = true },
  };
  struct plugtest_reply script[3];
  unsigned i;

  for (i = 0; i < 3; i++) {
    script[i] = sorts[dice(seed, sizeof sorts / sizeof sorts[0])];
    script[i].delay_ms = dice(seed, 80);
    script[i].only_upstream = i;
    script[i].upstream_index = dice(seed, 2);
  }
  plugtest_script(host, script, 3);
}

/* Whatever happens, each call ends, and gives back what it had of the budget. */
static void
test_random(void)
{
  static const struct plugtest_spec specs[] = {
    { .method = BALANCE, .params = PARAMS, .timeout_ms = 700 },
    { .method = BLOCK, .params = "[\"0xa\",false]", .timeout_ms = 1500 },
    { .method = "eth_getTransactionCount", .params = "[\"0x1\",\"pending\"]" },
    { .method = "eth_sendRawTransaction", .params = "[\"0x02c0\"]", .timeout_ms = 900 },
    { .method = "eth_getLogs", .params = "[{}]", .timeout_ms = 300 },
  };
  struct plugtest *host = host_with(HEDGE " nonce = \"max\"; broadcast = \"2\";", 2);
  struct plugtest_call *calls[1500];
  unsigned i, over = 0, seed = 11, n = sizeof calls / sizeof calls[0];

  heads(host, 10, 10, 10);
  for (i = 0; i < n; i++) {
    if (i % 3 == 0)
      random_script(host, &seed);
    calls[i] = plugtest_call(host, &specs[dice(&seed, sizeof specs / sizeof specs[0])]);
    plugtest_advance(host, dice(&seed, 20));
    if (dice(&seed, 5) == 0)
      plugtest_cancel(calls[dice(&seed, i + 1)]);
  }
  plugtest_advance(host, 60000);
  for (i = 0; i < n; i++)
    over += plugtest_end(calls[i])->over;
  is_int(over, n, "%u calls of all sorts end", n);
  is_int(plugtest_live(host), 0, "and all they have begun");
  ok(plugtest_metric(host, "hedges") > 50 && plugtest_metric(host, "retries") > 100 &&
         plugtest_metric(host, "pauses") > 50 && plugtest_metric(host, "tx_asked") > 50 &&
         plugtest_metric(host, "budget_denied") > 10 &&
         plugtest_metric(host, "breaker_opened") > 2,
     "every way was gone");
  is_int(plugtest_metric(host, "extra"), 0, "nothing of the budget is left behind");
  end(host);
}

static void
test_generic(void)
{
  plugtest_default_upstreams(2);
  plugtest_generic(so, HEDGE, &(struct plugtest_spec){ .method = BALANCE, .params = PARAMS },
                   report);
  plugtest_generic(
      so, HEDGE " nonce = \"max\";",
      &(struct plugtest_spec){ .method = "eth_getTransactionCount", .params = "[\"0x1\"]" },
      report);
}

int
main(void)
{
  find_so();
  test_hedge();
  test_hedge_null();
  test_hedge_fails();
  test_hedge_quantile();
  test_hedge_late();
  test_hedge_trial();
  test_nonce();
  test_random();
  test_generic();
  return done_testing();
}
