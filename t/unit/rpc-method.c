/* SPDX-License-Identifier: MIT */
/* The method table: order, lookup, rules that hold for all rows, and the facts of the list of
 * methods beside the test data. */
#include <strings.h>
#include "rpc/method.h"
#include "rpc-data.h"
#include "../lib/tap.h"

static const struct egw_method_info *
find(const char *name)
{
  return method_find((struct egw_slice){ name, strlen(name) });
}

static void
test_lookup(void)
{
  unsigned i, wrong = 0, found = 0;
  char name[140];

  for (i = 0; i < method_count(); i++) {
    const struct egw_method_info *row = method_row(i);

    wrong += i > 0 && strcmp(method_row(i - 1)->name, row->name) >= 0;
    wrong += find(row->name) != row || method_index(row) != i;
    /* Neither what is shorter nor what is longer nor what is written otherwise. */
    snprintf(name, sizeof(name), "%sX", row->name);
    found += find(name) != NULL && strcmp(find(name)->name, name) != 0;
    found += method_find((struct egw_slice){ row->name, strlen(row->name) - 1 }) == row;
    name[4] = (char)(name[4] ^ 0x20);
    found += method_find((struct egw_slice){ name, strlen(row->name) }) == row;
  }
  is_int(wrong, 0, "%u rows, sorted, each found under its name", method_count());
  is_int(found, 0, "names that are only similar are not found");
  ok(find("") == NULL && method_find((struct egw_slice){ NULL, 0 }) == NULL,
     "no name, no row");
  ok(find("eth") == NULL && find("eth_nothing") == NULL, "an unknown method has none");
  memset(name, 'e', sizeof(name));
  ok(method_find((struct egw_slice){ name, sizeof(name) }) == NULL, "nor has a long name");
  ok(method_row(method_count()) == NULL, "there is no row behind the last");
}

static bool
begins(const char *name, const char *with)
{
  return strncmp(name, with, strlen(with)) == 0;
}

/* Whether everything of this name space belongs to the node's owner. */
static bool
owners_space(const char *name)
{
  static const char *const spaces[] = { "personal_", "miner_", "admin_", "engine_", "clique_",
                                        "anvil_", "hardhat_", "evm_", "ganache_", "testing_" };
  size_t i;

  for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
    if (begins(name, spaces[i]))
      return true;
  return begins(name, "eth_sign") || strcmp(name, "eth_sendTransaction") == 0 ||
         begins(name, "debug_set");
}

static void
test_rules(void)
{
  unsigned i;

  for (i = 0; i < method_count(); i++) {
    const struct egw_method_info *row = method_row(i);
    bool right = row->cost >= 1 && row->cost <= 100;

    right = right && (row->block_kind == EGW_BLOCK_NONE) == (row->block_param < 0);
    switch (row->method_class) {
    case EGW_CLASS_BY_HASH: right = right && row->block_kind == EGW_BLOCK_HASH; break;
    case EGW_CLASS_BY_BLOCK:
      right = right &&
              (row->block_kind == EGW_BLOCK_NUMBER || row->block_kind == EGW_BLOCK_ID);
      break;
    case EGW_CLASS_BY_TX: right = right && row->block_kind == EGW_BLOCK_TX_HASH; break;
    case EGW_CLASS_RANGE: right = right && row->block_kind == EGW_BLOCK_FILTER; break;
    case EGW_CLASS_STATEFUL: case EGW_CLASS_SUBSCRIPTION: case EGW_CLASS_BROADCAST:
    case EGW_CLASS_WRITE: right = right && !row->idempotent; break;
    case EGW_CLASS_CONSTANT: case EGW_CLASS_HEAD: right = right && row->idempotent; break;
    case EGW_CLASS_UNKNOWN: right = false; break;
    }
    right = right && (!owners_space(row->name) || row->changes_node);
    right = right && (!begins(row->name, "trace_") || !row->changes_node);
    right = right && begins(row->name, "eth_sendRawTransaction") ==
                       (row->method_class == EGW_CLASS_BROADCAST);
    ok(right, "%s: class, block reference and use suit each other", row->name);
  }
}

