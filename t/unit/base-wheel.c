/* SPDX-License-Identifier: MIT */
/* Timer wheel on a virtual clock. */
#include "base/wheel.h"
#include "../lib/tap.h"

#define TIMERS 2000u

static struct wheel wheel;
static uint64_t now;

struct probe {
  struct wheel_timer timer;
  uint64_t want, fired;      /* when it is due, and when it ran */
  unsigned count;
  void (*then)(struct probe *);
  struct probe *other;
};

static void
probe_fn(struct wheel_timer *timer)
{
  struct probe *p = container_of(timer, struct probe, timer);

  p->fired = now;
  p->count++;
  if (p->then != NULL)
    p->then(p);
}

static void
probe_start(struct probe *p, uint64_t due)
{
  p->timer.fn = probe_fn;
  p->want = due;
  wheel_start(&wheel, &p->timer, due);
}

static void
begin(uint64_t at)
{
  now = at;
  wheel_init(&wheel, now);
}

/* Lets the driver sleep exactly as wheel_next() says, until `until`. Returns its wake-ups. */
static unsigned
drive(uint64_t until)
{
  unsigned wakes = 0;
  uint64_t wait;

  while ((wait = wheel_next(&wheel, now)) != UINT64_MAX && now + wait <= until) {
    now += wait > 0 ? wait : 1;
    wakes++;
    wheel_run(&wheel, now);
  }
  if (now < until) {
    now = until;
    wheel_run(&wheel, now);
  }
  return wakes;
}

static void
test_one(void)
{
  struct probe p = { 0 };

  begin(1000003);
  ok(wheel_next(&wheel, now) == UINT64_MAX, "nothing armed: no next call");
  probe_start(&p, now + 100);
  ok(wheel_armed(&p.timer), "an armed timer");
  now = p.want - 1;
  wheel_run(&wheel, now);
  is_int(p.count, 0, "does not fire early");
  now = p.want + WHEEL_TICK;
  wheel_run(&wheel, now);
  is_int(p.count, 1, "fires at most one tick late");
  ok(!wheel_armed(&p.timer), "and is idle then");
  now += 1000000;
  wheel_run(&wheel, now);
  is_int(p.count, 1, "it fires once");

  probe_start(&p, now + 50);
  probe_start(&p, now + 500);
  is_int(wheel.count, 1, "starting an armed timer moves it");
  now += 400;
  wheel_run(&wheel, now);
  is_int(p.count, 1, "the old time is forgotten");
  wheel_stop(&wheel, &p.timer);
  wheel_stop(&wheel, &p.timer);
  now += 10000;
  wheel_run(&wheel, now);
  ok(p.count == 1 && wheel.count == 0,
     "a stopped timer does not fire; stopping twice is harmless");
}

static void
test_many(void)
{
  static struct probe p[TIMERS];
  uint64_t seed = 7;
  unsigned i, early = 0, late = 0, wrong = 0, wakes;

  memset(p, 0, sizeof(p));
  begin(5);
  for (i = 0; i < TIMERS; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1;
    /* From now to two minutes: up to 30 rounds of the wheel. */
    probe_start(&p[i], now + (seed >> 33) % (i % 2 == 0 ? 300u : 120000u));
  }
  for (i = 0; i < TIMERS; i += 10)
    wheel_stop(&wheel, &p[i].timer);
  wakes = drive(now + 130000);
  for (i = 0; i < TIMERS; i++) {
    wrong += p[i].count != (i % 10 != 0);
    if (p[i].count == 1) {
      early += p[i].fired < p[i].want;
      late += p[i].fired > p[i].want + WHEEL_TICK;
    }
  }
  is_int(wrong, 0, "every timer that was not stopped fired once");
  is_int(early, 0, "none early");
  is_int(late, 0, "none later than a tick, with the driver asleep in between");
  ok(wakes <= TIMERS, "no more wake-ups than timers (%u)", wakes);
}

static void
test_idle(void)
{
  static struct probe p[TIMERS];
  unsigned i;

  memset(p, 0, sizeof(p));
  begin(0);
  for (i = 0; i < TIMERS; i++)
    probe_start(&p[i], 3600000 + i % 100);
  i = drive(3599000);
  ok(i < 1000, "%u timers an hour away: %u wake-ups in an hour", TIMERS, i);
  for (i = 0; i < TIMERS; i++)
    wheel_stop(&wheel, &p[i].timer);
  ok(wheel_next(&wheel, now) == UINT64_MAX, "after the last stop nothing is next");
}

static void
test_jump(void)
{
  static struct probe p[TIMERS];
  unsigned i, fired = 0;

  memset(p, 0, sizeof(p));
  begin(123);
  for (i = 0; i < TIMERS; i++)
    probe_start(&p[i], now + 1 + i * 17);
  now += UINT64_C(1) << 40;
  wheel_run(&wheel, now);
  for (i = 0; i < TIMERS; i++)
    fired += p[i].count == 1;
  is_int(fired, TIMERS, "a jump of 35 years fires every timer once");
  memset(p, 0, sizeof(p));
  probe_start(&p[0], now + 10000);
  wheel_run(&wheel, now - 5000);
  is_int(p[0].count, 0, "a clock that goes back fires nothing");
  drive(now + 10000 + WHEEL_TICK);
  ok(p[0].count == 1 && p[0].fired >= p[0].want, "and nothing is lost by it");
  probe_start(&p[1], UINT64_MAX);
  ok(wheel_next(&wheel, now) > UINT64_C(1) << 40 || wheel_next(&wheel, now) <= 4096 * 4,
     "the end of time can be waited for");
  now += 100000;
  wheel_run(&wheel, now);
  is_int(p[1].count, 0, "but does not come soon");
  probe_start(&p[2], 0);
  ok(wheel_armed(&p[2].timer), "a time that has passed arms the timer");
  now += WHEEL_TICK;
  wheel_run(&wheel, now);
  is_int(p[2].count, 1, "for the next tick");
}

static void
then_again_now(struct probe *p)
{
  if (p->count < 1000)
    probe_start(p, now);
}

static void
then_stop_other(struct probe *p)
{
  wheel_stop(&wheel, &p->other->timer);
}

static void
then_start_other(struct probe *p)
{
  probe_start(p->other, now + 8);
}

static void
test_callbacks(void)
{
  struct probe again = { .then = then_again_now }, a = { .then = then_stop_other },
               b = { .then = then_stop_other }, c = { .then = then_start_other }, d = { 0 };

  begin(0);
  probe_start(&again, 4);
  now = 100000;
  wheel_run(&wheel, now);
  is_int(again.count, 1, "a timer that starts itself for now fires once in a run");
  drive(now + 999 * WHEEL_TICK);
  is_int(again.count, 1000, "and then once in every tick");

  a.other = &b;
  b.other = &a;
  probe_start(&a, now + 10);
  probe_start(&b, now + 10);
  now += 20;
  wheel_run(&wheel, now);
  is_int(a.count + b.count, 1, "of two that stop each other in one tick one fires");
  is_int(wheel.count, 0, "and none is left");

  c.other = &d;
  probe_start(&c, now + 10);
  probe_start(&d, now + 10);
  now += 20;
  wheel_run(&wheel, now);
  ok(c.count == 1 && d.count <= 1, "one that moves another that is due as well");
  d.count = 0;
  drive(now + 20);
  ok(d.count == 1 && d.fired >= d.want, "which then fires at its new time");
}

int
main(void)
{
  test_one();
  test_many();
  test_idle();
  test_jump();
  test_callbacks();
  return done_testing();
}
