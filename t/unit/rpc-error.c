/* SPDX-License-Identifier: MIT */
/* The error table: what clients rely on. */
#include <ctype.h>
#include "rpc/error.h"
#include "rpc/scan.h"
#include "../lib/tap.h"

/* The codes are part of the interface: they are written down twice on purpose. */
static const int codes[RPC_FAULT_COUNT] = {
  [RPC_FAULT_PARSE] = -32700,
  [RPC_FAULT_INVALID_REQUEST] = -32600,
  [RPC_FAULT_METHOD_DENIED] = -32601,
  [RPC_FAULT_INVALID_PARAMS] = -32602,
  [RPC_FAULT_INTERNAL] = -32603,
  [RPC_FAULT_RATE_LIMIT] = -32005,
  [RPC_FAULT_TOO_MANY_SUBSCRIPTIONS] = -32006,
  [RPC_FAULT_REQUEST_TOO_LARGE] = -32007,
  [RPC_FAULT_REPLY_TOO_LARGE] = -32008,
  [RPC_FAULT_BATCH_TOO_LARGE] = -32010,
  [RPC_FAULT_BATCH_REPLY_TOO_LARGE] = -32011,
  [RPC_FAULT_UNAUTHORIZED] = -32016,
  [RPC_FAULT_NO_UPSTREAM] = -32050,
  [RPC_FAULT_TIMEOUT] = -32051,
  [RPC_FAULT_BAD_REPLY] = -32052,
  [RPC_FAULT_UNKNOWN_OUTCOME] = -32053,
  [RPC_FAULT_SHUTDOWN] = -32054,
  [RPC_FAULT_OVERLOADED] = -32055,
  [RPC_FAULT_NO_SUBSCRIPTIONS] = -32056,
  [RPC_FAULT_NO_PUSH] = -32057,
  [RPC_FAULT_DISAGREEMENT] = -32058,
  [RPC_FAULT_TOO_FEW] = -32059,
  [RPC_FAULT_CANCELLED] = -32603,
};

static bool
label_fine(const char *label)
{
  const char *p;

  for (p = label; *p != '\0'; p++)
    if (!islower((unsigned char)*p) && *p != '_')
      return false;
  return label[0] != '\0';
}

static void
test_table(void)
{
  unsigned i, j;

  for (i = 0; i < RPC_FAULT_COUNT; i++) {
    const struct rpc_fault_info *info = rpc_fault_info((enum rpc_fault)i);
    bool alone = true;

    for (j = 0; j < i; j++)
      alone = alone && strcmp(rpc_fault_info((enum rpc_fault)j)->label, info->label) != 0;
    is_int(info->code, codes[i], "%s: code", info->label);
    ok(label_fine(info->label) && alone, "%s: a label of its own", info->label);
    ok(strpbrk(info->message, "{}\"\\<>") == NULL && strlen(info->message) < 80,
       "%s: the message is short and plain", info->label);
    ok(info->help[0] != '\0' && info->help[strlen(info->help) - 1] != '.', "%s: help",
       info->label);
  }
  ok(rpc_fault_info((enum rpc_fault)999)->code == -32603,
     "what is no fault is an internal one");
}

static void
test_print(void)
{
  struct egw_buf *buf = egw_buf_new(0);

  ok(rpc_error_print(buf, -32000, EGW_LIT("a \"quoted\" text\n\xff")) == 0, "an error object");
  is_slice(egw_buf_slice(buf),
           "{\"code\":-32000,\"message\":\"a \\\"quoted\\\" text\\n\xef\xbf\xbd\"}",
           "with its message escaped");
  ok(scan_valid(egw_buf_slice(buf), 2, NULL), "it is valid JSON");
  egw_buf_unref(buf);
  buf = egw_buf_new(0);
  ok(rpc_error_print(buf, INT64_MIN, EGW_LIT("")) == 0, "the least code there is");
  is_slice(egw_buf_slice(buf), "{\"code\":-9223372036854775808,\"message\":\"\"}", "in full");
  egw_buf_unref(buf);
}

int
main(void)
{
  test_table();
  test_print();
  return done_testing();
}
