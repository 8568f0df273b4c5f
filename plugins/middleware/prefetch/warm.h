/* SPDX-License-Identifier: MIT */
/* Warming: what clients will ask of a new head is asked once, before them. On one worker. */
#ifndef PREFETCH_WARM_H
#define PREFETCH_WARM_H

#include <ethrpc-gw/middleware.h>

/* What is asked. */
enum { WARM_BLOCK = 1, WARM_FULL = 2, WARM_RECEIPTS = 4, WARM_LOGS = 8 };

#define WARM_BLOCKS 4u          /* of one change of the head, at most */
#define WARM_MEMORY 16u

struct warm {
  struct egw_at at;             /* with no state */
  struct egw_block done[WARM_MEMORY]; /* ring of the blocks that were asked for */
  unsigned count, at_block;
};

/* The bit of a name in the configuration, 0: there is none by that name. */
unsigned warm_bit(const char *name);

/* The head has changed: asks for what is new of it. */
void warm_head(struct warm *warm, const struct egw_at *at, const struct egw_head *head,
               unsigned what);

#endif
