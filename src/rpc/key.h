/* SPDX-License-Identifier: MIT */
/* Which of a few names a raw key is: by decoded bytes, and fast for keys without escapes. */
#ifndef RPC_KEY_H
#define RPC_KEY_H

#include <string.h>
#include <ethrpc-gw/json.h>

/* Index of the name (a literal: EGW_LIT) that the raw string (with its quotes) `raw` is, or `count`. */
static inline unsigned
rpc_key_find(struct egw_slice raw, const struct egw_slice *names, unsigned count)
{
  unsigned i;

  if (raw.len < 2)
    return count;
  for (i = 0; i < count; i++)
    if (raw.len == names[i].len + 2 && memcmp(raw.ptr + 1, names[i].ptr, names[i].len) == 0)
      return i;
  if (memchr(raw.ptr, '\\', raw.len) != NULL)
    for (i = 0; i < count; i++)
      if (egw_json_equals(raw, names[i].ptr))
        return i;
  return count;
}

#endif
