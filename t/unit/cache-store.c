/* SPDX-License-Identifier: MIT */
/* The cache's store: keys in full, bytes bounded, a scan that does not flush what is used. */
#include "../lib/tap.h"

#include "../../plugins/middleware/cache/store.h"

#define MIB (1024u * 1024)

static struct store_key
key(const char *method, const char *params)
{
  return (struct store_key){ { method, strlen(method) }, { params, strlen(params) } };
}

static bool
put(struct store *store, const char *method, const char *params, const char *value, size_t size)
{
  struct store_key k = key(method, params);
  struct egw_buf *buf = egw_buf_new(size + 1);
  unsigned evicted;
  size_t i;

  if (egw_buf_append(buf, value, strlen(value)) < 0)
    abort();
  for (i = strlen(value); i < size; i++)
    if (egw_buf_append(buf, "x", 1) < 0)
      abort();
  return store_put(store, &k, buf, &evicted);
}

static bool
has(struct store *store, const char *method, const char *params, const char *value)
{
  struct store_key k = key(method, params);
  struct egw_buf *buf = store_get(store, &k);
  bool yes = buf != NULL && egw_buf_slice(buf).len >= strlen(value) &&
             memcmp(egw_buf_slice(buf).ptr, value, strlen(value)) == 0;

  egw_buf_unref(buf);
  return yes;
}

static void
test_keys(void)
{
  struct store *store = store_new(16 * MIB);

  ok(put(store, "m", "[\"ab\",\"c\"]", "1", 1), "a value is kept");
  ok(put(store, "m", "[\"a\",\"bc\"]", "2", 1), "and another");
  ok(put(store, "m[", "\"ab\",\"c\"]", "3", 1), "and one whose texts joined are the same");
  ok(has(store, "m", "[\"ab\",\"c\"]", "1") && has(store, "m", "[\"a\",\"bc\"]", "2") &&
         has(store, "m[", "\"ab\",\"c\"]", "3"), "each under its own key");
  ok(!has(store, "m", "[1]", "") && !has(store, "m", "[\"1\"]", ""), "no other key finds one");
  ok(!put(store, "m", "[\"ab\",\"c\"]", "9", 1) && has(store, "m", "[\"ab\",\"c\"]", "1"),
     "what is there stays");
  store_clear(store);
  ok(!has(store, "m", "[\"ab\",\"c\"]", "1"), "cleared");
  store_free(store);
}

static void
test_bound(void)
{
  struct store *store = store_new(16 * MIB);
  uint64_t bytes = 0, entries, most = 0;
  char params[32];
  unsigned i;

  for (i = 0; i < 20000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    put(store, "m", params, params, 1 + (i * 7919u) % 20000);
    store_size(store, &bytes, &entries);
    if (bytes > most)
      most = bytes;
  }
  ok(most <= 16 * MIB, "never above the bound");
  ok(bytes > 10 * MIB, "and well filled");
  ok(!put(store, "m", "[\"big\"]", "", 2 * MIB), "what is larger than a part of it is not kept");
  store_free(store);
}

static void
test_scan(void)
{
  struct store *store = store_new(16 * MIB);
  char params[32];
  unsigned i, j, kept = 0;

  for (i = 0; i < 400; i++) { /* 400 values of 10 kB that are used */
    snprintf(params, sizeof(params), "[\"hot\",%u]", i);
    put(store, "m", params, params, 10000);
  }
  for (j = 0; j < 3; j++)
    for (i = 0; i < 400; i++) {
      snprintf(params, sizeof(params), "[\"hot\",%u]", i);
      has(store, "m", params, params);
    }
  for (i = 0; i < 20000; i++) { /* 200 MB that nobody asks for again, the others used meanwhile */
    snprintf(params, sizeof(params), "[\"scan\",%u]", i);
    put(store, "m", params, params, 10000);
    if (i % 10 == 0) {
      snprintf(params, sizeof(params), "[\"hot\",%u]", i / 10 % 400);
      has(store, "m", params, params);
    }
  }
  for (i = 0; i < 400; i++) {
    snprintf(params, sizeof(params), "[\"hot\",%u]", i);
    kept += has(store, "m", params, params);
  }
  ok(kept >= 380, "a scan does not flush what is used (%u of 400 kept)", kept);
  store_free(store);
}

static void
test_table_grows(void)
{
  struct store *store = store_new(512 * (uint64_t)MIB);
  char params[32];
  unsigned i, found = 0;
  uint64_t bytes, entries;

  for (i = 0; i < 200000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    put(store, "m", params, params, 8);
  }
  for (i = 0; i < 200000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    found += has(store, "m", params, params);
  }
  store_size(store, &bytes, &entries);
  is_int(found, 200000, "all of many are found");
  is_int(entries, 200000, "and counted");
  store_free(store);
}

int
main(void)
{
  test_keys();
  test_bound();
  test_scan();
  test_table_grows();
  return done_testing();
}
