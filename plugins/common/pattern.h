/* SPDX-License-Identifier: MIT */
/* Names of methods as configurations list them: a name, or the beginning of one with '*' behind. Pure;
 * any thread. */
#ifndef COMMON_PATTERN_H
#define COMMON_PATTERN_H

#include <string.h>
#include <ethrpc-gw/plugin.h>

static inline bool
pattern_matches(const char *pattern, struct egw_slice name)
{
  size_t len = strlen(pattern);

  if (len > 0 && pattern[len - 1] == '*')
    return name.len >= len - 1 && memcmp(name.ptr, pattern, len - 1) == 0;
  return name.len == len && memcmp(name.ptr, pattern, len) == 0;
}

/* Whether one of the list does. */
static inline bool
pattern_listed(const struct egw_strings *list, struct egw_slice name)
{
  size_t i;

  for (i = 0; i < list->n; i++)
    if (pattern_matches(list->v[i], name))
      return true;
  return false;
}

#endif
