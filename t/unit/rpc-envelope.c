/* SPDX-License-Identifier: MIT */
/* What clients send: messages, requests, the envelope for an upstream. */
#include "base/buf.h"
#include "rpc/envelope.h"
#include "rpc-data.h"
#include "../lib/tap.h"

#define MAX_ITEMS 10u

/* --- one request --------------------------------------------------------------------- */

#define BAD RPC_FAULT_INVALID_REQUEST
#define PARAMS RPC_FAULT_INVALID_PARAMS
#define GOOD RPC_FAULT_NONE
#define WRONG(fault, id, text) { text, fault, id, NULL, NULL }

static const struct {
  const char *text;
  enum rpc_fault fault;
  const char *id, *method, *params; /* NULL: missing; method and params only where GOOD */
} requests[] = {
  /* ids are kept byte by byte */
  { "{'id':0,'method':'m','params':[]}", GOOD, "0", "m", "[]" },
  { "{'id':-1,'method':'m'}", GOOD, "-1", "m", "[]" },
  { "{'id':9007199254740993,'method':'m'}", GOOD, "9007199254740993", "m", "[]" },
  { "{'id':18446744073709551616,'method':'m'}", GOOD, "18446744073709551616", "m", "[]" },
  { "{'id':1.5,'method':'m'}", GOOD, "1.5", "m", "[]" },
  { "{'id':1e2,'method':'m'}", GOOD, "1e2", "m", "[]" },
  { "{'id':-0,'method':'m'}", GOOD, "-0", "m", "[]" },
  { "{'id':'007','method':'m'}", GOOD, "'007'", "m", "[]" },
  { "{'id':'','method':'m'}", GOOD, "''", "m", "[]" },
  { "{'id':'\\u0041\\n\xc3\xa9','method':'m'}", GOOD, "'\\u0041\\n\xc3\xa9'", "m", "[]" },
  { "{'id':null,'method':'m'}", GOOD, "null", "m", "[]" },
  WRONG(BAD, NULL, "{'id':true,'method':'m'}"),
  WRONG(BAD, NULL, "{'id':{},'method':'m'}"),
  WRONG(BAD, NULL, "{'id':[1],'method':'m'}"),
  { "{'method':'m'}", GOOD, NULL, "m", "[]" },
  /* params */
  { "{'id':1,'method':'m','params':null}", GOOD, "1", "m", "[]" },
  { "{'id':1,'method':'m','params':{}}", GOOD, "1", "m", "{}" },
  { "{'id':1,'method':'m','params':[{'topics':[],'address':[ ]},null]}", GOOD, "1", "m",
    "[{'topics':[],'address':[ ]},null]" },
  { "{'params' : [ 1 ] , 'id' : 1 , 'method' : 'm'}", GOOD, "1", "m", "[ 1 ]" },
  WRONG(PARAMS, "1", "{'id':1,'method':'m','params':5}"),
  WRONG(PARAMS, "1", "{'id':1,'method':'m','params':'x'}"),
  WRONG(PARAMS, "1", "{'id':1,'method':'m','params':false}"),
  /* jsonrpc */
  { "{'jsonrpc':'2.0','id':1,'method':'m'}", GOOD, "1", "m", "[]" },
  { "{'jsonrpc':'1.0','id':1,'method':'m'}", GOOD, "1", "m", "[]" },
  { "{'jsonrpc':'\\u0032.0','id':1,'method':'m'}", GOOD, "1", "m", "[]" },
  WRONG(BAD, "1", "{'jsonrpc':'3.0','id':1,'method':'m'}"),
  WRONG(BAD, "1", "{'jsonrpc':2.0,'id':1,'method':'m'}"),
  WRONG(BAD, "1", "{'jsonrpc':null,'id':1,'method':'m'}"),
  /* method */
  WRONG(BAD, "7", "{'id':7,'method':42}"),
  WRONG(BAD, "7", "{'id':7}"),
  WRONG(BAD, "7", "{'id':7,'method':null}"),
  WRONG(BAD, "7", "{'id':7,'method':''}"),
  WRONG(BAD, "7", "{'id':7,'method':'a b'}"),
  WRONG(BAD, "7", "{'id':7,'method':'eth_c\xc3\xa9'}"),
  WRONG(BAD, "7", "{'id':7,'method':'a\\u0000'}"),
  WRONG(BAD, "7", "{'id':7,'method':'a\\'b'}"),
  { "{'id':7,'method':'foo.get-2_X'}", GOOD, "7", "foo.get-2_X", "[]" },
  { "{'id':7,'method':'eth_ch\\u0061inId'}", GOOD, "7", "eth_chainId", "[]" },
  /* keys compare decoded, and twice is once too often */
  { "{'id':1,'m\\u0065thod':'m'}", GOOD, "1", "m", "[]" },
  WRONG(BAD, "1", "{'id':1,'method':'a','m\\u0065thod':'b'}"),
  WRONG(BAD, "1", "{'id':1,'method':'a','method':'a'}"),
  WRONG(BAD, NULL, "{'id':1,'id':1,'method':'a'}"),
  WRONG(BAD, NULL, "{'id':1,'\\u0069d':2,'method':'a'}"),
  WRONG(BAD, "1", "{'id':1,'method':'a','params':[],'params':[1]}"),
  WRONG(BAD, "1", "{'jsonrpc':'2.0','jsonrpc':'2.0','id':1,'method':'a'}"),
  { "{'id':1,'Method':'x','method':'m','x':1,'x':2}", GOOD, "1", "m", "[]" },
  { "{'x':{'id':3,'method':'no'},'id':1,'method':'m'}", GOOD, "1", "m", "[]" },
  /* no object */
  WRONG(BAD, NULL, "[]"),
  WRONG(BAD, NULL, "1"),
  WRONG(BAD, NULL, "'x'"),
  WRONG(BAD, NULL, "null"),
  WRONG(BAD, NULL, "{}"),
};

