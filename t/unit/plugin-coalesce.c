/* SPDX-License-Identifier: MIT */
/* The middleware `coalesce`: who waits for whom, and that nobody waits for ever. */
#include "../lib/tap.h"

#include "../lib/plugtest.h"

static char so[1000];

static struct plugtest *
host_with(const char *options, const struct plugtest_reply *below, size_t count)
{
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  plugtest_script(host, below, count);
  return host;
}

static struct plugtest_call *
call(struct plugtest *host, const char *method, const char *params)
{
  struct plugtest_call *c = plugtest_call(host, &(struct plugtest_spec){ .method = method,
                                                                        .params = params });

  plugtest_run(host);
  return c;
}

#define BALANCE "eth_getBalance"

static void
test_share(void)
{
  struct plugtest_reply below[] = { { .result = "\"0x5\"", .delay_ms = 100 } };
  struct plugtest *host = host_with("", below, 1);
  struct plugtest_call *c[5];
  unsigned i, good = 0;

  for (i = 0; i < 5; i++)
    c[i] = call(host, BALANCE, "[\"0xa\",\"latest\"]");
  is_int(plugtest_reached(host), 1, "five equal calls are one at the node");
  is_int(plugtest_metric(host, "waiting"), 4, "four wait");
  plugtest_advance(host, 100);
  plugtest_wait_post(host, 1000);
  for (i = 0; i < 5; i++)
    good += plugtest_end(c[i])->over && strcmp(plugtest_end(c[i])->body, "\"0x5\"") == 0;
  is_int(good, 5, "all get the answer");
  is_int(plugtest_metric(host, "leaders"), 1, "one led");
  is_int(plugtest_metric(host, "followers"), 4, "four followed");
  is_int(plugtest_metric(host, "waiting"), 0, "nobody waits");
  call(host, BALANCE, "[\"0xa\",\"latest\"]");
  is_int(plugtest_reached(host), 2, "a later one asks again");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_apart(void)
{
  struct plugtest_reply below[] = { { .never = true } };
  struct plugtest *host = host_with("", below, 1);

  call(host, BALANCE, "[\"0xa\",\"0x1\"]");
  call(host, BALANCE, "[\"0xa\",\"0x11\"]");
  call(host, BALANCE, "[\"0xa\", \"0x1\"]");
  call(host, "eth_getCode", "[\"0xa\",\"0x1\"]");
  is_int(plugtest_reached(host), 4, "other bytes are another call");
  call(host, "eth_sendRawTransaction", "[\"0x1\"]");
  call(host, "eth_sendRawTransaction", "[\"0x1\"]");
  call(host, "eth_getFilterChanges", "[\"0x1\"]");
  call(host, "eth_getFilterChanges", "[\"0x1\"]");
  call(host, "foo_bar", "[]");
  call(host, "foo_bar", "[]");
  is_int(plugtest_reached(host), 10, "only reads are shared");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_failing(void)
{
  struct plugtest_reply below[] = { { .outcome = EGW_BAD_REPLY, .delay_ms = 10 },
                                    { .result = "7", .delay_ms = 10 } };
  struct plugtest *host = host_with("", below, 2);
  struct plugtest_call *a = call(host, BALANCE, "[1]"), *b = call(host, BALANCE, "[1]"),
                       *c = call(host, BALANCE, "[1]");

  plugtest_advance(host, 10);
  plugtest_wait_post(host, 1000);
  ok(plugtest_end(a)->over && plugtest_end(a)->outcome == EGW_BAD_REPLY, "the leader fails alone");
  is_int(plugtest_reached(host), 2, "one follower leads then");
  plugtest_advance(host, 10);
  plugtest_wait_post(host, 1000);
  ok(strcmp(plugtest_end(b)->body, "7") == 0 && strcmp(plugtest_end(c)->body, "7") == 0,
     "both get its answer");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_leaving(void)
{
  struct plugtest_reply below[] = { { .result = "7", .delay_ms = 50 } };
  struct plugtest *host = host_with("", below, 1);
  struct plugtest_call *a = call(host, BALANCE, "[1]"), *b = call(host, BALANCE, "[1]"),
                       *c = call(host, BALANCE, "[1]"), *d = call(host, BALANCE, "[1]");

  plugtest_cancel(b);
  plugtest_run(host);
  plugtest_cancel(a);
  plugtest_run(host);
  plugtest_wait_post(host, 1000);
  is_int(plugtest_reached(host), 2, "a leader that leaves hands over");
  plugtest_advance(host, 50);
  plugtest_wait_post(host, 1000);
  ok(strcmp(plugtest_end(c)->body, "7") == 0 && strcmp(plugtest_end(d)->body, "7") == 0,
     "the others are served");
  is_int(plugtest_live(host), 0, "nobody hangs");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_bounds(void)
{
  struct plugtest_reply failing[] = { { .outcome = EGW_MAYBE_SENT, .delay_ms = 1 } };
  struct plugtest_reply big[] = { { .big = 100000, .partial = true, .delay_ms = 1 } };
  struct plugtest *host = host_with("max_followers = 2;", failing, 1);
  unsigned i;

  for (i = 0; i < 5; i++)
    call(host, BALANCE, "[1]");
  is_int(plugtest_reached(host), 3, "those beyond max_followers go by themselves");
  is_int(plugtest_free(host), 0, "no rule was broken");

  host = host_with("", failing, 1);
  for (i = 0; i < 20; i++)
    call(host, BALANCE, "[1]");
  for (i = 0; i < 8; i++) {
    plugtest_advance(host, 1);
    plugtest_wait_post(host, 100);
  }
  is_int(plugtest_reached(host), 20, "after a few leaders have failed everybody goes by himself");
  is_int(plugtest_live(host), 0, "nobody hangs");
  is_int(plugtest_free(host), 0, "no rule was broken");

  host = host_with("", big, 1);
  call(host, BALANCE, "[1]");
  call(host, BALANCE, "[1]");
  plugtest_advance(host, 1);
  plugtest_wait_post(host, 1000);
  is_int(plugtest_reached(host), 2, "a reply in pieces is not shared");
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
test_errors(void)
{
  struct plugtest_reply below[] = { { .is_error = true, .code = 3, .message = "execution reverted",
                                      .data = "\"0x08\"", .delay_ms = 1 } };
  struct plugtest *host = host_with("", below, 1);
  struct plugtest_call *b;

  call(host, "eth_call", "[{}]");
  b = call(host, "eth_call", "[{}]");
  plugtest_advance(host, 1);
  plugtest_wait_post(host, 1000);
  ok(plugtest_end(b)->is_error && plugtest_end(b)->code == 3 &&
         strstr(plugtest_end(b)->body, "\"0x08\"") != NULL, "a node's error is shared with its data");
  is_int(plugtest_reached(host), 1, "and asked for once");
  is_int(plugtest_free(host), 0, "no rule was broken");

  host = host_with("share_errors = false;", below, 1);
  call(host, "eth_call", "[{}]");
  call(host, "eth_call", "[{}]");
  plugtest_advance(host, 1);
  plugtest_wait_post(host, 1000);
  is_int(plugtest_reached(host), 2, "unless share_errors is off");
  is_int(plugtest_free(host), 0, "no rule was broken");
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

  snprintf(so, sizeof so, "%s/plugins/middleware/coalesce/coalesce.so", build == NULL ? "." : build);
  test_share();
  test_apart();
  test_failing();
  test_leaving();
  test_bounds();
  test_errors();
  plugtest_generic(so, "", &(struct plugtest_spec){ .method = BALANCE, .params = "[1]" }, report);
  return done_testing();
}
