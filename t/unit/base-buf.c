/* SPDX-License-Identifier: MIT */
/* egw_buf: filling, growing, references. */
#include <pthread.h>
#include <stdint.h>
#include "base/buf.h"
#include "../lib/tap.h"

static void
test_fill(void)
{
  struct egw_buf *buf = egw_buf_new(0);
  char want[4096];
  size_t i;
  bool same = true;

  ok(buf != NULL && egw_buf_slice(buf).len == 0, "a new buffer is empty");
  ok(egw_buf_append(buf, NULL, 0) == 0, "nothing can be appended");
  for (i = 0; i < sizeof(want); i++) {
    want[i] = (char)('a' + i % 26);
    same = same && egw_buf_append(buf, &want[i], 1) == 0;
  }
  ok(same && egw_buf_slice(buf).len == sizeof(want), "one byte at a time, 4096 times");
  ok(memcmp(egw_buf_slice(buf).ptr, want, sizeof(want)) == 0, "the bytes survived growing");
  egw_buf_unref(buf);
}

static void
test_printf(void)
{
  struct egw_buf *buf = egw_buf_new(4);
  char longer[1000];

  memset(longer, 'x', sizeof(longer) - 1);
  longer[sizeof(longer) - 1] = '\0';
  ok(egw_buf_printf(buf, "%d-%s", 12, "a") == 0, "formatted text that just fits");
  is_slice(egw_buf_slice(buf), "12-a", "is there, without a NUL");
  ok(egw_buf_printf(buf, "%s", longer) == 0, "formatted text that does not fit");
  is_int(egw_buf_slice(buf).len, 4 + 999, "makes the buffer grow");
  ok(memcmp(egw_buf_slice(buf).ptr + 4, longer, 999) == 0, "and is all there");
  ok(egw_buf_printf(buf, "%s", "") == 0 && egw_buf_slice(buf).len == 1003, "empty text");
  egw_buf_unref(buf);
}

static void
test_room(void)
{
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("head"));
  char *at = egw_buf_room(buf, 100);

  ok(at != NULL, "room for 100 bytes");
  memcpy(at, "+tail.....", 10);
  egw_buf_commit(buf, 5);
  is_slice(egw_buf_slice(buf), "head+tail", "only what was committed counts");
  is_slice(buf_from(buf, 5), "tail", "the bytes from an offset on");
  ok(egw_buf_room(buf, SIZE_MAX) == NULL, "room for all of memory and more is refused");
  ok(egw_buf_append(buf, "x", SIZE_MAX - 3) == -1, "so is appending it");
  is_slice(egw_buf_slice(buf), "head+tail", "the contents are unchanged");
  ok(egw_buf_new(SIZE_MAX) == NULL, "a buffer larger than memory is refused");
  egw_buf_unref(buf);
}

static void *
many_references(void *arg)
{
  unsigned i;

  for (i = 0; i < 100000; i++) {
    egw_buf_ref(arg);
    egw_buf_unref(arg);
  }
  egw_buf_unref(arg);
  return NULL;
}

static void
test_references(void)
{
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("shared"));
  pthread_t threads[3];
  size_t i;

  egw_buf_unref(NULL);
  ok(egw_buf_ref(buf) == buf, "a reference to the same buffer");
  egw_buf_unref(buf);
  for (i = 0; i < 3; i++)
    if (pthread_create(&threads[i], NULL, many_references, egw_buf_ref(buf)) != 0)
      abort();
  for (i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  is_int(atomic_load(&buf->refs), 1, "after three threads one reference is left");
  is_slice(egw_buf_slice(buf), "shared", "and the bytes");
  egw_buf_unref(buf);
}

int
main(void)
{
  test_fill();
  test_printf();
  test_room();
  test_references();
  return done_testing();
}
