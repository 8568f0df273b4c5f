/* SPDX-License-Identifier: MIT */
/* The middleware `prefetch`: what is a walk and what is fetched for it; new heads. */
#include "prefetch-kit.h"

/* --- what is a walk --------------------------------------------------------------------- */

static void
test_up(void)
{
  struct plugtest *host = host_with("", 1000);

  ask(host, HEX, 10);
  ask(host, HEX, 11);
  is_int(plugtest_reached(host), 2, "two neighbours are not yet a walk");
  ask(host, HEX, 12);
  is_int(plugtest_reached(host), 5, "two steps are: two more are fetched");
  ok(reached(host, "[\"0xd\",true]") && reached(host, "[\"0xe\",true]"), "the next two");
  is_int(metric(host, "walking"), 1, "one walk");
  is_int(metric(host, "in_flight"), 2, "two are under way");
  ask(host, HEX, 13);
  is_int(metric(host, "late"), 1, "the client comes before the answer");
  is_int(metric(host, "fetched"), 5, "so the window grows: 14 to 17");
  ok(reached(host, "[\"0x11\",true]") && !reached(host, "[\"0x12\",true]"), "up to the fourth");
  plugtest_advance(host, 20);
  is_int(metric(host, "in_flight"), 0, "all have come");
  is_int(metric(host, "bytes"), 5 * 7, "their bytes are counted");
  ask(host, HEX, 14);
  is_int(metric(host, "used"), 2, "the next one is there");
  is_int(metric(host, "late"), 1, "in time");
  is_int(metric(host, "fetched"), 6, "the window stays, and moves on by one");
  finish(host);
}

static void
test_down(void)
{
  struct plugtest *host = host_with("", 1000);

  walk(host, HEX, 6, -1, 3);
  ok(reached(host, "[\"0x3\",true]") && reached(host, "[\"0x2\",true]"), "downward as well");
  walk(host, HEX, 3, -1, 4);
  is_int(metric(host, "fetched"), 4, "down to block 0, and not below");
  ok(reached(host, "[\"0x0\",true]"), "block 0");
  is_int(metric(host, "used"), 4, "all were of use");
  finish(host);
}

static void
test_tip(void)
{
  struct plugtest *host = host_with("", 15);
  struct egw_head head = { .known = true, .live = true, .tip = { .number = 17 } };

  walk(host, HEX, 10, 1, 6);
  ok(reached(host, "[\"0xf\",true]"), "up to the tip");
  ok(!reached(host, "[\"0x10\",true]"), "not past it");
  is_int(metric(host, "wasted"), 0, "nothing is in vain");
  plugtest_head(host, &head, NULL, 0);
  ask(host, HEX, 16);
  ok(reached(host, "[\"0x11\",true]"), "when the chain grows the walk goes on");
  finish(host);

  host = host_with("", 0);
  walk(host, HEX, 10, 1, 5);
  is_int(plugtest_reached(host), 5, "the tip is not known: nothing is fetched upward");
  walk(host, HEX, 50, -1, 5);
  ok(metric(host, "fetched") > 0 && reached(host, "[\"0x2d\",true]"), "but downward");
  finish(host);
}

static void
test_steps(void)
{
  struct plugtest *host = host_with("", 100000);

  walk(host, HEX, 1000, 100, 3);
  is_int(metric(host, "fetched"), 0, "another step than one must show itself once more");
  ask(host, HEX, 1300);
  ok(reached(host, "[\"0x578\",true]") && reached(host, "[\"0x5dc\",true]"),
     "a constant step: 1400 and 1500");
  finish(host);

  host = host_with("", 100000);
  ask(host, HEX, 5);
  ask(host, HEX, 900);
  ask(host, HEX, 17);
  ask(host, HEX, 300);
  ask(host, HEX, 17);
  ask(host, HEX, 18);
  ask(host, HEX, 17);
  ask(host, HEX, 18);
  is_int(metric(host, "fetched"), 0, "hither and thither is no walk");
  finish(host);
}

/* The same number in the same form. */
static void
test_forms(void)
{
  static const struct {
    const char *method, *form, *want;
    uint64_t first;
  } forms[] = {
    { BLOCK, "[\"0x#x\", false ]", "[\"0xd\", false ]", 10 },
    { BLOCK, "[\"0x#X\",true]", "[\"0xBD\",true]", 0xba },
    { BLOCK, "[\"0x#w\",true]", "[\"0x000d\",true]", 10 },
    { BLOCK, "[#d,true]", "[13,true]", 10 },
    { "eth_getBlockReceipts", "[\"0x#x\"]", "[\"0x10\"]", 13 },
    { "eth_getBlockReceipts", "[{\"blockNumber\":\"0x#x\"}]", "[{\"blockNumber\":\"0x10\"}]",
      13 },
    { "debug_traceBlockByNumber", "[\"0x#x\",{\"tracer\":\"callTracer\"}]",
      "[\"0x10\",{\"tracer\":\"callTracer\"}]", 13 },
    { "trace_block", "[\"0x#x\"]", "[\"0x10\"]", 13 },
    { "eth_getBalance", "[\"0xaa\",\"0x#x\"]", "[\"0xaa\",\"0x10\"]", 13 },
  };

  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    struct plugtest *host = host_with("", 1000);

    for (unsigned j = 0; j < 3; j++) {
      char params[300];

      print(params, forms[i].form, forms[i].first + j);
      ask_as(host, 1, forms[i].method, params);
    }
    ok(reached(host, forms[i].want), "%s %s", forms[i].method, forms[i].want);
    (void)plugtest_free(host);
  }
}

