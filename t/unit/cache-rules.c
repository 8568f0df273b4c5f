/* SPDX-License-Identifier: MIT */
/* The cache's rules: what a call asks, which block that is, under what it is kept, how the
 * node is asked, and what results prove. Blocks 90..120 are known, 110 is safe, 100 final;
 * the hash of block n is n in all bytes. */
#include "../lib/tap.h"

#include <ethrpc-gw/json.h>
#include "../../plugins/middleware/cache/key.h"
#include "rpc/method.h"

#define A "\"0x000000000000000000000000000000000000000a\""
#define H11 "0x1111111111111111111111111111111111111111111111111111111111111111"
#define H78 "0x7878787878787878787878787878787878787878787878787878787878787878"
#define H77 "0x7777777777777777777777777777777777777777777777777777777777777777"
#define H6E "0x6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
#define H5A "0x5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
#define H64 "0x6464646464646464646464646464646464646464646464646464646464646464"

static struct egw_head head;

bool
egw_head_hash(const struct egw_head *h, uint64_t number, unsigned char hash[32])
{
  if (!h->known || number < h->lowest || number > h->tip.number)
    return false;
  memset(hash, (int)number, 32);
  return true;
}

/* The memory of the one call there is. */
static max_align_t memory[4096 / sizeof(max_align_t)];
static size_t used;

void *
egw_alloc(struct egw_call *call, size_t size)
{
  void *p = (char *)memory + used;

  (void)call;
  used += (size + 15) & ~(size_t)15;
  if (used > sizeof(memory))
    abort();
  return p;
}

static struct egw_slice
slice(const char *text)
{
  return (struct egw_slice){ text, strlen(text) };
}

static void
reset_head(void)
{
  head = (struct egw_head){ .known = true, .live = true, .pushed = true, .settled = true,
                            .has_safe = true, .has_finalized = true, .has_chain_id = true,
                            .has_genesis = true, .lowest = 90, .chain_id = 1 };
  head.tip.number = 120;
  head.safe.number = 110;
  head.finalized.number = 100;
}

/* --- plans ------------------------------------------------------------------------------- */

struct made {
  struct rules_method method;
  struct ask ask;
  struct plan plan;
  bool kept;
  char text[200];
  struct egw_slice rewritten;
};

static void
make(struct made *m, const char *method, const char *params, bool tags, bool by_hash)
{
  struct plan_terms terms = { &head, tags, tags, by_hash };
  const char *form = "";

  used = 0;
  memset(m, 0, sizeof(*m));
  rules_of(method_find(slice(method)), &m->method);
  m->kept = ask_read(&m->method, slice(params), &m->ask) &&
            plan_make(&m->method, &m->ask, &terms, &m->plan);
  if (!m->kept) {
    strcpy(m->text, "pass");
    return;
  }
  if (m->plan.rewrite != REWRITE_NO)
    m->rewritten = key_rewrite(NULL, &m->ask, &m->plan);
  switch (m->plan.form) {
  case PLAN_ALL: snprintf(m->text, sizeof m->text, "all"); break;
  case PLAN_NUMBER: snprintf(m->text, sizeof m->text, "n%u", (unsigned)m->plan.number); break;
  case PLAN_HASH: snprintf(m->text, sizeof m->text, "h%02x", m->plan.hash[0]); break;
  case PLAN_RANGE:
    snprintf(m->text, sizeof m->text, "r%u-%u", (unsigned)m->plan.first,
             (unsigned)m->plan.number);
  }
  form = m->plan.lasting ? "!" : m->plan.pinned ? "?" : "";
  strcat(m->text, form);
}

struct row {
  const char *method, *params, *plan, *rewritten;
};

