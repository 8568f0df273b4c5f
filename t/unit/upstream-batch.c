/* SPDX-License-Identifier: MIT */
/* Calls that share a wire request: what is gathered when, members of the reply in any state,
 * what nodes have against arrays, members that leave; and how large arrays get. */
#include "../lib/tap.h"
#include "../lib/core.h"
#include "base/buf.h"

#define CALLS_MAX 16u
#define NULL_ERROR(code, text) \
  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":" code ",\"message\":\"" text "\"}}"
#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%d}"

static const struct egw_batching limits = { .max_calls = 100, .max_bytes = 100000, .busy = 2 };

static struct egw_link *
link_of(unsigned n)
{
  return core.worker.links[n];
}

/* Arrays of any size are good. */
static void
begin_with(unsigned upstreams, const struct egw_batching *batching)
{
  unsigned i;

  core_start(1, upstreams, EGW_NEED_NONE, false);
  core.batching = batching;
  for (i = 0; i < upstreams; i++) {
    core.conf_upstreams[i].max_batch = 100;
    core.conf_upstreams[i].max_batch_bytes = 100000;
    link_of(i)->batch.pace.size = 100;
    link_of(i)->batch.pace.others = 16;
    link_of(i)->batch.pace.rest = 1000;
  }
}

static void
begin(unsigned upstreams)
{
  begin_with(upstreams, &limits);
}

/* One client's array of n calls with ids 0.. . */
static void
ask_method(unsigned n, const char *method)
{
  char text[4000];
  size_t len = 0;
  unsigned i;

  for (i = 0; i < n; i++)
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "%c{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":[%u]}",
                            i == 0 ? '[' : ',', i, method, i);
  snprintf(text + len, sizeof(text) - len, "]");
  core_send(text);
}

static void
ask(unsigned n)
{
  ask_method(n, "eth_getBalance");
}

/* The ids on the wire in what was sent as number n; returns how many, 0: it is no array. */
static unsigned
wire_ids(unsigned n, unsigned long long *ids)
{
  const char *at = core.sent[n].body;
  unsigned count = 0;

  if (*at != '[')
    return 0;
  while ((at = strstr(at, "\"id\":")) != NULL && count < CALLS_MAX) {
    at += 5;
    ids[count++] = strtoull(at, NULL, 10);
  }
  return count;
}

static unsigned
size_of(unsigned n)
{
  unsigned long long ids[CALLS_MAX];

  return n < core.sent_count ? wire_ids(n, ids) : 0;
}

/* The wire ids in `order` (indexes, ended by -1), each with 100 + index as its result. */
static void
reply_in(unsigned n, const int *order)
{
  unsigned long long ids[CALLS_MAX];
  char text[4000];
  size_t len = 1;

  (void)wire_ids(n, ids);
  strcpy(text, "[");
  for (; *order >= 0; order++)
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "%s{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%d}",
                            len == 1 ? "" : ",", ids[*order], 100 + *order);
  snprintf(text + len, sizeof(text) - len, "]");
  core_text(n, text);
}

static void
reply_all(unsigned n)
{
  int order[CALLS_MAX + 1], i, count = (int)size_of(n);

  for (i = 0; i < count; i++)
    order[i] = i;
  order[count] = -1;
  reply_in(n, order);
}

/* The answer to a client's array whose member i has the result base + i. */
static bool
answered_from(unsigned at, unsigned n, unsigned base)
{
  char text[4000];
  size_t len = 0;
  unsigned i;

  for (i = 0; i < n; i++)
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "%c{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":%u}",
                            i == 0 ? '[' : ',', i, base + i);
  snprintf(text + len, sizeof(text) - len, "]");
  if (core.answer_count > at && core.answers[at].text != NULL &&
      strcmp(core.answers[at].text, text) == 0)
    return true;
  printf("#   got %s\n", core.answer_count > at ? core.answers[at].text : "nothing");
  return false;
}

static bool
answered(unsigned at, unsigned n)
{
  return answered_from(at, n, 100);
}

