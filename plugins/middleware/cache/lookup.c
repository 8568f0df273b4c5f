/* SPDX-License-Identifier: MIT */
/* A call on its way down. */
#include "cache.h"

#include <string.h>

/* Whether an entry is true now. One whose block has become final stays for ever; one whose
 * block is not canonical goes. */
static bool
holds(const struct egw_at *at, struct egw_slice key, const struct store_found *found)
{
  const struct egw_head *head = egw_head(at);
  struct shared *shared = cache_shared(at);
  struct store_change change = { 0 };
  unsigned char hash[32];

  if (!found->pinned)
    return true;
  if (!egw_head_hash(head, found->pin.number, hash))
    return false;
  if (memcmp(hash, found->pin.hash, 32) != 0) {
    if (store_drop(shared->store, key, &found->pin, &change))
      egw_count(at, METRIC_REORGED, 1);
    cache_count(at, &change);
    return false;
  }
  if (!plan_is_final(head, found->pin.number))
    return head->live;
  if (store_unpin(shared->store, key, &found->pin))
    cache_lasting(at, key, found->value);
  return true;
}

static struct egw_buf *
look_up(const struct egw_at *at, struct egw_slice key)
{
  struct store_found found;

  if (!store_get(cache_shared(at)->store, key, &found))
    return NULL;
  if (holds(at, key, &found))
    return found.value;
  egw_buf_unref(found.value);
  return NULL;
}

static enum egw_verdict
hit(const struct egw_at *at, struct egw_call *call, struct egw_buf *value)
{
  egw_count(at, METRIC_HITS, 1);
  egw_count(at, METRIC_HIT_BYTES, (int64_t)egw_buf_slice(value).len);
  egw_set_cache_status(call, "hit");
  return egw_answer_part(call, value, egw_buf_slice(value), false);
}

static enum egw_verdict
bypass(const struct egw_at *at, struct egw_call *call)
{
  egw_count(at, METRIC_BYPASSES, 1);
  egw_set_cache_status(call, "bypass");
  return EGW_NEXT;
}

/* --- on the way down --------------------------------------------------------------------- */

/* What is safe and final is asked of the node after each new head: so long the head may still
 * have what it was before. */
#define FINALITY_MS 1000u

static bool
tags_now(const struct cache *c, const struct egw_head *head)
{
  if (!head->known || !head->live || !head->settled)
    return false;
  return c->tags == TAGS_ALWAYS || (c->tags == TAGS_AUTO && head->pushed);
}

static enum egw_verdict
answer_tip(const struct egw_at *at, struct egw_call *call)
{
  const struct egw_head *head = egw_head(at);
  struct mine *mine = at->mine;

  if (!tags_now(at->self, head))
    return bypass(at, call);
  if (mine->tip == NULL || mine->tip_number != head->tip.number) {
    egw_buf_unref(mine->tip);
    mine->tip = egw_buf_new(24);
    mine->tip_number = head->tip.number;
    if (mine->tip == NULL ||
        egw_buf_printf(mine->tip, "\"0x%llx\"", (unsigned long long)head->tip.number) < 0) {
      egw_buf_unref(mine->tip);
      mine->tip = NULL;
      return bypass(at, call);
    }
  }
  return hit(at, call, egw_buf_ref(mine->tip));
}

/* Nothing was found: the call goes to the node, in other words where that is needed. */
static enum egw_verdict
cache_miss(const struct egw_at *at, struct egw_call *call)
{
  const struct method *m = cache_method(at->mine, egw_method_info(call));
  struct state *state = at->state;
  struct egw_slice params;
  struct ask ask;

  egw_count(at, METRIC_MISSES, 1);
  egw_set_cache_status(call, "miss");
  state->params = egw_params(call);
  if (state->plan.rewrite == REWRITE_NO) {
    state->phase = PHASE_ASKED;
    return EGW_NEXT;
  }
  if (!ask_read(&m->rules, state->params, &ask))
    return EGW_NEXT;
  params = key_rewrite(call, &ask, &state->plan);
  if (params.ptr == NULL || egw_set_params(call, params) < 0)
    return EGW_NEXT; /* no memory: as it is, and it is not kept */
  egw_explain(call, "cache: asked for block %llu by its %s",
              (unsigned long long)state->plan.number,
              state->plan.rewrite == REWRITE_HASH ? "hash" : "number");
  egw_count(at, METRIC_REWRITTEN, 1);
  state->phase = PHASE_REWRITTEN;
  return EGW_NEXT;
}

