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

/* A call. */
struct clients_call {
  struct client_key who;
  const struct rate *each;       /* its rate, always the same; gain 0: no limit of its own */
  unsigned cost;                 /* not 0 */
  uint64_t now;                  /* ms */
  bool share;                    /* there is a ledger that can be told (account.h) */
};

/* What came of it. */
struct clients_taken {
  uint64_t wait_ms;              /* 0: it may pass, and has been paid for; else refused */
  int64_t added;                 /* clients that came into the table less those that left */
  int64_t evicted;               /* that left though their bucket was not full */
  uint64_t due_us, total_due_us; /* not 0: to be told to the ledger, about the client and about
                                    all */
};

/* Any thread. */
struct clients_taken clients_take(struct clients *clients, const struct clients_call *call);

/* What the ledger said about the client of a call, or about all (`total`), at call->now.
 * Any thread. */
void clients_told(struct clients *clients, const struct clients_call *call, bool total,
                  uint64_t owed_us);

/* What is to be told some time after that, or after the ledger said nothing; 0: nothing. */
uint64_t clients_more(struct clients *clients, const struct clients_call *call, bool total);

/* Neither of them will be asked. */
void clients_give_up(struct clients *clients, const struct clients_call *call, bool total);

/* That of all together. */
const struct rate *clients_total_rate(const struct clients *clients);

#endif
