/* SPDX-License-Identifier: MIT */
/* Outgoing messages against a plain string that gets the same bytes. */
#include <stdint.h>
#include "base/buf.h"
#include "base/out.h"
#include "../lib/tap.h"

static uint64_t seed = 3;

static unsigned
rnd(unsigned below)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % below);
}

static void
test_order(void)
{
  struct out *out = out_new(1, 8);
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("0123456789"));
  struct iovec iov[8];
  unsigned n;

  ok(out_peek(out, iov, 8) == 0 && out->bytes == 0 && !out->open, "a new message is empty");
  ok(out_add_copy(out, EGW_LIT("{\"id\":")) == 0, "copied text");
  ok(out_add_copy(out, EGW_LIT("7,")) == 0, "and more of it");
  ok(out_add_static(out, EGW_LIT("\"result\":")) == 0, "a literal");
  ok(out_add(out, egw_buf_ref(buf), (struct egw_slice){ egw_buf_slice(buf).ptr + 2, 5 }) == 0,
     "a piece of a buffer");
  ok(out_add(out, egw_buf_ref(buf), (struct egw_slice){ egw_buf_slice(buf).ptr + 7, 1 }) == 0,
     "the piece behind it");
  ok(out_add_copy(out, EGW_LIT("}")) == 0, "the end");
  n = out_peek(out, iov, 8);
  is_int(n, 4, "pieces that go on where the last one ends are joined");
  is_bytes(iov[0].iov_base, iov[0].iov_len, "{\"id\":7,", "first the copied text");
  is_bytes(iov[2].iov_base, iov[2].iov_len, "234567", "then the buffer's own bytes");
  ok((char *)iov[2].iov_base == egw_buf_slice(buf).ptr + 2, "not copied");
  is_int(out->bytes, 24, "the bytes are counted");
  is_int(out_peek(out, iov, 2), 2, "no more iovecs than asked for");
  out_consume(out, 18);
  n = out_peek(out, iov, 8);
  is_bytes(iov[0].iov_base, iov[0].iov_len, "34567", "consumed in the middle of a piece");
  is_int(atomic_load(&buf->refs), 2, "which holds its reference");
  out_consume(out, 5);
  is_int(atomic_load(&buf->refs), 1, "until it is done");
  out_consume(out, 1);
  ok(out->bytes == 0 && out->total == 24 && out_peek(out, iov, 8) == 0, "all consumed");
  out_free(out);
  out_free(NULL);
  egw_buf_unref(buf);
}

static void
test_references(void)
{
  struct out *out = out_new(0, 0);
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("abc"));

  ok(out_add(out, egw_buf_ref(buf), (struct egw_slice){ egw_buf_slice(buf).ptr, 0 }) == 0,
     "an empty piece");
  is_int(atomic_load(&buf->refs), 1, "gives its reference back at once");
  ok(out_add(out, egw_buf_ref(buf), egw_buf_slice(buf)) == 0, "a piece");
  out_free(out);
  is_int(atomic_load(&buf->refs), 1, "freeing the message drops its references");
  egw_buf_unref(buf);
}

/* Adds a random piece of text in a random way; a model string gets the same. */
static void
random_add(struct out *out, struct egw_buf *model, struct egw_buf *shared)
{
  static const char literal[] = "literal text that lives for ever";
  struct egw_slice piece = egw_buf_slice(shared);
  char copy[600];
  size_t i;
  int rc;

  switch (rnd(3)) {
  case 0:
    piece.ptr += rnd(500);
    piece.len = rnd(500);
    rc = out_add(out, egw_buf_ref(shared), piece);
    break;
  case 1:
    piece = (struct egw_slice){ literal, rnd(sizeof(literal)) };
    rc = out_add_static(out, piece);
    break;
  default:
    piece = (struct egw_slice){ copy, rnd(sizeof(copy)) };
    for (i = 0; i < piece.len; i++)
      copy[i] = (char)('A' + rnd(26));
    rc = out_add_copy(out, piece);
    memset(copy + piece.len, '?', sizeof(copy) - piece.len);
  }
  if (rc != 0 || egw_buf_append(model, piece.ptr, piece.len) != 0)
    abort();
}

/* Compares what is queued with the end of the model. */
static bool
same(const struct out *out, const struct egw_buf *model)
{
  static struct iovec iov[4096];
  unsigned n = out_peek(out, iov, 4096), i;
  struct egw_slice all = egw_buf_slice(model);
  const char *at = all.ptr + all.len - out->bytes;

  for (i = 0; i < n; i++) {
    if (memcmp(at, iov[i].iov_base, iov[i].iov_len) != 0)
      return false;
    at += iov[i].iov_len;
  }
  return at == all.ptr + all.len && out->total == all.len;
}

static void
test_random(void)
{
  unsigned round, i, wrong = 0;

  for (round = 0; round < 50; round++) {
    struct out *out = out_new(rnd(4), rnd(300));
    struct egw_buf *model = egw_buf_new(0), *shared = egw_buf_new(1000);

    for (i = 0; i < 1000; i++)
      if (egw_buf_append(shared, &(char){ (char)('a' + i % 26) }, 1) != 0)
        abort();
    for (i = 0; i < 400; i++) {
      if (rnd(5) < 3)
        random_add(out, model, shared);
      else
        out_consume(out, rnd((unsigned)(out->bytes < 2000 ? out->bytes + 1 : 2000)));
      if (i % 7 == 0)
        wrong += !same(out, model);
    }
    wrong += !same(out, model);
    out_free(out);
    wrong += atomic_load(&shared->refs) != 1;
    egw_buf_unref(shared);
    egw_buf_unref(model);
  }
  is_int(wrong, 0, "random pieces come out in order, and every reference is given back");
}

/* A long streamed message must not grow by what was consumed long ago. */
static void
test_stream(void)
{
  struct out *out = out_new(2, 64);
  unsigned i;
  int bad = 0;

  for (i = 0; i < 100000; i++) {
    bad |= out_add_copy(out, EGW_LIT("some text of a piece"));
    out_consume(out, i % 3 == 0 ? out->bytes : out->bytes / 2);
  }
  ok(bad == 0 && out->total == 2000000, "2 MB of copied text pass through");
  ok(out->text_cap < 4096 && out->cap < 64, "in little memory");
  out_free(out);
}

/* Text goes on from the message's own room into buffers, and no byte that a piece points to moves. */
static void
test_rooms(void)
{
  struct egw_buf *model = egw_buf_new(0), *other = egw_buf_copy(EGW_LIT("|other|"));
  struct out *out = out_new(0, 0);
  int bad = 0;

  for (unsigned i = 0; i < 300; i++) {
    char text[40];
    int n = snprintf(text, sizeof(text), "%u,%.*s", i, (int)(i % 30), "0123456789abcdefghijklmnopqrst");
    struct egw_slice piece = { text, (size_t)n };

    bad |= out_add_copy(out, piece) | egw_buf_append(model, piece.ptr, piece.len);
    if (i % 7 == 0) {
      bad |= out_add(out, egw_buf_ref(other), egw_buf_slice(other));
      bad |= egw_buf_append(model, "|other|", 7);
    }
    if (i == OUT_TEXT_OWN / 16)
      bad |= !same(out, model);
  }
  ok(bad == 0 && same(out, model), "everything is there, in order");
  out_free(out);
  is_int(atomic_load(&other->refs), 1, "and every reference given back");
  egw_buf_unref(other);
  egw_buf_unref(model);
}

int
main(void)
{
  test_rooms();
  test_order();
  test_references();
  test_random();
  test_stream();
  return done_testing();
}
