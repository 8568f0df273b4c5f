/* SPDX-License-Identifier: MIT */
/* The middleware `failover`: where calls go when an upstream fails them. */
#include "failover-kit.h"

#define BALANCE "eth_getBalance"
#define PARAMS "[\"0xa\",\"latest\"]"
#define BLOCK "eth_getBlockByNumber"

/* --- retries ----------------------------------------------------------------------------- */

static void
test_elsewhere(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_MAYBE_SENT, .upstream = "a" },
         { .result = "\"0x5\"", .only_upstream = 2, .upstream = "b" });
  c = start(host, BALANCE, PARAMS);
  ok(answered(c, "\"0x5\""), "a broken connection: another upstream answers");
  ok(plugtest_reached_route(host, 0).once && only(host, 0) == 0,
     "one attempt at a time, anywhere at first");
  ok(only(host, 1) == 2, "then at the other one only");
  ok(strstr(plugtest_end(c)->story, "failover judged a: broken") != NULL,
     "the story says why");
  is_int(plugtest_metric(host, "retries"), 1, "counted");
  is_int(plugtest_metric(host, "broken"), 1, "by class");
  end(host);
}

static void
passes(const char *what, const struct plugtest_reply *reply)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  plugtest_script(host, reply, 1);
  c = start(host, "eth_call", "[{},\"latest\"]");
  ok(plugtest_end(c)->over && plugtest_reached(host) == 1 &&
         plugtest_end(c)->code == reply->code &&
         strstr(plugtest_end(c)->body, reply->message) != NULL,
     "%s is an answer", what);
  end(host);
}

static void
test_answers(void)
{
  passes("a revert", &(struct plugtest_reply){ .is_error = true,
                                               .code = 3,
                                               .message = "execution reverted: limit exceeded",
                                               .data = "\"0x08c379a0\"" });
  passes("a wrong request",
         &(struct plugtest_reply){ .is_error = true, .code = -32602, .message = "no" });
  passes("what no rule knows",
         &(struct plugtest_reply){ .is_error = true, .code = -1, .message = "odd" });
}

static void
test_most_telling(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(
      host, { .outcome = EGW_BAD_REPLY, .http_status = 502, .upstream = "a" },
      { .is_error = true, .code = -32603, .message = "the disk is full", .only_upstream = 2 },
      { .outcome = EGW_NOT_SENT, .only_upstream = 1, .upstream = "a" });
  c = start(host, BALANCE, PARAMS);
  ok(plugtest_held(c), "all were asked: a pause");
  plugtest_advance(host, 1000);
  is_int(plugtest_reached(host), 3, "three attempts");
  ok(plugtest_end(c)->over && plugtest_end(c)->code == -32603 &&
         strcmp(plugtest_end(c)->message, "the disk is full") == 0,
     "the client gets what a node said");
  ok(only(host, 2) == 1, "the last one was not where it had failed just before");
  end(host);
  host = host_with("attempts = 1;", 2);
  SCRIPT(host, { .outcome = EGW_NOT_SENT });
  c = start(host, BALANCE, PARAMS);
  ok(plugtest_end(c)->over && plugtest_end(c)->outcome == EGW_NOT_SENT &&
         plugtest_reached(host) == 1,
     "attempts = 1: none is repeated");
  end(host);
}

static void
test_alone(void)
{
  struct plugtest *host = host_with("backoff = \"100ms\";", 1);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .http_status = 500 }, { .outcome = EGW_BAD_REPLY },
         { .result = "1" });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 49);
  is_int(plugtest_reached(host), 1, "the only upstream: half of the pause at least");
  plugtest_advance(host, 110);
  is_int(plugtest_reached(host), 2, "then again");
  ok(plugtest_reached_route(host, 1).fresh, "on a fresh connection");
  plugtest_advance(host, 98);
  is_int(plugtest_reached(host), 2, "the next pause is longer");
  plugtest_advance(host, 220);
  ok(answered(c, "1"), "it answers at last");
  end(host);
  host = host_with("", 1);
  SCRIPT(host, { .outcome = EGW_MAYBE_SENT }, { .result = "1" });
  c = start(host, BALANCE, PARAMS);
  ok(answered(c, "1"), "a kept connection that was dead: again at once");
  end(host);
  host = host_with("", 1);
  SCRIPT(host, { .outcome = EGW_TIMED_OUT, .delay_ms = 10 });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 10);
  ok(plugtest_end(c)->over && plugtest_reached(host) == 1,
     "silence of the only one is not asked for again");
  end(host);
}

