/* SPDX-License-Identifier: MIT */
/* How much may be sent twice: a share of the calls that are under way, so that retries and
 * hedges of many clients cannot multiply the load of nodes that already have too much of it.
 * One for each worker. */
#ifndef FAILOVER_BUDGET_H
#define FAILOVER_BUDGET_H

#include <stdbool.h>

#define BUDGET_LEAST 3u /* extra attempts that are always allowed */

struct budget {
  unsigned active; /* calls in the stage */
  unsigned extra;  /* extra attempts in flight */
};

/* A call comes and goes. */
void budget_enter(struct budget *budget);
void budget_leave(struct budget *budget);

/* One more extra attempt, if `share` of the active calls allows it; given back when it ended.
 */
bool budget_take(struct budget *budget, double share);
void budget_give(struct budget *budget);

#endif