/* "!": for ever. "?": pinned. */
static const struct row rows[] = {
  { "eth_chainId", "[]", "all!", NULL },
  { "net_version", "[]", "all!", NULL },
  { "web3_sha3", "[\"0x00\"]", "all!", NULL },
  { "eth_getBlockByNumber", "[\"0x64\",true]", "n100!", NULL },
  { "eth_getBlockByNumber", "[\"0x0\",true]", "n0!", NULL },
  { "eth_getBlockByNumber", "[\"0x65\",true]", "h65", NULL },
  { "eth_getBlockByNumber", "[\"0x78\",true]", "h78", NULL },
  { "eth_getBlockByNumber", "[\"0x79\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"latest\",true]", "h78", "[\"0x78\",true]" },
  { "eth_getBlockByNumber", "[\"safe\",true]", "h6e", "[\"0x6e\",true]" },
  { "eth_getBlockByNumber", "[\"finalized\",true]", "n100!", "[\"0x64\",true]" },
  { "eth_getBlockByNumber", "[\"earliest\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"pending\",false]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"Latest\",false]", "pass", NULL },
  { "eth_getBlockByNumber", "[]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"0xffffffffffffffffff\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"0x01\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"0x\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"\\u0030x1\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[100,true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"100\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"" H11 "\",true]", "pass", NULL },
  { "eth_getBlockByNumber", "[{\"blockNumber\":\"0x1\"},true]", "pass", NULL },
  { "eth_getBlockByHash", "[\"" H11 "\",true]", "h11!", NULL },
  { "eth_getBlockByHash", "[\"0x11\",true]", "pass", NULL },
  { "eth_getBlockByHash", "[\"latest\",true]", "pass", NULL },
  { "eth_getBlockReceipts", "[\"0x1\"]", "n1!", NULL },
  { "eth_getBlockReceipts", "[\"" H11 "\"]", "h11!", NULL },
  { "eth_getBlockReceipts", "[{\"blockHash\":\"" H11 "\"}]", "h11!", NULL },
  { "eth_getBlockReceipts", "[\"0x70\"]", "h70", NULL },
  { "eth_getBlockReceipts", "[\"latest\"]", "h78", "[{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getBlockReceipts", "[]", "pass", NULL },
  { "eth_getTransactionByBlockNumberAndIndex", "[\"0x70\",\"0x0\"]", "h70", NULL },
  { "eth_getTransactionByBlockNumberAndIndex", "[\"latest\",\"0x0\"]", "h78",
    "[\"0x78\",\"0x0\"]" },
  { "eth_getBlockTransactionCountByNumber", "[\"0x70\"]", "pass", NULL },
  { "eth_getBlockTransactionCountByNumber", "[\"latest\"]", "pass", NULL },
  { "eth_getBlockTransactionCountByNumber", "[\"0x64\"]", "n100!", NULL },
  { "eth_getBlockTransactionCountByNumber", "[\"finalized\"]", "n100!", "[\"0x64\"]" },
  { "eth_feeHistory", "[\"0x5\",\"latest\",[]]", "pass", NULL },
  { "eth_feeHistory", "[\"0x5\",\"0x10\",[1.5, 2]]", "n16!", NULL },
  { "debug_traceBlockByNumber", "[\"latest\",{}]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x64\"]", "n100!", NULL },
  { "eth_getBalance", "[" A ",\"0x77\"]", "h77", "[" A ",{\"blockHash\":\"" H77 "\"}]" },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x77\"}]", "h77",
    "[" A ",{\"blockHash\":\"" H77 "\"}]" },
  { "eth_getBalance", "[" A "]", "h78", "[" A ",{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getBalance", " [ " A " ] ", "h78", "[" A ",{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getBalance", "[" A ", \"latest\" ]", "h78", "[" A ",{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getBalance", "[" A ",\"safe\"]", "h6e", "[" A ",{\"blockHash\":\"" H6E "\"}]" },
  { "eth_getBalance", "[" A ",\"finalized\"]", "n100!", "[" A ",\"0x64\"]" },
  { "eth_getBalance", "[" A ",\"pending\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",null]", "pass", NULL },
  { "eth_getBalance", "[]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"" H11 "\"]", "h11!", NULL },
  { "eth_getBalance", "[" A ",{\"blockHash\":\"" H11 "\"}]", "h11!", NULL },
  { "eth_getBalance", "[" A ",{\"blockHash\":\"" H11 "\",\"requireCanonical\":false}]", "h11!",
    NULL },
  { "eth_getBalance", "[" A ",{\"blockHash\":\"" H11 "\",\"requireCanonical\":true}]", "pass",
    NULL },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x10\"}]", "n16!", NULL },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"latest\"}]", "pass", NULL },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x1\",\"blockNumber\":\"0x2\"}]", "pass",
    NULL },
  { "eth_getBalance", "[" A ",{\"blockNumber\":\"0x1\",\"BlockHash\":\"" H11 "\"}]", "pass",
    NULL },
  { "eth_getBalance", "[" A ",{\"blockHash\":\"" H11 "\",\"blockNumber\":\"0x1\"}]", "pass",
    NULL },
  { "eth_getBalance", "[" A ",{}]", "pass", NULL },
  { "eth_getBalance", "{\"address\":" A "}", "pass", NULL },
  { "eth_getStorageAt", "[" A ",\"0x0\",\"latest\"]", "h78",
    "[" A ",\"0x0\",{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getStorageAt", "[" A ",\"0x0\"]", "h78",
    "[" A ",\"0x0\",{\"blockHash\":\"" H78 "\"}]" },
  { "eth_getStorageAt", "[" A "]", "pass", NULL },
  { "eth_call", "[{\"to\":" A "},\"0x1\"]", "n1!", NULL },
  { "eth_call", "[{\"to\":" A ",\"data\":\"0x\"}]", "h78",
    "[{\"to\":" A ",\"data\":\"0x\"},{\"blockHash\":\"" H78 "\"}]" },
  { "eth_call", "[{\"to\":" A "},\"latest\",{\"" "x\":{}}]", "h78",
    "[{\"to\":" A "},{\"blockHash\":\"" H78 "\"},{\"x\":{}}]" },
  { "eth_estimateGas", "[{\"to\":" A "}]", "pass", NULL },
  { "eth_estimateGas", "[{\"to\":" A "},\"latest\"]", "h78",
    "[{\"to\":" A "},{\"blockHash\":\"" H78 "\"}]" },
  { "eth_callMany", "[[],{\"blockNumber\":\"0x77\"}]", "pass", NULL },
  { "eth_callMany", "[[],{\"blockNumber\":\"0x7\",\"transactionIndex\":1}]", "pass", NULL },
  { "trace_call", "[{},[\"trace\"],\"latest\"]", "h78",
    "[{},[\"trace\"],{\"blockHash\":\"" H78 "\"}]" },
  { "trace_block", "[\"0x70\"]", "h70", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\"}]", "r1-100!", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x65\"}]", "r1-101?", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x64\",\"toBlock\":\"0x64\"}]", "n100!", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x77\",\"toBlock\":\"0x77\"}]", "h77", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x77\",\"toBlock\":\"0x79\"}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x5\",\"toBlock\":\"0x4\"}]", "pass", NULL },
  { "eth_getLogs", "[{\"address\":" A ",\"fromBlock\":\"latest\",\"toBlock\":\"latest\"}]",
    "h78",
    "[{\"address\":" A ",\"blockHash\":\"" H78 "\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\" , \"topics\": [] ,\"toBlock\":\"latest\"}]",
    "r1-120?",
    "[{\"topics\": [],\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\"}]", "r1-120?",
    "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"finalized\"}]", "r1-100!",
    "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\"}]" },
  { "eth_getLogs", "[{\"toBlock\":\"0x1\"}]", "pass", NULL },
  { "eth_getLogs", "[{}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"earliest\",\"toBlock\":\"0x1\"}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"pending\"}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":null}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\",\"toBlock\":\"0x3\"}]", "pass",
    NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\",\"ToBlock\":\"latest\"}]",
    "pass", NULL },
  { "eth_getLogs", "[{\"blockHash\":\"" H11 "\",\"topics\":[]}]", "h11!", NULL },
  { "eth_getLogs", "[{\"blockHash\":\"" H11 "\",\"toBlock\":\"latest\"}]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\"},1]", "pass", NULL },
  { "trace_filter", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\",\"count\":5}]", "r1-100!",
    NULL },
  { "trace_filter", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x65\"}]", "pass", NULL },
  { "trace_filter", "[{\"fromBlock\":\"0x1\"}]", "pass", NULL },
  { "eth_getTransactionReceipt", "[\"" H11 "\"]", "all", NULL },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", "all", NULL },
  { "eth_getRawTransactionByHash", "[\"" H11 "\"]", "all", NULL },
  { "debug_traceTransaction", "[\"" H11 "\"]", "all", NULL },
};

