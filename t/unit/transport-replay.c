/* SPDX-License-Identifier: MIT */
/* The replay transport: what is found in a recording, what its answers look like byte by byte,
 * full readers, service time, recordings that are broken. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ethrpc-gw/json.h>
#include "tap.h"
#include "transport-host.h"

static char dir[] = "/tmp/replay-XXXXXX", path[64], url[96];
static struct thost *host;

static void
write_tape(const char *text, size_t len)
{
  FILE *f = fopen(path, "we");

  if (f == NULL || fwrite(text, 1, len, f) != len || fclose(f) != 0)
    abort();
}

static struct egw_link *
start(const char *text, const char *const *options)
{
  write_tape(text, strlen(text));
  host = thost_new("replay", options);
  if (host == NULL) {
    printf("Bail out! no host\n");
    exit(1);
  }
  return thost_open(host, url, NULL);
}

static void
stop(const char *what)
{
  is_int(thost_free(host), 0, "%s: no rule broken, nothing left on the loop", what);
}

/* The reply to `body`, which has the id "x". */
static void
reply_is(struct egw_link *link, const char *body, const char *want, const char *name)
{
  struct thost_call call = { .idempotent = true };

  thost_submit_raw(link, &call, body, strlen(body));
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_OK, "%s: answered", name);
  is_bytes(call.data == NULL ? "" : call.data, call.len, want, name);
  thost_call_free(&call);
}

#define ASK(method_etc) "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":" method_etc "}"
#define REPLY(member_and_value) "{\"jsonrpc\":\"2.0\",\"id\":\"x\"," member_and_value "}"
#define NOT_RECORDED REPLY("\"error\":{\"code\":-32601,\"message\":\"not recorded\"}")

static const char tape[] =
    "// a comment\n"
    "\n"
    ">> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n"
    "<< {\"jsonrpc\":\"2.0\",\"id\":1,\"result\": {\"k\" : [1.0,1e3] } }\n"
    ">> {\"id\":1,\"params\":[\"0x1\", {\"to\" : \"a  b\"}],\"method\":\"b\"}\r\n"
    "<< {\"result\":null,\"error\":{\"code\":3,\"message\":\"reverted\",\"data\":\"0x8\"}}\r\n"
    ">> {\"method\":\"b\",\"params\":[\"q\\\" ,\\\\\", 2]}\n"
    "<< {\"error\":null,\"result\":\"quoted\"}\n"
    ">> {\"method\":\"a\",\"params\":[ ]}\n"
    "<< {\"result\":\"a second time\"}\n"
    ">> {\"method\":\"c\",\"params\":[\"\\\\\"]}\n"
    "<< {\"result\":\"last\"}";

static void
test_answers(void)
{
  struct egw_link *link = start(tape, NULL);

  reply_is(link, ASK("\"a\",\"params\":[]"), REPLY("\"result\":{\"k\" : [1.0,1e3] }"),
           "the result's bytes as they were recorded; missing params are []");
  reply_is(link, ASK("\"a\""), REPLY("\"result\":{\"k\" : [1.0,1e3] }"), "and the other way");
  reply_is(link, ASK("\"b\",\"params\":[ \"0x1\",\n{\"to\":\"a  b\"} ]"),
           REPLY("\"error\":{\"code\":3,\"message\":\"reverted\",\"data\":\"0x8\"}"),
           "an error; white space between tokens makes no difference");
  reply_is(link, ASK("\"b\",\"params\":[\"0x1\",{\"to\":\"a b\"}]"), NOT_RECORDED,
           "white space in a string does");
  reply_is(link, ASK("\"b\",\"params\":[\"q\\\" ,\\\\\",2]"), REPLY("\"result\":\"quoted\""),
           "escaped quotes do not end a string");
  reply_is(link, ASK("\"b\",\"params\":[\"q\\\",\\\\\",2]"), NOT_RECORDED,
           "white space behind an escaped quote counts");
  reply_is(link, ASK("\"c\",\"params\":[\"\\\\\"]"), REPLY("\"result\":\"last\""),
           "the last line needs no end");
  reply_is(link, ASK("\"A\",\"params\":[]"), NOT_RECORDED, "methods have case");
  reply_is(link, ASK("\"a\",\"params\":[1]"), NOT_RECORDED, "other params");
  reply_is(link, "{\"id\":18446744073709551615,\"method\":\"c\",\"params\":[\"\\\\\"]}",
           "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"result\":\"last\"}",
           "the id's bytes as they were sent");
  stop("answers");
}

