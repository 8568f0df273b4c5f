/* SPDX-License-Identifier: MIT */
/* Attempts at upstreams: what is tried again and where, what is judged unusable, health and
 * probes, long replies in pieces, multiplexed connections. */
#include "../lib/tap.h"
#include "../lib/core.h"

#define READ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBalance\",\"params\":[]}"
#define SEND "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_sendRawTransaction\",\"params\":[\"0x1\"]}"
#define UNKNOWN "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"foo_bar\",\"params\":[]}"

static void
is_answer(unsigned n, const char *want, const char *name)
{
  is_bytes(core.answers[n].text == NULL ? "" : core.answers[n].text, core.answers[n].len, want,
           name);
}

static void
has_answer(unsigned n, const char *part, const char *name)
{
  const char *text = core.answers[n].text;

  if (!ok(core.answer_count > n && text != NULL && strstr(text, part) != NULL, "%s", name))
    printf("#   got '%s'\n", text == NULL ? "" : text);
}

static void
test_retries(void)
{
  core_start(0, 2, EGW_NEED_NONE, false);
  core_send(READ);
  core_done(0, EGW_NOT_SENT);
  is_int(core.sent_count, 2, "a read that was not sent goes elsewhere");
  ok(core.sent[0].link != core.sent[1].link, "to the other upstream");
  core_result(1, "5");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":5}", "and succeeds");
  core_stop();

  core_start(0, 2, EGW_NEED_NONE, false);
  core_send(SEND);
  core_done(0, EGW_MAYBE_SENT);
  is_int(core.sent_count, 1, "a transaction that may have been sent is not sent again");
  has_answer(0, "\"code\":-32053", "its outcome is said to be unknown");
  core_send(SEND);
  core_done(1, EGW_NOT_SENT);
  is_int(core.sent_count, 3, "one that was surely not sent is");
  core_result(2, "\"0xhash\"");
  has_answer(1, "0xhash", "and succeeds");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, false);
  core_send(READ);
  core_done(0, EGW_MAYBE_SENT);
  is_int(core.sent_count, 2, "with one upstream a read is tried once more there");
  ok(core.sent[1].fresh, "on a fresh connection");
  core_done(1, EGW_MAYBE_SENT);
  is_int(core.sent_count, 2, "and no third time");
  has_answer(0, "\"code\":-32050", "then there is one error");
  core_stop();

  core_start(0, 2, EGW_NEED_NONE, false);
  core_send(UNKNOWN);
  core_done(0, EGW_MAYBE_SENT);
  is_int(core.sent_count, 1, "an unknown method is never sent twice");
  core_stop();
}

/* An array of `n` calls, all of one turn. */
static void
send_array(unsigned n, const char *method)
{
  static char text[8192];
  size_t len = 0;

  for (unsigned i = 0; i < n; i++)
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "%c{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":[]}",
                            i == 0 ? '[' : ',', i, method);
  snprintf(text + len, sizeof(text) - len, "]");
  core_send(text);
}

static unsigned
upstreams_used(unsigned from, unsigned to)
{
  uint64_t bits = 0;

  for (unsigned i = from; i < to; i++)
    bits |= UINT64_C(1) << core.sent[i].link->upstream->position;
  return (unsigned)__builtin_popcountll(bits);
}

static void
test_runs(void)
{
  unsigned mixed = 0;

  core_start(0, 3, EGW_NEED_NONE, false);
  send_array(24, "eth_getBalance");
  is_int(core.sent_count, 24, "24 cheap calls of one turn");
  for (unsigned i = 0; i < 24; i += 8)
    mixed += upstreams_used(i, i + 8) != 1;
  is_int(mixed, 0, "go out in eights");
  is_int(upstreams_used(0, 24), 3, "to each upstream in turn");
  is_int(core.sent[0].link->in_flight, 8, "and as many to each");
  core_stop();

  core_start(0, 3, EGW_NEED_NONE, false);
  send_array(3, "eth_call");
  is_int(upstreams_used(0, 3), 3, "calls that take a node some time go one by one");
  core_stop();

  core_start(0, 3, EGW_NEED_NONE, false);
  core_send(READ);
  core_send(READ);
  core_send(READ);
  is_int(upstreams_used(0, 3), 3, "and so do cheap ones of different turns");
  core_stop();

  core_start(0, 2, EGW_NEED_NONE, false);
  send_array(2, "eth_getBalance");
  core_done(0, EGW_NOT_SENT);
  is_int(core.sent_count, 3, "one of a run that was not sent");
  ok(core.sent[2].link != core.sent[0].link, "goes elsewhere");
  core_stop();
}

