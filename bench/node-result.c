/* SPDX-License-Identifier: MIT */
/* What bench/node answers: a JSON string of a fixed size; with --mix of a size by method, from
 * the sizes on mainnet and the same each time for the same params; with --chain objects for
 * blocks, transactions and receipts, with hashes and numbers that fit. The head of that chain is
 * a new one every 12 seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node.h"

#define FIRST_HEAD 40000000u /* above all that bench/load makes of 0x1000000 and more, too */
#define BLOCK_TIME 12
#define FINAL 64u
#define HASH_MARK "0xb10c000000000000000000000000000000000000000000000000"
#define NO_TRANSACTIONS "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
#define FILLER_MAX 524288u
#define LOOKED_AT 64u

enum shape { STRING, BLOCK, TRANSACTION, RECEIPT, RECEIPTS, FIXED, NUMBER, REFUSED };

struct method {
  const char *name;
  enum shape shape;
  size_t least, most;        /* bytes of the result, about */
  const char *fixed;
};

static const struct method sized[] = {
  { "eth_call", STRING, 66, 194, NULL },
  { "eth_getBlockReceipts", RECEIPTS, 100000, 300000, NULL },
  { "eth_getBlockByNumber", BLOCK, 100000, 300000, NULL },
  { "eth_getBlockByHash", BLOCK, 100000, 300000, NULL },
  { "eth_getTransactionByHash", TRANSACTION, 200, 1000, NULL },
  { "eth_getTransactionReceipt", RECEIPT, 700, 3000, NULL },
  { "eth_getProof", STRING, 2000, 6000, NULL },
  { "debug_storageRangeAt", STRING, 10000, 60000, NULL },
  { "debug_traceCall", STRING, 2000, 50000, NULL },
  { "ots_getBlockTransactions", STRING, 10000, 40000, NULL },
};

/* What a gateway or balancer asks by itself. */
static const struct method asked_of_chain[] = {
  { "eth_chainId", FIXED, 0, 0, "\"0x1\"" },
  { "net_version", FIXED, 0, 0, "\"1\"" },
  { "eth_syncing", FIXED, 0, 0, "false" },
  { "net_peerCount", FIXED, 0, 0, "\"0x20\"" },
  { "web3_clientVersion", FIXED, 0, 0, "\"bench/node\"" },
  { "eth_blockNumber", NUMBER, 0, 0, NULL },
  { "eth_getBlockByNumber", BLOCK, 0, 0, NULL },
  { "eth_getBlockByHash", BLOCK, 0, 0, NULL },
  { "eth_subscribe", REFUSED, 0, 0, NULL },
};

static size_t usual;         /* bytes of a result whose method says nothing else */
static bool by_method, of_chain;
static time_t started;
static char filler[FILLER_MAX];

/* --- requests -------------------------------------------------------------------------------- */

static const char *
behind(const char *data, size_t len, const char *key, size_t *left)
{
  const char *at = memmem(data, len, key, strlen(key));

  if (at == NULL)
    return NULL;
  at += strlen(key);
  *left = len - (size_t)(at - data);
  while (*left > 0 && *at == ' ') {
    at++;
    --*left;
  }
  return at;
}

static const struct method *
find_method(const struct method *list, size_t count, const char *request, size_t len)
{
  size_t left = 0, i, n;
  const char *name = behind(request, len, "\"method\":", &left);

  for (i = 0; i < count && name != NULL; i++) {
    n = strlen(list[i].name);
    if (left > n + 1 && memcmp(name + 1, list[i].name, n) == 0 && name[n + 1] == '"')
      return &list[i];
  }
  return NULL;
}

/* Of a range, by what is asked. */
static size_t
size_for(const struct method *method, const char *params, size_t len)
{
  uint64_t hash = 14695981039346656037u;
  size_t i;

  for (i = 0; i < len && i < LOOKED_AT && params[i] != ']'; i++)
    hash = (hash ^ (unsigned char)params[i]) * 1099511628211u;
  return method->least + (size_t)((hash >> 20) % (method->most - method->least + 1));
}

