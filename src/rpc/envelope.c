/* SPDX-License-Identifier: MIT */
/* Requests from clients: splitting a message, taking one request object apart, printing the
 * envelope for an upstream. */
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "rpc/envelope.h"
#include "rpc/key.h"
#include "rpc/scan-string.h"

/* --- the members of a request ------------------------------------------------------------ */

static const struct egw_slice request_names[RPC_MEMBERS] = {
  [RPC_JSONRPC] = { "jsonrpc", 7 },
  [RPC_ID] = { "id", 2 },
  [RPC_METHOD] = { "method", 6 },
  [RPC_PARAMS] = { "params", 6 },
};

struct request_scan {
  const char *base;
  enum rpc_member member;         /* whose value comes; RPC_MEMBERS: of none */
  struct rpc_members *into;
};

/* Of a text whose top is an object. */
static void
request_note(struct request_scan *r, enum scan_event event, enum egw_json_kind kind, uint64_t from,
             uint64_t to)
{
  struct egw_slice slice = { r->base + from, (size_t)(to - from) };
  struct rpc_members *m = r->into;

  if (event == SCAN_KEY) {
    r->member = (enum rpc_member)rpc_key_find(slice, request_names, RPC_MEMBERS);
  } else if (event == SCAN_VALUE_END && r->member != RPC_MEMBERS) {
    if (m->seen & 1u << r->member) {
      m->twice |= 1u << r->member;
      return;
    }
    m->seen |= 1u << r->member;
    m->value[r->member] = slice;
    m->kind[r->member] = kind;
  }
}

static void
request_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
              uint64_t to, void *arg)
{
  if (scan->top == EGW_JSON_OBJECT)
    request_note(arg, event, kind, from, to);
}

/* --- one message --------------------------------------------------------------------- */

struct split {
  const char *base;
  struct egw_slice *items;
  size_t count, cap, max;
  bool no_memory;
  struct request_scan request;    /* of a single object */
};

static void
split_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
            uint64_t to, void *arg)
{
  struct split *s = arg;
  struct egw_slice *items;
  size_t cap, size;

  if (scan->top == EGW_JSON_OBJECT)
    request_note(&s->request, event, kind, from, to);
  if (scan->top != EGW_JSON_ARRAY || event != SCAN_VALUE_END)
    return;
  if (s->count >= s->max) { /* count on: the text must be valid all the same */
    s->count++;
    return;
  }
  if (s->count == s->cap) {
    cap = s->cap == 0 ? 8 : s->cap * 2;
    items = size_mul(cap, sizeof(*items), &size) ? realloc(s->items, size) : NULL;
    if (items == NULL) {
      s->no_memory = scan->stop = true;
      return;
    }
    s->items = items;
    s->cap = cap;
  }
  s->items[s->count++] = (struct egw_slice){ s->base + from, (size_t)(to - from) };
}

static void
message_unusable(struct rpc_message *out, enum rpc_fault fault, const char *why)
{
  out->shape = RPC_UNUSABLE;
  out->fault = fault;
  out->why = why;
}

static struct egw_slice
message_skip_bom(struct egw_slice text)
{
  if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0) {
    text.ptr += 3;
    text.len -= 3;
  }
  return text;
}

/* Scans the whole text; NULL, or why it is no JSON. */
static const char *
message_scan(struct egw_slice text, struct scan *scan, size_t *end)
{
  enum scan_status status = scan_feed(scan, text.ptr, text.len, end);
  size_t i;

  if (status == SCAN_MORE)
    status = scan_finish(scan);
  if (status != SCAN_DONE)
    return scan->why;
  for (i = *end; i < text.len; i++)
    if (memchr(" \t\r\n", text.ptr[i], 4) == NULL)
      return "something follows the value";
  return NULL;
}

void
rpc_message_parse(struct egw_slice text, size_t max_items, struct rpc_message *out)
{
  struct split split = { .max = max_items };
  struct scan scan;
  const char *why;
  size_t end;

  memset(out, 0, sizeof(*out));
  text = message_skip_bom(text);
  split.base = text.ptr;
  split.request = (struct request_scan){ text.ptr, RPC_MEMBERS, &out->members };
  scan_init(&scan, RPC_CLIENT_DEPTH, split_event, &split);
  why = message_scan(text, &scan, &end);
  if (split.no_memory)
    message_unusable(out, RPC_FAULT_INTERNAL, "out of memory");
  else if (why != NULL)
    message_unusable(out, RPC_FAULT_PARSE, why);
  else if (scan.top == EGW_JSON_ARRAY && split.count == 0)
    message_unusable(out, RPC_FAULT_INVALID_REQUEST, "an empty array");
  else if (split.count > max_items)
    message_unusable(out, RPC_FAULT_BATCH_TOO_LARGE, "too many requests in an array");
  if (out->shape == RPC_UNUSABLE) {
    free(split.items);
    return;
  }
  if (scan.top == EGW_JSON_ARRAY) {
    out->shape = RPC_BATCH;
    out->count = split.count;
    out->items = split.items;
    return;
  }
  out->shape = RPC_SINGLE;
  out->count = 1;
  out->single = (struct egw_slice){ text.ptr + scan.top_begin, end - (size_t)scan.top_begin };
}

void
rpc_message_free(struct rpc_message *message)
{
  free(message->items);
  message->items = NULL;
}

/* --- one request --------------------------------------------------------------------- */

