/* SPDX-License-Identifier: MIT */
/* Fuzzes what clients send: splitting a message and parsing each request. What is taken must
 * make a valid envelope for an upstream, with the params byte by byte. */
#include <stdlib.h>
#include <string.h>
#include "rpc/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

/* Printing a good request and parsing it again gives the same. */
static void
check_print(const struct rpc_request *r)
{
  struct egw_buf *buf = egw_buf_new(0);
  struct rpc_request again;

  check(buf != NULL && rpc_request_print(buf, 5, r->method, r->params) == 0);
  check(scan_valid(egw_buf_slice(buf), RPC_CLIENT_DEPTH + 1, NULL));
  rpc_request_parse(egw_buf_slice(buf), &again);
  check(again.fault == RPC_FAULT_NONE && again.id.len == 1 && again.id.ptr[0] == '5');
  check(again.method.len == r->method.len &&
        memcmp(again.method.ptr, r->method.ptr, r->method.len) == 0);
  check(again.params.len == r->params.len &&
        memcmp(again.params.ptr, r->params.ptr, r->params.len) == 0);
  egw_buf_unref(buf);
}

/* What one pass over the whole message says is what a pass over the request alone says. */
static void
check_request(const struct rpc_message *m, size_t index)
{
  struct egw_slice text = m->shape == RPC_BATCH ? m->items[index] : m->single;
  struct rpc_request r, alone;
  enum egw_json_kind kind;

  rpc_message_request(m, index, &r);
  rpc_request_parse(text, &alone);
  check(r.fault == alone.fault && r.id.ptr == alone.id.ptr && r.id.len == alone.id.len);
  check(r.params.len == alone.params.len && r.method.len == alone.method.len);
  if (r.id.ptr != NULL) {
    kind = egw_json_kind(r.id);
    check(scan_valid(r.id, 1, NULL) && r.id.len <= RPC_ID_MAX);
    check(kind == EGW_JSON_STRING || kind == EGW_JSON_NUMBER || kind == EGW_JSON_NULL);
  }
  if (r.fault != RPC_FAULT_NONE)
    return;
  check(r.method.len > 0 && r.method.len <= RPC_METHOD_MAX);
  check(scan_valid(r.params, RPC_CLIENT_DEPTH, NULL));
  check_print(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct rpc_message m;
  size_t i;
  char *copy = malloc(size > 0 ? size : 1);

  check(copy != NULL);
  if (size > 0)
    memcpy(copy, data, size);
  rpc_message_parse((struct egw_slice){ copy, size }, 20, &m);
  switch (m.shape) {
  case RPC_UNUSABLE:
    check(m.why != NULL && m.fault != RPC_FAULT_NONE && m.items == NULL);
    break;
  case RPC_SINGLE:
  case RPC_BATCH:
    check(m.count > 0 && m.count <= 20);
    for (i = 0; i < m.count; i++)
      check_request(&m, i);
  }
  rpc_message_free(&m);
  free(copy);
  return 0;
}