static bool
same_request(const struct rpc_request *a, const struct rpc_request *b)
{
  return a->fault == b->fault && a->id.ptr == b->id.ptr && a->id.len == b->id.len &&
         a->method.len == b->method.len &&
         (a->method.len == 0 || memcmp(a->method.ptr, b->method.ptr, a->method.len) == 0) &&
         a->params.len == b->params.len && memcmp(a->params.ptr, b->params.ptr, a->params.len) == 0;
}

/* A message of its own, read in one pass, and the only element of an array say the same. */
static void
test_ways(struct egw_slice text, const struct rpc_request *want)
{
  char array[4096];
  struct rpc_request r;
  struct rpc_message m;
  int n = snprintf(array, sizeof(array), "[%.*s]", (int)text.len, text.ptr);

  rpc_message_parse(text, MAX_ITEMS, &m);
  if (text.ptr[0] == '[') { /* as a message it is something else */
    rpc_message_free(&m);
    return;
  }
  if (!ok(m.shape == RPC_SINGLE, "a message of its own"))
    return;
  rpc_message_request(&m, 0, &r);
  ok(same_request(&r, want), "says the same");
  rpc_message_free(&m);
  rpc_message_parse((struct egw_slice){ array, (size_t)n }, MAX_ITEMS, &m);
  if (!ok(m.shape == RPC_BATCH && n < (int)sizeof(array), "an array of it"))
    return;
  rpc_message_request(&m, 0, &r);
  ok(r.fault == want->fault && r.id.len == want->id.len && r.method.len == want->method.len &&
     r.params.len == want->params.len, "says the same");
  rpc_message_free(&m);
}

static void
test_requests(void)
{
  struct rpc_request r;
  struct egw_slice text;
  size_t i;
  bool right;

  for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
    text = data_quoted(requests[i].text);
    rpc_request_parse(text, &r);
    right = r.fault == requests[i].fault && data_is(r.id, requests[i].id);
    if (requests[i].fault == GOOD)
      right = right && data_is(r.method, requests[i].method) &&
              data_is(r.params, requests[i].params);
    if (!ok(right, "request %s", requests[i].text))
      printf("#   fault %d, id '%.*s', method '%.*s', params '%.*s'\n", (int)r.fault,
             (int)r.id.len, r.id.ptr != NULL ? r.id.ptr : "", (int)r.method.len,
             r.method.ptr != NULL ? r.method.ptr : "", (int)r.params.len, r.params.ptr);
    test_ways(text, &r);
    data_free(text);
  }
}

