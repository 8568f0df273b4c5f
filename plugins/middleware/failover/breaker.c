/* SPDX-License-Identifier: MIT */
/* Circuit breakers. Each upstream's record is under a mutex held for a few instructions; what
 * the path of a call reads is atomic. */
#include "breaker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLICES 10u         /* of the window */
#define GROWTH_MAX 4u      /* the open time doubles so often */
#define LATENCY_SAMPLES 8u /* before latencies are compared */
#define SLOW_FACTOR 3.0    /* so many times the best of the tier... */
#define SLOW_MS 40.0       /* ...and so much more is slow */
#define FAST_FACTOR 2.0    /* below both of these it is not any more */
#define FAST_MS 20.0

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_TRIAL };

struct slice {
  uint64_t number; /* of the slice of time it counts */
  unsigned good, bad;
};

struct breaker {
  pthread_mutex_t lock;
  atomic_int state;          /* enum breaker_state */
  _Atomic uint64_t until_ms; /* OPEN, TRIAL: when a call may try it (again) */
  _Atomic uint64_t quiet_ms; /* it wants to be left alone till then */
  atomic_bool slow;
  _Atomic uint64_t slow_ms;    /* slow: when a call may look again */
  _Atomic uint32_t latency_us; /* latency_ms, for the others; 0: too few samples */
  atomic_uint lacked;
  struct slice slices[SLICES];
  unsigned in_a_row, opened, latency_samples;
  double latency_ms; /* moving mean of cheap calls */
};

struct breakers {
  struct breaker at[UPSTREAMS_MAX];
};

struct breakers *
breakers_new(void)
{
  struct breakers *breakers = calloc(1, sizeof(*breakers));
  unsigned i;

  for (i = 0; breakers != NULL && i < UPSTREAMS_MAX; i++)
    pthread_mutex_init(&breakers->at[i].lock, NULL); /* can't fail without attributes */
  return breakers;
}

void
breakers_free(struct breakers *breakers)
{
  unsigned i;

  for (i = 0; breakers != NULL && i < UPSTREAMS_MAX; i++)
    pthread_mutex_destroy(&breakers->at[i].lock);
  free(breakers);
}

const char *
shunned_text(enum shunned why)
{
  switch (why) {
  case SHUNNED_OPEN:
    return "its breaker is open";
  case SHUNNED_QUIET:
    return "it limits our rate";
  case SHUNNED_SLOW:
    return "it is slow";
  case SHUNNED_LAGGING:
    return "it lags behind the chain";
  case SHUNNED_NOT:
    break;
  }
  return "it was tried";
}

/* --- what to avoid ----------------------------------------------------------------------- */

/* Moves the time of the next try on, so that one caller alone gets this one. */
static bool
claim(_Atomic uint64_t *when, uint64_t now, uint64_t next)
{
  uint64_t due = atomic_load_explicit(when, memory_order_relaxed);

  return now >= due && atomic_compare_exchange_strong(when, &due, next);
}

static bool
lags(const struct egw_at *at, const struct egw_upstream_info *info, int64_t max_lag)
{
  const struct egw_head *head = egw_head(at);

  return head->known && info->has_head && head->tip.number > info->head &&
         head->tip.number - info->head > (uint64_t)max_lag;
}

/* Whether its time has come, and this call may say so. While its link is down the core's
 * probes see to it. */
static bool
is_due(_Atomic uint64_t *when, const struct egw_at *at, const struct breaker_limits *limits,
       const struct egw_upstream_info *info, const struct breaker_view *view, bool may_try)
{
  uint64_t now = egw_now_ms(at->worker);

  return may_try && info->up && view->trial == EGW_NO_UPSTREAM &&
         claim(when, now, now + limits->open);
}

