/* SPDX-License-Identifier: MIT */
/* Subscriptions passed through: ids, order, loss of the upstream, unsubscribing. */
#include "../lib/tap.h"
#include "../lib/core.h"
#include "push/push.h"

#define SUB "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_subscribe\",\"params\":[\"newHeads\"]}"
#define EVENT(id, n)                                                                        \
  "{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":{\"subscription\":\"" id   \
  "\",\"result\":{\"n\": " n "}}}"

/* The client's id in the last answer. */
static void
client_id(unsigned n, char *out, size_t cap)
{
  const char *at = core.answers[n].text != NULL ? strstr(core.answers[n].text, "\"0x") : NULL;

  snprintf(out, cap, "%.34s", at != NULL ? at + 1 : "none");
}

static void
test_events(void)
{
  char id[64], want[256], text[256];

  core_start(1, 1, EGW_NEED_NONE, true);
  core_send(SUB);
  core_data(0, EVENT("0xu1", "0") "\n", strlen(EVENT("0xu1", "0")) + 1);
  core_turn();
  is_int(core.push_count, 0, "an event before the answer waits");
  core_result(0, "\"0xu1\"");
  client_id(0, id, sizeof(id));
  ok(strlen(id) == 34 && strcmp(id, "0xu1") != 0, "the client gets an id of the gateway's own");
  is_int(core.push_count, 1, "then the early event follows");
  snprintf(want, sizeof(want), EVENT("%s", "0"), id);
  ok(strcmp(core.pushed[0], want) == 0, "under that id, with the node's own bytes");
  core_data(0, EVENT("0xother", "1") "\n", strlen(EVENT("0xother", "1")) + 1);
  core_data(0, EVENT("0xu1", "2") "\n", strlen(EVENT("0xu1", "2")) + 1);
  core_turn();
  is_int(core.push_count, 2, "only events of the subscription come");

  egw_conn_lost(core.conn, "cut");
  core.conn = NULL;
  core_turn();
  ok(strstr(core.sent[1].body, "eth_subscribe") != NULL, "it is made again when the node is lost");
  core_result(1, "\"0xu2\"");
  is_int(core.answer_count, 1, "without a second answer");
  core_data(1, EVENT("0xu2", "3") "\n", strlen(EVENT("0xu2", "3")) + 1);
  core_turn();
  snprintf(want, sizeof(want), EVENT("%s", "3"), id);
  ok(core.push_count == 3 && strcmp(core.pushed[2], want) == 0, "under the same client id");

  snprintf(text, sizeof(text), "{\"id\":2,\"method\":\"eth_unsubscribe\",\"params\":[\"%s\"]}", id);
  core_send(text);
  ok(strstr(core.answers[1].text, "\"result\":true") != NULL, "unsubscribe answers true");
  ok(strstr(core.sent[2].body, "eth_unsubscribe") != NULL &&
         strstr(core.sent[2].body, "0xu2") != NULL, "and ends it at the node");
  core_result(2, "true");
  core_send(text);
  ok(strstr(core.answers[2].text, "\"result\":false") != NULL, "a second time: false");
  is_int(core.session.subscription_count, 0, "none is left");
  core_stop();
}

static void
test_session(void)
{
  core_start(0, 1, EGW_NEED_NONE, true);
  core_send(SUB);
  core_result(0, "\"0xu1\"");
  session_gone(&core.session);
  core_turn();
  ok(core.sent_count == 2 && strstr(core.sent[1].body, "eth_unsubscribe") != NULL,
     "a session that goes ends its subscriptions at the node");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, true);
  core_send(SUB);
  session_gone(&core.session);
  core_turn();
  ok(list_empty(&core.worker.live_calls), "gone before the answer: nothing is left");
  core_result(0, "\"0xu1\"");
  ok(core.sent_count == 2 && strstr(core.sent[1].body, "eth_unsubscribe") != NULL &&
     strstr(core.sent[1].body, "[\"0xu1\"]") != NULL,
     "and what the node has opened after all is ended there");
  core_stop();
}

/* The session goes while its subscription is made again: before that is sent, and after. */
static void
test_session_renewing(bool sent)
{
  unsigned count;

  core_start(0, 1, EGW_NEED_NONE, true);
  core_send(SUB);
  core_result(0, "\"0xu1\"");
  push_conn_lost(core.conn);
  if (sent)
    core_turn();
  is_int(core.sent_count, sent ? 2 : 1, "its subscription is being made again");
  session_gone(&core.session);
  core_turn();
  count = core.sent_count;
  ok(list_empty(&core.worker.live_calls), "the session goes: nothing is left");
  core_advance(60000);
  is_int(core.sent_count, count, "and nothing is tried later");
  core_stop();
}

/* The session goes while its subscription is being made again elsewhere. */
static void
test_gone_while_renewing(void)
{
  core_start(0, 1, EGW_NEED_NONE, true);
  core_send(SUB);
  core_result(0, "\"0xu1\"");
  egw_conn_lost(core.conn, "cut");
  core.conn = NULL;
  core_turn();
  is_int(core.sent_count, 2, "it is being made again");
  session_gone(&core.session);
  core_turn();
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_advance(10000);
  is_int(core.sent_count, 2, "nobody tries again");
  core_result(1, "\"0xu2\"");
  ok(core.sent_count == 3 && strstr(core.sent[2].body, "0xu2") != NULL,
     "what the other one has opened is ended there");
  core_stop();
}

static void
test_limits(void)
{
  unsigned i;

  core_start(0, 1, EGW_NEED_NONE, true);
  for (i = 0; i < 4; i++) {
    char text[64];

    core_send(SUB);
    snprintf(text, sizeof(text), "\"0xu%u\"", i);
    core_result(i, text);
  }
  core_send(SUB);
  ok(strstr(core.answers[4].text, "-32006") != NULL, "one too many is refused");
  is_int(core.sent_count, 4, "and not sent");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, false);
  core_send(SUB);
  ok(strstr(core.answers[0].text, "-32057") != NULL, "no upstream that pushes: an error");
  core_stop();
}

static void
test_batch(void)
{
  core_start(0, 1, EGW_NEED_NONE, true);
  core_send("[" SUB ",{\"id\":2,\"method\":\"eth_chainId\"}]");
  core_result(0, "\"0xu1\"");
  core_data(0, EVENT("0xu1", "1") "\n", strlen(EVENT("0xu1", "1")) + 1);
  core_turn();
  is_int(core.push_count, 0, "events wait for the whole array's answer");
  core_result(1, "\"0x1\"");
  ok(core.answer_count == 1 && core.push_count == 1, "and follow it");
  core_stop();
}

int
main(void)
{
  test_events();
  test_session();
  test_session_renewing(false);
  test_session_renewing(true);
  test_gone_while_renewing();
  test_limits();
  test_batch();
  return done_testing();
}
