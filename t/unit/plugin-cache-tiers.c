/* SPDX-License-Identifier: MIT */
/* The middleware `cache` in its host, with its tier on disk: who waits for it, and what
 * happens to those that leave meanwhile. */
#include <poll.h>
#include <unistd.h>
#include "cache-kit.h"

#define BALANCE "eth_getBalance"
#define FINAL "[\"0xa\",\"0x64\"]"

static char folder[] = "/tmp/egw-tiers-XXXXXX";
static char options[200];

/* A call that is started and may wait for the disk. */
static struct plugtest_call *
start(struct kit *k, const char *method, const char *params)
{
  struct plugtest_call *call = plugtest_call(k->host, &(struct plugtest_spec){
    .method = method, .params = params, .explain = true });

  plugtest_run(k->host);
  return call;
}

/* Until it is over. */
static const struct plugtest_end *
await(struct kit *k, const struct plugtest_call *call)
{
  for (unsigned i = 0; i < 1000 && !plugtest_end(call)->over; i++)
    plugtest_wait_post(k->host, 10);
  return plugtest_end(call);
}

static const struct plugtest_end *
ask(struct kit *k, const char *method, const char *params)
{
  return await(k, start(k, method, params));
}

/* Until a metric has that value; they are brought up to date by heads. */
static bool
becomes(struct kit *k, const char *metric, int64_t value)
{
  for (unsigned i = 0; i < 1000 && plugtest_metric(k->host, metric) != value; i++) {
    kit_tell(k);
    (void)poll(NULL, 0, 5);
  }
  return plugtest_metric(k->host, metric) == value;
}

static void
test_filled(void)
{
  const struct plugtest_end *end;
  struct kit k;

  kit_open(&k, options);
  kit_script(&k, { .result = "\"0x5\"" });
  end = ask(&k, BALANCE, FINAL);
  ok(end->sent == 1 && strcmp(end->body, "\"0x5\"") == 0 &&
         strcmp(end->story, "cache: miss") == 0,
     "nothing on disk: the node is asked");
  is_int(plugtest_metric(k.host, "disk_misses"), 1, "it was looked for");
  ok(becomes(&k, "disk_stored", 1), "the answer is written");
  is_int(plugtest_metric(k.host, "disk_entries"), 1, "one answer on disk");
  ok(!plugtest_held(start(&k, BALANCE, FINAL)), "what is in memory does not wait");
  ok(!plugtest_held(start(&k, BALANCE, "[\"0xa\",\"latest\"]")) &&
         !plugtest_held(start(&k, "eth_estimateGas", "[{}]")),
     "nor what is not final, or not kept");
  plugtest_run(k.host);
  kit_close(&k);
}

static void
test_found(void)
{
  const struct plugtest_end *end;
  struct kit k;

  kit_open(&k, options);
  end = ask(&k, BALANCE, FINAL);
  ok(end->sent == 0 && strcmp(end->body, "\"0x5\"") == 0 &&
         strcmp(end->cache_status, "hit") == 0 &&
         strcmp(end->story, "cache: from disk; cache: hit") == 0,
     "another life: answered from disk");
  is_int(plugtest_metric(k.host, "disk_hits"), 1, "a hit on disk");
  is_int(plugtest_metric(k.host, "hits"), 1, "and one in all");
  is_int(plugtest_metric(k.host, "disk_hit_bytes"), 5, "its bytes");
  ok(kit_hit(&k, BALANCE, FINAL, "\"0x5\""), "then it is in memory");
  kit_close(&k);
}

/* Starts calls about different accounts; how many of them wait for the disk. */
static unsigned
start_many(struct kit *k, unsigned from, struct plugtest_call *calls[60])
{
  unsigned held = 0;

  for (unsigned i = 0; i < 60; i++)
    calls[i] = start(k, BALANCE, kit_text(k, "[\"0x%x\",\"0x64\"]", from + i));
  for (unsigned i = 0; i < 60; i++)
    held += plugtest_held(calls[i]);
  return held;
}

