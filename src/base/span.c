/* SPDX-License-Identifier: MIT */
/* See span.h. */
#include "base/span.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include "base/list.h"

#define SPAN ((size_t)4 << 20)
#define STEPS 8u                /* sizes from one power of two to the next */
#define DOUBLINGS 4u            /* from SPAN_MIN to SPAN_MAX */
#define CLASSES (DOUBLINGS * STEPS + 1)
#define SLOT_ALIGN 64u

/* At the beginning of its own memory. */
struct span {
  struct list node;             /* of its class, while it has a free slot */
  uint64_t free_slots;          /* a bit for each: there are 63 of SPAN_MIN */
  uint64_t all_slots;
};

struct span_class {
  pthread_mutex_t lock;
  struct list open;             /* spans with a free slot */
};

/* The process's memory, like malloc()'s own state: no part of any gateway. */
static struct span_class classes[CLASSES];
static pthread_once_t started = PTHREAD_ONCE_INIT;
static atomic_size_t spans;

static void
start(void)
{
  unsigned i;

  for (i = 0; i < CLASSES; i++) {
    pthread_mutex_init(&classes[i].lock, NULL);
    list_init(&classes[i].open);
  }
}

/* The class of a size, and how long its slots are. */
static unsigned
class_of(size_t size, size_t *slot)
{
  unsigned doubling = 0, step;
  size_t base = SPAN_MIN;

  while (doubling + 1 < DOUBLINGS && size > base * 2) {
    base *= 2;
    doubling++;
  }
  step = size <= base ? 0 : (unsigned)((size - base + base / STEPS - 1) / (base / STEPS));
  *slot = base + base / STEPS * step;
  return doubling * STEPS + step;
}

/* SPAN bytes at a multiple of SPAN, or NULL. */
static void *
map_aligned(void)
{
  char *at = mmap(NULL, 2 * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *begin;

  if (at == MAP_FAILED)
    return NULL;
  begin = at + (SPAN - (uintptr_t)at % SPAN) % SPAN;
  if (begin > at)
    munmap(at, (size_t)(begin - at));
  munmap(begin + SPAN, (size_t)(at + SPAN - begin));
  (void)madvise(begin, SPAN, MADV_HUGEPAGE); /* without it: ordinary pages */
  return begin;
}

static struct span *
make_span(struct span_class *class, size_t slot)
{
  struct span *span = map_aligned();
  unsigned count = (unsigned)((SPAN - SLOT_ALIGN) / slot);

  if (span == NULL)
    return NULL;
  span->all_slots = span->free_slots = (UINT64_C(1) << count) - 1;
  list_init(&span->node);
  list_append(&class->open, &span->node);
  atomic_fetch_add_explicit(&spans, 1, memory_order_relaxed);
  return span;
}

void *
span_alloc(size_t size)
{
  struct span_class *class;
  struct span *span = NULL;
  char *memory = NULL;
  unsigned at;
  size_t slot;

  pthread_once(&started, start);
  class = &classes[class_of(size, &slot)];
  pthread_mutex_lock(&class->lock);
  if (!list_empty(&class->open))
    span = container_of(class->open.next, struct span, node);
  else
    span = make_span(class, slot);
  if (span != NULL) {
    at = (unsigned)__builtin_ctzll(span->free_slots);
    span->free_slots &= span->free_slots - 1;
    if (span->free_slots == 0)
      list_remove(&span->node);
    memory = (char *)span + SLOT_ALIGN + at * slot;
  }
  pthread_mutex_unlock(&class->lock);
  return memory;
}

void
span_free(void *memory, size_t size)
{
  struct span *span = (struct span *)((uintptr_t)memory & ~(uintptr_t)(SPAN - 1));
  struct span_class *class;
  bool empty;
  size_t slot;

  class = &classes[class_of(size, &slot)];
  pthread_mutex_lock(&class->lock);
  if (span->free_slots == 0)
    list_append(&class->open, &span->node);
  span->free_slots |= UINT64_C(1) << (size_t)((char *)memory - (char *)span - SLOT_ALIGN) / slot;
  empty = span->free_slots == span->all_slots;
  if (empty)
    list_remove(&span->node);
  pthread_mutex_unlock(&class->lock);
  if (!empty)
    return;
  munmap(span, SPAN);
  atomic_fetch_sub_explicit(&spans, 1, memory_order_relaxed);
}

size_t
span_count(void)
{
  return atomic_load_explicit(&spans, memory_order_relaxed);
}
