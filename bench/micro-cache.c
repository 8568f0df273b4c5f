/* SPDX-License-Identifier: MIT */
/* What a hit of the middleware `cache` costs: from the params to a reference to the kept
 * bytes, with a million (or ENTRIES) answers in the store; and what keeping an answer costs, while
 * there is room and when another one has to go for it. Not in it: the call's way through the
 * chain.
 *
 *   bench/micro-cache [--seconds S] [--gets] [ENTRIES]
 *
 * --gets: hits alone. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../plugins/middleware/cache/key.h"
#include "../plugins/middleware/cache/store.h"
#include "rpc/method.h"

#define BENCH_ENTRIES 1000000u
#define BENCH_MEMORY (UINT64_C(2) << 30)

static double bench_seconds = 1.0;
static char bench_arena[65536];
static size_t bench_used;

void *
egw_alloc(struct egw_call *call, size_t size)
{
  void *p = bench_arena + bench_used;

  (void)call;
  bench_used += (size + 15) & ~(size_t)15;
  if (bench_used > sizeof(bench_arena))
    abort();
  return memset(p, 0, size);
}

bool
egw_head_hash(const struct egw_head *head, uint64_t number, unsigned char hash[32])
{
  if (number < head->lowest || number > head->tip.number)
    return false;
  memset(hash, (int)(number & 0xff), 32);
  return true;
}

static const struct egw_head bench_head = {
  .known = true, .live = true, .pushed = true, .settled = true, .has_finalized = true,
  .has_chain_id = true, .has_genesis = true, .chain_id = 1, .lowest = 20000000,
  .tip = { .number = 20001000 }, .finalized = { .number = 20000900 }
};

static double
bench_now(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct egw_slice
bench_key(const char *method, const char *params)
{
  struct plan_terms terms = { &bench_head, true, true, true };
  struct key_identity identity;
  struct rules_method rules;
  struct ask ask;
  struct plan plan;

  bench_used = 0;
  rules_of(method_find((struct egw_slice){ method, strlen(method) }), &rules);
  if (!ask_read(&rules, (struct egw_slice){ params, strlen(params) }, &ask) ||
      !plan_make(&rules, &ask, &terms, &plan) || !key_identity(&bench_head, &identity))
    abort();
  return key_make(NULL, &identity, &rules, &ask, &plan);
}

/* The key of one of many balances. */
static struct egw_slice
bench_numbered(unsigned n)
{
  char params[128];

  snprintf(params, sizeof(params), "[\"0x%040x\",\"0x%x\"]", n, 1 + n % 1000);
  return bench_key("eth_getBalance", params);
}

/* Keeps a short answer. */
static struct store_change
bench_put(struct store *store, struct egw_slice key)
{
  struct store_change change = { 0 };
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("\"0x1234567890abcdef\""));

  if (buf == NULL || !store_put(store, key, buf, &(struct store_terms){ 0 }, &change))
    abort();
  return change;
}

static struct store *
bench_fill(unsigned entries)
{
  struct store *store = store_new(BENCH_MEMORY);
  unsigned i;

  if (store == NULL)
    abort();
  for (i = 0; i < entries; i++)
    bench_put(store, bench_numbered(i));
  return store;
}

/* What the stage does with each call that is a hit. */
static void
bench_hit(struct store *store, const struct rules_method *rules, struct egw_slice params)
{
  struct plan_terms terms = { &bench_head, true, true, true };
  struct key_identity identity;
  struct store_found found;
  struct plan plan;
  struct ask ask;

  bench_used = 0;
  if (!ask_read(rules, params, &ask) || !plan_make(rules, &ask, &terms, &plan))
    abort();
  key_identity(&bench_head, &identity);
  if (!store_get(store, key_make(NULL, &identity, rules, &ask, &plan), &found))
    abort();
  egw_buf_unref(found.value);
}

static void
bench_run(struct store *store, const char *what, const char *method, const char *params)
{
  struct egw_slice text = { params, strlen(params) };
  struct rules_method rules;
  unsigned long n = 0;
  double start;
  unsigned i;

  bench_put(store, bench_key(method, params));
  rules_of(method_find((struct egw_slice){ method, strlen(method) }), &rules);
  start = bench_now();
  do {
    for (i = 0; i < 1000; i++)
      bench_hit(store, &rules, text);
    n += 1000;
  } while (bench_now() - start < bench_seconds);
  printf("%-44s %7.0f ns\n", what, (bench_now() - start) / (double)n * 1e9);
}