static void
test_once(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_MAYBE_SENT, .upstream = "a" });
  c = start(host, "eth_sendTransaction", "[{}]");
  ok(plugtest_end(c)->over && plugtest_reached(host) == 1,
     "what may be done once only is not sent again");
  ok(!plugtest_reached_route(host, 0).once, "the core still moves on when nothing was sent");
  c = start(host, "foo_bar", "[]");
  is_int(plugtest_reached(host), 2, "nor is an unknown method");
  c = plugtest_call(host, &(struct plugtest_spec){ .method = "eth_getFilterChanges",
                                                   .params = "[\"0x1\"]" });
  plugtest_run(host);
  ok(plugtest_end(c)->skipped, "filters belong to one node");
  end(host);
}

static void
test_busy(void)
{
  struct plugtest *host = host_with("", 1);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .http_status = 429, .retry_after_ms = 700 },
         { .result = "1" });
  c = start(host, BALANCE, PARAMS);
  plugtest_advance(host, 699);
  is_int(plugtest_reached(host), 1,
         "the only upstream limits our rate: it is left alone as it asked");
  plugtest_advance(host, 150);
  ok(answered(c, "1"), "and asked then");
  SCRIPT(
      host,
      { .is_error = true, .code = -32005, .message = "rate limit", .retry_after_ms = 60000 });
  c = start(host, BALANCE, PARAMS);
  ok(plugtest_end(c)->over && plugtest_end(c)->code == -32005,
     "a time beyond the deadline: the error");
  end(host);

  host = host_with("", 2);
  SCRIPT(host, { .is_error = true, .code = -32005, .message = "rate limit", .upstream = "a" },
         { .result = "1", .upstream_index = 1 });
  c = start(host, BALANCE, PARAMS);
  ok(answered(c, "1") && only(host, 1) == 2, "another one is asked at once");
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, 2).avoid == 1, "the next call avoids the first one");
  plugtest_advance(host, 1000);
  c = start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, 3).avoid == 0, "for a second");
  end(host);
}

/* --- missing data ------------------------------------------------------------------------ */

static void
test_missing(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  heads(host, 10, 9, 10);
  SCRIPT(host, { .result = "null", .upstream = "a" }, { .result = "{}", .only_upstream = 2 });
  c = start(host, BLOCK, "[\"0xa\",false]");
  ok(answered(c, "{}") && only(host, 1) == 2,
     "null for a block that exists: one that has it is asked");
  SCRIPT(host, { .result = "{\"number\":\"0x9\"}", .upstream = "a" },
         { .result = "{\"number\":\"0xa\"}", .only_upstream = 2 });
  c = start(host, BLOCK, "[\"latest\",false]");
  ok(answered(c, "{\"number\":\"0xa\"}"), "an old block as the latest: likewise");
  SCRIPT(host,
         { .is_error = true, .code = -32000, .message = "header not found", .upstream = "a" },
         { .result = "\"0x1\"", .only_upstream = 2 });
  c = start(host, BALANCE, "[\"0x1\",\"0xa\"]");
  ok(answered(c, "\"0x1\""), "header not found: likewise");
  is_int(plugtest_metric(host, "row_block_text"), 1, "the row that judged it has a counter");
  is_int(plugtest_metric(host, "row_configured"), 0, "no rule of the configuration did");
  SCRIPT(host, { .result = "null", .upstream = "a" });
  c = start(host, BLOCK, "[\"0x1b\",false]");
  ok(answered(c, "null"), "null for a block that does not exist is an answer");
  c = start(host, "eth_getTransactionReceipt", "[\"0x11\"]");
  ok(answered(c, "null"), "and so is null for a receipt");
  is_int(plugtest_reached(host), 8, "asked once");
  end(host);
}