/* --- results --------------------------------------------------------------------------------- */

static void
add(struct text *out, const char *text)
{
  text_add(out, text, strlen(text));
}

static void
add_quantity(struct text *out, const char *key, uint64_t value)
{
  char text[96];

  snprintf(text, sizeof(text), "\"%s\":\"0x%llx\",", key, (unsigned long long)value);
  add(out, text);
}

/* The hash of a block; or the one that was asked for. */
static void
add_hash(struct text *out, const char *key, uint64_t number, const char *asked)
{
  char text[160];

  if (asked != NULL)
    snprintf(text, sizeof(text), "\"%s\":\"%.66s\",", key, asked);
  else
    snprintf(text, sizeof(text), "\"%s\":\"" HASH_MARK "%012llx\",", key,
             (unsigned long long)number);
  add(out, text);
}

static void
add_filler(struct text *out, size_t bytes)
{
  add(out, "\"0x");
  text_add(out, filler, bytes < FILLER_MAX ? bytes : FILLER_MAX);
  add(out, "\"");
}

static uint64_t
head(void)
{
  return FIRST_HEAD + (uint64_t)(time(NULL) - started) / BLOCK_TIME;
}

/* The block that the first of the params names; *hash: by hash, else NULL. */
static uint64_t
block_of(const char *params, size_t len, const char **hash)
{
  size_t left = 0;
  const char *at = behind(params, len, "\"", &left);

  *hash = NULL;
  if (at == NULL || left < 4)
    return head();
  if (strncmp(at, "finalized", 4) == 0 || strncmp(at, "safe", 4) == 0)
    return head() - FINAL;
  if (strncmp(at, "earliest", 4) == 0)
    return 0;
  if (at[0] != '0' || at[1] != 'x')
    return head();
  if (left <= 66 || at[66] != '"')
    return strtoull(at, NULL, 16);
  *hash = at;
  return strncmp(at, HASH_MARK, sizeof(HASH_MARK) - 1) == 0
           ? strtoull(at + sizeof(HASH_MARK) - 1, NULL, 16)
           : FIRST_HEAD - 1000000u + strtoul((char[6]){ at[61], at[62], at[63], at[64], at[65] },
                                             NULL, 16) % 900000u;
}

static void
add_transaction(struct text *out, uint64_t number, const char *block, const char *hash,
                size_t bytes)
{
  add(out, "{");
  add_hash(out, "blockHash", number, block);
  add_quantity(out, "blockNumber", number);
  add_hash(out, "hash", ~number, hash);
  add(out, "\"transactionIndex\":\"0x0\",\"type\":\"0x2\",\"nonce\":\"0x1\",\"value\":\"0x0\","
      "\"gas\":\"0x5208\",\"gasPrice\":\"0x7\","
      "\"from\":\"0x00000000000000000000000000000000deadbeef\",\"to\":\"0x00000000000000000000000000000000deadbeef\",\"input\":");
  add_filler(out, bytes);
  add(out, "}");
}

static void
add_receipt(struct text *out, uint64_t number, const char *block, const char *hash, size_t bytes)
{
  add(out, "{");
  add_hash(out, "blockHash", number, block);
  add_quantity(out, "blockNumber", number);
  add_hash(out, "transactionHash", ~number, hash);
  add(out, "\"transactionIndex\":\"0x0\",\"status\":\"0x1\",\"type\":\"0x2\","
      "\"gasUsed\":\"0x5208\",\"cumulativeGasUsed\":\"0x5208\",\"logs\":[],\"logsBloom\":");
  add_filler(out, bytes);
  add(out, "}");
}

