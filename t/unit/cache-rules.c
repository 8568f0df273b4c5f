/* SPDX-License-Identifier: MIT */
/* The cache's rules: which answers are kept for ever, with block 100 final. */
#include "../lib/tap.h"

#include "../../plugins/middleware/cache/rules.h"
#include "rpc/method.h"

#define H "\"0x1111111111111111111111111111111111111111111111111111111111111111\""
#define A "\"0x000000000000000000000000000000000000000a\""

struct row {
  const char *method, *params;
  enum keep keep;
};

static const struct row rows[] = {
  { "eth_chainId", "[]", KEEP_RESULT },
  { "eth_getBlockByNumber", "[\"0x64\",true]", KEEP_RESULT },
  { "eth_getBlockByNumber", "[\"0x65\",true]", KEEP_NO },
  { "eth_getBlockByNumber", "[\"latest\",true]", KEEP_NO },
  { "eth_getBlockByNumber", "[\"finalized\",true]", KEEP_NO },
  { "eth_getBlockByNumber", "[\"earliest\",true]", KEEP_NO },
  { "eth_getBlockByNumber", "[\"pending\",false]", KEEP_NO },
  { "eth_getBlockByNumber", "[]", KEEP_NO },
  { "eth_getBlockByNumber", "[\"0xffffffffffffffffff\",true]", KEEP_NO },
  { "eth_getBlockByNumber", "[" H ",true]", KEEP_NO },
  { "eth_getBlockByHash", "[" H ",true]", KEEP_RESULT },
  { "eth_getBlockByHash", "[\"0x11\",true]", KEEP_NO },
  { "eth_getBlockReceipts", "[\"0x1\"]", KEEP_RESULT },
  { "eth_getBlockReceipts", "[" H "]", KEEP_RESULT },
  { "eth_getBlockReceipts", "[\"latest\"]", KEEP_NO },
  { "eth_getBalance", "[" A ",\"0x64\"]", KEEP_RESULT },
  { "eth_getBalance", "[" A "]", KEEP_NO },
  { "eth_getBalance", "[" A ",null]", KEEP_NO },
  { "eth_getBalance", "[" A ",\"latest\"]", KEEP_NO },
  { "eth_getBalance", "[" A "," H "]", KEEP_RESULT },
  { "eth_getBalance", "[" A ",{\"blockHash\":" H "}]", KEEP_RESULT },
  { "eth_getBalance", "[" A ",{\"blockHash\":" H ",\"requireCanonical\":false}]", KEEP_RESULT },
  { "eth_getBalance", "[" A ",{\"blockHash\":" H ",\"requireCanonical\":true}]", KEEP_NO },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x10\"}]", KEEP_RESULT },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"latest\"}]", KEEP_NO },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x65\"}]", KEEP_NO },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x1\",\"blockNumber\":\"latest\"}]", KEEP_NO },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x1\",\"BlockHash\":" H "}]", KEEP_NO },
  { "eth_getBalance", "[" A ",{\"blockHash\":" H ",\"blockNumber\":\"0x1\"}]", KEEP_NO },
  { "eth_getBalance", "{\"address\":" A "}", KEEP_NO },
  { "eth_call", "[{\"to\":" A "},\"0x1\"]", KEEP_RESULT },
  { "eth_call", "[{\"to\":" A "}]", KEEP_NO },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\"}]", KEEP_RESULT },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x65\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"toBlock\":\"0x1\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"fromBlock\":\"earliest\",\"toBlock\":\"0x1\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\",\"toBlock\":\"latest\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\",\"ToBlock\":\"latest\"}]", KEEP_NO },
  { "eth_getLogs", "[{\"blockHash\":" H ",\"topics\":[]}]", KEEP_RESULT },
  { "eth_getLogs", "[{\"blockHash\":" H ",\"toBlock\":\"latest\"}]", KEEP_NO },
  { "eth_getTransactionReceipt", "[" H "]", KEEP_IF_FINAL },
  { "eth_getTransactionByHash", "[" H "]", KEEP_IF_FINAL },
};

static const char *const unwanted[] = {
  "eth_blockNumber", "eth_gasPrice", "eth_sendRawTransaction", "eth_subscribe", "eth_newFilter",
  "eth_getFilterChanges", "eth_accounts", "eth_syncing", "net_peerCount", "txpool_status",
  "admin_peers", "debug_setHead", "anvil_mine", "eth_sendTransaction", "web3_clientVersion",
};

static struct egw_slice
slice(const char *text)
{
  return (struct egw_slice){ text, strlen(text) };
}

static void
test_results(void)
{
  ok(rules_result(KEEP_RESULT, slice("\"0x\""), true, 100), "an empty string is a result");
  ok(rules_result(KEEP_RESULT, slice("false"), true, 100), "false too");
  ok(!rules_result(KEEP_RESULT, slice("null"), true, 100), "null is not kept");
  ok(!rules_result(KEEP_RESULT, slice(" [ ] "), true, 100), "nor is an empty array");
  ok(rules_result(KEEP_RESULT, slice("[1]"), true, 100), "another one is");
  ok(rules_result(KEEP_IF_FINAL, slice("{\"blockNumber\":\"0x64\"}"), true, 100), "mined and final");
  ok(!rules_result(KEEP_IF_FINAL, slice("{\"blockNumber\":\"0x65\"}"), true, 100), "mined, not final");
  ok(!rules_result(KEEP_IF_FINAL, slice("{\"blockNumber\":null}"), true, 100), "pending");
  ok(!rules_result(KEEP_IF_FINAL, slice("{\"blockNumber\":\"0x1\"}"), false, 0), "nothing is final");
  ok(!rules_result(KEEP_IF_FINAL, slice("\"0x1\""), true, 100), "no object");
  ok(rules_matches(method_find(slice("eth_getBlockByNumber")), slice("[\"0x1\",true]"),
                   slice("{\"number\":\"0x1\"}")), "the block asked for");
  ok(!rules_matches(method_find(slice("eth_getBlockByNumber")), slice("[\"0x1\",true]"),
                    slice("{\"number\":\"0x2\"}")), "another block");
  ok(!rules_matches(method_find(slice("eth_getBlockByHash")), slice("[" H ",true]"),
                    slice("{\"hash\":\"0x22\"}")), "another hash");
}

int
main(void)
{
  unsigned i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const struct egw_method_info *m = method_find(slice(rows[i].method));

    ok(m != NULL && rules_want(m) &&
           rules_params(m, slice(rows[i].params), true, 100) == rows[i].keep,
       "%s %s", rows[i].method, rows[i].params);
    if (rows[i].keep == KEEP_IF_FINAL)
      ok(rules_params(m, slice(rows[i].params), false, 0) == KEEP_NO, "and not while nothing is final");
  }
  for (i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
    ok(!rules_want(method_find(slice(unwanted[i]))), "%s is none of ours", unwanted[i]);
  ok(!rules_want(NULL), "an unknown method neither");
  test_results();
  return done_testing();
}
