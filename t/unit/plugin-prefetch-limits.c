/* SPDX-License-Identifier: MIT */
/* The middleware `prefetch`: when it fetches less, or nothing. */
#include "prefetch-kit.h"

/* --- limits ----------------------------------------------------------------------------- */

static void
test_window(void)
{
  struct plugtest *host = host_with("window = 5;", 10000);

  walk(host, HEX, 100, 1, 3);
  for (unsigned i = 0; i < 10; i++)
    ask(host, HEX, 103 + i);
  ok(reached(host, "[\"0x75\",true]") && !reached(host, "[\"0x76\",true]"),
     "never more than `window` ahead");
  finish(host);

  host = host_with("after = 4;", 10000);
  walk(host, HEX, 100, 1, 4);
  is_int(metric(host, "walks"), 0, "`after` steps must have been made");
  ask(host, HEX, 104);
  is_int(metric(host, "walks"), 1, "then it is a walk");
  finish(host);
}

static void
test_in_flight(void)
{
  struct plugtest *host = host_with("in_flight = 3;", 10000);

  for (unsigned i = 0; i < 10; i++)
    ask(host, HEX, 100 + i);
  is_int(metric(host, "in_flight"), 3, "never more than `in_flight` at once");
  ok(metric(host, "held") > 0, "the rest is held back");
  plugtest_advance(host, 20);
  is_int(metric(host, "in_flight"), 3, "the next ones follow when there is room");
  finish(host);
}

static void
test_heavy(void)
{
  static const struct {
    const char *method;
    int64_t most;
  } cases[] = { { "eth_getBlockReceipts", 20 }, { "debug_traceBlockByNumber", 5 } };

  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    struct plugtest *host = host_with("", 10000);

    for (unsigned i = 0; i < 40; i++) {
      char params[300];

      print(params, "[\"0x#x\"]", 100 + i);
      ask_as(host, 1, cases[c].method, params);
    }
    is_int(metric(host, "in_flight"), cases[c].most, "of %s fewer at once", cases[c].method);
    finish(host);
  }
}

static void
test_busy(void)
{
  struct egw_upstream_info node = { .name = "node", .up = true, .in_flight = 10 };
  struct plugtest *host = host_with("busy = 10;", 10000);

  plugtest_upstreams(host, &node, 1);
  walk(host, HEX, 100, 1, 5);
  is_int(metric(host, "fetched"), 0, "as many real calls as `busy`: nothing is fetched");
  ok(metric(host, "held") > 0, "it is held back");
  node.in_flight = 2;
  plugtest_upstreams(host, &node, 1);
  walk(host, HEX, 105, 1, 2);
  ok(metric(host, "fetched") > 0, "with fewer it goes on");
  finish(host);

  host = host_with("", 10000);
  node = (struct egw_upstream_info){ .name = "node", .up = true, .busy = true };
  plugtest_upstreams(host, &node, 1);
  walk(host, HEX, 100, 1, 5);
  is_int(metric(host, "fetched"), 0, "a node that wants to be left alone is");
  finish(host);
}

static void
test_bytes(void)
{
  struct plugtest_reply big[] = { { .big = 998, .delay_ms = 20, .cached = true } };
  struct plugtest *host = host_with("max_bytes = \"5000\";", 10000);

  plugtest_script(host, big, 1);
  walk(host, HEX, 100, 1, 3);
  for (unsigned i = 0; i < 12; i++)
    ask(host, HEX, 103 + i);
  plugtest_advance(host, 20);
  ok(metric(host, "fetched") - metric(host, "used") <= 5, "never more than `max_bytes` ahead");
  ok(metric(host, "held") > 0, "the rest is held back");
  finish(host);

  host = host_with("max_reply = \"999\";", 10000);
  plugtest_script(host, big, 1);
  walk(host, HEX, 100, 1, 9);
  is_int(metric(host, "fetched"), 0, "replies longer than `max_reply` are not fetched ahead");
  plugtest_script(host, kept, 1);
  walk(host, HEX, 109, 1, 3);
  ok(metric(host, "fetched") > 0, "until they are shorter");
  finish(host);

  host = host_with("", 10000);
  big[0] = (struct plugtest_reply){ .big = 100000, .partial = true };
  plugtest_script(host, big, 1);
  walk(host, HEX, 100, 1, 9);
  is_int(metric(host, "fetched"), 0, "nor are those that come in pieces");
  finish(host);
}

