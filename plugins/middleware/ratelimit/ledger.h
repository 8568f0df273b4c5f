/* SPDX-License-Identifier: MIT */
/* The ledger that several gateways share: for each client, and for all together, the time
 * from which on nothing is owed, in a Redis or Valkey server. Nothing waits for it; while
 * it can't be reached each gateway limits by what it sees itself. Of one worker. */
#ifndef RATELIMIT_LEDGER_H
#define RATELIMIT_LEDGER_H

#include <ethrpc-gw/middleware.h>
#include "clients.h"

struct redis_address;
struct ledger;

struct ledger_options {
  const struct redis_address *address; /* borrowed, as the rest */
  const char *prefix;            /* of keys */
  struct clients *clients;
  unsigned told_metric, failed_metric;
};

/* NULL: memory is short, or the worker has no loop for it. */
struct ledger *ledger_new(const struct ledger_options *options, struct egw_worker *worker);
void ledger_free(struct ledger *ledger); /* NULL is allowed */

bool ledger_usable(const struct ledger *ledger);

/* Tells what clients_take() said is to be told of this call. */
void ledger_tell(struct ledger *ledger, const struct egw_at *at, const char *network,
                 const struct clients_call *call, const struct clients_taken *taken);

#endif