static void
test_windows(void)
{
  struct plugtest *host = host_with("", 1000);
  static const char *const asked[] = {
    "[{\"address\":\"0xaa\",\"fromBlock\":\"0x64\",\"toBlock\":\"0x6d\",\"topics\":[]}]",
    "[{\"address\":\"0xaa\",\"fromBlock\":\"0x6e\",\"toBlock\":\"0x77\",\"topics\":[]}]",
    "[{\"address\":\"0xaa\",\"fromBlock\":\"0x78\",\"toBlock\":\"0x81\",\"topics\":[]}]",
  };

  for (unsigned i = 0; i < 3; i++)
    ask_as(host, 1, "eth_getLogs", asked[i]);
  ok(reached(host, "[{\"address\":\"0xaa\",\"fromBlock\":\"0x82\",\"toBlock\":\"0x8b\","
                   "\"topics\":[]}]"), "windows of eth_getLogs");
  is_int(metric(host, "fetched"), 2, "two of them");
  finish(host);

  host = host_with("", 138);
  for (unsigned i = 0; i < 3; i++)
    ask_as(host, 1, "eth_getLogs", asked[i]);
  is_int(metric(host, "fetched"), 0, "a window that ends past the tip is not fetched");
  finish(host);

  host = host_with("", 1000);
  for (unsigned i = 3; i > 0; i--)
    ask_as(host, 1, "eth_getLogs", asked[i - 1]);
  ok(reached(host, "[{\"address\":\"0xaa\",\"fromBlock\":\"0x5a\",\"toBlock\":\"0x63\","
                   "\"topics\":[]}]"), "downward");
  finish(host);
}

/* What has no number, or is not for reading, is nothing to this stage. */
static void
test_apart(void)
{
  struct plugtest *host = host_with("after = 1;", 1000);
  static const char *const others[] = {
    "[\"latest\",true]", "[]", "[{\"blockHash\":\"0x1\"}]", "[null]", "[\"0x\"]", "[1.5]",
    "[{\"blockNumber\":\"0x1\",\"x\":1}]", "[\"0xffffffffffffffff\"]", "{}",
  };
  char hash[80] = "[\"0x", end[] = "\",true]";

  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    ask_as(host, 1, BLOCK, others[i]);
  for (unsigned i = 0; i < 3; i++) {
    memset(hash + 4, '0' + (int)i, 64);
    memcpy(hash + 68, end, sizeof end);
    ask_as(host, 1, "eth_getBlockReceipts", hash);
  }
  ask_as(host, 1, "eth_getLogs", "[{\"fromBlock\":\"0x1\"}]");
  ask_as(host, 1, "eth_getLogs", "[{\"fromBlock\":\"0x5\",\"toBlock\":\"0x1\"}]");
  ask_as(host, 1, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"latest\"}]");
  ask_as(host, 1, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"fromBlock\":\"0x2\"}]");
  is_int(metric(host, "fetched"), 0, "tags, hashes, odd params");
  walk(host, "[\"0x#x\"]", 1, 1, 1);
  ask(host, "[\"0x#x\",true]", 2);
  ask_as(host, 1, "eth_getHeaderByNumber", "[\"0x2\"]");
  ask_as(host, 2, BLOCK, "[\"0x2\"]");
  is_int(metric(host, "fetched"), 0, "other params, another method, another client");
  ask(host, "[\"0x#x\"]", 2);
  is_int(metric(host, "fetched"), 2, "the same again: a walk of one step");
  finish(host);
}

/* --- clients that ask side by side ------------------------------------------------------ */

static void
test_out_of_order(void)
{
  static const unsigned order[] = { 1, 0, 2, 4, 3, 5, 7, 6, 8, 9 };
  struct plugtest *host = host_with("", 1000);

  for (unsigned i = 0; i < 10; i++)
    ask(host, HEX, 100 + order[i]);
  is_int(metric(host, "walks"), 1, "calls that overtake each other are one walk");
  ok(reached(host, "[\"0x6e\",true]"), "the next one is fetched");
  ok(!reached(host, "[\"0x63\",true]"), "none on the other side");
  plugtest_advance(host, 20);
  is_int(metric(host, "wasted"), 0, "nothing is in vain");
  finish(host);
}

