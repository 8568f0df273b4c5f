/* SPDX-License-Identifier: MIT */
/* Hash maps with open addressing and linear probing. A slot whose value is NULL is free; one
 * that was taken in the middle of a probe sequence is marked dead until the next rehash. */
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/map.h"

#define MAP_CAP_MIN 16u

struct u64map_slot {
  uint64_t key;
  void *value;
};

struct strmap_slot {
  struct egw_slice key;
  uint64_t hash;
  void *value;
};

/* The value of a dead slot; its address is what counts. */
static char map_dead;
#define MAP_DEAD ((void *)&map_dead)

static bool
map_live(const void *value)
{
  return value != NULL && value != MAP_DEAD;
}

/* Whether one more entry needs a rehash: three quarters of the slots may be in use. */
static bool
map_full(size_t cap, size_t used, size_t dead)
{
  return used + dead + 1 > cap - cap / 4;
}

/* Whether a map that was much larger once should give memory back. */
static bool
map_sparse(size_t cap, size_t used)
{
  return cap > MAP_CAP_MIN && used < cap / 8;
}

/* A capacity that one more entry fills by half at most; 0 if there is none. */
static size_t
map_cap(size_t used)
{
  size_t cap = MAP_CAP_MIN;

  while (cap / 2 < used + 1)
    if (!size_mul(cap, 2, &cap))
      return 0;
  return cap;
}

/* --- u64 keys ------------------------------------------------------------------------ */

/* The slot of `key`, or the free or dead one where it belongs. The map has a free slot. */
static struct u64map_slot *
u64map_slot(struct u64map_slot *slots, size_t cap, uint64_t key)
{
  struct u64map_slot *s, *dead = NULL;
  size_t i;

  for (i = (size_t)hash_u64(key);; i++) {
    s = &slots[i & (cap - 1)];
    if (s->value == NULL)
      return dead != NULL ? dead : s;
    if (s->value == MAP_DEAD) {
      if (dead == NULL)
        dead = s;
    } else if (s->key == key) {
      return s;
    }
  }
}

static int
u64map_rehash(struct u64map *map)
{
  size_t cap = map_cap(map->used), i;
  struct u64map_slot *slots;

  slots = cap == 0 ? NULL : calloc(cap, sizeof(*slots));
  if (slots == NULL)
    return -1;
  for (i = 0; i < map->cap; i++)
    if (map_live(map->slots[i].value))
      *u64map_slot(slots, cap, map->slots[i].key) = map->slots[i];
  free(map->slots);
  map->slots = slots;
  map->cap = cap;
  map->dead = 0;
  return 0;
}

int
u64map_put(struct u64map *map, uint64_t key, void *value)
{
  struct u64map_slot *s;

  if (value == NULL) {
    u64map_take(map, key);
    return 0;
  }
  if (map_full(map->cap, map->used, map->dead) && u64map_rehash(map) != 0)
    return -1;
  if (map_sparse(map->cap, map->used))
    (void)u64map_rehash(map); /* without memory it stays as it is */
  s = u64map_slot(map->slots, map->cap, key);
  if (!map_live(s->value)) {
    map->dead -= s->value == MAP_DEAD;
    map->used++;
  }
  s->key = key;
  s->value = value;
  return 0;
}

void *
u64map_get(const struct u64map *map, uint64_t key)
{
  struct u64map_slot *s;

  if (map->used == 0)
    return NULL;
  s = u64map_slot(map->slots, map->cap, key);
  return map_live(s->value) ? s->value : NULL;
}

void *
u64map_take(struct u64map *map, uint64_t key)
{
  struct u64map_slot *s;
  void *value;
  size_t at;

  if (map->used == 0)
    return NULL;
  s = u64map_slot(map->slots, map->cap, key);
  value = s->value;
  if (!map_live(value))
    return NULL;
  map->used--;
  at = (size_t)(s - map->slots);
  if (map->slots[(at + 1) & (map->cap - 1)].value == NULL) {
    s->value = NULL; /* the end of a probe sequence needs no marker */
  } else {
    s->value = MAP_DEAD;
    map->dead++;
  }
  return value;
}

size_t
u64map_count(const struct u64map *map)
{
  return map->used;
}

