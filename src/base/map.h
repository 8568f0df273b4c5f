/* SPDX-License-Identifier: MIT */
/* Hash map from u64 keys, or from byte strings, to pointers. Open addressing, grows by two,
 * shrinks never below its first size; string hashes are SipHash-2-4 under a random key made
 * once per process, so that clients can't build collisions. One thread. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

/* SipHash-2-4 of `bytes` under the process's random key. Any thread. */
uint64_t hash_bytes(const void *bytes, size_t len);

/* The same under a given key, for known-answer tests. */
uint64_t hash_bytes_keyed(const void *bytes, size_t len, const uint64_t key[2]);

/* A well mixed u64 that depends on the process's key; cheap, not a PRF. Any thread. */
uint64_t hash_u64(uint64_t x);

/* u64 -> pointer. Zero-initialised is an empty map. Putting NULL takes the entry away. */
struct u64map {
  struct u64map_slot *slots;
  size_t cap, used, dead;
};

/* Adds or replaces. 0, or -1: no memory. */
int u64map_put(struct u64map *map, uint64_t key, void *value) EGW_MUST_CHECK;

/* The value, or NULL. */
void *u64map_get(const struct u64map *map, uint64_t key);
/* The same, and removes it. */
void *u64map_take(struct u64map *map, uint64_t key);
size_t u64map_count(const struct u64map *map);

/* Walks: start with *cursor = 0; NULL at the end. Entries may be taken during a walk, not
 * put. */
void *u64map_next(const struct u64map *map, size_t *cursor, uint64_t *key);
void u64map_free(struct u64map *map);

/* Bytes -> pointer. Keys are borrowed and must live as long as their entry; replacing a value
 * replaces the borrowed key too. */
struct strmap {
  struct strmap_slot *slots;
  size_t cap, used, dead;
};

int strmap_put(struct strmap *map, struct egw_slice key, void *value) EGW_MUST_CHECK;
void *strmap_get(const struct strmap *map, struct egw_slice key);
void *strmap_take(struct strmap *map, struct egw_slice key);
size_t strmap_count(const struct strmap *map);
void *strmap_next(const struct strmap *map, size_t *cursor, struct egw_slice *key);
void strmap_free(struct strmap *map);

#endif