static void
test_limits(void)
{
  static char text[RPC_ID_MAX + 200], name[RPC_METHOD_MAX + 2], id[RPC_ID_MAX];
  struct rpc_request r;

  memset(name, 'a', sizeof(name));
  snprintf(text, sizeof(text), "{\"id\":1,\"method\":\"%.*s\"}", RPC_METHOD_MAX, name);
  rpc_request_parse((struct egw_slice){ text, strlen(text) }, &r);
  ok(r.fault == GOOD && r.method.len == RPC_METHOD_MAX, "the longest name of a method");
  snprintf(text, sizeof(text), "{\"id\":1,\"method\":\"%.*s\"}", RPC_METHOD_MAX + 1, name);
  rpc_request_parse((struct egw_slice){ text, strlen(text) }, &r);
  is_int(r.fault, BAD, "one byte more");
  snprintf(text, sizeof(text), "{\"id\":1,\"method\":\"\\u0061%.*s\"}", RPC_METHOD_MAX, name);
  rpc_request_parse((struct egw_slice){ text, strlen(text) }, &r);
  is_int(r.fault, BAD, "one byte more, written with an escape");
  memset(id, '1', sizeof(id));
  snprintf(text, sizeof(text), "{\"id\":%.*s,\"method\":\"m\"}", RPC_ID_MAX, id);
  rpc_request_parse((struct egw_slice){ text, strlen(text) }, &r);
  ok(r.fault == GOOD && r.id.len == RPC_ID_MAX, "the longest id");
  snprintf(text, sizeof(text), "{\"id\":\"%.*s\",\"method\":\"m\"}", RPC_ID_MAX - 1, id);
  rpc_request_parse((struct egw_slice){ text, strlen(text) }, &r);
  ok(r.fault == BAD && r.id.ptr == NULL, "one byte more");
}

/* --- messages ------------------------------------------------------------------------ */

#define S RPC_SINGLE
#define B RPC_BATCH
#define U RPC_UNUSABLE
#define USELESS(fault, text) { text, U, fault, 0, NULL }

static const struct {
  const char *text;
  enum rpc_shape shape;
  enum rpc_fault fault;
  size_t count;
  const char *last; /* the single value, or the last element */
} messages[] = {
  { "{}", S, GOOD, 1, "{}" },
  { " \n{'a':1}\r\n ", S, GOOD, 1, "{'a':1}" },
  { "1", S, GOOD, 1, "1" },
  { " 12 ", S, GOOD, 1, "12" },
  { "null", S, GOOD, 1, "null" },
  { "'x'", S, GOOD, 1, "'x'" },
  { "[1]", B, GOOD, 1, "1" },
  { "[[]]", B, GOOD, 1, "[]" },
  { "[null,null]", B, GOOD, 2, "null" },
  { " [ 1 , 'x',{} ,[ ],true, {'id':9} ]\n", B, GOOD, 6, "{'id':9}" },
  { "[0,1,2,3,4,5,6,7,8,9]", B, GOOD, 10, "9" },
  USELESS(RPC_FAULT_BATCH_TOO_LARGE, "[0,1,2,3,4,5,6,7,8,9,10]"),
  USELESS(RPC_FAULT_PARSE, "[0,1,2,3,4,5,6,7,8,9,10,]"),
  { "\xef\xbb\xbf{}", S, GOOD, 1, "{}" },
  { "\xef\xbb\xbf [1,{}]", B, GOOD, 2, "{}" },
  USELESS(BAD, "[]"),
  USELESS(BAD, " [ ] "),
  USELESS(RPC_FAULT_PARSE, ""),
  USELESS(RPC_FAULT_PARSE, "  \n"),
  USELESS(RPC_FAULT_PARSE, "\xef\xbb\xbf"),
  USELESS(RPC_FAULT_PARSE, "\xef\xbb\xbf\xef\xbb\xbf{}"),
  USELESS(RPC_FAULT_PARSE, "{"),
  USELESS(RPC_FAULT_PARSE, "{'a':1,}"),
  USELESS(RPC_FAULT_PARSE, "nul"),
  USELESS(RPC_FAULT_PARSE, "{`a`:1}"),
  USELESS(RPC_FAULT_PARSE, "{}{}"),
  USELESS(RPC_FAULT_PARSE, "{} x"),
  USELESS(RPC_FAULT_PARSE, "[1"),
  USELESS(RPC_FAULT_PARSE, "{'method':'eth_\xff" "call'}"),
  USELESS(RPC_FAULT_PARSE, "{'params':['\xed\xa0\x80']}"),
  USELESS(RPC_FAULT_PARSE, "{'params':['\xc0\xaf']}"),
  USELESS(RPC_FAULT_PARSE, "[{'method':'sum'},{'method']"),
};

