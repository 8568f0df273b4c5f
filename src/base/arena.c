/* SPDX-License-Identifier: MIT */
/* Bump allocation from chunks that a pool keeps between uses. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/arena.h"
#include "base/checked.h"

#define ARENA_ALIGN _Alignof(max_align_t)

struct arena_chunk {
  struct arena_chunk *next;
  size_t size;              /* of the block, this head included; ARENA_CHUNK: ordinary */
  _Alignas(max_align_t) char bytes[];
};

void
arena_pool_init(struct arena_pool *pool, unsigned keep)
{
  pool->free = NULL;
  pool->count = 0;
  pool->keep = keep;
}

void
arena_pool_free(struct arena_pool *pool)
{
  struct arena_chunk *c;

  while ((c = pool->free) != NULL) {
    pool->free = c->next;
    free(c);
  }
  pool->count = 0;
}

void
arena_init(struct arena *arena, struct arena_pool *pool)
{
  arena->pool = pool;
  arena->chunks = NULL;
  arena->at = arena->end = NULL;
}

void
arena_free(struct arena *arena)
{
  struct arena_pool *pool = arena->pool;
  struct arena_chunk *c, *next;

  for (c = arena->chunks; c != NULL; c = next) {
    next = c->next;
    if (c->size == ARENA_CHUNK && pool->count < pool->keep) {
      c->next = pool->free;
      pool->free = c;
      pool->count++;
    } else {
      free(c);
    }
  }
  arena_init(arena, pool);
}

/* An ordinary chunk in front of the others; allocation goes on in it. */
static int
arena_more(struct arena *arena)
{
  struct arena_pool *pool = arena->pool;
  struct arena_chunk *c = pool->free;

  if (c != NULL) {
    pool->free = c->next;
    pool->count--;
  } else {
    c = malloc(ARENA_CHUNK);
    if (c == NULL)
      return -1;
    c->size = ARENA_CHUNK;
  }
  c->next = arena->chunks;
  arena->chunks = c;
  arena->at = c->bytes;
  arena->end = (char *)c + ARENA_CHUNK;
  return 0;
}

/* A block of its own, put behind the chunk in use so that the rest of that stays usable. */
static void *
arena_big(struct arena *arena, size_t size)
{
  struct arena_chunk *c, **where;
  size_t whole;

  if (!size_add(size, offsetof(struct arena_chunk, bytes), &whole))
    return NULL;
  c = calloc(1, whole);
  if (c == NULL)
    return NULL;
  c->size = whole;
  where = arena->chunks != NULL ? &arena->chunks->next : &arena->chunks;
  c->next = *where;
  *where = c;
  return c->bytes;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
  void *p;

  if (!size_add(size, ARENA_ALIGN - 1, &size))
    return NULL;
  size &= ~(ARENA_ALIGN - 1);
  if (size == 0)
    size = ARENA_ALIGN;
  if (size > ARENA_CHUNK - offsetof(struct arena_chunk, bytes))
    return arena_big(arena, size);
  if (size > (size_t)(arena->end - arena->at) && arena_more(arena) != 0)
    return NULL;
  p = arena->at;
  arena->at += size;
  return memset(p, 0, size);
}

char *
arena_copy(struct arena *arena, struct egw_slice bytes)
{
  size_t size;
  char *p;

  if (!size_add(bytes.len, 1, &size))
    return NULL;
  p = arena_alloc(arena, size);
  if (p != NULL && bytes.len > 0)
    memcpy(p, bytes.ptr, bytes.len);
  return p;
}
