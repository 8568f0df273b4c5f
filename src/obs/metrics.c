/* SPDX-License-Identifier: MIT */
/* The metric cells of one worker. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "obs/metrics.h"
#include "rpc/method.h"

#define CACHE_LINE 64u

/* Zeroed memory that shares no cache line with another worker's cells. */
static void *
cells_new(size_t size)
{
  void *cells;

  if (!size_add(size, CACHE_LINE - 1, &size))
    return NULL;
  size -= size % CACHE_LINE;
  cells = aligned_alloc(CACHE_LINE, size);
  if (cells != NULL)
    memset(cells, 0, size);
  return cells;
}

struct metrics *
metrics_new(void)
{
  struct metrics *metrics = cells_new(sizeof *metrics);
  size_t rows = (size_t)method_count() + 1, size;

  if (metrics == NULL)
    return NULL;
  metrics->calls = size_mul(rows, sizeof *metrics->calls, &size) ? cells_new(size) : NULL;
  if (metrics->calls == NULL) {
    free(metrics);
    return NULL;
  }
  return metrics;
}

void
metrics_free(struct metrics *metrics)
{
  if (metrics == NULL)
    return;
  free(metrics->calls);
  free(metrics);
}

/* The first bucket whose upper bound, 50 us * 2^i, is not below `us`. */
static unsigned
latency_bucket(uint64_t us)
{
  uint64_t steps = us / 50 + (us % 50 != 0);
  unsigned i = steps <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(steps - 1);

  return i < LATENCY_BUCKETS ? i : LATENCY_BUCKETS - 1;
}

void
metrics_call(struct metrics *metrics, unsigned method_index, enum call_outcome outcome,
             enum client_kind kind, uint64_t took_us)
{
  int64_t took = took_us > INT64_MAX ? INT64_MAX : (int64_t)took_us;

  metric_add(&metrics->calls[method_index][outcome], 1);
  metric_add(&metrics->latency[kind][latency_bucket(took_us)], 1);
  metric_add(&metrics->latency_sum_us[kind], took);
}