static enum shunned
judge(struct breakers *breakers, const struct egw_at *at, const struct breaker_limits *limits,
      unsigned i, bool quick, struct breaker_view *out, bool may_try)
{
  struct breaker *b = &breakers->at[i];
  struct egw_upstream_info info;

  if (!egw_upstream(at, i, &info))
    return SHUNNED_NOT;
  if (atomic_load_explicit(&b->state, memory_order_relaxed) != BREAKER_CLOSED) {
    if (is_due(&b->until_ms, at, limits, &info, out, may_try)) {
      atomic_store(&b->state, BREAKER_TRIAL);
      out->trial = i;
    }
    return SHUNNED_OPEN;
  }
  if (atomic_load_explicit(&b->quiet_ms, memory_order_relaxed) > egw_now_ms(at->worker))
    return SHUNNED_QUIET;
  if (lags(at, &info, limits->max_lag))
    return SHUNNED_LAGGING;
  if (!quick || !atomic_load_explicit(&b->slow, memory_order_relaxed))
    return SHUNNED_NOT;
  if (is_due(&b->slow_ms, at, limits, &info, out, may_try))
    out->trial = i;
  return SHUNNED_SLOW;
}

void
breakers_view(struct breakers *breakers, const struct egw_at *at,
              const struct breaker_limits *limits, bool quick, bool may_try,
              struct breaker_view *out)
{
  unsigned i, n = egw_upstream_count(at);

  out->avoid = 0;
  out->trial = EGW_NO_UPSTREAM;
  if (n < 2)
    return;
  n = n < UPSTREAMS_MAX ? n : UPSTREAMS_MAX;
  for (i = 0; i < n; i++) {
    enum shunned why = judge(breakers, at, limits, i, quick, out, may_try);

    out->why[i] = (unsigned char)why;
    if (why != SHUNNED_NOT)
      out->avoid |= UINT64_C(1) << i;
  }
  if (out->avoid == (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1))
    out->avoid = 0;
}

/* --- what came of calls ------------------------------------------------------------------ */

static void
open_for(struct breaker *b, const struct breaker_limits *limits, uint64_t now)
{
  unsigned doubled = b->opened < GROWTH_MAX ? b->opened : GROWTH_MAX;

  b->opened++;
  atomic_store(&b->until_ms, now + (limits->open << doubled));
  atomic_store(&b->state, BREAKER_OPEN);
}

static void
close_again(struct breaker *b)
{
  memset(b->slices, 0, sizeof(b->slices));
  b->in_a_row = 0;
  atomic_store(&b->state, BREAKER_CLOSED);
}

/* The window's calls, with this one. */
static void
count(struct breaker *b, const struct breaker_limits *limits, uint64_t now, bool good,
      unsigned *goods, unsigned *bads)
{
  uint64_t number = now / (limits->window / SLICES + 1);
  struct slice *s = &b->slices[number % SLICES];
  unsigned i;

  if (s->number != number)
    *s = (struct slice){ .number = number };
  s->good += good;
  s->bad += !good;
  *goods = *bads = 0;
  for (i = 0; i < SLICES; i++)
    if (b->slices[i].number + SLICES > number) {
      *goods += b->slices[i].good;
      *bads += b->slices[i].bad;
    }
}

static bool
note_mark(struct breaker *b, const struct breaker_limits *limits, uint64_t now, bool good)
{
  enum breaker_state state = (enum breaker_state)atomic_load(&b->state);
  unsigned goods, bads;

  if (state != BREAKER_CLOSED && good) {
    close_again(b);
    return false;
  }
  if (state == BREAKER_TRIAL) {
    open_for(b, limits, now);
    return true;
  }
  count(b, limits, now, good, &goods, &bads);
  b->in_a_row = good ? 0 : b->in_a_row + 1;
  if (good && bads == 0 && goods >= SLICES)
    b->opened = 0; /* well for a whole window: earlier troubles are forgotten */
  if (good || state != BREAKER_CLOSED ||
      ((int64_t)b->in_a_row < limits->failures &&
       ((int64_t)(goods + bads) < limits->samples ||
        (double)bads < limits->errors * (double)(goods + bads))))
    return false;
  open_for(b, limits, now);
  return true;
}