static void
test_cost(void)
{
  struct plugtest *host = host_with("max_cost = 15;", 10000);
  struct plugtest_call *call = ask_as(host, 1, "trace_block", "[\"0x1\"]");

  ok(plugtest_end(call)->over || plugtest_below(call), "the call goes through");
  plugtest_advance(host, 20);
  ok(plugtest_end(call)->skipped, "methods that cost more are left alone");
  walk(host, HEX, 100, 1, 4);
  ok(metric(host, "fetched") > 0, "others are not");
  finish(host);
}

static void
test_many_walks(void)
{
  struct plugtest *host = host_with("max_walks = 2;", 10000);
  char params[300];

  for (unsigned i = 0; i < 3; i++)
    for (unsigned session = 1; session <= 3; session++) {
      print(params, HEX, 100u * session + i);
      ask_as(host, session, BLOCK, params);
    }
  is_int(metric(host, "walking"), 2, "never more than `max_walks` at once");
  is_int(metric(host, "walks"), 3, "the one that rested longest makes room");
  finish(host);

  host = host_with("", 1000000);
  for (unsigned session = 1; session <= 1000; session++)
    for (unsigned i = 0; i < 3; i++) {
      print(params, HEX, 100u * session + i);
      ask_as(host, session, BLOCK, params);
    }
  is_int(metric(host, "walking"), 64, "a thousand clients: bounded by default");
  plugtest_advance(host, 3000);
  is_int(metric(host, "walking"), 0, "and all end");
  is_int(metric(host, "in_flight"), 0, "nothing is under way");
  is_int(metric(host, "wasted"), metric(host, "fetched"), "all of that was in vain");
  finish(host);
}

static void
test_idle(void)
{
  struct plugtest_reply never[] = { { .never = true } };
  struct plugtest *host = host_with("idle = \"1s\";", 10000);

  walk(host, HEX, 100, 1, 5);
  plugtest_advance(host, 700);
  is_int(metric(host, "walking"), 1, "a pause");
  plugtest_advance(host, 800);
  is_int(metric(host, "walking"), 0, "no call for `idle`: the walk is over");
  is_int(metric(host, "wasted"), metric(host, "fetched") - metric(host, "used"),
         "what nobody asked for was in vain");
  finish(host);

  host = host_with("idle = \"1s\";", 10000);
  plugtest_script(host, never, 1);
  for (unsigned i = 0; i < 3; i++)
    ask(host, HEX, 100 + i);
  is_int(metric(host, "in_flight"), 2, "two are under way");
  plugtest_advance(host, 1500);
  is_int(metric(host, "in_flight"), 0, "what is under way for a walk that is over is given up");
  finish(host);

  host = host_with("idle = \"1s\";", 10000);
  for (unsigned i = 0; i < 8; i++) {
    ask(host, HEX, 100 + i);
    plugtest_advance(host, 900);
  }
  plugtest_advance(host, 3000);
  is_int(metric(host, "walking"), 1, "a slow client may take its time");
  finish(host);
}

static void
test_by(void)
{
  static const struct {
    const char *options, *peer;
    int64_t want;
  } cases[] = {
    { "", "10.0.0.1", 1 }, { "by = \"connection\";", "10.0.0.1", 0 }, { "", NULL, 0 },
  };

  for (size_t c = 0; c < 3; c++) {
    struct plugtest *host = host_with(cases[c].options, 1000);

    for (unsigned i = 0; i < 4; i++) {
      char params[300], peer[20];

      print(params, HEX, 100u + i);
      (void)snprintf(peer, sizeof peer, "10.0.1.%u", i);
      plugtest_call(host, &(struct plugtest_spec){
        .method = BLOCK, .params = params, .session = 1 + i,
        .peer = cases[c].peer == NULL ? peer : cases[c].peer });
      plugtest_run(host);
    }
    is_int(metric(host, "walks"), cases[c].want,
           c == 0   ? "HTTP connections of one address are one client"
           : c == 1 ? "unless it goes by connections"
                    : "those of several are not");
    finish(host);
  }
}

