/* SPDX-License-Identifier: MIT */
/* The middleware `failover` and raw transactions: never lost, at most one copy for each
 * upstream. */
#include "failover-kit.h"

#define SEND "eth_sendRawTransaction"
#define ASK "eth_getTransactionByHash"
#define RAW "[\"0x02c0\"]"
#define HASH "\"0xcace66b6a82a5dc496a5b21a4032eb58baf223ea6f142a01593a5d105d5ee150\""
#define FOUND "{\"hash\":" HASH "}"
#define ERROR(text) .is_error = true, .code = -32000, .message = text

/* Copies that reached upstream `index`. */
static unsigned
copies(const struct plugtest *host, unsigned index)
{
  unsigned i, n = 0;

  for (i = 0; i < plugtest_reached(host); i++)
    n += strcmp(plugtest_reached_method(host, i), SEND) == 0 && only(host, i) == UINT64_C(1)
                                                                                     << index;
  return n;
}

static unsigned
questions(const struct plugtest *host)
{
  unsigned i, n = 0;

  for (i = 0; i < plugtest_reached(host); i++)
    n += strcmp(plugtest_reached_method(host, i), ASK) == 0;
  return n;
}

static bool
failed(const struct plugtest_call *c, int64_t code, const char *message)
{
  return plugtest_end(c)->over && plugtest_end(c)->is_error && plugtest_end(c)->code == code &&
         strcmp(plugtest_end(c)->message, message) == 0;
}

static void
test_accepted(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .result = HASH });
  c = start(host, SEND, RAW);
  ok(answered(c, HASH) && plugtest_reached(host) == 1, "accepted: the hash, one copy");
  ok(plugtest_reached_route(host, 0).once, "the core does not repeat it");
  SCRIPT(host, { ERROR("already known") });
  c = start(host, SEND, RAW);
  ok(answered(c, HASH), "already known is success");
  SCRIPT(host, { .result = "\"0x1234\"" });
  c = start(host, SEND, "[\"0x1\"]");
  ok(answered(c, "\"0x1234\""), "what is not hex passes untouched");
  c = start(host, SEND, "[\"0x\"]");
  ok(answered(c, "\"0x1234\""), "and what is empty");
  c = start(host, SEND, "[\"0x02c0\",{}]");
  ok(answered(c, "\"0x1234\""), "and what has more params");
  end(host);
}

static void
test_final(void)
{
  static const char *const texts[] = { "insufficient funds for gas * price + value",
                                       "replacement transaction underpriced",
                                       "intrinsic gas too low", "a new word for no" };
  size_t i;

  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct plugtest *host = host_with("", 2);
    struct plugtest_call *c;

    SCRIPT(host, { ERROR(texts[i]) });
    c = start(host, SEND, RAW);
    ok(failed(c, -32000, texts[i]) && plugtest_reached(host) == 1, "final: %s", texts[i]);
    end(host);
  }
}

/* The first one takes it and breaks the connection. */
static void
test_broken(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .method = ASK, .result = "null", .delay_ms = 20 },
         { .method = SEND, .outcome = EGW_MAYBE_SENT });
  plugtest_call(host,
                &(struct plugtest_spec){ .method = SEND, .params = RAW, .timeout_ms = 2000 });
  plugtest_run(host);
  is_int(copies(host, 0), 1, "a copy for one");
  is_int(copies(host, 1), 1, "and one for the other");
  is_int(questions(host), 2, "both are asked for the hash");
  plugtest_advance(host, 2000);
  ok(copies(host, 0) == 1 && copies(host, 1) == 1, "never a second copy");
  is_int(plugtest_metric(host, "tx_unknown"), 1, "the outcome is not known");
  end(host);

  host = host_with("", 2);
  SCRIPT(host, { .method = SEND, .outcome = EGW_MAYBE_SENT, .delay_ms = 5 },
         { .method = ASK, .result = "null", .delay_ms = 20 });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 4);
  SCRIPT(host, { .method = SEND, ERROR("already known"), .delay_ms = 5 },
         { .method = ASK, .result = "null", .delay_ms = 50 });
  plugtest_advance(host, 6);
  ok(answered(c, HASH), "the other one knows it already: success");
  plugtest_advance(host, 60);
  end(host);

  host = host_with("", 2);
  SCRIPT(host, { .method = ASK, .result = FOUND, .delay_ms = 5 },
         { .method = SEND, .outcome = EGW_TIMED_OUT, .delay_ms = 5 });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 10);
  ok(answered(c, HASH), "an upstream has the hash: success");
  is_int(plugtest_metric(host, "tx_resolved"), 1, "counted");
  end(host);

  host = host_with("", 1);
  SCRIPT(host, { .method = ASK, .result = "null" },
         { .method = SEND, .outcome = EGW_MAYBE_SENT });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 20000);
  ok(failed(c, -32053, "the connection broke; the request may have been executed"),
     "nobody has it: not known");
  ok(copies(host, 0) == 1 && questions(host) > 2 && questions(host) < 8,
     "one copy, some questions");
  end(host);
}

