/* SPDX-License-Identifier: MIT */
/* The middleware `cache` in its host: hits, tags, and how the node is asked. The chain
 * stands still here, or grows; see plugin-cache-reorg.c. */
#include "cache-kit.h"

#define BAD { .is_error = true, .code = -32602, .message = "invalid argument 1" }
#define NOT_FOUND { .is_error = true, .code = -32000, .message = "header not found" }
#define BALANCE "eth_getBalance"
#define BY_HASH(k, n) kit_text((k), "[\"0xa\",{\"blockHash\":\"%s\"}]", kit_hash((k), (n)))

static void
test_final(void)
{
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, { .method = BALANCE, .result = "\"0x5\"" }, { .method = "eth_getCode" },
             { .method = "eth_getStorageAt", .is_error = true, .code = -32000,
               .message = "no" },
             { .method = "eth_getLogs", .result = "[]" });
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"0x64\"]", NULL, "\"0x5\""),
     "the first one asks the node");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x64\"]", "\"0x5\""), "the second one does not");
  ok(kit_hit(&k, BALANCE, "[ \"0xa\", \"0x64\" ]", "\"0x5\""), "white space does not matter");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",{\"blockNumber\":\"0x64\"}]", "\"0x5\""),
     "nor how it is named");
  kit_settle(&k);
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"finalized\"]", "\"0x5\""), "a tag is its number");
  ok(kit_ask(&k, BALANCE, "[\"0xb\",\"0x64\"]")->sent == 1, "other params ask");
  ok(kit_ask(&k, "eth_getCode", "[\"0xa\",\"0x1\"]")->sent == 1 &&
         kit_ask(&k, "eth_getCode", "[\"0xa\",\"0x1\"]")->sent == 1, "null is not kept");
  ok(kit_ask(&k, "eth_getStorageAt", "[\"0xa\",\"0x0\",\"0x1\"]")->sent == 1 &&
         kit_ask(&k, "eth_getStorageAt", "[\"0xa\",\"0x0\",\"0x1\"]")->sent == 1,
     "nor an error");
  ok(kit_ask(&k, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\"}]")->sent == 1 &&
         kit_ask(&k, "eth_getLogs",
                 "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x2\"}]")->sent == 1,
     "nor an empty list of a node that may not have these blocks");
  is_int(plugtest_metric(k.host, "hits"), 4, "hits");
  is_int(plugtest_metric(k.host, "stored"), 2, "stored");
  is_int(plugtest_metric(k.host, "entries"), 2, "entries");
  ok(plugtest_metric(k.host, "bytes") > 300, "bytes");
  is_int(plugtest_metric(k.host, "hit_bytes"), 4 * 5, "bytes of hits");
  kit_close(&k);
}

static void
test_archive(void)
{
  struct egw_upstream_info node = { .name = "node", .up = true, .has_lowest = true,
                                    .lowest = 5 };
  struct kit k;

  kit_open(&k, "");
  plugtest_upstreams(k.host, &node, 1);
  kit_script(&k, { .result = "[]" });
  kit_ask(&k, "eth_getLogs", "[{\"fromBlock\":\"0x5\",\"toBlock\":\"0x6\"}]");
  ok(kit_hit(&k, "eth_getLogs", "[{\"fromBlock\":\"0x5\",\"toBlock\":\"0x6\"}]", "[]"),
     "no logs in final blocks, from a node that has them: kept");
  kit_ask(&k, "eth_getLogs", "[{\"fromBlock\":\"0x4\",\"toBlock\":\"0x6\"}]");
  ok(kit_ask(&k, "eth_getLogs", "[{\"fromBlock\":\"0x4\",\"toBlock\":\"0x6\"}]")->sent == 1,
     "from one that lacks one of them: not");
  kit_ask(&k, "eth_getBlockReceipts", "[\"0x77\"]");
  ok(kit_ask(&k, "eth_getBlockReceipts", "[\"0x77\"]")->sent == 1,
     "nor of a block that is not final");
  kit_close(&k);
}

static void
test_unknown(void)
{
  struct kit k;

  kit_open_unknown(&k, "");
  kit_script(&k, { .result = "\"0x1\"" });
  ok(strcmp(kit_status(&k, BALANCE, "[\"0xa\",\"0x1\"]"), "bypass") == 0 &&
         strcmp(kit_status(&k, BALANCE, "[\"0xa\",\"latest\"]"), "bypass") == 0 &&
         strcmp(kit_status(&k, "eth_blockNumber", "[]"), "bypass") == 0 &&
         strcmp(kit_status(&k, "eth_chainId", "[]"), "bypass") == 0,
     "while no head is known, nothing is kept by number or tag");
  kit_ask(&k, "web3_sha3", "[\"0x00\"]");
  ok(kit_hit(&k, "web3_sha3", "[\"0x00\"]", "\"0x1\""), "what is the same on all chains is");
  k.head.has_chain_id = true;
  k.head.chain_id = 1;
  kit_tell(&k);
  kit_ask(&k, "eth_chainId", "[]");
  ok(kit_hit(&k, "eth_chainId", "[]", "\"0x1\""), "the chain's id once it is known");
  is_int(plugtest_metric(k.host, "bypasses"), 4, "bypasses are counted");
  kit_close(&k);
}