static const char *const rubbish[] = {
  "<html>busy</html>", "null", "[]", "\"str\"", "{}", "[1]", "",
  "{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":1}",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":1,\"error\":{\"code\":1,\"message\":\"m\"}}",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%}",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":1,\"result\":2}",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"resu",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":\"\\x\"}",
  "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":1} trailing",
};

static void
test_rubbish(void)
{
  unsigned i;

  for (i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
    core_start(0, 1, EGW_NEED_NONE, false);
    core_send(READ);
    core_text(0, rubbish[i]);
    is_int(core.answer_count, 0, "rubbish %u is not forwarded", i);
    core_text(1, rubbish[i]);
    has_answer(0, "\"id\":1,\"error\":{\"code\":-32052", "but ends in one error");
    core_stop();
  }
}

static void
test_loose(void)
{
  core_start(0, 1, EGW_NEED_NONE, false);
  core_send(READ);
  core_text(0, "{\"error\":\"text\"}");
  has_answer(0, "\"id\":1,\"error\":{\"code\":-32000,\"message\":\"text\"}",
             "an error that is only a text");
  core_send(READ);
  core_text(1, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"m\"}}");
  has_answer(1, "\"id\":1,\"error\":{\"code\":-32000,\"message\":\"m\"}", "an error with id null");
  core_send(READ);
  core_text(2, "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"error\":{\"code\":3,\"message\":\"execution "
               "reverted\",\"data\":\"0x08c3\"}}");
  is_answer(2, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":3,\"message\":\"execution reverted\""
               ",\"data\":\"0x08c3\"}}", "a revert passes untouched");
  core_send(READ);
  core_text(3, "[{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":7}]");
  has_answer(3, "\"result\":7", "an array of one is the reply in it");
  core_stop();
}

static void
test_health(void)
{
  unsigned i, to_a = 0;

  core_start(0, 2, EGW_NEED_NONE, false);
  core_send(READ);
  core_done(0, EGW_NOT_SENT);
  core_result(1, "1");
  for (i = 0; i < 6; i++) {
    unsigned n = core.sent_count;

    core_send(READ);
    to_a += core.sent[n].link == core.sent[0].link;
    core_result(n, "1");
  }
  is_int(to_a, 0, "an upstream that can't be reached is passed over");
  core_advance(600);
  ok(strstr(core.sent[core.sent_count - 1].body, "eth_chainId") != NULL, "it is probed");
  core_result(core.sent_count - 1, "\"0x1\"");
  for (i = 0; i < 6; i++) {
    unsigned n = core.sent_count;

    core_send(READ);
    to_a += core.sent[n].link == core.sent[0].link;
    core_result(n, "1");
  }
  is_int(to_a, 3, "and used again when the probe is answered");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, false);
  core_send(READ);
  core_done(0, EGW_NOT_SENT);
  core_done(1, EGW_NOT_SENT);
  core_send(READ);
  ok(core.sent_count == 3, "the last upstream is never excluded");
  core_stop();
}

static void
test_busy(void)
{
  struct egw_link *a;
  unsigned i, to_a = 0;

  core_start(0, 2, EGW_NEED_NONE, false);
  core_send(READ);
  a = core.sent[0].link;
  egw_xchg_http(core.sent[0].xchg, 429, 2000);
  core_text(0, "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"error\":{\"code\":-32005,\"message\":\"slow down\"}}");
  is_int(core.sent_count, 2, "a read that meets 429 goes elsewhere");
  core_result(1, "1");
  has_answer(0, "\"result\":1", "and succeeds");
  for (i = 0; i < 6; i++) {
    unsigned n = core.sent_count;

    core_send(READ);
    to_a += core.sent[n].link == a;
    core_result(n, "1");
  }
  is_int(to_a, 0, "the busy one is left alone for the time it named");
  core_stop();

  core_start(0, 1, EGW_NEED_NONE, false);
  core_send(READ);
  egw_xchg_http(core.sent[0].xchg, 429, 0);
  core_text(0, "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"error\":{\"code\":-32005,\"message\":\"slow down\"}}");
  has_answer(0, "\"code\":-32005,\"message\":\"slow down\"", "with no other upstream its error is the answer");
  core_stop();
}

