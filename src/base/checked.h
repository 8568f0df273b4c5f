/* SPDX-License-Identifier: MIT */
/* Size arithmetic that can't wrap. Each returns false, leaving *out alone, when the true
 * value does not fit. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>

static inline bool
size_add(size_t a, size_t b, size_t *out)
{
  size_t r;

  if (__builtin_add_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}

static inline bool
size_mul(size_t a, size_t b, size_t *out)
{
  size_t r;

  if (__builtin_mul_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}

#endif
