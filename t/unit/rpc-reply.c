/* SPDX-License-Identifier: MIT */
/* What upstreams send: the parser whole and in pieces, with and without the old bytes. */
#include "rpc/envelope.h"
#include "rpc-data.h"
#include "../lib/tap.h"

#define BAD RPC_REPLY_BAD
#define RESULT RPC_REPLY_RESULT
#define ERROR RPC_REPLY_ERROR
#define PUSH RPC_REPLY_PUSH

struct reply_case {
  const char *text;
  enum rpc_reply_kind kind;
  uint64_t id;
  const char *body;            /* NULL: missing */
  int64_t code;
  const char *message, *data;
  bool repair;
};

static const struct reply_case cases[] = {
  /* results, members in any order, any or no version */
  { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x7\"}", RESULT, 1, "\"0x7\"", 0, NULL, NULL, false },
  { "{\"id\":2,\"result\":\"0x7\"}", RESULT, 2, "\"0x7\"", 0, NULL, NULL, false },
  { "{\"jsonrpc\":\"1.0\",\"result\":[],\"id\":3}", RESULT, 3, "[]", 0, NULL, NULL, false },
  { " {\"jsonrpc\":7 , \"result\" : { } , \"id\" : 4 } ", RESULT, 4, "{ }", 0, NULL, NULL, false },
  { "{\"usage\":{\"n\":1},\"x\":[1,{\"y\":\"}\"}],\"jsonrpc\":\"2.0\",\"id\":5,\"result\":null}", RESULT,
    5, "null", 0, NULL, NULL, false },
  { "{\"id\":6,\"result\":{\"a\":50000000000000097500,\"b\":1e400,\"c\":0.1,\"d\":-0,\"e\":1E5}}", RESULT,
    6, "{\"a\":50000000000000097500,\"b\":1e400,\"c\":0.1,\"d\":-0,\"e\":1E5}", 0, NULL, NULL, false },
  { "{\"id\":7,\"result\":false}", RESULT, 7, "false", 0, NULL, NULL, false },
  { "{\"id\":8,\"result\":0}", RESULT, 8, "0", 0, NULL, NULL, false },
  { "{\"id\":9,\"result\":\"\\ud800\"}", RESULT, 9, "\"\\ud800\"", 0, NULL, NULL, false },
  { "{\"id\":10,\"result\":\"0x5\",\"error\":null}", RESULT, 10, "\"0x5\"", 0, NULL, NULL, false },
  { "{\"id\":11,\"error\":null,\"result\":\"0x5\"}", RESULT, 11, "\"0x5\"", 0, NULL, NULL, false },
  { "{\"id\":12,\"result\":null,\"error\":null}", RESULT, 12, "null", 0, NULL, NULL, false },
  { "{\"\\u0069\\u0064\":13,\"\\u0072\\u0065\\u0073\\u0075\\u006c\\u0074\":1}", RESULT, 13, "1", 0, NULL,
    NULL, false },
  { "{\"id\":14,\"result\":1,\"method\":\"m\",\"method\":\"m\"}", RESULT, 14, "1", 0, NULL, NULL, false },
  { "{\"a key that is longer than any that is known, by far\":1,\"id\":15,\"result\":1}", RESULT, 15,
    "1", 0, NULL, NULL, false },
  /* ids */
  { "{\"id\":\"5\",\"result\":1}", RESULT, 5, "1", 0, NULL, NULL, false },
  { "{\"id\":\"\\u0035\",\"result\":1}", RESULT, 5, "1", 0, NULL, NULL, false },
  { "{\"id\":0,\"result\":1}", RESULT, 0, "1", 0, NULL, NULL, false },
  { "{\"id\":18446744073709551615,\"result\":1}", RESULT, UINT64_MAX, "1", 0, NULL, NULL, false },
  { "{\"id\":18446744073709551616,\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":-1,\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1.0,\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":\"05\",\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":\"\",\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":\"x\",\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":null,\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":[1],\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":{\"id\":1},\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":\"00000000000000000000000000000000000000000000000000000000001\",\"result\":1}", BAD, 0, NULL,
    0, NULL, NULL, false },
  { "{\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  /* errors */
  { "{\"id\":1,\"error\":{\"code\":3,\"message\":\"execution reverted: nope\",\"data\":\"0x08c3\"}}", ERROR,
    1, "{\"code\":3,\"message\":\"execution reverted: nope\",\"data\":\"0x08c3\"}", 3,
    "\"execution reverted: nope\"", "\"0x08c3\"", false },
  { "{\"id\":1,\"result\":null,\"error\":{\"code\":-32000,\"message\":\"m\",\"data\":\"0x1\"}}", ERROR, 1,
    "{\"code\":-32000,\"message\":\"m\",\"data\":\"0x1\"}", -32000, "\"m\"", "\"0x1\"", false },
  { "{\"id\":1,\"error\":{\"message\":\"m\",\"code\":-1,\"data\":[1e400]},\"result\":null}", ERROR, 1,
    "{\"message\":\"m\",\"code\":-1,\"data\":[1e400]}", -1, "\"m\"", "[1e400]", false },
  { "{\"id\":1,\"error\":{\"code\":\"-32005\",\"message\":\"m\"}}", ERROR, 1,
    "{\"code\":\"-32005\",\"message\":\"m\"}", -32005, "\"m\"", NULL, true },
  { "{\"id\":1,\"error\":{\"code\":-32000.0,\"message\":\"m\"}}", ERROR, 1,
    "{\"code\":-32000.0,\"message\":\"m\"}", -32000, "\"m\"", NULL, true },
  { "{\"id\":1,\"error\":{\"code\":99999999999999999999,\"message\":\"m\"}}", ERROR, 1,
    "{\"code\":99999999999999999999,\"message\":\"m\"}", -32000, "\"m\"", NULL, true },
  { "{\"id\":1,\"error\":{\"message\":\"m\"}}", ERROR, 1, "{\"message\":\"m\"}", -32000, "\"m\"", NULL,
    true },
  { "{\"id\":1,\"error\":{\"code\":5}}", ERROR, 1, "{\"code\":5}", 5, NULL, NULL, true },
  { "{\"id\":1,\"error\":{\"code\":5,\"message\":null}}", ERROR, 1, "{\"code\":5,\"message\":null}", 5, NULL,
    NULL, true },
  { "{\"id\":1,\"error\":{\"code\":5,\"message\":{\"x\":1}}}", ERROR, 1,
    "{\"code\":5,\"message\":{\"x\":1}}", 5, NULL, NULL, true },
  { "{\"id\":1,\"error\":{}}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"error\":{\"data\":1}}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"error\":\"text\"}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"error\":null}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"error\":[]}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"error\":{\"code\":-32000,\"message\":\"m\"}}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":1,\"error\":{\"code\":-32000,\"message\":\"m\"}}", BAD, 0, NULL, 0, NULL, NULL,
    false },
  { "{\"id\":1,\"result\":false,\"error\":{\"code\":-32000,\"message\":\"m\"}}", BAD, 0, NULL, 0, NULL, NULL,
    false },
  /* duplicates */
  { "{\"id\":1,\"id\":2,\"result\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":1,\"result\":2}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":1,\"r\\u0065sult\":2}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":null,\"error\":null,\"error\":{\"code\":1,\"message\":\"m\"}}", BAD, 0, NULL, 0, NULL,
    NULL, false },
  /* notifications */
  { "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"0x1\",\"result\":{}}}",
    PUSH, 0, "{\"subscription\":\"0x1\",\"result\":{}}", 0, NULL, NULL, false },
  { "{\"method\":\"m\",\"id\":null}", PUSH, 0, NULL, 0, NULL, NULL, false },
  { "{\"method\":\"m\",\"id\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"method\":1}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"method\":\"m\",\"method\":\"n\"}", BAD, 0, NULL, 0, NULL, NULL, false },
  /* no envelope */
  { "{}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "[{\"id\":1,\"result\":1}]", BAD, 0, NULL, 0, NULL, NULL, false },
  { "[]", BAD, 0, NULL, 0, NULL, NULL, false },
  { "null", BAD, 0, NULL, 0, NULL, NULL, false },
  { "\"str\"", BAD, 0, NULL, 0, NULL, NULL, false },
  { "12", BAD, 0, NULL, 0, NULL, NULL, false },
  { "<html>", BAD, 0, NULL, 0, NULL, NULL, false },
  { "invalid host specified", BAD, 0, NULL, 0, NULL, NULL, false },
  { "", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":\"\\u12\"}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":\"\\x\"}", BAD, 0, NULL, 0, NULL, NULL, false },
  { "{\"id\":1,\"result\":01}", BAD, 0, NULL, 0, NULL, NULL, false },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static bool
slice_is(struct egw_slice slice, const char *want)
{
  if (want == NULL)
    return slice.ptr == NULL;
  return slice.ptr != NULL && slice.len == strlen(want) && memcmp(slice.ptr, want, slice.len) == 0;
}

static bool
reply_right(const struct rpc_reply *r, const struct reply_case *c)
{
  if (r->kind != c->kind || (r->kind == BAD) != (r->why != NULL))
    return false;
  if (r->kind == BAD)
    return true;
  if (r->kind == PUSH)
    return slice_is(r->body, c->body) && r->method.ptr != NULL && !r->has_id;
  return r->has_id && r->id == c->id && slice_is(r->body, c->body) && r->code == c->code &&
         slice_is(r->message, c->message) && slice_is(r->data, c->data) && r->repair == c->repair;
}

/* Feeds the text up to `cut`, then the rest, as one growing buffer that moves in between. */
static void
feed_growing(struct egw_slice text, size_t cut, struct rpc_reply *out)
{
  struct rpc_reply_parser p;
  enum scan_status status;
  char *first = data_exact(text.ptr, cut);
  size_t used;

  rpc_reply_begin(&p);
  status = rpc_reply_feed(&p, first, cut, 0, &used);
  free(first);
  if (status == SCAN_MORE)
    rpc_reply_feed(&p, text.ptr, text.len, cut, &used);
  rpc_reply_finish(&p, text.ptr, out);
}

/* Feeds pieces of `step` bytes, each alone in memory. Compares what is known without the text. */
static bool
feed_alone(struct egw_slice text, size_t step, const struct reply_case *c)
{
  struct rpc_reply_parser p;
  enum scan_status status = SCAN_MORE;
  struct rpc_reply r;
  size_t at, used, len;
  uint64_t id = 0;
  bool early;
  char *piece;

  rpc_reply_begin(&p);
  for (at = 0; at < text.len && status == SCAN_MORE; at += len) {
    len = text.len - at < step ? text.len - at : step;
    piece = data_exact(text.ptr + at, len);
    status = rpc_reply_feed(&p, piece, len, 0, &used);
    free(piece);
  }
  early = rpc_reply_early_id(&p, NULL, &id);
  if ((c->kind == RESULT || c->kind == ERROR) && (!early || id != c->id))
    return false;
  rpc_reply_finish(&p, text.ptr, &r);
  if (!reply_right(&r, c))
    return false;
  rpc_reply_finish(&p, NULL, &r);
  if (c->kind == RESULT)
    return r.kind == RESULT && r.id == c->id && r.body.ptr == NULL;
  return r.kind == BAD;
}

static void
test_cases(void)
{
  struct rpc_reply r;
  struct egw_slice text;
  size_t i, cut;
  bool right;

  for (i = 0; i < CASES; i++) {
    text.len = strlen(cases[i].text);
    text.ptr = data_exact(cases[i].text, text.len);
    for (cut = 0, right = true; cut <= text.len && right; cut++) {
      feed_growing(text, cut, &r);
      right = reply_right(&r, &cases[i]);
    }
    ok(right, "cut in two: %s", cases[i].text);
    if (!right)
      printf("#   cut at %zu: kind %d, id %d, code %d, why %s\n", cut - 1, (int)r.kind, (int)r.id,
             (int)r.code, r.why != NULL ? r.why : "");
    for (cut = 1, right = true; cut <= text.len && right; cut++)
      right = feed_alone(text, cut, &cases[i]);
    ok(right, "pieces alone: %s", cases[i].text);
    data_free(text);
  }
}

/* A message that ends too early is never of use, wherever it ends. */
static void
test_truncated(void)
{
  struct rpc_reply_parser p;
  struct rpc_reply r;
  size_t i, len, used;
  unsigned usable = 0, tried = 0;
  char *copy;

  for (i = 0; i < CASES; i++) {
    if (cases[i].kind == BAD)
      continue;
    for (len = strlen(cases[i].text); len > 0; len--)
      if (cases[i].text[len - 1] == '}')
        break;
    while (len-- > 0) {
      copy = data_exact(cases[i].text, len);
      rpc_reply_begin(&p);
      rpc_reply_feed(&p, copy, len, 0, &used);
      rpc_reply_finish(&p, copy, &r);
      usable += r.kind != BAD || rpc_reply_loose_error((struct egw_slice){ copy, len }, &r);
      tried++;
      free(copy);
    }
  }
  ok(usable == 0 && tried > 1000, "%u truncated messages: none is of use", tried);
}

static void
test_early(void)
{
  static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":[1,2,3]}";
  struct rpc_reply_parser p;
  uint64_t id = 0;
  size_t used, i, known = 0, began = 0;

  rpc_reply_begin(&p);
  for (i = 0; i < sizeof(text) - 1; i++) {
    rpc_reply_feed(&p, text, i + 1, i, &used);
    if (known == 0 && rpc_reply_early_id(&p, text, &id))
      known = i;
    if (began == 0 && p.result_began)
      began = i;
  }
  ok(known == 24 && id == 77, "the id is known with the comma behind it");
  ok(began == 34 && p.result_begin == 34 && p.result_kind == EGW_JSON_ARRAY,
     "the result's place and kind with its first byte");
  ok(p.result.from == 34 && p.result.to == 41, "its end with its last");
  rpc_reply_begin(&p);
  rpc_reply_feed(&p, "{\"result\":1,\"id\":7", 18, 0, &used);
  ok(!rpc_reply_early_id(&p, NULL, &id), "an id that may go on is not known");
}

static void
test_behind(void)
{
  static const char text[] = "{\"id\":1,\"result\":2}{\"id\":2,\"result\":3}\n";
  struct rpc_reply_parser p;
  struct rpc_reply r;
  size_t used;

  rpc_reply_begin(&p);
  is_int(rpc_reply_feed(&p, text, sizeof(text) - 1, 0, &used), SCAN_DONE, "two messages in a row");
  is_int(used, 19, "the first ends at its brace");
  rpc_reply_finish(&p, text, &r);
  ok(r.kind == RESULT && r.id == 1, "it is of use");
  rpc_reply_begin(&p);
  is_int(rpc_reply_feed(&p, text + used, sizeof(text) - 1 - used, 0, &used), SCAN_DONE, "so is");
  rpc_reply_finish(&p, text + 19, &r);
  ok(r.kind == RESULT && r.id == 2 && slice_is(r.body, "3"), "the second");
}

static void
test_depth(void)
{
  static char text[2000];
  struct rpc_reply_parser p;
  size_t used, levels, n;

  for (levels = 511; levels <= 512; levels++) {
    n = (size_t)snprintf(text, sizeof(text), "{\"id\":1,\"result\":");
    memset(text + n, '[', levels);
    memset(text + n + levels, ']', levels);
    text[n + 2 * levels] = '}';
    rpc_reply_begin(&p);
    is_int(rpc_reply_feed(&p, text, n + 2 * levels + 1, 0, &used),
           levels == 511 ? SCAN_DONE : SCAN_BAD, "a result %zu levels deep", levels);
  }
}

static const struct {
  const char *text;
  bool error;
  int64_t code;
  const char *message;
  bool repair;
} loose[] = {
  { "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32005,\"message\":\"m\"}}", true, -32005, "\"m\"", false },
  { "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}", true, -32000, "\"m\"",
    false },
  { " {\"code\":-32005,\"message\":\"m\",\"data\":1} \n", true, -32005, "\"m\"", false },
  { "{\"error\":\"text\"}", true, -32000, "\"text\"", true },
  { "{\"id\":null,\"result\":null,\"error\":{\"message\":\"m\"}}", true, -32000, "\"m\"", true },
  { "{\"error\":{}}", false, 0, NULL, false },
  { "{\"error\":null}", false, 0, NULL, false },
  { "{\"error\":5}", false, 0, NULL, false },
  { "{\"code\":1}", false, 0, NULL, false },
  { "{\"message\":\"m\"}", false, 0, NULL, false },
  { "{\"code\":\"1\",\"message\":\"m\"}", false, 0, NULL, false },
  { "{\"result\":1,\"error\":{\"code\":1,\"message\":\"m\"}}", false, 0, NULL, false },
  { "{\"error\":\"a\",\"error\":\"b\"}", false, 0, NULL, false },
  { "{}", false, 0, NULL, false },
  { "[{\"error\":\"text\"}]", false, 0, NULL, false },
  { "\"text\"", false, 0, NULL, false },
  { "null", false, 0, NULL, false },
  { "", false, 0, NULL, false },
  { "{\"error\":\"text\"} trailing", false, 0, NULL, false },
  { "<html>", false, 0, NULL, false },
};

static void
test_loose(void)
{
  struct rpc_reply r;
  struct egw_slice text;
  bool error;
  size_t i;

  for (i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
    text.len = strlen(loose[i].text);
    text.ptr = data_exact(loose[i].text, text.len);
    error = rpc_reply_loose_error(text, &r);
    ok(error == loose[i].error &&
         (!error || (r.kind == ERROR && r.code == loose[i].code && !r.has_id &&
                     slice_is(r.message, loose[i].message) && r.repair == loose[i].repair)),
       "loose: %s", loose[i].text);
    data_free(text);
  }
}

int
main(void)
{
  test_cases();
  test_truncated();
  test_early();
  test_behind();
  test_depth();
  test_loose();
  return done_testing();
}
