/* SPDX-License-Identifier: MIT */
/* The classifier of `failover`: what nodes say, and what that means. */
#include "../lib/tap.h"

#include <ethrpc-gw/json.h>
#include "../../plugins/middleware/failover/classify.h"
#include "rpc/method.h"

static struct verdict
judge_full(const char *method, int64_t code, const char *message, const char *data, int http)
{
  char quoted[2000];
  struct egw_slice name = { method, strlen(method) };
  struct egw_reply reply = { .is_error = true, .code = code, .http_status = http };

  snprintf(quoted, sizeof quoted, "\"%s\"", message);
  reply.message = (struct egw_slice){ quoted, strlen(quoted) };
  if (data != NULL)
    reply.data = (struct egw_slice){ data, strlen(data) };
  return classify(NULL, name, method_find(name), &reply);
}

static const struct {
  const char *method;
  int64_t code;
  const char *message, *data;
  int http;
  enum error_class want;
} cases[] = {
  /* Reverts, whatever the contract says. */
  { "eth_call", 3, "execution reverted: deposit limit exceeded", "\"0x08c379a0\"", 200,
    CLASS_REVERT },
  { "eth_call", 3, "execution reverted: range too large", NULL, 200, CLASS_REVERT },
  { "eth_call", -32000, "execution reverted: transaction not found", NULL, 200, CLASS_REVERT },
  { "eth_call", -32000, "Execution reverted: has exceeded the cap", NULL, 200, CLASS_REVERT },
  { "eth_call", -32000, "execution reverted", NULL, 429, CLASS_REVERT },
  { "eth_call", 3, "too many requests", NULL, 200, CLASS_REVERT },
  { "eth_call", -32015, "VM execution error.", "\"Reverted 0x08c379a0\"", 200, CLASS_REVERT },
  { "eth_call", -32000, "EVM error: OutOfGas", NULL, 200, CLASS_REVERT },
  { "eth_call", -32000, "header not found", "\"0x08c379a000\"", 200, CLASS_REVERT },
  { "eth_estimateGas", -32000, "gas required exceeds allowance (21000)", NULL, 200,
    CLASS_REVERT },
  { "eth_call", -32603, "Error: VM Exception while processing transaction: reverted", NULL,
    200, CLASS_REVERT },
  { "eth_call", -32000, "err: insufficient funds for gas * price + value", NULL, 200,
    CLASS_REVERT },
  { "eth_call", -32000, "out of gas", NULL, 200, CLASS_REVERT },
  /* `data` is not read. */
  { "eth_call", -32000, "some new error", "\"header not found\"", 200, CLASS_UNMATCHED },
  { "eth_call", -32000, "some new error", "{\"see\":\"rate limit\"}", 200, CLASS_UNMATCHED },
  { "eth_call", -32000, "some new error", "\"0x\"", 200, CLASS_UNMATCHED },
  /* Ranges, for methods that have them only. */
  { "eth_getLogs", -32005, "query returned more than 10000 results", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32602, "eth_getLogs block range too large", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32600, "block range is too wide", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32008, "Response is too big", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32000, "exceed maximum block range: 5000", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32614, "eth_getLogs is limited to a 10,000 range", NULL, 200,
    CLASS_RANGE },
  { "eth_getLogs", -32000, "query exceeds limit of 100", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32012, "whatever", NULL, 200, CLASS_RANGE },
  { "eth_getLogs", -32000, "specify less number of addresses", NULL, 200, CLASS_RANGE },
  { "debug_traceBlockByNumber", -32008, "Response is too big", NULL, 200, CLASS_RANGE },
  { "eth_getBalance", -32000, "limit exceeded", NULL, 200, CLASS_RATE },
  /* The mempool's. */
  { "eth_sendRawTransaction", -32000, "already known", NULL, 200, CLASS_TX_KNOWN },
  { "eth_sendRawTransaction", -32000, "Known transaction: 0x12", NULL, 200, CLASS_TX_KNOWN },
  { "eth_sendRawTransaction", -32010, "Transaction with the same hash was already imported.",
    NULL, 200, CLASS_TX_KNOWN },
  { "eth_sendRawTransaction", -32003, "transaction already imported", NULL, 200,
    CLASS_TX_KNOWN },
  { "eth_sendRawTransaction", -32000, "nonce too low: next nonce 5, tx nonce 3", NULL, 200,
    CLASS_TX_NONCE },
  { "eth_sendRawTransaction", -32000, "insufficient funds for gas * price + value", NULL, 200,
    CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "replacement transaction underpriced", NULL, 200,
    CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "intrinsic gas too low", NULL, 200, CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "exceeds block gas limit", NULL, 200, CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "rlp: expected List", NULL, 200, CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "unknown transaction type", NULL, 200,
    CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32003, "whatever", NULL, 200, CLASS_TX_REFUSED },
  { "eth_sendRawTransaction", -32000, "txpool is full", NULL, 200, CLASS_TX_BUSY },
  { "eth_sendRawTransaction", -32000, "rejected", NULL, 200, CLASS_TX_BUSY },
  { "eth_getBalance", -32000, "already known", NULL, 200, CLASS_UNMATCHED },
  { "eth_getTransactionReceipt", -32000, "rejected", NULL, 200, CLASS_UNMATCHED },
  /* Providers. */
  { "eth_call", -32005, "daily request count exceeded, request rate limited", NULL, 200,
    CLASS_RATE },
  { "eth_call", 429, "Your app has exceeded its compute units per second capacity", NULL, 429,
    CLASS_RATE },
  { "eth_blockNumber", -32000, "whatever", NULL, 429, CLASS_RATE },
  { "eth_call", -32001, "Monthly capacity limit exceeded.", NULL, 200, CLASS_BILLING },
  { "eth_blockNumber", -32000, "whatever", NULL, 402, CLASS_BILLING },
  { "trace_block", -32600, "trace_block is not included in your current plan", NULL, 200,
    CLASS_UNSUPPORTED },
  { "eth_call", -32600, "Must be authenticated!", NULL, 401, CLASS_AUTH },
  { "eth_blockNumber", -32000, "invalid api key", NULL, 200, CLASS_AUTH },
  { "eth_blockNumber", -32000, "whatever", NULL, 403, CLASS_AUTH },
  /* Missing. */
  { "eth_getBlockByNumber", -32000, "header not found", NULL, 200, CLASS_MISSING_BLOCK },
  { "eth_call", -32000, "header not found", NULL, 200, CLASS_MISSING_BLOCK },
  { "eth_call", -32602, "BlockOutOfRangeError: block height is 5 but requested was 10", NULL,
    200, CLASS_MISSING_BLOCK },
  { "debug_traceTransaction", -32000, "transaction not found", NULL, 200,
    CLASS_MISSING_BLOCK },
  { "eth_getBlockReceipts", -32001, "whatever", NULL, 200, CLASS_MISSING_BLOCK },
  { "eth_getBalance", -32000, "missing trie node 1a2b (path ) state 0x12 is not available",
    NULL, 200, CLASS_MISSING_STATE },
  { "eth_call", -32000, "historical state 1a2b is not available", NULL, 200,
    CLASS_MISSING_STATE },
  { "eth_getLogs", 4444, "pruned history unavailable", NULL, 200, CLASS_MISSING_STATE },
  { "eth_chainId", -32000, "header not found", NULL, 200, CLASS_UNMATCHED },
  /* Nodes. */
  { "debug_traceTransaction", -32000, "execution timeout", NULL, 200, CLASS_NODE_TIMEOUT },
  { "eth_call", -32000, "execution aborted (timeout = 5s)", NULL, 200, CLASS_NODE_TIMEOUT },
  { "trace_block", -32601, "the method trace_block does not exist/is not available", NULL, 200,
    CLASS_UNSUPPORTED },
  { "eth_foo", -32601, "Method not found", NULL, 200, CLASS_UNSUPPORTED },
  { "eth_call", -32602, "missing value for required argument 0", NULL, 200, CLASS_INVALID },
  { "eth_call", -32600, "invalid request", NULL, 200, CLASS_INVALID },
  { "eth_getBalance", -32603, "Internal error", NULL, 200, CLASS_SERVER },
  { "eth_getBalance", -32000, "no healthy node available", NULL, 200, CLASS_SERVER },
  { "eth_getBalance", -32600, "validation errors in batch", NULL, 200, CLASS_SERVER },
  { "eth_getBalance", -32000, "the moon is full", NULL, 200, CLASS_UNMATCHED },
};

