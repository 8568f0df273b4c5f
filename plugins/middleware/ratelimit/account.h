/* SPDX-License-Identifier: MIT */
/* What of a bucket several gateways share: each lets calls through by what it knows, tells
 * a common ledger what was taken, and hears what is owed by all together. So no call waits
 * for the ledger, and what is let through by several at once too much is paid back by all:
 * over time the rate holds. */
#ifndef RATELIMIT_ACCOUNT_H
#define RATELIMIT_ACCOUNT_H

#include <stdbool.h>
#include "rate.h"

#define ACCOUNT_EVERY_MS 100u    /* between two tellings */

struct account {
  uint64_t untold;               /* units taken here that the ledger does not know of */
  bool telling;                  /* something is being told, or was not long ago */
};

/* `price` was taken from the bucket, which owes it already. Without a ledger (`share`
 * false) what has come back since is not told later. */
void account_take(struct account *account, const struct bucket *bucket, uint64_t price,
                  bool share);

/* In how many microseconds what is untold comes back, which counts as told then; 0: there
 * is nothing, or it is being told already. What follows is account_more(), ACCOUNT_EVERY_MS
 * after the ledger has heard it or not, until that says 0. */
uint64_t account_due(struct account *account, const struct rate *rate);
uint64_t account_more(struct account *account, const struct rate *rate);

/* The ledger says in how many microseconds nothing will be owed. It may lie: less than what
 * is known here counts for nothing, and there is a limit to how long it can keep a client
 * out. */
void account_told(struct account *account, struct bucket *bucket, const struct rate *rate,
                  uint64_t owed_us, uint64_t now);

/* There is no memory to tell it: account_more() will not follow. */
void account_give_up(struct account *account);

/* The most that a ledger should let anyone owe, in microseconds. */
uint64_t account_most_us(const struct rate *rate);

#endif
