/* SPDX-License-Identifier: MIT */
/* The middleware `quorum`: who is asked, what counts as the same answer, and what the client
 * gets when it is not. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"

static char so[1000];

#define BALANCE "eth_getBalance"
#define FIXED "[\"0xaa\",\"0x10\"]"
#define UPSTREAMS 4u

/* a, b, c, d; all are up, with the head at block 100. */
static void
make_upstreams(struct plugtest *host, unsigned count)
{
  static const char *const names[UPSTREAMS] = { "a", "b", "c", "d" };
  struct egw_upstream_info infos[UPSTREAMS];
  unsigned i;

  memset(infos, 0, sizeof infos);
  for (i = 0; i < count; i++) {
    infos[i].name = names[i];
    infos[i].up = true;
    infos[i].has_head = true;
    infos[i].head = 100;
  }
  plugtest_upstreams(host, infos, count);
}

static void
know_head(struct plugtest *host)
{
  struct egw_head head = { .known = true, .live = true, .settled = true, .has_finalized = true,
                           .tip = { .number = 100 }, .finalized = { .number = 64 } };

  plugtest_head(host, &head, NULL, 0);
}

static struct plugtest *
host_with(const char *options, const struct plugtest_reply *below, size_t count)
{
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  plugtest_script(host, below, count);
  make_upstreams(host, 3);
  know_head(host);
  return host;
}

#define text_is(got, want, ...) \
  ok(strcmp((got), (want)) == 0 || (printf("# got %s\n", (got)), false), __VA_ARGS__)

static const struct plugtest_end *
ask(struct plugtest *host, const char *method, const char *params)
{
  struct plugtest_call *c = plugtest_call(host, &(struct plugtest_spec){ .method = method,
                                                                        .params = params });

  plugtest_advance(host, 100);
  return plugtest_end(c);
}