void *
u64map_next(const struct u64map *map, size_t *cursor, uint64_t *key)
{
  const struct u64map_slot *s;

  while (*cursor < map->cap) {
    s = &map->slots[(*cursor)++];
    if (map_live(s->value)) {
      if (key != NULL)
        *key = s->key;
      return s->value;
    }
  }
  return NULL;
}

void
u64map_free(struct u64map *map)
{
  free(map->slots);
  *map = (struct u64map){ 0 };
}

/* --- byte strings -------------------------------------------------------------------- */

static bool
strmap_same(const struct strmap_slot *s, struct egw_slice key, uint64_t hash)
{
  return s->hash == hash && s->key.len == key.len &&
         (key.len == 0 || memcmp(s->key.ptr, key.ptr, key.len) == 0);
}

static struct strmap_slot *
strmap_slot(struct strmap_slot *slots, size_t cap, struct egw_slice key, uint64_t hash)
{
  struct strmap_slot *s, *dead = NULL;
  size_t i;

  for (i = (size_t)hash;; i++) {
    s = &slots[i & (cap - 1)];
    if (s->value == NULL)
      return dead != NULL ? dead : s;
    if (s->value == MAP_DEAD) {
      if (dead == NULL)
        dead = s;
    } else if (strmap_same(s, key, hash)) {
      return s;
    }
  }
}

static int
strmap_rehash(struct strmap *map)
{
  size_t cap = map_cap(map->used), i;
  struct strmap_slot *slots, *s;

  slots = cap == 0 ? NULL : calloc(cap, sizeof(*slots));
  if (slots == NULL)
    return -1;
  for (i = 0; i < map->cap; i++) {
    s = &map->slots[i];
    if (map_live(s->value))
      *strmap_slot(slots, cap, s->key, s->hash) = *s;
  }
  free(map->slots);
  map->slots = slots;
  map->cap = cap;
  map->dead = 0;
  return 0;
}

int
strmap_put(struct strmap *map, struct egw_slice key, void *value)
{
  uint64_t hash = hash_bytes(key.ptr, key.len);
  struct strmap_slot *s;

  if (value == NULL) {
    strmap_take(map, key);
    return 0;
  }
  if (map_full(map->cap, map->used, map->dead) && strmap_rehash(map) != 0)
    return -1;
  if (map_sparse(map->cap, map->used))
    (void)strmap_rehash(map); /* without memory it stays as it is */
  s = strmap_slot(map->slots, map->cap, key, hash);
  if (!map_live(s->value)) {
    map->dead -= s->value == MAP_DEAD;
    map->used++;
  }
  *s = (struct strmap_slot){ key, hash, value };
  return 0;
}

void *
strmap_get(const struct strmap *map, struct egw_slice key)
{
  struct strmap_slot *s;

  if (map->used == 0)
    return NULL;
  s = strmap_slot(map->slots, map->cap, key, hash_bytes(key.ptr, key.len));
  return map_live(s->value) ? s->value : NULL;
}

void *
strmap_take(struct strmap *map, struct egw_slice key)
{
  struct strmap_slot *s;
  void *value;
  size_t at;

  if (map->used == 0)
    return NULL;
  s = strmap_slot(map->slots, map->cap, key, hash_bytes(key.ptr, key.len));
  value = s->value;
  if (!map_live(value))
    return NULL;
  map->used--;
  at = (size_t)(s - map->slots);
  if (map->slots[(at + 1) & (map->cap - 1)].value == NULL) {
    s->value = NULL;
  } else {
    s->value = MAP_DEAD;
    map->dead++;
  }
  return value;
}

size_t
strmap_count(const struct strmap *map)
{
  return map->used;
}

void *
strmap_next(const struct strmap *map, size_t *cursor, struct egw_slice *key)
{
  const struct strmap_slot *s;

  while (*cursor < map->cap) {
    s = &map->slots[(*cursor)++];
    if (map_live(s->value)) {
      if (key != NULL)
        *key = s->key;
      return s->value;
    }
  }
  return NULL;
}

void
strmap_free(struct strmap *map)
{
  free(map->slots);
  *map = (struct strmap){ 0 };
}