static void
test_silent(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .method = SEND, .never = true },
         { .method = ASK, .result = FOUND, .delay_ms = 5 });
  c = plugtest_call(
      host, &(struct plugtest_spec){ .method = SEND, .params = RAW, .timeout_ms = 2500 });
  plugtest_advance(host, 800);
  ok(!plugtest_end(c)->over && questions(host) == 0, "a third of its time is waited for");
  plugtest_advance(host, 60);
  ok(answered(c, HASH), "then the hash is asked for");
  ok(copies(host, 0) == 1 && copies(host, 1) == 1, "and the other one gets a copy");
  end(host);

  host = host_with("", 2);
  SCRIPT(host, { .never = true });
  c = plugtest_call(
      host, &(struct plugtest_spec){ .method = SEND, .params = RAW, .timeout_ms = 2500 });
  plugtest_advance(host, 2499);
  ok(failed(c, -32053, "the connection broke; the request may have been executed"),
     "all are silent: an error in time");
  ok(copies(host, 0) == 1 && copies(host, 1) == 1, "one copy each");
  end(host);
}

static void
test_elsewhere(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .is_error = true, .code = -32005, .message = "rate limit", .delay_ms = 5 });
  c = start(host, SEND, RAW);
  SCRIPT(host, { .result = HASH });
  plugtest_advance(host, 5);
  ok(answered(c, HASH), "one limits our rate: the other takes it");
  is_int(questions(host), 0, "without a question");
  end(host);

  host = host_with("", 2);
  SCRIPT(host, { .outcome = EGW_BAD_REPLY, .http_status = 503 });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 100);
  ok(plugtest_end(c)->over && plugtest_end(c)->is_error, "all are unavailable: an error");
  ok(copies(host, 0) == 1 && copies(host, 1) == 1, "one copy each");
  end(host);

  host = host_with("", 1);
  SCRIPT(host, { .outcome = EGW_NOT_SENT });
  c = start(host, SEND, RAW);
  ok(plugtest_held(c), "the only one can't be reached: a pause");
  SCRIPT(host, { .result = HASH });
  plugtest_advance(host, 1000);
  ok(answered(c, HASH) && copies(host, 0) == 2, "what was not sent can be sent again");
  SCRIPT(host, { .outcome = EGW_NOT_SENT });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 5000);
  ok(plugtest_end(c)->over && plugtest_end(c)->is_error && copies(host, 0) == 5,
     "but not for ever");
  end(host);
}

static void
test_nonce(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .method = SEND, ERROR("nonce too low") }, { .method = ASK, .result = FOUND });
  c = start(host, SEND, RAW);
  ok(answered(c, HASH), "nonce too low, and an upstream has it: success");
  SCRIPT(host, { .method = SEND, ERROR("nonce too low") },
         { .method = ASK, .result = "null" });
  c = start(host, SEND, RAW);
  ok(failed(c, -32000, "nonce too low"), "nobody has it: the error");
  SCRIPT(host, { .method = SEND, ERROR("nonce too low") },
         { .method = ASK, .result = "{\"hash\":\"0x12\"}" });
  c = start(host, SEND, RAW);
  ok(failed(c, -32000, "nonce too low"), "something else is no proof");
  ok(copies(host, 0) + copies(host, 1) == 3, "one copy");
  end(host);
}

