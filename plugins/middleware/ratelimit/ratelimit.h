/* SPDX-License-Identifier: MIT */
/* An instance of the middleware `ratelimit`. */
#ifndef RATELIMIT_H
#define RATELIMIT_H

#include <ethrpc-gw/plugin.h>
#include "address.h"
#include "clients.h"
#include "rules.h"
#include "../../common/redis/redis.h"

struct ratelimit {
  const char *per_client, *per_key, *total;
  int64_t burst, key_burst, max_clients;
  int cost;                      /* enum ratelimit_cost */
  bool http_status;
  struct egw_strings exempt;
  bool exempt_local;
  struct address_net *nets;      /* of exempt */
  size_t net_count;
  struct rules rules;
  struct clients *clients;       /* shared by the workers */
  const char *redis, *redis_prefix;
  struct redis_address address;  /* of redis, if that is not NULL */
};

enum ratelimit_cost { COST_FLAT, COST_METHOD };

/* Reads what is more than single options. 0 or -1. */
int ratelimit_configure(void *mine, struct egw_conf *section);
void ratelimit_unconfigure(void *mine);

extern const struct egw_option ratelimit_options[];

#endif
