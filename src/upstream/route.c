/* SPDX-License-Identifier: MIT */
/* Routing for stages: the functions of ethrpc-gw/route.h. */
#include <string.h>
#include "upstream/parts.h"

static struct egw_link *
link_at(const struct egw_at *at, unsigned index)
{
  const struct network *network = at->stage->network;

  return index < network->upstream_count ? at->worker->links[network->upstreams[index]->index]
                                         : NULL;
}

unsigned
egw_upstream_count(const struct egw_at *at)
{
  return at->stage->network->upstream_count;
}

bool
egw_upstream(const struct egw_at *at, unsigned index, struct egw_upstream_info *out)
{
  const struct egw_link *link = link_at(at, index);
  struct upstream *upstream;

  memset(out, 0, sizeof(*out));
  if (link == NULL)
    return false;
  upstream = link->upstream;
  out->name = upstream->name;
  out->tier = upstream->conf->tier;
  out->up = link->health == LINK_UP;
  out->busy = link->busy_until_ms > uv_now(&at->worker->loop);
  out->pushes = (upstream->transport->caps & EGW_T_PUSH) != 0;
  out->has_head = upstream_head(upstream, &out->head);
  out->has_lowest = upstream_lowest(upstream, &out->lowest);
  out->in_flight = link->in_flight;
  return true;
}

void
upstream_lacks(struct upstream *upstream, uint64_t block)
{
  uint64_t lowest = atomic_load_explicit(&upstream->lowest, memory_order_relaxed), want;

  if (block >= UINT64_MAX - 1)
    return;
  want = block + 2; /* 1 + the block above it */
  while (lowest < want &&
         !atomic_compare_exchange_weak_explicit(&upstream->lowest, &lowest, want,
                                                memory_order_relaxed, memory_order_relaxed))
    continue;
}

void
egw_upstream_lacks(const struct egw_at *at, unsigned index, uint64_t block)
{
  const struct egw_link *link = link_at(at, index);

  if (link != NULL)
    upstream_lacks(link->upstream, block);
}

void
egw_route(struct egw_call *call, const struct egw_route *route)
{
  call->route = *route;
}

void
egw_routed(const struct egw_call *call, struct egw_route *out)
{
  *out = call->route;
}

void
egw_may_batch(struct egw_call *call, const struct egw_batching *limits)
{
  call->batching = limits;
}
