/* SPDX-License-Identifier: MIT */
/* Metrics of the networks' heads, where they are tracked. */
#include <stddef.h>
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "obs/families.h"
#include "obs/print.h"
#include "upstream/upstream.h"

enum head_value { VALUE_TIP, VALUE_SAFE, VALUE_FINALIZED, VALUE_LIVE, VALUE_PUSHED, VALUE_REORGS };

static const struct head_family {
  const char *name;
  enum print_kind kind;
  enum head_value value;
  const char *help;
} head_families[] = {
  { "head_block", PRINT_GAUGE, VALUE_TIP, "Number of the newest block" },
  { "head_safe_block", PRINT_GAUGE, VALUE_SAFE, "Number of the safe block" },
  { "head_finalized_block", PRINT_GAUGE, VALUE_FINALIZED, "Number of the finalized block" },
  { "head_live", PRINT_GAUGE, VALUE_LIVE, "A node at the tip was heard of lately: 1" },
  { "head_pushed", PRINT_GAUGE, VALUE_PUSHED, "One of them pushes its heads: 1" },
  { "head_reorgs_total", PRINT_COUNTER, VALUE_REORGS, "Reorganisations that took blocks away" },
};

/* false: there is none. */
static bool
value_of(const struct egw_head *head, enum head_value value, int64_t *out)
{
  switch (value) {
  case VALUE_TIP:
    *out = (int64_t)head->tip.number;
    return true;
  case VALUE_SAFE:
    *out = (int64_t)head->safe.number;
    return head->has_safe;
  case VALUE_FINALIZED:
    *out = (int64_t)head->finalized.number;
    return head->has_finalized;
  case VALUE_LIVE:
    *out = head->live;
    return true;
  case VALUE_PUSHED:
    *out = head->pushed;
    return true;
  case VALUE_REORGS:
    *out = (int64_t)head->reorgs;
    return true;
  }
  return false;
}

static int
print_head_family(struct gateway *gateway, struct egw_buf *out, const struct head_family *family)
{
  size_t i;

  if (print_family(out, family->name, family->kind, family->help) != 0)
    return -1;
  for (i = 0; i < gateway->network_count; i++) {
    const struct network *network = &gateway->networks[i];
    struct print_label label = { "network", network->name };
    struct egw_head head;
    int64_t n;

    if (network->head == NULL)
      continue;
    head_peek(network->head, &head);
    if (head.known && value_of(&head, family->value, &n) &&
        print_sample(out, family->name, &label, 1, n) != 0)
      return -1;
  }
  return 0;
}

static int
print_upstream_heads(struct gateway *gateway, struct egw_buf *out)
{
  size_t i;

  if (print_family(out, "upstream_head_block", PRINT_GAUGE,
                   "Number of the newest block an upstream is known to have") != 0)
    return -1;
  for (i = 0; i < gateway->upstream_count; i++) {
    const struct upstream *upstream = &gateway->upstreams[i];
    struct print_label labels[] = { { "network", upstream->network->name },
                                    { "upstream", upstream->name } };
    uint64_t n;

    if (upstream_head(upstream, &n) &&
        print_sample(out, "upstream_head_block", labels, 2, (int64_t)n) != 0)
      return -1;
  }
  return 0;
}

int
print_heads(struct gateway *gateway, struct egw_buf *out)
{
  size_t i;

  for (i = 0; i < sizeof head_families / sizeof head_families[0]; i++)
    if (print_head_family(gateway, out, &head_families[i]) != 0)
      return -1;
  return print_upstream_heads(gateway, out);
}