/* --- learning --------------------------------------------------------------------------- */

static void
test_not_kept(void)
{
  struct plugtest_reply plain[] = { { .result = "{\"a\":1}", .delay_ms = 5 } };
  struct plugtest *host = host_with("", 10000);
  int64_t fetched;

  plugtest_script(host, plain, 1);
  walk(host, HEX, 100, 1, 12);
  is_int(metric(host, "walking"), 0, "what was fetched comes from the node again: it stops");
  fetched = metric(host, "fetched");
  ok(fetched > 0 && fetched < 12, "after %lld", (long long)fetched);
  walk(host, HEX, 112, 1, 12);
  is_int(metric(host, "fetched"), fetched, "for a while");
  plugtest_advance(host, 31000);
  walk(host, HEX, 124, 1, 4);
  ok(metric(host, "fetched") > fetched, "then it tries again");
  finish(host);
}

static void
test_waste(void)
{
  struct plugtest *host = host_with("", 100000);
  unsigned round, i;

  for (round = 0; round < 10; round++) {
    for (i = 0; i < 3; i++)
      ask(host, HEX, 1000 * round + i);
    plugtest_advance(host, 2500);
  }
  ok(metric(host, "walks") < 4 && metric(host, "wasted") <= 6,
     "a client that always stops after three is not believed any more");
  finish(host);

  /* Every second one is asked for: the walk has step 1 as recognised, and wastes half. */
  host = host_with("", 100000);
  walk(host, HEX, 100, 1, 12);
  for (i = 0; i < 40; i++) {
    ask(host, HEX, 114 + 3 * i);
    plugtest_advance(host, 20);
  }
  ok(metric(host, "wasted") < 3 * 40, "the window shrinks when much is in vain: %lld of %lld",
     (long long)metric(host, "wasted"), (long long)metric(host, "fetched"));
  finish(host);
}

static void
test_latency(void)
{
  struct plugtest_reply quick[] = { { .result = "{\"a\":1}", .delay_ms = 10 } };
  struct plugtest_reply slow[] = { { .result = "{\"a\":1}", .delay_ms = 400 } };
  struct plugtest *host = host_with("in_flight = 16; window = 64;", 100000);

  plugtest_script(host, quick, 1);
  for (unsigned i = 0; i < 8; i++)
    ask(host, HEX, 100 + i);
  plugtest_advance(host, 10);
  is_int(metric(host, "in_flight"), 16, "a quick node gets all that may be");
  plugtest_script(host, slow, 1);
  plugtest_advance(host, 10);
  is_int(metric(host, "in_flight"), 16, "it becomes slow");
  plugtest_advance(host, 400);
  is_int(metric(host, "in_flight"), 8, "then it gets half as many");
  finish(host);
}

static void
test_failing(void)
{
  struct plugtest_reply bad[] = { { .outcome = EGW_BAD_REPLY, .delay_ms = 5 } };
  struct plugtest *host = host_with("", 10000);

  plugtest_script(host, bad, 1);
  walk(host, HEX, 100, 1, 20);
  ok(metric(host, "fetched") <= 20, "a node that fails is not asked for more than one at a time");
  is_int(metric(host, "in_flight"), 0, "nothing is left");
  finish(host);
}

int
main(void)
{
  find_plugin();
  test_window();
  test_in_flight();
  test_heavy();
  test_busy();
  test_bytes();
  test_cost();
  test_many_walks();
  test_idle();
  test_by();
  test_not_kept();
  test_waste();
  test_latency();
  test_failing();
  return done_testing();
}