static bool
is(struct egw_slice got, const char *want)
{
  return want == NULL ? got.ptr == NULL
                      : got.ptr != NULL && got.len == strlen(want) &&
                            memcmp(got.ptr, want, got.len) == 0;
}

static void
test_plans(void)
{
  struct made m;
  unsigned i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    make(&m, rows[i].method, rows[i].params, true, true);
    if (!ok(strcmp(m.text, rows[i].plan) == 0 && is(m.rewritten, rows[i].rewritten), "%s %s",
            rows[i].method, rows[i].params))
      printf("# got %s %.*s\n", m.text, (int)m.rewritten.len, m.rewritten.ptr);
  }
}

/* What is written anew is the same question. */
static bool
same_when_rewritten(const struct row *r)
{
  struct key_identity id;
  struct egw_slice one, two;
  struct made m, again;
  char text[1000];

  make(&m, r->method, r->params, true, true);
  key_identity(&head, &id);
  one = key_make(NULL, &id, &m.method, &m.ask, &m.plan);
  snprintf(text, sizeof text, "%.*s", (int)m.rewritten.len, m.rewritten.ptr);
  memmove(text + 500, one.ptr, one.len);
  make(&again, r->method, text, true, true);
  two = key_make(NULL, &id, &again.method, &again.ask, &again.plan);
  return again.kept && one.len == two.len && memcmp(text + 500, two.ptr, two.len) == 0;
}