static void
test_messages(void)
{
  struct rpc_message m;
  struct egw_slice text, last;
  size_t i;
  bool right;

  for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
    text = data_quoted(messages[i].text);
    rpc_message_parse(text, MAX_ITEMS, &m);
    right = m.shape == messages[i].shape && m.fault == messages[i].fault;
    if (m.shape == U) {
      right = right && m.why != NULL && m.items == NULL;
    } else {
      last = m.shape == B ? m.items[m.count - 1] : m.single;
      right = right && m.count == messages[i].count && data_is(last, messages[i].last);
    }
    ok(right, "message %zu is %s", i,
       m.shape == U ? m.why : m.shape == B ? "an array" : "one value");
    rpc_message_free(&m);
    rpc_message_free(&m);
    data_free(text);
  }
}

static void
test_deep(size_t levels, enum rpc_shape want)
{
  static const char head[] = "{\"id\":1,\"method\":\"m\",\"params\":";
  size_t len = sizeof(head) - 1 + 2 * levels + 1;
  char *text = malloc(len);
  struct rpc_message m;

  if (text == NULL)
    abort();
  memcpy(text, head, sizeof(head) - 1);
  memset(text + sizeof(head) - 1, '[', levels);
  memset(text + sizeof(head) - 1 + levels, ']', levels);
  text[len - 1] = '}';
  rpc_message_parse((struct egw_slice){ text, len }, MAX_ITEMS, &m);
  ok(m.shape == want && (want == S || m.fault == RPC_FAULT_PARSE),
     "params %zu levels deep: %s",
     levels, want == S ? "taken" : "refused");
  rpc_message_free(&m);
  free(text);
}

static void
test_many(void)
{
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("["));
  struct rpc_message m;
  size_t i;
  int bad = 0;
  char want[24];

  for (i = 0; i < 5000; i++)
    bad |= egw_buf_printf(buf, "%s%zu", i > 0 ? "," : "", i);
  bad |= egw_buf_append(buf, "]", 1);
  rpc_message_parse(egw_buf_slice(buf), 5000, &m);
  is_int(m.count, 5000, "an array of 5000");
  for (i = 0; i < m.count; i++) {
    snprintf(want, sizeof(want), "%zu", i);
    bad |= !data_is(m.items[i], want);
  }
  is_int(bad, 0, "each element in its place");
  rpc_message_free(&m);
  egw_buf_unref(buf);
}

/* --- the examples of the specification ----------------------------------------------- */

/* What the parser alone says of a request, in words of the specification's answers. */
static void
judge(struct egw_slice text, char *out, size_t cap)
{
  struct rpc_message m;
  struct rpc_request r;
  size_t i, len = 0;

  rpc_message_parse(text, MAX_ITEMS, &m);
  if (m.shape == U)
    snprintf(out, cap, "%d:null", rpc_fault_info(m.fault)->code);
  else
    out[0] = '\0';
  for (i = 0; i < m.count && len < cap; i++) {
    rpc_message_request(&m, i, &r);
    if (r.fault != GOOD)
      len += (size_t)snprintf(out + len, cap - len, "%d:%.*s ", rpc_fault_info(r.fault)->code,
                              r.id.ptr != NULL ? (int)r.id.len : 4,
                              r.id.ptr != NULL ? r.id.ptr : "null");
    else if (r.id.ptr != NULL)
      len += (size_t)snprintf(out + len, cap - len, "call:%.*s ", (int)r.id.len, r.id.ptr);
  }
  rpc_message_free(&m);
}

