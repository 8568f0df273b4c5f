/* SPDX-License-Identifier: MIT */
/* Picks upstreams for calls that go to a certain one: hedges, transactions, nonces. */
#include "failover.h"

/* What is wrong with it. */
static unsigned
lacks(const struct egw_upstream_info *info, uint64_t avoid, unsigned index,
      const uint64_t *block)
{
  unsigned lack = LACK_NOTHING;

  if (!info->up)
    lack |= LACK_HEALTH;
  if (info->busy)
    lack |= LACK_CALM;
  if ((avoid >> index & 1) != 0)
    lack |= LACK_TRUST;
  if (block != NULL &&
      ((info->has_head && info->head < *block) || (info->has_lowest && info->lowest > *block)))
    lack |= LACK_BLOCK;
  return lack;
}

unsigned
choose_upstream(const struct egw_at *at, struct egw_call *call, struct state *state,
                uint64_t never, enum lack most)
{
  struct mine *mine = at->mine;
  unsigned k, n = egw_upstream_count(at), best = EGW_NO_UPSTREAM, best_lack = 0;
  struct egw_upstream_info info, best_info = { 0 };
  uint64_t number;
  bool has_block = subject_exists(failover_subject(call, state), egw_head(at), &number);

  n = n < UPSTREAMS_MAX ? n : UPSTREAMS_MAX;
  mine->turn++;
  for (k = 0; k < n; k++) {
    unsigned i = (mine->turn + k) % n, lack;

    if ((never >> i & 1) != 0 || (state->base.only != 0 && (state->base.only >> i & 1) == 0) ||
        !egw_upstream(at, i, &info))
      continue;
    lack = lacks(&info, state->avoid | state->base.avoid, i, has_block ? &number : NULL);
    if (best == EGW_NO_UPSTREAM || lack < best_lack ||
        (lack == best_lack &&
         (info.tier < best_info.tier ||
          (info.tier == best_info.tier && info.in_flight < best_info.in_flight)))) {
      best = i;
      best_lack = lack;
      best_info = info;
    }
  }
  return best_lack > most ? EGW_NO_UPSTREAM : best;
}

int
leg_start(const struct egw_at *at, struct egw_call *call, struct leg *leg, unsigned upstream,
          uint32_t timeout_ms, egw_sub_fn *done)
{
  struct egw_subcall what = {
    .method = egw_method(call),
    .params = egw_params(call),
    .timeout_ms = timeout_ms,
    .below = true,
    .route = { .only = UINT64_C(1) << upstream, .once = true },
    .ticket = &leg->ticket,
  };

  leg->upstream = upstream;
  leg->began_ms = egw_now_ms(at->worker);
  if (egw_subcall(at, call, &what, done, leg) < 0)
    return -1;
  leg->out = true;
  return 0;
}