static void
test_rewritten(void)
{
  unsigned i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (rows[i].rewritten != NULL)
      ok(same_when_rewritten(&rows[i]), "%s has the key of %s %s", rows[i].rewritten,
         rows[i].method, rows[i].params);
}

/* Under other terms. */
static const struct row no_tags[] = {
  { "eth_getBalance", "[" A ",\"latest\"]", "pass", NULL },
  { "eth_getBalance", "[" A "]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"finalized\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x77\"]", "h77", "[" A ",{\"blockHash\":\"" H77 "\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"latest\"}]", "pass", NULL },
};

static const struct row not_by_hash[] = {
  { "eth_getBalance", "[" A ",\"latest\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x77\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x64\"]", "n100!", NULL },
  { "eth_getBalance", "[" A ",\"finalized\"]", "n100!", "[" A ",\"0x64\"]" },
  { "eth_getBlockReceipts", "[\"latest\"]", "h78", "[\"0x78\"]" },
  { "eth_getLogs", "[{\"fromBlock\":\"latest\",\"toBlock\":\"latest\"}]", "h78",
    "[{\"fromBlock\":\"0x78\",\"toBlock\":\"0x78\"}]" },
};

static const struct row not_live[] = {
  { "eth_getBalance", "[" A ",\"0x77\"]", "pass", NULL },
  { "eth_getBlockByNumber", "[\"0x77\",true]", "pass", NULL },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x65\"}]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x64\"]", "n100!", NULL },
};

static const struct row no_finality[] = {
  { "eth_getBalance", "[" A ",\"0x1\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"finalized\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"safe\"]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"0x5a\"]", "h5a",
    "[" A ",{\"blockHash\":\"" H5A "\"}]" },
};

static const struct row nothing_known[] = {
  { "eth_chainId", "[]", "pass", NULL },
  { "web3_sha3", "[\"0x\"]", "all!", NULL },
  { "eth_getBlockByHash", "[\"" H11 "\",true]", "h11!", NULL },
  { "eth_getBlockByNumber", "[\"0x1\",true]", "pass", NULL },
  { "eth_getBalance", "[" A ",\"latest\"]", "pass", NULL },
  { "eth_getTransactionReceipt", "[\"" H11 "\"]", "pass", NULL },
};

