/* SPDX-License-Identifier: MIT */
/* What is limited how. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>
#include "../../common/pattern.h"

static int
compare_names(const void *a, const void *b)
{
  return strcmp(((const struct key_rule *)a)->name, ((const struct key_rule *)b)->name);
}

const char *
rules_sort(struct rules *rules)
{
  if (rules->key_count > 1)
    qsort(rules->keys, rules->key_count, sizeof *rules->keys, compare_names);
  for (size_t i = 1; i < rules->key_count; i++)
    if (strcmp(rules->keys[i - 1].name, rules->keys[i].name) == 0)
      return rules->keys[i].name;
  return NULL;
}

const struct rate *
rules_rate(const struct rules *rules, const char *identity)
{
  struct key_rule wanted = { .name = identity };
  const struct key_rule *rule = NULL;

  if (identity == NULL)
    return &rules->each;
  if (rules->key_count > 0)
    rule = bsearch(&wanted, rules->keys, rules->key_count, sizeof *rules->keys, compare_names);
  return rule != NULL ? &rule->rate : &rules->key;
}

unsigned
rules_cost(const struct rules *rules, const struct egw_call *call)
{
  const struct egw_method_info *info;

  for (size_t i = 0; i < rules->cost_count; i++)
    if (pattern_matches(rules->costs[i].method, egw_method(call)))
      return (unsigned)rules->costs[i].calls * RATE_CALL;
  info = egw_method_info(call);
  if (!rules->by_method || info == NULL)
    return RATE_CALL;
  return info->cost > 0 ? info->cost : 1;
}

bool
rules_limit(const struct rules *rules)
{
  bool any = rules->each.gain > 0 || rules->key.gain > 0;

  for (size_t i = 0; i < rules->key_count; i++)
    any = any || rules->keys[i].rate.gain > 0;
  return any;
}

void
rules_free(struct rules *rules)
{
  free(rules->keys);
  free(rules->costs);
  *rules = (struct rules){ .key_count = 0 };
}
