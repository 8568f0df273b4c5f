/* SPDX-License-Identifier: MIT */
/* Reading raw JSON, and quoting. */
#include <ethrpc-gw/json.h>
#include "rpc/scan.h"
#include "rpc-data.h"
#include "../lib/tap.h"

static void
test_kind(void)
{
  static const struct {
    const char *text;
    enum egw_json_kind kind;
  } cases[] = {
    { "null", EGW_JSON_NULL },     { " \t\n\rtrue", EGW_JSON_TRUE },
    { "false", EGW_JSON_FALSE },
    { "-1", EGW_JSON_NUMBER },     { "0", EGW_JSON_NUMBER },
    { "\"\"", EGW_JSON_STRING },
    { " [ ]", EGW_JSON_ARRAY },    { "{}", EGW_JSON_OBJECT },        { "", EGW_JSON_NONE },
    { "  ", EGW_JSON_NONE },
  };
  size_t i;

  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    is_int(egw_json_kind((struct egw_slice){ cases[i].text, strlen(cases[i].text) }),
           cases[i].kind, "kind of '%s'", cases[i].text);
  is_int(egw_json_kind((struct egw_slice){ NULL, 0 }), EGW_JSON_NONE, "kind of nothing");
}

static void
test_walk(void)
{
  struct egw_slice object = EGW_LIT(
      " { \"a\" : [1,{\"a\":2}] ,\"b\\\"}\":\"x]}\\\\\", \"c\":-1.5e3,"
                                    "\"\\u0061b\":null,\"a\":\"second\",\"d\":{ } }");
  struct egw_slice array = EGW_LIT("[ 1 ,\"two, three\", [ ] ,{\"k\":[\"]\"]},true]");
  struct egw_slice key, value;
  size_t cursor = 0, n = 0;

  is_slice(egw_json_member(object, "a"), "[1,{\"a\":2}]", "the first of two members");
  is_slice(egw_json_member(object, "b\"}"), "\"x]}\\\\\"",
           "a key with a quote and a brace in it");
  is_slice(egw_json_member(object, "c"), "-1.5e3", "a number");
  is_slice(egw_json_member(object, "ab"), "null", "a key that is written with an escape");
  is_slice(egw_json_member(object, "d"), "{ }", "the last member");
  ok(egw_json_member(object, "x").ptr == NULL, "no such member");
  ok(egw_json_member(array, "a").ptr == NULL, "an array has no members");
  ok(egw_json_member((struct egw_slice){ NULL, 0 }, "a").ptr == NULL, "nor has nothing");
  is_slice(egw_json_element(array, 0), "1", "element 0");
  is_slice(egw_json_element(array, 1), "\"two, three\"", "element 1");
  is_slice(egw_json_element(array, 2), "[ ]", "element 2");
  is_slice(egw_json_element(array, 3), "{\"k\":[\"]\"]}", "element 3");
  is_slice(egw_json_element(array, 4), "true", "element 4");
  ok(egw_json_element(array, 5).ptr == NULL, "there is no element 5");
  ok(egw_json_element(object, 0).ptr == NULL, "an object has no elements");
  while (egw_json_next(object, &cursor, &key, &value))
    n++;
  is_int(n, 6, "an object of six members");
  ok(!egw_json_next(object, &cursor, &key, &value) && value.ptr == NULL,
     "the end stays the end");
  cursor = 0;
  ok(egw_json_next(object, &cursor, &key, &value), "the first member");
  is_slice(key, "\"a\"", "has its raw key");
  cursor = 0;
  ok(egw_json_next(array, &cursor, &key, &value) && key.ptr == NULL, "an element has none");
  cursor = 0;
  ok(!egw_json_next(EGW_LIT("[]"), &cursor, &key, &value), "an empty array");
  ok(!egw_json_next(EGW_LIT("{ }"), &cursor, &key, &value), "an empty object");
  ok(!egw_json_next(EGW_LIT("\"[1]\""), &cursor, &key, &value), "a string is no container");
}

