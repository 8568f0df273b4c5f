/* SPDX-License-Identifier: MIT */
/* What of a bucket several gateways share. */
#include "account.h"

#define MOST_MS UINT64_C(5000)   /* and four times the burst */
#define US_MAX (UINT64_C(1) << 50) /* exact in a double of Lua, whatever is added */

/* Units to microseconds, and back; neither product can be too large: a remainder is below
 * the gain, which is below 2^34. */
static uint64_t
us_of(uint64_t units, const struct rate *rate)
{
  return units / rate->gain * 1000 + units % rate->gain * 1000 / rate->gain;
}

static uint64_t
units_of(uint64_t us, const struct rate *rate)
{
  return us / 1000 * rate->gain + us % 1000 * rate->gain / 1000;
}

void
account_take(struct account *account, const struct bucket *bucket, uint64_t price, bool share)
{
  account->untold += price;
  if (!share && account->untold > bucket->debt)
    account->untold = bucket->debt;
}

uint64_t
account_more(struct account *account, const struct rate *rate)
{
  uint64_t us = us_of(account->untold, rate);

  account->telling = us > 0;
  account->untold -= units_of(us, rate);
  return us > US_MAX ? US_MAX : us;
}

uint64_t
account_due(struct account *account, const struct rate *rate)
{
  return account->telling ? 0 : account_more(account, rate);
}

uint64_t
account_most_us(const struct rate *rate)
{
  uint64_t us = us_of(rate->cap, rate);

  us = us > US_MAX / 8 ? US_MAX / 2 : us * 4;
  return us + MOST_MS * 1000;
}

void
account_told(struct account *account, struct bucket *bucket, const struct rate *rate,
             uint64_t owed_us, uint64_t now)
{
  uint64_t most = account_most_us(rate), debt;

  bucket_settle(bucket, rate, now);
  debt = units_of(owed_us > most ? most : owed_us, rate) + account->untold;
  if (debt > bucket->debt)
    bucket->debt = debt;
}

void
account_give_up(struct account *account)
{
  account->telling = false;
}
