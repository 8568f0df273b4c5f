/* SPDX-License-Identifier: MIT */
/* The cache's store: keys in full, bytes bounded, a scan that does not flush what is used. */
#include "../lib/tap.h"

#include "../../plugins/middleware/cache/store.h"

#define MIB (1024u * 1024)

static char joined[200];

/* A NUL between the two, as in real keys. */
static struct egw_slice
key(const char *method, const char *params)
{
  int n = snprintf(joined, sizeof joined, "%s%c%s", method, 0, params);

  return (struct egw_slice){ joined, (size_t)n };
}

static struct store_change change;
static uint64_t now;

static bool
put(struct store *store, const char *method, const char *params, const char *value,
    size_t size)
{
  struct egw_buf *buf = egw_buf_new(size + 1);
  size_t i;

  if (egw_buf_append(buf, value, strlen(value)) < 0)
    abort();
  for (i = strlen(value); i < size; i++)
    if (egw_buf_append(buf, "x", 1) < 0)
      abort();
  return store_put(store, key(method, params), buf,
                   &(struct store_terms){ NULL, now++, store_cleared(store) }, &change);
}

static bool
has(struct store *store, const char *method, const char *params, const char *value)
{
  struct store_found found = { 0 };
  bool yes = store_get(store, key(method, params), &found) &&
             egw_buf_slice(found.value).len >= strlen(value) &&
             memcmp(egw_buf_slice(found.value).ptr, value, strlen(value)) == 0;

  egw_buf_unref(found.value);
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
  store_clear(store, &change);
  ok(!has(store, "m", "[\"ab\",\"c\"]", "1"), "cleared");
  ok(change.bytes == 0 && change.entries == 0, "and nothing is counted any more");
  is_int(store_cleared(store), 1, "but that it was");
  ok(!store_put(store, key("m", "[]"), egw_buf_copy(EGW_LIT("1")), &(struct store_terms){ 0 },
                &change) && !has(store, "m", "[]", "1"), "what was asked before stays out");
  store_free(store);
}

static bool
put_pinned(struct store *store, const char *params, const char *value,
           const struct store_pin *pin)
{
  struct egw_buf *buf = egw_buf_copy((struct egw_slice){ value, strlen(value) });

  return store_put(store, key("p", params), buf,
                   &(struct store_terms){ pin, now++, store_cleared(store) }, &change);
}

static void
test_pins(void)
{
  struct store *store = store_new(16 * MIB);
  struct store_pin one = { 5, { 1 } }, two = { 5, { 2 } };
  struct store_found found = { 0 };

  ok(put_pinned(store, "[1]", "a", &one), "a pinned entry");
  ok(store_get(store, key("p", "[1]"), &found) && found.pinned &&
         memcmp(&found.pin, &one, sizeof one) == 0, "shows its pin");
  egw_buf_unref(found.value);
  ok(!store_drop(store, key("p", "[1]"), &two, &change) && has(store, "p", "[1]", "a"),
     "one that is pinned to another block is not dropped");
  ok(!put_pinned(store, "[1]", "b", &one) && has(store, "p", "[1]", "a"),
     "the same again: it stays");
  ok(put_pinned(store, "[1]", "c", &two) && has(store, "p", "[1]", "c"),
     "one of another block replaces it");
  ok(store_drop(store, key("p", "[1]"), &two, &change) && !has(store, "p", "[1]", "c"),
     "dropped");
  put_pinned(store, "[2]", "d", &one);
  ok(!store_unpin(store, key("p", "[2]"), &two) && store_unpin(store, key("p", "[2]"), &one),
     "unpinned by the right pin only");
  ok(!store_drop(store, key("p", "[2]"), &one, &change) &&
     !put_pinned(store, "[2]", "e", &two) &&
         has(store, "p", "[2]", "d"), "from then on it stays");
  put_pinned(store, "[3]", "f", &one);
  ok(put(store, "p", "[3]", "g", 1) && has(store, "p", "[3]", "g"),
     "for ever replaces pinned");
  is_int(change.entries, 2, "entries");
  store_free(store);
}

static void
test_bound(void)
{
  struct store *store = store_new(16 * MIB);
  int64_t most = 0;
  char params[32];
  unsigned i;

  for (i = 0; i < 20000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    put(store, "m", params, params, 1 + (i * 7919u) % 20000);
    if (change.bytes > most)
      most = change.bytes;
  }
  ok(most <= (int64_t)(16 * MIB), "never above the bound");
  ok(change.bytes > (int64_t)(10 * MIB), "and well filled");
  ok(change.evicted > 1000 && change.evicted + (uint64_t)change.entries == 20000,
     "what went and what stays add up");
  ok(change.evicted_ms > change.evicted, "and with what age it went");
  ok(!put(store, "m", "[\"big\"]", "", 2 * MIB),
     "what is larger than a part of it is not kept");
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
  for (i = 0; i < 20000; i++) { /* 200 MB that nobody asks for again */
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

  change = (struct store_change){ 0 };
  for (i = 0; i < 200000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    put(store, "m", params, params, 8);
  }
  for (i = 0; i < 200000; i++) {
    snprintf(params, sizeof(params), "[%u]", i);
    found += has(store, "m", params, params);
  }
  is_int(found, 200000, "all of many are found");
  is_int(change.entries, 200000, "and counted");
  store_free(store);
}

/* What is said to fit is kept, and nothing else: the longest value and one byte more. */
static void
test_fits(void)
{
  struct store *store = store_new(16 * MIB);
  struct store_pin pin = { .number = 7 };
  size_t len;

  for (int pinned = 0; pinned < 2; pinned++) {
    struct store_terms terms = { pinned != 0 ? &pin : NULL, now, store_cleared(store) };

    for (len = 1; store_fits(store, key("f", "[]"), len, pinned != 0); len++)
      ;
    for (size_t more = 0; more < 2; more++) {
      struct egw_buf *buf = egw_buf_new(len);

      memset(egw_buf_room(buf, len), 'x', len);
      egw_buf_commit(buf, len - 1 + more);
      is_int(store_put(store, key("f", "[]"), buf, &terms, &change), more == 0,
             "%zu bytes%s", len - 1 + more, pinned != 0 ? ", pinned" : "");
      store_clear(store, &change);
      terms.cleared = store_cleared(store);
    }
  }
  store_free(store);
}

int
main(void)
{
  test_fits();
  change = (struct store_change){ 0 };
  test_keys();
  change = (struct store_change){ 0 };
  test_pins();
  change = (struct store_change){ 0 };
  test_bound();
  test_scan();
  test_table_grows();
  return done_testing();
}
