/* SPDX-License-Identifier: MIT */
/* Replies from upstreams: which of the members there are, and what they amount to. */
#include <string.h>
#include <ethrpc-gw/json.h>
#include "rpc/envelope.h"
#include "rpc/key.h"

#define REPLY_CODE_UNKNOWN (-32000) /* what nodes use for "some error of the server" */

enum reply_member {
  REPLY_ID,
  REPLY_RESULT,
  REPLY_ERROR,
  REPLY_METHOD,
  REPLY_PARAMS,
  REPLY_OTHER /* last: what no name matches */
};

static const struct egw_slice reply_names[REPLY_OTHER] = {
  [REPLY_ID] = { "id", 2 },         [REPLY_RESULT] = { "result", 6 }, [REPLY_ERROR] = { "error", 5 },
  [REPLY_METHOD] = { "method", 6 }, [REPLY_PARAMS] = { "params", 6 },
};

/* --- feeding ------------------------------------------------------------------------- */

/* Adds those of the bytes from..to of the message that are in the present piece. */
static void
capture_add(struct rpc_capture *c, const struct rpc_reply_parser *p, uint64_t from,
            uint64_t to)
{
  uint64_t len;

  if (from < p->piece_from)
    from = p->piece_from; /* what is older was added when its piece ended */
  len = to - from;
  if (c->len > RPC_CAPTURE_MAX || len > RPC_CAPTURE_MAX - c->len) {
    c->len = RPC_CAPTURE_MAX + 1;
    return;
  }
  memcpy(c->bytes + c->len, p->piece + (from - p->piece_from), (size_t)len);
  c->len += (uint32_t)len;
}

static enum reply_member
reply_member(const struct rpc_capture *key)
{
  struct egw_slice raw = { key->bytes, key->len };

  if (key->len > RPC_CAPTURE_MAX)
    return REPLY_OTHER;
  return (enum reply_member)rpc_key_find(raw, reply_names, REPLY_OTHER);
}

static struct rpc_span *
reply_span(struct rpc_reply_parser *p, enum egw_json_kind **kind)
{
  switch ((enum reply_member)p->member) {
  case REPLY_ID: *kind = &p->id_kind; return &p->id;
  case REPLY_RESULT: *kind = &p->result_kind; return &p->result;
  case REPLY_ERROR: *kind = &p->error_kind; return &p->error;
  case REPLY_METHOD: *kind = &p->method_kind; return &p->method;
  case REPLY_PARAMS: *kind = &p->params_kind; return &p->params;
  case REPLY_OTHER: break;
  }
  return NULL;
}

static void
reply_value_begin(struct rpc_reply_parser *p, enum egw_json_kind kind, uint64_t from)
{
  enum egw_json_kind *known;
  struct rpc_span *span = reply_span(p, &known);

  if (span == NULL)
    return;
  if (*known != EGW_JSON_NONE) { /* a second one: the first counts, if any does */
    if (p->member == REPLY_METHOD || p->member == REPLY_PARAMS)
      p->push_duplicate = true;
    else
      p->duplicate = true;
    p->member = REPLY_OTHER;
    return;
  }
  *known = kind;
  if (p->member == REPLY_RESULT) {
    p->result_began = true;
    p->result_begin = from;
  }
}

static void
reply_element(struct rpc_elements *elements, uint64_t from, uint64_t to)
{
  if (elements->count < elements->room)
    elements->items[elements->count] = (struct rpc_span){ from, to };
  elements->count++;
}

static void
reply_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
            uint64_t to, void *arg)
{
  struct rpc_reply_parser *p = arg;
  enum egw_json_kind *known;
  struct rpc_span *span;

  if (scan->top == EGW_JSON_ARRAY && event == SCAN_VALUE_END && p->elements != NULL)
    reply_element(p->elements, from, to);
  if (scan->top != EGW_JSON_OBJECT)
    return;
  switch (event) {
  case SCAN_KEY:
    capture_add(&p->key, p, from, to);
    p->member = (int)reply_member(&p->key);
    p->key.len = 0;
    break;
  case SCAN_VALUE_BEGIN:
    reply_value_begin(p, kind, from);
    break;
  case SCAN_VALUE_END:
    span = reply_span(p, &known);
    if (span != NULL)
      *span = (struct rpc_span){ from, to };
    if (p->member == REPLY_ID)
      capture_add(&p->id_text, p, from, to);
    p->member = REPLY_OTHER;
    break;
  }
}

