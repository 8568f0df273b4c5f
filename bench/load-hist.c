/* SPDX-License-Identifier: MIT */
/* Latencies counted in classes whose width grows with them, 256 for each power of two: exact to
 * 0.4 % in 80 kB, however many there are. */
#include <string.h>

#include "load.h"

#define SUB_BITS 8u
#define SUB (1u << SUB_BITS)
#define TOP_BITS 40u         /* 18 minutes in ns */
#define CLASSES ((TOP_BITS - SUB_BITS + 1) * SUB)

static uint64_t classes[CLASSES];
static uint64_t total, highest;

static size_t
class_of(uint64_t ns)
{
  unsigned int shift;

  if (ns < SUB)
    return (size_t)ns;
  if (ns >> TOP_BITS != 0)
    return CLASSES - 1;
  shift = 63u - (unsigned int)__builtin_clzll(ns) - SUB_BITS;
  return (size_t)(shift + 1) * SUB + (size_t)((ns >> shift) - SUB);
}

/* The middle of a class. */
static double
value_of(size_t class)
{
  size_t shift;

  if (class < SUB)
    return (double)class;
  shift = class / SUB - 1;
  return ((double)(class % SUB + SUB) + 0.5) * (double)(1ull << shift);
}

void
hist_add(uint64_t ns)
{
  classes[class_of(ns)]++;
  total++;
  if (ns > highest)
    highest = ns;
}

uint64_t
hist_count(void)
{
  return total;
}

double
hist_us(double share)
{
  uint64_t want = (uint64_t)(share * (double)total), seen = 0;
  double value;
  size_t i;

  if (total == 0)
    return 0;
  if (want >= total)
    want = total - 1;
  for (i = 0; i < CLASSES; i++) {
    seen += classes[i];
    if (seen > want)
      break;
  }
  value = value_of(i);
  return (value < (double)highest ? value : (double)highest) / 1e3;
}

double
hist_max_us(void)
{
  return (double)highest / 1e3;
}

void
hist_clear(void)
{
  memset(classes, 0, sizeof(classes));
  total = highest = 0;
}
