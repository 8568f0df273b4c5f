/* SPDX-License-Identifier: MIT */
/* Log filters against logs and blooms, and a block's logs: read, reversed, marked as removed. */
#include <stdio.h>
#include <string.h>
#include "push/logs.h"
#include "push/match.h"
#include "base/buf.h"
#include "../lib/tap.h"
#include <ethrpc-gw/eth.h>

#define A "\"0x000000000000000000000000000000000000000a\""
#define B "\"0x000000000000000000000000000000000000000B\""
#define T1 "\"0x1111111111111111111111111111111111111111111111111111111111111111\""
#define T2 "\"0x2222222222222222222222222222222222222222222222222222222222222222\""
#define T3 "\"0x3333333333333333333333333333333333333333333333333333333333333333\""

static struct egw_slice
text(const char *s)
{
  return (struct egw_slice){ s, strlen(s) };
}

static struct log_set *
logs_of(const char *json)
{
  struct egw_buf *buf = egw_buf_copy(text(json));
  struct log_set *set = log_set_new(buf, egw_buf_slice(buf));

  egw_buf_unref(buf);
  return set;
}

static void
test_matching(void)
{
  static const struct {
    const char *filter, *address, *topics;
    bool want;
  } rows[] = {
    { "{}", A, "[]", true },
    { "null", A, "[" T1 "]", true },
    { "{\"address\":" A "}", A, "[]", true },
    { "{\"address\":" A "}", B, "[]", false },
    { "{\"address\":\"0x000000000000000000000000000000000000000b\"}", B, "[]", true },
    { "{\"address\":[" A "," B "]}", B, "[]", true },
    { "{\"address\":[]}", B, "[]", true },
    { "{\"address\":null}", B, "[]", true },
    { "{\"topics\":[]}", A, "[]", true },
    { "{\"topics\":null}", A, "[]", true },
    { "{\"topics\":[null]}", A, "[]", false },
    { "{\"topics\":[null]}", A, "[" T1 "]", true },
    { "{\"topics\":[" T1 "]}", A, "[" T1 "]", true },
    { "{\"topics\":[" T1 "]}", A, "[" T1 "," T2 "]", true },
    { "{\"topics\":[" T1 "]}", A, "[" T2 "," T1 "]", false },
    { "{\"topics\":[" T1 "," T2 "]}", A, "[" T1 "]", false },
    { "{\"topics\":[null," T2 "]}", A, "[" T1 "," T2 "]", true },
    { "{\"topics\":[null," T2 "]}", A, "[" T2 "," T1 "]", false },
    { "{\"topics\":[[" T1 "," T2 "]]}", A, "[" T2 "]", true },
    { "{\"topics\":[[" T1 "," T2 "]]}", A, "[" T3 "]", false },
    { "{\"topics\":[[" T1 "," T2 "]," T3 "]}", A, "[" T2 "," T3 "]", true },
    { "{\"topics\":[[]," T3 "]}", A, "[" T2 "," T3 "]", true },
    { "{\"topics\":[[" T1 ",null]]}", A, "[" T3 "]", true },
    { "{\"address\":" A ",\"topics\":[" T1 "]}", B, "[" T1 "]", false },
    { "{\"fromBlock\":\"0x1\",\"toBlock\":\"latest\",\"other\":[{}]}", A, "[]", true },
    { "{\"topics\":[" T1 ",null,null,null]}", A, "[" T1 "," T1 "," T1 "," T1 "]", true },
  };
  size_t i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    const char *why;
    struct log_filter *f = log_filter_new(text(rows[i].filter), &why);
    char json[700];
    struct log_set *set;

    snprintf(json, sizeof(json), "[{\"address\":%s,\"topics\":%s,\"data\":\"0x\"}]", rows[i].address,
             rows[i].topics);
    set = logs_of(json);
    ok(f != NULL && set != NULL && log_filter_matches(f, &set->v[0]) == rows[i].want,
       "%s %s %.60s", rows[i].filter, rows[i].want ? "has" : "has not", rows[i].topics);
    log_set_unref(set);
    log_filter_free(f);
  }
}

static void
test_refused(void)
{
  static const struct {
    const char *filter, *why;
  } rows[] = {
    { "[]", "invalid filter" },
    { "\"x\"", "invalid filter" },
    { "{\"address\":5}", "invalid address" },
    { "{\"address\":\"0x12\"}", "invalid address" },
    { "{\"address\":[5]}", "invalid address" },
    { "{\"address\":" T1 "}", "invalid address" },
    { "{\"topics\":5}", "invalid topics" },
    { "{\"topics\":[5]}", "invalid topic" },
    { "{\"topics\":[" A "]}", "invalid topic" },
    { "{\"topics\":[[[" T1 "]]]}", "invalid topic" },
    { "{\"topics\":[null,null,null,null,null]}", "more than four topics" },
  };
  size_t i;
  const char *why;
  struct egw_buf *big = egw_buf_new(0);

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct log_filter *f = log_filter_new(text(rows[i].filter), &why);

    ok(f == NULL && strcmp(why, rows[i].why) == 0, "%s: %s", rows[i].filter, rows[i].why);
    log_filter_free(f);
  }
  if (egw_buf_printf(big, "{\"address\":[" A) < 0)
    abort();
  for (i = 0; i < FILTER_ALTERNATIVES_MAX; i++)
    if (egw_buf_printf(big, "," A) < 0)
      abort();
  if (egw_buf_printf(big, "]}") < 0)
    abort();
  ok(log_filter_new(egw_buf_slice(big), &why) == NULL &&
         strcmp(why, "too many addresses or topics") == 0, "a filter without end");
  egw_buf_unref(big);
}