/* The best of the other upstreams of its tier, in us; 0: none is known. */
static uint32_t
best_other(struct breakers *breakers, const struct egw_at *at, unsigned index)
{
  unsigned i, n = egw_upstream_count(at);
  struct egw_upstream_info own, info;
  uint32_t best = 0;

  if (!egw_upstream(at, index, &own))
    return 0;
  for (i = 0; i < n && i < UPSTREAMS_MAX; i++) {
    uint32_t us = atomic_load_explicit(&breakers->at[i].latency_us, memory_order_relaxed);

    if (i != index && us != 0 && egw_upstream(at, i, &info) && info.tier == own.tier &&
        info.up && (best == 0 || us < best))
      best = us;
  }
  return best;
}

static void
tell_slow(const struct egw_at *at, unsigned index, bool slow, double mean, double best)
{
  struct egw_upstream_info info;

  if (egw_upstream(at, index, &info))
    egw_log(EGW_INFO, "failover", "%s is %s: %.0f ms, the best of its tier %.0f ms", info.name,
            slow ? "slow" : "as fast as others again", mean, best);
}

/* The first calls make connections: the fastest of them counts. Later ones are cut, so that
 * one outlier says little and several in a row say much. A slow one is seldom asked: what it
 * does then counts more. */
static double
moved_mean(struct breaker *b, double ms, bool slow)
{
  double most = 3 * b->latency_ms + SLOW_MS;

  if (b->latency_samples < LATENCY_SAMPLES) {
    if (b->latency_samples++ == 0 || ms < b->latency_ms)
      b->latency_ms = ms;
  } else {
    b->latency_ms += ((ms < most ? ms : most) - b->latency_ms) * (slow ? 0.5 : 0.15);
  }
  return b->latency_ms;
}

static void
note_latency(struct breakers *breakers, const struct egw_at *at, unsigned index, int64_t ms)
{
  struct breaker *b = &breakers->at[index];
  bool slow = atomic_load(&b->slow);
  double best, mean = moved_mean(b, (double)ms, slow);

  if (b->latency_samples < LATENCY_SAMPLES)
    return;
  atomic_store(&b->latency_us, (uint32_t)(mean * 1000) + 1);
  best = (double)best_other(breakers, at, index) / 1000;
  if (best <= 0)
    return;
  if (slow ? mean < best * FAST_FACTOR || mean - best < FAST_MS
           : mean > best * SLOW_FACTOR && mean - best > SLOW_MS) {
    atomic_store(&b->slow, !slow);
    tell_slow(at, index, !slow, mean, best);
  }
}

bool
breakers_note(struct breakers *breakers, const struct egw_at *at,
              const struct breaker_limits *limits, unsigned index, enum mark mark, int64_t ms)
{
  struct breaker *b;
  bool opened = false;

  if (index >= UPSTREAMS_MAX)
    return false;
  b = &breakers->at[index];
  pthread_mutex_lock(&b->lock);
  if (mark != MARK_NONE)
    opened = note_mark(b, limits, egw_now_ms(at->worker), mark == MARK_GOOD);
  if (ms >= 0 && mark == MARK_GOOD)
    note_latency(breakers, at, index, ms);
  pthread_mutex_unlock(&b->lock);
  return opened;
}

void
breakers_quiet(struct breakers *breakers, const struct egw_at *at, unsigned index, uint64_t ms)
{
  if (index < UPSTREAMS_MAX)
    atomic_store(&breakers->at[index].quiet_ms, egw_now_ms(at->worker) + ms);
}

bool
breakers_lacked(struct breakers *breakers, unsigned index)
{
  return index < UPSTREAMS_MAX && atomic_fetch_add(&breakers->at[index].lacked, 1) != 0;
}