void
rpc_reply_begin(struct rpc_reply_parser *p)
{
  memset(p, 0, sizeof(*p));
  p->member = REPLY_OTHER;
  scan_init(&p->scan, RPC_UPSTREAM_DEPTH, reply_event, p);
}

enum scan_status
rpc_reply_feed(struct rpc_reply_parser *p, const char *bytes, size_t len, size_t fed,
               size_t *used)
{
  enum scan_status status;

  p->scan.arg = p; /* the parser may have moved */
  p->piece = len > fed ? bytes + fed : NULL;
  p->piece_from = p->scan.offset;
  status = scan_feed(&p->scan, p->piece, len - fed, used);
  if (status == SCAN_MORE && *used > 0) {
    if (scan_in_key(&p->scan))
      capture_add(&p->key, p, p->scan.key_from, p->scan.offset);
    else if (p->member == REPLY_ID && p->id_kind != EGW_JSON_NONE)
      capture_add(&p->id_text, p, p->scan.value_from, p->scan.offset);
  }
  p->piece = NULL;
  return status;
}

/* --- the id -------------------------------------------------------------------------- */

/* The id as one of our numbers: digits, or a string of them, without leading zeros. */
static bool
reply_id(const struct rpc_reply_parser *p, uint64_t *id)
{
  struct egw_slice raw = { p->id_text.bytes, p->id_text.len };
  char text[RPC_CAPTURE_MAX];
  long len, i;
  uint64_t n = 0;

  if (p->id.to == 0 || p->id_text.len > RPC_CAPTURE_MAX)
    return false;
  if (p->id_kind == EGW_JSON_STRING) {
    len = egw_json_string(raw, text, sizeof(text));
    raw.ptr = text;
  } else {
    len = p->id_kind == EGW_JSON_NUMBER ? (long)raw.len : -1;
  }
  if (len <= 0 || (raw.ptr[0] == '0' && len > 1))
    return false;
  for (i = 0; i < len; i++)
    if (raw.ptr[i] < '0' || raw.ptr[i] > '9' || __builtin_mul_overflow(n, 10u, &n) ||
        __builtin_add_overflow(n, (uint64_t)(raw.ptr[i] - '0'), &n))
      return false;
  *id = n;
  return true;
}

bool
rpc_reply_early_id(const struct rpc_reply_parser *p, const char *bytes, uint64_t *id)
{
  (void)bytes;
  return !p->duplicate && reply_id(p, id);
}

/* --- judging ------------------------------------------------------------------------- */

static struct egw_slice
reply_slice(const char *bytes, struct rpc_span span)
{
  if (span.to == 0 || bytes == NULL)
    return (struct egw_slice){ NULL, 0 };
  return (struct egw_slice){ bytes + span.from, (size_t)(span.to - span.from) };
}

/* An integer without fraction or exponent, in 64 bits. */
static bool
reply_integer(struct egw_slice raw, int64_t *out)
{
  bool minus = raw.len > 0 && raw.ptr[0] == '-';
  size_t i = minus ? 1 : 0;
  int64_t n = 0;

  if (i == raw.len)
    return false;
  for (; i < raw.len; i++) {
    int digit = raw.ptr[i] - '0';

    if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
        __builtin_add_overflow(n, minus ? -digit : digit, &n))
      return false;
  }
  *out = n;
  return true;
}

/* Reads the code; false when it is no integer, and then the best that can be made of it. */
static bool
error_code(struct egw_slice raw, int64_t *code)
{
  char text[24];
  long len;

  *code = REPLY_CODE_UNKNOWN;
  if (egw_json_kind(raw) == EGW_JSON_NUMBER)
    return reply_integer(raw, code);
  len = egw_json_kind(raw) == EGW_JSON_STRING ? egw_json_string(raw, text, sizeof(text)) : -1;
  if (len > 0)
    (void)reply_integer((struct egw_slice){ text, (size_t)len }, code);
  return false;
}

/* Takes an error object apart; false when there is neither a code nor a message in it. */
static bool
error_object(struct egw_slice object, struct rpc_reply *out)
{
  struct egw_slice code = egw_json_member(object, "code");
  struct egw_slice message = egw_json_member(object, "message");

  if (code.ptr == NULL && message.ptr == NULL)
    return false;
  out->kind = RPC_REPLY_ERROR;
  out->body = object;
  out->repair = !error_code(code, &out->code);
  if (egw_json_kind(message) == EGW_JSON_STRING)
    out->message = message;
  else
    out->repair = true;
  out->data = egw_json_member(object, "data");
  return true;
}