static const char *
answer(unsigned at)
{
  return core.answer_count > at && core.answers[at].text != NULL ? core.answers[at].text : "";
}

static bool
says(unsigned at, const char *part)
{
  return strstr(answer(at), part) != NULL;
}

/* --- gathering ----------------------------------------------------------------------- */

static void
test_gather(void)
{
  struct egw_batching patient = limits, few = limits, short_ones = limits;

  begin(1);
  core_send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBalance\",\"params\":[]}");
  ok(core.sent_count == 1 && size_of(0) == 0, "a lone call goes out in its turn, as an "
     "object");
  ask(3);
  is_int(core.sent_count, 2, "calls of one turn to a busy link share a request");
  is_int(size_of(1), 3, "all of them");
  ok(strstr(core.sent[1].body, "\"params\":[0]") != NULL &&
     strstr(core.sent[1].body, "\"params\":[2]") != NULL,
     "each with its params");
  is_int(link_of(0)->in_flight, 4, "in flight are calls");
  reply_all(1);
  ok(answered(0, 3), "each gets its result");
  is_int(link_of(0)->in_flight, 1, "and is over");
  is_int(metric_read(&link_of(0)->metrics.batches), 1, "one array is counted");
  is_int(metric_read(&link_of(0)->metrics.batched), 3, "of three calls");
  is_int(metric_read(&link_of(0)->metrics.outcomes[EGW_OK]), 4,
         "outcomes are those of calls (and a probe)");
  core_stop();

  patient.busy = 4;
  begin_with(1, &patient);
  ask(3);
  is_int(core.sent_count, 3, "a link that is not busy gets each call by itself");
  ask(3);
  is_int(size_of(3), 3, "and an array when it is");
  core_stop();

  few.max_calls = 4;
  begin_with(1, &few);
  ask(10);
  ok(core.sent_count == 3 && size_of(0) == 4 && size_of(1) == 3 && size_of(2) == 3,
     "max_calls is kept, sizes are about the same");
  core_stop();

  short_ones.max_bytes = 190;
  begin_with(1, &short_ones);
  ask(4);
  ok(core.sent_count == 2 && size_of(0) == 2, "max_bytes is kept");
  core_stop();

  begin(1);
  core.conf_upstreams[0].max_batch = 3;
  ask(6);
  ok(core.sent_count == 2 && size_of(0) == 3, "the upstream's max_batch is kept");
  core_stop();

  begin(1);
  core.conf_upstreams[0].max_batch_bytes = 190;
  ask(4);
  ok(core.sent_count == 2 && size_of(0) == 2, "the upstream's max_batch_bytes is kept");
  core_stop();
}

static void
test_not_gathered(void)
{
  static const char *const methods[] = { "eth_sendRawTransaction", "foo_bar" };
  unsigned i;

  for (i = 0; i < 2; i++) {
    begin(1);
    ask_method(3, methods[i]);
    ok(core.sent_count == 3 && size_of(0) == 0, "%s is never in an array", methods[i]);
    core_stop();
  }
  begin(1);
  core.batching = NULL;
  ask(3);
  ok(core.sent_count == 3, "nor is what no stage has marked");
  core_stop();
  for (i = 0; i < 2; i++) {
    begin(1);
    core.conf_upstreams[0].max_batch = i;
    ask(3);
    ok(core.sent_count == 3, "max_batch %u: no arrays", i);
    core_stop();
  }
  core_start(1, 1, EGW_NEED_NONE, true);
  core.batching = &limits;
  core.conf_upstreams[0].max_batch = 100;
  ask(3);
  ok(core.sent_count == 3 && size_of(0) == 0, "a connection that carries many at a time "
     "needs none");
  core_stop();
}

/* --- members ------------------------------------------------------------------------- */

