/* SPDX-License-Identifier: MIT */
/* Comparing results with the head. */
#include "onechain.h"

#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>
#include "parts.h"

#define MASK_UPSTREAMS 64u

void
onechain_begin(struct onechain *one, const struct filter *filter, const struct egw_head *head)
{
  one->has_final = head->known && head->has_finalized;
  one->final = head->finalized.number;
  one->has_hash = egw_head_hash(head, filter->to, one->hash);
}

bool
onechain_is_final(const struct onechain *one, uint64_t number)
{
  return one->has_final && number <= one->final;
}

uint64_t
onechain_tail(const struct onechain *one, const struct filter *filter)
{
  if (!onechain_is_final(one, filter->from))
    return filter->from;
  return one->final < filter->to ? one->final + 1 : UINT64_MAX;
}

uint64_t
onechain_behind(const struct filter *filter, const struct egw_at *at)
{
  unsigned i, n = egw_upstream_count(at);
  struct egw_upstream_info info;
  uint64_t mask = 0;

  for (i = 0; i < n && i < MASK_UPSTREAMS; i++)
    if (egw_upstream(at, i, &info) && info.has_head && info.head < filter->to)
      mask |= UINT64_C(1) << i;
  return mask;
}

/* Whether a log (a trace) is of the canonical block, as far as can be told. */
static bool
is_canonical(struct egw_slice element, const struct egw_head *head)
{
  struct egw_slice text = egw_json_member(element, "blockHash");
  unsigned char said[32], hash[32];
  uint64_t number;

  return egw_json_u64(egw_json_member(element, "blockNumber"), &number) < 0 ||
         egw_hex_read(text, said, sizeof(said)) != (long)sizeof(said) ||
         !egw_head_hash(head, number, hash) || memcmp(said, hash, sizeof(hash)) == 0;
}

static bool
part_is_canonical(const struct part *part, const struct egw_head *head)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  while (egw_json_next(part->array, &cursor, &key, &value))
    if (!is_canonical(value, head))
      return false;
  return true;
}

enum onechain_state
onechain_check(const struct onechain *one, const struct filter *filter,
               const struct egw_head *head, const struct part *first)
{
  const struct part *part;
  unsigned char hash[32];

  if (!one->loose || !head->known)
    return ONECHAIN_SAME;
  if (one->has_hash && filter->to > head->tip.number)
    return ONECHAIN_CHANGED;
  /* What is too deep by now to be looked at can't have changed. */
  if (one->has_hash && egw_head_hash(head, filter->to, hash) &&
      memcmp(hash, one->hash, sizeof(hash)) != 0)
    return ONECHAIN_CHANGED;
  for (part = first; part != NULL; part = part->next)
    if (!onechain_is_final(one, part->what.to) && !part_is_canonical(part, head))
      return ONECHAIN_ODD;
  return ONECHAIN_SAME;
}