static void
test_stream(void)
{
  char big[3000];
  unsigned long long id;

  core_start(2, 1, EGW_NEED_NONE, false);
  core_send(READ);
  id = core.sent[0].xchg->id;
  memset(big, 'a', sizeof(big));
  snprintf(big, 60, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":\"", id);
  big[strlen(big)] = 'a';
  core_data(0, big, sizeof(big));
  core_turn();
  is_int(core.answer_count, 1, "a long result begins before its end");
  ok(core.stages[0].partial_seen, "stages see its head");
  ok(core.answers[0].open, "the answer is open");
  core_data(0, "end\"}", 5);
  core_turn();
  ok(core.answers[0].open, "complete, but the exchange has not ended");
  core_done(0, EGW_OK);
  ok(!core.answers[0].open && !core.answers[0].aborted, "then it is closed");
  ok(strncmp(core.answers[0].text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"aaa", 36) == 0 &&
         strcmp(core.answers[0].text + core.answers[0].len - 7, "aend\"}") != 0 &&
         strcmp(core.answers[0].text + core.answers[0].len - 6, "aend\"}") == 0,
     "with the client's id and all bytes");
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_send(READ);
  id = core.sent[1].xchg->id;
  memset(big, 'a', sizeof(big));
  snprintf(big, 60, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":\"", id);
  big[strlen(big)] = 'a';
  core_data(1, big, sizeof(big));
  core_turn();
  core_done(1, EGW_MAYBE_SENT);
  ok(core.answers[1].aborted, "a stream that breaks is aborted, never closed as if whole");
  core_send(READ);
  id = core.sent[2].xchg->id;
  snprintf(big, 60, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":\"", id);
  big[strlen(big)] = 'a';
  core_data(2, big, sizeof(big));
  core_turn();
  session_gone(&core.session);
  core_turn();
  ok(core.sent[2].aborted, "a client that leaves ends its stream");
  core_stop();
}

static void
test_multiplex(void)
{
  char two[512];

  core_start(0, 1, EGW_NEED_NONE, true);
  core_send("[" READ "," READ "]");
  is_int(core.sent_count, 2, "two exchanges on one connection");
  snprintf(two, sizeof(two), "{\"id\":%llu,\"result\":\"second\"}{\"id\":\"%llu\",\"result\":\"first\"}",
           (unsigned long long)core.sent[1].xchg->id, (unsigned long long)core.sent[0].xchg->id);
  core_data(0, two, 20);
  core_data(0, two + 20, strlen(two) - 20);
  core_turn();
  is_answer(0, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"first\"},{\"jsonrpc\":\"2.0\",\"id\":1,"
               "\"result\":\"second\"}]", "replies out of order, split, ids as strings");
  core_send(READ);
  core_data(2, "not json\n", 9);
  core_text(2, "{\"id\":%ID%,\"result\":1}");
  has_answer(1, "\"result\":1", "rubbish between lines is skipped");
  core_send(READ);
  snprintf(two, sizeof(two), "{\"id\":%llu,\"result\":\"\\x\"}\n", (unsigned long long)core.sent[3].xchg->id);
  core_data(3, two, strlen(two));
  core_turn();
  is_int(core.sent_count, 5, "a broken reply of known id fails its call only, which is retried");
  core_text(4, "{\"id\":%ID%,\"result\":2}");
  has_answer(2, "\"result\":2", "and the connection goes on");
  core_send(READ);
  egw_conn_lost(core.conn, "reset");
  core.conn = NULL;
  core_turn();
  is_int(core.sent_count, 7, "what was in flight on a lost connection is tried again");
  core_result(6, "3");
  has_answer(3, "\"result\":3", "and succeeds");
  core_stop();
}

int
main(void)
{
  test_retries();
  test_runs();
  test_rubbish();
  test_loose();
  test_health();
  test_busy();
  test_stream();
  test_multiplex();
  return done_testing();
}