static void
add_block(struct text *out, const char *params, size_t len, size_t bytes)
{
  const char *hash;
  uint64_t number = block_of(params, len, &hash);
  size_t left;
  bool full = behind(params, len, ",true", &left) != NULL ||
              behind(params, len, ", true", &left) != NULL;

  if (hash == NULL && number > head()) {
    add(out, "null");
    return;
  }
  add(out, "{");
  add_quantity(out, "number", number);
  add_hash(out, "hash", number, hash);
  add_hash(out, "parentHash", number - 1, NULL);
  add_quantity(out, "timestamp", (uint64_t)started - (FIRST_HEAD - number) * BLOCK_TIME);
  add(out, "\"miner\":\"0x00000000000000000000000000000000deadbeef\",\"gasLimit\":\"0x1c9c380\","
      "\"gasUsed\":\"0x0\",\"baseFeePerGas\":\"0x7\",\"difficulty\":\"0x0\",\"extraData\":\"0x\","
      "\"nonce\":\"0x0000000000000000\",\"size\":\"0x220\",\"uncles\":[],");
  add_hash(out, "stateRoot", number, NULL);
  add_hash(out, "transactionsRoot", number, full ? NULL : NO_TRANSACTIONS);
  add_hash(out, "receiptsRoot", number, full ? NULL : NO_TRANSACTIONS);
  add_hash(out, "mixHash", number, NULL);
  add(out, "\"logsBloom\":");
  add_filler(out, 512);
  add(out, ",\"transactions\":[");
  if (full)
    add_transaction(out, number, hash, NULL, bytes);
  add(out, "]}");
}

static void
add_shape(struct text *out, const struct method *method, const char *params, size_t len)
{
  size_t bytes = method->most != 0 ? size_for(method, params, len) : usual;
  const char *hash;
  uint64_t number;

  switch (of_chain || method->shape >= FIXED ? method->shape : STRING) {
  case BLOCK: add_block(out, params, len, bytes); break;
  case TRANSACTION:
    (void)block_of(params, len, &hash);
    add_transaction(out, FIRST_HEAD / 2, NULL, hash, bytes);
    break;
  case RECEIPT:
    (void)block_of(params, len, &hash);
    add_receipt(out, FIRST_HEAD / 2, NULL, hash, bytes);
    break;
  case RECEIPTS:
    number = block_of(params, len, &hash);
    add(out, "[");
    add_receipt(out, number, hash, NULL, bytes);
    add(out, "]");
    break;
  case FIXED: add(out, method->fixed); break;
  case NUMBER:
    text_room(out, 32);
    out->len += (size_t)snprintf(out->data + out->len, 32, "\"0x%llx\"",
                                 (unsigned long long)head());
    break;
  default: add_filler(out, bytes > 4 ? bytes - 4 : 0);
  }
}

void
result_add(struct text *out, const char *request, size_t len)
{
  static const struct method other = { "", STRING, 0, 0, NULL };
  const struct method *method = NULL;
  size_t left = 0;
  const char *params;

  if (by_method)
    method = find_method(sized, sizeof(sized) / sizeof(sized[0]), request, len);
  if (method == NULL && of_chain)
    method = find_method(asked_of_chain, sizeof(asked_of_chain) / sizeof(asked_of_chain[0]),
                         request, len);
  if (method != NULL && method->shape == REFUSED) {
    add(out, "\"error\":{\"code\":-32601,\"message\":\"notifications not supported\"}");
    return;
  }
  params = behind(request, len, "\"params\":", &left);
  add(out, "\"result\":");
  add_shape(out, method != NULL ? method : &other, params != NULL ? params : "", left);
}

void
result_make(size_t bytes, bool mix, bool chain)
{
  size_t i;

  if (bytes > FILLER_MAX) {
    fprintf(stderr, "bench/node: --bytes: at most %u\n", FILLER_MAX);
    exit(2);
  }
  usual = bytes;
  by_method = mix;
  of_chain = chain;
  started = time(NULL);
  for (i = 0; i < FILLER_MAX; i++)
    filler[i] = "0123456789abcdef"[(i + 3) % 16];
}
