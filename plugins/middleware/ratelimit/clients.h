/* SPDX-License-Identifier: MIT */
/* The clients of an instance and what they may do: one table for all workers. It is made of
 * shards, each under a mutex that is held for a few instructions; all memory is there from the
 * start, so that a call allocates nothing.
 *
 * When a shard is full, the client whose bucket is full soonest makes room: those that are
 * full lose nothing by it, and many addresses that call once don't push out one that has been
 * using up its limit. */
#ifndef RATELIMIT_CLIENTS_H
#define RATELIMIT_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include "address.h"
#include "rate.h"

struct clients;

struct clients_limits {
  struct rate total;             /* of all together; gain 0: none */
  uint64_t most;                 /* clients in the table */
};

/* NULL when memory is short. */
struct clients *clients_new(const struct clients_limits *limits);
void clients_free(struct clients *clients);

/* What came of a call. */
struct clients_taken {
  uint64_t wait_ms;              /* 0: it may pass, and has been paid for; else refused */
  int64_t added;                 /* clients that came into the table less those that left */
  int64_t evicted;               /* that left though their bucket was not full */
};

/* A call of `cost` (not 0) by `who`, whose rate is `each` (always the same one; gain 0: it has no
 * limit of its own), at `now` (ms). Any thread. */
struct clients_taken clients_take(struct clients *clients, struct client_key who,
                                  const struct rate *each, unsigned cost, uint64_t now);

#endif
