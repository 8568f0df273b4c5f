/* SPDX-License-Identifier: MIT */
/* Whether a call is sent again, where and when. Another upstream comes first; the same one
 * only after a pause, on a fresh connection. The first move to another upstream is free: that
 * is where the call would have gone had the first one been down. All that goes beyond is on
 * the budget. */
#include "failover.h"

#define LEAST_MS 20u  /* with less than that left nothing is begun */
#define DENIED_MAX 5u /* times the budget may say no before the call gives up */
#define DOUBLINGS_MAX 5u
#define MISSING_FIRST_MS 50u
#define RATE_FIRST_MS 500u

struct plan {
  bool send;
  uint64_t ms; /* after a pause */
  struct egw_route route;
  bool extra; /* on the budget */
};

/* xorshift32. */
uint64_t
retry_jitter(struct mine *mine, uint64_t ms)
{
  uint32_t x = mine->seed != 0 ? mine->seed : 0x9e3779b9u;

  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  mine->seed = x;
  return ms / 2 + (ms * (x >> 16) >> 16);
}

static uint64_t
doubled(uint64_t ms, unsigned times)
{
  return ms << (times < DOUBLINGS_MAX ? times : DOUBLINGS_MAX);
}

static uint64_t
all_of(const struct egw_at *at, const struct state *state)
{
  unsigned n = egw_upstream_count(at);
  uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;

  return state->base.only != 0 ? state->base.only & all : all;
}

/* Those of `mask` that can have the block, as far as is known. */
static uint64_t
having(const struct egw_at *at, uint64_t mask, uint64_t number)
{
  unsigned i;
  struct egw_upstream_info info;

  for (i = 0; i < 64; i++)
    if ((mask >> i & 1) != 0 && egw_upstream(at, i, &info) && info.has_head &&
        info.head < number)
      mask &= ~(UINT64_C(1) << i);
  return mask;
}

static void
plan_route(const struct egw_at *at, const struct state *state, uint64_t only, struct plan *out)
{
  const struct failover *f = at->self;
  struct breaker_view view;

  breakers_view(f->breakers, at, &f->breaker, false, false, &view);
  out->send = true;
  out->route = (struct egw_route){ .only = only,
                                   .avoid = state->base.avoid | view.avoid,
                                   .once = true };
}

static void
plan_elsewhere(const struct egw_at *at, const struct state *state, uint64_t others,
               struct plan *out)
{
  plan_route(at, state, others, out);
  out->extra = state->attempts > 1;
}

/* Everybody was asked: the same again, but not the one that failed last while there are
 * others. */
static void
plan_again(const struct egw_at *at, struct state *state, const struct egw_reply *reply,
           uint64_t ms, struct plan *out)
{
  uint64_t all = all_of(at, state), last = 0;

  if (reply->upstream_index < 64)
    last = UINT64_C(1) << reply->upstream_index;
  state->tried = (all & ~last) != 0 ? last : 0;
  plan_route(at, state, all & ~state->tried, out);
  out->route.fresh = reply->outcome != EGW_OK;
  out->ms = ms;
  out->extra = true;
}

static void
plan_broken(const struct egw_at *at, struct state *state, const struct egw_reply *reply,
            struct plan *out)
{
  const struct failover *f = at->self;
  /* A kept connection that the node had closed: no reason to wait. */
  bool stale = reply->outcome == EGW_MAYBE_SENT && state->pauses == 0;

  plan_again(at, state, reply,
             stale ? 0 : retry_jitter(at->mine, doubled(f->backoff, state->pauses)), out);
}

/* The node names a time, or a guess is made. */
static void
plan_later(const struct egw_at *at, struct state *state, const struct egw_reply *reply,
           struct plan *out)
{
  uint64_t ms = reply->retry_after_ms != 0
                    ? reply->retry_after_ms + retry_jitter(at->mine, RATE_FIRST_MS / 10)
                    : retry_jitter(at->mine, doubled(RATE_FIRST_MS, state->pauses));

  plan_again(at, state, reply, ms, out);
  state->tried = 0; /* whoever is calm by then */
  out->route.only = state->base.only;
}

/* At first soon, since announcing and having are moments apart; then ever more slowly, up to
 * the time between blocks. */
static uint64_t
missing_pace(const struct egw_at *at, const struct state *state)
{
  uint64_t block = egw_head(at)->block_ms, ms = doubled(MISSING_FIRST_MS, state->pauses);

  if (block == 0)
    block = 1000;
  return retry_jitter(at->mine, ms < block ? ms : block);
}