/* Puts under new keys, made beforehand, one thousand at a time: what is measured is copying the
 * answer's bytes into a buffer and keeping it. `from` is the first number that is new. */
static unsigned
bench_keep(struct store *store, const char *what, unsigned from, bool full)
{
  static struct egw_slice keys[1000];
  static char texts[1000][256];
  uint64_t evicted = 0;
  unsigned long n = 0;
  double start, used = 0;
  unsigned i;

  do {
    for (i = 0; i < 1000; i++) {
      struct egw_slice key = bench_numbered(from++);

      if (key.len > sizeof(texts[0]))
        abort();
      memcpy(texts[i], key.ptr, key.len);
      keys[i] = (struct egw_slice){ texts[i], key.len };
    }
    start = bench_now();
    for (i = 0; i < 1000; i++)
      evicted += bench_put(store, keys[i]).evicted;
    used += bench_now() - start;
    n += 1000;
  } while (used < bench_seconds && (full || n < BENCH_ENTRIES));
  if (full != (evicted > 0)) {
    fprintf(stderr, "micro-cache: %llu answers had to go\n", (unsigned long long)evicted);
    exit(1);
  }
  printf("%-44s %7.0f ns\n", what, used / (double)n * 1e9);
  return from;
}

/* A store that is as full as it may be. */
static void
bench_evict(unsigned entries)
{
  /* about what so many take: less than they need */
  struct store *store = store_new((uint64_t)entries * 128 + (1u << 16));
  uint64_t evicted = 0;
  unsigned i;

  if (store == NULL)
    abort();
  for (i = 0; i < entries || evicted == 0; i++)
    evicted += bench_put(store, bench_numbered(i)).evicted;
  (void)bench_keep(store, "put, another one has to go", i, true);
  store_free(store);
}

static void
bench_gets(struct store *store)
{
  char call[2600];

  bench_run(store, "eth_getBalance, latest", "eth_getBalance",
            "[\"0x00000000000000000000000000000000deadbeef\",\"latest\"]");
  bench_run(store, "eth_getBalance, final number", "eth_getBalance",
            "[\"0x00000000000000000000000000000000deadbeef\",\"0x1312d00\"]");
  bench_run(store, "eth_call, 4 bytes of data, latest", "eth_call",
            "[{\"to\":\"0x00000000000000000000000000000000deadbeef\",\"data\":\"0x70a08231\"},"
            "\"latest\"]");
  snprintf(call, sizeof(call), "[{\"to\":\"0x00000000000000000000000000000000deadbeef\","
           "\"data\":\"0x%02048d\"},\"latest\"]", 7);
  bench_run(store, "eth_call, 1 KiB of data, latest", "eth_call", call);
  bench_run(store, "eth_getLogs, latest block, 2 topics", "eth_getLogs",
            "[{\"address\":\"0x00000000000000000000000000000000deadbeef\",\"topics\":[\"0x"
            "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef\",null],"
            "\"fromBlock\":\"latest\",\"toBlock\":\"latest\"}]");
}

int
main(int argc, char **argv)
{
  static const struct option known[] = { { "seconds", required_argument, NULL, 's' },
                                         { "gets", no_argument, NULL, 'g' },
                                         { NULL, 0, NULL, 0 } };
  unsigned entries = BENCH_ENTRIES;
  struct store *store;
  bool gets = false;
  int c;

  while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
    if (c == 'g') {
      gets = true;
      continue;
    }
    if (c != 's') {
      fprintf(stderr, "usage: %s [--seconds S] [--gets] [ENTRIES]\n", argv[0]);
      return 2;
    }
    bench_seconds = strtod(optarg, NULL);
  }
  if (optind < argc)
    entries = (unsigned)strtoul(argv[optind], NULL, 10);
  store = bench_fill(entries);
  bench_gets(store);
  if (!gets)
    (void)bench_keep(store, "put, there is room", entries, false);
  store_free(store);
  if (!gets)
    bench_evict(entries);
  return 0;
}
