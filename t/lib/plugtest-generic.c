/* SPDX-License-Identifier: MIT */
/* The plugin test host: scenarios that every middleware must stand, whatever it does. A stage
 * may answer by itself, hold a call or send it twice; but each call ends once, in time, and
 * leaves nothing behind. */
#include "plugtest-parts.h"

#include <stdarg.h>

#define LONG_MS 120000
#define MANY 200u

struct scenario {
  const char *so, *options;
  const struct plugtest_spec *spec;
  void (*report)(bool pass, const char *what);
};

EGW_PRINTF(3, 4) static void
check(const struct scenario *s, bool pass, const char *fmt, ...)
{
  char what[300];
  va_list ap;

  va_start(ap, fmt);
  (void)vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  s->report(pass, what);
}

static struct plugtest *
begin(const struct scenario *s)
{
  struct plugtest *host = plugtest_new(s->so, s->options);

  if (plugtest_refused(host)) {
    printf("Bail out! the configuration was refused: %s\n", plugtest_messages(host));
    exit(1);
  }
  return host;
}

static void
end(const struct scenario *s, struct plugtest *host, const char *what)
{
  check(s, plugtest_free(host) == 0, "%s: no rule was broken", what);
}

/* --- replies of each sort ---------------------------------------------------------------- */

static const struct {
  const char *what;
  struct plugtest_reply reply;
} sorts[] = {
  { "a result", { .result = "{\"a\":[1,\"2\",null]}" } },
  { "null", { .result = "null" } },
  { "a late result", { .result = "\"0x1\"", .delay_ms = 250 } },
  { "an error", { .is_error = true, .code = -32000, .message = "header not found" } },
  { "a revert",
    { .is_error = true, .code = 3, .message = "execution reverted", .data = "\"0x08\"" } },
  { "method not found", { .is_error = true, .code = -32601, .message = "no such method" } },
  { "not sent", { .outcome = EGW_NOT_SENT, .why = "connection refused" } },
  { "perhaps sent", { .outcome = EGW_MAYBE_SENT, .why = "connection lost" } },
  { "a bad reply", { .outcome = EGW_BAD_REPLY, .why = "no JSON", .http_status = 502 } },
  { "a slow node", { .outcome = EGW_TIMED_OUT, .delay_ms = 1000 } },
  { "429", { .outcome = EGW_BAD_REPLY, .http_status = 429, .retry_after_ms = 1000 } },
  { "an aborted attempt", { .outcome = EGW_ABORTED } },
  { "a big reply", { .big = 8u << 20 } },
  { "the head of a big reply", { .big = 8u << 20, .partial = true } },
};

static void
reply_of_each_sort(const struct scenario *s)
{
  for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
    struct plugtest *host = begin(s);
    struct plugtest_call *call;

    plugtest_script(host, &sorts[i].reply, 1);
    call = plugtest_call(host, s->spec);
    plugtest_advance(host, LONG_MS);
    check(s, plugtest_end(call)->over, "%s: the call ends", sorts[i].what);
    end(s, host, sorts[i].what);
  }
}

static void
each_kind(const struct scenario *s)
{
  struct plugtest *host = begin(s);

  for (uint32_t kind = EGW_KIND_CALL; kind <= EGW_KIND_SUBCALL; kind *= 2) {
    struct plugtest_spec spec = *s->spec;
    struct plugtest_call *call;

    spec.kind = kind;
    call = plugtest_call(host, &spec);
    plugtest_advance(host, LONG_MS);
    check(s, plugtest_end(call)->over, "kind %u: the call ends", (unsigned)kind);
  }
  end(s, host, "each kind");
}

/* --- the client leaves ------------------------------------------------------------------- */

/* Time runs in steps until the call ends by itself; in round n the client leaves after n
 * steps. */
static void
leave_at_each_point(const struct scenario *s)
{
  static const uint64_t steps[] = { 0, 0, 1, 9, 40, 50, 1, 900, 5000, 20000 };
  unsigned cancelled = 0;

  for (size_t n = 0; n <= sizeof steps / sizeof steps[0]; n++) {
    struct plugtest *host = begin(s);
    struct plugtest_reply below[] = { { .result = "\"0x1\"", .delay_ms = 50 } };
    struct plugtest_call *call;

    plugtest_script(host, below, 1);
    call = plugtest_call(host, s->spec);
    for (size_t i = 0; i < n; i++)
      plugtest_advance(host, steps[i]);
    cancelled += !plugtest_end(call)->over;
    plugtest_cancel(call);
    check(s, plugtest_end(call)->over, "the client leaves at point %zu: the call is over", n);
    plugtest_advance(host, LONG_MS);
    end(s, host, "afterwards");
  }
  check(s, cancelled > 0, "the client left %u times", cancelled);
}

/* --- time -------------------------------------------------------------------------------- */

