/* SPDX-License-Identifier: MIT */
/* Choosing among the upstreams of a network. */
#include "chain/chain.h"
#include "upstream/upstream.h"

static bool
able(const struct egw_link *link, uint64_t tried, uint32_t caps)
{
  return (tried >> link->upstream->position & 1) == 0 && !link->closing &&
         (link->upstream->transport->caps & caps) == caps;
}

/* network->upstreams is sorted by tier, so the first tier with a candidate wins. Ties go to the
 * first one at or behind a start that moves on with each pick. */
static struct egw_link *
pick(struct egw_worker *worker, struct network *network, uint64_t tried, uint32_t caps,
     bool only_up)
{
  uint64_t now = uv_now(&worker->loop);
  unsigned i = 0, n = network->upstream_count;

  while (i < n) {
    int64_t tier = network->upstreams[i]->conf->tier;
    unsigned first = i, k, size;
    struct egw_link *best = NULL;

    while (i < n && network->upstreams[i]->conf->tier == tier)
      i++;
    size = i - first;
    for (k = 0; k < size; k++) {
      unsigned at = first + (worker->next_link + k) % size;
      struct egw_link *link = worker->links[network->upstreams[at]->index];

      if (!able(link, tried, caps) ||
          (only_up && (link->health != LINK_UP || link->busy_until_ms > now)))
        continue;
      if (best == NULL || link->in_flight < best->in_flight)
        best = link;
    }
    if (best != NULL)
      return best;
  }
  return NULL;
}

struct egw_link *
group_pick(struct egw_worker *worker, struct network *network, uint64_t tried, uint32_t caps)
{
  struct egw_link *link;

  worker->next_link++;
  link = pick(worker, network, tried, caps, true);
  return link != NULL ? link : pick(worker, network, tried, caps, false);
}

bool
group_has_other(struct egw_worker *worker, struct network *network, uint64_t tried, uint32_t caps)
{
  return pick(worker, network, tried, caps, false) != NULL;
}

bool
group_usable(struct egw_worker *worker, struct network *network)
{
  return pick(worker, network, 0, 0, true) != NULL;
}