static void
test_missing_wait(void)
{
  struct plugtest *host = host_with("missing_wait = \"1s\";", 2);
  struct plugtest_call *c;
  unsigned sent;

  heads(host, 10, 10, 10);
  SCRIPT(host, { .result = "null", .only_upstream = 2 },
         { .result = "null", .upstream = "a" });
  c = start(host, BLOCK, "[\"0xa\",false]");
  plugtest_advance(host, 1000);
  sent = plugtest_reached(host);
  ok(answered(c, "null"), "nobody has the block: null in the end");
  ok(sent > 4 && sent < 16, "asked with growing pauses: %u times", sent);
  SCRIPT(host, { .result = "null", .upstream = "a" }, { .result = "null", .only_upstream = 2 },
         { .result = "{}" });
  c = start(host, BLOCK, "[\"0xa\",false]");
  plugtest_advance(host, 90);
  ok(answered(c, "{}"), "it is there a moment later");
  end(host);
}

static void
test_pruned(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  heads(host, 1000, 1000, 1000);
  SCRIPT(
      host,
      { .is_error = true, .code = -32000, .message = "missing trie node 12", .upstream = "a" },
      { .result = "\"0x1\"", .only_upstream = 2 });
  c = start(host, BALANCE, "[\"0x1\",\"0x64\"]");
  ok(answered(c, "\"0x1\""), "state that was pruned: another upstream");
  is_int((long)plugtest_lacks(host, 0), 0, "once is not enough to believe it");
  SCRIPT(
      host,
      { .is_error = true, .code = -32000, .message = "missing trie node 12", .upstream = "a" },
      { .result = "\"0x1\"", .only_upstream = 2 });
  c = start(host, BALANCE, "[\"0x1\",\"0x64\"]");
  is_int((long)plugtest_lacks(host, 0), 101, "the core is told that it lacks block 100");
  SCRIPT(
      host,
      { .is_error = true, .code = -32000, .message = "missing trie node 12", .upstream = "a" },
      { .result = "\"0x1\"", .only_upstream = 2 });
  c = start(host, BALANCE, "[\"0x1\",\"0x3e7\"]");
  ok(answered(c, "\"0x1\"") && plugtest_lacks(host, 0) == 101,
     "recent state is late, not pruned");
  end(host);
}

/* --- budget and breakers ----------------------------------------------------------------- */

static void
test_budget(void)
{
  struct plugtest *host =
      host_with("retry_budget = 0.1; backoff = \"10ms\"; attempts = 2;", 1);
  struct plugtest_call *c[60];
  unsigned i, good = 0;

  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .delay_ms = 5 });
  for (i = 0; i < 60; i++)
    c[i] = start(host, BALANCE, PARAMS);
  SCRIPT(host, { .result = "1", .delay_ms = 100 });
  plugtest_advance(host, 30);
  is_int(plugtest_reached(host), 66,
         "sixty calls fail together: a tenth may be sent again at a time");
  ok(plugtest_metric(host, "budget_denied") >= 54, "the others wait");
  plugtest_advance(host, 5000);
  for (i = 0; i < 60; i++)
    good += answered(c[i], "1");
  ok(good >= 6 && good < 60, "%u had their turn, the others their error", good);
  end(host);
  host = host_with("retry_budget = 0.5;", 1);
  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .delay_ms = 5 });
  for (i = 0; i < 60; i++)
    c[i] = start(host, BALANCE, PARAMS);
  SCRIPT(host, { .result = "1", .delay_ms = 5 });
  plugtest_advance(host, 2000);
  for (i = 0, good = 0; i < 60; i++)
    good += answered(c[i], "1");
  is_int(good, 60, "a larger budget serves all");
  end(host);
}

static void
fail_at_a(struct plugtest *host, unsigned times)
{
  while (times-- > 0) {
    SCRIPT(host, { .outcome = EGW_BAD_REPLY, .upstream = "a" },
           { .result = "1", .only_upstream = 2 });
    start(host, BALANCE, PARAMS);
  }
}