static void
test_latest(void)
{
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, { .result = "\"0x5\"" });
  kit_ask(&k, BALANCE, "[\"0xc\"]"); /* this node takes that */
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "the node is asked for the block that is the latest");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"latest\"]", "\"0x5\"") &&
     kit_hit(&k, BALANCE, "[\"0xa\"]", "\"0x5\"") &&
         kit_hit(&k, BALANCE, "[\"0xa\",\"0x78\"]", "\"0x5\"") &&
         kit_hit(&k, BALANCE, "[\"0xa\",{\"blockNumber\":\"0x78\"}]", "\"0x5\"") &&
         kit_hit(&k, BALANCE, BY_HASH(&k, 120), "\"0x5\"") &&
         kit_hit(&k, BALANCE, kit_text(&k, "[\"0xa\",\"%s\"]", kit_hash(&k, 120)), "\"0x5\""),
     "all names of the block share the answer");
  ok(kit_ask(&k, BALANCE, "[\"0xa\",\"pending\"]")->sent == 1, "pending does not");
  ok(kit_ask(&k, BALANCE,
             kit_text(&k, "[\"0xa\",{\"blockHash\":\"%s\",\"requireCanonical\":true}]",
                                   kit_hash(&k, 120)))->sent == 1, "nor requireCanonical");
  kit_script(&k, { .result = "\"0x6\"" });
  kit_mine(&k, 121);
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 121), "\"0x6\""),
     "a new head ends it");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x78\"]", "\"0x5\""), "but not the block's own answer");
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"safe\"]", NULL, "\"0x6\"") &&
         kit_asked(&k, BALANCE, "[\"0xa\",\"finalized\"]", NULL, "\"0x6\""),
     "safe and finalized may be about to move with a new head");
  kit_settle(&k);
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"safe\"]", BY_HASH(&k, 110), "\"0x6\"") &&
         kit_hit(&k, BALANCE, "[\"0xa\",\"0x6e\"]", "\"0x6\""), "safe");
  kit_close(&k);
}

static void
test_omitted(void)
{
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, BAD, { .result = "\"0x5\"" });
  kit_ask(&k, BALANCE, "[\"0xa\"]");
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "the latest is kept");
  kit_script(&k, BAD, { .result = "\"0x5\"" });
  ok(kit_ask(&k, BALANCE, "[\"0xa\"]")->is_error, "a node that wants it to be named is heard");
  ok(kit_asked(&k, BALANCE, "[\"0xa\"]", NULL, "\"0x5\""), "each time");
  ok(kit_hit(&k, BALANCE, "[\"0xa\"]", "\"0x5\""), "until it may be left out");
  kit_close(&k);
}

static void
test_blocks(void)
{
  struct kit k;
  const char *block;

  kit_open(&k, "");
  block = kit_text(&k, "{\"number\":\"0x78\",\"hash\":\"%s\"}", kit_hash(&k, 120));
  kit_script(&k, { .result = block });
  ok(kit_asked(&k, "eth_getBlockByNumber", "[\"latest\",false]", "[\"0x78\",false]", block),
     "a block by tag is asked for by number");
  ok(kit_hit(&k, "eth_getBlockByNumber", "[\"0x78\",false]", block),
     "and is kept as it is that block");
  kit_mine(&k, 121);
  kit_script(&k, { .result = "null" }, { .result = "{\"number\":\"0x79\",\"x\":1}" });
  ok(strcmp(kit_ask(&k, "eth_getBlockByNumber", "[\"latest\",false]")->body,
            "{\"number\":\"0x79\",\"x\":1}") == 0 &&
         strcmp(plugtest_reached_params(k.host, plugtest_reached(k.host) - 1),
                "[\"latest\",false]") == 0,
     "a node that does not have it yet is asked for its latest");
  ok(kit_ask(&k, "eth_getBlockByNumber", "[\"latest\",false]")->sent == 2,
     "and what can't be told to be the block is not kept");
  is_int(plugtest_metric(k.host, "resent"), 2, "counted");
  is_int(plugtest_metric(k.host, "refused"), 0, "that is no refusal");
  kit_script(&k, { .result = "null" });
  ok(kit_asked(&k, "eth_getBlockByNumber", "[\"0x7a\",false]", NULL, "null") &&
         kit_asked(&k, "eth_getBlockByNumber", "[\"0x7a\",false]", NULL, "null"),
     "a block to come");
  kit_close(&k);
}