static void
test_order(void)
{
  begin(1);
  ask(4);
  reply_in(0, (const int[]){ 3, 2, 1, 0, -1 });
  ok(answered(0, 4), "members come in any order");
  ask(3);
  reply_in(1, (const int[]){ 1, 1, 2, 1, 0, 0, -1 });
  ok(answered(1, 3), "the first of two counts");
  ask(2);
  {
    unsigned long long ids[CALLS_MAX];
    char text[600];

    (void)wire_ids(2, ids);
    snprintf(text, sizeof(text),
             "[7,null,[],{\"id\":987654,\"result\":1},{\"id\":null,\"result\":2},"
             "{\"id\":\"%llu\",\"result\":100},\"x\",{\"jsonrpc\":\"2.0\",\"result\":101,\"id\":%llu}]",
             ids[0], ids[1]);
    core_text(2, text);
  }
  ok(answered(2, 2), "what belongs to nobody is dropped");
  is_int(core.sent_count, 3, "nothing was asked twice");
  core_stop();
}

static void
test_error_member(void)
{
  unsigned long long ids[CALLS_MAX];
  char text[600];

  begin(1);
  ask(2);
  (void)wire_ids(0, ids);
  snprintf(text, sizeof(text),
           "[{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":3,\"message\":\"execution "
           "reverted: "
               "batch\",\"data\":\"0x08\"}},{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":101}]", ids[0], ids[1]);
  core_text(0, text);
  ok(says(0, "\"error\":{\"code\":3,\"message\":\"execution reverted: "
          "batch\",\"data\":\"0x08\"}") &&
     says(0, "\"result\":101"), "an error of one member is its answer, "
         "verbatim");
  ask(2);
  (void)wire_ids(1, ids);
  snprintf(text, sizeof(text), "[{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":1,\"result\":2},"
           "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":101}]", ids[0], ids[1]);
  core_text(1, text);
  is_int(core.sent_count, 3, "a member that is no reply is asked again");
  core_result(2, "100");
  ok(answered(1, 2), "alone, and answered");
  core_stop();
}

static void
test_missing(void)
{
  begin(2);
  core.conf_upstreams[1].tier = 1;
  ask(6);
  reply_in(0, (const int[]){ 2, 4, 5, -1 });
  is_int(core.sent_count, 4, "members that are missing are asked again");
  ok(size_of(1) == 0 && size_of(3) == 0 && core.sent[1].link == link_of(1),
     "each by itself, elsewhere");
  core_result(1, "100");
  core_result(2, "101");
  core_result(3, "103");
  ok(answered(0, 6), "all are answered");
  ok(link_of(0)->health == LINK_UP, "for the link it was one failure, not three");
  core_stop();
}

/* --- what nodes have against arrays -------------------------------------------------- */

static void
test_too_many(void)
{
  unsigned i;

  begin(1);
  ask(8);
  core_text(0,
            NULL_ERROR("-32600", "batch too large"));
  ok(core.sent_count == 3 && size_of(1) == 4 && size_of(2) == 4,
     "an array that is too large is halved");
  egw_xchg_http(core.sent[1].xchg, 413, 0);
  core_text(1, "<html>413</html>");
  ok(core.sent_count == 5 && size_of(3) == 2 && size_of(4) == 2, "and again");
  for (i = 3; i < 5; i++)
    reply_all(i);
  reply_all(2);
  ok(strstr(answer(0), "error") == NULL && core.answer_count == 1,
     "the client hears nothing of it");
  ask(4);
  ok(core.sent_count == 7 && size_of(5) == 2, "the limit is kept");
  is_int(metric_read(&link_of(0)->metrics.batch_refusals), 2, "refusals are counted");
  link_of(0)->batch.limit_until_ms = 0;
  ask(4);
  ok(core.sent_count == 8 && size_of(7) == 4, "until it has been a while");
  core_stop();
}

static void
test_not_supported(void)
{
  begin(1);
  ask(4);
  core_text(0, NULL_ERROR("-32005", "Batched requests are not supported by this server"));
  ok(core.sent_count == 5 && size_of(1) == 0, "without arrays each call goes by itself");
  for (unsigned i = 0; i < 4; i++) {
    char text[20];

    snprintf(text, sizeof(text), "%u", 100 + i);
    core_result(1 + i, text);
  }
  ok(answered(0, 4), "and is answered");
  ask(3);
  ok(core.sent_count == 8 && size_of(5) == 0, "no more arrays");
  link_of(0)->batch.limit_until_ms = 0;
  ask(3);
  ok(core.sent_count == 9 && size_of(8) == 3, "until it has been a while");
  core_stop();
}

