/* SPDX-License-Identifier: MIT */
/* Choosing among the upstreams of a network.
 *
 * What counts, in this order: one that can do it at all (transport, chain, not tried, among those that
 * the call allows); one that is up and not busy, that no stage wishes to avoid, and that has the
 * block; the lowest tier; the least in flight. Wishes give way, from the last to the first, before a
 * call is refused: the last upstream is never excluded.
 *
 * Cheap calls that come in the same turn of the loop are dealt out a few at a time: what goes to
 * one upstream in a turn leaves with one system call, which costs both sides more than what a
 * node does for such a call. */
#include "chain/call.h"
#include "chain/chain.h"
#include "upstream/parts.h"

#define RUN_MAX 8u      /* cheap calls of one turn to the same upstream, one after the other */
#define CHEAP_COST 8u   /* methods up to here: a look-up, no execution */

/* Why an upstream is passed over, in the order in which that is given up. */
enum {
  LACK_HEALTH = 8,
  LACK_CALM = 4,     /* it asked to be left alone */
  LACK_BLOCK = 2,
  LACK_WISH = 1
};

static bool
able(const struct egw_link *link, uint64_t tried, const struct egw_route *route, uint32_t caps)
{
  uint64_t bit = UINT64_C(1) << link->upstream->position;

  return (tried & bit) == 0 && (route->only == 0 || (route->only & bit) != 0) && !link->closing &&
         (link->upstream->transport->caps & caps) == caps &&
         !atomic_load_explicit(&link->upstream->stranger, memory_order_relaxed);
}

static bool
has_block(const struct upstream *upstream, const struct want *want)
{
  uint64_t n;

  if (!want->has_block)
    return true;
  if (upstream_head(upstream, &n) && n < want->block)
    return false;
  return !want->state || !upstream_lowest(upstream, &n) || n <= want->lowest;
}

static unsigned
lacks(const struct egw_link *link, const struct egw_call *call, uint64_t now)
{
  uint64_t bit = UINT64_C(1) << link->upstream->position;
  unsigned lack = 0;

  if (link->health != LINK_UP)
    lack |= LACK_HEALTH;
  if (link->busy_until_ms > now)
    lack |= LACK_CALM;
  if (!has_block(link->upstream, &call->dispatch.want))
    lack |= LACK_BLOCK;
  if ((call->route.avoid & bit) != 0)
    lack |= LACK_WISH;
  return lack;
}

/* Nobody is known to have the block: the one that is nearest to it. */
static bool
nearer(const struct egw_link *a, const struct egw_link *b, const struct want *want)
{
  uint64_t x = 0, y = 0;

  if (!want->has_block || !upstream_head(a->upstream, &x) || !upstream_head(b->upstream, &y))
    return false;
  return x > y && y < want->block;
}

static bool
better(const struct egw_link *a, unsigned a_lack, const struct egw_link *b, unsigned b_lack,
       const struct want *want)
{
  if (a_lack != b_lack)
    return a_lack < b_lack;
  if ((a_lack & LACK_BLOCK) != 0 && (nearer(a, b, want) || nearer(b, a, want)))
    return nearer(a, b, want);
  if (a->upstream->conf->tier != b->upstream->conf->tier)
    return a->upstream->conf->tier < b->upstream->conf->tier;
  return a->in_flight < b->in_flight;
}

/* None can be better: the others need not be looked at. network->upstreams is sorted by tier. */
static bool
is_best(const struct egw_link *link, unsigned lack, const struct network *network)
{
  return lack == 0 && link->in_flight == 0 &&
         link->upstream->conf->tier == network->upstreams[0]->conf->tier;
}

/* Ties go to the first one at or behind a start that moves on with each pick. */
static struct egw_link *
pick(const struct egw_call *call, unsigned *lack)
{
  struct egw_worker *worker = call->worker;
  const struct network *network = call->network;
  uint64_t now = uv_now(&worker->loop);
  uint32_t caps = call_caps(call);
  unsigned k, n = network->upstream_count;
  struct egw_link *best = NULL;

  for (k = 0; k < n; k++) {
    unsigned at = (worker->next_link + k) % n;
    struct egw_link *link = worker->links[network->upstreams[at]->index];
    unsigned mine;

    if (!able(link, call->dispatch.tried, &call->route, caps))
      continue;
    mine = lacks(link, call, now);
    if (best == NULL || better(link, mine, best, *lack, &call->dispatch.want)) {
      best = link;
      *lack = mine;
      if (is_best(link, mine, network))
        break;
    }
  }
  return best;
}

