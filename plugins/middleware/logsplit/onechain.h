/* SPDX-License-Identifier: MIT */
/* Whether all parts of a result are of one chain.
 *
 * Final blocks are. The others are best asked for in one part, then one node answers for
 * all of them. When that is too much for a node, they are loose: nodes may be on different
 * branches or behind, and what comes is compared with the canonical chain as the head knows
 * it. */
#ifndef LOGSPLIT_ONECHAIN_H
#define LOGSPLIT_ONECHAIN_H

#include "filter.h"

struct part;

struct onechain {
  bool loose;                   /* blocks that are not final are in several parts */
  bool has_final;
  uint64_t final;
  bool has_hash;
  unsigned char hash[32];       /* of the last block, when the parts were begun */
};

/* Notes what the head knows of the range now. */
void onechain_begin(struct onechain *one, const struct filter *filter,
                    const struct egw_head *head);

/* Whether block `number` is final. */
bool onechain_is_final(const struct onechain *one, uint64_t number);

/* The first block that is not final, if there is one up to filter->to; else UINT64_MAX. */
uint64_t onechain_tail(const struct onechain *one, const struct filter *filter);

/* Upstreams that are behind the range's end: not for what is not final. */
uint64_t onechain_behind(const struct filter *filter, const struct egw_at *at);

/* What can be said of the parts when all are there. */
enum onechain_state {
  ONECHAIN_SAME,
  ONECHAIN_CHANGED,             /* the chain has changed: now it is another one */
  ONECHAIN_ODD                  /* a part is not of the chain that is known */
};
enum onechain_state onechain_check(const struct onechain *one, const struct filter *filter,
                                   const struct egw_head *head, const struct part *first);

#endif
