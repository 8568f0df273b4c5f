/* SPDX-License-Identifier: MIT */
/* Small parts of `failover`: the retry budget, and quantiles of latencies. */
#include "../lib/tap.h"

#include "../../plugins/middleware/failover/budget.h"
#include "../../plugins/middleware/failover/latency.h"

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

int
main(void)
{
  budget();
  quantiles();
  buckets();
  return done_testing();
}