static void
test_breaker(void)
{
  struct plugtest *host = host_with("breaker_failures = 3; breaker_open = \"2s\";", 2);
  struct plugtest_call *c;
  unsigned at;

  fail_at_a(host, 2);
  SCRIPT(host, { .result = "1", .upstream_index = 1 });
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, plugtest_reached(host) - 1).avoid == 0,
     "two failures: nothing yet");
  fail_at_a(host, 1);
  is_int(plugtest_metric(host, "breaker_opened"), 1, "three in a row: open");
  SCRIPT(host, { .result = "1", .upstream_index = 1 });
  c = start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, plugtest_reached(host) - 1).avoid == 1, "it is avoided");
  ok(strstr(plugtest_end(c)->story, "avoids a: its breaker is open") != NULL,
     "the story says so");
  plugtest_advance(host, 2000);
  at = plugtest_reached(host);
  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .only_upstream = 1, .delay_ms = 500 },
         { .result = "1", .upstream_index = 1 });
  c = start(host, BALANCE, PARAMS);
  ok(only(host, at + 1) == 1, "after its time it gets a copy of a call");
  ok(answered(c, "1") && plugtest_reached_route(host, at).avoid == 1,
     "which itself goes elsewhere, and does not wait");
  plugtest_advance(host, 2500);
  at = plugtest_reached(host);
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached(host) == at + 1 && plugtest_reached_route(host, at).avoid == 1,
     "it failed: then it is open for longer");
  plugtest_advance(host, 2000);
  at = plugtest_reached(host);
  SCRIPT(host, { .result = "2", .only_upstream = 1 }, { .result = "1", .upstream_index = 1 });
  c = start(host, BALANCE, PARAMS);
  ok(only(host, at + 1) == 1 && answered(c, "1"), "the next one is answered");
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, at + 2).avoid == 0, "and it is used again");
  end(host);
}

static void
test_breaker_rate(void)
{
  struct plugtest *host =
      host_with("breaker_failures = 1000; breaker_samples = 8; breaker_errors = 0.5;"
                " breaker_window = \"5s\";",
                2);
  unsigned i;

  for (i = 0; i < 3; i++) {
    fail_at_a(host, 1);
    SCRIPT(host, { .result = "1", .upstream = "a" });
    start(host, BALANCE, PARAMS);
  }
  is_int(plugtest_metric(host, "breaker_opened"), 0, "half of six calls fail: too few to say");
  plugtest_advance(host, 20000);
  fail_at_a(host, 7);
  is_int(plugtest_metric(host, "breaker_opened"), 0, "older ones are out of the window");
  fail_at_a(host, 1);
  is_int(plugtest_metric(host, "breaker_opened"), 1,
         "eight calls, half of them failures: open");
  end(host);

  host = host_with("", 1);
  for (i = 0; i < 20; i++) {
    SCRIPT(host, { .outcome = EGW_BAD_REPLY });
    start(host, BALANCE, PARAMS);
    plugtest_advance(host, 3000);
  }
  SCRIPT(host, { .result = "1" });
  ok(answered(start(host, BALANCE, PARAMS), "1"), "the only upstream is never avoided");
  end(host);
}

