/* SPDX-License-Identifier: MIT */
/* Rates ("100/s") and token buckets, in whole numbers.
 *
 * A bucket is kept as its debt: what was taken out and has not flowed back. Nothing is owed by
 * a full bucket, so that a client nobody has heard of and one whose bucket is full are the
 * same. The unit is such that what flows back in a millisecond is a whole number: with N calls
 * in a period of P ms, a cost of 1 takes P units and N * RATE_CALL units come back each
 * millisecond. */
#ifndef RATELIMIT_RATE_H
#define RATELIMIT_RATE_H

#include <stdint.h>

#define RATE_CALL 10u            /* cost of an ordinary call */
#define RATE_COST_MAX 10000u     /* no call costs more */
#define RATE_MAX UINT64_C(1000000000) /* calls in a period, and in a burst */

/* All below 2^56, whatever was configured. */
struct rate {
  uint64_t gain;                 /* units that come back each millisecond; 0: no limit */
  uint64_t price;                /* units that a cost of 1 takes */
  uint64_t cap;                  /* units that may be owed */
};

struct bucket {
  uint64_t debt;                 /* units */
  uint64_t at;                   /* ms: when the debt was right */
};

/* Reads "N/s", "N/m" or "N/h", with a burst of one second's worth, at least one call. 0, or -1
 * when the text is none of these. */
int rate_parse(const char *text, struct rate *rate);

/* Sets how many calls may come at once: 1 to RATE_MAX. */
void rate_set_burst(struct rate *rate, uint64_t calls);

/* Lets flow back what has since `at`. A clock that is a little behind changes nothing. */
void bucket_settle(struct bucket *bucket, const struct rate *rate, uint64_t now);

/* Of a settled bucket: 0 if `price` can be taken such that no more than `limit` is owed, else
 * in how many ms it can. A price over the limit can be taken from a full bucket. */
uint64_t bucket_wait(const struct bucket *bucket, const struct rate *rate, uint64_t price,
                     uint64_t limit);

/* When nothing will be owed, in ms. */
uint64_t bucket_full_at(const struct bucket *bucket, const struct rate *rate);

#endif
