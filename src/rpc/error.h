/* SPDX-License-Identifier: MIT */
/* The gateway's own errors: one table of code, message and metric label. docs/errors.md is
 * checked against it by a test. Messages hold no braces (viem counts them), no quotes, no
 * text from a client, no upstream URL. Codes -32700..-32600 are JSON-RPC 2.0; -32005..-32011
 * follow the meaning geth and Reth give them; -3205x are the gateway's own. */
#ifndef RPC_ERROR_H
#define RPC_ERROR_H

#include <stdint.h>
#include <ethrpc-gw/buf.h>

enum rpc_fault {
  RPC_FAULT_NONE = 0,
  RPC_FAULT_PARSE,             /* -32700 parse error */
  RPC_FAULT_INVALID_REQUEST,   /* -32600 invalid request */
  RPC_FAULT_METHOD_DENIED,     /* -32601 the method does not exist or is not available here */
  RPC_FAULT_INVALID_PARAMS,    /* -32602 invalid params */
  RPC_FAULT_INTERNAL,          /* -32603 internal error */
  RPC_FAULT_RATE_LIMIT,        /* -32005 rate limit exceeded */
  RPC_FAULT_TOO_MANY_SUBSCRIPTIONS, /* -32006 */
  RPC_FAULT_REQUEST_TOO_LARGE, /* -32007 request too large */
  RPC_FAULT_REPLY_TOO_LARGE,   /* -32008 response too large */
  RPC_FAULT_BATCH_TOO_LARGE,   /* -32010 batch too large */
  RPC_FAULT_BATCH_REPLY_TOO_LARGE, /* -32011 batch response too large */
  RPC_FAULT_UNAUTHORIZED,      /* -32016 unauthorized */
  RPC_FAULT_NO_UPSTREAM,       /* -32050 no upstream could be reached */
  RPC_FAULT_TIMEOUT,           /* -32051 request timed out */
  RPC_FAULT_BAD_REPLY,         /* -32052 the upstream gave an unusable response */
  RPC_FAULT_UNKNOWN_OUTCOME,   /* -32053 connection broke, may have been executed */
  RPC_FAULT_SHUTDOWN,          /* -32054 the gateway is shutting down */
  RPC_FAULT_OVERLOADED,        /* -32055 the gateway is overloaded, try again later */
  RPC_FAULT_NO_SUBSCRIPTIONS,  /* -32056 subscriptions need a WebSocket or IPC connection */
  RPC_FAULT_NO_PUSH,           /* -32057 no upstream can send events of subscriptions */
  RPC_FAULT_DISAGREEMENT,      /* -32058 upstreams do not agree */
  RPC_FAULT_TOO_FEW,           /* -32059 too few upstreams answered to agree */
  RPC_FAULT_CANCELLED,         /* never sent: the client has gone */
  RPC_FAULT_COUNT
};

struct rpc_fault_info {
  int code;
  const char *label;           /* for metrics and logs: "parse", "timeout" */
  const char *message;
  const char *help;            /* one sentence for docs/errors.md: when it happens */
};

/* Never NULL for a value of the enum. Any thread. */
const struct rpc_fault_info *rpc_fault_info(enum rpc_fault fault);

/* Appends {"code":N,"message":"..."} with the message escaped. 0 or -1 (memory). */
int rpc_error_print(struct egw_buf *out, int64_t code, struct egw_slice message)
    EGW_MUST_CHECK;

#endif
