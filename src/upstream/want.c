/* SPDX-License-Identifier: MIT */
/* What a call wants of an upstream: which block it must have. The block reference of the params is
 * looked at only where there is a choice of upstreams and the head of the network is known. */
#include <string.h>
#include <ethrpc-gw/eth.h>
#include "head/head.h"
#include "upstream/parts.h"

#define HASH_TEXT 68u   /* "0x..." of 32 bytes with its quotes */

static bool
number_of_hash(const struct head_snapshot *head, struct egw_slice raw, uint64_t *number)
{
  unsigned char hash[32];

  return egw_hex_read(raw, hash, sizeof(hash)) == sizeof(hash) && head_number(head, hash, number);
}

static void
want_tip(struct want *want, const struct network *network, const struct head_snapshot *head)
{
  want->has_block = true;
  want->at_tip = true;
  want->block = head_newest(network->head, head);
}

static bool
is_there(struct egw_slice value)
{
  enum egw_json_kind kind = egw_json_kind(value);

  return kind != EGW_JSON_NONE && kind != EGW_JSON_NULL;
}

/* A number, tag, hash, or object of EIP-1898; missing means the latest. `safe` and `finalized` are
 * asked of a node at the tip too: one that lags may have an older idea of them. */
static void
want_reference(struct want *want, const struct network *network, const struct head_snapshot *head,
               struct egw_slice ref)
{
  struct egw_slice inner;

  if (egw_json_kind(ref) == EGW_JSON_OBJECT) {
    inner = egw_json_member(ref, "blockHash");
    ref = is_there(inner) ? inner : egw_json_member(ref, "blockNumber");
  }
  if (egw_json_kind(ref) != EGW_JSON_STRING) {
    want_tip(want, network, head);
    return;
  }
  if (ref.len == HASH_TEXT) {
    want->known = number_of_hash(head, ref, &want->block);
    want->has_block = true;
    want->hash = true;
    if (!want->known) /* it may be newer than what is known: who has the newest has that too */
      want_tip(want, network, head);
    return;
  }
  if (egw_json_u64(ref, &want->block) == 0) {
    want->has_block = true;
    want->known = want->block <= head_newest(network->head, head);
    return;
  }
  want->latest = egw_json_equals(ref, "latest");
  if (egw_json_equals(ref, "earliest")) {
    want->has_block = want->known = true;
    want->block = 0;
    return;
  }
  want_tip(want, network, head);
}

/* The upper end of a filter is what matters: who has that has the rest, unless it is pruned. */
static void
want_filter(struct want *want, const struct network *network, const struct head_snapshot *head,
            struct egw_slice filter)
{
  struct egw_slice hash = egw_json_member(filter, "blockHash");
  struct egw_slice from = egw_json_member(filter, "fromBlock");
  uint64_t lowest;

  want_reference(want, network, head,
                 is_there(hash) ? hash : egw_json_member(filter, "toBlock"));
  want->known = is_there(hash) && want->known; /* logs of a range: [] can be the truth */
  want->lowest = want->block;
  if (is_there(hash))
    return;
  if (egw_json_equals(from, "earliest"))
    want->lowest = 0;
  else if (egw_json_u64(from, &lowest) == 0)
    want->lowest = lowest;
}

static bool
is_state(const struct egw_method_info *info)
{
  return info->block_kind == EGW_BLOCK_ID || info->block_kind == EGW_BLOCK_FILTER;
}

static void
want_block(struct egw_call *call, struct want *want, const struct head_snapshot *head)
{
  const struct egw_method_info *info = call->info;
  struct egw_slice ref = { NULL, 0 };

  if (info == NULL || info->method_class == EGW_CLASS_CONSTANT ||
      info->method_class == EGW_CLASS_WRITE)
    return;
  if (info->block_param >= 0 && egw_json_kind(call->params) == EGW_JSON_ARRAY)
    ref = egw_json_element(call->params, (size_t)info->block_param);
  switch (info->block_kind) {
  case EGW_BLOCK_FILTER:
    want_filter(want, call->network, head, ref);
    break;
  case EGW_BLOCK_NUMBER:
  case EGW_BLOCK_ID:
  case EGW_BLOCK_HASH:
    want_reference(want, call->network, head, ref);
    want->lowest = want->block;
    break;
  case EGW_BLOCK_NONE:
  case EGW_BLOCK_TX_HASH:
    want_tip(want, call->network, head);
    want->lowest = want->block;
    break;
  }
  want->state = is_state(info);
}

void
want_of(struct egw_call *call)
{
  struct want *want = &call->dispatch.want;
  const struct head_snapshot *head;

  memset(want, 0, sizeof(*want));
  if (call->network->head == NULL || !head_is_tracked(call->network->head))
    return;
  if (atomic_load_explicit(&call->network->head->idle, memory_order_relaxed))
    head_wake(call->network);
  head = head_now(call->worker, call->network);
  if (head->pub.known)
    want_block(call, want, head);
}
