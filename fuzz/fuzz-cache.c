/* SPDX-License-Identifier: MIT */
/* Fuzzes what the middleware cache reads: params and results, with a NUL between them. A
 * question that is written anew must be the same question: valid, about the same block,
 * under the same key. */
#include <stdlib.h>
#include <string.h>
#include "../plugins/middleware/cache/key.h"
#include "rpc/scan.h"

#define DEPTH 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

/* --- the host ---------------------------------------------------------------------------- */

static void *pieces[64];
static size_t piece_count;

void *
egw_alloc(struct egw_call *call, size_t size)
{
  (void)call;
  check(piece_count < sizeof(pieces) / sizeof(pieces[0]));
  pieces[piece_count] = calloc(1, size);
  check(pieces[piece_count] != NULL);
  return pieces[piece_count++];
}

static const struct egw_head head = {
  .known = true, .live = true, .pushed = true, .settled = true, .has_safe = true,
  .has_finalized = true, .has_chain_id = true, .has_genesis = true, .lowest = 90,
      .chain_id = 1,
  .tip = { .number = 120 }, .safe = { .number = 110 }, .finalized = { .number = 100 }
};

bool
egw_head_hash(const struct egw_head *h, uint64_t number, unsigned char hash[32])
{
  if (number < h->lowest || number > h->tip.number)
    return false;
  memset(hash, (int)number, 32);
  return true;
}

/* --- questions --------------------------------------------------------------------------- */

static const struct egw_method_info methods[] = {
  { "eth_getBlockByNumber", EGW_CLASS_BY_BLOCK, EGW_BLOCK_NUMBER, 0, true, false, 15 },
  { "eth_getBlockByHash", EGW_CLASS_BY_HASH, EGW_BLOCK_HASH, 0, true, false, 15 },
  { "eth_getBlockReceipts", EGW_CLASS_BY_BLOCK, EGW_BLOCK_ID, 0, true, false, 25 },
  { "eth_call", EGW_CLASS_BY_BLOCK, EGW_BLOCK_ID, 1, true, false, 10 },
  { "eth_getStorageAt", EGW_CLASS_BY_BLOCK, EGW_BLOCK_ID, 2, true, false, 5 },
  { "eth_getLogs", EGW_CLASS_RANGE, EGW_BLOCK_FILTER, 0, true, false, 40 },
  { "eth_getTransactionReceipt", EGW_CLASS_BY_TX, EGW_BLOCK_TX_HASH, 0, true, false, 8 },
  { "eth_chainId", EGW_CLASS_CONSTANT, EGW_BLOCK_NONE, -1, true, false, 1 },
};

static void
rewritten(const struct rules_method *method, const struct ask *ask, const struct plan *plan,
          const struct plan_terms *terms)
{
  struct egw_slice params = key_rewrite(NULL, ask, plan), one, two;
  struct key_identity identity;
  struct plan again;
  struct ask read;

  check(scan_valid(params, DEPTH, NULL));
  check(ask_read(method, params, &read));
  check(plan_make(method, &read, terms, &again));
  key_identity(&head, &identity);
  one = key_make(NULL, &identity, method, ask, plan);
  two = key_make(NULL, &identity, method, &read, &again);
  check(one.len == two.len && memcmp(one.ptr, two.ptr, one.len) == 0);
}

static void
question(const struct egw_method_info *info, struct egw_slice params, struct egw_slice result,
         bool by_hash)
{
  struct plan_terms terms = { &head, true, true, by_hash };
  struct rules_method method;
  struct rules_block pin;
  struct plan plan;
  struct ask ask;

  rules_of(info, &method);
  if (!ask_read(&method, params, &ask) || !plan_make(&method, &ask, &terms, &plan))
    return;
  if (plan.rewrite != REWRITE_NO)
    rewritten(&method, &ask, &plan, &terms);
  if (result.ptr != NULL)
    plan_result(&method, &ask, &plan, &head, result, true, &pin);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const uint8_t *zero = size == 0 ? NULL : memchr(data, 0, size);
  struct egw_slice params = { (const char *)data,
                              zero == NULL ? size : (size_t)(zero - data) };
  struct egw_slice result = { NULL, 0 };
  size_t i;

  if (zero != NULL)
    result = (struct egw_slice){ (const char *)zero + 1, size - params.len - 1 };
  if (!scan_valid(params, DEPTH, NULL) ||
      (result.ptr != NULL && !scan_valid(result, DEPTH, NULL)))
    return 0;
  for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
    question(&methods[i], params, result, true);
    question(&methods[i], params, result, false);
  }
  while (piece_count != 0)
    free(pieces[--piece_count]);
  return 0;
}