static void
test_tags_option(void)
{
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, { .result = "\"0x5\"" });
  ok(kit_hit(&k, "eth_blockNumber", "[]", "\"0x78\""), "the tip's number is known");
  kit_mine(&k, 121);
  ok(kit_hit(&k, "eth_blockNumber", "[]", "\"0x79\""), "the new one too");
  k.head.settled = false;
  kit_tell(&k);
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", NULL, "\"0x5\"") &&
         kit_asked(&k, "eth_blockNumber", "[]", NULL, "\"0x5\""),
     "not settled: the node is asked");
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"finalized\"]", NULL, "\"0x5\""), "for other tags too");
  k.head.settled = true;
  k.head.pushed = false;
  kit_tell(&k);
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", NULL, "\"0x5\"") &&
         kit_asked(&k, "eth_blockNumber", "[]", NULL, "\"0x5\""),
     "auto: not while heads are polled");
  kit_close(&k);
  kit_open(&k, "tags = \"always\";");
  kit_script(&k, { .result = "\"0x5\"" });
  k.head.pushed = false;
  kit_tell(&k);
  ok(kit_hit(&k, "eth_blockNumber", "[]", "\"0x78\"") &&
         kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "always: also then");
  k.head.live = false;
  kit_tell(&k);
  ok(kit_asked(&k, "eth_blockNumber", "[]", NULL, "\"0x5\"") &&
         kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", NULL, "\"0x5\"") &&
         kit_asked(&k, BALANCE, "[\"0xa\",\"0x78\"]", NULL, "\"0x5\""),
     "but not when all nodes are lost");
  kit_close(&k);
  kit_open(&k, "tags = \"never\";");
  kit_script(&k, { .result = "\"0x5\"" });
  ok(kit_ask(&k, "eth_blockNumber", "[]")->skipped &&
     kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", NULL, "\"0x5\""),
     "never");
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"0x78\"]", BY_HASH(&k, 120), "\"0x5\"") &&
         kit_hit(&k, BALANCE, "[\"0xa\",\"0x78\"]", "\"0x5\""),
     "numbers are kept all the same");
  kit_close(&k);
}

/* A node that does not take blocks by hash. */
static void
test_refusal(void)
{
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, BAD, { .result = "\"0x5\"" });
  ok(kit_ask(&k, BALANCE, "[\"0xa\",\"latest\"]")->sent == 2, "refused: it is sent again");
  ok(strcmp(plugtest_reached_params(k.host, 1), "[\"0xa\",\"latest\"]") == 0,
     "as it was asked");
  is_int(plugtest_metric(k.host, "refused"), 1, "and is noted");
  ok(kit_asked(&k, BALANCE, "[\"0xb\",\"latest\"]", NULL, "\"0x5\"") &&
         kit_asked(&k, BALANCE, "[\"0xb\",\"0x77\"]", NULL, "\"0x5\"") &&
         kit_asked(&k, BALANCE, "[\"0xb\",\"latest\"]", NULL, "\"0x5\""),
     "from then on as it is, and not kept");
  ok(kit_asked(&k, "eth_getCode", "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "other methods are tried");
  kit_ask(&k, BALANCE, "[\"0xa\",\"0x1\"]");
  ok(kit_hit(&k, BALANCE, "[\"0xa\",\"0x1\"]", "\"0x5\""), "what is final is kept by number");
  plugtest_advance(k.host, 600001);
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "after ten minutes it is tried again");
  kit_close(&k);

  kit_open(&k, "");
  kit_script(&k, BAD, { .is_error = true, .code = -32602, .message = "your own" },
             { .result = "\"0x5\"" });
  ok(strcmp(kit_ask(&k, BALANCE, "[\"0xa\",\"latest\"]")->message, "your own") == 0,
     "a question that is bad in itself: the client gets the answer to its own words");
  is_int(plugtest_metric(k.host, "refused"), 0, "that says nothing about hashes");
  ok(kit_asked(&k, BALANCE, "[\"0xa\",\"latest\"]", BY_HASH(&k, 120), "\"0x5\""),
     "they are still used");
  kit_close(&k);
}