static void
expect(struct egw_slice answer, char *out, size_t cap)
{
  struct egw_slice item, error, id, code;
  size_t i, len = 0;

  out[0] = '\0';
  for (i = 0;; i++) {
    item = egw_json_kind(answer) == EGW_JSON_ARRAY ? egw_json_element(answer, i) : answer;
    if (item.ptr == NULL || len >= cap)
      return;
    id = egw_json_member(item, "id");
    error = egw_json_member(item, "error");
    code = egw_json_member(error, "code");
    if (error.ptr == NULL || data_is(code, "-32601")) /* that one is up to the chain */
      len += (size_t)snprintf(out + len, cap - len, "call:%.*s ", (int)id.len, id.ptr);
    else
      len += (size_t)snprintf(out + len, cap - len, "%.*s:%.*s%s", (int)code.len, code.ptr,
                              (int)id.len, id.ptr,
                              egw_json_kind(answer) == EGW_JSON_ARRAY ? " " : "");
    if (egw_json_kind(answer) != EGW_JSON_ARRAY)
      return;
  }
}

static void
spec_case(unsigned n, const char *got, const char *want)
{
  size_t a = strlen(got), b = strlen(want);

  while (a > 0 && got[a - 1] == ' ')
    a--;
  while (b > 0 && want[b - 1] == ' ')
    b--;
  if (!ok(a == b && memcmp(got, want, a) == 0, "example %u of the specification", n))
    printf("#   got '%s', want '%s'\n", got, want);
}

static void
test_spec(void)
{
  struct egw_slice file = data_file(data_path("jsonrpc2/spec-examples.txt"));
  struct egw_slice left = file, line;
  char got[512], want[512];
  unsigned n = 0;
  bool open = false;

  if (file.ptr == NULL) {
    tap_skip("the examples of the specification are not there");
    return;
  }
  while (data_line(&left, &line)) {
    bool request = line.len > 4 && memcmp(line.ptr, "--> ", 4) == 0;
    bool answer = line.len > 4 && memcmp(line.ptr, "<-- ", 4) == 0;

    if (open && (request || answer)) {
      want[0] = '\0'; /* a request that gets no answer */
      if (answer)
        expect((struct egw_slice){ line.ptr + 4, line.len - 4 }, want, sizeof(want));
      spec_case(++n, got, want);
      open = false;
    }
    if (request) {
      judge((struct egw_slice){ line.ptr + 4, line.len - 4 }, got, sizeof(got));
      open = true;
    }
  }
  if (open)
    spec_case(++n, got, "");
  is_int(n, 15, "all 15 were looked at");
  data_free(file);
}

/* --- printing ------------------------------------------------------------------------ */

static void
test_print(void)
{
  struct egw_buf *buf = egw_buf_new(0);
  size_t first;

  ok(rpc_request_print(buf, UINT64_MAX, EGW_LIT("eth_call"), EGW_LIT("[{\"a\":1e400}]")) == 0,
     "an envelope");
  is_slice(egw_buf_slice(buf),
           "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"eth_call\","
           "\"params\":[{\"a\":1e400}]}",
           "with the params byte by byte");
  first = egw_buf_slice(buf).len;
  ok(rpc_request_print(buf, 0, EGW_LIT("m"), EGW_LIT("[]")) == 0, "another behind it");
  is_slice(buf_from(buf, first),
           "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\",\"params\":[]}",
           "with id 0");
  ok(rpc_request_print(buf, 0, EGW_LIT("a\"b"), EGW_LIT("[]")) == -1, "no name of a method");
  egw_buf_unref(buf);
}

int
main(void)
{
  test_requests();
  test_limits();
  test_messages();
  test_deep(50, S);
  test_deep(RPC_CLIENT_DEPTH - 1, S);
  test_deep(RPC_CLIENT_DEPTH, U);
  test_deep(1000, U);
  test_deep(100000, U);
  test_deep(1000000, U);
  test_many();
  test_spec();
  test_print();
  return done_testing();
}