static void
plan_missing(const struct egw_at *at, struct egw_call *call, struct state *state,
             const struct egw_reply *reply, uint64_t others, struct plan *out)
{
  const struct failover *f = at->self;
  uint64_t number = 0, ms, now = egw_now_ms(at->worker);
  bool exists = subject_exists(failover_subject(call, state), egw_head(at), &number);

  if (exists)
    others = having(at, others, number);
  if ((!exists && state->attempts > 1 && failover_subject(call, state)->kind != SUBJECT_HASH) ||
      state->moves >= egw_upstream_count(at))
    others = 0; /* all were asked; for a number that may not exist one look is enough */
  if (others != 0) {
    plan_elsewhere(at, state, others, out);
    out->extra = false; /* as many as there are upstreams, at most */
    return;
  }
  if (!exists)
    return;
  if (state->missing_ms == 0)
    state->missing_ms = now;
  ms = missing_pace(at, state);
  if (now + ms - state->missing_ms > f->missing_wait)
    return;
  plan_again(at, state, reply, ms, out);
  state->tried = 0;
  out->route.only = state->base.only;
}

static void
plan(const struct egw_at *at, struct egw_call *call, struct state *state,
     const struct egw_reply *reply, const struct verdict *v, struct plan *out)
{
  const struct failover *f = at->self;
  enum follows follows = class_info(v->class)->follows;
  uint64_t others = all_of(at, state) & ~state->tried;

  *out = (struct plan){ 0 };
  if (follows == FOLLOWS_ANSWER)
    return;
  if (follows == FOLLOWS_MISSING) {
    plan_missing(at, call, state, reply, others, out);
    return;
  }
  if ((int64_t)state->attempts >= f->attempts)
    return;
  if (others != 0)
    plan_elsewhere(at, state, others, out);
  else if (follows == FOLLOWS_AGAIN)
    plan_broken(at, state, reply, out);
  else if (follows == FOLLOWS_LATER)
    plan_later(at, state, reply, out);
}

/* --- carrying it out --------------------------------------------------------------------- */

static enum egw_verdict
give_up(struct egw_call *call, struct state *state, const char *why)
{
  egw_explain(call, "failover %s", why);
  return telling_answer(&state->telling, call);
}

static enum egw_verdict
send_now(const struct egw_at *at, struct egw_call *call, struct state *state)
{
  const struct failover *f = at->self;

  if (state->needs_extra && !failover_take_extra(at, &state->extra)) {
    uint64_t ms = retry_jitter(at->mine, doubled(f->backoff, state->denied));

    if (++state->denied > DENIED_MAX || failover_left_ms(at, call) < ms + LEAST_MS)
      return give_up(call, state, "gives up: the retry budget is used up");
    egw_explain(call, "failover waits %llu ms for the retry budget", (unsigned long long)ms);
    egw_call_timer(at, call, ms + 1);
    return EGW_WAIT;
  }
  state->mode = MODE_PLAIN;
  state->attempts++;
  state->began_ms = egw_now_ms(at->worker);
  egw_count(at, METRIC_RETRIES, 1);
  egw_route(call, &state->next);
  return EGW_AGAIN;
}

static enum egw_verdict
carry_out(const struct egw_at *at, struct egw_call *call, struct state *state,
          const struct plan *p)
{
  state->mode = MODE_PLAIN;
  state->next = p->route;
  state->needs_extra = p->extra;
  state->moves++;
  if (p->ms == 0)
    return send_now(at, call, state);
  state->moves = 0;
  state->pauses++;
  egw_count(at, METRIC_PAUSES, 1);
  egw_explain(call, "failover asks again in %llu ms", (unsigned long long)p->ms);
  egw_call_timer(at, call, p->ms + 1);
  return EGW_WAIT;
}

enum egw_verdict
retry_paused(const struct egw_at *at, struct egw_call *call)
{
  return send_now(at, call, at->state);
}

enum egw_verdict
retry_after(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply,
            const struct verdict *v, bool here)
{
  struct state *state = at->state;
  bool best = telling_note(&state->telling, reply, v->class);
  struct plan p;

  failover_give_extra(at, &state->extra);
  if (reply->upstream_index < 64)
    state->tried |= UINT64_C(1) << reply->upstream_index;
  plan(at, call, state, reply, v, &p);
  if (p.send && failover_left_ms(at, call) >= p.ms + LEAST_MS)
    return carry_out(at, call, state, &p);
  if (here && best)
    return EGW_NEXT;
  return give_up(call, state, "gives the reply that tells most");
}
