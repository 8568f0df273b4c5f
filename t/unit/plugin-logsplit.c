/* SPDX-License-Identifier: MIT */
/* The middleware `logsplit`: what is cut and how, what comes of the parts, and how it goes
 * wrong. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"

#define LOGS "eth_getLogs"

static char so[1000];

#define is_str(got, want, ...)                                                              \
  do {                                                                                      \
    const char *is_got = (got), *is_want = (want);                                          \
    if (!ok(strcmp(is_got, is_want) == 0, __VA_ARGS__))                                     \
      printf("#   got %s\n#   want %s\n", is_got, is_want);                                 \
  } while (0)

static struct egw_block
block(uint64_t number, int fork)
{
  struct egw_block b = { .number = number };

  memset(b.hash, (int)number + fork, sizeof b.hash);
  return b;
}

/* The head is at `tip`; the hashes of its last 100 blocks are known. */
static void
head_at(struct plugtest *host, uint64_t tip, int fork)
{
  struct egw_head head = { .known = true, .live = true, .settled = true,
                           .tip = block(tip, fork),
                           .has_finalized = true, .finalized = block(tip - 64, 0),
                           .has_safe = true, .safe = block(tip - 32, 0) };
  struct egw_block blocks[100];

  for (unsigned i = 0; i < 100; i++)
    blocks[i] = block(tip - i, fork);
  head.lowest = tip - 99;
  plugtest_head(host, &head, blocks, 100);
}

static struct plugtest *
host_with(const char *options, const struct plugtest_reply *below, size_t count)
{
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  head_at(host, 1000, 0);
  plugtest_script(host, below, count);
  return host;
}

static const struct plugtest_end *
ask_by(struct plugtest *host, const char *method, const char *params)
{
  struct plugtest_call *call =
      plugtest_call(host, &(struct plugtest_spec){ .method = method, .params = params });

  plugtest_advance(host, 1000);
  return plugtest_end(call);
}

static const struct plugtest_end *
ask(struct plugtest *host, const char *params)
{
  return ask_by(host, LOGS, params);
}

static void
finish(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static int64_t
metric(const struct plugtest *host, const char *name)
{
  return plugtest_metric(host, name);
}

#define RANGE(from, to) "{\"fromBlock\":\"" from "\",\"toBlock\":\"" to "\""
#define WHOLE(from, to) "[" RANGE(from, to) "}]"

/* --- cutting beforehand ----------------------------------------------------------------- */

static void
test_join(void)
{
  struct plugtest_reply below[] = { { .result = "[{\"a\": 1},{\"b\":[2 , 3]}]", .delay_ms = 30 },
                                    { .result = "[]", .delay_ms = 20 },
                                    { .result = " [ \n{\"c\":\"]\"} ] ", .delay_ms = 10 },
                                    { .result = "[ ]" } };
  struct plugtest *host = host_with("max_range = 100;", below, 4);
  const struct plugtest_end *end = ask(host, WHOLE("0x32", "0x15d")); /* 50 to 349 */

  is_int(plugtest_reached(host), 4, "300 blocks from 50 on are four parts of at most 100");
  is_str(plugtest_reached_params(host, 0), WHOLE("0x32", "0x63"), "they end where hundreds end");
  is_str(plugtest_reached_params(host, 1), WHOLE("0x64", "0xc7"), "so that others can share them");
  is_str(plugtest_reached_params(host, 3), WHOLE("0x12c", "0x15d"), "up to the end");
  is_str(end->body, "[{\"a\": 1},{\"b\":[2 , 3]},{\"c\":\"]\"}]",
         "the results' bytes, in order, whatever order they came in");
  is_int(metric(host, "split"), 1, "one call was split");
  is_int(metric(host, "parts"), 4, "into four parts");
  finish(host);

  below[0] = (struct plugtest_reply){ .result = "[]" };
  host = host_with("max_range = 100;", below, 1);
  is_str(ask(host, WHOLE("0x0", "0xff"))->body, "[]", "no results at all");
  finish(host);
}

static void
test_pass(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" } };
  struct plugtest *host = host_with("max_range = 100;", below, 1);
  static const char *const same[] = {
    WHOLE("0x1", "0x64"), "[" RANGE("0x1", "0x3e8") ",\"blockHash\":\"0x12\"}]",
    "[{\"blockHash\":\"0x12\"}]", WHOLE("0x3e8", "0x1"), WHOLE("pending", "latest"),
    WHOLE("0x0", "pending"), WHOLE("0x0", "sometime"), "[]", "{}", "[null]", "[[]]",
    "[{\"fromBlock\":0,\"toBlock\":900}]", "[{}]", WHOLE("latest", "latest"),
    "[{\"fromBlock\":\"0x0\",\"fromBlock\":\"0x1\",\"toBlock\":\"0x3e8\"}]",
    WHOLE("0x3e9", "0xffff"),
  };

  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    is_str(ask(host, same[i])->body, "[1]", "%s goes through", same[i]);
    is_int(plugtest_reached(host), i + 1, "as one call");
    is_str(plugtest_reached_params(host, (unsigned)i), same[i], "untouched");
  }
  is_int(metric(host, "split"), 0, "nothing was split");
  finish(host);
}

