/* SPDX-License-Identifier: MIT */
/* The middleware `cache` in its host while the chain turns: reorgs, finality that moves,
 * blocks that are forgotten, another chain behind the same name. */
#include "cache-kit.h"

#define BALANCE "eth_getBalance"
#define RECEIPT "eth_getTransactionReceipt"
#define TX "\"0x00000000000000000000000000000000000000000000000000000000000000aa\""

static const char *
receipt(struct kit *k, unsigned number)
{
  return kit_text(k,
                  "{\"transactionHash\":" TX ",\"blockNumber\":\"0x%x\",\"blockHash\":\"%s\"}",
                  number, kit_hash(k, number));
}

static void
test_state(void)
{
  struct kit k;
  const char *before;

  kit_open(&k, "");
  before = kit_text(&k, "[\"0xa\",{\"blockHash\":\"%s\"}]", kit_hash(&k, 119));
  kit_script(&k, { .result = "\"0x1\"" });
  kit_ask(&k, BALANCE, "[\"0xa\",\"0x77\"]");
  kit_ask(&k, BALANCE, "[\"0xa\",\"0x74\"]");
  kit_ask(&k, BALANCE, "[\"0xa\",\"latest\"]");
  kit_reorg(&k, 118);
  kit_script(&k, { .result = "\"0x2\"" });
  ok(strcmp(kit_ask(&k, BALANCE, "[\"0xa\",\"0x77\"]")->body, "\"0x2\"") == 0 &&
         strcmp(kit_ask(&k, BALANCE, "[\"0xa\",\"latest\"]")->body, "\"0x2\"") == 0,
     "after a reorg of 3 the new blocks are asked for");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x77\"]", "\"0x2\""), "and kept");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x74\"]", "\"0x1\""), "blocks below it are not touched");
  ok(kit_hit(&k, BALANCE, before, "\"0x1\""), "by its hash the old block is what it was");
  memset(k.branch, 0, sizeof k.branch);
  kit_tell(&k);
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x77\"]", "\"0x1\""),
     "the chain turns back: so do the answers");
  kit_close(&k);
}

static void
test_in_flight(void)
{
  struct plugtest_call *call;
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, { .result = "\"0x1\"", .delay_ms = 100 }, { .result = "\"0x2\"" });
  call = plugtest_call(k.host, &(struct plugtest_spec){ .method = BALANCE,
                                                        .params = "[\"0xa\",\"latest\"]" });
  plugtest_run(k.host);
  kit_reorg(&k, 118);
  plugtest_advance(k.host, 200);
  ok(strcmp(plugtest_end(call)->body, "\"0x1\"") == 0,
     "an answer of a block that goes meanwhile");
  is_int(plugtest_metric(k.host, "stored"), 0, "is not kept");
  ok(strcmp(kit_ask(&k, BALANCE, "[\"0xa\",\"latest\"]")->body, "\"0x2\"") == 0,
     "nor given to the next");
  kit_close(&k);
}

static void
test_transaction(void)
{
  struct kit k;
  const char *one, *two;

  kit_open(&k, "");
  kit_script(&k, { .result = "null" },
             { .result = "{\"transactionHash\":" TX ",\"blockNumber\":null,"
                         "\"blockHash\":null}" },
             { .result = one = receipt(&k, 119) });
  ok(kit_asked(&k, RECEIPT, "[" TX "]", NULL, "null"), "not mined");
  ok(kit_ask(&k, RECEIPT, "[" TX "]")->sent == 1, "pending");
  ok(kit_asked(&k, RECEIPT, "[" TX "]", NULL, one), "mined");
  ok(kit_hit(&k, RECEIPT, "[" TX "]", one), "kept with its block");
  k.head.live = false;
  kit_tell(&k);
  ok(kit_ask(&k, RECEIPT, "[" TX "]")->sent == 1, "not while all nodes are lost");
  k.head.live = true;
  kit_reorg(&k, 118);
  two = receipt(&k, 120);
  kit_script(&k, { .result = two });
  ok(kit_asked(&k, RECEIPT, "[" TX "]", NULL, two), "in another block of the new branch");
  ok(kit_hit(&k, RECEIPT, "[" TX "]", two), "kept with that one");
  is_int(plugtest_metric(k.host, "reorged"), 1, "the old one is counted as dropped");
  kit_reorg(&k, 118);
  kit_script(&k, { .result = "null" });
  ok(kit_asked(&k, RECEIPT, "[" TX "]", NULL, "null") &&
     kit_asked(&k, RECEIPT, "[" TX "]", NULL, "null"),
     "a branch without it: it is gone");
  kit_script(&k, { .result = one });
  kit_ask(&k, RECEIPT, "[" TX "]");
  ok(kit_asked(&k, RECEIPT, "[" TX "]", NULL, one),
     "a node on the old branch is not believed for long");
  is_int(plugtest_metric(k.host, "entries"), 0, "nothing is kept");
  kit_close(&k);
}