/* The bloom of Ethereum's yellow paper: three bits of the hash of each address and topic. */
static void
bloom_add(unsigned char bloom[256], const unsigned char *bytes, size_t len)
{
  unsigned char hash[32];
  unsigned i;

  egw_keccak256((struct egw_slice){ (const char *)bytes, len }, hash);
  for (i = 0; i < 6; i += 2) {
    unsigned bit = (unsigned)(hash[i] << 8 | hash[i + 1]) & 2047;

    bloom[255 - bit / 8] |= (unsigned char)(1u << (bit % 8));
  }
}

static void
test_bloom(void)
{
  /* A known answer: the bloom of the address 0x095e7baea6a6c7c4c2dfeb977efac326af552d87 alone sets
   * bits that are three at most, and a filter for it finds them. */
  unsigned char address[20], topic[32], bloom[256] = { 0 }, none[256] = { 0 };
  const char *why;
  struct log_filter *f;
  unsigned i, bits = 0;

  egw_hex_read(EGW_LIT("\"0x095e7baea6a6c7c4c2dfeb977efac326af552d87\""), address, 20);
  egw_hex_read(EGW_LIT(T1), topic, 32);
  bloom_add(bloom, address, 20);
  for (i = 0; i < 2048; i++)
    bits += bloom[i / 8] >> (i % 8) & 1;
  ok(bits >= 1 && bits <= 3, "an address sets up to three bits");
  f = log_filter_new(EGW_LIT("{\"address\":\"0x095e7baea6a6c7c4c2dfeb977efac326af552d87\"}"), &why);
  ok(log_filter_bloom(f, bloom), "a bloom that speaks of the address");
  ok(!log_filter_bloom(f, none), "one that speaks of nothing");
  log_filter_free(f);
  f = log_filter_new(EGW_LIT("{\"address\":\"0x095e7baea6a6c7c4c2dfeb977efac326af552d87\",\"topics\":[null," T1 "]}"),
                     &why);
  ok(!log_filter_bloom(f, bloom), "the topic is missing");
  bloom_add(bloom, topic, 32);
  ok(log_filter_bloom(f, bloom), "now it is there");
  log_filter_free(f);
  f = log_filter_new(EGW_LIT("{}"), &why);
  ok(log_filter_bloom(f, none), "a filter for anything asks always");
  log_filter_free(f);
  ok(!bloom_read(EGW_LIT("{}"), bloom) && !bloom_read(EGW_LIT("{\"logsBloom\":\"0x00\"}"), bloom),
     "headers without a bloom");
}

static void
test_sets(void)
{
  struct log_set *set = logs_of("[{\"address\":" A ",\"topics\":[" T1 "],\"logIndex\":\"0x0\",\"removed\":false},"
                                " {\"address\":" B ",\"removed\":false,\"topics\":[],\"logIndex\":\"0x1\"},"
                                "{\"topics\":[],\"address\":" B "}]");
  struct log_set *back;
  static const char *const bad[] = { "{}", "null", "[5]", "[{}]", "[{\"address\":" A "}]",
    "[{\"address\":" T1 ",\"topics\":[]}]", "[{\"address\":" A ",\"topics\":[5]}]",
    "[{\"address\":" A ",\"topics\":[" T1 "," T1 "," T1 "," T1 "," T1 "]}]" };
  size_t i;

  is_int((long long)set->count, 3, "three logs");
  is_int(set->v[0].topic_count, 1, "one topic");
  back = log_set_removed(set);
  is_int((long long)back->count, 3, "three to take back");
  is_bytes(back->v[0].raw.ptr, back->v[0].raw.len, "{\"topics\":[],\"address\":" B ",\"removed\":true}",
           "the last one first");
  is_bytes(back->v[1].raw.ptr, back->v[1].raw.len,
           "{\"address\":" B ",\"topics\":[],\"logIndex\":\"0x1\",\"removed\":true}",
           "each says that it is removed");
  is_bytes(back->v[2].raw.ptr, back->v[2].raw.len,
           "{\"address\":" A ",\"topics\":[" T1 "],\"logIndex\":\"0x0\",\"removed\":true}",
           "and the first one last");
  log_set_unref(back);
  log_set_unref(set);
  set = logs_of("[]");
  back = log_set_removed(set);
  ok(set->count == 0 && back->count == 0, "none");
  log_set_unref(back);
  log_set_unref(set);
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    ok(logs_of(bad[i]) == NULL, "no logs: %.40s", bad[i]);
}

int
main(void)
{
  test_matching();
  test_refused();
  test_bloom();
  test_sets();
  return done_testing();
}