static void
deadline(const struct scenario *s)
{
  struct plugtest *host = begin(s);
  struct plugtest_reply below[] = { { .never = true } };
  struct plugtest_spec spec = *s->spec;
  struct plugtest_call *call;

  spec.timeout_ms = 700;
  plugtest_script(host, below, 1);
  call = plugtest_call(host, &spec);
  plugtest_advance(host, 699);
  plugtest_advance(host, 1);
  check(s, plugtest_end(call)->over, "the node is silent: the call ends with its deadline");
  plugtest_advance(host, LONG_MS);
  end(s, host, "the deadline");
}

static void
drain(const struct scenario *s)
{
  struct plugtest *host = begin(s);
  struct plugtest_reply below[] = { { .never = true } };

  plugtest_script(host, below, 1);
  for (unsigned i = 0; i < 20; i++)
    (void)plugtest_call(host, s->spec);
  plugtest_advance(host, 5);
  for (unsigned i = 0; i < 20; i++)
    (void)plugtest_call(host, s->spec);
  end(s, host, "shutdown with calls in flight");
  host = begin(s);
  end(s, host, "shutdown without a call");
}

/* --- many calls -------------------------------------------------------------------------- */

/* A small generator, so that a failure comes again. */
static unsigned
next_random(unsigned *seed)
{
  *seed = *seed * 1103515245u + 12345u;
  return *seed >> 16 & 0x7fff;
}

static void
many(const struct scenario *s)
{
  struct plugtest *host = begin(s);
  struct plugtest_reply below[MANY];
  struct plugtest_call *calls[MANY];
  unsigned seed = 42, over = 0;

  for (unsigned i = 0; i < MANY; i++) {
    below[i] = sorts[next_random(&seed) % 12].reply;
    below[i].delay_ms = next_random(&seed) % 300;
  }
  plugtest_script(host, below, MANY);
  for (unsigned i = 0; i < MANY; i++) {
    struct plugtest_spec spec = *s->spec;

    spec.session = 1 + i % 7;
    spec.timeout_ms = 50 + next_random(&seed) % 1000;
    calls[i] = plugtest_call(host, &spec);
    plugtest_advance(host, next_random(&seed) % 5);
    if (next_random(&seed) % 4 == 0)
      plugtest_cancel(calls[next_random(&seed) % (i + 1)]);
  }
  plugtest_advance(host, LONG_MS);
  for (unsigned i = 0; i < MANY; i++)
    over += plugtest_end(calls[i])->over;
  check(s, over == MANY, "%u calls at once, some cancelled: all end", MANY);
  end(s, host, "many calls");
}

/* --- memory ------------------------------------------------------------------------------ */

static void
short_of_memory(const struct scenario *s)
{
  struct plugtest_reply below[] = { { .result = "\"0x1\"", .delay_ms = 5 } };
  unsigned n = 1, over = 0;

  for (bool failed = true; failed && n < 500; n++) {
    struct plugtest *host = begin(s);
    struct plugtest_call *call;

    plugtest_script(host, below, 1);
    plugtest_fail_alloc(host, n);
    call = plugtest_call(host, s->spec);
    plugtest_advance(host, LONG_MS);
    failed = plugtest_alloc_failed(host);
    plugtest_fail_alloc(host, 0);
    over += plugtest_end(call)->over;
    if (plugtest_free(host) != 0)
      check(s, false, "allocation %u fails: no rule was broken", n);
  }
  check(s, over == n - 1, "each of %u allocations fails once: the call ends", n - 2);
}

static void
run_once(const struct scenario *s, unsigned calls)
{
  struct plugtest *host = begin(s);
  struct plugtest_reply below[] = { { .result = "\"0x1\"", .delay_ms = 5 },
                                    { .is_error = true, .code = -32000 },
                                    { .outcome = EGW_NOT_SENT } };

  for (unsigned i = 0; i < calls; i++) {
    plugtest_script(host, &below[i % 3], 1);
    (void)plugtest_call(host, s->spec);
    plugtest_advance(host, 1000);
  }
  (void)plugtest_free(host);
}

static void
leaks(const struct scenario *s)
{
  long before, few, lots;

  run_once(s, 10); /* what libraries keep for ever is there from now on */
  before = plugtest_blocks();
  run_once(s, 10);
  few = plugtest_blocks() - before;
  before = plugtest_blocks();
  run_once(s, 100);
  lots = plugtest_blocks() - before;
  check(s, few == 0, "nothing is left of an instance");
  check(s, lots == 0, "nor of its calls");
}

void
plugtest_generic(const char *so, const char *options, const struct plugtest_spec *spec,
                 void (*report)(bool pass, const char *what))
{
  struct scenario s = { so, options, spec, report };

  reply_of_each_sort(&s);
  each_kind(&s);
  leave_at_each_point(&s);
  deadline(&s);
  drain(&s);
  many(&s);
  short_of_memory(&s);
  leaks(&s);
}
