/* SPDX-License-Identifier: MIT */
/* The IPC framer. What it finds may not depend on how the stream is split, every value it finds
 * is JSON, and the budget is even at the end. The first byte chooses the split. */
#include <stdlib.h>
#include <string.h>
#include "listen/ipc-frame.h"

#define LIMIT 2048
#define DEPTH 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct found {
  struct egw_buf *log;
  bool dead;
};

static void
check(bool holds)
{
  if (!holds)
    abort();
}

static void
note(struct found *found, enum frame_found what, struct egw_buf *text)
{
  char tag = (char)('A' + (int)what);

  check(!found->dead);
  check(egw_buf_append(found->log, &tag, 1) == 0);
  if (what == FRAME_VALUE) {
    struct egw_slice s = egw_buf_slice(text);

    check(scan_valid(s, DEPTH, NULL));
    check(egw_buf_append(found->log, s.ptr, s.len) == 0);
  }
  found->dead = what == FRAME_TOO_LARGE || what == FRAME_LOST || what == FRAME_NO_MEMORY;
  egw_buf_unref(text);
}

static struct egw_buf *
run(const char *bytes, size_t len, size_t step, bool pause)
{
  struct budget budget = { .limit = 0 };
  struct found found = { egw_buf_new(0), false };
  struct frame frame;
  struct egw_buf *text = NULL;
  enum frame_found what;
  size_t at, part;

  frame_init(&frame, DEPTH, LIMIT, &budget);
  for (at = 0; at < len; at += part) {
    char *piece;

    part = len - at < step ? len - at : step;
    piece = malloc(part);
    check(piece != NULL);
    memcpy(piece, bytes + at, part);
    frame_feed(&frame, piece, part);
    while ((what = frame_next(&frame, &text)) != FRAME_MORE) {
      note(&found, what, text);
      text = NULL;
      if (pause)
        frame_keep(&frame);
    }
    free(piece);
    check(frame.reserved == budget.used && budget.used <= LIMIT + step);
  }
  what = frame_finish(&frame, &text);
  if (what != FRAME_MORE)
    note(&found, what, text);
  check(budget.used == 0);
  return found.log;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const char *bytes = (const char *)data + 1;
  struct egw_buf *whole, *split;
  struct egw_slice a, b;

  if (size < 2)
    return 0;
  whole = run(bytes, size - 1, size, false);
  split = run(bytes, size - 1, 1u + (data[0] & 0x7fu), data[0] >= 0x80);
  a = egw_buf_slice(whole);
  b = egw_buf_slice(split);
  check(a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0);
  egw_buf_unref(whole);
  egw_buf_unref(split);
  return 0;
}
