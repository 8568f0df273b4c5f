/* SPDX-License-Identifier: MIT */
/* Hedging: when the first attempt takes longer than most do, a second one goes to another
 * upstream; the first good reply wins, and the other attempt is cancelled. null or an error
 * does not win while the other may still know better. */
#include "failover.h"

#include <ethrpc-gw/json.h>

#define NULL_WAIT_MS 500u /* so long a null waits for the other attempt */
#define LEAST_MS 20u
#define DELAY_FOREVER 60000u

struct hedge {
  struct egw_at at;
  struct egw_call *call;
  struct leg leg[2];
  unsigned started;
  bool extra; /* the second one is on the budget */
  bool over;
};

static void on_leg(void *arg, const struct egw_reply *reply);

/* --- when -------------------------------------------------------------------------------- */

static struct latency *
latency_of(const struct egw_at *at, const struct egw_method_info *info)
{
  static const unsigned bounds[COST_BANDS - 1] = { 2, 8, 20 };
  struct mine *mine = at->mine;
  unsigned band = 0;

  while (band < COST_BANDS - 1 && info->cost > bounds[band])
    band++;
  return &mine->latency[band];
}

void
hedge_learn(const struct egw_at *at, const struct egw_call *call, uint64_t ms)
{
  const struct failover *f = at->self;
  const struct egw_method_info *info = egw_method_info(call);

  if (f->hedge && info != NULL && info->idempotent && info->cost <= f->hedge_cost)
    latency_add(latency_of(at, info), ms);
}

static uint64_t
delay(const struct egw_at *at, const struct egw_call *call)
{
  const struct failover *f = at->self;
  uint64_t ms = f->hedge_min;

  if (!latency_quantile(latency_of(at, egw_method_info(call)), f->hedge_quantile, &ms) ||
      ms < f->hedge_min)
    ms = f->hedge_min;
  return ms < DELAY_FOREVER ? ms : DELAY_FOREVER;
}

/* --- attempts ---------------------------------------------------------------------------- */

static bool
start(struct hedge *h, struct state *state, enum lack most)
{
  unsigned upstream = choose_upstream(&h->at, h->call, state, state->tried, most);
  uint64_t left = failover_left_ms(&h->at, h->call);

  /* It ends a little before the call does, so that there is time to say what it came to. */
  left = left > 2 * LEAST_MS ? left - LEAST_MS : left + 1;
  if (upstream == EGW_NO_UPSTREAM ||
      leg_start(&h->at, h->call, &h->leg[h->started], upstream,
                left < UINT32_MAX ? (uint32_t)left : UINT32_MAX, on_leg) < 0)
    return false;
  state->tried |= UINT64_C(1) << upstream;
  state->attempts++;
  h->started++;
  return true;
}

bool
hedge_start(const struct egw_at *at, struct egw_call *call)
{
  const struct failover *f = at->self;
  const struct egw_method_info *info = egw_method_info(call);
  struct state *state = at->state;
  struct hedge *h;

  if (!f->hedge || info == NULL || info->cost > f->hedge_cost || egw_upstream_count(at) < 2)
    return false;
  h = egw_alloc(call, sizeof(*h));
  if (h == NULL)
    return false;
  h->at = *at;
  h->call = call;
  h->leg[0].owner = h->leg[1].owner = h;
  if (!start(h, state, LACK_NOTHING)) { /* nothing is well: the ordinary way knows more */
    state->tried = 0;
    return false;
  }
  state->own = h;
  state->mode = MODE_HEDGE;
  egw_call_timer(at, call, delay(at, call) + 1);
  return true;
}