static void
test_terms(const struct row *r, size_t n, bool tags, bool by_hash, const char *what)
{
  struct made m;

  for (; n > 0; n--, r++) {
    make(&m, r->method, r->params, tags, by_hash);
    if (!ok(strcmp(m.text, r->plan) == 0 && is(m.rewritten, r->rewritten), "%s: %s %s", what,
            r->method, r->params))
      printf("# got %s %.*s\n", m.text, (int)m.rewritten.len, m.rewritten.ptr);
  }
}

#define ROWS(a) a, sizeof(a) / sizeof(a[0])

static void
test_all_terms(void)
{
  test_terms(ROWS(no_tags), false, true, "tags are not resolved");
  test_terms(ROWS(not_by_hash), true, false, "no block by hash");
  head.live = false;
  test_terms(ROWS(not_live), false, true, "no upstream is heard of");
  head.live = true;
  head.has_safe = head.has_finalized = false;
  test_terms(ROWS(no_finality), true, true, "no finality");
  head = (struct egw_head){ 0 };
  test_terms(ROWS(nothing_known), false, true, "nothing is known");
  reset_head();
}

/* --- keys -------------------------------------------------------------------------------- */

static bool
same_key(const char *m1, const char *p1, const char *m2, const char *p2)
{
  struct key_identity id;
  struct egw_slice a, b;
  struct made one, two;
  char copy[1000];

  key_identity(&head, &id);
  make(&one, m1, p1, true, true);
  a = key_make(NULL, &id, &one.method, &one.ask, &one.plan);
  if (!one.kept || a.len > sizeof copy)
    abort();
  memcpy(copy, a.ptr, a.len);
  make(&two, m2, p2, true, true);
  b = key_make(NULL, &id, &two.method, &two.ask, &two.plan);
  return two.kept && a.len == b.len && memcmp(copy, b.ptr, a.len) == 0;
}

static void
test_keys(void)
{
  struct key_identity one, two;

  ok(same_key("eth_getBalance", "[" A ",\"latest\"]", "eth_getBalance", "[" A "]") &&
         same_key("eth_getBalance", "[" A "]", "eth_getBalance", "[" A ", \"0x78\"]") &&
         same_key("eth_getBalance", "[" A "]", "eth_getBalance",
                  "[" A ",{\"blockNumber\":\"0x78\"}]") &&
         same_key("eth_getBalance", "[" A "]", "eth_getBalance", "[" A ",\"" H78 "\"]") &&
         same_key("eth_getBalance", "[" A "]", "eth_getBalance",
                  "[" A ",{\"blockHash\":\"" H78 "\"}]"),
     "all forms of one block share a key");
  ok(same_key("eth_getBalance", "[" A ",\"finalized\"]", "eth_getBalance", "[" A ",\"0x64\"]"),
     "and those of a final one");
  ok(!same_key("eth_getBalance", "[" A ",\"latest\"]", "eth_getBalance", "[" A ",\"0x77\"]"),
     "two blocks don't");
  ok(!same_key("eth_getBalance", "[" A ",\"0x64\"]", "eth_getCode", "[" A ",\"0x64\"]"),
     "two methods don't");
  ok(!same_key("eth_getStorageAt", "[\"ab\",\"c\",\"0x1\"]", "eth_getStorageAt",
               "[\"a\",\"bc\",\"0x1\"]") &&
         !same_key("eth_getStorageAt", "[1,\"1\",\"0x1\"]", "eth_getStorageAt",
                   "[\"1\",1,\"0x1\"]") &&
         !same_key("eth_call", "[{},\"latest\",{}]", "eth_call", "[{}]") &&
         !same_key("eth_getBlockByNumber", "[\"0x1\",true]", "eth_getBlockByNumber",
                   "[\"0x1\",false]"),
     "nor do other params");
  ok(same_key("eth_getLogs", "[{\"fromBlock\":\"0x1\",\"topics\":[],\"toBlock\":\"0x2\"}]",
              "eth_getLogs", "[{\"topics\":[],\"toBlock\":\"0x2\",\"fromBlock\":\"0x1\"}]"),
     "where the blocks stand in a filter does not matter");
  ok(same_key("eth_getLogs", "[{\"fromBlock\":\"latest\",\"toBlock\":\"0x78\"}]",
              "eth_getLogs",
              "[{\"blockHash\":\"" H78 "\"}]"), "one block by number is one by hash");
  ok(!same_key("eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x22\"}]", "eth_getLogs",
               "[{\"fromBlock\":\"0x12\",\"toBlock\":\"0x22\"}]"), "two ranges don't share");
  ok(key_identity(&head, &one), "the chain is known");
  head.chain_id = 2;
  ok(key_identity(&head, &two) && memcmp(&one, &two, sizeof one) != 0,
     "another id, another chain");
  head.chain_id = 1;
  head.genesis[31] = 1;
  ok(key_identity(&head, &two) && memcmp(&one, &two, sizeof one) != 0,
     "another genesis, another chain");
  head.has_genesis = false;
  ok(!key_identity(&head, &two), "a chain without a genesis is not known");
  reset_head();
}

