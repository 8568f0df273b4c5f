/* SPDX-License-Identifier: MIT */
/* Small parts of `failover`: the retry budget, and quantiles of latencies. */
#include "../lib/tap.h"

#include <ethrpc-gw/eth.h>

#include "../../plugins/middleware/failover/budget.h"
#include "../../plugins/middleware/failover/latency.h"
#include "../../plugins/middleware/failover/txhash.h"

static void
budget(void)
{
  struct budget b = { 0 };
  unsigned i, got = 0;

  budget_enter(&b);
  for (i = 0; i < 10; i++)
    got += budget_take(&b, 0.2);
  is_int(got, 3, "one call: three extra attempts");
  for (i = 0; i < 99; i++)
    budget_enter(&b);
  for (i = 0; i < 100; i++)
    got += budget_take(&b, 0.2);
  is_int(got, 20, "a hundred calls: a fifth of them");
  budget_give(&b);
  ok(budget_take(&b, 0.2), "what was given back can be taken");
  ok(!budget_take(&b, 0.2), "but no more");
  for (i = 0; i < 100; i++)
    budget_leave(&b);
  ok(!budget_take(&b, 1.0), "no calls, and extra attempts still in flight: none");
}

static void
quantiles(void)
{
  static struct latency l;
  uint64_t ms = 0;
  unsigned i;

  for (i = 0; i < 19; i++)
    latency_add(&l, 5);
  ok(!latency_quantile(&l, 0.5, &ms), "too few to say");
  for (i = 0; i < 71; i++)
    latency_add(&l, 5);
  for (i = 0; i < 10; i++)
    latency_add(&l, 1000);
  ok(latency_quantile(&l, 0.5, &ms) && ms == 5, "the median of a hundred");
  ok(latency_quantile(&l, 0.9, &ms) && ms == 5, "90 %% of them");
  ok(latency_quantile(&l, 0.95, &ms) && ms >= 1000 && ms < 1300, "95 %%: the slow ones");
  for (i = 0; i < 20000; i++)
    latency_add(&l, 2);
  ok(latency_quantile(&l, 0.999, &ms) && ms == 2, "older ones fade");
  latency_add(&l, UINT64_MAX);
  ok(latency_quantile(&l, 1.0, &ms) && ms > 100000, "a very long time");
  ok(latency_quantile(&l, 0.0, &ms) && ms == 0, "none of them");
}

/* A bucket's end is never below what was put in, and at most a quarter above. */
static void
buckets(void)
{
  uint64_t ms, end = 0;
  unsigned bad = 0, i;

  for (ms = 0; ms < 400000; ms += 1 + ms / 50) {
    struct latency l = { 0 };

    for (i = 0; i < 20; i++)
      latency_add(&l, ms);
    if (!latency_quantile(&l, 1.0, &end) || end < ms || end > ms + ms / 4)
      bad++;
  }
  is_int(bad, 0, "buckets are about a fifth wide");
}

/* --- hashes ------------------------------------------------------------------------------ */

static void
hash_is(const char *params, const char *want, const char *what)
{
  unsigned char hash[32];
  char got[67] = "none";

  if (txhash_of_params((struct egw_slice){ params, strlen(params) }, hash))
    egw_hex_print(hash, sizeof hash, got);
  if (!ok(strcmp(got, want) == 0, "%s", what))
    printf("#   got %s\n", got);
}

static void
hashes(void)
{
  hash_is("[\"0xc101\"]", "0x6c36223290bd3b7c85d6080354199709dfdd05c42756ae6f8edba873ae2adcd1",
          "legacy");
  hash_is("[\"0x02c101\"]",
          "0x4c0c55ce34115280c456fa99c54175ae9b3714bb0b6becdf283e490241442ce8", "a type");
  hash_is("[\"0x03c101\"]",
          "0x2cfd340b0b369fd46eb732348143b1335975465f3eaa36a07896660b95c27146",
          "blobs that are elsewhere");
  hash_is("[\"0x03c5c101c0c0c0\"]",
          "0x2cfd340b0b369fd46eb732348143b1335975465f3eaa36a07896660b95c27146",
          "blobs in a wrapper: that of the transaction");
  hash_is("[\"0x03c6c10101c0c0c0\"]",
          "0x2cfd340b0b369fd46eb732348143b1335975465f3eaa36a07896660b95c27146",
          "and with a version");
  hash_is("[\"0x03f83cc101b838abababababababababababababababababababababab"
          "abababababababababababababababababababababababababababababababababab\"]",
          "0x2cfd340b0b369fd46eb732348143b1335975465f3eaa36a07896660b95c27146",
          "and with a long list");
  hash_is("[\"0x03c6c101c0c0c0\"]", "none", "a wrapper that is cut off");
  hash_is("[\"0x03ff\"]", "none", "a length that is not there");
  hash_is("[\"0x03fc010000000000\"]", "none", "a length beyond all");
  hash_is("[\"0x03c2c5c0\"]", "none", "an item longer than its list");
  hash_is("[\"0x7101\"]", "none", "a type that Ethereum does not have");
  hash_is("[\"0x0001\"]", "none", "no type");
  hash_is("[\"0x\"]", "none", "nothing");
  hash_is("[\"0xzz\"]", "none", "no hex");
  hash_is("[\"0xc101\",1]", "none", "more params");
  hash_is("[]", "none", "no params");
  hash_is("{}", "none", "an object");
}

/* Any bytes: for the sanitizers, and that something comes of some. */
static void
any_bytes(void)
{
  static const char digits[] = "0123456789abcdef";
  unsigned seed = 3, i, k, hashed = 0;
  unsigned char hash[32];

  for (i = 0; i < 20000; i++) {
    char params[64] = "[\"0x03";
    unsigned len = 2 * (i % 24), at = 6;

    for (k = 0; k < len; k++) {
      seed = seed * 1103515245u + 12345u;
      params[at++] = k < 6 && k % 2 == 0 && seed >> 30 != 0 ? "cf"[seed >> 16 & 1]
                                                            : digits[seed >> 16 & 15];
    }
    memcpy(params + at, "\"]", 3);
    hashed += txhash_of_params((struct egw_slice){ params, strlen(params) }, hash);
  }
  ok(hashed > 1000 && hashed < 19000, "%u of 20000 random texts have a hash", hashed);
}

int
main(void)
{
  budget();
  quantiles();
  buckets();
  hashes();
  any_bytes();
  return done_testing();
}
