/* SPDX-License-Identifier: MIT */
/* A byte budget shared by all workers: request bodies, replies being collected and output
 * queues reserve from it, so that memory has one bound. Any thread. */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct budget {
  atomic_size_t used;
  size_t limit;           /* 0: unlimited */
};

/* Reserves `n` bytes; false (nothing reserved) when that would pass the limit. */
static inline bool
budget_take(struct budget *budget, size_t n)
{
  size_t before = atomic_fetch_add_explicit(&budget->used, n, memory_order_relaxed);

  if (budget->limit == 0 || (before <= budget->limit && n <= budget->limit - before))
    return true;
  atomic_fetch_sub_explicit(&budget->used, n, memory_order_relaxed);
  return false;
}

/* Whether nothing more should be begun. */
static inline bool
budget_full(struct budget *budget)
{
  return budget->limit != 0 &&
         atomic_load_explicit(&budget->used, memory_order_relaxed) >= budget->limit;
}

/* Counts `n` bytes that are already there, limit or not. */
static inline void
budget_force(struct budget *budget, size_t n)
{
  atomic_fetch_add_explicit(&budget->used, n, memory_order_relaxed);
}

static inline void
budget_give(struct budget *budget, size_t n)
{
  atomic_fetch_sub_explicit(&budget->used, n, memory_order_relaxed);
}

#endif