static void
test_workers(void)
{
  struct plugtest *host = host_with("", 10000);
  int64_t fetched;

  for (unsigned i = 0; i < 40; i++)
    for (unsigned w = 0; w < 4; w++) {
      ask(host, HEX, 1000 + 777 * w + 30 * (w & 1) + i);
      plugtest_advance(host, 5);
    }
  fetched = metric(host, "fetched");
  ok(metric(host, "walking") == 4, "four workers of a client are four walks");
  ok(metric(host, "used") > 4 * 30, "what they ask for was fetched");
  ok(fetched < 4 * 40 + 4 * 32, "%lld were fetched", (long long)fetched);
  finish(host);
}

/* Where one walk meets what another has had, nothing is fetched twice. */
static void
test_meeting(void)
{
  struct plugtest *host = host_with("", 10000);
  unsigned i, number, twice = 0;
  char params[300];

  for (i = 0; i < 30; i++) {
    ask(host, HEX, 100 + i);
    ask(host, HEX, 110 + i);
    plugtest_advance(host, 20);
  }
  /* The script has no cache: a client's call goes below whether it was fetched or not. */
  for (number = 100; number < 140; number++) {
    unsigned asked = number >= 110 && number < 130 ? 2 : 1, times = 0;

    print(params, HEX, number);
    for (i = 0; i < plugtest_reached(host); i++)
      times += strcmp(plugtest_reached_params(host, i), params) == 0;
    twice += times > asked + 1;
  }
  is_int(twice, 0, "where a walk meets another one, nothing is fetched twice");
  ok(metric(host, "used") > 30, "both use what was fetched: %lld",
     (long long)metric(host, "used"));
  finish(host);
}

/* --- new heads -------------------------------------------------------------------------- */

static struct egw_block
block(uint64_t number, int fork)
{
  struct egw_block b = { .number = number };

  memset(b.hash, (int)number + fork, sizeof b.hash);
  return b;
}

static void
new_head(struct plugtest *host, uint64_t number, int fork)
{
  struct egw_block blocks[6];
  struct egw_head head = { .known = true, .live = true, .tip = block(number, fork) };

  for (unsigned i = 0; i < 6; i++)
    blocks[i] = block(number - i, i < 2 ? fork : 0);
  plugtest_head(host, &head, blocks, 6);
  plugtest_advance(host, 20);
}

static void
test_on_head(void)
{
  struct plugtest *host = host_with("on_head = ( \"block\", \"full\", \"receipts\", \"logs\" );", 0);

  new_head(host, 0x20, 0);
  is_int(plugtest_reached(host), 4, "a new head: four calls");
  ok(reached(host, "[\"0x20\",false]") && reached(host, "[\"0x20\",true]") &&
         reached(host, "[\"0x20\"]") &&
         reached(host, "[{\"blockHash\":\"0x2020202020202020202020202020202020202020202020202020"
                       "202020202020\"}]"),
     "for the block, the full block, receipts and logs");
  is_int(metric(host, "warmed"), 4, "counted");
  new_head(host, 0x20, 0);
  is_int(plugtest_reached(host), 4, "the same head again: none");
  new_head(host, 0x23, 0);
  is_int(plugtest_reached(host), 16, "three blocks at once: each is fetched");
  new_head(host, 0x23, 7);
  is_int(plugtest_reached(host), 24, "a reorg of two: those two");
  new_head(host, 0x83, 0);
  is_int(plugtest_reached(host), 40, "far on: the last four");
  finish(host);

  host = host_with("on_head = ( \"receipts\" );", 0);
  new_head(host, 0x20, 0);
  is_int(plugtest_reached(host), 1, "only what is wanted");
  finish(host);

  host = host_with("", 0);
  new_head(host, 0x20, 0);
  is_int(plugtest_reached(host), 0, "by default nothing");
  finish(host);

  host = plugtest_new(so, "on_head = ( \"transactions\" );");
  ok(plugtest_refused(host) && strstr(plugtest_messages(host), "transactions") != NULL,
     "what there is not is refused");
  (void)plugtest_free(host);
}

static void
test_story(void)
{
  struct plugtest *host = host_with("", 1000);
  struct plugtest_spec spec = { .method = BLOCK, .params = "[\"0xd\",true]", .transport = "ws",
                                .explain = true };
  struct plugtest_call *call;

  walk(host, HEX, 10, 1, 3);
  call = plugtest_call(host, &spec);
  plugtest_advance(host, 20);
  ok(strstr(plugtest_end(call)->story, "fetched before") != NULL, "the story tells: %s",
     plugtest_end(call)->story);
  finish(host);
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  struct plugtest_spec spec = { .method = BLOCK, .params = "[\"0x10\",true]" };

  find_plugin();
  test_up();
  test_down();
  test_tip();
  test_steps();
  test_forms();
  test_windows();
  test_apart();
  test_out_of_order();
  test_workers();
  test_meeting();
  test_on_head();
  test_story();
  plugtest_generic(so, "", &spec, report);
  return done_testing();
}