/* A second attempt beside one that is slow: only where all is well, and on the budget. */
static void
hedge_now(struct hedge *h, struct state *state)
{
  uint64_t waited = egw_now_ms(h->at.worker) - h->leg[0].began_ms;
  struct egw_upstream_info info = { .name = "-" };

  if (!failover_take_extra(&h->at, &h->extra)) {
    egw_explain(h->call, "failover does not hedge: the retry budget is used up");
    return;
  }
  if (!start(h, state, LACK_NOTHING)) {
    failover_give_extra(&h->at, &h->extra);
    return;
  }
  egw_count(&h->at, METRIC_HEDGES, 1);
  egw_upstream(&h->at, h->leg[1].upstream, &info);
  egw_explain(h->call, "failover hedged to %s after %llu ms", info.name,
              (unsigned long long)waited);
}

/* --- the end ----------------------------------------------------------------------------- */

static void
end(struct hedge *h)
{
  unsigned i;

  h->over = true;
  failover_give_extra(&h->at, &h->extra);
  for (i = 0; i < 2; i++)
    if (h->leg[i].out) {
      egw_subcall_cancel(h->at.worker, h->leg[i].ticket);
      h->leg[i].out = false;
    }
}

/* Also used when the call ends in between: see failover_finish(). */
void
hedge_leave(struct state *state)
{
  struct hedge *h = state->own;

  if (!h->over)
    end(h);
}

static bool
is_good(const struct egw_reply *reply, const struct verdict *v)
{
  if (v->class == CLASS_RESULT)
    return egw_json_kind(reply->body) != EGW_JSON_NULL;
  return class_info(v->class)->follows == FOLLOWS_ANSWER;
}

static void
win(struct hedge *h, const struct leg *leg, const struct egw_reply *reply)
{
  if (leg == &h->leg[1] && h->extra) /* a hedge, not the second after a failed first */
    egw_count(&h->at, METRIC_HEDGE_WINS, 1);
  end(h);
  egw_call_timer(&h->at, h->call, 0);
  egw_resume(h->call,
             egw_answer_part(h->call, egw_buf_ref(reply->buf), reply->body, reply->is_error));
}

/* Nobody is left to wait for: the ordinary way goes on from here. */
static void
fall_back(struct hedge *h, const struct egw_reply *reply, const struct verdict *v)
{
  enum egw_verdict verdict;

  end(h);
  egw_call_timer(&h->at, h->call, 0);
  verdict = retry_after(&h->at, h->call, reply, v, false);
  if (verdict != EGW_WAIT)
    egw_resume(h->call, verdict);
}

/* A null that nobody contradicts is the answer. */
static void
give_null(struct hedge *h, struct state *state)
{
  end(h);
  egw_call_timer(&h->at, h->call, 0);
  egw_resume(h->call, telling_answer(&state->telling, h->call));
}

/* The first attempt came to nothing before there was a second one. */
static bool
look_elsewhere(struct hedge *h, struct state *state, bool null)
{
  return h->started == 1 && failover_left_ms(&h->at, h->call) > LEAST_MS &&
         start(h, state, null ? LACK_WISHES : LACK_ALL);
}

static void
on_leg(void *arg, const struct egw_reply *reply)
{
  struct leg *leg = arg;
  struct hedge *h = leg->owner;
  struct state *state = h->at.state;
  struct verdict v =
      witness(&h->at, h->call, state, reply, egw_now_ms(h->at.worker) - leg->began_ms);
  bool null;

  leg->out = false;
  if (is_good(reply, &v)) {
    win(h, leg, reply);
    return;
  }
  telling_note(&state->telling, reply, v.class);
  null = telling_has_words(&state->telling) && !state->telling.is_error;
  if (h->leg[0].out || h->leg[1].out || look_elsewhere(h, state, null)) {
    egw_call_timer(&h->at, h->call, null ? NULL_WAIT_MS : 0);
    return;
  }
  if (null && state->telling.rank > class_info(CLASS_STALE)->rank)
    give_null(h, state);
  else
    fall_back(h, reply, &v);
}

enum egw_verdict
hedge_timer(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;
  struct hedge *h = state->own;

  if (state->telling.known && !state->telling.is_error && telling_has_words(&state->telling)) {
    end(h);
    return telling_answer(&state->telling, call);
  }
  if (h->started == 1)
    hedge_now(h, state);
  return EGW_WAIT;
}
