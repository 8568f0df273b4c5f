/* SPDX-License-Identifier: MIT */
/* Client messages through the core: ids, batches, notifications, unusable ones, limits. Every call
 * is answered by the fake node with its own params, so that mix-ups show. */
#include "../lib/tap.h"
#include "../lib/core.h"

static unsigned answered;

/* Answers every exchange that waits with the params it was sent, the last one first. */
static void
answer_all(void)
{
  unsigned i;

  for (i = core.sent_count; i-- > answered;) {
    const char *params = strstr(core.sent[i].body, "\"params\":");
    char result[512];

    if (core.sent[i].xchg == NULL || params == NULL)
      continue;
    snprintf(result, sizeof(result), "%.*s", (int)strlen(params) - 10, params + 9);
    core_result(i, result);
  }
  answered = core.sent_count;
}

struct row {
  const char *name, *send, *want;
  unsigned sent;
};

#define CALL(id, n) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"eth_x\",\"params\":[" n "]}"
#define NOTE(n) "{\"jsonrpc\":\"2.0\",\"method\":\"eth_x\",\"params\":[" n "]}"
#define GOOD(id, n) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":[" n "]}"
#define BAD(id, code, text)                                                                 \
  "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" text "\"}}"
#define INVALID(id) BAD(id, "-32600", "Invalid request")
#define PARSE BAD("null", "-32700", "Parse error")

static const struct row rows[] = {
  { "id 0", CALL("0", "1"), GOOD("0", "1"), 1 },
  { "id 2^64", CALL("18446744073709551616", "1"), GOOD("18446744073709551616", "1"), 1 },
  { "id 1.5", CALL("1.5", "1"), GOOD("1.5", "1"), 1 },
  { "id -0", CALL("-0", "1"), GOOD("-0", "1"), 1 },
  { "id with escapes", CALL("\"\\u0041\\n\"", "1"), GOOD("\"\\u0041\\n\"", "1"), 1 },
  { "id empty string", CALL("\"\"", "1"), GOOD("\"\"", "1"), 1 },
  { "id null", CALL("null", "1"), GOOD("null", "1"), 1 },
  { "no params", "{\"id\":1,\"method\":\"eth_x\"}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", 1 },
  { "params null", "{\"id\":1,\"method\":\"eth_x\",\"params\":null}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}", 1 },
  { "batch in order", "[" CALL("1", "1") "," CALL("1", "2") "," CALL("\"1\"", "3") "]",
    "[" GOOD("1", "1") "," GOOD("1", "2") "," GOOD("\"1\"", "3") "]", 3 },
  { "batch of one", "[" CALL("1", "1") "]", "[" GOOD("1", "1") "]", 1 },
  { "notification in a batch", "[" NOTE("9") "," CALL("1", "1") "," NOTE("8") "]",
    "[" GOOD("1", "1") "]", 3 },
  { "only notifications", "[" NOTE("9") "," NOTE("8") "]", "", 2 },
  { "a notification", NOTE("9"), "", 1 },
  { "empty array", "[ ]", INVALID("null"), 0 },
  { "array in an array", "[[]]", "[" INVALID("null") "]", 0 },
  { "bad members", "[1,\"x\",{},[],true," CALL("9", "5") ",null]",
    "[" INVALID("null") "," INVALID("null") "," INVALID("null") "," INVALID("null") ","
    INVALID("null") "," GOOD("9", "5") "," INVALID("null") "]", 1 },
  { "method not a string", "{\"id\":7,\"method\":42}", INVALID("7"), 0 },
  { "no method", "{\"id\":7}", INVALID("7"), 0 },
  { "params a number", "{\"id\":7,\"method\":\"eth_x\",\"params\":5}",
    BAD("7", "-32602", "Invalid params"), 0 },
  { "id an object", "{\"id\":{},\"method\":\"eth_x\"}", INVALID("null"), 0 },
  { "duplicate method", "{\"id\":1,\"method\":\"eth_x\",\"m\\u0065thod\":\"eth_y\"}", INVALID("1"), 0 },
  { "not JSON", "{", PARSE, 0 },
  { "trailing comma", "[" CALL("1", "1") ",]", PARSE, 0 },
  { "two values", CALL("1", "1") CALL("2", "1"), PARSE, 0 },
  { "white space behind", CALL("1", "1") " \r\n\t", GOOD("1", "1"), 1 },
  { "byte order mark", "\xef\xbb\xbf" CALL("1", "1"), GOOD("1", "1"), 1 },
  { "bad UTF-8", "{\"id\":1,\"method\":\"eth_x\",\"params\":[\"\xed\xa0\x80\"]}", PARSE, 0 },
  { "empty", "", PARSE, 0 },
};

static void
test_rows(void)
{
  unsigned i;

  for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    core_start(0, 1, EGW_NEED_NONE, false);
    answered = 0;
    core_send(rows[i].send);
    is_int(core.sent_count, rows[i].sent, "%s: exchanges", rows[i].name);
    answer_all();
    is_int(core.answer_count, 1, "%s: answered once", rows[i].name);
    is_bytes(core.answers[0].text == NULL ? "" : core.answers[0].text, core.answers[0].len,
             rows[i].want, rows[i].name);
    core_stop();
  }
}

