/* SPDX-License-Identifier: MIT */
/* From a question to its block. Numbers are read as of one snapshot of the head. */
#include "plan.h"

#include <string.h>
#include <strings.h>
#include <ethrpc-gw/json.h>

bool
plan_is_final(const struct egw_head *head, uint64_t number)
{
  return head->known && head->has_finalized && number <= head->finalized.number;
}

/* A number or tag as a number up to the tip. */
static bool
resolve(const struct ask_end *end, const struct plan_terms *terms, uint64_t *number)
{
  const struct egw_head *head = terms->head;

  if (!head->known || (end->kind != ASK_NUMBER && !terms->tags))
    return false;
  if ((end->kind == ASK_SAFE || end->kind == ASK_FINALIZED) && !terms->finality)
    return false;
  switch (end->kind) {
  case ASK_NUMBER:
    *number = end->number;
    break;
  case ASK_LATEST:
    *number = head->tip.number;
    break;
  case ASK_SAFE:
    *number = head->safe.number;
    return head->has_safe;
  case ASK_FINALIZED:
    *number = head->finalized.number;
    return head->has_finalized;
  default:
    return false;
  }
  return *number <= head->tip.number;
}

/* One block, by a number that may have been a tag. */
static bool
plan_block(const struct rules_method *method, bool tag, const struct plan_terms *terms,
           struct plan *out)
{
  bool proof = method->proof != PROOF_NONE;

  if (plan_is_final(terms->head, out->number)) {
    out->form = PLAN_NUMBER;
    out->lasting = true;
    out->rewrite = tag ? REWRITE_NUMBER : REWRITE_NO;
    return true;
  }
  out->form = PLAN_HASH;
  out->numbered = true;
  /* While no upstream is heard of nobody knows what is canonical. */
  if (!terms->head->live || !egw_head_hash(terms->head, out->number, out->hash))
    return false;
  /* The number stays where the result shows its block: routing and read-ahead understand
   * it. */
  if (proof && (!tag || !method->by_hash || !terms->by_hash)) {
    out->rewrite = tag ? REWRITE_NUMBER : REWRITE_NO;
    return true;
  }
  out->rewrite = REWRITE_HASH;
  return method->by_hash && terms->by_hash;
}

static bool
plan_range(const struct rules_method *method, const struct ask *ask,
           const struct plan_terms *terms, struct plan *out)
{
  bool tag = ask->from.kind != ASK_NUMBER || ask->to.kind != ASK_NUMBER;

  if (!resolve(&ask->from, terms, &out->first) || !resolve(&ask->to, terms, &out->number) ||
      out->first > out->number)
    return false;
  if (out->first == out->number)
    return plan_block(method, tag, terms, out);
  out->form = PLAN_RANGE;
  out->rewrite = tag ? REWRITE_NUMBER : REWRITE_NO;
  out->lasting = plan_is_final(terms->head, out->number);
  out->pinned = !out->lasting;
  return out->lasting || (method->ranges && terms->head->live &&
                          egw_head_hash(terms->head, out->number, out->hash));
}

static bool
plan_all(const struct rules_method *method, const struct plan_terms *terms, struct plan *out)
{
  out->form = PLAN_ALL;
  if (method->info->method_class == EGW_CLASS_BY_TX)
    return terms->head->known;
  out->lasting = true;
  return !method->of_chain || terms->head->has_chain_id;
}

bool
plan_make(const struct rules_method *method, const struct ask *ask,
          const struct plan_terms *terms, struct plan *out)
{
  struct ask_end end = { .kind = ask->kind, .number = ask->number };

  *out = (struct plan){ .form = PLAN_ALL };
  switch (ask->kind) {
  case ASK_ALL:
    return plan_all(method, terms, out);
  case ASK_HASH:
    out->form = PLAN_HASH;
    out->lasting = true;
    memcpy(out->hash, ask->hash, 32);
    return true;
  case ASK_RANGE:
    return plan_range(method, ask, terms, out);
  default:
    return resolve(&end, terms, &out->number) &&
           plan_block(method, ask->kind != ASK_NUMBER, terms, out);
  }
}

bool
plan_by_hash(const struct plan *plan, const struct egw_head *head, struct plan *out)
{
  *out = *plan;
  out->form = PLAN_HASH;
  out->numbered = true;
  return plan->form == PLAN_NUMBER && egw_head_hash(head, plan->number, out->hash);
}

/* --- results ----------------------------------------------------------------------------- */

#define PROVE_MAX (1u << 20) /* longer lists are not gone through: that holds up the loop */

/* Whether a block that a result names is the canonical one. Final ones that are so old that
 * their hash is forgotten count as canonical. */
static bool
is_canonical(const struct egw_head *head, const struct rules_block *block)
{
  unsigned char hash[32];

  if (egw_head_hash(head, block->number, hash))
    return memcmp(hash, block->hash, 32) == 0;
  return plan_is_final(head, block->number);
}

/* Whether a block that a result names is the one of the plan. */
static bool
is_planned(const struct plan *plan, const struct egw_head *head,
           const struct rules_block *block)
{
  if (plan->form == PLAN_HASH)
    return memcmp(block->hash, plan->hash, 32) == 0 &&
           (!plan->numbered || block->number == plan->number);
  return block->number == plan->number && is_canonical(head, block);
}