/* --- results ----------------------------------------------------------------------------- */

struct judged {
  const char *method, *params, *result;
  enum plan_verdict want;
};

#define BLOCK(n, h) "{\"number\":\"" n "\",\"hash\":\"" h "\"}"
#define OF(n, h) "{\"blockNumber\":\"" n "\",\"blockHash\":\"" h "\"}"
#define TX(n, h) "{\"blockNumber\":" n ",\"blockHash\":" h ",\"hash\":\"" H11 "\"}"

static const struct judged results[] = {
  { "eth_getBalance", "[" A ",\"0x64\"]", "\"0x0\"", PLAN_KEEP_LASTING },
  { "eth_getCode", "[" A ",\"0x64\"]", "\"0x\"", PLAN_KEEP_LASTING },
  { "eth_getBalance", "[" A "]", "\"0x0\"", PLAN_KEEP },
  { "eth_getBalance", "[" A "]", "null", PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"0x1\",true]", BLOCK("0x1", H11), PLAN_KEEP_LASTING },
  { "eth_getBlockByNumber", "[\"0x1\",true]", BLOCK("0x2", H11), PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"0x64\",true]", BLOCK("0x64", H64), PLAN_KEEP_LASTING },
  { "eth_getBlockByNumber", "[\"0x64\",true]", BLOCK("0x64", H11), PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"latest\",true]", BLOCK("0x78", H78), PLAN_KEEP },
  { "eth_getBlockByNumber", "[\"latest\",true]", BLOCK("0x78", H77), PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"latest\",true]", BLOCK("0x79", H78), PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"latest\",true]", "null", PLAN_WRONG },
  { "eth_getBlockByNumber", "[\"0x77\",true]", BLOCK("0x77", H77), PLAN_KEEP },
  { "eth_getBlockByHash", "[\"" H11 "\",true]", BLOCK("0x1", H11), PLAN_KEEP_LASTING },
  { "eth_getBlockByHash", "[\"" H11 "\",true]", BLOCK("0x1", H64), PLAN_WRONG },
  { "eth_getBlockReceipts", "[\"0x77\"]", "[" OF("0x77", H77) "]", PLAN_KEEP },
  { "eth_getBlockReceipts", "[\"0x77\"]", "[" OF("0x77", H78) "]", PLAN_WRONG },
  { "eth_getBlockReceipts", "[\"0x77\"]", "[]", PLAN_DROP },
  { "eth_getBlockReceipts", "[\"latest\"]", " [ ] ", PLAN_DROP },
  { "eth_getBlockReceipts", "[\"" H11 "\"]", "[]", PLAN_DROP },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x5\"}]", "[" OF("0x2", H11) "]",
    PLAN_KEEP_LASTING },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x5\"}]", "[" OF("0x6", H11) "]",
    PLAN_DROP },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\"}]",
    "[" OF("0x2", H11) "," OF("0x64", H11) "]", PLAN_DROP },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]",
    "[" OF("0x2", H11) "," OF("0x78", H78) "]", PLAN_KEEP_PINNED },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]",
    "[" OF("0x77", H11) "," OF("0x78", H78) "]", PLAN_DROP },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]", "[" OF("0x77", H77) "]",
    PLAN_DROP },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x78\"}]", "[]", PLAN_DROP },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("\"0x64\"", "\"" H64 "\""),
    PLAN_KEEP_LASTING },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("\"0x1\"", "\"" H78 "\""),
    PLAN_KEEP_LASTING },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("\"0x77\"", "\"" H77 "\""),
    PLAN_KEEP_PINNED },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("\"0x77\"", "\"" H78 "\""), PLAN_DROP },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("\"0x79\"", "\"" H78 "\""), PLAN_DROP },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", TX("null", "null"), PLAN_DROP },
  { "eth_getTransactionByHash", "[\"" H77 "\"]", TX("\"0x64\"", "\"" H64 "\""), PLAN_DROP },
  { "eth_getTransactionByHash", "[\"" H11 "\"]", "null", PLAN_WRONG },
  { "debug_traceTransaction", "[\"" H11 "\",{}]", "{}", PLAN_KEEP_IF_FINAL },
  { "debug_traceTransaction", "[\"0x1\",{}]", "{}", PLAN_DROP },
  { "debug_traceTransaction", "[\"" H11 "\",{}]", "null", PLAN_WRONG },
  { "trace_transaction", "[\"" H11 "\"]",
    "[{\"transactionHash\":\"" H11 "\",\"blockNumber\":119,\"blockHash\":\"" H77 "\"}]",
    PLAN_KEEP_PINNED },
  { "eth_chainId", "[]", "\"0x1\"", PLAN_KEEP_LASTING },
  { "eth_chainId", "[]", "\"0x2\"", PLAN_DROP },
};

