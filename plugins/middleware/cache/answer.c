/* SPDX-License-Identifier: MIT */
/* A reply on its way up. */
#include "cache.h"

#include <string.h>
#include <ethrpc-gw/json.h>

/* An error that says that the node doesn't like the question, not what it found. */
static bool
is_refusal(int64_t code)
{
  return code == -32602 || code == -32600 || code == -32700 || code == -32004;
}

/* Whether an error would be the same had the question been the client's own: a revert is an
 * answer, and limits and unknown methods have nothing to do with the block. */
static bool
is_own_error(const struct egw_reply *reply)
{
  return reply->code == 3 || reply->code == -32005 || reply->code == -32601 ||
         reply->http_status == 429 ||
         (reply->message.ptr != NULL &&
          memmem(reply->message.ptr, reply->message.len, "revert", 6) != NULL);
}

/* The client's own question came back after a rewritten one had come to nothing. */
static void
learn(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct method *m = cache_method(at->mine, egw_method_info(call));
  const struct state *state = at->state;
  uint64_t now = egw_now_ms(at->worker);

  if (state->plan.rewrite != REWRITE_HASH || reply->outcome != EGW_OK || reply->is_error)
    return;
  m->strikes++;
  if (!is_refusal(state->code) && m->strikes < STRIKES)
    return;
  m->off_until = now + (is_refusal(state->code) ? OFF_MS : OFF_SHORT_MS);
  m->strikes = 0;
  egw_count(at, METRIC_REFUSED, 1);
  egw_log(EGW_INFO, "cache",
          "%s: blocks are not given by hash for a while, a node refuses that",
          m->rules.info->name);
}

static enum egw_verdict
resend(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct state *state = at->state;

  if (egw_set_params(call, state->params) < 0)
    return egw_refuse(call, -32603, "out of memory");
  egw_count(at, METRIC_RESENT, 1);
  egw_explain(call, "cache: sent as it was asked");
  state->code = reply->is_error ? reply->code : 0;
  state->phase = PHASE_RESENT;
  return EGW_AGAIN;
}

/* Whether the node that answered has all blocks of the plan. */
static bool
is_archive(const struct egw_at *at, const struct plan *plan, const struct egw_reply *reply)
{
  uint64_t first = plan->form == PLAN_RANGE ? plan->first : plan->number;
  struct egw_upstream_info info;

  return reply->upstream_index != EGW_NO_UPSTREAM &&
         egw_upstream(at, reply->upstream_index, &info) && info.has_lowest &&
         info.lowest <= first;
}

/* A result of so many bytes is kept, if the chain is still the same. */
static bool
may_keep(const struct egw_at *at, const struct egw_reply *reply)
{
  const struct cache *c = at->self;
  const struct state *state = at->state;
  struct key_identity identity;

  key_identity(egw_head(at), &identity);
  return reply->body.len <= c->max_value &&
         memcmp(identity.bytes, state->key.ptr, KEY_IDENTITY) == 0;
}

/* Whether what was found is true for ever. */
static bool
is_for_ever(const struct egw_head *head, const struct store_found *found)
{
  unsigned char hash[32];

  return !found->pinned || (plan_is_final(head, found->pin.number) &&
                            egw_head_hash(head, found->pin.number, hash) &&
                            memcmp(hash, found->pin.hash, 32) == 0);
}

/* Traces and the like of a transaction don't say which block it is in. Its receipt, or
 * itself, may be here and be final. */