static void
test_tags(void)
{
  static const struct {
    const char *params, *first, *last;
  } cases[] = {
    /* What is not final is one part, if it is no longer than one may be. */
    { WHOLE("0x320", "latest"), WHOLE("0x320", "0x383"), WHOLE("0x3a9", "0x3e8") },
    { "[{\"fromBlock\":\"0x320\"}]", WHOLE("0x320", "0x383"), WHOLE("0x3a9", "0x3e8") },
    { "[{\"fromBlock\":\"0x320\",\"toBlock\":null}]", WHOLE("0x320", "0x383"),
      WHOLE("0x3a9", "0x3e8") },
    { WHOLE("0x320", "finalized"), WHOLE("0x320", "0x383"), WHOLE("0x384", "0x3a8") },
    { WHOLE("0x320", "safe"), WHOLE("0x320", "0x383"), WHOLE("0x3a9", "0x3c8") },
    { WHOLE("earliest", "0x64"), WHOLE("0x0", "0x63"), WHOLE("0x64", "0x64") },
    { WHOLE("0x320", "0xffffff"), WHOLE("0x320", "0x383"), WHOLE("0x3a9", "0xffffff") },
  };
  struct plugtest_reply below[] = { { .result = "[1]" } };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct plugtest *host = host_with("max_range = 100;", below, 1);

    (void)ask(host, cases[i].params);
    is_str(plugtest_reached_params(host, 0), cases[i].first, "%s: the first part",
           cases[i].params);
    is_str(plugtest_reached_params(host, plugtest_reached(host) - 1), cases[i].last, "the last");
    (void)plugtest_free(host);
  }
}

static void
test_unknown_head(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" } };
  struct plugtest *host = host_with("max_range = 100;", below, 1);
  struct egw_head none = { .known = false };
  struct egw_head old = { .known = true, .live = true, .tip = { .number = 150 } };
  const struct plugtest_end *end;
  struct plugtest_call *call;

  plugtest_head(host, &none, NULL, 0);
  (void)ask(host, WHOLE("0x0", "latest"));
  is_int(plugtest_reached(host), 1, "without a head a tag can't be told: untouched");
  (void)ask(host, WHOLE("0x0", "0xc7"));
  is_int(plugtest_reached(host), 3, "numbers can");
  plugtest_head(host, &old, NULL, 0);
  end = ask(host, WHOLE("0x0", "latest"));
  ok(!end->over, "newer blocks were heard of: it waits for the head to catch up");
  plugtest_advance(host, 2000);
  ok(end->over && plugtest_reached(host) == 5, "not for ever");
  is_str(plugtest_reached_params(host, 4), WHOLE("0x64", "latest"),
         "there may be a newer block: the last part is open");
  call = plugtest_call(host, &(struct plugtest_spec){ .method = LOGS,
                                                      .params = WHOLE("0x0", "latest") });
  plugtest_advance(host, 100);
  old.tip.number = 160;
  old.settled = true;
  plugtest_head(host, &old, NULL, 0);
  plugtest_advance(host, 100);
  ok(plugtest_end(call)->over, "when it has it goes on");
  is_str(plugtest_reached_params(host, 6), WHOLE("0x64", "0xa0"), "up to the new tip");
  finish(host);
}