static void
test_broadcast(void)
{
  struct plugtest *host = host_with("broadcast = \"all\";", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .method = SEND, ERROR("nonce too low"), .only_upstream = 1 },
         { .method = SEND, .result = HASH, .only_upstream = 2, .delay_ms = 150 },
         { .method = ASK, .result = "null", .delay_ms = 5 });
  c = start(host, SEND, RAW);
  ok(copies(host, 0) == 1 && copies(host, 1) == 1, "all get a copy at once");
  plugtest_advance(host, 100);
  ok(!plugtest_end(c)->over, "an error waits for the others");
  plugtest_advance(host, 50);
  ok(answered(c, HASH), "one accepts: success");
  SCRIPT(host, { .result = HASH, .only_upstream = 1 },
         { .result = HASH, .only_upstream = 2, .delay_ms = 500 });
  c = start(host, SEND, RAW);
  ok(answered(c, HASH) && plugtest_live(host) == 1,
     "the first acceptance answers, the other copy goes on");
  plugtest_advance(host, 500);
  is_int(plugtest_live(host), 0, "until it has arrived");
  SCRIPT(host, { .result = HASH, .only_upstream = 1 },
         { ERROR("already known"), .only_upstream = 2, .delay_ms = 20 });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 20);
  ok(answered(c, HASH) && plugtest_metric(host, "row_tx_known") == 1 &&
         plugtest_metric(host, "unmatched") == 0,
     "what the other says after the answer is judged as a transaction's error");
  SCRIPT(host, { ERROR("insufficient funds"), .only_upstream = 1 },
         { .outcome = EGW_NOT_SENT, .only_upstream = 2, .delay_ms = 20 });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 20);
  ok(failed(c, -32000, "insufficient funds"), "all fail: what a node said");
  end(host);
  host = host_with("broadcast = \"2\";", 3);
  SCRIPT(host, { .result = HASH, .delay_ms = 5 });
  c = start(host, SEND, RAW);
  is_int(plugtest_reached(host), 2, "two of three");
  plugtest_advance(host, 5);
  ok(answered(c, HASH), "accepted");
  end(host);
}

static void
test_mismatch(void)
{
  struct plugtest *host = host_with("", 1);
  struct plugtest_call *c;

  SCRIPT(
      host, { .method = ASK, .result = "null" },
      { .method = SEND,
        .result = "\"0x00000000000000000000000000000000000000000000000000000000000000aa\"" });
  c = start(host, SEND, RAW);
  plugtest_advance(host, 20000);
  ok(plugtest_end(c)->over && plugtest_end(c)->code == -32053,
     "another hash is not passed on");
  is_int(plugtest_metric(host, "tx_mismatch"), 1, "counted");
  ok(plugtest_logged(host, "not the transaction's hash"), "and logged");
  end(host);
}

/* Their answers are others. */
static void
test_kin(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .outcome = EGW_MAYBE_SENT });
  c = start(host, "eth_sendRawTransactionSync", RAW);
  ok(plugtest_end(c)->over && plugtest_reached(host) == 1 &&
         !plugtest_reached_route(host, 0).once,
     "eth_sendRawTransactionSync is sent once");
  c = start(host, "eth_sendRawTransactionConditional", "[\"0x02c0\",{}]");
  ok(plugtest_end(c)->over && plugtest_reached(host) == 2, "and so is the conditional one");
  end(host);
}

static void
test_leaving(void)
{
  struct plugtest *host = host_with("", 2);
  struct plugtest_call *c;

  SCRIPT(host, { .result = HASH, .delay_ms = 100 });
  c = start(host, SEND, RAW);
  plugtest_cancel(c);
  is_int(plugtest_live(host), 1, "the client leaves: its transaction goes on");
  plugtest_advance(host, 100);
  is_int(plugtest_live(host), 0, "and is taken");
  end(host);
}

int
main(void)
{
  find_so();
  test_accepted();
  test_final();
  test_broken();
  test_silent();
  test_elsewhere();
  test_nonce();
  test_broadcast();
  test_mismatch();
  test_kin();
  test_leaving();
  plugtest_default_upstreams(2);
  plugtest_generic(so, "broadcast = \"all\";",
                   &(struct plugtest_spec){ .method = SEND, .params = RAW }, report);
  return done_testing();
}