static void
finish(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_agreement(void)
{
  struct plugtest_reply below[] = {
    { .only_upstream = 1, .result = "\"0x5\"", .delay_ms = 10 },
    { .only_upstream = 2, .result = "\"0x05\"", .delay_ms = 20 },
    { .only_upstream = 3, .never = true },
  };
  struct plugtest *host = host_with("", below, 3);
  struct plugtest_call *c = plugtest_call(host, &(struct plugtest_spec){
    .method = BALANCE, .params = FIXED, .explain = true });
  uint64_t mask = 0;

  plugtest_run(host);
  is_int(plugtest_reached(host), 3, "three are asked at once");
  for (unsigned i = 0; i < 3; i++) {
    mask |= plugtest_reached_route(host, i).only;
    ok(plugtest_reached_route(host, i).once, "one attempt each");
  }
  is_int((long)mask, 7, "each of them one");
  plugtest_advance(host, 10);
  ok(!plugtest_end(c)->over, "one answer is not enough");
  plugtest_advance(host, 10);
  ok(plugtest_end(c)->over && !plugtest_end(c)->is_error,
     "two that agree are, the third is not waited for");
  text_is(plugtest_end(c)->body, "\"0x5\"", "the first one's bytes");
  ok(strstr(plugtest_end(c)->story, "2 of 3 agree") != NULL, "explained: %s",
     plugtest_end(c)->story);
  is_int(plugtest_live(host), 0, "the third was given up");
  is_int(plugtest_metric(host, "agreed"), 1, "counted");
  is_int(plugtest_metric(host, "alone"), 0, "nobody stood alone");
  finish(host);
}

static void
test_alone(void)
{
  struct plugtest_reply below[] = {
    { .only_upstream = 1, .result = "\"0x5\"", .delay_ms = 1 },
    { .only_upstream = 2, .result = "\"0x6\"", .delay_ms = 2 },
    { .only_upstream = 3, .result = "\"0x6\"", .delay_ms = 3 },
  };
  struct plugtest *host = host_with("", below, 3);

  text_is(ask(host, BALANCE, FIXED)->body, "\"0x6\"", "the first answer is outvoted");
  is_int(plugtest_metric(host, "alone"), 1, "counted");
  ok(plugtest_logged(host, "method=eth_getBalance upstream=a agreed=b,c times=1") ||
         plugtest_logged(host, "method=eth_getBalance upstream=a agreed=c,b times=1"),
     "and logged by name");
  ok(!plugtest_logged(host, "0x5"), "but not what it said");
  ask(host, BALANCE, FIXED);
  ok(plugtest_logged(host, "times=2"), "counted by upstream");
  finish(host);
}

static const struct plugtest_reply three_ways[] = {
  { .only_upstream = 1, .result = "\"0x5\"", .delay_ms = 3 },
  { .only_upstream = 2, .result = "\"0x6\"", .delay_ms = 2 },
  { .only_upstream = 3, .result = "\"0x7\"", .delay_ms = 1 },
};

static void
test_disagreement(void)
{
  struct plugtest_reply two_two[] = {
    { .only_upstream = 1, .result = "1" },
    { .only_upstream = 2, .result = "2" },
    { .only_upstream = 3, .result = "2" },
  };
  struct plugtest *host = host_with("", three_ways, 3);
  const struct plugtest_end *end = ask(host, BALANCE, FIXED);

  ok(end->is_error && end->code == -32058, "three answers: refused");
  is_int(plugtest_metric(host, "disagreed"), 1, "counted");
  ok(plugtest_logged(host, "no agreement: method=eth_getBalance answers=3 different=3"),
     "logged");
  finish(host);

  host = host_with("agree = 3; on_disagreement = \"majority\";", two_two, 3);
  text_is(ask(host, BALANCE, FIXED)->body, "2", "majority: what most say");
  is_int(plugtest_metric(host, "disagreed"), 1, "counted all the same");
  finish(host);

  host = host_with("agree = 3; on_disagreement = \"first\";", two_two, 3);
  /* the order turns with the number of the call: each is first once */
  unsigned ones = 0;
  for (unsigned i = 0; i < 6; i++)
    ones += strcmp(ask(host, BALANCE, FIXED)->body, "1") == 0;
  is_int(ones, 2, "first: what the one asked first says");
  finish(host);
}

static void
test_reverts(void)
{
  struct plugtest_reply same[] = {
    { .only_upstream = 1, .is_error = true, .code = 3, .message = "execution reverted: no",
      .data = "\"0x08c3\"" },
    { .only_upstream = 2, .is_error = true, .code = -32015, .message = "VM execution error.",
      .data = "\"Reverted 0x08C3\"", .delay_ms = 1 },
    { .only_upstream = 3, .result = "\"0x\"", .delay_ms = 2 },
  };
  struct plugtest_reply differ[] = {
    { .only_upstream = 1, .is_error = true, .code = 3, .message = "execution reverted",
      .data = "\"0x08c3\"" },
    { .only_upstream = 2, .is_error = true, .code = 3, .message = "execution reverted",
      .data = "\"0x08c4\"" },
    { .only_upstream = 3, .is_error = true, .code = -32000, .message = "out of gas" },
  };
  struct plugtest *host = host_with("", same, 3);
  const struct plugtest_end *end = ask(host, "eth_call", "[{},\"0x10\"]");

  ok(end->is_error && end->code == 3, "two reverts with the same data agree, however worded");
  ok(strstr(end->body, "execution reverted: no") != NULL, "the first one verbatim");
  finish(host);

  host = host_with("", differ, 3);
  end = ask(host, "eth_call", "[{},\"0x10\"]");
  ok(end->code == -32058, "two with other data do not");
  finish(host);
}

static void
test_errors(void)
{
  struct plugtest_reply errors[] = {
    { .only_upstream = 1, .outcome = EGW_MAYBE_SENT },
    { .only_upstream = 2, .is_error = true, .code = -32602, .message = "bad address" },
    { .only_upstream = 3, .is_error = true, .code = -32000, .message = "no", .delay_ms = 1 },
  };
  struct plugtest *host = host_with("", errors, 3);
  const struct plugtest_end *end = ask(host, BALANCE, FIXED);

  ok(end->is_error && (end->code == -32602 || end->code == -32000),
     "errors from all sides pass");
  is_int(plugtest_metric(host, "too_few"), 0, "and are no lack of answers");
  finish(host);
}

static void
test_spare(void)
{
  struct plugtest_reply below[] = {
    { .only_upstream = 1, .is_error = true, .code = -32000, .message = "header not found" },
    { .only_upstream = 2, .outcome = EGW_TIMED_OUT, .delay_ms = 1 },
    { .only_upstream = 3, .result = "7", .delay_ms = 2 },
    { .only_upstream = 4, .result = "7", .delay_ms = 2 },
  };
  struct plugtest *host = host_with("ask = 2;", below, 4);
  unsigned good = 0;

  make_upstreams(host, 4);
  for (unsigned i = 0; i < 4; i++)
    good += strcmp(ask(host, BALANCE, FIXED)->body, "7") == 0;
  is_int(good, 4, "one that can't answer is replaced by another");
  ok(plugtest_metric(host, "spares") >= 4, "counted");
  finish(host);
}

static void
test_too_few(void)
{
  struct plugtest_reply one[] = {
    { .only_upstream = 1, .outcome = EGW_NOT_SENT },
    { .only_upstream = 2, .result = "7" },
    { .only_upstream = 3, .outcome = EGW_BAD_REPLY },
  };
  struct plugtest_reply none[] = { { .only_upstream = 1, .outcome = EGW_NOT_SENT },
                                   { .only_upstream = 2, .outcome = EGW_NOT_SENT },
                                   { .only_upstream = 3, .outcome = EGW_NOT_SENT },
                                   { .result = "9" } };
  struct plugtest *host = host_with("", one, 3);

  is_int(ask(host, BALANCE, FIXED)->code, -32059, "one answer is too few: refused");
  is_int(plugtest_metric(host, "too_few"), 1, "counted");
  finish(host);
  host = host_with("too_few = \"pass\";", one, 3);
  text_is(ask(host, BALANCE, FIXED)->body, "7", "pass: the answer there is");
  finish(host);
  host = host_with("too_few = \"pass\";", none, 4);
  text_is(ask(host, BALANCE, FIXED)->body, "9", "pass, and there is none: the ordinary way");
  finish(host);
  host = host_with("", none, 4);
  make_upstreams(host, 1);
  is_int(ask(host, BALANCE, FIXED)->code, -32059, "one upstream only: refused");
  is_int(plugtest_reached(host), 0, "it is not even asked");
  finish(host);
}

struct sent_row {
  const char *method, *params, *sent; /* sent NULL: passed on, unchanged and once */
};

static const struct sent_row sent_rows[] = {
  { BALANCE, "[\"0xaa\",\"latest\"]", "[\"0xaa\",\"0x64\"]" },
  { BALANCE, "[\"0xaa\"]", "[\"0xaa\",\"0x64\"]" },
  { BALANCE, "[\"0xaa\", null]", "[\"0xaa\",\"0x64\"]" },
  { BALANCE, "[\"0xaa\",\"finalized\"]", "[\"0xaa\",\"0x40\"]" },
  { BALANCE, "[\"0xaa\",{\"blockNumber\":\"latest\"}]", "[\"0xaa\",\"0x64\"]" },
  { BALANCE, "[\"0xaa\",{\"blockHash\":\"0x11\"}]", "[\"0xaa\",{\"blockHash\":\"0x11\"}]" },
  { BALANCE, "[\"0xaa\",\"earliest\"]", "[\"0xaa\",\"earliest\"]" },
  { BALANCE, "[\"0xaa\",\"safe\"]", NULL },
  { BALANCE, "[\"0xaa\",\"pending\"]", NULL },
  { BALANCE, "{\"address\":\"0xaa\"}", NULL },
  { "eth_getStorageAt", "[\"0xaa\",\"0x0\",\"latest\"]", "[\"0xaa\",\"0x0\",\"0x64\"]" },
  { "eth_getBlockByNumber", "[\"latest\",true]", "[\"0x64\",true]" },
  { "eth_getLogs", "[{\"address\":\"0xa\"}]",
    "[{\"address\":\"0xa\",\"fromBlock\":\"0x64\",\"toBlock\":\"0x64\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"latest\"}]",
    "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x64\"}]" },
  { "eth_getLogs", "[{\"toBlock\":\"0x3\", \"fromBlock\":\"0x1\"}]",
    "[{\"toBlock\":\"0x3\", \"fromBlock\":\"0x1\"}]" },
  { "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"pending\"}]", NULL },
  { "eth_getLogs", "[{\"blockHash\":\"0x1\"}]", "[{\"blockHash\":\"0x1\"}]" },
};

static void
test_blocks(void)
{
  struct plugtest_reply below[] = { { .result = "7" } };
  struct plugtest *host = host_with("", below, 1);
  unsigned passed = 0;

  for (size_t i = 0; i < sizeof sent_rows / sizeof sent_rows[0]; i++) {
    const struct sent_row *row = &sent_rows[i];
    unsigned before = plugtest_reached(host);

    ask(host, row->method, row->params);
    text_is(plugtest_reached_params(host, before), row->sent == NULL ? row->params : row->sent,
           "%s %s", row->method, row->params);
    is_int(plugtest_reached(host) - before, row->sent == NULL ? 1 : 3, "asked so often");
    passed += row->sent == NULL;
  }
  is_int(plugtest_metric(host, "passed"), passed, "those that can't be voted on are counted");
  plugtest_head(host, &(struct egw_head){ 0 }, NULL, 0);
  ask(host, BALANCE, "[\"0xaa\",\"latest\"]");
  is_int(plugtest_metric(host, "passed"), passed + 1,
         "a tag while the head is not known is passed on");
  ask(host, BALANCE, FIXED);
  is_int(plugtest_metric(host, "passed"), passed + 1, "a number is voted on");
  finish(host);
}

static void
test_above_tip(void)
{
  struct plugtest_reply below[] = { { .result = "7" } };
  struct plugtest *host = host_with("", below, 1);
  struct egw_upstream_info infos[] = {
    { .name = "a", .up = true, .has_head = true, .head = 102 },
    { .name = "b", .up = true, .has_head = true, .head = 999999999 },
    { .name = "c", .up = true },
  };

  plugtest_upstreams(host, infos, 3);
  ask(host, BALANCE, "[\"0xaa\",\"latest\"]");
  text_is(plugtest_reached_params(host, 0), "[\"0xaa\",\"0x66\"]",
          "latest is what a node has above the tip, but not what one lies about");
  finish(host);
}

static void
test_methods(void)
{
  struct plugtest_reply below[] = { { .result = "7" } };
  struct plugtest *host = host_with("methods = ( \"eth_*\", \"foo_bar\" );", below, 1);

  ask(host, "eth_sendRawTransaction", "[\"0x1\"]");
  ask(host, "eth_getFilterChanges", "[\"0x1\"]");
  ask(host, "eth_sign", "[\"0x1\"]");
  is_int(plugtest_reached(host), 3, "what may not be sent twice is not, listed or not");
  ask(host, "eth_gasPrice", "[]");
  is_int(plugtest_reached(host), 6, "the pattern's others are");
  ask(host, "eth_unknown", "[]");
  is_int(plugtest_reached(host), 7, "not those that are not known");
  ask(host, "foo_bar", "[]");
  is_int(plugtest_reached(host), 10, "unless they are named in full");
  ask(host, "net_version", "[]");
  is_int(plugtest_reached(host), 11, "what is not listed passes");
  finish(host);
}

static void
test_order(void)
{
  struct plugtest_reply below[] = { { .result = "7" } };
  struct plugtest *host = host_with("ask = 2;", below, 1);
  struct egw_upstream_info infos[] = {
    { .name = "a", .up = false }, { .name = "b", .up = true, .busy = true },
    { .name = "c", .up = true, .has_head = true, .head = 90 },
    { .name = "d", .up = true, .tier = 1 },
  };
  uint64_t mask = 0;

  plugtest_upstreams(host, infos, 4);
  ask(host, BALANCE, "[\"0xaa\",\"latest\"]");
  for (unsigned i = 0; i < plugtest_reached(host); i++)
    mask |= plugtest_reached_route(host, i).only;
  is_int((long)mask, 12, "those that are well, with the block or not, before the others");
  infos[0].up = true;
  plugtest_upstreams(host, infos, 4);
  ask(host, BALANCE, "[\"0xaa\",\"latest\"]");
  mask = plugtest_reached_route(host, 2).only | plugtest_reached_route(host, 3).only;
  is_int((long)mask, 9, "one without the block after one of the next tier");
  finish(host);
}

static void
test_ignore(void)
{
  struct plugtest_reply below[] = {
    { .only_upstream = 1, .result = "{\"a\":1,\"size\":1}" },
    { .only_upstream = 2, .result = "{\"size\":2,\"a\":1}" },
    { .only_upstream = 3, .never = true },
  };
  struct plugtest *host = host_with("", below, 3);
  const struct plugtest_end *end = ask(host, "eth_getBlockByNumber", "[\"0x1\",false]");

  ok(end->over && !end->is_error, "what is to be ignored does not matter");
  finish(host);
  host = host_with("ignore = ( );", below, 3);
  end = ask(host, "eth_getBlockByNumber", "[\"0x1\",false]");
  ok(!end->over, "otherwise it does");
  finish(host);
}

/* Two of three do not have the newest block, in one of three ways. */
static void
test_lag(void)
{
  struct plugtest_reply late[] = {
    { .only_upstream = 1, .result = "7" },
    { .only_upstream = 2, .is_error = true, .code = -32000, .message = "header not found" },
    { .only_upstream = 3, .result = NULL },
  };
  struct plugtest_reply there[] = { { .result = "7" } };
  struct plugtest *host = host_with("", late, 3);
  struct plugtest_call *c = plugtest_call(host, &(struct plugtest_spec){
    .method = BALANCE, .params = "[\"0xaa\",\"latest\"]" });

  plugtest_advance(host, 10);
  ok(!plugtest_end(c)->over, "nodes that lag are waited for");
  is_int(plugtest_reached(host), 3, "not without a pause");
  plugtest_advance(host, 300);
  ok(!plugtest_end(c)->over && plugtest_reached(host) > 6, "and asked again");
  plugtest_script(host, there, 1);
  plugtest_advance(host, 200);
  text_is(plugtest_end(c)->body, "7", "until they have the block");
  is_int(plugtest_metric(host, "waits"), 1, "counted");
  plugtest_script(host, late, 3);
  c = plugtest_call(host, &(struct plugtest_spec){
    .method = BALANCE, .params = "[\"0xaa\",\"latest\"]" });
  plugtest_advance(host, 1100);
  is_int(plugtest_end(c)->code, -32059, "not for ever");
  c = plugtest_call(host, &(struct plugtest_spec){
    .method = BALANCE, .params = "[\"0xaa\",\"latest\"]" });
  plugtest_advance(host, 10);
  plugtest_cancel(c);
  plugtest_run(host);
  is_int(plugtest_live(host), 0, "nor when the client is gone");
  finish(host);
  host = host_with("lag_wait = \"0\";", late, 3);
  is_int(ask(host, BALANCE, "[\"0xaa\",\"latest\"]")->code, -32059, "0: not at all");
  is_int(plugtest_reached(host), 3, "each was asked once");
  finish(host);
}

static void
test_lag_of_logs(void)
{
  struct plugtest_reply late[] = {
    { .only_upstream = 1, .result = "[7]" },
    { .only_upstream = 2, .result = "[]" },
    { .only_upstream = 3, .result = "[]" },
  };
  struct plugtest *host = host_with("", late, 3);
  struct egw_upstream_info infos[] = {
    { .name = "a", .up = true, .has_head = true, .head = 100 },
    { .name = "b", .up = true, .has_head = true, .head = 99 },
    { .name = "c", .up = true, .has_head = true, .head = 99 },
  };

  plugtest_upstreams(host, infos, 3);
  is_int(ask(host, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"latest\"}]")->over, 0,
         "logs of nodes below the end of the range do not count");
  ok(ask(host, "eth_getLogs", "[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x50\"}]")->over,
     "within what they have they do");
  finish(host);
}

static void
test_partial(void)
{
  struct plugtest_reply below[] = { { .big = 100000, .partial = true } };
  struct plugtest *host = host_with("", below, 1);

  is_int(ask(host, BALANCE, FIXED)->code, -32059, "answers too long to compare are none");
  finish(host);
}

static void
test_options(void)
{
  struct plugtest *host = plugtest_new(so, "agree = 4; ask = 3;");

  ok(plugtest_refused(host) && strstr(plugtest_messages(host), "more than ask") != NULL,
     "agree may not be more than ask");
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
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/middleware/quorum/quorum.so",
           build == NULL ? "." : build);
  test_agreement();
  test_alone();
  test_disagreement();
  test_reverts();
  test_errors();
  test_spare();
  test_too_few();
  test_blocks();
  test_above_tip();
  test_methods();
  test_order();
  test_ignore();
  test_lag();
  test_lag_of_logs();
  test_partial();
  test_options();
  plugtest_generic(so, "agree = 1; ask = 1;",
                   &(struct plugtest_spec){ .method = BALANCE, .params = FIXED }, report);
  return done_testing();
}
