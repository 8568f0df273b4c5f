/* SPDX-License-Identifier: MIT */
/* Pauses between attempts: each one twice as long as the one before, up to a limit. Any thread. */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include <stdint.h>

/* The pause after so many failures (0: the first one), in ms. */
static inline uint64_t
backoff_ms(unsigned failures, uint32_t first, uint32_t most)
{
  uint64_t ms = (uint64_t)first << (failures < 16 ? failures : 16);

  return ms < most ? ms : most;
}

#endif