/* geth answers the first member only, in an array; others put it into some of them. */
static void
test_refused_inside(void)
{
  unsigned long long ids[CALLS_MAX];
  char text[600];

  begin(1);
  ask(4);
  (void)wire_ids(0, ids);
  snprintf(text, sizeof(text),
           "[{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"code\":-32600,\"message\":"
           "\"batch too large\"}}]", ids[0]);
  core_text(0, text);
  ok(core.sent_count == 3 && size_of(1) == 2 && size_of(2) == 2,
     "one error for all of them: halved");
  (void)wire_ids(1, ids);
  snprintf(text, sizeof(text),
           "[{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":100},{\"jsonrpc\":\"2.0\",\"id\":%llu,"
           "\"error\":{\"code\":-32003,\"message\":\"response too large\"}}]", ids[0], ids[1]);
  core_text(1, text);
  ok(core.sent_count == 4 && size_of(3) == 0, "one that did not fit is asked again by itself");
  core_text(3,
            "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"error\":{\"code\":-32003,\"message\":\"response too large\"}}");
  core_data(2, "", 0);
  reply_all(2);
  ok(says(0, "\"id\":1,\"error\":{\"code\":-32003"),
     "what it hears then is its answer");
  core_stop();
}

static const struct {
  int status;
  const char *text;
} nonsense[] = {
  { 200, "" }, { 200, "[]" }, { 200, "[" }, { 200, "null" }, { 200, "<html>" },
  { 400, "Bad Request" },
  { 200, NULL_ERROR("-32700", "parse error") },
  { 500, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"Internal "
   "error\"}}" },
  { 200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}" },
  { 200, NULL_ERROR("-32005", "rate limit exceeded") },
};

static void
test_nonsense(void)
{
  unsigned i, n, round;

  for (i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
    begin(1);
    for (round = 0; round < 3; round++) {
      n = core.sent_count;
      ask(2);
      is_int(size_of(n), 2, "nonsense %u, array %u", i, round);
      egw_xchg_http(core.sent[n].xchg, nonsense[i].status, 0);
      core_text(n, nonsense[i].text);
      is_int(core.sent_count, n + 3, "each is sent by itself");
      core_result(n + 1, "100");
      core_result(n + 2, "101");
      ok(answered(round, 2), "and answered");
    }
    n = core.sent_count;
    ask(2);
    is_int(core.sent_count, n + 2, "after three of them there are no more arrays");
    ok(link_of(0)->health == LINK_UP, "the link is well");
    core_stop();
  }
}

/* --- failures ------------------------------------------------------------------------ */

static void
test_failures(void)
{
  begin(1);
  ask(3);
  core_done(0, EGW_MAYBE_SENT);
  is_int(core.sent_count, 4, "an array that broke: each read is tried again");
  ok(size_of(1) == 0 && core.sent[1].fresh, "by itself, on a fresh connection");
  core_done(1, EGW_MAYBE_SENT);
  core_result(2, "101");
  core_result(3, "102");
  ok(says(0, "\"id\":0,\"error\":{\"code\":-32050"),
     "and fails like any other");
  core_stop();

  begin(1);
  ask(2);
  egw_xchg_http(core.sent[0].xchg, 503, 0);
  core_text(0, "busy");
  ok(core.sent_count == 3 && size_of(1) == 0, "a node that is busy is not one that refuses "
     "arrays");
  is_int(metric_read(&link_of(0)->metrics.batch_refusals), 0, "which is not counted as one");
  core_stop();

  begin(2);
  core.conf_upstreams[1].tier = 1;
  ask(4);
  core_done(0, EGW_MAYBE_SENT);
  ok(link_of(0)->health == LINK_UP && link_of(1)->health == LINK_UP,
     "one array that broke is one failure");
  core_stop();
}