static void
errors(void)
{
  size_t i;

  for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct verdict v = judge_full(cases[i].method, cases[i].code, cases[i].message,
                                  cases[i].data, cases[i].http);

    if (!ok(v.class == cases[i].want, "%s: %lld %s: %s", cases[i].method,
            (long long)cases[i].code, cases[i].message, class_info(cases[i].want)->name))
      printf("#   got %s by %s\n", class_info(v.class)->name, v.row);
  }
}

static void
outcomes(void)
{
  static const struct {
    enum egw_outcome outcome;
    int http;
    enum error_class want;
  } faults[] = {
    { EGW_NOT_SENT, 0, CLASS_UNREACHABLE }, { EGW_MAYBE_SENT, 0, CLASS_BROKEN },
    { EGW_TIMED_OUT, 0, CLASS_SILENT },     { EGW_BAD_REPLY, 200, CLASS_BROKEN },
    { EGW_BAD_REPLY, 500, CLASS_BROKEN },   { EGW_BAD_REPLY, 503, CLASS_BROKEN },
    { EGW_BAD_REPLY, 429, CLASS_RATE },     { EGW_BAD_REPLY, 401, CLASS_AUTH },
    { EGW_BAD_REPLY, 402, CLASS_BILLING },  { EGW_BAD_REPLY, 405, CLASS_UNSUPPORTED },
    { EGW_OK, 200, CLASS_RESULT },
  };
  size_t i;

  for (i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    struct egw_reply reply = { .outcome = faults[i].outcome, .http_status = faults[i].http };
    struct egw_slice name = EGW_LIT("eth_chainId");

    ok(classify(NULL, name, method_find(name), &reply).class == faults[i].want,
       "outcome %d, status %d", (int)faults[i].outcome, faults[i].http);
  }
}

