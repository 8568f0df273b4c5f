/* SPDX-License-Identifier: MIT */
/* The parts that a query was cut into, in their order, and putting their results together.
 * Memory is the call's. One thread. */
#ifndef LOGSPLIT_PARTS_H
#define LOGSPLIT_PARTS_H

#include "complaint.h"
#include "filter.h"

struct split;

enum part_state { PART_WAITING, PART_FLYING, PART_DONE };

struct part {
  struct part *next;            /* in the order of the results */
  struct split *split;
  struct filter_part what;
  /* Parts of one group (not 0) were cut by address or topic: each has results of the same
   * blocks, which are put in order one by one. They stand next to each other. */
  unsigned group;
  enum part_state state;
  unsigned tries;
  uint64_t ticket;              /* FLYING */
  struct egw_buf *buf;          /* DONE: a reference */
  struct egw_slice array;       /* in it */
  struct egw_slice inner;       /* what stands between its brackets; len 0: nothing */
};

struct parts {
  struct part *first;
  unsigned count, max;          /* and how many there may be */
  unsigned groups;
};

/* Cuts the filter's blocks at multiples of `size`, so that queries that overlap have parts in
 * common; what is from `tail` on stays in one part. 0; -1: memory; 1: too many. */
int parts_make(struct parts *parts, struct split *split, uint64_t size, uint64_t tail);

/* How a part was cut. */
enum cut { CUT_DONE, CUT_NOT, CUT_TOO_MANY, CUT_NO_MEMORY };

/* Cuts a part into smaller ones that take its place: its blocks into pieces as the upstream
 * proposes or halves; a single block by the filter's addresses, then by the alternatives of
 * its first topic. */
enum cut parts_cut(struct parts *parts, struct part *part, struct egw_call *call,
                   const struct filter *filter, const struct complaint *why);

/* Cuts a part into single blocks, each named by its canonical hash. NOT: they are not all
 * known, or more than a hundred or so. */
enum cut parts_cut_blocks(struct parts *parts, struct part *part, struct egw_call *call,
                          const struct egw_head *head);

/* Forgets all parts and their results. */
void parts_clear(struct parts *parts);

/* All results as one array. NULL: memory. */
struct egw_buf *parts_join(const struct parts *parts) EGW_MUST_CHECK;

#endif
