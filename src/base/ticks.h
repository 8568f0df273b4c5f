/* SPDX-License-Identifier: MIT */
/* A clock that costs next to nothing to read, for times taken around every callback: the
 * processor's counter where it can be read without a system call, else nanoseconds. Its rate
 * is not known beforehand: ticks_us() learns it from the time that has passed since
 * ticks_begin(). Any thread; a thread that moves between processors whose counters differ sees
 * times that are wrong by that much. */
#ifndef BASE_TICKS_H
#define BASE_TICKS_H

#include <stdint.h>
#include <time.h>

struct ticks_base {
  uint64_t ticks, us;
};

static inline uint64_t
ticks_now(void)
{
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

/* Ticks that take less than `us` microseconds at any rate that there is: a quick way to see
 * that something was fast. */
static inline uint64_t
ticks_least(uint64_t us)
{
  return us * 1000; /* counters run at 1 GHz or more */
}

/* `us`: the time now, of a monotonic clock. */
static inline void
ticks_begin(struct ticks_base *base, uint64_t us)
{
  base->ticks = ticks_now();
  base->us = us;
}

/* Microseconds that `ticks` took. `us`: the time now. */
static inline uint64_t
ticks_us(const struct ticks_base *base, uint64_t ticks, uint64_t us)
{
  uint64_t passed = ticks_now() - base->ticks;

  return passed == 0 ? 0 : (uint64_t)((double)ticks / (double)passed * (double)(us - base->us));
}

#endif