/* --- runs of cheap calls ------------------------------------------------------------------ */

static int64_t
turn_of(const struct egw_worker *worker)
{
  return metric_read(&worker->metrics->loop_turns);
}

static bool
is_cheap(const struct egw_call *call)
{
  return call->info != NULL && call->info->cost <= CHEAP_COST && call->dispatch.attempts == 0;
}

/* The upstream of the calls just before, if it is as good as any. */
static struct egw_link *
go_on(const struct egw_call *call)
{
  struct pick_run *run = &call->worker->run;

  if (run->left == 0 || run->turn != turn_of(call->worker) || run->network != call->network ||
      !is_cheap(call) || !able(run->link, 0, &call->route, call_caps(call)) ||
      lacks(run->link, call, uv_now(&call->worker->loop)) != 0)
    return NULL;
  run->left--;
  return run->link;
}

static void
begin_run(const struct egw_call *call, struct egw_link *link, unsigned lack)
{
  const struct network *network = call->network;
  bool begins = link != NULL && lack == 0 && network->upstream_count > 1 && is_cheap(call) &&
                link->upstream->conf->tier == network->upstreams[0]->conf->tier;

  call->worker->run = (struct pick_run){
    .network = call->network,
    .link = link,
    .turn = turn_of(call->worker),
    .left = begins ? RUN_MAX - 1 : 0,
  };
}

/* --- the story ------------------------------------------------------------------------------ */

/* Who was passed over, and why. */
static void
explain(struct egw_call *call, const struct egw_link *chosen)
{
  static const struct { unsigned lack; const char *why; } reasons[] = {
    { LACK_HEALTH, "is down" }, { LACK_CALM, "asked to be left alone" },
    { LACK_BLOCK, "does not have the block" }, { LACK_WISH, "is avoided" },
  };
  const struct network *network = call->network;
  uint64_t now = uv_now(&call->worker->loop);
  unsigned i, k;

  for (i = 0; i < network->upstream_count; i++) {
    const struct egw_link *link = call->worker->links[network->upstreams[i]->index];
    unsigned lack = lacks(link, call, now);

    if (link == chosen)
      continue;
    if (atomic_load_explicit(&link->upstream->stranger, memory_order_relaxed))
      egw_explain(call, "skipped %s: serves another chain", link->upstream->name);
    else if ((call->dispatch.tried >> i & 1) != 0)
      egw_explain(call, "skipped %s: was tried", link->upstream->name);
    for (k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++)
      if ((lack & reasons[k].lack) != 0)
        egw_explain(call, "skipped %s: %s", link->upstream->name, reasons[k].why);
  }
}

struct egw_link *
group_pick(struct egw_call *call)
{
  unsigned lack = 0;
  struct egw_link *link;

  link = go_on(call);
  if (link == NULL) {
    call->worker->next_link++;
    link = pick(call, &lack);
    begin_run(call, link, lack);
  }
  if (egw_explains(call))
    explain(call, link);
  return link;
}

bool
group_has_other(const struct egw_call *call)
{
  const struct network *network = call->network;
  uint32_t caps = call_caps(call);
  unsigned i;

  for (i = 0; i < network->upstream_count; i++)
    if (able(call->worker->links[network->upstreams[i]->index], call->dispatch.tried, &call->route,
             caps))
      return true;
  return false;
}

bool
group_usable(struct egw_worker *worker, struct network *network)
{
  uint64_t now = uv_now(&worker->loop);
  unsigned i;

  for (i = 0; i < network->upstream_count; i++) {
    const struct egw_link *link = worker->links[network->upstreams[i]->index];

    if (!link->closing && link->health == LINK_UP && link->busy_until_ms <= now &&
        !atomic_load_explicit(&link->upstream->stranger, memory_order_relaxed))
      return true;
  }
  return false;
}
