/* SPDX-License-Identifier: MIT */
/* When what is asked. Closed loop: on each connection, as soon as it has the answer before. Open
 * loop: by a schedule that is made without regard to the answers; a call that finds no free
 * connection waits for one, and its time counts from when it was due. What has no answer at the
 * end counts with the time it has waited so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "load.h"

#define SECOND 1000000000.0
#define TICK 100000000u
#define DIAL_MAX (30 * SECOND)

struct counts counts;

static uint64_t begin = UINT64_MAX, end, asked, open_calls, now_at_end;
static double next_due;      /* ns; open loop */
static uint64_t dice;
static bool asking;

static void
schedule(void)
{
  double gap = SECOND / options.rate;

  next_due += options.fixed ? gap : -log(random_unit(&dice)) * gap;
}

static bool
may_ask(uint64_t due)
{
  if (due < begin)
    return true;
  return due < end && (options.calls == 0 || asked < options.calls);
}

static void
ask(struct conn *conn, uint64_t due)
{
  asked += due >= begin;
  open_calls++;
  conn_ask(conn, due);
}

void
run_ask(void)
{
  struct conn *conn = asking ? conn_free() : NULL;
  uint64_t now;

  if (conn == NULL)
    return;
  now = now_ns();
  if (options.rate == 0) {
    for (; conn != NULL && may_ask(now); conn = conn_free())
      ask(conn, now = now_ns());
    return;
  }
  for (; conn != NULL && next_due <= (double)now && may_ask((uint64_t)next_due);
       conn = conn_free()) {
    uint64_t due = (uint64_t)next_due;
    schedule();
    ask(conn, due);
  }
}

void
run_event(uint64_t *counter)
{
  if (asking && now_ns() >= begin)
    ++*counter;
}

static void
count_code(long code, bool status)
{
  size_t i;

  for (i = 0; i < CODES_MAX; i++) {
    uint64_t *count = status ? &counts.statuses[i].count : &counts.errors[i].count;
    long *of = status ? &counts.statuses[i].code : &counts.errors[i].code;

    if (*count == 0)
      *of = code;
    if (*of == code || i == CODES_MAX - 1) {
      ++*count;
      return;
    }
  }
}

/* What the warm-up asked counts in a closed loop when the answer comes behind it, as what has no
 * answer at the end does not; else slow answers would be missing on both sides. */
static bool
in_window(uint64_t due, uint64_t now)
{
  return (options.rate > 0 ? due : now) >= begin;
}

void
run_answered(uint64_t due, uint64_t now, struct reply *reply)
{
  long code;

  open_calls--;
  if (!in_window(due, now))
    return;
  if (reply->status != 200) {
    count_code(reply->status, true);
    return;
  }
  hist_add(now > due ? now - due : 0);
  counts.calls++;
  counts.in_time += now <= end;
  counts.bytes += reply->bytes;
  if (reply_error(reply, &code))
    count_code(code, false);
}

void
run_failed(uint64_t due)
{
  open_calls--;
  counts.transport_errors += in_window(due, now_ns());
}

/* --- from beginning to end ------------------------------------------------------------------- */

static void
dial_all(void)
{
  uint64_t began = now_ns();
  char text[96];

  while (conns_ready() < options.connections) {
    conns_serve(TICK);
    if ((double)(now_ns() - began) < DIAL_MAX * (conns_ready() > 0 ? 1 : 0.1))
      continue;
    snprintf(text, sizeof(text), "only %lu of %lu connections could be had", conns_ready(),
             options.connections);
    fail(text);
  }
}

/* How long nothing is to be done but what connections ask for. */
static uint64_t
pause_until(uint64_t now, uint64_t limit)
{
  uint64_t until = limit;

  if (options.rate > 0 && conn_free() != NULL && next_due < (double)until)
    until = (uint64_t)next_due;
  if (until > now + TICK)
    until = now + TICK;
  return until > now ? until - now : 0;
}

static double
used(void)
{
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

static bool
all_done(void)
{
  return options.calls != 0 && asked == options.calls && open_calls == 0;
}

static void
serve_until(uint64_t limit, bool drain)
{
  uint64_t now;

  while ((now = now_ns()) < limit && !all_done()) {
    if (drain && open_calls == 0 && !may_ask((uint64_t)next_due))
      return;
    run_ask();
    conns_serve(pause_until(now, limit));
  }
}

static void
count_unanswered(uint64_t due)
{
  if (!in_window(due, now_at_end))
    return;
  counts.unanswered++;
  if (options.rate > 0)
    hist_add(now_at_end - due);
}

/* Nothing that was due is left out of the latencies. */
static void
count_rest(void)
{
  now_at_end = now_ns();
  conns_each_asked(count_unanswered);
  if (options.rate == 0)
    return;
  for (; next_due <= (double)now_at_end && may_ask((uint64_t)next_due); schedule()) {
    asked++;
    counts.unsent++;
    hist_add(now_at_end - (uint64_t)next_due);
  }
}

void
run(void)
{
  uint64_t start;
  double before;

  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  conns_open();
  dial_all();
  dice = options.seed ^ 0x9e3779b97f4a7c15u;
  start = now_ns();
  begin = start + (uint64_t)(options.warmup * SECOND);
  end = begin + (uint64_t)(options.seconds * SECOND);
  next_due = (double)start;
  asking = true;
  serve_until(begin, false);
  before = used();
  serve_until(end, false);
  counts.window_ns = now_ns() - begin;
  counts.busy = (used() - before) / (double)counts.window_ns;
  if (options.rate > 0 && !all_done()) {
    counts.window_ns = end - begin;
    serve_until(end + (uint64_t)(options.drain * SECOND), true);
  }
  count_rest();
}
