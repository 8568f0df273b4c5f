/* SPDX-License-Identifier: MIT */
/* Rates and token buckets. */
#include "rate.h"

#include <stddef.h>

#define SECOND UINT64_C(1000)

static uint64_t
period_of(const char *unit)
{
  if (unit[0] == '\0' || unit[1] != '\0')
    return 0;
  switch (unit[0]) {
  case 's': return SECOND;
  case 'm': return 60 * SECOND;
  case 'h': return 3600 * SECOND;
  default: return 0;
  }
}

int
rate_parse(const char *text, struct rate *rate)
{
  uint64_t calls = 0, period, burst;

  for (; *text >= '0' && *text <= '9'; text++) {
    calls = calls * 10 + (uint64_t)(*text - '0');
    if (calls > RATE_MAX)
      return -1;
  }
  if (calls == 0 || *text != '/')
    return -1;
  period = period_of(text + 1);
  if (period == 0)
    return -1;
  rate->gain = calls * RATE_CALL;
  rate->price = period;
  burst = calls * SECOND / period;
  rate_set_burst(rate, burst > 0 ? burst : 1);
  return 0;
}

void
rate_set_burst(struct rate *rate, uint64_t calls)
{
  rate->cap = calls * RATE_CALL * rate->price;
}

void
bucket_settle(struct bucket *bucket, const struct rate *rate, uint64_t now)
{
  uint64_t passed;

  if (now <= bucket->at)
    return;
  passed = now - bucket->at;
  bucket->at = now;
  /* compared by dividing: the product could be too large */
  if (passed > bucket->debt / rate->gain)
    bucket->debt = 0;
  else
    bucket->debt -= passed * rate->gain;
}

static uint64_t
ms_for(uint64_t units, const struct rate *rate)
{
  return units / rate->gain + (units % rate->gain != 0);
}

uint64_t
bucket_wait(const struct bucket *bucket, const struct rate *rate, uint64_t price,
            uint64_t limit)
{
  uint64_t room = limit > price ? limit - price : 0;

  return bucket->debt <= room ? 0 : ms_for(bucket->debt - room, rate);
}

uint64_t
bucket_full_at(const struct bucket *bucket, const struct rate *rate)
{
  return bucket->at + ms_for(bucket->debt, rate);
}
