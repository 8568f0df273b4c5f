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

/* Texts are written with ' for ", which none of them holds. */
#define GOOD(id, body, text) { text, RESULT, id, body, 0, NULL, NULL, false }
#define FAULT(code, message, data, repair, before, object, after)                           \
  { before object after, ERROR, 1, object, code, message, data, repair }
#define TOLD(body, text) { text, PUSH, 0, body, 0, NULL, NULL, false }
#define NONE(text) { text, BAD, 0, NULL, 0, NULL, NULL, false }

static const struct reply_case cases[] = {
  /* results, members in any order, any or no version */
  GOOD(1, "'0x7'", "{'jsonrpc':'2.0','id':1,'result':'0x7'}"),
  GOOD(2, "'0x7'", "{'id':2,'result':'0x7'}"),
  GOOD(3, "[]", "{'jsonrpc':'1.0','result':[],'id':3}"),
  GOOD(4, "{ }", " {'jsonrpc':7 , 'result' : { } , 'id' : 4 } "),
  GOOD(5, "null", "{'usage':{'n':1},'x':[1,{'y':'}'}],'jsonrpc':'2.0','id':5,'result':null}"),
  GOOD(6, "{'a':50000000000000097500,'b':1e400,'c':0.1,'d':-0,'e':1E5}",
       "{'id':6,'result':{'a':50000000000000097500,'b':1e400,'c':0.1,'d':-0,'e':1E5}}"),
  GOOD(7, "false", "{'id':7,'result':false}"),
  GOOD(8, "0", "{'id':8,'result':0}"),
  GOOD(9, "'\\ud800'", "{'id':9,'result':'\\ud800'}"),
  GOOD(10, "'0x5'", "{'id':10,'result':'0x5','error':null}"),
  GOOD(11, "'0x5'", "{'id':11,'error':null,'result':'0x5'}"),
  GOOD(12, "null", "{'id':12,'result':null,'error':null}"),
  GOOD(13, "1", "{'\\u0069\\u0064':13,'\\u0072\\u0065\\u0073\\u0075\\u006c\\u0074':1}"),
  GOOD(14, "1", "{'id':14,'result':1,'method':'m','method':'m'}"),
  GOOD(15, "1",
       "{'a key that is longer than any that is known, by far':1,'id':15,'result':1}"),
  /* ids */
  GOOD(5, "1", "{'id':'5','result':1}"),
  GOOD(5, "1", "{'id':'\\u0035','result':1}"),
  GOOD(0, "1", "{'id':0,'result':1}"),
  GOOD(UINT64_MAX, "1", "{'id':18446744073709551615,'result':1}"),
  NONE("{'id':18446744073709551616,'result':1}"),
  NONE("{'id':-1,'result':1}"),
  NONE("{'id':1.0,'result':1}"),
  NONE("{'id':'05','result':1}"),
  NONE("{'id':'','result':1}"),
  NONE("{'id':'x','result':1}"),
  NONE("{'id':null,'result':1}"),
  NONE("{'id':[1],'result':1}"),
  NONE("{'id':{'id':1},'result':1}"),
  NONE("{'id':'00000000000000000000000000000000000000000000000000000000001','result':1}"),
  NONE("{'result':1}"),
  /* errors */
  FAULT(3, "'execution reverted: nope'", "'0x08c3'", false, "{'id':1,'error':",
        "{'code':3,'message':'execution reverted: nope','data':'0x08c3'}", "}"),
  FAULT(-32000, "'m'", "'0x1'", false, "{'id':1,'result':null,'error':",
        "{'code':-32000,'message':'m','data':'0x1'}", "}"),
  FAULT(-1, "'m'", "[1e400]", false, "{'id':1,'error':",
        "{'message':'m','code':-1,'data':[1e400]}", ",'result':null}"),
  FAULT(-32005, "'m'", NULL, true, "{'id':1,'error':", "{'code':'-32005','message':'m'}", "}"),
  FAULT(-32000, "'m'", NULL, true, "{'id':1,'error':", "{'code':-32000.0,'message':'m'}", "}"),
  FAULT(-32000, "'m'", NULL, true, "{'id':1,'error':",
        "{'code':99999999999999999999,'message':'m'}", "}"),
  FAULT(-32000, "'m'", NULL, true, "{'id':1,'error':", "{'message':'m'}", "}"),
  FAULT(5, NULL, NULL, true, "{'id':1,'error':", "{'code':5}", "}"),
  FAULT(5, NULL, NULL, true, "{'id':1,'error':", "{'code':5,'message':null}", "}"),
  FAULT(5, NULL, NULL, true, "{'id':1,'error':", "{'code':5,'message':{'x':1}}", "}"),
  NONE("{'id':1,'error':{}}"),
  NONE("{'id':1,'error':{'data':1}}"),
  NONE("{'id':1,'error':'text'}"),
  NONE("{'id':1,'error':null}"),
  NONE("{'id':1,'error':[]}"),
  NONE("{'id':null,'error':{'code':-32000,'message':'m'}}"),
  NONE("{'error':{'code':-32000,'message':'m'}}"),
  NONE("{'id':1,'result':1,'error':{'code':-32000,'message':'m'}}"),
  NONE("{'id':1,'result':false,'error':{'code':-32000,'message':'m'}}"),
  /* duplicates */
  NONE("{'id':1,'id':2,'result':1}"),
  NONE("{'id':1,'result':1,'result':2}"),
  NONE("{'id':1,'result':1,'r\\u0065sult':2}"),
  NONE("{'id':1,'result':null,'error':null,'error':{'code':1,'message':'m'}}"),
  /* notifications */
  TOLD("{'subscription':'0x1','result':{}}",
       "{'jsonrpc':'2.0','method':'eth_subscription',"
       "'params':{'subscription':'0x1','result':{}}}"),
  TOLD(NULL, "{'method':'m','id':null}"),
  NONE("{'method':'m','id':1}"),
  NONE("{'method':1}"),
  NONE("{'method':'m','method':'n'}"),
  /* no envelope */
  NONE("{}"),
  NONE("[{'id':1,'result':1}]"),
  NONE("[]"),
  NONE("null"),
  NONE("'str'"),
  NONE("12"),
  NONE("<html>"),
  NONE("invalid host specified"),
  NONE(""),
  NONE("{'jsonrpc':'2.0','id':1,'resu"),
  NONE("{'id':1,'result':'\\u12'}"),
  NONE("{'id':1,'result':'\\x'}"),
  NONE("{'id':1,'result':01}"),
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static bool
reply_right(const struct rpc_reply *r, const struct reply_case *c)
{
  if (r->kind != c->kind || (r->kind == BAD) != (r->why != NULL))
    return false;
  if (r->kind == BAD)
    return true;
  if (r->kind == PUSH)
    return data_is(r->body, c->body) && r->method.ptr != NULL && !r->has_id;
  return r->has_id && r->id == c->id && data_is(r->body, c->body) && r->code == c->code &&
         data_is(r->message, c->message) && data_is(r->data, c->data) &&
         r->repair == c->repair;
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

/* Feeds pieces of `step` bytes, each alone in memory. Compares what is known without the
 * text. */
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
    text = data_quoted(cases[i].text);
    for (cut = 0, right = true; cut <= text.len && right; cut++) {
      feed_growing(text, cut, &r);
      right = reply_right(&r, &cases[i]);
    }
    ok(right, "cut in two: %s", cases[i].text);
    if (!right)
      printf("#   cut at %zu: kind %d, id %d, code %d, why %s\n", cut - 1, (int)r.kind,
             (int)r.id, (int)r.code, r.why != NULL ? r.why : "");
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
  struct egw_slice text;
  size_t i, len, used;
  unsigned usable = 0, tried = 0;
  char *copy;

  for (i = 0; i < CASES; i++) {
    if (cases[i].kind == BAD)
      continue;
    text = data_quoted(cases[i].text);
    for (len = text.len; len > 0 && text.ptr[len - 1] != '}'; len--) {}
    while (len-- > 0) {
      copy = data_exact(text.ptr, len);
      rpc_reply_begin(&p);
      rpc_reply_feed(&p, copy, len, 0, &used);
      rpc_reply_finish(&p, copy, &r);
      usable += r.kind != BAD || rpc_reply_loose_error((struct egw_slice){ copy, len }, &r);
      tried++;
      free(copy);
    }
    data_free(text);
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
  is_int(rpc_reply_feed(&p, text, sizeof(text) - 1, 0, &used), SCAN_DONE,
         "two messages in a row");
  is_int(used, 19, "the first ends at its brace");
  rpc_reply_finish(&p, text, &r);
  ok(r.kind == RESULT && r.id == 1, "it is of use");
  rpc_reply_begin(&p);
  is_int(rpc_reply_feed(&p, text + used, sizeof(text) - 1 - used, 0, &used), SCAN_DONE,
         "so is");
  rpc_reply_finish(&p, text + 19, &r);
  ok(r.kind == RESULT && r.id == 2 && data_is(r.body, "3"), "the second");
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

#define NOT(text) { text, false, 0, NULL, false }
static const struct {
  const char *text;
  bool error;
  int64_t code;
  const char *message;
  bool repair;
} loose[] = {
  { "{'jsonrpc':'2.0','error':{'code':-32005,'message':'m'}}", true, -32005, "'m'", false },
  { "{'jsonrpc':'2.0','id':null,'error':{'code':-32000,'message':'m'}}", true, -32000, "'m'",
    false },
  { " {'code':-32005,'message':'m','data':1} \n", true, -32005, "'m'", false },
  { "{'error':'text'}", true, -32000, "'text'", true },
  { "{'id':null,'result':null,'error':{'message':'m'}}", true, -32000, "'m'", true },
  NOT("{'error':{}}"),
  NOT("{'error':null}"),
  NOT("{'error':5}"),
  NOT("{'code':1}"),
  NOT("{'message':'m'}"),
  NOT("{'code':'1','message':'m'}"),
  NOT("{'result':1,'error':{'code':1,'message':'m'}}"),
  NOT("{'error':'a','error':'b'}"),
  NOT("{}"),
  NOT("[{'error':'text'}]"),
  NOT("'text'"),
  NOT("null"),
  NOT(""),
  NOT("{'error':'text'} trailing"),
  NOT("<html>"),
};

static void
test_loose(void)
{
  struct rpc_reply r;
  struct egw_slice text;
  bool error;
  size_t i;

  for (i = 0; i < sizeof(loose) / sizeof(loose[0]); i++) {
    text = data_quoted(loose[i].text);
    error = rpc_reply_loose_error(text, &r);
    ok(error == loose[i].error &&
         (!error || (r.kind == ERROR && r.code == loose[i].code && !r.has_id &&
                     data_is(r.message, loose[i].message) && r.repair == loose[i].repair)),
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
