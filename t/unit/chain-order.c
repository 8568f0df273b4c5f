/* SPDX-License-Identifier: MIT */
/* The contract of the chain: the order of every callback for every outcome, from stages that
 * record them. r: request, p/P: reply (valid / not), t: timer, c: cancel, f: finish. */
#include "../lib/tap.h"
#include "../lib/core.h"

#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_test\",\"params\":[]}"

static void
is_trace(const char *want, const char *name)
{
  if (!ok(strcmp(core.trace, want) == 0, "%s", name))
    printf("#   got  '%s'\n#   want '%s'\n", core.trace, want);
}

static void
is_answer(unsigned n, const char *want, const char *name)
{
  is_bytes(core.answers[n].text == NULL ? "" : core.answers[n].text, core.answers[n].len, want,
           name);
}

static void
test_pass(void)
{
  core_start(3, 1, EGW_NEED_NONE, false);
  core_send(CALL);
  is_int(core.sent_count, 1, "the call reaches the upstream once");
  is_trace("r0 r1 r2 ", "requests go down in order");
  core_result(0, "\"0x2a\"");
  is_trace("r0 r1 r2 p2 p1 p0 f2 f1 f0 ", "replies go up in reverse, then finish");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x2a\"}", "the result is answered");
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_stop();
}

static void
test_answers(void)
{
  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_ANSWER;
  core_send(CALL);
  is_trace("r0 r1 p0 f1 f0 ", "a stage that answers turns the call round");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"stage\"}", "its answer goes out");
  is_int(core.sent_count, 0, "nothing is sent");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[0].on_request[0] = ACT_REFUSE;
  core_send(CALL);
  is_trace("r0 f0 ", "a refusal by the first stage");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32099,\"message\":"
               "\"refused by a stage\"}}", "its error goes out");
  core_stop();

  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_reply[0] = ACT_ANSWER;
  core_send(CALL);
  core_result(0, "1");
  is_trace("r0 r1 r2 p2 p1 p0 f2 f1 f0 ", "a reply replaced on its way up");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"stage\"}", "the new reply goes out");
  core_stop();
}

static void
test_again(void)
{
  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_reply[0] = ACT_AGAIN;
  core_send(CALL);
  core_result(0, "1");
  is_trace("r0 r1 r2 p2 p1 r2 ", "AGAIN sends down from below the stage");
  is_int(core.sent_count, 2, "to the upstream again");
  core_result(1, "2");
  is_trace("r0 r1 r2 p2 p1 r2 p2 p1 p0 f2 f1 f0 ", "and finish comes once");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}", "the second reply counts");
  core_stop();
}

static void
test_wait(void)
{
  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_WAIT;
  core_send(CALL);
  is_trace("r0 r1 ", "a waiting stage holds the call");
  egw_resume(core.stages[1].held, EGW_NEXT);
  is_int(core.sent_count, 0, "resuming takes no step from within");
  core_turn();
  is_int(core.sent_count, 1, "but soon");
  core_result(0, "1");
  is_trace("r0 r1 p1 p0 f1 f0 ", "and all goes on");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[0].on_reply[0] = ACT_WAIT;
  core_send(CALL);
  core_result(0, "1");
  is_int(core.answer_count, 0, "a reply can be held too");
  egw_resume(core.stages[0].held, EGW_AGAIN);
  core_turn();
  core_result(1, "3");
  is_trace("r0 r1 p1 p0 r1 p1 p0 f1 f0 ", "and sent again");
  core_stop();
}

static void
test_timer(void)
{
  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_WAIT;
  core.stages[1].timer_on_wait = true;
  core_send(CALL);
  core_advance(20);
  is_trace("r0 r1 ", "a timer does not fire early");
  core_advance(60);
  is_trace("r0 r1 t1 ", "it fires once");
  is_int(core.sent_count, 1, "and its verdict counts");
  core_result(0, "1");
  is_trace("r0 r1 t1 p1 p0 f1 f0 ", "then all goes on");
  core_stop();
}

static void
test_cancel(void)
{
  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_WAIT;
  core_send(CALL);
  core_advance(1500);
  is_trace("r0 r1 c1 P0 f1 f0 ", "deadline while held: cancel, then the stages above see it");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32051,\"message\":"
               "\"request timed out\"}}", "one time-out error");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core_send(CALL);
  core_advance(1500);
  is_trace("r0 r1 P1 P0 f1 f0 ", "deadline at the upstream");
  ok(core.sent[0].aborted, "the exchange is aborted");
  is_int(core.answer_count, 1, "one answer");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[0].on_request[0] = ACT_WAIT;
  core_send(CALL);
  session_gone(&core.session);
  core_turn();
  is_trace("r0 c0 f0 ", "client gone while held");
  is_int(core.answer_count, 0, "no answer");
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[0].on_reply[0] = ACT_AGAIN;
  core_send(CALL);
  core_advance(1500);
  is_int(core.answer_count, 1, "a cancelled call can't be sent again");
  is_trace("r0 r1 P1 P0 f1 f0 ", "its verdict is overruled");
  core_stop();
}

/* A stage that resumed a call has let go of it, also if its step was not taken yet. */
static void
test_cancel_after_resume(void)
{
  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[1].on_reply[0] = ACT_WAIT;
  core_send(CALL);
  core_result(0, "1");
  egw_resume(core.stages[1].held, EGW_NEXT);
  session_gone(&core.session);
  core_turn();
  is_trace("r0 r1 p1 P0 f1 f0 ", "its reply() is not called again");
  core_stop();

  core_start(2, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_WAIT;
  core_send(CALL);
  egw_resume(core.stages[1].held, EGW_NEXT);
  session_gone(&core.session);
  core_turn();
  is_trace("r0 r1 P0 f1 f0 ", "nor its cancel()");
  core_stop();
}

static void
test_subcall(void)
{
  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_SUBCALL;
  core_send(CALL);
  is_trace("r0 r1 r2 ", "a sub-call starts below its stage");
  ok(strstr(core.sent[0].body, "eth_sub") != NULL, "and reaches the upstream");
  core_result(0, "9");
  is_trace("r0 r1 r2 p2 f2 s1 p0 f1 f0 ", "it ends before its parent goes on");
  is_answer(0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"sub\"}", "the parent is answered");
  core_stop();

  core_start(3, 1, EGW_NEED_NONE, false);
  core.stages[1].on_request[0] = ACT_SUBCALL;
  core_send(CALL);
  session_gone(&core.session);
  core_turn();
  ok(core.sent[0].aborted, "a parent that is cancelled takes its sub-call along");
  is_trace("r0 r1 r2 c1 P2 f2 P0 f1 f0 ", "and done() is not called");
  ok(list_empty(&core.worker.live_calls), "no call is left");
  core_stop();
}

int
main(void)
{
  test_pass();
  test_answers();
  test_again();
  test_wait();
  test_timer();
  test_cancel();
  test_cancel_after_resume();
  test_subcall();
  return done_testing();
}
