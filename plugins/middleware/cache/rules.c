/* SPDX-License-Identifier: MIT */
/* Facts about methods that the method table does not have. What is not listed here has none
 * of these properties: an answer that can't be proven to be of its block is not kept while
 * that block may still change. */
#include "rules.h"

#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

struct fact {
  const char *name;
  enum rules_proof proof;
  const char *subject;
};

static const struct fact facts[] = {
  { "eth_getBlockByNumber", PROOF_BLOCK, NULL },
  { "eth_getBlockByHash", PROOF_BLOCK, NULL },
  { "eth_getHeaderByNumber", PROOF_BLOCK, NULL },
  { "eth_getHeaderByHash", PROOF_BLOCK, NULL },
  { "erigon_getHeaderByNumber", PROOF_BLOCK, NULL },
  { "erigon_getHeaderByHash", PROOF_BLOCK, NULL },
  { "eth_getTransactionByBlockNumberAndIndex", PROOF_MEMBER, NULL },
  { "eth_getTransactionByBlockHashAndIndex", PROOF_MEMBER, NULL },
  { "eth_getBlockReceipts", PROOF_LIST, NULL },
  { "erigon_getBlockReceiptsByBlockHash", PROOF_LIST, NULL },
  { "trace_block", PROOF_LIST, NULL },
  { "eth_getLogs", PROOF_LIST, NULL },
  { "erigon_getLogs", PROOF_LIST, NULL },
  { "trace_filter", PROOF_LIST, NULL },
  { "eth_getTransactionByHash", PROOF_MEMBER, "hash" },
  { "eth_getTransactionReceipt", PROOF_MEMBER, "transactionHash" },
  { "trace_get", PROOF_MEMBER, "transactionHash" },
  { "trace_transaction", PROOF_LIST, "transactionHash" },
};

/* What a left out block means differs for the others: to some nodes eth_estimateGas and
 * eth_createAccessList are about the pending block. */
static const char *const optional[] = {
  "eth_call", "eth_getBalance", "eth_getCode", "eth_getProof", "eth_getStorageAt",
  "eth_getTransactionCount", NULL
};

/* Their "block" is a context of its own, {"blockNumber": .., "transactionIndex": ..}. */
static const char *const contexts[] = { "eth_callMany", "debug_traceCallMany", NULL };

static const char *const controls[] = { "anvil_", "hardhat_", "evm_", "ganache_", "testing_",
                                        "debug_setHead", NULL };

static bool
is_one_of(const char *name, const char *const *names)
{
  while (*names != NULL && strcmp(name, *names) != 0)
    names++;
  return *names != NULL;
}

static bool
is_control(const struct egw_method_info *method)
{
  const char *const *at = controls;

  if (method->method_class != EGW_CLASS_WRITE || !method->changes_node)
    return false;
  while (*at != NULL && strncmp(method->name, *at, strlen(*at)) != 0)
    at++;
  return *at != NULL;
}

bool
rules_want(const struct egw_method_info *method)
{
  if (method == NULL)
    return false;
  if (is_control(method))
    return true;
  if (!method->idempotent || method->changes_node)
    return false;
  switch (method->method_class) {
  case EGW_CLASS_CONSTANT:
  case EGW_CLASS_BY_HASH:
  case EGW_CLASS_BY_BLOCK:
  case EGW_CLASS_BY_TX:
  case EGW_CLASS_RANGE:
    return true;
  case EGW_CLASS_HEAD:
    return strcmp(method->name, "eth_blockNumber") == 0;
  default:
    return false;
  }
}

void
rules_of(const struct egw_method_info *method, struct rules_method *out)
{
  const char *name = method->name;
  size_t i;

  *out = (struct rules_method){ .info = method };
  for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
    if (strcmp(name, facts[i].name) == 0) {
      out->proof = facts[i].proof;
      out->subject = facts[i].subject;
    }
  out->control = is_control(method);
  out->tip = method->method_class == EGW_CLASS_HEAD;
  out->of_chain = method->method_class == EGW_CLASS_CONSTANT && strcmp(name, "web3_sha3") != 0;
  out->ranges = strcmp(name, "eth_getLogs") == 0;
  out->by_hash = out->ranges ||
                 (method->block_kind == EGW_BLOCK_ID && !is_one_of(name, contexts));
  out->optional = is_one_of(name, optional);
}

/* --- results ----------------------------------------------------------------------------- */

bool
rules_hash(struct egw_slice value, unsigned char out[32])
{
  return value.ptr != NULL && egw_hex_read(value, out, 32) == 32;
}

bool
rules_is_empty(struct egw_slice value)
{
  return egw_json_kind(value) == EGW_JSON_ARRAY && egw_json_element(value, 0).ptr == NULL;
}

bool
rules_block(enum rules_proof proof, struct egw_slice value, struct rules_block *out)
{
  bool block = proof == PROOF_BLOCK;
  struct egw_slice number, hash;

  if (egw_json_kind(value) != EGW_JSON_OBJECT)
    return false;
  number = egw_json_member(value, block ? "number" : "blockNumber");
  hash = egw_json_member(value, block ? "hash" : "blockHash");
  return egw_json_u64(number, &out->number) == 0 && rules_hash(hash, out->hash);
}