static void
test_errors(void)
{
  struct kit k;
  unsigned i;

  kit_open(&k, "");
  kit_script(&k, { .is_error = true, .code = 3, .message = "execution reverted",
                   .data = "\"0x08c3\"" });
  ok(kit_ask(&k, "eth_call", "[{},\"latest\"]")->sent == 1 &&
     kit_ask(&k, "eth_call", "[{},\"latest\"]")->sent == 1,
     "a revert is an answer; it is not kept");
  kit_script(&k, { .is_error = true, .code = -32005, .message = "limit" });
  ok(kit_ask(&k, "eth_call", "[{},\"latest\"]")->sent == 1,
     "a limit has nothing to do with the block");
  kit_script(&k, { .outcome = EGW_MAYBE_SENT, .why = "reset" });
  ok(kit_ask(&k, "eth_call", "[{},\"latest\"]")->sent == 1,
     "a fault is a matter of the stages below");
  kit_script(&k, NOT_FOUND, { .result = "\"0x1\"" });
  ok(strcmp(kit_ask(&k, "eth_call", "[{},\"latest\"]")->body, "\"0x1\"") == 0,
     "a block that a node lacks: asked again");
  ok(kit_asked(&k, "eth_call", "[{},\"0x78\"]",
               kit_text(&k, "[{},{\"blockHash\":\"%s\"}]", kit_hash(&k, 120)), "\"0x1\""),
     "the second answer was not kept");
  for (i = 0; i < 3; i++) {
    kit_script(&k, NOT_FOUND, { .result = "\"0x1\"" });
    kit_ask(&k, "eth_call", "[{},\"latest\",{}]");
  }
  is_int(plugtest_metric(k.host, "refused"), 1, "three such in a row: no hashes for a minute");
  ok(kit_asked(&k, "eth_call", "[{},\"latest\"]", NULL, "\"0x1\""), "as it is");
  plugtest_advance(k.host, 60001);
  ok(kit_asked(&k, "eth_call", "[{},\"latest\",1]",
               kit_text(&k, "[{},{\"blockHash\":\"%s\"},1]", kit_hash(&k, 120)), "\"0x1\""),
     "then they are tried again");
  kit_close(&k);
}

static void
test_sizes(void)
{
  struct kit k;

  kit_open(&k, "memory = \"1MiB\"; max_value = \"1kB\";");
  kit_script(&k, { .big = 2000 });
  ok(kit_ask(&k, BALANCE, "[\"0xa\",\"0x1\"]")->sent == 1 &&
     kit_ask(&k, BALANCE, "[\"0xa\",\"0x1\"]")->sent == 1,
     "longer results are not kept");
  kit_script(&k, { .result = "\"0x1\"", .partial = true });
  ok(kit_ask(&k, BALANCE, "[\"0xa\",\"0x1\"]")->sent == 1 &&
     kit_ask(&k, BALANCE, "[\"0xa\",\"0x1\"]")->sent == 1,
     "nor what comes in pieces");
  kit_script(&k, { .big = 900 });
  for (unsigned i = 0; i < 2000; i++)
    kit_ask(&k, BALANCE, kit_text(&k, "[%u,\"0x1\"]", i));
  ok(plugtest_metric(k.host, "bytes") <= 1 << 20 && plugtest_metric(k.host, "bytes") > 1 << 19,
     "the memory is filled and bounded");
  is_int(plugtest_metric(k.host, "evicted") + plugtest_metric(k.host, "entries"), 2000,
         "what went is counted");
  kit_close(&k);
}

static void
test_explained(void)
{
  struct plugtest_spec spec = { .method = BALANCE, .params = "[\"0xa\",\"latest\"]",
                                .explain = true };
  struct kit k;

  kit_open(&k, "");
  kit_script(&k, BAD, { .result = "\"0x1\"" });
  ok(strcmp(plugtest_ask(k.host, &spec)->story,
            "cache: miss; cache: asked for block 120 by its hash; cache: sent as it was asked") == 0,
                "a miss");
  ok(strcmp(plugtest_ask(k.host, &spec)->story, "cache: bypass") == 0, "a bypass");
  spec.params = "[\"0xa\",\"0x1\"]";
  ok(strcmp(plugtest_ask(k.host, &spec)->story, "cache: miss") == 0, "another miss");
  ok(strcmp(plugtest_ask(k.host, &spec)->story, "cache: hit") == 0, "a hit");
  kit_close(&k);
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  kit_init();
  test_final();
  test_archive();
  test_unknown();
  test_latest();
  test_omitted();
  test_blocks();
  test_tags_option();
  test_refusal();
  test_errors();
  test_sizes();
  test_explained();
  plugtest_generic(kit_so, "", &(struct plugtest_spec){ .method = "web3_sha3" }, report);
  return done_testing();
}
