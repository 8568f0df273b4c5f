/* SPDX-License-Identifier: MIT */
/* JSON-RPC 2.0 envelopes as raw slices: requests from clients (one object or an array of them)
 * and replies from upstreams. https://www.jsonrpc.org/specification */
#ifndef RPC_ENVELOPE_H
#define RPC_ENVELOPE_H

#include "rpc/error.h"
#include "rpc/scan.h"

#define RPC_METHOD_MAX 128      /* decoded bytes of a method name */
#define RPC_ID_MAX 4096         /* raw bytes of an id */
#define RPC_CLIENT_DEPTH 128    /* nesting allowed from clients */
#define RPC_UPSTREAM_DEPTH 512  /* nesting allowed from upstreams */

/* --- requests ----------------------------------------------------------------------- */

/* One parsed request object. Slices borrow from the text, `method` from method_text when the
 * name holds escapes. */
struct rpc_request {
  enum rpc_fault fault;          /* RPC_FAULT_NONE, or why it is unusable */
  struct egw_slice id;           /* raw; missing: a notification (or not known) */
  struct egw_slice method;       /* decoded bytes */
  struct egw_slice params;       /* raw array or object; "[]" when missing or null */
  char method_text[RPC_METHOD_MAX];
};

/* Parses one object that is known to be valid JSON (`text` is exactly the value). Refused as
 * RPC_FAULT_INVALID_REQUEST: not an object; jsonrpc present and not a string "1.0"/"2.0" (a
 * missing one is accepted); a duplicate of one of the keys jsonrpc, id, method, params
 * (compared decoded); an id that is an object, array or boolean; a method that is missing,
 * not a string, empty, longer than RPC_METHOD_MAX or not of [A-Za-z0-9_.-] bytes (after
 * decoding). Params that are neither array, object nor null: RPC_FAULT_INVALID_PARAMS.
 * Where the id itself is legal it is kept, so that the error can carry it. */
void rpc_request_parse(struct egw_slice text, struct rpc_request *out);

/* Splits a client's message. Text is what one HTTP body, WebSocket message or IPC value holds;
 * a UTF-8 byte order mark in front is skipped. */
enum rpc_shape {
  RPC_SINGLE,     /* one value (object or not): count 1 */
  RPC_BATCH,      /* an array: count elements */
  RPC_UNUSABLE    /* not JSON, empty, or an empty array: one error, see fault */
};
struct rpc_message {
  enum rpc_shape shape;
  enum rpc_fault fault;          /* RPC_UNUSABLE */
  const char *why;               /* constant text for logs */
  size_t count;
  struct egw_slice *items;       /* RPC_BATCH: slices of the elements; malloc()ed, NULL else */
  struct egw_slice single;       /* RPC_SINGLE */
};

/* Parses and checks the whole text. More than `max_items` elements: RPC_UNUSABLE with
 * RPC_FAULT_BATCH_TOO_LARGE. Out of memory: RPC_FAULT_INTERNAL. Free with rpc_message_free(). */
void rpc_message_parse(struct egw_slice text, size_t max_items, struct rpc_message *out);
void rpc_message_free(struct rpc_message *message);

/* Appends the envelope for an upstream: {"jsonrpc":"2.0","id":N,"method":"..","params":..}.
 * 0 or -1 (memory). */
int rpc_request_print(struct egw_buf *out, uint64_t id, struct egw_slice method,
                      struct egw_slice params) EGW_MUST_CHECK;

/* --- replies ------------------------------------------------------------------------ */

/* What one message from an upstream turned out to be. */
enum rpc_reply_kind {
  RPC_REPLY_BAD,       /* not a usable JSON-RPC message: see why */
  RPC_REPLY_RESULT,
  RPC_REPLY_ERROR,
  RPC_REPLY_PUSH       /* a notification: method (and params) without id */
};

/* Resumable parser of one upstream message. Feed it as bytes arrive; the same bytes must be
 * kept by the caller (contiguously from the message's first byte) if it wants to use the
 * slices, which are offsets. Tolerated: any or no jsonrpc member, unknown members, members
 * in any order, "result" with "error":null and "error" with "result":null, a result of any
 * kind, an id that is a string of the decimal number. Not tolerated: broken JSON, duplicate
 * id/result/error, both or neither of result and error, no id, an error that is not an object
 * with an integer code (a missing or non-string message, or a code in another form, is
 * repaired: see rpc_reply). */
struct rpc_span {
  uint64_t from, to;             /* to == 0: missing */
};
struct rpc_reply_parser {
  struct scan scan;
  struct rpc_span id, result, error, method, params;
  enum egw_json_kind id_kind, result_kind, error_kind, params_kind;
  uint64_t result_begin;         /* offset of the result's first byte once it began, else 0 */
  bool result_began, duplicate;
  int member;                    /* private: which member the scan is in */
  const char *bytes;             /* private: base of the message in memory, for keys */
};

void rpc_reply_begin(struct rpc_reply_parser *p);

/* Feeds bytes[fed..len) of the message, where bytes points to its first byte (it may have moved
 * since the last call). */
enum scan_status rpc_reply_feed(struct rpc_reply_parser *p, const char *bytes, size_t len,
                                size_t fed, size_t *used);

/* The outcome of a complete message (the scan said SCAN_DONE). Slices borrow from `bytes`. */
struct rpc_reply {
  enum rpc_reply_kind kind;
  const char *why;               /* BAD: constant reason */
  bool has_id;
  uint64_t id;                   /* has_id: the number (from a number or a decimal string) */
  struct egw_slice body;         /* raw result, or raw error object, or raw params of a push */
  struct egw_slice method;       /* PUSH: raw string with quotes */
  int64_t code;                  /* ERROR */
  struct egw_slice message, data; /* ERROR: raw values, or missing */
  bool repair;                   /* ERROR: the object is not of the form clients accept (code not
                                    an integer, message not a string): rebuild it from code,
                                    message, data instead of passing it on */
};
void rpc_reply_finish(const struct rpc_reply_parser *p, const char *bytes, struct rpc_reply *out);

/* As soon as the id's value is complete during feeding: true and the number, else false. */
bool rpc_reply_early_id(const struct rpc_reply_parser *p, const char *bytes, uint64_t *id);

/* Judges a body that is not an envelope of a reply but may still be an error without id, as
 * some nodes send ({"error":"text"}, {"code":..,"message":..}, id null): true and an ERROR
 * reply. Used only where the exchange is known by its connection (HTTP). */
bool rpc_reply_loose_error(struct egw_slice text, struct rpc_reply *out);

#endif