/* Logs and the like of several blocks: all of canonical ones. *last: whether one is of the
 * last block. A node that has that one has its ancestors too. */
static bool
prove_range(const struct plan *plan, const struct egw_head *head, struct egw_slice list,
            bool *last)
{
  struct egw_slice key, value;
  struct rules_block block;
  size_t cursor = 0;

  *last = false;
  while (egw_json_next(list, &cursor, &key, &value)) {
    if (!rules_block(PROOF_LIST, value, &block) || block.number < plan->first ||
        block.number > plan->number || !is_canonical(head, &block))
      return false;
    if (plan->pinned && block.number == plan->number) {
      if (memcmp(block.hash, plan->hash, 32) != 0)
        return false;
      *last = true;
    }
  }
  return true;
}

static enum plan_verdict
judge_range(const struct rules_method *method, const struct plan *plan,
            const struct egw_head *head, struct egw_slice result)
{
  bool last;

  if (result.len > PROVE_MAX || egw_json_kind(result) != EGW_JSON_ARRAY ||
      method->proof != PROOF_LIST)
    return plan->lasting ? PLAN_KEEP_LASTING : PLAN_DROP;
  if (!prove_range(plan, head, result, &last))
    return PLAN_DROP;
  if (plan->lasting)
    return PLAN_KEEP_LASTING;
  return last ? PLAN_KEEP_PINNED : PLAN_DROP;
}

/* One block: what the result says of it, if it says anything. A list is of one block, so
 * its first element speaks for all. */
static enum plan_verdict
judge_block(const struct rules_method *method, const struct plan *plan,
            const struct egw_head *head, struct egw_slice result)
{
  enum plan_verdict keep = plan->lasting ? PLAN_KEEP_LASTING : PLAN_KEEP;
  bool certain = plan->lasting || plan->rewrite == REWRITE_HASH;
  struct rules_block block;

  if (method->proof == PROOF_LIST)
    result = egw_json_element(result, 0);
  if (method->proof == PROOF_NONE)
    return certain ? keep : PLAN_DROP;
  if (!rules_block(method->proof, result, &block))
    return certain && method->proof == PROOF_LIST ? keep : PLAN_WRONG;
  return is_planned(plan, head, &block) ? keep : PLAN_WRONG;
}

static enum plan_verdict
judge_transaction(const struct rules_method *method, const struct ask *ask,
                  const struct egw_head *head, struct egw_slice result,
                      struct rules_block *pin)
{
  struct egw_slice said, asked = egw_json_element(ask->parts[0], 0);

  if (method->proof == PROOF_NONE)
    return rules_hash(asked, pin->hash) ? PLAN_KEEP_IF_FINAL : PLAN_DROP;
  if (method->proof == PROOF_LIST)
    result = egw_json_element(result, 0);
  said = egw_json_member(result, method->subject);
  if (said.len != asked.len || said.len == 0 ||
      strncasecmp(said.ptr, asked.ptr, said.len) != 0)
    return PLAN_DROP;
  if (!rules_block(method->proof, result, pin) || !is_canonical(head, pin))
    return PLAN_DROP;
  if (plan_is_final(head, pin->number))
    return PLAN_KEEP_LASTING;
  return head->live ? PLAN_KEEP_PINNED : PLAN_DROP;
}

static enum plan_verdict
judge_constant(const struct rules_method *method, const struct egw_head *head,
               struct egw_slice result)
{
  uint64_t id;

  if (strcmp(method->info->name, "eth_chainId") == 0 &&
      (egw_json_u64(result, &id) < 0 || id != head->chain_id))
    return PLAN_DROP;
  return PLAN_KEEP_LASTING;
}

/* The number of the last block of the plan. */
static bool
is_empty_final(const struct plan *plan, const struct egw_head *head)
{
  if (plan->form == PLAN_HASH && !plan->numbered)
    return false;
  return plan->form != PLAN_ALL && plan_is_final(head, plan->number);
}

enum plan_verdict
plan_result(const struct rules_method *method, const struct ask *ask, const struct plan *plan,
            const struct egw_head *head, struct egw_slice result, bool archive,
            struct rules_block *pin)
{
  enum egw_json_kind kind = egw_json_kind(result);
  unsigned char hash[32];

  if (kind == EGW_JSON_NONE || kind == EGW_JSON_NULL)
    return PLAN_WRONG;
  if (rules_is_empty(result))
    return archive && is_empty_final(plan, head) ? PLAN_KEEP_LASTING : PLAN_DROP;
  if (plan->form == PLAN_ALL)
    return method->info->method_class == EGW_CLASS_BY_TX
               ? judge_transaction(method, ask, head, result, pin)
               : judge_constant(method, head, result);
  if (plan->form == PLAN_RANGE)
    return judge_range(method, plan, head, result);
  /* What was resolved must still be so: nobody asks for the other one again. */
  if (plan->numbered && (!egw_head_hash(head, plan->number, hash) ||
                         memcmp(hash, plan->hash, 32) != 0))
    return PLAN_DROP;
  return judge_block(method, plan, head, result);
}