/* Very long messages, and none. */
static void
edges(void)
{
  static char text[5000];
  struct egw_reply reply = { .is_error = true, .code = -32000 };
  struct egw_slice name = EGW_LIT("eth_getBalance");

  memset(text, 'x', sizeof text);
  memcpy(text, "\"Header not found", 17);
  text[sizeof text - 1] = '"';
  reply.message = (struct egw_slice){ text, sizeof text };
  ok(classify(NULL, name, method_find(name), &reply).class == CLASS_MISSING_BLOCK,
     "a long message");
  reply.message = (struct egw_slice){ NULL, 0 };
  ok(classify(NULL, name, method_find(name), &reply).class == CLASS_UNMATCHED, "no message");
  ok(classify(NULL, EGW_LIT("x"), NULL, &reply).class == CLASS_UNMATCHED, "an unknown method");
}

/* Each class has a name of its own. */
static void
names(void)
{
  unsigned i;

  for (i = 0; i < CLASS_COUNT; i++)
    ok(class_find(class_info((enum error_class)i)->name) == (enum error_class)i, "class %s",
       class_info((enum error_class)i)->name);
  ok(class_find("nonsense") == CLASS_COUNT, "no such class");
}

int
main(void)
{
  errors();
  outcomes();
  edges();
  names();
  return done_testing();
}
