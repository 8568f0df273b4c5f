/* SPDX-License-Identifier: MIT */
/* The filter of eth_getLogs and its kin: its range of blocks, what else it can be cut by,
 * and the params of a part of it. Pure; any thread. */
#ifndef LOGSPLIT_FILTER_H
#define LOGSPLIT_FILTER_H

#include <ethrpc-gw/middleware.h>

struct filter {
  struct egw_slice params;      /* of the call; borrowed, as all here */
  struct egw_slice object;      /* the filter */
  struct egw_slice address;     /* an array of two or more, or missing */
  struct egw_slice topics;      /* the array, or missing */
  struct egw_slice first_topic; /* its first element, an array of two or more, or missing */
  size_t addresses, alternatives; /* elements of `address` and `first_topic` */
  uint64_t from, to;            /* not above the tip */
  struct egw_slice last;        /* how the end is written if it may be above `to` */
};

/* A part of a filter. Counts of 0 mean all. */
struct filter_part {
  uint64_t from, to;
  size_t address, addresses;    /* so many, from that one on */
  size_t topic, topics;         /* alternatives of the first topic */
  bool by_hash;                 /* one block, named by its hash */
  unsigned char hash[32];
};

/* Reads a call's filter and resolves its range by the head. false: it has no range to be
 * cut (a block's hash, a tag that can't be told, paging, params that nodes read in
 * different ways). */
bool filter_read(struct filter *filter, struct egw_slice params, const struct egw_head *head);

/* The params for a part. 0, or -1 when memory is short. */
int filter_print(const struct filter *filter, const struct filter_part *part,
                 struct egw_buf *out) EGW_MUST_CHECK;

#endif