/* What a wrong answer, a lost or a doubled transaction would hang on, by name. */
static void
test_chosen(void)
{
  static const char *const changing[] = {
    "debug_setHead", "debug_chaindbCompact", "debug_freeOSMemory", "debug_clearTxpool",
    "debug_standardTraceBlockToFile", "debug_verbosity", "debug_startCPUProfile",
    "debug_writeMemProfile", "eth_submitWork", "reth_newPayload", "reth_jit", "anvil_revert",
    "admin_banPeer", "personal_unlockAccount", "eth_signTypedData_v4",
  };
  static const char *const harmless[] = {
    "eth_accounts", "eth_coinbase", "eth_call", "eth_getLogs", "debug_traceTransaction",
    "debug_traceCall", "debug_getRawBlock", "trace_filter", "txpool_content", "net_version",
  };
  size_t i;

  for (i = 0; i < sizeof(changing) / sizeof(changing[0]); i++)
    ok(find(changing[i]) != NULL && find(changing[i])->changes_node, "%s changes the node",
       changing[i]);
  for (i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
    ok(find(harmless[i]) != NULL && !find(harmless[i])->changes_node, "%s does not",
       harmless[i]);
  is_int(find("eth_accounts")->method_class, EGW_CLASS_HEAD, "eth_accounts is no constant");
  is_int(find("web3_clientVersion")->method_class, EGW_CLASS_HEAD,
         "nor is the version of a node, which may be upgraded");
  is_int(find("eth_chainId")->method_class, EGW_CLASS_CONSTANT, "the chain id is one");
  is_int(find("ots_searchTransactionsAfter")->method_class, EGW_CLASS_HEAD,
         "what follows a block changes with the head");
  ok(find("eth_getBalance")->block_param == 1 && find("eth_getStorageAt")->block_param == 2 &&
       find("eth_getProof")->block_param == 2 &&
       find("eth_getBlockByNumber")->block_param == 0,
     "where the block of common methods is");
  is_bytes(method_class_name(EGW_CLASS_BY_BLOCK),
           strlen(method_class_name(EGW_CLASS_BY_BLOCK)),
           "by-block", "a class has a name");
  ok(strcmp(method_class_name((enum egw_class)77), "unknown") == 0, "what is none has none");
}

/* --- the list ------------------------------------------------------------------------ */

enum column { COLUMN_NAME, COLUMN_PARAMS, COLUMN_INDEX, COLUMN_KIND, COLUMN_CLASS, COLUMNS };

static bool
has(struct egw_slice text, const char *word)
{
  return memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

/* Where this table knows better than the list, which has one class for a read of the node and
 * for a question to it, and calls what is written by a trace a read; see methods.def. */
static bool
class_differs(const char *name)
{
  static const char *const names[] = {
    "web3_clientVersion", "rpc_modules", "ots_getApiLevel", "eth_protocolVersion",
    "debug_getAccessibleState", "debug_getModifiedAccountsByNumber", "eth_callBundle",
    "ots_searchTransactionsAfter", "ots_searchTransactionsBefore", "erigon_blockNumber",
    "debug_standardTraceBadBlockToFile", "debug_standardTraceBlockToFile", "admin_banPeer",
    "admin_unbanPeer", "anvil_revert", "anvil_snapshot", "reth_forkchoiceUpdated",
    "reth_newPayload", "eth_fillTransaction", "eth_cancelBundle",
    "eth_cancelPrivateTransaction",
  };
  size_t i;

  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i], name) == 0)
      return true;
  return false;
}

static bool
class_right(const struct egw_method_info *row, struct egw_slice word, struct egw_slice kind)
{
  enum egw_class c = row->method_class;

  if (has(word, "by-hash"))
    return c == EGW_CLASS_BY_HASH;
  if (has(word, "by-txhash"))
    return c == EGW_CLASS_BY_TX;
  if (has(word, "by-block"))
    return c == (has(kind, "filter") ? EGW_CLASS_RANGE : EGW_CLASS_BY_BLOCK);
  if (has(word, "constant"))
    return c == EGW_CLASS_CONSTANT;
  if (has(word, "head"))
    return c == EGW_CLASS_HEAD;
  if (has(word, "stateful"))
    return c == EGW_CLASS_STATEFUL;
  if (has(word, "subscription"))
    return c == EGW_CLASS_SUBSCRIPTION;
  return c == EGW_CLASS_WRITE || c == EGW_CLASS_BROADCAST;
}

static bool
block_right(const struct egw_method_info *row, struct egw_slice index, struct egw_slice kind)
{
  enum egw_block_kind k = row->block_kind;

  if (row->method_class == EGW_CLASS_WRITE || row->method_class == EGW_CLASS_SUBSCRIPTION)
    return k == EGW_BLOCK_NONE; /* nothing hangs on their blocks */
  if (has(kind, "txhash"))
    return k == EGW_BLOCK_TX_HASH && row->block_param == 0;
  if (index.ptr[0] == '-')
    return k == EGW_BLOCK_NONE;
  if (row->block_param != index.ptr[0] - '0')
    return false;
  if (has(kind, "filter"))
    return k == EGW_BLOCK_FILTER;
  if (has(kind, "blockhash"))
    return k == EGW_BLOCK_HASH;
  if (has(kind, "hash"))
    return k == EGW_BLOCK_ID;
  /* Reth takes more than the specification */
  return k == EGW_BLOCK_NUMBER || k == EGW_BLOCK_ID;
}

static void
list_row(struct egw_slice line, unsigned *rows)
{
  struct egw_slice column[COLUMNS];
  const struct egw_method_info *row;
  unsigned i;
  bool right;

  for (i = 0; i < COLUMNS; i++) {
    const char *tab = memchr(line.ptr, '\t', line.len);

    if (tab == NULL)
      return;
    column[i] = (struct egw_slice){ line.ptr, (size_t)(tab - line.ptr) };
    line.len -= column[i].len + 1;
    line.ptr = tab + 1;
  }
  if (has(column[COLUMN_NAME], "method"))
    return;
  (*rows)++;
  row = method_find(column[COLUMN_NAME]);
  right = row != NULL &&
          (class_differs(row->name) ||
           (class_right(row, column[COLUMN_CLASS], column[COLUMN_KIND]) &&
            block_right(row, column[COLUMN_INDEX], column[COLUMN_KIND])));
  if (!right)
    ok(false, "%.*s is as the list says", (int)column[COLUMN_NAME].len,
       column[COLUMN_NAME].ptr);
}

static void
test_list(void)
{
  struct egw_slice file = data_file(data_path("../methods.tsv")), left = file, line;
  unsigned rows = 0;

  if (file.ptr == NULL) {
    tap_skip("the list of methods is not there");
    return;
  }
  while (data_line(&left, &line))
    list_row(line, &rows);
  ok(rows >= 290, "%u methods of the list were compared", rows);
  data_free(file);
}

int
main(void)
{
  test_lookup();
  test_rules();
  test_chosen();
  test_list();
  return done_testing();
}