static const char *
reply_error(const struct rpc_reply_parser *p, const char *bytes, struct rpc_reply *out)
{
  if (bytes == NULL)
    return "the bytes of an error are gone";
  if (p->error_kind != EGW_JSON_OBJECT)
    return "the error is not an object";
  if (!error_object(reply_slice(bytes, p->error), out))
    return "an error without code and message";
  return NULL;
}

static const char *
reply_push(const struct rpc_reply_parser *p, const char *bytes, struct rpc_reply *out)
{
  if (p->method_kind != EGW_JSON_STRING)
    return "neither result nor error nor method";
  if (p->push_duplicate)
    return "a member twice";
  if (p->id_kind != EGW_JSON_NONE && p->id_kind != EGW_JSON_NULL)
    return "a request from an upstream";
  if (bytes == NULL)
    return "the bytes of a notification are gone";
  out->kind = RPC_REPLY_PUSH;
  out->method = reply_slice(bytes, p->method);
  out->body = reply_slice(bytes, p->params);
  return NULL;
}

/* Fills in *out, or returns why the message is of no use. */
static const char *
reply_judge(const struct rpc_reply_parser *p, const char *bytes, struct rpc_reply *out)
{
  bool result = p->result_kind != EGW_JSON_NONE;
  bool error = p->error_kind != EGW_JSON_NONE && p->error_kind != EGW_JSON_NULL;

  if (p->scan.top != EGW_JSON_OBJECT)
    return p->scan.top == EGW_JSON_ARRAY ? "an array" : "not an object";
  if (p->duplicate)
    return "a member twice";
  out->has_id = reply_id(p, &out->id);
  if (!result && p->error_kind == EGW_JSON_NONE)
    return reply_push(p, bytes, out);
  if (!out->has_id)
    return "no usable id";
  if (result && error && p->result_kind != EGW_JSON_NULL)
    return "both a result and an error";
  if (error)
    return reply_error(p, bytes, out);
  if (!result)
    return "the error is null and there is no result";
  out->kind = RPC_REPLY_RESULT;
  out->body = reply_slice(bytes, p->result);
  return NULL;
}

void
rpc_reply_finish(const struct rpc_reply_parser *p, const char *bytes, struct rpc_reply *out)
{
  struct scan copy = p->scan;
  const char *why;

  memset(out, 0, sizeof(*out));
  why = scan_finish(&copy) == SCAN_DONE ? reply_judge(p, bytes, out) : "not valid JSON";
  if (why != NULL) {
    out->kind = RPC_REPLY_BAD;
    out->why = why;
  }
}

/* --- errors without an envelope ------------------------------------------------------ */

/* {"error":"text"}: the text becomes the message. */
static bool
loose_text(struct egw_slice error, struct rpc_reply *out)
{
  if (egw_json_kind(error) != EGW_JSON_STRING)
    return false;
  out->kind = RPC_REPLY_ERROR;
  out->body = error;
  out->code = REPLY_CODE_UNKNOWN;
  out->message = error;
  out->repair = true;
  return true;
}

bool
rpc_reply_loose_error(struct egw_slice text, struct rpc_reply *out)
{
  struct rpc_reply_parser p;
  struct egw_slice whole, error;
  const char *why;
  size_t used;

  memset(out, 0, sizeof(*out));
  if (!scan_valid(text, RPC_UPSTREAM_DEPTH, &why))
    return false;
  rpc_reply_begin(&p);
  if (rpc_reply_feed(&p, text.ptr, text.len, 0, &used) != SCAN_DONE ||
      p.scan.top != EGW_JSON_OBJECT || p.duplicate)
    return false;
  if (p.result_kind != EGW_JSON_NONE && p.result_kind != EGW_JSON_NULL)
    return false;
  error = reply_slice(text.ptr, p.error);
  if (p.error_kind == EGW_JSON_OBJECT)
    return error_object(error, out);
  if (p.error_kind == EGW_JSON_STRING)
    return loose_text(error, out);
  /* An error object without anything around it. */
  whole = (struct egw_slice){ text.ptr + p.scan.top_begin, used - (size_t)p.scan.top_begin };
  if (egw_json_kind(egw_json_member(whole, "code")) != EGW_JSON_NUMBER ||
      egw_json_kind(egw_json_member(whole, "message")) != EGW_JSON_STRING)
    return false;
  return error_object(whole, out);
}