static void
test_string(void)
{
  char out[64];
  long n;

  n = egw_json_string(EGW_LIT("\"\""), out, 0);
  is_int(n, 0, "an empty string");
  n = egw_json_string(EGW_LIT("\" \\\"\\\\\\/\\b\\f\\n\\r\\t\""), out, sizeof(out));
  is_bytes(out, n < 0 ? 0 : (size_t)n, " \"\\/\b\f\n\r\t", "the short escapes");
  n = egw_json_string(EGW_LIT("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\""), out, sizeof(out));
  is_bytes(out, n < 0 ? 0 : (size_t)n, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
           "\\u of one to four bytes");
  n = egw_json_string(EGW_LIT("\"\\ud800\""), out, sizeof(out));
  is_bytes(out, n < 0 ? 0 : (size_t)n, "\xef\xbf\xbd", "a lone first half");
  n = egw_json_string(EGW_LIT("\"\\udc00\\ud800\\u0041\""), out, sizeof(out));
  is_bytes(out, n < 0 ? 0 : (size_t)n, "\xef\xbf\xbd\xef\xbf\xbd" "A",
           "halves in the wrong order");
  n = egw_json_string(EGW_LIT("\"a\\u0000b\""), out, sizeof(out));
  ok(n == 3 && memcmp(out, "a\0b", 3) == 0, "a NUL");
  is_int(egw_json_string(EGW_LIT("\"four\""), out, 4), 4, "what just fits");
  is_int(egw_json_string(EGW_LIT("\"fives\""), out, 4), -1, "what does not");
  is_int(egw_json_string(EGW_LIT("\"abc\\u20ac\""), out, 5), -1, "an escape that does not");
  is_int(egw_json_string(EGW_LIT("12"), out, sizeof(out)), -1, "a number is no string");
  is_int(egw_json_string((struct egw_slice){ NULL, 0 }, out, sizeof(out)), -1,
         "nothing is none");
  ok(egw_json_equals(EGW_LIT("\"m\\u0065thod\""), "method"), "equal by decoded bytes");
  ok(!egw_json_equals(EGW_LIT("\"method\""), "metho") &&
       !egw_json_equals(EGW_LIT("\"metho\""), "method"),
     "a beginning is not equal");
  ok(!egw_json_equals(EGW_LIT("method"), "method"), "nor is a word");
  ok(egw_json_equals(EGW_LIT(" \"\" "), ""), "white space around it is");
}

static void
test_u64(void)
{
  static const struct {
    const char *text;
    int rc;
    uint64_t value;
  } cases[] = {
    { "0", 0, 0 },
    { "18446744073709551615", 0, UINT64_MAX },
    { "18446744073709551616", -1, 0 },
    { " 42 ", 0, 42 },
    { "-1", -1, 0 },
    { "-0", -1, 0 },
    { "1.0", -1, 0 },
    { "1e2", -1, 0 },
    { "\"0x0\"", 0, 0 },
    { "\"0xfF\"", 0, 255 },
    { "\"0x00000000000000000000000000000010\"", 0, 16 },
    { "\"0xffffffffffffffff\"", 0, UINT64_MAX },
    { "\"0x10000000000000000\"", -1, 0 },
    { "\"0x\"", -1, 0 },
    { "\"0xg\"", -1, 0 },
    { "\"0X1\"", -1, 0 },
    { "\"12\"", -1, 0 },
    { "\"\"", -1, 0 },
    { "\"\\u0030x1\"", 0, 1 },
    { "\"latest\"", -1, 0 },
    { "null", -1, 0 },
    { "[1]", -1, 0 },
    { "", -1, 0 },
  };
  uint64_t value;
  size_t i;
  int rc;

  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    value = 7;
    rc = egw_json_u64((struct egw_slice){ cases[i].text, strlen(cases[i].text) }, &value);
    ok(rc == cases[i].rc && value == (rc == 0 ? cases[i].value : 7), "number '%s'",
       cases[i].text);
  }
}