/* The rest of the filter, and of the params, stays as it is. */
static void
test_rest(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" } };
  struct plugtest *host = host_with("max_range = 100;", below, 1);

  (void)ask(host, "[ {\"address\": [ \"0xA\",\"0xb\"], \"toBlock\":\"0x80\" ,\"topics\":[null , "
                  "[\"0x1\"]],\"fromBlock\":\"0x10\"}, 7 ]");
  is_str(plugtest_reached_params(host, 0),
         "[{\"fromBlock\":\"0x10\",\"toBlock\":\"0x63\",\"address\":[ \"0xA\",\"0xb\"],\"topics\":"
         "[null , [\"0x1\"]]},7]", "address, topics and further params");
  finish(host);
}

static void
test_methods(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" } };
  static const struct {
    const char *method, *params;
    unsigned parts;
  } cases[] = {
    { "trace_filter", WHOLE("0x0", "0xc7"), 2 },
    { "erigon_getLogs", WHOLE("0x0", "0xc7"), 2 },
    { "trace_filter", "[" RANGE("0x0", "0xc7") ",\"after\":5,\"count\":10}]", 1 },
    { "trace_filter", "[" RANGE("0x0", "0xc7") ",\"count\":10}]", 1 },
    { "erigon_getLatestLogs", WHOLE("0x0", "0xc7"), 1 },
    { "eth_newFilter", WHOLE("0x0", "0xc7"), 1 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct plugtest *host = host_with("max_range = 100;", below, 1);

    (void)plugtest_call(host, &(struct plugtest_spec){ .method = cases[i].method,
                                                       .params = cases[i].params });
    plugtest_advance(host, 10);
    is_int(plugtest_reached(host), cases[i].parts, "%s %s", cases[i].method, cases[i].params);
    (void)plugtest_free(host);
  }
}

/* --- limits ----------------------------------------------------------------------------- */

static void
test_parallel(void)
{
  struct plugtest_reply below[] = { { .result = "[1]", .delay_ms = 10 } };
  struct plugtest *host = host_with("max_range = 10; parallel = 3;", below, 1);
  struct plugtest_call *call = plugtest_call(
      host, &(struct plugtest_spec){ .method = LOGS, .params = WHOLE("0x0", "0x4f") });

  plugtest_run(host);
  is_int(plugtest_reached(host), 3, "`parallel` parts at once");
  plugtest_advance(host, 10);
  is_int(plugtest_reached(host), 6, "the next ones follow");
  plugtest_advance(host, 20);
  is_str(plugtest_end(call)->body, "[1,1,1,1,1,1,1,1]", "until all are there");
  finish(host);
}

static void
test_caps(void)
{
  struct plugtest_reply below[] = { { .result = "[1234567890]" } };
  struct plugtest_reply narrow[] = { { .is_error = true, .code = -32000,
                                       .message = "range too large, max is 1 blocks" } };
  struct plugtest *host = host_with("max_range = 10; max_parts = 5;", below, 1);
  const struct plugtest_end *end = ask(host, WHOLE("0x0", "0x31"));

  ok(!end->is_error, "as many parts as may be");
  end = ask(host, WHOLE("0x0", "0x32"));
  ok(end->is_error && end->code == -32012 && strstr(end->message, "max_parts") != NULL &&
         strstr(end->message, "fewer blocks") != NULL, "one more is refused: %s", end->message);
  is_int(plugtest_reached(host), 5, "before anything is sent");
  is_int(metric(host, "refused"), 1, "counted");
  plugtest_script(host, narrow, 1);
  end = ask(host, WHOLE("0x0", "0x9"));
  ok(end->is_error && end->code == -32012, "an upstream that wants more parts than may be");
  finish(host);

  host = host_with("max_range = 10; max_result = \"25\";", below, 1);
  ok(!ask(host, WHOLE("0x0", "0x13"))->is_error, "as large a result as may be");
  end = ask(host, WHOLE("0x0", "0x31"));
  ok(end->is_error && end->code == -32012 && strstr(end->message, "max_result") != NULL,
     "a larger one is refused: %s", end->message);
  finish(host);
}

/* --- errors that say it is too much ----------------------------------------------------- */

#define ERROR(c, m) { .is_error = true, .code = (c), .message = (m) }

static void
test_bisect(void)
{
  struct plugtest_reply below[] = { ERROR(-32000, "too many results"),
                                    ERROR(-32000, "too many results"), { .result = "[2]" },
                                    { .result = "[1,1]" }, { .result = "[]" } };
  struct plugtest *host = host_with("parallel = 1;", below, 3);
  const struct plugtest_end *end;

  /* Whole: too many. First half: too many. Its halves: [2] each; then the second half. */
  end = ask(host, WHOLE("0x0", "0x7"));
  is_str(plugtest_reached_params(host, 1), WHOLE("0x0", "0x3"), "a half");
  is_str(plugtest_reached_params(host, 2), WHOLE("0x0", "0x1"), "and a half of that");
  is_str(plugtest_reached_params(host, 3), WHOLE("0x2", "0x3"), "the other part of it");
  is_str(plugtest_reached_params(host, 4), WHOLE("0x4", "0x7"), "and of the whole");
  is_str(end->body, "[2,2,2]", "one answer");
  is_int(metric(host, "cut"), 1, "one part was cut again");
  finish(host);

  host = host_with("parallel = 1;", below, 1);
  end = ask(host, WHOLE("0x0", "0x7"));
  ok(end->is_error && end->code == -32000 && strcmp(end->message, "too many results") == 0,
     "what can't be cut further ends in the node's error");
  is_int(plugtest_reached(host), 4, "of 8, 4, 2, 1 blocks");
  finish(host);
}

static void
test_hints(void)
{
  struct plugtest_reply infura[] = {
    ERROR(-32005, "query returned more than 10000 results. Try with this block range [0x0, 0x31]."),
    { .result = "[1]" }
  };
  struct plugtest_reply reth[] = {
    ERROR(-32602, "query exceeds max results 20000, retry with the range 0-24"),
    { .result = "[1]" }
  };
  struct plugtest *host = host_with("", infura, 2);

  is_str(ask(host, WHOLE("0x0", "0xc7"))->body, "[1,1,1,1]", "a proposed range is used");
  is_str(plugtest_reached_params(host, 1), WHOLE("0x0", "0x31"), "as proposed");
  is_str(plugtest_reached_params(host, 4), WHOLE("0x96", "0xc7"), "for the rest as well");
  is_int(metric(host, "learned"), 0, "a number of results is no limit of blocks");
  finish(host);

  host = host_with("", reth, 2);
  is_str(ask(host, WHOLE("0x0", "0x31"))->body, "[1,1]", "in decimal too");
  finish(host);
}

static void
test_learning(void)
{
  struct plugtest_reply below[] = { ERROR(-32000, "exceed maximum block range: 50"),
                                    { .result = "[1]" } };
  struct egw_upstream_info two[] = { { .name = "node", .up = true },
                                     { .name = "other", .up = true, .tier = 1 } };
  struct plugtest *host = host_with("remember = \"1m\";", below, 2);

  plugtest_upstreams(host, two, 2);
  is_str(ask(host, WHOLE("0x0", "0xc7"))->body, "[1,1,1,1]", "a limit that is named is used");
  is_int(metric(host, "learned"), 1, "and learned");
  (void)ask(host, WHOLE("0x0", "0xc7"));
  is_int(plugtest_reached(host), 5 + 4, "the next call is cut beforehand");
  two[0].up = false;
  plugtest_upstreams(host, two, 2);
  (void)ask(host, WHOLE("0x0", "0xc7"));
  is_int(plugtest_reached(host), 5 + 4 + 1, "not for another upstream");
  two[0].up = true;
  plugtest_upstreams(host, two, 2);
  plugtest_advance(host, 60000);
  (void)ask(host, WHOLE("0x0", "0xc7"));
  is_int(plugtest_reached(host), 5 + 4 + 1 + 1, "nor when it is `remember` old");
  finish(host);
}

#define LOG(b, i, x) "{\"blockNumber\":\"" b "\",\"logIndex\":\"" i "\",\"x\":" x "}"

static void
test_filter(void)
{
  struct plugtest_reply below[] = {
    ERROR(-32000, "too many results"), ERROR(-32000, "too many results"),
    { .result = "[" LOG("0x5", "0x2", "\"a\"") "," LOG("0x5", "0x9", "\"a\"") "]" },
    { .result = "[" LOG("0x5", "0xb", "\"b\"") "]" },
    { .result = "[" LOG("0x5", "0x1", "\"c\"") "," LOG("0x5", "0x9", "\"a\"") ","
                LOG("0x5", "0xa", "\"c\"") "]" },
  };
  struct plugtest_reply topics[] = { ERROR(-32000, "too many results"), { .result = "[]" } };
  struct plugtest_reply many[] = { ERROR(-32602, "specify less number of addresses"),
                                   { .result = "[" LOG("0x7", "0x0", "1") "]" },
                                   { .result = "[" LOG("0x6", "0x3", "2") "]" } };
  struct plugtest *host = host_with("parallel = 1;", below, 5);
  const struct plugtest_end *end;

  end = ask(host, "[" RANGE("0x5", "0x5") ",\"address\":[\"0xa\",\"0xb\",\"0xc\",\"0xa\"]}]");
  is_str(plugtest_reached_params(host, 2), "[" RANGE("0x5", "0x5") ",\"address\":[\"0xa\"]}]",
         "a single block is cut by addresses");
  is_str(plugtest_reached_params(host, 4),
         "[" RANGE("0x5", "0x5") ",\"address\":[\"0xc\",\"0xa\"]}]", "down to one");
  is_str(end->body, "[" LOG("0x5", "0x1", "\"c\"") "," LOG("0x5", "0x2", "\"a\"") ","
                        LOG("0x5", "0x9", "\"a\"") "," LOG("0x5", "0xa", "\"c\"") ","
                        LOG("0x5", "0xb", "\"b\"") "]",
         "the logs are in the block's order, each once");
  finish(host);

  host = host_with("", topics, 2);
  (void)ask(host, "[" RANGE("0x5", "0x5") ",\"address\":\"0xa\",\"topics\":[[\"0x1\",\"0x2\","
                                          "\"0x3\"],null,[\"0x4\",\"0x5\"]]}]");
  is_str(plugtest_reached_params(host, 1),
         "[" RANGE("0x5", "0x5") ",\"address\":\"0xa\",\"topics\":[[\"0x1\"],null,[\"0x4\","
                                 "\"0x5\"]]}]", "then by alternatives of the first topic");
  is_str(plugtest_reached_params(host, 2),
         "[" RANGE("0x5", "0x5") ",\"address\":\"0xa\",\"topics\":[[\"0x2\",\"0x3\"],null,"
                                 "[\"0x4\",\"0x5\"]]}]", "all of them");
  finish(host);

  host = host_with("", many, 3);
  end = ask(host, "[" RANGE("0x5", "0x9") ",\"address\":[\"0xa\",\"0xb\"]}]");
  is_str(end->body, "[" LOG("0x6", "0x3", "2") "," LOG("0x7", "0x0", "1") "]",
         "too many addresses: they are cut, not the range; the logs are in order");
  finish(host);

  host = host_with("", topics, 1);
  end = ask(host, "[" RANGE("0x5", "0x5") ",\"address\":[\"0xa\"],\"topics\":[[\"0x1\"]]}]");
  ok(end->is_error && plugtest_reached(host) == 1, "what can't be cut gives the node's error");
  finish(host);
}

/* --- failures --------------------------------------------------------------------------- */

static void
test_failures(void)
{
  struct plugtest_reply once[] = { { .result = "[1]" }, { .outcome = EGW_MAYBE_SENT },
                                   { .result = "[2]" } };
  struct plugtest_reply always[] = { { .outcome = EGW_NOT_SENT } };
  struct plugtest_reply error[] = { { .result = "[1]" },
                                    { .is_error = true, .code = -32000, .message = "pruned",
                                      .data = "{\"x\":1}", .delay_ms = 5 },
                                    { .never = true } };
  struct plugtest_reply null[] = { { .result = "null" } };
  struct plugtest *host = host_with("max_range = 100; parallel = 1;", once, 3);
  const struct plugtest_end *end = ask(host, WHOLE("0x0", "0x12b"));

  is_str(end->body, "[1,2,2]", "a part whose upstream failed is asked for again");
  is_int(plugtest_reached(host), 4, "only that one");
  is_int(metric(host, "retried"), 1, "counted");
  finish(host);

  host = host_with("max_range = 100; parallel = 1; retries = 3;", always, 1);
  end = ask(host, WHOLE("0x0", "0x12b"));
  ok(end->is_error && end->code == -32603, "when it fails again and again the call does");
  is_int(plugtest_reached(host), 4, "after `retries`");
  finish(host);

  host = host_with("max_range = 100;", error, 3);
  end = ask(host, WHOLE("0x0", "0x12b"));
  is_str(end->body, "{\"code\":-32000,\"message\":\"pruned\",\"data\":{\"x\":1}}",
         "an error of a part is the client's, as the node gave it");
  is_int(end->took_ms, 5, "at once: the other parts are given up");
  is_int(plugtest_live(host), 0, "nothing is left in flight");
  finish(host);

  host = host_with("max_range = 100;", null, 1);
  end = ask(host, WHOLE("0x0", "0x12b"));
  ok(end->is_error && end->code == -32052, "what is no array is no result");
  finish(host);
}

static void
test_deadline(void)
{
  struct plugtest_reply never[] = { { .never = true } };
  struct plugtest *host = host_with("max_range = 100;", never, 1);
  struct plugtest_call *call = plugtest_call(
      host, &(struct plugtest_spec){ .method = LOGS, .params = WHOLE("0x0", "0x12b"),
                                     .timeout_ms = 500 });

  plugtest_advance(host, 500);
  ok(plugtest_end(call)->timed_out, "the deadline ends the call");
  is_int(plugtest_live(host), 0, "and all its parts");
  call = plugtest_call(host, &(struct plugtest_spec){ .method = LOGS,
                                                      .params = WHOLE("0x0", "0x12b") });
  plugtest_run(host);
  plugtest_cancel(call);
  plugtest_run(host);
  is_int(plugtest_live(host), 0, "as a client that leaves does");
  finish(host);
}

/* --- reorgs ----------------------------------------------------------------------------- */

/* 31 blocks that are not final, in parts of 30: two parts, which may differ. Logs would be had by
 * the blocks' hashes. */
#define TRACES "trace_filter"
#define LOOSE "max_range = 30;"

static void
test_reorg(void)
{
  struct plugtest_reply below[] = { { .result = "[1]", .delay_ms = 10 } };
  struct plugtest *host = host_with(LOOSE, below, 1);
  struct plugtest_spec spec = { .method = TRACES, .params = WHOLE("0x3ca", "latest") };
  struct plugtest_call *call = plugtest_call(host, &spec);

  plugtest_advance(host, 5);
  head_at(host, 1001, 0);
  plugtest_advance(host, 10);
  ok(plugtest_end(call)->over && !plugtest_end(call)->is_error, "a new head is no reorg");
  is_int(plugtest_reached(host), 2, "two parts");

  spec.params = WHOLE("0x3ca", "0x3e8");
  call = plugtest_call(host, &spec);
  plugtest_advance(host, 5);
  head_at(host, 1001, 9);
  plugtest_advance(host, 5);
  ok(!plugtest_end(call)->over, "the last block has changed meanwhile");
  is_int(metric(host, "redone"), 1, "it is done anew");
  plugtest_advance(host, 10);
  is_str(plugtest_end(call)->body, "[1,1]", "once more, all of it");
  is_int(plugtest_reached(host), 6, "two parts each time");

  call = plugtest_call(host, &spec);
  for (int i = 0; i < 4; i++) {
    plugtest_advance(host, 5);
    head_at(host, 1001, 17 + 16 * i);
    plugtest_advance(host, 5);
  }
  ok(plugtest_end(call)->is_error && plugtest_end(call)->code == -32000,
     "when it changes again and again: an error");

  call = plugtest_call(host, &spec);
  plugtest_advance(host, 5);
  head_at(host, 999, 65);
  plugtest_advance(host, 5);
  ok(!plugtest_end(call)->over && metric(host, "redone") == 5, "a chain that became shorter");
  plugtest_advance(host, 10);
  ok(plugtest_end(call)->over, "it ends");
  finish(host);

  host = host_with("max_range = 100;", below, 1);
  spec.params = WHOLE("0x320", "0x3e8");
  call = plugtest_call(host, &spec);
  plugtest_advance(host, 5);
  head_at(host, 1001, 9);
  plugtest_advance(host, 5);
  ok(plugtest_end(call)->over && metric(host, "redone") == 0,
     "it does not matter when all that is not final is one part");
  finish(host);
}

#define HASH(byte) byte byte byte byte byte byte byte byte
#define BLOCK_LOG(byte) "[{\"blockNumber\":\"0x3d0\",\"blockHash\":\"0x" HASH(byte) HASH(byte) \
  HASH(byte) HASH(byte) "\"}]"

static void
test_branches(void)
{
  struct plugtest_reply below[] = { { .result = BLOCK_LOG("d1") }, { .result = "[]" },
                                    { .result = BLOCK_LOG("d0") }, { .result = "[]" } };
  struct egw_upstream_info two[] = { { .name = "node", .up = true, .has_head = true, .head = 1000 },
                                     { .name = "late", .up = true, .has_head = true, .head = 999 } };
  struct plugtest *host = host_with(LOOSE, below, 4);
  const struct plugtest_end *end;

  plugtest_upstreams(host, two, 2);
  end = ask_by(host, TRACES, WHOLE("0x3ca", "0x3e8"));
  is_str(end->body, BLOCK_LOG("d0"), "logs of a block that is not canonical are asked for again");
  is_int(end->took_ms, 50, "a little later");
  is_int((long long)plugtest_reached_route(host, 0).avoid, 2,
         "nodes that have not the last block are avoided");
  plugtest_script(host, below, 1);
  end = ask_by(host, TRACES, WHOLE("0x3ca", "0x3e8"));
  ok(end->is_error && end->code == -32000, "when they stay an error");
  (void)ask(host, WHOLE("0x64", "0x9f"));
  is_int((long long)plugtest_reached_route(host, plugtest_reached(host) - 1).avoid, 0,
         "what is final any node may answer");
  finish(host);
}

/* The block's hash as head_at() has it, for a filter on one address. */
#define BY_HASH(byte) "[{\"blockHash\":\"0x" HASH(byte) HASH(byte) HASH(byte) HASH(byte) \
  "\",\"address\":\"0xa\"}]"

static void
test_by_hash(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" }, { .result = "[2]" }, { .result = "[]" },
                                    { .result = "[3]" } };
  struct plugtest_reply gone[] = { { .result = "[1]" }, ERROR(-32000, "unknown block"),
                                   { .result = "[2]" } };
  struct plugtest_reply narrow[] = { ERROR(-32000, "too many results"), { .result = "[5]" } };
  struct plugtest *host = host_with("max_range = 3; parallel = 1;", below, 4);
  const struct plugtest_end *end;

  end = ask(host, "[" RANGE("0x3e5", "latest") ",\"address\":\"0xa\"}]");
  is_str(plugtest_reached_params(host, 0), BY_HASH("e5"),
         "blocks that are not final, more than one part may have: each by its hash");
  is_str(plugtest_reached_params(host, 3), BY_HASH("e8"), "up to the last");
  is_str(end->body, "[1,2,3]", "in order");
  finish(host);

  host = host_with("max_range = 3; parallel = 1;", gone, 3);
  end = ask(host, WHOLE("0x3e5", "0x3e8"));
  is_str(end->body, "[2,2,2,2]", "a node that does not know one is asked for all again");
  is_int(end->took_ms, 50, "a little later");
  plugtest_script(host, gone + 1, 1);
  end = ask(host, WHOLE("0x3e5", "0x3e8"));
  is_str(end->message, "unknown block", "when it stays so that is the client's error");
  finish(host);

  host = host_with("", narrow, 2);
  end = ask(host, WHOLE("0x3e5", "0x3e8"));
  is_str(end->body, "[5,5,5,5]", "so when a node complains");
  is_int(plugtest_reached(host), 5, "one by one");
  finish(host);

  host = host_with("max_range = 10;", below, 1);
  (void)ask(host, "[" RANGE("0x39c", "0x3e8") ",\"blockHash\":null}]");
  is_str(plugtest_reached_params(host, 0), WHOLE("0x39c", "0x3a1"),
         "before them, what is final is cut as ever");
  is_int(plugtest_reached(host), 2 + 64, "and then they");
  finish(host);
}

