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

/* The members of a request object, as they stand in the text. */
enum rpc_member {
  RPC_JSONRPC,
  RPC_ID,
  RPC_METHOD,
  RPC_PARAMS,
  RPC_MEMBERS
};
struct rpc_members {
  unsigned seen, twice;          /* bit of each member that had a value; that had two */
  struct egw_slice value[RPC_MEMBERS]; /* raw */
  enum egw_json_kind kind[RPC_MEMBERS];
};

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
  struct rpc_members members;    /* RPC_SINGLE: of the object; none when it is something else */
};

/* Parses and checks the whole text. More than `max_items` elements: RPC_UNUSABLE with
 * RPC_FAULT_BATCH_TOO_LARGE. Out of memory: RPC_FAULT_INTERNAL. Free with
 * rpc_message_free(). */
void rpc_message_parse(struct egw_slice text, size_t max_items, struct rpc_message *out);
void rpc_message_free(struct rpc_message *message);

/* The request at `index` (below count) of a message that is not RPC_UNUSABLE, as
 * rpc_request_parse() takes it apart. */
void rpc_message_request(const struct rpc_message *message, size_t index, struct rpc_request *out);

/* Appends the envelope for an upstream: {"jsonrpc":"2.0","id":N,"method":"..","params":..}.
 * 0, or -1: no memory, or a method or params that can't be ones (missing, a quote in the
 * name). */
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

/* Resumable parser of one upstream message. Feed it as bytes arrive. It reads only the bytes
 * that are being fed: keys and the id that straddle pieces are copied into the parser, so that
 * a caller that passes a large result on in pieces may drop what it has passed. A caller
 * that wants the slices of rpc_reply_finish() must keep the message's bytes, since they are
 * offsets here.
 *
 * Tolerated: any or no jsonrpc member, unknown members, members in any order, "result" with
 * "error":null and "error" with "result":null, a result of any kind, an id that is a string
 * of the decimal number. Not tolerated: broken JSON, duplicate id/result/error, both or
 * neither of result and error, no id, an error that is not an object with a code or a
 * message (a missing or non-string message, or a code in another form than an integer, is
 * repaired: see rpc_reply). */
struct rpc_span {
  uint64_t from, to;             /* to == 0: missing */
};

/* Raw bytes of an envelope's key or id; longer ones are no key, or no id, of ours. */
#define RPC_CAPTURE_MAX 48
struct rpc_capture {
  uint32_t len;                  /* > RPC_CAPTURE_MAX: it did not fit */
  char bytes[RPC_CAPTURE_MAX];
};

/* Where the elements of a message that is an array are. Those beyond the room are only counted. */
struct rpc_elements {
  struct rpc_span *items;        /* the caller's; `room` of them */
  size_t count, room;
};

struct rpc_reply_parser {
  struct scan scan;
  struct rpc_elements *elements; /* set after rpc_reply_begin(): wanted; else NULL */
  struct rpc_span id, result, error, method, params;
  enum egw_json_kind id_kind, result_kind, error_kind, method_kind, params_kind;
  uint64_t result_begin;         /* offset of the result's first byte once it began, else 0 */
  bool result_began, duplicate;
  /* private */
  bool push_duplicate;           /* two of method or params: matters for a push only */
  int member;                    /* which member the scan is in */
  const char *piece;             /* what is being fed, */
  uint64_t piece_from;           /* and its offset in the message */
  struct rpc_capture key, id_text;
};

void rpc_reply_begin(struct rpc_reply_parser *p);

/* Feeds bytes[fed..len). Usually `bytes` is the whole message so far (it may have moved
 * since the last call) and `fed` what of it has been fed before; since nothing before
 * bytes[fed] is read, a caller that dropped it passes the new piece alone with fed 0. *used
 * gets how many bytes of the new ones were consumed, as scan_feed() says. */
enum scan_status rpc_reply_feed(struct rpc_reply_parser *p, const char *bytes, size_t len,
                                size_t fed, size_t *used);

/* The outcome of a complete message (the scan said SCAN_DONE). Slices borrow from `bytes`, the
 * whole message. `bytes` may be NULL if the result was passed on in pieces: id and kind are
 * known all the same, `body` is missing, and what can't be judged without the bytes (an error
 * object) is RPC_REPLY_BAD. A message that isn't complete is RPC_REPLY_BAD too. */
struct rpc_reply {
  enum rpc_reply_kind kind;
  const char *why;               /* BAD: constant reason */
  bool has_id;
  uint64_t id;                   /* has_id: the number (from a number or a decimal string) */
  struct egw_slice body;         /* raw result, or raw error object, or raw params of a push */
  struct egw_slice method;       /* PUSH: raw string with quotes */
  int64_t code;                  /* ERROR; -32000 when the object has none that can be read */
  struct egw_slice message, data; /* ERROR: raw values, or missing; message: a string */
  bool repair;                   /* ERROR: the object is not of the form clients accept (code
                                    not an integer, message not a string): rebuild it from
                                    code, message, data instead of passing it on */
};
void rpc_reply_finish(const struct rpc_reply_parser *p, const char *bytes,
                      struct rpc_reply *out);

/* As soon as the id's value is complete during feeding: true and the number, else false.
 * `bytes` is not used and may be NULL. */
bool rpc_reply_early_id(const struct rpc_reply_parser *p, const char *bytes, uint64_t *id);

/* Judges a body that is not an envelope of a reply but may still be an error without id, as
 * some nodes send ({"error":"text"}, {"code":..,"message":..}, id null or missing): true and
 * an ERROR reply, without has_id. Text that isn't valid JSON, holds a result that isn't
 * null or has a duplicate member is none. Used only where the exchange is known by its
 * connection (HTTP). */
bool rpc_reply_loose_error(struct egw_slice text, struct rpc_reply *out);

#endif
