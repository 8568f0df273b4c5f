/* SPDX-License-Identifier: MIT */
/* The examples of middleware: what they do, and the scenarios that every plugin must stand. */
#include "../lib/tap.h"
#include "../lib/plugtest.h"

static char so[1024];

static const char *
example(const char *name)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/example/%s.so", build == NULL ? "." : build, name);
  return so;
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

static void
test_refuse(void)
{
  struct plugtest *host = plugtest_new(example("example2-option"), "refuse = ( \"debug_\" );");
  const struct plugtest_end *end;

  end = plugtest_ask(host, &(struct plugtest_spec){ .method = "debug_traceCall" });
  ok(end->is_error && end->code == -32601, "example2: a method with the prefix is refused");
  end = plugtest_ask(host, &(struct plugtest_spec){ .method = "debug" });
  ok(!end->is_error && end->sent == 1, "one that is shorter than the prefix is not");
  is_int(plugtest_free(host), 0, "no rule was broken");
  host = plugtest_new(so, "");
  ok(plugtest_refused(host), "its option is required: %s", plugtest_messages(host));
  plugtest_free(host);
}

static void
test_delay(void)
{
  struct plugtest *host = plugtest_new(example("example3-async"), "delay = \"250ms\";");
  struct plugtest_call *one = plugtest_call(host, &(struct plugtest_spec){ .id = "1" });
  struct plugtest_call *two = plugtest_call(host, &(struct plugtest_spec){ .id = "2" });

  plugtest_run(host);
  ok(plugtest_held(one) && plugtest_held(two), "example3: calls are held");
  plugtest_advance(host, 100);
  plugtest_cancel(two);
  plugtest_advance(host, 140);
  ok(plugtest_held(one), "for no less than the time");
  plugtest_advance(host, 20);
  ok(plugtest_end(one)->over && plugtest_end(one)->sent == 1, "then they go on");
  is_int(plugtest_end(two)->sent, 0, "one whose client left does not");
  is_int(plugtest_metric(host, "delayed"), 1, "calls held to the end are counted");
  is_int(plugtest_metric(host, "cancelled"), 1, "so are the others");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static const struct plugtest_end *
ask_block(struct plugtest *host, const struct plugtest_reply *below, const char *params)
{
  struct plugtest_call *call;

  plugtest_script(host, below, 2);
  call = plugtest_call(host, &(struct plugtest_spec){ .method = "example_blockWithReceipts",
                                                      .params = params });
  plugtest_advance(host, 100);
  return plugtest_end(call);
}

static void
test_join(void)
{
  static const struct plugtest_reply good[] = {
    { .method = "eth_getBlockByNumber", .result = "{\"number\":\"0x5\"}", .delay_ms = 50 },
    { .method = "eth_getBlockReceipts", .result = "[{\"status\":\"0x1\"}]" },
  };
  static const struct plugtest_reply bad[] = {
    { .method = "eth_getBlockByNumber", .result = "{}" },
    { .method = "eth_getBlockReceipts", .is_error = true, .code = -32000, .message = "none",
      .delay_ms = 50 },
  };
  static const struct plugtest_reply away[] = {
    { .method = "eth_getBlockByNumber", .outcome = EGW_NOT_SENT, .why = "refused" },
    { .method = "eth_getBlockReceipts", .result = "[]", .delay_ms = 20 },
  };
  struct plugtest *host = plugtest_new(example("example4-subcall"), "");
  const struct plugtest_end *end = ask_block(host, good, "[\"0x5\"]");

  is_bytes(end->body, end->body_len,
           "{\"block\":{\"number\":\"0x5\"},\"receipts\":[{\"status\":\"0x1\"}]}",
           "example4: two results are joined");
  is_int(plugtest_reached(host), 2, "by two calls");
  is_bytes(plugtest_reached_params(host, 0), strlen(plugtest_reached_params(host, 0)),
           "[\"0x5\",true]", "with the params of the first");
  is_bytes(plugtest_reached_params(host, 1), strlen(plugtest_reached_params(host, 1)),
           "[\"0x5\"]", "and of the second");
  end = ask_block(host, bad, "[\"latest\"]");
  ok(end->over && end->is_error && end->code == -32000, "an error of the node is the answer");
  end = ask_block(host, away, "[\"latest\"]");
  ok(end->over && end->is_error && end->code == -32603, "and so is a fault");
  end = ask_block(host, good, "[5]");
  ok(end->over && end->is_error && end->code == -32602, "bad params are refused");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

#define QUIET_LOG                                                                           \
  "{\"address\":\"0x00000000000000000000000000000000000000aB\",\"data\":\"0x01\"}"
#define OTHER_LOG "{ \"data\" : \"0x01\", \"address\":\"0xcc\" ,\"topics\": [] }"

static void
is_notice(const char *got, const char *want, const char *what)
{
  ok(got != NULL && strcmp(got, want) == 0, "%s: %s", what, got != NULL ? got : "dropped");
}

static void
test_notice(void)
{
  struct plugtest *host = plugtest_new(example("example6-notice"),
      "mute = ( \"0x00000000000000000000000000000000000000Ab\" );"
      "without = \"data\";");
  const struct plugtest_spec who = { .transport = "ipc" };

  ok(plugtest_notice(host, "logs", QUIET_LOG, &who) == NULL, "example6: a log is dropped");
  is_notice(plugtest_notice(host, "logs", OTHER_LOG, &who),
            "{\"address\":\"0xcc\",\"topics\":[]}", "another loses a member");
  is_notice(plugtest_notice(host, "logs", "{\"data\":1}", &who), "{}", "which may be all it has");
  is_notice(plugtest_notice(host, "logs", "{\"a\":\"data\"}", &who), "{\"a\":\"data\"}",
            "one that has no such member is as it was");
  is_notice(plugtest_notice(host, "newHeads", QUIET_LOG, &who), QUIET_LOG, "so are others");
  is_int(plugtest_metric(host, "muted"), 1, "what was dropped is counted");
  is_int(plugtest_metric(host, "shortened"), 2, "and what was changed");
  is_int(plugtest_free(host), 0, "no rule was broken");
  host = plugtest_new(so, "");
  is_notice(plugtest_notice(host, "logs", QUIET_LOG, &who), QUIET_LOG, "no options: all pass");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

int
main(void)
{
  const struct plugtest_spec any = { .method = "eth_call" };
  const struct plugtest_spec own = { .method = "example_blockWithReceipts",
                                     .params = "[\"latest\"]" };

  test_refuse();
  test_delay();
  test_join();
  test_notice();
  plugtest_generic(example("example1-pass"), "", &any, report);
  plugtest_generic(example("example2-option"), "refuse = ( \"debug_\" );", &any, report);
  plugtest_generic(example("example3-async"), "delay = \"50ms\";", &any, report);
  plugtest_generic(example("example4-subcall"), "", &own, report);
  plugtest_generic(example("example6-notice"), "without = \"data\";", &any, report);
  return done_testing();
}