static void
test_quote(void)
{
  static const struct {
    const char *text, *want;
  } cases[] = {
    { "", "\"\"" },
    { "plain", "\"plain\"" },
    { "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
    { "\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"" },
    { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
    { "\xff" "a\xc3", "\"\xef\xbf\xbd" "a\xef\xbf\xbd\"" },
    { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
  };
  struct egw_buf *buf;
  char raw[256], back[1024];
  unsigned i;
  long n;

  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    buf = egw_buf_new(0);
    ok(egw_json_quote(buf, (struct egw_slice){ cases[i].text, strlen(cases[i].text) }) == 0,
       "quoting text %u", i);
    is_slice(egw_buf_slice(buf), cases[i].want, "as it should be");
    egw_buf_unref(buf);
  }
  for (i = 0; i < 256; i++)
    raw[i] = (char)i;
  buf = egw_buf_new(0);
  ok(egw_json_quote(buf, (struct egw_slice){ raw, 256 }) == 0 &&
       scan_valid(egw_buf_slice(buf), 1, NULL),
     "every byte there is becomes valid JSON");
  n = egw_json_string(egw_buf_slice(buf), back, sizeof(back));
  ok(n > 128 && memcmp(back, raw, 128) == 0, "and ASCII comes back");
  egw_buf_unref(buf);
}

/* Walks a text to its last leaf without recursion: a path of containers. Returns the
 * leaves. */
static unsigned
walk_all(struct egw_slice top, unsigned *wrong)
{
  struct { struct egw_slice text; size_t cursor; } path[64];
  struct egw_slice key, value;
  unsigned depth = 1, leaves = 0;
  enum egw_json_kind kind;

  path[0].text = top;
  path[0].cursor = 0;
  while (depth > 0) {
    if (!egw_json_next(path[depth - 1].text, &path[depth - 1].cursor, &key, &value)) {
      depth--;
      continue;
    }
    kind = egw_json_kind(value);
    if (kind != EGW_JSON_ARRAY && kind != EGW_JSON_OBJECT) {
      leaves++;
    } else if (depth < 64) {
      path[depth].text = value;
      path[depth++].cursor = 0;
    }
    *wrong += kind == EGW_JSON_NONE || (key.ptr != NULL && key.ptr[key.len - 1] != '"');
  }
  return leaves;
}

static void
test_recorded(void)
{
  struct egw_slice file = data_file(data_path("replay/execution-apis.io")), left = file, line;
  unsigned lines = 0, leaves = 0, wrong = 0, n;

  if (file.ptr == NULL) {
    tap_skip("the recording is not there");
    return;
  }
  while (data_line(&left, &line)) {
    if (line.len < 5 || (line.ptr[0] != '>' && line.ptr[0] != '<'))
      continue;
    line = (struct egw_slice){ line.ptr + 3, line.len - 3 };
    n = walk_all(line, &wrong);
    leaves += n;
    wrong += n == 0 || egw_json_member(line, "jsonrpc").len != 5;
    lines++;
  }
  ok(wrong == 0 && leaves > 3 * lines, "%u recorded texts with %u leaves", lines, leaves);
  data_free(file);
}

/* Text that isn't valid may give nonsense, but must not be left: every cut of one text. */
static void
test_cut(void)
{
  static const char text[] =
      "{\"a\\u00e9\":[1,{\"b\":\"\\ud83d\\ude00\\\\\"}],\"c\":\"0x12\"}";
  struct egw_slice slice, key, value;
  size_t len, cursor, n, rounds = 0;
  char out[32], *copy;
  uint64_t number;

  for (len = 0; len < sizeof(text); len++) {
    for (n = 0; n <= len; n++) {
      copy = data_exact(text + n, len - n);
      slice = (struct egw_slice){ copy, len - n };
      cursor = 0;
      while (rounds++ < 1000000 && egw_json_next(slice, &cursor, &key, &value))
        (void)egw_json_string(value, out, sizeof(out));
      (void)egw_json_member(slice, "c");
      (void)egw_json_u64(slice, &number);
      (void)egw_json_string(slice, out, sizeof(out));
      (void)egw_json_equals(slice, "0x12");
      free(copy);
    }
  }
  ok(rounds < 1000000, "cut texts are read to their end and no further");
}

static void
test_valid(void)
{
  static const struct {
    const char *text;
    bool valid;
  } cases[] = {
    { "{\"a\":[1,2,{}]}", true }, { " 12 ", true },    { "null", true },    { "", false },
    { " ", false },             { "{\"a\":1", false }, { "1 2", false },    { "{a:1}", false },
    { "\"\xff\"", false },      { "\"\n\"", false },   { "[1,]", false },   { "01", false },
  };
  char deep[131];

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    ok(egw_json_valid((struct egw_slice){ cases[i].text, strlen(cases[i].text) }) ==
         cases[i].valid, "\"%s\" is %s", i == 8 || i == 9 ? "..." : cases[i].text,
       cases[i].valid ? "valid" : "not");
  ok(!egw_json_valid((struct egw_slice){ NULL, 0 }), "nothing is not");
  memset(deep, '[', 65);
  memset(deep + 65, ']', 65);
  ok(egw_json_valid((struct egw_slice){ deep + 1, 128 }), "64 deep is valid");
  ok(!egw_json_valid((struct egw_slice){ deep, 130 }), "65 deep is not");
}

int
main(void)
{
  test_valid();
  test_kind();
  test_walk();
  test_string();
  test_u64();
  test_quote();
  test_recorded();
  test_cut();
  return done_testing();
}
