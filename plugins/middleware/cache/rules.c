/* SPDX-License-Identifier: MIT */
/* Which answers may be kept for ever.
 *
 *  - constants of the chain;
 *  - whatever names its block by hash, unless it asks whether the block is still canonical
 *    (EIP-1898, requireCanonical);
 *  - whatever names its block, or both ends of its range, by a number that is finalized;
 *  - transactions and receipts whose block, named in the result, is finalized.
 *
 * Never: tags and left out block references (they move), null (it may come to be), an empty array
 * (a node that is still indexing answers so), errors, replies in pieces. */
#include "rules.h"

#include <string.h>
#include <strings.h>
#include <ethrpc-gw/json.h>

bool
rules_want(const struct egw_method_info *method)
{
  if (method == NULL || !method->idempotent || method->changes_node)
    return false;
  switch (method->method_class) {
  case EGW_CLASS_CONSTANT:
  case EGW_CLASS_BY_HASH:
  case EGW_CLASS_BY_BLOCK:
  case EGW_CLASS_BY_TX:
  case EGW_CLASS_RANGE:
    return true;
  default:
    return false;
  }
}

/* "0x" and 64 hex digits. */
static bool
is_hash(struct egw_slice value)
{
  size_t i;

  if (value.len != 68 || memcmp(value.ptr, "\"0x", 3) != 0)
    return false;
  for (i = 3; i < 67; i++) {
    char c = value.ptr[i];

    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
      return false;
  }
  return true;
}

/* Whether the object's keys are all among `names`, none of them twice. Nodes differ in which of two
 * equal keys counts, and some take keys in any case: what is read here must be what they read. */
static bool
only_known(struct egw_slice object, const char *const *names)
{
  struct egw_slice key, value;
  unsigned seen = 0;
  size_t cursor = 0;

  while (egw_json_next(object, &cursor, &key, &value)) {
    unsigned i = 0;

    while (names[i] != NULL && !egw_json_equals(key, names[i]))
      i++;
    if (names[i] == NULL || (seen >> i & 1) != 0)
      return false;
    seen |= 1u << i;
  }
  return true;
}

static bool
is_final_number(struct egw_slice value, bool known, uint64_t finalized)
{
  uint64_t n;

  return known && egw_json_u64(value, &n) == 0 && n <= finalized;
}

/* EIP-1898. */
static enum keep
judge_object(struct egw_slice object, bool known, uint64_t finalized)
{
  struct egw_slice hash = egw_json_member(object, "blockHash");
  struct egw_slice canonical = egw_json_member(object, "requireCanonical");
  struct egw_slice number = egw_json_member(object, "blockNumber");
  static const char *const names[] = { "blockHash", "requireCanonical", "blockNumber", NULL };

  if (!only_known(object, names))
    return KEEP_NO;
  if (hash.ptr != NULL)
    return is_hash(hash) && number.ptr == NULL &&
                   (canonical.ptr == NULL || egw_json_kind(canonical) == EGW_JSON_FALSE)
               ? KEEP_RESULT
               : KEEP_NO;
  return is_final_number(number, known, finalized) ? KEEP_RESULT : KEEP_NO;
}

static enum keep
judge_block(const struct egw_method_info *method, struct egw_slice block, bool known,
            uint64_t finalized)
{
  if (egw_json_kind(block) == EGW_JSON_OBJECT)
    return method->block_kind == EGW_BLOCK_ID ? judge_object(block, known, finalized) : KEEP_NO;
  if (is_hash(block)) /* a hash would not fit into a number of 64 bits */
    return method->block_kind == EGW_BLOCK_ID ? KEEP_RESULT : KEEP_NO;
  return is_final_number(block, known, finalized) ? KEEP_RESULT : KEEP_NO;
}

static enum keep
judge_range(struct egw_slice filter, bool known, uint64_t finalized)
{
  static const char *const names[] = { "blockHash", "fromBlock", "toBlock", "address", "topics",
                                       NULL };
  struct egw_slice hash;

  if (egw_json_kind(filter) != EGW_JSON_OBJECT || !only_known(filter, names))
    return KEEP_NO;
  hash = egw_json_member(filter, "blockHash");
  if (hash.ptr != NULL)
    return is_hash(hash) && egw_json_member(filter, "fromBlock").ptr == NULL &&
                   egw_json_member(filter, "toBlock").ptr == NULL
               ? KEEP_RESULT
               : KEEP_NO;
  return is_final_number(egw_json_member(filter, "fromBlock"), known, finalized) &&
                 is_final_number(egw_json_member(filter, "toBlock"), known, finalized)
             ? KEEP_RESULT
             : KEEP_NO;
}

enum keep
rules_params(const struct egw_method_info *method, struct egw_slice params, bool known,
             uint64_t finalized)
{
  struct egw_slice block = { NULL, 0 };

  if (method->method_class == EGW_CLASS_CONSTANT)
    return KEEP_RESULT;
  if (method->method_class == EGW_CLASS_BY_TX)
    return known ? KEEP_IF_FINAL : KEEP_NO;
  if (method->block_param < 0 || egw_json_kind(params) != EGW_JSON_ARRAY)
    return KEEP_NO;
  block = egw_json_element(params, (size_t)method->block_param);
  if (block.ptr == NULL)
    return KEEP_NO;
  switch (method->method_class) {
  case EGW_CLASS_BY_HASH:
    return is_hash(block) ? KEEP_RESULT : KEEP_NO;
  case EGW_CLASS_BY_BLOCK:
    return judge_block(method, block, known, finalized);
  case EGW_CLASS_RANGE:
    return judge_range(block, known, finalized);
  default:
    return KEEP_NO;
  }
}

static bool
is_empty(struct egw_slice result)
{
  return egw_json_kind(result) == EGW_JSON_ARRAY && egw_json_element(result, 0).ptr == NULL;
}

bool
rules_result(enum keep keep, struct egw_slice result, bool known, uint64_t finalized)
{
  enum egw_json_kind kind = egw_json_kind(result);

  if (keep == KEEP_NO || kind == EGW_JSON_NONE || kind == EGW_JSON_NULL || is_empty(result))
    return false;
  if (keep == KEEP_RESULT)
    return true;
  return kind == EGW_JSON_OBJECT &&
         is_final_number(egw_json_member(result, "blockNumber"), known, finalized);
}

static bool
same_hash(struct egw_slice a, struct egw_slice b)
{
  return a.len == b.len && a.len != 0 && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

bool
rules_matches(const struct egw_method_info *method, struct egw_slice params,
              struct egw_slice result)
{
  struct egw_slice asked = egw_json_element(params, 0);
  uint64_t a, b;

  if (strcmp(method->name, "eth_getBlockByNumber") == 0)
    return egw_json_u64(asked, &a) == 0 &&
           egw_json_u64(egw_json_member(result, "number"), &b) == 0 && a == b;
  if (strcmp(method->name, "eth_getBlockByHash") == 0 ||
      strcmp(method->name, "eth_getTransactionByHash") == 0)
    return same_hash(asked, egw_json_member(result, "hash"));
  if (strcmp(method->name, "eth_getTransactionReceipt") == 0)
    return same_hash(asked, egw_json_member(result, "transactionHash"));
  return true;
}