/* The client has heard of a block that the head gets to know only while the node is asked: what is
 * above the tip as the filter was read is asked for all the same. */
static void
test_above_tip(void)
{
  struct plugtest_reply below[] = { { .result = NULL }, { .result = "[1]" } };
  struct egw_head before = { .known = true, .live = true, .tip = block(1000, 0),
                             .has_finalized = true, .finalized = block(936, 0) };
  struct plugtest *host;
  struct plugtest_call *call;
  unsigned last;

  below[0] = (struct plugtest_reply)ERROR(-32000, "too many results");
  below[0].delay_ms = 20;
  host = host_with("parallel = 1;", below, 2);
  plugtest_head(host, &before, NULL, 0);
  call = plugtest_call(host, &(struct plugtest_spec){ .method = LOGS,
                                                      .params = WHOLE("0x3e5", "0x3e9") });
  plugtest_advance(host, 10);
  head_at(host, 1001, 0);
  plugtest_advance(host, 1000);
  ok(plugtest_end(call)->over && !plugtest_end(call)->is_error, "answered in parts");
  last = plugtest_reached(host) - 1;
  ok(strstr(plugtest_reached_params(host, last), "\"toBlock\":\"0x3e9\"") != NULL,
     "up to the block that the client named: %s", plugtest_reached_params(host, last));
  finish(host);
}

static void
test_story(void)
{
  struct plugtest_reply below[] = { { .result = "[1]" } };
  struct plugtest *host = host_with("max_range = 100;", below, 1);
  struct plugtest_call *call = plugtest_call(
      host, &(struct plugtest_spec){ .method = LOGS, .params = WHOLE("0x0", "0x12b"),
                                     .explain = true });

  plugtest_advance(host, 10);
  ok(strstr(plugtest_end(call)->story, "300 blocks in 3 parts") != NULL, "the story tells: %s",
     plugtest_end(call)->story);
  finish(host);
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
  struct plugtest_spec spec = { .method = LOGS, .params = WHOLE("0x0", "0x12b") };

  snprintf(so, sizeof so, "%s/plugins/middleware/logsplit/logsplit.so",
           build == NULL ? "." : build);
  test_join();
  test_pass();
  test_tags();
  test_unknown_head();
  test_rest();
  test_methods();
  test_parallel();
  test_caps();
  test_bisect();
  test_hints();
  test_learning();
  test_filter();
  test_failures();
  test_deadline();
  test_reorg();
  test_branches();
  test_by_hash();
  test_above_tip();
  test_story();
  plugtest_generic(so, "max_range = 100;", &spec, report);
  return done_testing();
}
