/* SPDX-License-Identifier: MIT */
/* Outgoing messages: a ring of pieces. Copied text is kept in the message itself, then in a
 * buffer of its own; since pieces point into it, it never moves: when a buffer is full, the last
 * piece that points into it takes its reference along and a new one begins. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/checked.h"
#include "base/out.h"

#define OUT_TEXT_MIN 256u

/* A buffer for the text that follows. */
static int
out_text_begin(struct out *out, size_t cap)
{
  struct egw_buf *buf = egw_buf_new(cap);

  if (buf == NULL)
    return -1;
  out->text_buf = buf;
  out->text = buf->data;
  out->text_len = 0;
  out->text_cap = buf->cap;
  return 0;
}

struct out *
out_new(unsigned pieces, size_t text)
{
  struct out *out = malloc(sizeof(*out));

  if (out == NULL)
    return NULL;
  memset(out, 0, offsetof(struct out, pieces_own));
  list_init(&out->node);
  out->pieces = out->pieces_own;
  out->cap = OUT_PIECES_OWN;
  out->text = out->text_own;
  out->text_cap = sizeof(out->text_own);
  if (pieces > OUT_PIECES_OWN) {
    out->pieces = calloc(pieces, sizeof(*out->pieces));
    out->cap = pieces;
  }
  if (out->pieces == NULL || (text > sizeof(out->text_own) && out_text_begin(out, text) != 0)) {
    out_free(out);
    return NULL;
  }
  return out;
}

/* `first + i` stays below twice the capacity, so one subtraction wraps it. */
static struct out_piece *
out_piece(const struct out *out, unsigned i)
{
  unsigned at = out->first + i;

  return &out->pieces[at >= out->cap ? at - out->cap : at];
}

void
out_free(struct out *out)
{
  unsigned i;

  if (out == NULL)
    return;
  for (i = 0; i < out->count; i++)
    egw_buf_unref(out_piece(out, i)->buf);
  egw_buf_unref(out->text_buf);
  if (out->pieces != out->pieces_own)
    free(out->pieces);
  free(out);
}

static int
out_grow(struct out *out)
{
  unsigned cap = out->cap * 2, i;
  struct out_piece *pieces;
  size_t size;

  if (cap > UINT32_MAX / 4 || !size_mul(cap, sizeof(*pieces), &size))
    return -1;
  pieces = malloc(size);
  if (pieces == NULL)
    return -1;
  for (i = 0; i < out->count; i++)
    pieces[i] = *out_piece(out, i);
  if (out->pieces != out->pieces_own)
    free(out->pieces);
  out->pieces = pieces;
  out->first = 0;
  out->cap = cap;
  return 0;
}

/* Whether a piece that holds no reference points into this text. */
static bool
out_within(const struct out_piece *piece, const char *text, size_t cap)
{
  uintptr_t base = (uintptr_t)text, at = (uintptr_t)piece->ptr;

  return piece->buf == NULL && at >= base && at - base < cap;
}

/* Puts a piece at the end, or makes the last one longer if the new one goes on where it ends
 * and lives as long. Takes the reference when it succeeds. */
static int
out_push(struct out *out, struct egw_buf *buf, struct egw_slice bytes)
{
  struct out_piece *last = out->count > 0 ? out_piece(out, out->count - 1) : NULL;
  size_t left, total;

  if (!size_add(out->bytes, bytes.len, &left) || !size_add(out->total, bytes.len, &total))
    return -1;
  if (last != NULL && buf != NULL && last->buf == buf && last->ptr + last->len == bytes.ptr) {
    last->len += bytes.len;
    egw_buf_unref(buf);
  } else {
    if (out->count == out->cap && out_grow(out) != 0)
      return -1;
    *out_piece(out, out->count) = (struct out_piece){ buf, bytes.ptr, bytes.len };
    out->count++;
  }
  out->bytes = left;
  out->total = total;
  return 0;
}

int
out_add(struct out *out, struct egw_buf *buf, struct egw_slice piece)
{
  int rc = 0;

  if (piece.len > 0)
    rc = out_push(out, buf, piece);
  if (rc != 0 || piece.len == 0)
    egw_buf_unref(buf);
  return rc;
}

int
out_add_static(struct out *out, struct egw_slice piece)
{
  return piece.len > 0 ? out_push(out, NULL, piece) : 0;
}

/* Makes room for `len` more bytes of text without moving what is there. */
static int
out_text_room(struct out *out, size_t len)
{
  size_t want = len, old_cap = out->text_cap;
  struct egw_buf *old = out->text_buf;
  const char *text = out->text;
  unsigned i;

  if (out->text_cap - out->text_len >= len)
    return 0;
  if (want < out->text_cap && !size_mul(out->text_cap, 2, &want))
    return -1;
  if (out_text_begin(out, want < OUT_TEXT_MIN ? OUT_TEXT_MIN : want) != 0)
    return -1;
  for (i = out->count; i > 0 && old != NULL; i--) {
    struct out_piece *piece = out_piece(out, i - 1);

    if (out_within(piece, text, old_cap)) {
      piece->buf = old; /* pieces go in order: the last one out frees it */
      old = NULL;
    }
  }
  egw_buf_unref(old);
  return 0;
}

int
out_add_copy(struct out *out, struct egw_slice piece)
{
  struct out_piece *last;
  char *at;

  if (piece.len == 0)
    return 0;
  if (out_text_room(out, piece.len) != 0)
    return -1;
  at = out->text + out->text_len;
  last = out->count > 0 ? out_piece(out, out->count - 1) : NULL;
  if (last != NULL && out_within(last, out->text, out->text_cap) && last->ptr + last->len == at) {
    if (!size_add(out->total, piece.len, &out->total))
      return -1;
    last->len += piece.len;
    out->bytes += piece.len;
  } else if (out_push(out, NULL, (struct egw_slice){ at, piece.len }) != 0) {
    return -1;
  }
  memcpy(at, piece.ptr, piece.len);
  out->text_len += piece.len;
  return 0;
}

unsigned
out_peek(const struct out *out, struct iovec *iov, unsigned max)
{
  unsigned i;

  for (i = 0; i < max && i < out->count; i++) {
    const struct out_piece *piece = out_piece(out, i);

    /* iovec has no const variant; the consumer only reads. */
    iov[i].iov_base = (void *)(uintptr_t)piece->ptr;
    iov[i].iov_len = piece->len;
  }
  return i;
}

void
out_consume(struct out *out, size_t n)
{
  struct out_piece *piece;

  out->bytes -= n;
  while (n > 0) {
    piece = out_piece(out, 0);
    if (n < piece->len) {
      piece->ptr += n;
      piece->len -= n;
      break;
    }
    n -= piece->len;
    egw_buf_unref(piece->buf);
    out->first = out->first + 1 == out->cap ? 0 : out->first + 1;
    out->count--;
  }
  if (out->count == 0)
    out->text_len = 0; /* nothing points into it any more */
}