static void
test_too_long(void)
{
  unsigned long long ids[CALLS_MAX];
  static char text[3000];

  begin(1);
  link_of(0)->limits.max_reply = 1500;
  ask(2);
  (void)wire_ids(0, ids);
  memset(text, ' ', sizeof(text));
  text[0] = '[';
  text[sizeof(text) - 2] = ']';
  text[sizeof(text) - 1] = '\0';
  ok(egw_xchg_data(core.sent[0].xchg, text, sizeof(text) - 1) < 0,
     "an array over max_reply is not read on");
  core_done(0, EGW_BAD_REPLY);
  ok(core.sent_count == 3 && size_of(1) == 0, "its calls are asked again by themselves");
  core_result(1, "100");
  core_result(2, "101");
  ok(answered(0, 2), "and answered");
  core_stop();
}

/* --- leaving ------------------------------------------------------------------------- */

static struct egw_call *
nth_call(unsigned n)
{
  struct list *node = core.worker.live_calls.next;

  while (n-- > 0)
    node = node->next;
  return container_of(node, struct egw_call, live);
}

static void
test_leaving(void)
{
  begin(1);
  ask(3);
  call_cancel(nth_call(1), RPC_FAULT_TIMEOUT);
  core_turn();
  ok(!core.sent[0].aborted, "one that leaves does not end the array");
  reply_all(0);
  ok(says(0, "\"id\":0,\"result\":100") && says(0, "\"id\":2,\"result\":102"),
     "the others have their results");
  ok(says(0, "\"id\":1,\"error\":"), "the one has none");
  core_stop();

  begin(1);
  ask(3);
  session_gone(&core.session);
  core_turn();
  ok(core.sent[0].aborted, "when all have left the request is given up");
  is_int(link_of(0)->in_flight, 0, "nothing is in flight");
  core_stop();

  begin(1);
  ask(3);
  core_advance(2000);
  ok(core.sent[0].aborted, "when the time of all is up, too");
  is_int(link_of(0)->in_flight, 0, "nothing is in flight any more");
  ok(says(0, "\"id\":2,\"error\":{\"code\":-32051"),
     "each has its error");
  core_stop();

  begin(1);
  ask(3);
  core_text(0, "{\"error\":\"batches are disabled\"}");
  session_gone(&core.session);
  core_turn();
  ok(core.sent[1].aborted && core.sent[3].aborted, "those sent anew can leave as well");
  core_stop();
}

static void
test_late(void)
{
  begin(1);
  ask(3);
  core_advance(400);
  is_int(core.sent_count, 1, "an array may take its time");
  core_data(0, "[", 1);
  core_advance(150);
  is_int(core.sent_count, 1, "while it comes in");
  core_stop();

  begin(1);
  ask(3);
  core_advance(600);
  ok(core.sent[0].aborted && core.sent_count == 4 && size_of(1) == 0,
     "what is not answered for half of the time there is goes anew, one by one");
  core_result(1, "100");
  core_result(3, "102");
  core_advance(500);
  ok(says(0, "\"id\":0,\"result\":100") &&
     says(0, "\"id\":2,\"result\":102") &&
     says(0, "\"id\":1,\"error\":"), "only the one that is never answered "
         "fails");
  core_stop();
}

/* --- bytes --------------------------------------------------------------------------- */

static void
test_bytes(void)
{
  struct egw_buf *small = egw_buf_copy(EGW_LIT("[{\"id\":1,\"result\":5}]"));
  struct egw_buf *big = egw_buf_new(1 << 20);
  struct inbound in = { 0 };

  core_start(0, 1, EGW_NEED_NONE, false);
  ok(inbound_take(&in, small, (struct rpc_span){ 1, 20 }) && in.state == INBOUND_COMPLETE &&
     in.buf == small,
     "a part of a small array is a reference");
  inbound_end(&in, &core.gateway);
  ok(egw_buf_append(big, "[{\"id\":1,\"result\":5}]", 21) == 0, "a large array");
  ok(inbound_take(&in, big, (struct rpc_span){ 1, 20 }) && in.state == INBOUND_COMPLETE &&
     in.buf != big &&
     in.buf->len == 19, "whose small part does not keep it in memory");
  inbound_end(&in, &core.gateway);
  egw_buf_unref(small);
  egw_buf_unref(big);
  core_stop();
}