/* Calls that leave while they wait: given up by the client, and by the end of everything. */
static void
test_left(void)
{
  unsigned waited = 0, answered = 0, rounds = 0;
  struct plugtest_call *calls[60];
  struct kit k;

  kit_open(&k, options);
  kit_script(&k, { .result = "\"0x3\"" });
  for (; waited == 0 && rounds < 100; rounds++) {
    start_many(&k, 1000 + 60 * rounds, calls);
    for (unsigned i = 0; i < 60; i += 2)
      if (plugtest_held(calls[i])) {
        waited++;
        plugtest_cancel(calls[i]);
      }
    for (unsigned i = 1; i < 60; i += 2)
      answered += await(&k, calls[i])->over;
  }
  ok(waited > 0, "%u are given up while they wait for the disk", waited);
  is_int(answered, rounds * 30, "the others are answered");
  for (; start_many(&k, 100000 + 60 * rounds, calls) == 0 && rounds < 200; rounds++)
    ;
  ok(rounds < 200, "some wait when everything ends");
  kit_close(&k);
}

/* Without a chain's identity nothing may be kept for another life. */
static void
test_unknown(void)
{
  struct kit k;

  kit_open_unknown(&k, options);
  kit_script(&k, { .result = "\"0x1\"" });
  ok(!plugtest_held(start(&k, "web3_sha3", "[\"0x00\"]")), "no chain: the disk is not asked");
  plugtest_run(k.host);
  kit_tell(&k);
  is_int(plugtest_metric(k.host, "disk_misses") + plugtest_metric(k.host, "disk_dropped"), 0,
         "nor is anything written");
  kit_close(&k);
  kit_open(&k, options);
  k.head.chain_id = 2;
  kit_tell(&k);
  kit_script(&k, { .result = "\"0x7\"" });
  ok(strcmp(ask(&k, BALANCE, FINAL)->body, "\"0x7\"") == 0,
     "another chain does not see what this one kept");
  ok(becomes(&k, "disk_stored", 1), "it has its own");
  kit_close(&k);
}

static void
test_flushed(void)
{
  struct kit k;

  kit_open(&k, options);
  kit_script(&k, { .method = "evm_revert", .result = "true" }, { .result = "\"0x9\"" });
  ok(kit_ask(&k, "evm_revert", "[\"0x1\"]")->over && becomes(&k, "disk_entries", 0),
     "a command that changes history empties the disk");
  ok(strcmp(ask(&k, BALANCE, FINAL)->body, "\"0x9\"") == 0, "the new answer");
  ok(becomes(&k, "disk_entries", 1), "is kept");
  kit_close(&k);
}

static void
test_refused(void)
{
  struct plugtest *host = plugtest_new(kit_so, "disk = \"some/where\";");

  ok(plugtest_refused(host) && strstr(plugtest_messages(host), "absolute") != NULL,
     "a relative folder: %s", plugtest_messages(host));
  plugtest_free(host);
  host = plugtest_new(kit_so, "redis = \"redis://:hunter2@9.9.9.9\";");
  ok(plugtest_refused(host) && strstr(plugtest_messages(host), "hunter2") == NULL,
     "a public address: %s", plugtest_messages(host));
  plugtest_free(host);
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  static const char *const names[] = { "cache.mdb", "cache.mdb-lock", "cache.lock" };
  char path[200];

  if (mkdtemp(folder) == NULL)
    return 1;
  snprintf(options, sizeof options, "disk = \"%s\"; disk_size = \"64MiB\";", folder);
  kit_init();
  test_filled();
  test_found();
  test_left();
  test_unknown();
  test_flushed();
  test_refused();
  plugtest_generic(kit_so, options, &(struct plugtest_spec){ .method = "eth_chainId" },
                   report);
  plugtest_generic(kit_so, "redis = \"redis://127.0.0.1:1\"; redis_secret = \"x\";",
                   &(struct plugtest_spec){ .method = "eth_chainId" }, report);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
  return done_testing();
}
