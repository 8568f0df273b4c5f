/* SPDX-License-Identifier: MIT */
/* From a call's params to its block. */
#include "subject.h"

#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

#define HASH_TEXT 68u /* "0x" and 64 digits, with the quotes */

static void
take_number(struct egw_slice value, struct subject *out)
{
  if (egw_json_u64(value, &out->number) == 0)
    out->kind = SUBJECT_NUMBER;
}

static void
take_hash(struct egw_slice value, struct subject *out)
{
  if (egw_hex_read(value, out->hash, sizeof(out->hash)) == 32)
    out->kind = SUBJECT_HASH;
}

/* A number, a tag or a hash. */
static void
take_word(struct egw_slice value, struct subject *out)
{
  if (egw_json_equals(value, "latest"))
    out->kind = SUBJECT_TIP;
  else if (egw_json_equals(value, "safe"))
    out->kind = SUBJECT_SAFE;
  else if (egw_json_equals(value, "finalized"))
    out->kind = SUBJECT_FINALIZED;
  else if (egw_json_equals(value, "earliest"))
    *out = (struct subject){ .kind = SUBJECT_NUMBER };
  else if (value.len == HASH_TEXT)
    take_hash(value, out);
  else
    take_number(value, out);
}

static void
take_id(struct egw_slice value, struct subject *out)
{
  struct egw_slice hash;

  switch (egw_json_kind(value)) {
  case EGW_JSON_NONE:
  case EGW_JSON_NULL:
    out->kind = SUBJECT_TIP;
    return;
  case EGW_JSON_OBJECT: /* EIP-1898 */
    hash = egw_json_member(value, "blockHash");
    if (hash.ptr != NULL)
      take_hash(hash, out);
    else
      take_number(egw_json_member(value, "blockNumber"), out);
    return;
  case EGW_JSON_STRING:
    take_word(value, out);
    return;
  case EGW_JSON_FALSE:
  case EGW_JSON_TRUE:
  case EGW_JSON_NUMBER:
  case EGW_JSON_ARRAY:
    return;
  }
}

static void
take_filter(struct egw_slice value, struct subject *out)
{
  struct egw_slice hash, to;

  if (egw_json_kind(value) != EGW_JSON_OBJECT)
    return;
  hash = egw_json_member(value, "blockHash");
  to = egw_json_member(value, "toBlock");
  if (hash.ptr != NULL)
    take_hash(hash, out);
  else
    take_id(to, out);
}

void
subject_of(const struct egw_call *call, struct subject *out)
{
  const struct egw_method_info *info = egw_method_info(call);
  struct egw_slice params = egw_params(call), value = { 0 };

  *out = (struct subject){ .kind = SUBJECT_NONE };
  if (info == NULL || info->block_param < 0 || egw_json_kind(params) != EGW_JSON_ARRAY)
    return;
  value = egw_json_element(params, (size_t)info->block_param);
  switch (info->block_kind) {
  case EGW_BLOCK_NUMBER:
  case EGW_BLOCK_ID:
    take_id(value, out);
    return;
  case EGW_BLOCK_HASH:
    if (egw_json_kind(value) == EGW_JSON_STRING)
      take_hash(value, out);
    return;
  case EGW_BLOCK_FILTER:
    take_filter(value, out);
    return;
  case EGW_BLOCK_TX_HASH:
    out->kind = SUBJECT_TX;
    return;
  case EGW_BLOCK_NONE:
    return;
  }
}

static bool
find_hash(const struct egw_head *head, const unsigned char hash[32], uint64_t *number)
{
  unsigned char one[32];
  uint64_t n;

  for (n = head->tip.number + 1; n-- > head->lowest;)
    if (!egw_head_hash(head, n, one))
      return false;
    else if (memcmp(one, hash, 32) == 0) {
      *number = n;
      return true;
    }
  return false;
}

bool
subject_exists(const struct subject *subject, const struct egw_head *head, uint64_t *number)
{
  if (!head->known)
    return false;
  switch (subject->kind) {
  case SUBJECT_NUMBER:
    *number = subject->number;
    return subject->number <= head->tip.number;
  case SUBJECT_HASH:
    return find_hash(head, subject->hash, number);
  case SUBJECT_TIP:
    *number = head->tip.number;
    return true;
  case SUBJECT_SAFE:
    *number = head->safe.number;
    return head->has_safe;
  case SUBJECT_FINALIZED:
    *number = head->finalized.number;
    return head->has_finalized;
  case SUBJECT_NONE:
  case SUBJECT_TX:
    break;
  }
  return false;
}

/* Other methods answer null by right: an index that is too high, a transaction that nobody
 * knows. */
static bool
null_is_missing(const char *method)
{
  static const char *const names[] = {
    "debug_getRawBlock",
    "debug_getRawHeader",
    "debug_getRawReceipts",
    "erigon_getHeaderByHash",
    "erigon_getHeaderByNumber",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getHeaderByHash",
    "eth_getHeaderByNumber",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleCountByBlockNumber",
    "ots_getBlockDetails",
    "ots_getBlockDetailsByHash",
    "trace_block",
  };
  size_t i;

  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i], method) == 0)
      return true;
  return false;
}

/* A client may know a block before the head does: by a reply of the one upstream that has it. */
static bool
may_exist(const struct subject *subject, const struct egw_head *head)
{
  return subject->kind == SUBJECT_HASH ||
         (subject->kind == SUBJECT_NUMBER && head->known &&
          subject->number <= head->tip.number + 8);
}

bool
subject_stale(const struct subject *subject, const char *method, const struct egw_head *head,
              struct egw_slice result)
{
  uint64_t number, got;

  if (!subject_exists(subject, head, &number))
    return may_exist(subject, head) && egw_json_kind(result) == EGW_JSON_NULL &&
           null_is_missing(method);
  switch (egw_json_kind(result)) {
  case EGW_JSON_NULL:
    return null_is_missing(method);
  case EGW_JSON_OBJECT:
    /* A development node may have been told to go back: then the head is not settled. */
    return subject->kind == SUBJECT_TIP && head->settled &&
           strcmp(method, "eth_getBlockByNumber") == 0 &&
           egw_json_u64(egw_json_member(result, "number"), &got) == 0 && got < number;
  case EGW_JSON_NONE:
  case EGW_JSON_FALSE:
  case EGW_JSON_TRUE:
  case EGW_JSON_NUMBER:
  case EGW_JSON_STRING:
  case EGW_JSON_ARRAY:
    break;
  }
  return false;
}