static void
test_limits(void)
{
  static char text[200000];
  unsigned i;

  core_start(0, 1, EGW_NEED_NONE, false);
  answered = 0;
  core.conf_listener.limits.max_batch_items = 10;
  snprintf(text, sizeof(text), "[");
  for (i = 0; i < 11; i++)
    snprintf(text + strlen(text), 200, "%s" CALL("1", "1"), i == 0 ? "" : ",");
  snprintf(text + strlen(text), 10, "]");
  core_send(text);
  is_int(core.sent_count, 0, "no member of a batch over the limit is executed");
  ok(strstr(core.answers[0].text, "-32010") != NULL, "one error for it");
  core.conf_listener.limits.max_batch_items = 1000;
  core.conf_listener.limits.max_batch_reply = 100;
  core_send(text);
  answer_all();
  ok(strstr(core.answers[1].text, "-32011") != NULL, "members beyond the bytes are errors");
  is_int(core.session.calls_in_flight, 0, "nothing is in flight");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, false);
  answered = 0;
  snprintf(text, sizeof(text), "[");
  for (i = 0; i < 1000; i++)
    snprintf(text + strlen(text), 200, "%s" CALL("%u", "%u"), i == 0 ? "" : ",", i, i);
  snprintf(text + strlen(text), 10, "]");
  core_send(text);
  is_int(core.sent_count, 1000, "a thousand members run at once");
  answer_all();
  ok(core.answer_count == 1 && strstr(core.answers[0].text, GOOD("999", "999") "]") != NULL,
     "and are joined in order");
  core_stop();
}

static void
test_cancel(void)
{
  struct request *request;

  core_start(0, 1, EGW_NEED_NONE, false);
  request = core_send("[" CALL("1", "1") "," CALL("2", "2") "]");
  core_result(0, "1");
  request_cancel(request);
  core_turn();
  ok(core.sent[1].aborted, "a request that is cancelled gives up what is under way");
  is_int(core.answer_count, 0, "and is not answered");
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_stop();
}

static void
test_waiting(void)
{
  struct request *request;

  core_start(0, 1, EGW_NEED_NONE, false);
  answered = 0;
  core.conf_listener.limits.max_in_flight = 2;
  core_send("[" CALL("1", "1") "," CALL("2", "2") "," CALL("3", "3") "]");
  core_send(CALL("4", "4"));
  is_int(core.sent_count, 2, "no more calls of a session run than its limit");
  core_result(0, "1");
  is_int(core.sent_count, 3, "the next one starts when one has ended");
  core.session.queue_bytes = 1 << 20;
  core_result(1, "2");
  is_int(core.sent_count, 3, "none starts while too much output waits");
  core.session.queue_bytes = 0;
  session_sent(&core.session);
  core_turn();
  is_int(core.sent_count, 4, "but when it has drained");
  core_result(2, "3");
  core_result(3, "4");
  is_int(core.answer_count, 2, "all are answered");
  is_int(core.session.calls_running + core.session.calls_in_flight +
             core.session.calls_waiting_count + core.session.request_bytes, 0, "nothing is counted");

  core_send(CALL("1", "1"));
  core_send(CALL("1", "1"));
  request = core_send(CALL("5", "5"));
  core_send(CALL("6", "6"));
  request_cancel(request);
  core_turn();
  is_int(core.session.calls_waiting_count, 1, "a call that waits can be given up");
  core_advance(1500);
  is_int(core.answer_count, 5, "and one whose time is over is answered");
  is_int(core.session.calls_running + core.session.calls_in_flight +
             core.session.calls_waiting_count + core.session.request_bytes, 0, "nothing is counted");
  core_send(CALL("1", "1"));
  core_send(CALL("1", "1"));
  core_send("[" CALL("7", "7") "," CALL("8", "8") "]");
  session_gone(&core.session);
  core_turn();
  ok(list_empty(&core.worker.live_calls), "a session that goes leaves no call behind");
  core_stop();
}

/* What is handed over and sent is counted in the session and in the gateway's budget. */
static void
test_queue_count(void)
{
  core_start(0, 1, EGW_NEED_NONE, false);
  session_queue(&core.session, 100, 0);
  ok(core.session.queue_bytes == 100 && core.gateway.budget.used == 100, "bytes handed over");
  session_queue(&core.session, 0, 250);
  ok(core.session.queue_bytes == 0 && core.gateway.budget.used == 0,
     "more were sent than were told of: nothing goes below zero");
  session_queue(&core.session, 70, 0);
  session_queue(&core.session, 30, 70);
  ok(core.session.queue_bytes == 30 && core.gateway.budget.used == 30, "counted anew");
  session_queue(&core.session, 0, 30);
  core_stop();
}

int
main(void)
{
  test_queue_count();
  test_rows();
  test_limits();
  test_cancel();
  test_waiting();
  return done_testing();
}
