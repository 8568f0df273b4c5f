/* SPDX-License-Identifier: MIT */
/* Arena: alignment, zeroing, large blocks, the pool of chunks. */
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "../lib/tap.h"

static bool
all_zero(const char *p, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    if (p[i] != 0)
      return false;
  return true;
}

/* Blocks of many sizes: aligned, zeroed, and none in another one. */
static void
test_blocks(struct arena_pool *pool, const char *name)
{
  struct { char *p; size_t n; } block[400];
  struct arena arena;
  size_t i, j;
  bool aligned = true, zero = true, kept = true;

  arena_init(&arena, pool);
  for (i = 0; i < 400; i++) {
    block[i].n = i % 50 == 49 ? 5000 + i : (i * 37) % 300;
    block[i].p = arena_alloc(&arena, block[i].n);
    if (block[i].p == NULL)
      abort();
    aligned = aligned && (uintptr_t)block[i].p % _Alignof(max_align_t) == 0;
    zero = zero && all_zero(block[i].p, block[i].n);
    memset(block[i].p, (int)(i % 255 + 1), block[i].n);
  }
  for (i = 0; i < 400; i++)
    for (j = 0; j < block[i].n; j++)
      kept = kept && (unsigned char)block[i].p[j] == i % 255 + 1;
  ok(aligned, "%s: every block is aligned", name);
  ok(zero, "%s: every block is zeroed", name);
  ok(kept, "%s: no block reaches into another", name);
  arena_free(&arena);
}

static void
test_pool(void)
{
  struct arena_pool pool;
  struct arena arena;
  char *first, *p;
  int i;

  arena_pool_init(&pool, 2);
  test_blocks(&pool, "fresh chunks");
  is_int(pool.count, 2, "the pool keeps as many chunks as it may");
  test_blocks(&pool, "chunks that were used before");
  is_int(pool.count, 2, "and again");

  arena_init(&arena, &pool);
  first = arena_alloc(&arena, 16);
  p = arena_alloc(&arena, ARENA_CHUNK * 3);
  ok(first != NULL && p != NULL, "a small block, then one larger than a chunk");
  ok(arena_alloc(&arena, 16) == first + 16, "a large block leaves the chunk in use alone");
  arena_free(&arena);

  arena_init(&arena, &pool);
  for (i = 0; i < 10; i++)
    if (arena_alloc(&arena, 16) == NULL)
      abort();
  is_int(pool.count, 1, "small blocks share a chunk");
  arena_free(&arena);
  arena_free(&arena);
  is_int(pool.count, 2, "freeing twice is harmless");
  arena_pool_free(&pool);
  is_int(pool.count, 0, "the pool can be emptied");
}

static void
test_edges(void)
{
  struct arena_pool pool;
  struct arena arena;
  char *copy, *a, *b;

  arena_pool_init(&pool, 0);
  arena_init(&arena, &pool);
  ok(arena_alloc(&arena, SIZE_MAX) == NULL, "all of memory is refused");
  ok(arena_alloc(&arena, SIZE_MAX - 20) == NULL, "nearly all of memory too");
  a = arena_alloc(&arena, 0);
  b = arena_alloc(&arena, 0);
  ok(a != NULL && b != NULL && a != b, "blocks of no size have addresses of their own");
  copy = arena_copy(&arena, EGW_LIT("text"));
  ok(copy != NULL && strcmp(copy, "text") == 0, "a copy ends with a NUL");
  copy = arena_copy(&arena, (struct egw_slice){ NULL, 0 });
  ok(copy != NULL && copy[0] == '\0', "a copy of nothing is an empty text");
  arena_free(&arena);
  is_int(pool.count, 0, "a pool may keep nothing");
  arena_pool_free(&pool);
}

int
main(void)
{
  test_pool();
  test_edges();
  return done_testing();
}
