/* SPDX-License-Identifier: MIT */
/* The table of the gateway's own errors. */
#include <ethrpc-gw/json.h>
#include "rpc/error.h"

static const struct rpc_fault_info faults[RPC_FAULT_COUNT] = {
  [RPC_FAULT_NONE] = { 0, "none", "no error", "Never sent" },
  [RPC_FAULT_PARSE] = { -32700, "parse", "Parse error",
    "The text is not JSON (RFC 8259), is nested too deeply, or is empty" },
  [RPC_FAULT_INVALID_REQUEST] = { -32600, "invalid_request", "Invalid request",
    "The JSON is not a JSON-RPC 2.0 request, or is an empty array" },
  [RPC_FAULT_METHOD_DENIED] = { -32601, "method_denied",
    "the method does not exist or is not available here",
    "The configuration of this gateway does not let the method through" },
  [RPC_FAULT_INVALID_PARAMS] = { -32602, "invalid_params", "Invalid params",
    "The params are neither an array nor an object, or do not suit the method" },
  [RPC_FAULT_INTERNAL] = { -32603, "internal", "Internal error",
    "The gateway ran out of memory or met a bug of its own" },
  [RPC_FAULT_RATE_LIMIT] = { -32005, "rate_limit", "rate limit exceeded",
    "The client sent more calls than it is allowed to; it may try again later" },
  [RPC_FAULT_TOO_MANY_SUBSCRIPTIONS] = { -32006, "too_many_subscriptions",
    "too many subscriptions",
    "The connection, or all clients of the network together, hold as many subscriptions or filters as"
    " they may" },
  [RPC_FAULT_REQUEST_TOO_LARGE] = { -32007, "request_too_large", "request too large",
    "The request is larger than the configured limit" },
  [RPC_FAULT_REPLY_TOO_LARGE] = { -32008, "reply_too_large", "response too large",
    "The response of the upstream is larger than the configured limit" },
  [RPC_FAULT_BATCH_TOO_LARGE] = { -32010, "batch_too_large", "batch too large",
    "The array holds more requests than the configured limit; none was executed" },
  [RPC_FAULT_BATCH_REPLY_TOO_LARGE] = { -32011, "batch_reply_too_large",
    "batch response too large",
    "The responses to an array are together larger than the configured limit" },
  [RPC_FAULT_UNAUTHORIZED] = { -32016, "unauthorized",
    "unauthorized: no valid key or token came with it",
    "The client showed no key or token, or one that is not valid" },
  [RPC_FAULT_NO_UPSTREAM] = { -32050, "no_upstream", "no upstream could be reached",
    "Every upstream that can serve the call is down, or broke the connection, also when it was"
    " asked again" },
  [RPC_FAULT_TIMEOUT] = { -32051, "timeout", "request timed out",
    "No upstream answered before the deadline of the request" },
  [RPC_FAULT_BAD_REPLY] = { -32052, "bad_reply", "the upstream gave an unusable response",
    "What the upstreams sent was not a valid JSON-RPC response to the request" },
  [RPC_FAULT_UNKNOWN_OUTCOME] = { -32053, "unknown_outcome",
    "the connection broke; the request may have been executed",
    "The connection to the upstream was lost after the request had been sent, and sending it"
    " again would not be safe" },
  [RPC_FAULT_SHUTDOWN] = { -32054, "shutdown", "the gateway is shutting down",
    "The gateway ends or restarts and takes no new requests" },
  [RPC_FAULT_OVERLOADED] = { -32055, "overloaded",
    "the gateway is overloaded, try again later",
    "A limit on calls in flight or on memory was reached; nothing was executed" },
  [RPC_FAULT_NO_SUBSCRIPTIONS] = { -32056, "no_subscriptions",
    "subscriptions need a WebSocket or IPC connection",
    "A subscription was asked for over HTTP, as a notification, or by the gateway itself" },
  [RPC_FAULT_NO_PUSH] = { -32057, "no_push", "no upstream can send events of subscriptions",
    "A subscription was asked for, but the network's upstreams are all reached by HTTP or replay" },
  [RPC_FAULT_DISAGREEMENT] = { -32058, "disagreement", "the upstreams do not agree",
    "Middleware quorum: the upstreams that were asked gave different answers" },
  [RPC_FAULT_TOO_FEW] = { -32059, "too_few", "too few upstreams answered to agree",
    "Middleware quorum: fewer upstreams could answer than must agree" },
  [RPC_FAULT_CANCELLED] = { -32603, "cancelled", "cancelled",
    "Never sent: the client has gone" },
};

const struct rpc_fault_info *
rpc_fault_info(enum rpc_fault fault)
{
  if ((unsigned)fault >= RPC_FAULT_COUNT)
    fault = RPC_FAULT_INTERNAL;
  return &faults[fault];
}

int
rpc_error_print(struct egw_buf *out, int64_t code, struct egw_slice message)
{
  if (egw_buf_printf(out, "{\"code\":%lld,\"message\":", (long long)code) != 0 ||
      egw_json_quote(out, message) != 0)
    return -1;
  return egw_buf_append(out, "}", 1);
}
