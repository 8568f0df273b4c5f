/* SPDX-License-Identifier: MIT */
/* When two JSON values are the same for the quorum, and when they are not. */
#include "../lib/tap.h"

#include "../../plugins/middleware/quorum/fingerprint.h"

static struct fingerprint_key key;
static const char *const ignored[] = { "size", "totalDifficulty" };

static struct fingerprint
print_of(const char *text, size_t len)
{
  struct egw_strings ignore = { ignored, 2 };
  struct fingerprint out = { { 0, 0 } };

  if (fingerprint(&key, (struct egw_slice){ text, len }, &ignore, &out) != 0)
    printf("Bail out! no memory\n");
  return out;
}

struct row {
  bool same;
  const char *a, *b;
};

static const struct row rows[] = {
  { true, "1", " 1\n" },
  { true, "[1,2]", "[ 1 , 2 ]" },
  { true, "{\"a\":1,\"b\":[{\"c\":2,\"d\":3}]}", "{\"b\":[{\"d\":3,\"c\":2}],\"a\":1}" },
  { true, "\"0xAbC\"", "\"0xabc\"" },
  { true, "\"0x0abc\"", "\"0xabc\"" },
  { true, "\"0x0\"", "\"0x00\"" },
  { true, "\"0x0000000000000000000000000000000000000000000000000000000000000001\"",
    "\"0x1\"" },
  { true, "\"a\\u0062c\"", "\"abc\"" },
  { true, "{\"\\u0061\":1}", "{\"a\":1}" },
  { true, "{\"a\":1,\"size\":\"0x1\"}", "{\"a\":1,\"size\":\"0x2\"}" },
  { true, "{\"a\":1,\"size\":[{\"x\":1}]}", "{\"a\":1}" },
  { true, "[{\"totalDifficulty\":\"0x1\"}]", "[{}]" },
  { true, "{\"a\":null,\"b\":1}", "{\"b\":1}" },
  { false, "null", "{}" },
  { false, "[null]", "[]" },
  { false, "[1,2]", "[2,1]" },
  { false, "[1,[2]]", "[[1],2]" },
  { false, "{\"a\":1}", "{\"a\":2}" },
  { false, "{\"a\":1}", "{\"b\":1}" },
  { false, "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}" },
  { false, "{\"a\":{\"b\":1}}", "{\"b\":{\"a\":1}}" },
  { false, "{}", "[]" },
  { false, "\"0x\"", "\"0x0\"" },
  { false, "\"\"", "\"0x\"" },
  { false, "\"1\"", "1" },
  { false, "\"ABC\"", "\"abc\"" },
  { false, "\"0x1g\"", "\"0x01g\"" },
  { false, "\"0x1\"", "\"0x2\"" },
  { false, "\"0x1\"", "\"1\"" },
  { false, "true", "false" },
  { false, "true", "\"true\"" },
  /* more than 32 bytes is data, where a zero counts */
  { false, "\"0x00000000000000000000000000000000000000000000000000000000000000000a\"",
    "\"0x000000000000000000000000000000000000000000000000000000000000000a\"" },
  { true, "\"0x00000000000000000000000000000000000000000000000000000000000000000A\"",
    "\"0x00000000000000000000000000000000000000000000000000000000000000000a\"" },
};

static void
test_rows(void)
{
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct fingerprint a = print_of(rows[i].a, strlen(rows[i].a));
    struct fingerprint b = print_of(rows[i].b, strlen(rows[i].b));

    ok(fingerprint_same(&a, &b) == rows[i].same, "%s %s %s", rows[i].a,
       rows[i].same ? "is" : "is not", rows[i].b);
  }
}

/* 100,000 levels: no recursion, no limit. */
static void
test_depth(void)
{
  enum { LEVELS = 100000 };
  char *deep = malloc(2 * LEVELS + 1), *other = malloc(2 * LEVELS + 1);
  struct fingerprint a, b;

  if (deep == NULL || other == NULL)
    exit(1);
  memset(deep, '[', LEVELS);
  memset(deep + LEVELS, ']', LEVELS);
  memcpy(other, deep, 2 * LEVELS);
  memmove(other + LEVELS + 1, other + LEVELS, LEVELS);
  other[LEVELS] = '1';
  a = print_of(deep, 2 * LEVELS);
  b = print_of(deep, 2 * LEVELS);
  ok(fingerprint_same(&a, &b), "a deep value is the same as itself");
  b = print_of(other, 2 * LEVELS + 1);
  ok(!fingerprint_same(&a, &b), "and not the same as one with something in it");
  free(deep);
  free(other);
}

static void
test_keys(void)
{
  struct fingerprint a = print_of("\"x\"", 3), b;

  is_int(fingerprint_key(&key), 0, "another key");
  b = print_of("\"x\"", 3);
  ok(!fingerprint_same(&a, &b), "gives other fingerprints: nobody can make them collide");
}

int
main(void)
{
  is_int(fingerprint_key(&key), 0, "a key");
  test_rows();
  test_depth();
  test_keys();
  return done_testing();
}
