/* SPDX-License-Identifier: MIT */
/* Memory for long values: slots do not overlap, each size gets what it asked for, and all goes back. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "base/buf.h"
#include "base/span.h"
#include "../lib/tap.h"

#define MANY 400
#define THREADS 4

struct held {
  unsigned char *memory;
  size_t size;
  unsigned char mark;
};

static uint64_t
next(uint64_t *seed)
{
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *seed >> 33;
}

static bool
is_marked(const struct held *h)
{
  return h->memory[0] == h->mark && h->memory[h->size / 2] == h->mark &&
         h->memory[h->size - 1] == h->mark;
}

static void
hold(struct held *h, size_t size, unsigned char mark)
{
  h->memory = span_alloc(size);
  if (h->memory == NULL)
    abort();
  h->size = size;
  h->mark = mark;
  memset(h->memory, mark, size);
}

static void
test_sizes(void)
{
  size_t size, wrong = 0, step = (SPAN_MAX - SPAN_MIN) / 997;
  struct held h, other;

  for (size = SPAN_MIN; size <= SPAN_MAX; size += step) {
    hold(&h, size, 1);
    hold(&other, size, 2);
    wrong += !is_marked(&h) || (uintptr_t)h.memory % 64 != 0;
    span_free(h.memory, size);
    wrong += !is_marked(&other);
    span_free(other.memory, size);
  }
  hold(&h, SPAN_MAX, 3);
  wrong += !is_marked(&h);
  span_free(h.memory, SPAN_MAX);
  is_int(wrong, 0, "every size, from the shortest to the longest");
  is_int(span_count(), 0, "no span is left");
}

static void *
churn(void *arg)
{
  uint64_t seed = *(uint64_t *)arg;
  static _Thread_local struct held held[MANY];
  size_t wrong = 0, i, n;

  for (n = 0; n < 20 * MANY; n++) {
    struct held *h = &held[next(&seed) % MANY];

    if (h->memory != NULL) {
      wrong += !is_marked(h);
      span_free(h->memory, h->size);
      h->memory = NULL;
    } else {
      hold(h, SPAN_MIN + next(&seed) % 20000, (unsigned char)next(&seed));
    }
  }
  for (i = 0; i < MANY; i++)
    if (held[i].memory != NULL) {
      wrong += !is_marked(&held[i]);
      span_free(held[i].memory, held[i].size);
    }
  return (void *)(uintptr_t)wrong;
}

static void
test_threads(void)
{
  static uint64_t seeds[THREADS] = { 1, 2, 3, 4 };
  pthread_t threads[THREADS];
  uintptr_t wrong = 0;
  void *said;

  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, churn, &seeds[i]) != 0)
      abort();
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &said);
    wrong += (uintptr_t)said;
  }
  is_int(wrong, 0, "values of several threads stay as they were written");
  is_int(span_count(), 0, "and all spans go back");
}

/* How dense they are: a span has 4 MiB. */
static void
test_density(void)
{
  struct held held[60];
  size_t i;

  for (i = 0; i < 60; i++)
    hold(&held[i], 350000, (unsigned char)i);
  ok(span_count() <= 6, "60 blocks of 350 kB take %zu spans", span_count());
  for (i = 0; i < 60; i++)
    span_free(held[i].memory, held[i].size);
  is_int(span_count(), 0, "freed");
}

static void
test_buffers(void)
{
  static char text[SPAN_MAX + 10];
  static const size_t lengths[] = { 0, 5, SPAN_MIN - 1, SPAN_MIN, 300000, SPAN_MAX, SPAN_MAX + 1 };
  size_t i;

  memset(text, 'x', sizeof(text));
  for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
    struct egw_buf *buf = egw_buf_keep((struct egw_slice){ text, lengths[i] });
    bool long_one = lengths[i] >= SPAN_MIN && lengths[i] <= SPAN_MAX;

    is_int(span_count(), long_one, "%zu bytes", lengths[i]);
    ok(egw_buf_slice(buf).len == lengths[i] &&
       memcmp(egw_buf_slice(buf).ptr, text, lengths[i]) == 0, "are there");
    is_int(egw_buf_append(buf, "y", 1), 0, "and can grow");
    ok(egw_buf_slice(buf).ptr[lengths[i]] == 'y' &&
       memcmp(egw_buf_slice(buf).ptr, text, lengths[i]) == 0, "keeping what was there");
    is_int(span_count(), 0, "in memory of another kind");
    egw_buf_unref(buf);
    buf = egw_buf_keep((struct egw_slice){ text, lengths[i] });
    egw_buf_unref(egw_buf_ref(buf));
    egw_buf_unref(buf);
    is_int(span_count(), 0, "given back");
  }
}

int
main(void)
{
  test_sizes();
  test_threads();
  test_density();
  test_buffers();
  return done_testing();
}
