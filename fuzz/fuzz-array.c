/* SPDX-License-Identifier: MIT */
/* Fuzzes replies to arrays: the elements found must be the same whole and in pieces, must be those
 * that splitting the text finds, and each must be a value that can be parsed alone. The first byte
 * decides the cuts and the room for elements. */
#include <stdlib.h>
#include <string.h>
#include "rpc/envelope.h"

#define ROOM_MAX 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

/* Feeds pieces of `step` bytes, each in memory of its own. */
static enum scan_status
run(struct rpc_reply_parser *p, struct rpc_elements *elements, const char *text, size_t size,
    size_t step)
{
  enum scan_status status = SCAN_MORE;
  size_t at, len, used;
  char *piece;

  rpc_reply_begin(p);
  p->elements = elements;
  for (at = 0; at < size && status == SCAN_MORE; at += len) {
    len = size - at < step ? size - at : step;
    piece = malloc(len);
    check(piece != NULL);
    memcpy(piece, text + at, len);
    status = rpc_reply_feed(p, piece, len, 0, &used);
    free(piece);
  }
  return status;
}

static void
check_element(struct egw_slice text)
{
  struct rpc_reply_parser p;
  struct rpc_reply reply;
  uint64_t id;
  size_t used;

  check(scan_valid(text, RPC_UPSTREAM_DEPTH, NULL));
  rpc_reply_begin(&p);
  if (rpc_reply_feed(&p, text.ptr, text.len, 0, &used) == SCAN_DONE)
    check(used == text.len);
  rpc_reply_finish(&p, text.ptr, &reply);
  if (reply.has_id && reply.kind != RPC_REPLY_BAD)
    check(rpc_reply_early_id(&p, NULL, &id) && id == reply.id);
}

/* Nothing is reported that is not in the text, and nothing else is in it. */
static void
check_all(const struct rpc_elements *elements, const char *base, struct egw_slice text)
{
  struct rpc_message split;
  size_t i;

  rpc_message_parse(text, SIZE_MAX / 64, &split);
  if (split.shape != RPC_BATCH) { /* nested too deep for a client, or empty */
    rpc_message_free(&split);
    return;
  }
  check(split.count == elements->count);
  for (i = 0; i < elements->count && i < elements->room; i++) {
    struct rpc_span span = elements->items[i];

    check(split.items[i].ptr == base + span.from &&
          split.items[i].len == (size_t)(span.to - span.from));
  }
  rpc_message_free(&split);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct rpc_span whole_items[ROOM_MAX], cut_items[ROOM_MAX];
  struct rpc_elements whole = { whole_items, 0, 0 }, cut = { cut_items, 0, 0 };
  struct rpc_reply_parser p;
  enum scan_status status;
  const char *text;
  size_t i;

  if (size == 0)
    return 0;
  text = (const char *)data + 1;
  whole.room = cut.room = data[0] % (ROOM_MAX + 1);
  status = run(&p, &whole, text, size - 1, size);
  check(run(&p, &cut, text, size - 1, (size_t)data[0] % 31 + 1) == status);
  check(whole.count == cut.count);
  for (i = 0; i < whole.count && i < whole.room; i++) {
    check(whole_items[i].from == cut_items[i].from && whole_items[i].to == cut_items[i].to);
    check(whole_items[i].from < whole_items[i].to && whole_items[i].to <= size - 1);
    check_element((struct egw_slice){ text + whole_items[i].from,
                                      (size_t)(whole_items[i].to - whole_items[i].from) });
  }
  if (status == SCAN_DONE && p.scan.top == EGW_JSON_ARRAY)
    check_all(&whole, text, (struct egw_slice){ text + p.scan.top_begin,
                                                (size_t)(p.scan.offset - p.scan.top_begin) });
  return 0;
}
