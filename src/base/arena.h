/* SPDX-License-Identifier: MIT */
/* Memory that dies together: chunks from a per-worker free list, bump allocation. One thread.
 * Life: pool_init -> (arena_init -> arena_alloc... -> arena_free)... -> pool_free. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <ethrpc-gw/buf.h>

/* Free chunks, kept up to `keep`; one for each worker. */
struct arena_pool {
  struct arena_chunk *free;
  unsigned count, keep;
};

struct arena {
  struct arena_pool *pool;
  struct arena_chunk *chunks;
  char *at, *end;
};

#define ARENA_CHUNK 4096u /* bytes of an ordinary chunk, its header included */

void arena_pool_init(struct arena_pool *pool, unsigned keep);
void arena_pool_free(struct arena_pool *pool);

void arena_init(struct arena *arena, struct arena_pool *pool);
void arena_free(struct arena *arena);

/* Zeroed, aligned for any type; NULL when memory is short. A block larger than a chunk gets
 * one of its own. */
void *arena_alloc(struct arena *arena, size_t size) EGW_MUST_CHECK;

/* A copy of the bytes with a NUL behind; NULL when memory is short. */
char *arena_copy(struct arena *arena, struct egw_slice bytes) EGW_MUST_CHECK;

#endif