static void
test_traces(void)
{
  static const char trace[] = "debug_traceTransaction", params[] = "[" TX ",{}]";
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, { .method = RECEIPT, .result = receipt(&k, 115) },
             { .result = "{\"gas\":1}" });
  kit_ask(&k, trace, params);
  ok(kit_ask(&k, trace, params)->sent == 1,
     "a trace that does not name its block is not kept");
  kit_ask(&k, RECEIPT, "[" TX "]");
  kit_ask(&k, trace, params);
  ok(kit_ask(&k, trace, params)->sent == 1, "nor if its transaction is known not to be final");
  k.head.finalized.number = 116;
  kit_mine(&k, 130);
  kit_ask(&k, trace, params);
  ok(kit_hit(&k, trace, params, "{\"gas\":1}"), "but if it is known to be final");
  kit_close(&k);
}

static void
test_finality(void)
{
  struct kit k;
  const char *one;

  kit_open(&k, "");
  one = receipt(&k, 115);
  kit_script(&k, { .method = RECEIPT, .result = one }, { .result = "\"0x7\"" });
  kit_ask(&k, RECEIPT, "[" TX "]");
  kit_ask(&k, BALANCE, "[\"0xa\",\"0x73\"]");
  k.head.finalized.number = 116;
  kit_mine(&k, 130);
  ok(kit_hit(&k, RECEIPT, "[" TX "]", one) && kit_hit(&k, BALANCE, "[\"0xa\",\"0x73\"]",
                                                      "\"0x7\""),
     "finality overtakes what is kept");
  k.head.lowest = 125;
  k.head.finalized.number = 140;
  kit_mine(&k, 150);
  ok(kit_hit(&k, RECEIPT, "[" TX "]", one) && kit_hit(&k, BALANCE, "[\"0xa\",\"0x73\"]",
                                                      "\"0x7\""),
     "which then stays, though the block's hash is forgotten");
  kit_close(&k);
}

static void
test_window(void)
{
  struct kit k;
  const char *one;

  kit_open(&k, "");
  one = receipt(&k, 115);
  kit_script(&k, { .method = RECEIPT, .result = one }, { .result = "\"0x7\"" });
  kit_ask(&k, RECEIPT, "[" TX "]");
  kit_ask(&k, BALANCE, "[\"0xa\",\"0x73\"]");
  k.head.lowest = 125;
  kit_mine(&k, 150);
  ok(kit_ask(&k, RECEIPT, "[" TX "]")->sent == 1,
     "a block that is forgotten before it was final: asked again");
  ok(strcmp(kit_status(&k, BALANCE, "[\"0xa\",\"0x73\"]"), "bypass") == 0,
     "by its number it is nobody's business");
  k.head.finalized.number = 140;
  kit_tell(&k);
  kit_ask(&k, RECEIPT, "[" TX "]");
  ok(kit_hit(&k, RECEIPT, "[" TX "]", one), "final in the meantime: kept for ever");
  kit_close(&k);
}

