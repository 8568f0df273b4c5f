/* SPDX-License-Identifier: MIT */
/* Printing keys and params. A NUL stands between the parts of a key: JSON has none, so no
 * two questions join to the same bytes. */
#include "key.h"

#include <string.h>

bool
key_identity(const struct egw_head *head, struct key_identity *out)
{
  unsigned i;

  memset(out, 0, sizeof(*out));
  if (!head->has_chain_id || !head->has_genesis)
    return false;
  for (i = 0; i < 8; i++)
    out->bytes[i] = (unsigned char)(head->chain_id >> (56 - 8 * i));
  memcpy(out->bytes + 8, head->genesis, 32);
  return true;
}

/* A place to write to that is known to be large enough. */
struct out {
  char *p;
};

static void
put(struct out *out, const void *bytes, size_t len)
{
  if (len == 0)
    return;
  memcpy(out->p, bytes, len);
  out->p += len;
}

static void
put_text(struct out *out, const char *text)
{
  put(out, text, strlen(text));
}

static void
put_number(struct out *out, uint64_t n)
{
  unsigned i;

  for (i = 0; i < 8; i++)
    *out->p++ = (char)(unsigned char)(n >> (56 - 8 * i));
}

/* Bytes of the question's parts, each with one byte more. */
static size_t
size_of(const struct ask *ask)
{
  size_t size = ask->after.len + 1;
  unsigned i;

  for (i = 0; i < ask->part_count; i++)
    size += ask->parts[i].len + 1;
  return size; /* all of these are parts of one text in memory: no overflow */
}

struct egw_slice
key_make(struct egw_call *call, const struct key_identity *identity,
         const struct rules_method *method, const struct ask *ask, const struct plan *plan)
{
  static const char forms[] = { [PLAN_ALL] = 'a', [PLAN_NUMBER] = 'n', [PLAN_HASH] = 'h',
                                [PLAN_RANGE] = 'r' };
  size_t name = strlen(method->info->name);
  size_t size = KEY_IDENTITY + 1 + 32 + name + 1 + size_of(ask);
  char *bytes = egw_alloc(call, size);
  struct out out = { bytes };
  unsigned i;

  if (bytes == NULL)
    return (struct egw_slice){ NULL, 0 };
  put(&out, identity->bytes, KEY_IDENTITY);
  put(&out, &forms[plan->form], 1);
  if (plan->form == PLAN_HASH)
    put(&out, plan->hash, 32);
  if (plan->form == PLAN_RANGE)
    put_number(&out, plan->first);
  if (plan->form == PLAN_RANGE || plan->form == PLAN_NUMBER)
    put_number(&out, plan->number);
  put(&out, method->info->name, name);
  for (i = 0; i < ask->part_count; i++) {
    put(&out, "", 1);
    put(&out, ask->parts[i].ptr, ask->parts[i].len);
  }
  put(&out, "", 1);
  put(&out, ask->after.ptr, ask->after.len);
  return (struct egw_slice){ bytes, (size_t)(out.p - bytes) };
}

/* --- params ------------------------------------------------------------------------------ */

static const char digits[] = "0123456789abcdef";

static void
put_quantity(struct out *out, uint64_t n)
{
  unsigned shift = 60;

  put_text(out, "\"0x");
  while (shift > 0 && n >> shift == 0)
    shift -= 4;
  for (;; shift -= 4) {
    *out->p++ = digits[n >> shift & 15];
    if (shift == 0)
      break;
  }
  put_text(out, "\"");
}

static void
put_hash(struct out *out, const unsigned char hash[32])
{
  unsigned i;

  put_text(out, "\"blockHash\":\"0x");
  for (i = 0; i < 32; i++) {
    *out->p++ = digits[hash[i] >> 4];
    *out->p++ = digits[hash[i] & 15];
  }
  put_text(out, "\"");
}

static void
put_block(struct out *out, const struct ask *ask, const struct plan *plan)
{
  uint64_t first = plan->form == PLAN_RANGE ? plan->first : plan->number;

  if (plan->rewrite == REWRITE_HASH) {
    put_text(out, ask->filter ? "" : "{");
    put_hash(out, plan->hash);
    put_text(out, ask->filter ? "" : "}");
    return;
  }
  if (ask->filter) {
    put_text(out, "\"fromBlock\":");
    put_quantity(out, first);
    put_text(out, ",\"toBlock\":");
  }
  put_quantity(out, plan->number);
}

struct egw_slice
key_rewrite(struct egw_call *call, const struct ask *ask, const struct plan *plan)
{
  char *text = egw_alloc(call, size_of(ask) + 128);
  struct out out = { text };
  unsigned i;

  if (text == NULL)
    return (struct egw_slice){ NULL, 0 };
  put_text(&out, ask->filter ? "[{" : "[");
  for (i = 0; i < ask->part_count; i++) {
    put(&out, ask->parts[i].ptr, ask->parts[i].len);
    put_text(&out, ",");
  }
  put_block(&out, ask, plan);
  put_text(&out, ask->filter ? "}" : "");
  put(&out, ask->after.ptr, ask->after.len);
  put_text(&out, "]");
  return (struct egw_slice){ text, (size_t)(out.p - text) };
}