static bool
is_final_transaction(const struct egw_at *at, struct egw_call *call, struct egw_slice hash)
{
  static const struct egw_method_info names[] = { { .name = "eth_getTransactionReceipt" },
                                                  { .name = "eth_getTransactionByHash" } };
  const struct state *state = at->state;
  struct ask about = { .kind = ASK_ALL, .part_count = 1, .after = EGW_LIT("") };
  struct store_found found = { .value = NULL };
  struct key_identity identity;
  char *params = egw_alloc(call, hash.len + 2);
  bool final = false;
  size_t i;

  if (params == NULL)
    return false;
  params[0] = '[';
  memcpy(params + 1, hash.ptr, hash.len);
  params[hash.len + 1] = ']';
  about.parts[0] = (struct egw_slice){ params, hash.len + 2 };
  key_identity(egw_head(at), &identity);
  for (i = 0; i < 2 && !final; i++) {
    struct rules_method rules = { .info = &names[i] };
    struct egw_slice key = key_make(call, &identity, &rules, &about, &state->plan);

    if (key.ptr == NULL || !store_get(cache_shared(at)->store, key, &found))
      continue;
    final = is_for_ever(egw_head(at), &found);
    egw_buf_unref(found.value);
  }
  return final;
}

static void
keep(const struct egw_at *at, const struct egw_reply *reply, enum plan_verdict verdict,
     const struct rules_block *block)
{
  const struct state *state = at->state;
  struct store_pin pin = { .number = block->number };
  bool pinned = verdict == PLAN_KEEP_PINNED, lasting = verdict == PLAN_KEEP_LASTING;
  struct egw_buf *copy;

  if (!cache_keeps(at, state->key, reply->body.len, pinned, lasting))
    return;
  /* A copy of its own size: the reply's buffer has its envelope and room to spare. */
  copy = egw_buf_keep(reply->body);
  if (copy == NULL)
    return;
  memcpy(pin.hash, block->hash, 32);
  cache_put(at, state->key, copy, pinned ? &pin : NULL);
  if (lasting)
    cache_lasting(at, state->key, copy);
  egw_buf_unref(copy);
}

/* A result that came in. */
static enum egw_verdict
judge(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct method *m = cache_method(at->mine, egw_method_info(call));
  struct state *state = at->state;
  struct rules_block pin = { .number = state->plan.number };
  enum plan_verdict verdict;
  struct ask ask;

  memcpy(pin.hash, state->plan.hash, 32);
  if (!ask_read(&m->rules, state->params, &ask))
    return EGW_NEXT;
  verdict = plan_result(&m->rules, &ask, &state->plan, egw_head(at), reply->body,
                        is_archive(at, &state->plan, reply), &pin);
  if (verdict == PLAN_WRONG && state->phase == PHASE_REWRITTEN)
    return resend(at, call, reply);
  if (state->plan.rewrite == REWRITE_HASH)
    m->strikes = 0;
  if (verdict == PLAN_KEEP_IF_FINAL)
    verdict = is_final_transaction(at, call, egw_json_element(state->params, 0))
                  ? PLAN_KEEP_LASTING
                  : PLAN_DROP;
  if (verdict >= PLAN_KEEP && may_keep(at, reply))
    keep(at, reply, verdict, &pin);
  return EGW_NEXT;
}

enum egw_verdict
cache_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct state *state = at->state;
  enum egw_verdict verdict = EGW_NEXT;

  if (state->phase == PHASE_CONTROL) {
    cache_flush(at, true);
    state->phase = PHASE_PASS;
  }
  if (state->phase == PHASE_RESENT)
    learn(at, call, reply);
  if (state->phase == PHASE_OMITTED && reply->outcome == EGW_OK && !reply->is_error)
    cache_method(at->mine, egw_method_info(call))->may_omit = true;
  if (state->phase != PHASE_ASKED && state->phase != PHASE_REWRITTEN)
    return EGW_NEXT;
  if (reply->outcome == EGW_OK && reply->is_error && state->phase == PHASE_REWRITTEN &&
      !is_own_error(reply))
    return resend(at, call, reply);
  if (reply->outcome == EGW_OK && !reply->is_error && !reply->partial)
    verdict = judge(at, call, reply);
  /* Stages above see the params they sent down. */
  if (verdict == EGW_NEXT && state->phase == PHASE_REWRITTEN &&
      egw_set_params(call, state->params) < 0)
    return egw_refuse(call, -32603, "out of memory");
  return verdict;
}

