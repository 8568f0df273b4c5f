/* SPDX-License-Identifier: MIT */
/* A fading histogram. */
#include "latency.h"

#define LINEAR 16u /* below: a bucket for each ms; above: four for each power of two */
#define MS_MAX (UINT64_C(1) << 30)
#define SAMPLES_MIN 20u
#define SAMPLES_MAX 2000u

static unsigned
bucket_of(uint64_t ms)
{
  unsigned power = 4, i;

  if (ms > MS_MAX)
    ms = MS_MAX;
  if (ms < LINEAR)
    return (unsigned)ms;
  while (ms >> (power + 1) != 0)
    power++;
  i = LINEAR + 4 * (power - 4) + (unsigned)(ms >> (power - 2) & 3);
  return i < LATENCY_BUCKETS ? i : LATENCY_BUCKETS - 1;
}

/* The longest time in it. */
static uint64_t
bucket_end(unsigned i)
{
  unsigned power, quarter;

  if (i < LINEAR)
    return i;
  power = 4 + (i - LINEAR) / 4;
  quarter = (i - LINEAR) % 4;
  return ((uint64_t)(quarter + 5) << (power - 2)) - 1;
}

void
latency_add(struct latency *latency, uint64_t ms)
{
  unsigned i;

  latency->count[bucket_of(ms)]++;
  if (++latency->total < SAMPLES_MAX)
    return;
  latency->total = 0;
  for (i = 0; i < LATENCY_BUCKETS; i++)
    latency->total += latency->count[i] /= 2;
}

bool
latency_quantile(const struct latency *latency, double q, uint64_t *ms)
{
  double want = q * (double)latency->total;
  uint32_t below = 0;
  unsigned i;

  if (latency->total < SAMPLES_MIN)
    return false;
  for (i = 0; i + 1 < LATENCY_BUCKETS; i++) {
    below += latency->count[i];
    if ((double)below >= want)
      break;
  }
  *ms = bucket_end(i);
  return true;
}
