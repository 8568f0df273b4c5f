/* SPDX-License-Identifier: MIT */
/* Reading params. What is read here must be what every node reads, so only the forms are
 * taken that the specification has: a client that writes otherwise is served by the node
 * alone. */
#include "ask.h"

#include <string.h>
#include <ethrpc-gw/json.h>

static bool
is_text(struct egw_slice value, const char *text)
{
  size_t n = strlen(text);

  return value.len == n && memcmp(value.ptr, text, n) == 0;
}

/* A quantity: "0x0", or "0x" and up to 16 digits that don't begin with 0. */
static bool
read_quantity(struct egw_slice value, uint64_t *out)
{
  if (value.len < 5 || value.len > 20 || memcmp(value.ptr, "\"0x", 3) != 0 ||
      (value.ptr[3] == '0' && value.len != 5))
    return false;
  return egw_json_u64(value, out) == 0;
}

/* A number or a tag that can be resolved. */
static bool
read_end(struct egw_slice value, struct ask_end *out)
{
  *out = (struct ask_end){ .kind = ASK_NUMBER };
  if (value.len < 5)
    return false;
  switch (value.ptr[1]) {
  case '0':
    return read_quantity(value, &out->number);
  case 'l':
    out->kind = ASK_LATEST;
    return is_text(value, "\"latest\"");
  case 's':
    out->kind = ASK_SAFE;
    return is_text(value, "\"safe\"");
  case 'f':
    out->kind = ASK_FINALIZED;
    return is_text(value, "\"finalized\"");
  default:
    return false;
  }
}

/* --- objects ----------------------------------------------------------------------------- */

/* The members of an object by their place in `names`, NULL-terminated. false: there is
 * another one, or one twice. Nodes differ in which of two equal keys counts, and some take
 * keys in any case. */
static bool
read_members(struct egw_slice object, const char *const *names, struct egw_slice *out)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  while (egw_json_next(object, &cursor, &key, &value)) {
    unsigned i = 0;

    while (names[i] != NULL && !(key.len == strlen(names[i]) + 2 &&
                                 memcmp(key.ptr + 1, names[i], key.len - 2) == 0))
      i++;
    if (names[i] == NULL || out[i].ptr != NULL)
      return false;
    out[i] = value;
  }
  return true;
}

/* EIP-1898. */
static bool
read_object(struct egw_slice object, struct ask *out)
{
  static const char *const names[] = { "blockHash", "blockNumber", "requireCanonical", NULL };
  struct egw_slice m[3] = { { NULL, 0 } };

  if (!read_members(object, names, m) ||
      (m[2].ptr != NULL && egw_json_kind(m[2]) != EGW_JSON_FALSE))
    return false;
  if (m[0].ptr != NULL) {
    out->kind = ASK_HASH;
    return m[1].ptr == NULL && rules_hash(m[0], out->hash);
  }
  out->kind = ASK_NUMBER;
  return m[1].ptr != NULL && read_quantity(m[1], &out->number);
}

static bool
read_id(const struct rules_method *method, struct egw_slice value, struct ask *out)
{
  enum egw_block_kind kind = method->info->block_kind;
  struct ask_end end;

  if (value.ptr[0] == '{')
    return kind == EGW_BLOCK_ID && read_object(value, out);
  if (rules_hash(value, out->hash)) {
    out->kind = ASK_HASH;
    return kind == EGW_BLOCK_ID || kind == EGW_BLOCK_HASH;
  }
  if (kind == EGW_BLOCK_HASH || !read_end(value, &end))
    return false;
  out->kind = end.kind;
  out->number = end.number;
  return true;
}

/* --- filters ----------------------------------------------------------------------------- */

enum { FILTER_HASH, FILTER_FROM, FILTER_TO, FILTER_BLOCKS };

static const char *const filter_names[] = {
  "blockHash", "fromBlock", "toBlock", "address", "topics", "fromAddress", "toAddress",
      "after",
  "count", "mode", NULL
};

/* All members but those that say which blocks. */
static bool
read_rest(struct egw_slice filter, const struct egw_slice *blocks, struct ask *out)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  out->filter = true;
  while (egw_json_next(filter, &cursor, &key, &value)) {
    unsigned i = 0;

    while (i < FILTER_BLOCKS && value.ptr != blocks[i].ptr)
      i++;
    if (i < FILTER_BLOCKS)
      continue;
    if (out->part_count == ASK_PARTS)
      return false;
    out->parts[out->part_count++] =
        (struct egw_slice){ key.ptr, (size_t)(value.ptr + value.len - key.ptr) };
  }
  return true;
}

static bool
read_filter(const struct rules_method *method, struct egw_slice filter, struct ask *out)
{
  struct egw_slice m[10] = { { NULL, 0 } };

  if (filter.ptr[0] != '{' || !read_members(filter, filter_names, m) ||
      !read_rest(filter, m, out))
    return false;
  if (m[FILTER_HASH].ptr != NULL) {
    out->kind = ASK_HASH;
    return m[FILTER_FROM].ptr == NULL && m[FILTER_TO].ptr == NULL &&
           rules_hash(m[FILTER_HASH], out->hash);
  }
  out->kind = ASK_RANGE;
  out->to = (struct ask_end){ .kind = ASK_LATEST };
  if (m[FILTER_FROM].ptr == NULL || !read_end(m[FILTER_FROM], &out->from))
    return false;
  return m[FILTER_TO].ptr == NULL ? method->ranges : read_end(m[FILTER_TO], &out->to);
}

/* --- the array --------------------------------------------------------------------------- */

static struct egw_slice
trim_end(const char *p, const char *end)
{
  while (end > p && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\r' || end[-1] == '\t'))
    end--;
  return (struct egw_slice){ p, (size_t)(end - p) };
}

/* What is behind `p` up to the closing bracket. */
static struct egw_slice
read_after(struct egw_slice params, const char *p)
{
  struct egw_slice all = trim_end(params.ptr, params.ptr + params.len);

  while (p < all.ptr + all.len - 1 && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    p++;
  return trim_end(p, all.ptr + all.len - 1);
}

static bool
read_array(const struct rules_method *method, struct egw_slice params, struct ask *out)
{
  struct egw_slice key, value;
  size_t cursor = 0, at = (size_t)method->info->block_param;

  while (egw_json_next(params, &cursor, &key, &value)) {
    if (out->part_count < at) {
      out->parts[out->part_count++] = value;
      continue;
    }
    out->after = read_after(params, value.ptr + value.len);
    if (method->info->block_kind != EGW_BLOCK_FILTER)
      return read_id(method, value, out);
    return at == 0 && out->after.len == 0 && read_filter(method, value, out);
  }
  out->after = EGW_LIT("");
  out->kind = ASK_LATEST;
  out->omitted = true;
  return method->optional && out->part_count == at;
}

bool
ask_read(const struct rules_method *method, struct egw_slice params, struct ask *out)
{
  int at = method->info->block_param;

  out->part_count = 0;
  out->filter = out->omitted = false;
  if (egw_json_kind(params) != EGW_JSON_ARRAY)
    return false;
  if (method->info->method_class == EGW_CLASS_CONSTANT ||
      method->info->method_class == EGW_CLASS_BY_TX) {
    out->kind = ASK_ALL;
    out->after = EGW_LIT("");
    out->parts[out->part_count++] = trim_end(params.ptr, params.ptr + params.len);
    return true;
  }
  return at >= 0 && at < (int)ASK_PARTS && read_array(method, params, out);
}
