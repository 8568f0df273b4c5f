/* SPDX-License-Identifier: MIT */
/* The cheap clock agrees with the system's. */
#include "base/ticks.h"
#include "worker/worker.h"
#include "../lib/tap.h"

static void
spin(uint64_t us)
{
  uint64_t end = clock_us() + us;

  while (clock_us() < end)
    ;
}

/* Another program may have the processor between two readings: then it is tried again. */
static bool
agrees(const struct ticks_base *base)
{
  uint64_t began = clock_us(), ticks = ticks_now(), took, us;

  spin(20000);
  ticks = ticks_now() - ticks;
  took = clock_us() - began;
  us = ticks_us(base, ticks, clock_us());
  ok(ticks > ticks_least(20000), "what took 20 ms is not seen as shorter");
  printf("# %llu us by the clock, %llu by the counter\n", (unsigned long long)took,
         (unsigned long long)us);
  return us > took - took / 4 && us < took + took / 4;
}

int
main(void)
{
  struct ticks_base base;
  int tries = 0;

  ticks_begin(&base, clock_us());
  spin(2000);
  while (tries < 50 && !agrees(&base))
    tries++;
  ok(tries < 50, "both clocks agree");
  is_int(ticks_us(&base, 0, clock_us()), 0, "nothing takes no time");
  return done_testing();
}