static void
test_missing(void)
{
  static const char *const options[] = { "missing", "notfound", NULL };
  struct egw_link *link = start(tape, options);

  reply_is(link, ASK("\"z\",\"params\":[]"), REPLY("\"result\":null"), "missing = notfound");
  stop("missing");
  link = start("", NULL);
  reply_is(link, ASK("\"a\",\"params\":[]"), NOT_RECORDED, "an empty recording");
  stop("empty");
}

/* --- long replies ----------------------------------------------------------------------- */

static char *
long_tape(size_t n)
{
  char *text = malloc(n + 128);
  int at;

  if (text == NULL)
    abort();
  at = snprintf(text, 128, ">> {\"method\":\"long\"}\n<< {\"result\":\"");
  memset(text + at, 'z', n);
  memcpy(text + (size_t)at + n, "\"}\n", 4);
  return text;
}

static bool
is_done_or_paused(void *arg)
{
  struct thost_call *call = arg;

  return call->done || call->paused;
}

static void
test_long(size_t n, size_t pause_every)
{
  struct thost_call call = { .pause_every = pause_every };
  char *text = long_tape(n);
  struct egw_link *link = start(text, NULL);
  size_t bad = 0, head = strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
  unsigned pauses = 0;

  thost_submit(link, &call, "long", "[]");
  while (thost_run(host, is_done_or_paused, &call, 5000) && !call.done) {
    pauses++;
    thost_more(&call);
  }
  ok(call.done && call.outcome == EGW_OK, "%zu bytes", n);
  ok((pause_every == 0) == (pauses == 0), "with %u pauses", pauses);
  is_int(call.len, head + n + 2, "its length");
  for (size_t i = 0; call.len == head + n + 2 && i < n; i++)
    bad += call.data[head + i] != 'z';
  ok(bad == 0 && call.len > 2 && strcmp(call.data + call.len - 2, "\"}") == 0, "its bytes");
  thost_call_free(&call);
  free(text);
  stop("long");
}

static void
test_refused(void)
{
  struct thost_call call = { .refuse_at = 200000 };
  char *text = long_tape(3 << 20);
  struct egw_link *link = start(text, NULL);

  thost_submit(link, &call, "long", "[]");
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_BAD_REPLY && call.len < 400000,
     "a reply that the reader refuses ends");
  thost_call_free(&call);
  call = (struct thost_call){ .pause_every = 1000 };
  thost_submit(link, &call, "long", "[]");
  thost_run(host, is_done_or_paused, &call, 5000);
  thost_more(&call);
  thost_abort(&call);
  ok(!call.done, "given up between more() and the next piece");
  thost_call_free(&call);
  call = (struct thost_call){ .pause_every = 1000 };
  thost_submit(link, &call, "long", "[]");
  thost_close(link);
  ok(call.done && call.outcome == EGW_ABORTED, "closed while paused");
  thost_call_free(&call);
  free(text);
  stop("refused");
}

/* --- time ------------------------------------------------------------------------------- */

static void
test_service_time(void)
{
  static const char *const options[] = { "service_time", "40ms", NULL };
  struct egw_link *link = start(tape, options);
  struct thost_call call = { 0 }, other = { 0 };
  uint64_t began;

  thost_turn(host, 0);
  began = egw_now_ms(egw_link_worker(link));
  thost_submit(link, &call, "c", "[\"\\\\\"]");
  thost_submit(link, &other, "a", "[]");
  ok(!call.done, "service time: not answered at once");
  ok(thost_wait(host, &call, 5000) && call.outcome == EGW_OK, "answered");
  ok(egw_now_ms(egw_link_worker(link)) - began >= 40, "not before its time");
  ok(thost_wait(host, &other, 1000), "two take their time together");
  ok(egw_now_ms(egw_link_worker(link)) - began < 80, "not one after the other");
  thost_call_free(&call);
  thost_call_free(&other);
  call = (struct thost_call){ 0 };
  thost_submit(link, &call, "a", "[]");
  thost_abort(&call);
  call = (struct thost_call){ 0 };
  thost_submit(link, &call, "a", "[]");
  thost_close(link);
  ok(call.done && call.outcome == EGW_ABORTED, "closed meanwhile");
  thost_call_free(&call);
  stop("service time");
}

/* --- recordings that can't be used ------------------------------------------------------- */