/* Whether an id of this kind may be echoed. null is kept: it asks for an answer with null. */
static bool
request_id_legal(enum egw_json_kind kind, size_t len)
{
  return len <= RPC_ID_MAX &&
         (kind == EGW_JSON_STRING || kind == EGW_JSON_NUMBER || kind == EGW_JSON_NULL);
}

/* Puts the decoded name into out->method; false when it is no name. */
static bool
request_method(struct egw_slice raw, struct rpc_request *out)
{
  long len;
  size_t i;

  if (memchr(raw.ptr, '\\', raw.len) == NULL) {
    out->method = (struct egw_slice){ raw.ptr + 1, raw.len - 2 };
  } else {
    len = egw_json_string(raw, out->method_text, sizeof(out->method_text));
    if (len < 0)
      return false;
    out->method = (struct egw_slice){ out->method_text, (size_t)len };
  }
  if (out->method.len == 0 || out->method.len > RPC_METHOD_MAX)
    return false;
  for (i = 0; i < out->method.len; i++) {
    char c = out->method.ptr[i];

    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          c == '_' || c == '.' || c == '-'))
      return false;
  }
  return true;
}

static bool
request_version_legal(const struct rpc_members *r)
{
  if (!(r->seen & 1u << RPC_JSONRPC))
    return true;
  return egw_json_equals(r->value[RPC_JSONRPC], "2.0") ||
         egw_json_equals(r->value[RPC_JSONRPC], "1.0");
}

/* Judges the members; the id has been dealt with. */
static enum rpc_fault
request_judge(const struct rpc_members *r, struct rpc_request *out)
{
  enum egw_json_kind params = r->kind[RPC_PARAMS];

  if (r->twice != 0 || !request_version_legal(r))
    return RPC_FAULT_INVALID_REQUEST;
  if ((r->seen & 1u << RPC_ID) && out->id.ptr == NULL)
    return RPC_FAULT_INVALID_REQUEST;
  if (r->kind[RPC_METHOD] != EGW_JSON_STRING ||
      !request_method(r->value[RPC_METHOD], out)) {
    out->method = (struct egw_slice){ NULL, 0 };
    return RPC_FAULT_INVALID_REQUEST;
  }
  if (params == EGW_JSON_ARRAY || params == EGW_JSON_OBJECT)
    out->params = r->value[RPC_PARAMS];
  else if (params != EGW_JSON_NONE && params != EGW_JSON_NULL)
    return RPC_FAULT_INVALID_PARAMS;
  return RPC_FAULT_NONE;
}

static void
request_take(const struct rpc_members *members, struct rpc_request *out)
{
  out->fault = RPC_FAULT_INVALID_REQUEST;
  out->id = out->method = (struct egw_slice){ NULL, 0 };
  out->params = EGW_LIT("[]");
  if (!(members->twice & 1u << RPC_ID) &&
      request_id_legal(members->kind[RPC_ID], members->value[RPC_ID].len))
    out->id = members->value[RPC_ID];
  out->fault = request_judge(members, out);
}

void
rpc_request_parse(struct egw_slice text, struct rpc_request *out)
{
  struct rpc_members members;
  struct request_scan r = { text.ptr, RPC_MEMBERS, &members };
  struct scan scan;
  size_t used;

  memset(&members, 0, sizeof(members));
  scan_init(&scan, SCAN_DEPTH_MAX, request_event, &r);
  if (scan_feed(&scan, text.ptr, text.len, &used) != SCAN_DONE)
    memset(&members, 0, sizeof(members));
  request_take(&members, out);
}

void
rpc_message_request(const struct rpc_message *message, size_t index, struct rpc_request *out)
{
  if (message->shape == RPC_BATCH)
    rpc_request_parse(message->items[index], out);
  else
    request_take(&message->members, out);
}

/* --- the envelope for an upstream ---------------------------------------------------- */

/* Decimal digits of `n`, at the end of `out`; returns where they begin. */
static char *
print_u64(uint64_t n, char out[20])
{
  char *p = out + 20;

  do {
    *--p = (char)('0' + n % 10);
    n /= 10;
  } while (n > 0);
  return p;
}

static char *
print_bytes(char *at, const char *bytes, size_t len)
{
  memcpy(at, bytes, len);
  return at + len;
}

int
rpc_request_print(struct egw_buf *out, uint64_t id, struct egw_slice method,
                  struct egw_slice params)
{
  static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":", name[] = ",\"method\":\"",
                    args[] = "\",\"params\":";
  size_t fixed = sizeof(head) + sizeof(name) + sizeof(args) + 20, need;
  const unsigned char *name_end;
  char digits[20], *from, *start, *at;

  if (method.ptr == NULL || params.ptr == NULL)
    return -1;
  name_end = (const unsigned char *)method.ptr + method.len;
  if (scan_plain((const unsigned char *)method.ptr, name_end) != name_end)
    return -1; /* no name of a method: validated ones are plain */
  if (!size_add(fixed, method.len, &need) || !size_add(need, params.len, &need))
    return -1;
  start = egw_buf_room(out, need);
  if (start == NULL)
    return -1;
  from = print_u64(id, digits);
  at = print_bytes(start, head, sizeof(head) - 1);
  at = print_bytes(at, from, (size_t)(digits + 20 - from));
  at = print_bytes(at, name, sizeof(name) - 1);
  at = print_bytes(at, method.ptr, method.len);
  at = print_bytes(at, args, sizeof(args) - 1);
  at = print_bytes(at, params.ptr, params.len);
  *at++ = '}';
  egw_buf_commit(out, (size_t)(at - start));
  return 0;
}