static void
test_logs(void)
{
  static const char open[] = "[{\"fromBlock\":\"0x6f\",\"toBlock\":\"latest\"}]";
  static const char closed[] = "[{\"fromBlock\":\"0x6f\",\"toBlock\":\"0x78\"}]";
  static const char one_block[] = "[{\"fromBlock\":\"latest\",\"toBlock\":\"latest\"}]";
  struct kit k;
  const char *logs;

  kit_open(&k, "");
  logs = kit_text(&k,
                  "[{\"blockNumber\":\"0x70\",\"blockHash\":\"%s\"},"
                  "{\"blockNumber\":\"0x78\",\"blockHash\":\"%s\"}]",
                  kit_hash(&k, 112), kit_hash(&k, 120));
  kit_script(&k, { .result = logs });
  ok(kit_asked(&k, "eth_getLogs", open, closed, logs), "an open range is closed at the tip");
  ok(kit_hit(&k, "eth_getLogs", open, logs) && kit_hit(&k, "eth_getLogs", closed, logs),
     "and kept");
  kit_reorg(&k, 120);
  ok(kit_ask(&k, "eth_getLogs", closed)->sent == 1, "until its last block goes");
  is_int(plugtest_metric(k.host, "reorged"), 1, "which is counted");
  ok(kit_ask(&k, "eth_getLogs", closed)->sent == 1, "logs of another branch are not kept");
  logs = kit_text(&k, "[{\"blockNumber\":\"0x70\",\"blockHash\":\"%s\"}]", kit_hash(&k, 112));
  kit_script(&k, { .result = logs });
  kit_ask(&k, "eth_getLogs", closed);
  ok(kit_ask(&k, "eth_getLogs", closed)->sent == 1, "nor logs that don't show the last block");
  logs = kit_text(&k, "[{\"blockNumber\":\"0x78\",\"blockHash\":\"%s\"}]", kit_hash(&k, 120));
  kit_script(&k, { .result = logs });
  ok(kit_asked(&k, "eth_getLogs", one_block, kit_text(&k, "[{\"blockHash\":\"%s\"}]",
                                                      kit_hash(&k, 120)), logs),
     "one block's are asked for by its hash");
  ok(kit_hit(&k, "eth_getLogs", "[{\"fromBlock\":\"0x78\",\"toBlock\":\"0x78\"}]", logs),
     "and kept");
  kit_mine(&k, 121);
  ok(kit_ask(&k, "eth_getLogs", one_block)->sent >= 1, "until there is a new head");
  kit_close(&k);
}

/* Everything is gone once. */
static void
expect_flush(struct kit *k, const char *what)
{
  is_int(plugtest_metric(k->host, "flushes"), 1, "%s", what);
  is_int(plugtest_metric(k->host, "entries"), 0, "nothing stays");
  kit_script(k, { .result = "\"0x2\"" });
  ok(strcmp(kit_ask(k, BALANCE, "[\"0xa\",\"0x1\"]")->body, "\"0x2\"") == 0, "the new answer");
  kit_close(k);
}

static void
fill(struct kit *k)
{
  kit_open(k, "");
  kit_script(k, { .result = "\"0x1\"" });
  kit_ask(k, BALANCE, "[\"0xa\",\"0x1\"]");
  if (!kit_hit(k, BALANCE, "[\"0xa\",\"0x1\"]", "\"0x1\""))
    ok(false, "kept");
}

static void
test_history(void)
{
  struct kit k;

  fill(&k);
  k.head.genesis[0] = 1;
  kit_tell(&k);
  expect_flush(&k, "another genesis block");
  fill(&k);
  k.head.chain_id = 5;
  kit_tell(&k);
  expect_flush(&k, "another chain id");
  fill(&k);
  kit_reorg(&k, 99);
  expect_flush(&k, "a block that was final is another one");
  fill(&k);
  k.head.has_finalized = k.head.has_safe = false;
  k.head.lowest = 0;
  k.head.tip.number = 3;
  kit_tell(&k);
  is_int(plugtest_metric(k.host, "flushes"), 1, "a chain that ends below what was final");
  kit_close(&k);
}

static void
test_commands(void)
{
  struct plugtest_spec read = { .method = BALANCE, .params = "[\"0xb\",\"0x1\"]" };
  struct plugtest_call *slow;
  struct kit k;

  fill(&k);
  kit_script(&k, { .method = BALANCE, .result = "\"0x1\"", .delay_ms = 100 },
             { .result = "true" });
  slow = plugtest_call(k.host, &read);
  plugtest_run(k.host);
  ok(strcmp(kit_ask(&k, "evm_revert", "[\"0x1\"]")->body, "true") == 0,
     "a command to a development node");
  is_int(plugtest_metric(k.host, "entries"), 0, "throws everything out");
  is_int(plugtest_metric(k.host, "flushes"), 2, "before and after");
  plugtest_advance(k.host, 200);
  ok(plugtest_end(slow)->over, "a read that was under way ends");
  is_int(plugtest_metric(k.host, "entries"), 0, "but is not kept");
  kit_close(&k);
  fill(&k);
  kit_script(&k, { .result = "true" });
  plugtest_ask(k.host, &(struct plugtest_spec){ .method = "anvil_setBalance", .params = "[]",
                                                .kind = EGW_KIND_NOTIFICATION });
  is_int(plugtest_metric(k.host, "entries"), 0, "also without an id");
  kit_close(&k);
}

int
main(void)
{
  kit_init();
  test_state();
  test_in_flight();
  test_transaction();
  test_traces();
  test_finality();
  test_window();
  test_logs();
  test_history();
  test_commands();
  return done_testing();
}