static void
refused(const char *text, const char *why)
{
  struct egw_link *link = start(text, NULL);

  ok(link == NULL && thost_logged(host, why), "refused: %s", why);
  ok(!thost_logged(host, dir), "the log does not have the path");
  stop(why);
}

static void
test_refusals(void)
{
  refused("hello\n", "line 1: not a comment, a request or a response");
  refused("// c\n<< {\"result\":1}\n", "line 2: a response without a request");
  refused(">> {\"method\":\"a\"}\n>> {\"method\":\"b\"}\n",
          "line 2: a request without a response comes before");
  refused("\n\n>> {\"method\":\"a\"}\n", "line 3: the last request has no response");
  refused(">> {\"method\":\"a\"}\n<< {\"id\":1}\n",
          "line 2: the response has neither result nor error");
  refused(">> []\n<< {\"result\":1}\n", "line 1: the request has no method");
  snprintf(url, sizeof url, "replay:%s/absent.io", dir);
  refused("", "No such file");
  snprintf(url, sizeof url, "replay:%s", dir);
  refused("", "not a regular file");
  snprintf(url, sizeof url, "replay:%s", path);
}

/* --- the recordings of the test data ----------------------------------------------------- */

/* Whether result and error of two responses have the same bytes. */
static bool
same_answer(const char *want, const char *have)
{
  static const char *const names[] = { "result", "error" };
  struct egw_slice w, h;

  for (int i = 0; i < 2; i++) {
    w = egw_json_member((struct egw_slice){ want, strlen(want) }, names[i]);
    h = egw_json_member((struct egw_slice){ have, strlen(have) }, names[i]);
    if (w.len != h.len || (w.len > 0 && memcmp(w.ptr, h.ptr, w.len) != 0))
      return false;
  }
  return true;
}

/* Asks for each request of the file; the number of answers that differ. */
static size_t
ask_all(struct egw_link *link, FILE *f, size_t *asked)
{
  char *request = NULL, *response = NULL;
  size_t room = 0, room2 = 0, bad = 0;

  while (getline(&request, &room, f) > 0) {
    struct thost_call call = { 0 };

    if (strncmp(request, ">> ", 3) != 0 || getline(&response, &room2, f) <= 0)
      continue;
    thost_submit_raw(link, &call, request + 3, strcspn(request + 3, "\n"));
    ++*asked;
    if (!thost_wait(host, &call, 5000) || !same_answer(response + 3, call.data))
      if (bad++ < 3)
        printf("# differs: %.200s\n", request);
    thost_call_free(&call);
  }
  free(request);
  free(response);
  return bad;
}

static void
replay_file(const char *file)
{
  struct egw_link *link;
  FILE *f = fopen(file, "re");
  char at[512];
  size_t n = 0;

  host = thost_new("replay", NULL);
  snprintf(at, sizeof at, "replay:%s", file);
  link = host == NULL || f == NULL ? NULL : thost_open(host, at, NULL);
  if (!ok(link != NULL, "a recording of the test data is loaded"))
    exit(1);
  is_int(ask_all(link, f, &n), 0, "all answers have the recorded bytes");
  ok(n > 100, "%zu exchanges", n);
  fclose(f);
  stop("recording");
}

static void
test_data(void)
{
  static const char *const names[] = { "execution-apis.io", "erigon-mainnet-le64k.io",
                                       "mainnet-blocks-and-misc.io" };
  const char *at = getenv("EGW_TEST_DATA"), *source = getenv("EGW_SOURCE");
  char file[400];

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (at != NULL)
      snprintf(file, sizeof file, "%s/replay/%s", at, names[i]);
    else
      snprintf(file, sizeof file, "%s/../shared/data/replay/%s", source == NULL ? "." : source,
               names[i]);
    if (access(file, R_OK) == 0)
      replay_file(file);
    else
      tap_skip("no test data");
  }
}

int
main(void)
{
  if (mkdtemp(dir) == NULL)
    abort();
  snprintf(path, sizeof path, "%s/tape.io", dir);
  snprintf(url, sizeof url, "replay:%s", path);
  test_answers();
  test_missing();
  test_long(10, 0);
  test_long(16300, 0);
  test_long(3 << 20, 0);
  test_long(3 << 20, 1 << 20);
  test_long(300000, 1);
  test_refused();
  test_service_time();
  test_refusals();
  test_data();
  unlink(path);
  rmdir(dir);
  return done_testing();
}