/* --- sizes --------------------------------------------------------------------------- */

/* Comparisons on a node with so many microseconds for each member and `trip` for the way. */
static uint32_t
settle(struct batch_pace *pace, int64_t member_us, int64_t trip_us, unsigned rounds,
       uint64_t now_ms)
{
  bool compare;
  uint32_t size = pace->size;

  while (rounds-- > 0) {
    size = pace_size(pace, 100, now_ms, &compare);
    if (compare)
      pace_result(pace, size, trip_us + member_us, trip_us + member_us * size, now_ms);
  }
  return pace->size;
}

static void
test_pace(void)
{
  struct batch_pace pace;
  bool compare;

  pace_init(&pace);
  is_int(pace_size(&pace, 2, 0, &compare), 1, "two calls are no crowd to compare in");
  ok(!compare && pace_size(&pace, 3, 0, &compare) == 2 && compare, "arrays begin small");
  ok(settle(&pace, 1, 200, 200, 0) >= 100, "they grow where members cost little");
  is_int(pace_size(&pace, 2, 0, &compare), pace.size, "then two are enough for one");
  ok(settle(&pace, 1, 20000, 200, 0) >= 100, "however far the node is");
  pace_init(&pace);
  is_int(settle(&pace, 100, 200, 200, 0), 6, "at 100 us for a member six of them fit");
  pace_init(&pace);
  is_int(settle(&pace, 2000, 200, 20, 0), 1, "at 2 ms none");
  is_int(pace_size(&pace, 100, 500, &compare), 1, "and it stays so");
  is_int(pace_size(&pace, 100, 1000, &compare), 2, "for a second");
  ok(compare, "then it is tried");
  is_int(pace_size(&pace, 100, 1000, &compare), 1, "once");
  pace_result(&pace, 2, 2000, 4000, 1001);
  is_int(pace_size(&pace, 100, 2500, &compare), 1, "and later the next time");
  for (uint64_t now = 100000; now < 3000000 && pace.size == 1; now += 60001)
    settle(&pace, 1, 200, 1, now);
  ok(pace.size > 1, "a node that became faster is found out");
}

static void
test_comparison(void)
{
  begin(1);
  link_of(0)->batch.pace.rest = 0;
  ask(5);
  ok(core.sent_count == 2 && size_of(0) == 4 && size_of(1) == 0,
     "one call is sent beside the array");
  core_result(1, "104");
  ok(link_of(0)->batch.comparison.n == 4, "which is not over with it");
  reply_all(0);
  ok(link_of(0)->batch.comparison.n == 0 && link_of(0)->batch.pace.rest != 0,
     "but with the array");
  ok(answered(0, 5), "all are answered");
  link_of(0)->batch.pace.rest = 0;
  ask(5);
  core_done(3, EGW_MAYBE_SENT);
  ok(link_of(0)->batch.comparison.n == 0, "a failure compares nothing");
  core.conf_upstreams[0].max_batch_bytes = 100;
  link_of(0)->batch.pace.rest = 0;
  {
    unsigned n = core.sent_count;

    ask(4);
    is_int(core.sent_count, n + 4, "where no array can be made nothing waits for one");
  }
  core.conf_upstreams[0].max_batch_bytes = 10000;
  link_of(0)->batch.pace.rest = 0;
  ask(5);
  session_gone(&core.session);
  core_turn();
  ok(link_of(0)->batch.comparison.array == NULL && link_of(0)->batch.comparison.lone == NULL,
     "nor does what was given up");
  core_stop();
}

int
main(void)
{
  test_gather();
  test_not_gathered();
  test_order();
  test_error_member();
  test_missing();
  test_too_many();
  test_not_supported();
  test_refused_inside();
  test_nonsense();
  test_failures();
  test_too_long();
  test_leaving();
  test_late();
  test_bytes();
  test_pace();
  test_comparison();
  return done_testing();
}
