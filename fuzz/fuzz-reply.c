/* SPDX-License-Identifier: MIT */
/* Fuzzes what upstreams send: whole and in pieces the parser must say the same, without the
 * bytes that were fed before as well; and what it cuts out must be valid JSON. The first
 * byte decides the cuts. */
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

static bool
same_slice(struct egw_slice a, struct egw_slice b)
{
  return a.ptr == b.ptr && a.len == b.len;
}

/* Feeds pieces of `step` bytes, each in memory of its own. */
static void
run(struct rpc_reply_parser *p, const char *text, size_t size, size_t step)
{
  enum scan_status status = SCAN_MORE;
  size_t at, len, used;
  char *piece;

  rpc_reply_begin(p);
  for (at = 0; at < size && status == SCAN_MORE; at += len) {
    len = size - at < step ? size - at : step;
    piece = malloc(len);
    check(piece != NULL);
    memcpy(piece, text + at, len);
    status = rpc_reply_feed(p, piece, len, 0, &used);
    free(piece);
  }
}

static void
check_reply(const struct rpc_reply *r)
{
  check((r->kind == RPC_REPLY_BAD) == (r->why != NULL));
  if (r->kind == RPC_REPLY_RESULT || r->kind == RPC_REPLY_ERROR)
    check(scan_valid(r->body, RPC_UPSTREAM_DEPTH, NULL));
  if (r->kind != RPC_REPLY_ERROR)
    return;
  if (r->message.ptr != NULL)
    check(egw_json_kind(r->message) == EGW_JSON_STRING && scan_valid(r->message, 1, NULL));
  else
    check(r->repair);
  if (r->data.ptr != NULL)
    check(scan_valid(r->data, RPC_UPSTREAM_DEPTH, NULL));
}

static void
check_streamed(const struct rpc_reply_parser *p, const struct rpc_reply *whole)
{
  struct rpc_reply r;

  rpc_reply_finish(p, NULL, &r);
  if (whole->kind == RPC_REPLY_RESULT)
    check(r.kind == RPC_REPLY_RESULT && r.id == whole->id && r.body.ptr == NULL);
  else
    check(r.kind == RPC_REPLY_BAD);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct rpc_reply_parser p;
  struct rpc_reply whole, cut, loose;
  uint64_t id = 0, early = 0;
  const char *text;

  if (size == 0)
    return 0;
  text = (const char *)data + 1;
  run(&p, text, size - 1, size);
  rpc_reply_finish(&p, text, &whole);
  check_reply(&whole);
  if (whole.has_id && whole.kind != RPC_REPLY_BAD)
    check(rpc_reply_early_id(&p, NULL, &id) && id == whole.id);
  run(&p, text, size - 1, (size_t)data[0] % 31 + 1);
  rpc_reply_finish(&p, text, &cut);
  check(cut.kind == whole.kind && cut.why == whole.why && cut.id == whole.id &&
        cut.code == whole.code && cut.repair == whole.repair &&
        same_slice(cut.body, whole.body) && same_slice(cut.message, whole.message) &&
        same_slice(cut.data, whole.data) && same_slice(cut.method, whole.method));
  check(rpc_reply_early_id(&p, NULL, &early) == (id == early) || whole.kind == RPC_REPLY_BAD ||
        whole.kind == RPC_REPLY_PUSH);
  check_streamed(&p, &whole);
  if (rpc_reply_loose_error((struct egw_slice){ text, size - 1 }, &loose)) {
    check(loose.kind == RPC_REPLY_ERROR && !loose.has_id);
    check_reply(&loose);
  }
  return 0;
}
