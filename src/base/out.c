/* SPDX-License-Identifier: MIT */
/* Outgoing messages: a ring of pieces. Copied text is kept in one buffer of the message;
 * since pieces point into it, it never moves: when it is full, the last piece that points
 * into it takes its reference along and a new buffer begins. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/checked.h"
#include "base/out.h"

#define OUT_PIECES_MIN 4u
#define OUT_TEXT_MIN 256u

struct out *
out_new(unsigned pieces, size_t text)
{
  struct out *out = calloc(1, sizeof(*out));

  if (out == NULL)
    return NULL;
  list_init(&out->node);
  if (pieces > 0) {
    out->pieces = calloc(pieces, sizeof(*out->pieces));
    if (out->pieces == NULL)
      goto fail;
    out->cap = pieces;
  }
  if (text > 0) {
    out->text = egw_buf_new(text);
    if (out->text == NULL)
      goto fail;
  }
  return out;
fail:
  out_free(out);
  return NULL;
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
  egw_buf_unref(out->text);
  free(out->pieces);
  free(out);
}

static int
out_grow(struct out *out)
{
  unsigned cap = out->cap < OUT_PIECES_MIN ? OUT_PIECES_MIN : out->cap * 2, i;
  struct out_piece *pieces;
  size_t size;

  if (cap > UINT32_MAX / 4 || !size_mul(cap, sizeof(*pieces), &size))
    return -1;
  pieces = malloc(size);
  if (pieces == NULL)
    return -1;
  for (i = 0; i < out->count; i++)
    pieces[i] = *out_piece(out, i);
  free(out->pieces);
  out->pieces = pieces;
  out->first = 0;
  out->cap = cap;
  return 0;
}

/* Whether a piece that holds no reference points into the message's current text. */
static bool
out_in_text(const struct out *out, const struct out_piece *piece)
{
  uintptr_t base, at = (uintptr_t)piece->ptr;

  if (out->text == NULL || piece->buf != NULL)
    return false;
  base = (uintptr_t)out->text->data;
  return at >= base && at - base < out->text->cap;
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
  struct egw_buf *text = out->text, *fresh;
  size_t want = len;
  unsigned i;

  if (text != NULL && text->cap - text->len >= len)
    return 0;
  if (text != NULL && want < text->cap && !size_mul(text->cap, 2, &want))
    return -1;
  fresh = egw_buf_new(want < OUT_TEXT_MIN ? OUT_TEXT_MIN : want);
  if (fresh == NULL)
    return -1;
  for (i = out->count; i > 0 && text != NULL; i--) {
    struct out_piece *piece = out_piece(out, i - 1);

    if (out_in_text(out, piece)) {
      piece->buf = text; /* pieces go in order: the last one out frees it */
      text = NULL;
    }
  }
  egw_buf_unref(text);
  out->text = fresh;
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
  at = out->text->data + out->text->len;
  last = out->count > 0 ? out_piece(out, out->count - 1) : NULL;
  if (last != NULL && out_in_text(out, last) && last->ptr + last->len == at) {
    if (!size_add(out->total, piece.len, &out->total))
      return -1;
    last->len += piece.len;
    out->bytes += piece.len;
  } else if (out_push(out, NULL, (struct egw_slice){ at, piece.len }) != 0) {
    return -1;
  }
  memcpy(at, piece.ptr, piece.len);
  out->text->len += piece.len;
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
  if (out->count == 0 && out->text != NULL)
    out->text->len = 0; /* nothing points into it any more */
}
