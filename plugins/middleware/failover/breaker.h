/* SPDX-License-Identifier: MIT */
/* How the upstreams do, as all workers see it: a circuit breaker, latency and lag for each.
 *
 *   CLOSED --- too many errors ---> OPEN --- its time is up: one call is let through --->
 * TRIAL TRIAL --- answered ---> CLOSED          TRIAL --- failed ---> OPEN, for twice as long
 *
 * What comes out is a mask of upstreams to avoid. It never holds all of them: a bad upstream
 * is better than none. */
#ifndef FAILOVER_BREAKER_H
#define FAILOVER_BREAKER_H

#include <ethrpc-gw/middleware.h>
#include "classify.h"

#define UPSTREAMS_MAX 64u

/* As configured; durations in ms. */
struct breaker_limits {
  double errors;    /* share of failures at which it opens */
  int64_t samples;  /* ...of at least so many calls */
  int64_t failures; /* or so many failures in a row */
  uint64_t window, open;
  int64_t max_lag; /* blocks behind the tip */
};

struct breakers;

struct breakers *breakers_new(void);
void breakers_free(struct breakers *breakers);

enum shunned { SHUNNED_NOT, SHUNNED_OPEN, SHUNNED_QUIET, SHUNNED_SLOW, SHUNNED_LAGGING };

/* Why upstream `index` is to be avoided now, for the story. */
const char *shunned_text(enum shunned why);

/* What to avoid. `quick`: the caller wants an answer soon, so slow ones too. */
struct breaker_view {
  uint64_t avoid;
  unsigned trial; /* its time is up: this call may try it; EGW_NO_UPSTREAM: none */
  unsigned char why[UPSTREAMS_MAX];
};
void breakers_view(struct breakers *breakers, const struct egw_at *at,
                   const struct breaker_limits *limits, bool quick, bool may_try,
                   struct breaker_view *out);

/* What came of a call at upstream `index`. `ms`: how long it took, -1: not comparable. True:
 * its breaker has just opened. */
bool
breakers_note(struct breakers *breakers, const struct egw_at *at,
              const struct breaker_limits *limits, unsigned index, enum mark mark, int64_t ms);

/* It wants to be left alone for so long. */
void breakers_quiet(struct breakers *breakers, const struct egw_at *at, unsigned index,
                    uint64_t ms);

/* Whether state at old blocks was missing there before; notes that it is. */
bool breakers_lacked(struct breakers *breakers, unsigned index);

#endif