static void
test_results(void)
{
  struct rules_block pin;
  struct made m;
  unsigned i;

  for (i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
    const struct judged *r = &results[i];

    make(&m, r->method, r->params, true, true);
    is_int(m.kept ? (int)plan_result(&m.method, &m.ask, &m.plan, &head, slice(r->result),
                                     false, &pin)
                  : -1,
           (int)r->want, "%s %s: %s", r->method, r->params, r->result);
  }
  make(&m, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x5\"}]", true, true);
  ok(plan_result(&m.method, &m.ask, &m.plan, &head, slice("[]"), false, &pin) == PLAN_DROP,
     "no logs in final blocks: not kept from just any node");
  ok(plan_result(&m.method, &m.ask, &m.plan, &head, slice("[]"), true,
                 &pin) == PLAN_KEEP_LASTING,
     "but from one that has all these blocks");
  make(&m, "eth_getBalance", "[" A ",\"latest\"]", true, true);
  head.lowest = head.tip.number = 119;
  ok(plan_result(&m.method, &m.ask, &m.plan, &head, slice("\"0x1\""), false,
                 &pin) == PLAN_DROP,
     "a block that is not canonical any more");
  reset_head();
}

static const char *const unwanted[] = {
  "eth_gasPrice", "eth_sendRawTransaction", "eth_subscribe", "eth_newFilter",
  "eth_getFilterChanges", "eth_accounts", "eth_syncing", "net_peerCount", "txpool_status",
  "admin_peers", "eth_sendTransaction", "web3_clientVersion", "anvil_getAutomine",
};

int
main(void)
{
  unsigned i;

  reset_head();
  test_plans();
  test_rewritten();
  test_all_terms();
  test_keys();
  test_results();
  for (i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++)
    ok(!rules_want(method_find(slice(unwanted[i]))), "%s is none of ours", unwanted[i]);
  ok(!rules_want(NULL), "an unknown method neither");
  ok(rules_want(method_find(slice("anvil_setBalance"))) &&
         rules_want(method_find(slice("evm_revert"))) &&
         rules_want(method_find(slice("debug_setHead"))),
     "commands to development chains are");
  return done_testing();
}