/* A final block's answer may be here under the block's hash, from before it was final. */
static struct egw_buf *
look_up_by_hash(const struct egw_at *at, struct egw_call *call,
                const struct rules_method *rules,
                const struct ask *ask)
{
  const struct state *state = at->state;
  struct key_identity identity;
  struct egw_buf *value;
  struct egw_slice key;
  struct plan plan;

  if (!plan_by_hash(&state->plan, egw_head(at), &plan))
    return NULL;
  key_identity(egw_head(at), &identity);
  key = key_make(call, &identity, rules, ask, &plan);
  value = key.ptr == NULL ? NULL : look_up(at, key);
  if (value != NULL) {
    cache_put(at, state->key, value, NULL);
    cache_lasting(at, state->key, value);
  }
  return value;
}

/* What the tiers below said to a call that waited for them. */
static void
on_tiers(const struct egw_at *at, struct egw_call *call, struct egw_buf *value)
{
  const struct state *state = at->state;

  if (value == NULL) {
    egw_resume(call, cache_miss(at, call));
    return;
  }
  cache_put(at, state->key, value, NULL);
  egw_resume(call, hit(at, call, value));
}

/* Not in memory: what can't change may be in the tiers below. Whether that is so of a
 * transaction, only its answer can tell. */
static enum egw_verdict
look_below(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  if ((state->plan.lasting || state->plan.form == PLAN_ALL) && cache_is_of_chain(state->key) &&
      tiers_look(((struct mine *)at->mine)->tiers, at, call, state->key, &state->wait,
                 on_tiers))
    return EGW_WAIT;
  return cache_miss(at, call);
}

void
cache_cancel(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  tiers_cancel(&((struct state *)at->state)->wait);
}

static enum egw_verdict
look(const struct egw_at *at, struct egw_call *call, const struct method *m)
{
  const struct egw_head *head = egw_head(at);
  struct state *state = at->state;
  struct plan_terms terms = { .head = head, .tags = tags_now(at->self, head),
                              .finality = cache_tip_age(at, head) >= FINALITY_MS,
                              .by_hash = egw_now_ms(at->worker) >= m->off_until };
  struct key_identity identity;
  struct egw_buf *value;
  struct ask ask;

  if (!ask_read(&m->rules, egw_params(call), &ask) ||
      !plan_make(&m->rules, &ask, &terms, &state->plan))
    return bypass(at, call);
  if (ask.omitted && !m->may_omit) { /* some nodes want the block to be named */
    state->phase = PHASE_OMITTED;
    return bypass(at, call);
  }
  state->cleared = store_cleared(cache_shared(at)->store);
  key_identity(head, &identity);
  state->key = key_make(call, &identity, &m->rules, &ask, &state->plan);
  if (state->key.ptr == NULL)
    return bypass(at, call);
  value = look_up(at, state->key);
  if (value == NULL)
    value = look_up_by_hash(at, call, &m->rules, &ask);
  return value != NULL ? hit(at, call, value) : look_below(at, call);
}

enum egw_verdict
cache_request(const struct egw_at *at, struct egw_call *call)
{
  struct method *m = cache_method(at->mine, egw_method_info(call));
  struct state *state = at->state;

  if (m->rules.control) {
    cache_flush(at, true);
    state->phase = PHASE_CONTROL;
    return EGW_NEXT;
  }
  if (egw_kind(call) == EGW_KIND_NOTIFICATION)
    return EGW_NEXT;
  return m->rules.tip ? answer_tip(at, call) : look(at, call, m);
}