static void
test_slow(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;
  unsigned i, at;

  for (i = 0; i < 20; i++) {
    SCRIPT(host, { .result = "1", .delay_ms = i % 2 ? 300 : 5, .upstream_index = i % 2 });
    start(host, BALANCE, PARAMS);
    plugtest_advance(host, 300);
  }
  SCRIPT(host, { .result = "1" });
  plugtest_advance(host, 5000);
  at = plugtest_reached(host);
  c = start(host, BALANCE, PARAMS);
  ok(only(host, at + 1) == 2 && plugtest_reached_route(host, at).avoid == 2,
     "a slow one is avoided; it gets a copy of a call");
  ok(strstr(plugtest_end(c)->story, "avoids b: it is slow") != NULL, "the story says so");
  start(host, "debug_traceBlockByNumber", "[\"0x1\"]");
  ok(plugtest_reached_route(host, at + 2).avoid == 0, "but not by heavy calls");
  for (i = 0; i < 10; i++) {
    SCRIPT(host, { .result = "1", .delay_ms = 5, .only_upstream = 2 }, { .result = "1" });
    start(host, BALANCE, PARAMS);
    plugtest_advance(host, 5000);
  }
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, plugtest_reached(host) - 1).avoid == 0,
     "until it is fast again");
  heads(host, 100, 100, 89);
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, plugtest_reached(host) - 1).avoid == 2,
     "one that lags is avoided");
  heads(host, 100, 100, 90);
  start(host, BALANCE, PARAMS);
  ok(plugtest_reached_route(host, plugtest_reached(host) - 1).avoid == 0,
     "max_lag blocks are allowed");
  end(host);
}

/* --- configuration ----------------------------------------------------------------------- */

static void
test_rules(void)
{
  struct plugtest *host =
      host_with("rules = ( { class = \"server\"; text = \"The Moon*full\"; }, "
                "{ class = \"invalid\"; code = -7; methods = ( \"eth_ca*\" ); }, "
                "{ class = \"billing\"; http = 418; } );",
                2);
  struct plugtest_call *c;

  SCRIPT(host,
         { .is_error = true, .code = -1, .message = "the moon was full", .upstream = "a" },
         { .result = "1", .only_upstream = 2 });
  c = start(host, BALANCE, PARAMS);
  ok(answered(c, "1"), "a rule by text");
  SCRIPT(host, { .is_error = true, .code = -7, .message = "rate limit" });
  c = start(host, "eth_call", "[{}]");
  is_int(plugtest_metric(host, "invalid"), 1, "a rule by code, for some methods");
  c = start(host, BALANCE, PARAMS);
  is_int(plugtest_metric(host, "invalid"), 1, "and not for others");
  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .http_status = 418, .upstream = "a" },
         { .result = "1", .only_upstream = 2 });
  c = start(host, BALANCE, PARAMS);
  ok(answered(c, "1") && plugtest_metric(host, "billing") == 1, "a rule by status");
  SCRIPT(host, { .is_error = true, .code = 3, .message = "the moon was full" });
  c = start(host, "eth_call", "[{}]");
  is_int(plugtest_metric(host, "reverts"), 1, "a revert is none of their business");
  ok(plugtest_logged(host, "server row=configured"), "the log names the row");
  end(host);
}

static void
refused(const char *options, const char *message)
{
  struct plugtest *host = plugtest_new(so, options);

  ok(plugtest_refused(host) && strstr(plugtest_messages(host), message) != NULL, "%s: %s",
     options, message);
  plugtest_free(host);
}

static void
test_refused(void)
{
  refused("rules = ( { class = \"nonsense\"; text = \"x\"; } );", "no class of errors");
  refused("rules = ( { class = \"silent\"; text = \"x\"; } );", "no class of errors");
  refused("rules = ( { class = \"server\"; } );", "needs a text");
  refused("rules = ( { text = \"x\"; } );", "class");
  refused("rules = ( 5 );", "not a group");
  refused("broadcast = \"some\";", "neither");
  refused("broadcast = \"65\";", "neither");
  refused("nonce = \"min\";", "nonce");
}

static void
test_generic(void)
{
  plugtest_default_upstreams(2);
  plugtest_generic(so, "", &(struct plugtest_spec){ .method = BALANCE, .params = PARAMS },
                   report);
  plugtest_generic(so, "missing_wait = \"1s\";",
                   &(struct plugtest_spec){ .method = BLOCK, .params = "[\"latest\",false]" },
                   report);
}

int
main(void)
{
  find_so();
  test_elsewhere();
  test_answers();
  test_most_telling();
  test_alone();
  test_once();
  test_busy();
  test_missing();
  test_missing_wait();
  test_pruned();
  test_budget();
  test_breaker();
  test_breaker_rate();
  test_slow();
  test_rules();
  test_refused();
  test_generic();
  return done_testing();
}
