/* SPDX-License-Identifier: MIT */
/* What is limited how: the rates of clients by address and by name, and what methods cost. */
#ifndef RATELIMIT_RULES_H
#define RATELIMIT_RULES_H

#include <stdbool.h>
#include <ethrpc-gw/middleware.h>
#include "rate.h"

struct key_rule {
  const char *name;              /* of a client, as a stage above calls it */
  struct rate rate;
};

struct cost_rule {
  const char *method;            /* a name, or the beginning of one and '*' */
  int64_t calls;                 /* that it counts for; 0: it is free */
};

struct rules {
  struct rate each;              /* of an address */
  struct rate key;               /* of a name that no rule is about */
  struct key_rule *keys;         /* sorted by name */
  size_t key_count;
  struct cost_rule *costs;
  size_t cost_count;
  bool by_method;                /* other methods cost what the method table says */
};

/* The rate of the client called `identity` (NULL: it has no name). */
const struct rate *rules_rate(const struct rules *rules, const char *identity);

/* What a call costs, in the unit of RATE_CALL; 0: nothing. */
unsigned rules_cost(const struct rules *rules, const struct egw_call *call);

/* Sorts the keys; the name that is there twice, or NULL. */
const char *rules_sort(struct rules *rules);

/* Whether anything but the total is limited. */
bool rules_limit(const struct rules *rules);

void rules_free(struct rules *rules);

#endif
