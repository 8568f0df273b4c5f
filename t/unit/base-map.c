/* SPDX-License-Identifier: MIT */
/* Hash maps against a plain model, SipHash against its known answers. */
#include "base/map.h"
#include "../lib/tap.h"

#define KEYS 500u
#define STEPS 200000u

static uint64_t seed = 42;

static unsigned
rnd(unsigned below)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % below);
}

/* The first answers of the reference: key 00..0f, texts 00, 00 01, ... */
static void
test_siphash(void)
{
  static const uint64_t key[2] = { UINT64_C(0x0706050403020100),
                                   UINT64_C(0x0f0e0d0c0b0a0908) };
  unsigned char text[15];
  unsigned i;

  for (i = 0; i < sizeof(text); i++)
    text[i] = (unsigned char)i;
  ok(hash_bytes_keyed(text, 0, key) == UINT64_C(0x726fdb47dd0e0e31), "SipHash of no byte");
  ok(hash_bytes_keyed(text, 8, key) == UINT64_C(0x93f5f5799a932462), "SipHash of 8 bytes");
  ok(hash_bytes_keyed(text, 15, key) == UINT64_C(0xa129ca6149be45e5), "SipHash of 15 bytes");
  ok(hash_bytes("abc", 3) == hash_bytes("abc", 3), "the key of the process stays");
  ok(hash_bytes("abc", 3) != hash_bytes_keyed("abc", 3, (uint64_t[2]){ 0, 0 }),
     "and is not zero");
}

static size_t
model_count(char *const *model)
{
  size_t n = 0, i;

  for (i = 0; i < KEYS; i++)
    n += model[i] != NULL;
  return n;
}

static void
test_u64(void)
{
  static char values[KEYS];
  static char *model[KEYS];
  struct u64map map = { 0 };
  unsigned i, k, round, wrong = 0;
  size_t cursor, walked;
  uint64_t key;
  char *v;

  for (i = 0; i < STEPS; i++) {
    /* Fill and drain in turn, so that dead slots and shrinking are met. */
    k = rnd(KEYS);
    round = i / 5000 % 2;
    if (rnd(10) < (round == 0 ? 7u : 2u)) {
      model[k] = &values[rnd(KEYS)];
      wrong += u64map_put(&map, k * UINT64_C(4096), model[k]) != 0;
    } else {
      wrong += u64map_take(&map, k * UINT64_C(4096)) != model[k];
      model[k] = NULL;
    }
    k = rnd(KEYS);
    wrong += u64map_get(&map, k * UINT64_C(4096)) != model[k];
    if (i % 1000 == 0)
      wrong += u64map_count(&map) != model_count(model);
  }
  is_int(wrong, 0, "%u random steps agree with the model", STEPS);
  for (cursor = walked = 0; (v = u64map_next(&map, &cursor, &key)) != NULL; walked++)
    wrong += model[key / 4096] != v;
  ok(wrong == 0 && walked == u64map_count(&map), "a walk meets every entry once");
  for (cursor = 0; u64map_next(&map, &cursor, &key) != NULL;)
    u64map_take(&map, key);
  is_int(u64map_count(&map), 0, "entries can be taken during a walk");
  ok(u64map_get(&map, 0) == NULL, "nothing is found in an empty map");
  u64map_free(&map);
  ok(u64map_get(&map, 1) == NULL && u64map_take(&map, 1) == NULL && u64map_count(&map) == 0,
     "a freed map is an empty one");
}

static void
test_u64_size(void)
{
  struct u64map map = { 0 };
  size_t cap;
  unsigned i;
  int bad = 0;

  for (i = 0; i < 100000; i++) {
    bad |= u64map_put(&map, i, &map);
    if (i >= 10)
      u64map_take(&map, i - 10);
  }
  cap = map.cap;
  ok(bad == 0 && cap <= 64, "a map through which many keys pass stays small");
  for (i = 0; i < 5000; i++)
    bad |= u64map_put(&map, UINT64_C(1) << 40 | i, &map);
  for (i = 0; i < 5000; i++)
    u64map_take(&map, UINT64_C(1) << 40 | i);
  for (i = 0; i < 50000; i++) {
    bad |= u64map_put(&map, i, &map);
    u64map_take(&map, i);
  }
  ok(bad == 0 && map.cap < 1024, "a map that was large shrinks");
  ok(u64map_put(&map, 7, &map) == 0 && u64map_put(&map, 7, NULL) == 0 &&
       u64map_get(&map, 7) == NULL,
     "putting NULL takes the entry away");
  u64map_free(&map);
}

static void
test_str(void)
{
  static char names[KEYS][8];
  static char *model[KEYS];
  struct strmap map = { 0 };
  unsigned i, k, wrong = 0;
  size_t cursor, walked;
  struct egw_slice key;
  char *v;

  for (i = 0; i < KEYS; i++)
    snprintf(names[i], sizeof(names[i]), "%.*s%u", (int)(i % 3), "\0ab", i);
  for (i = 0; i < STEPS / 4; i++) {
    k = rnd(KEYS);
    key = (struct egw_slice){ names[k], strlen(names[k]) };
    if (rnd(10) < (i / 5000 % 2 == 0 ? 7u : 2u)) {
      model[k] = names[rnd(KEYS)];
      wrong += strmap_put(&map, key, model[k]) != 0;
    } else {
      wrong += strmap_take(&map, key) != model[k];
      model[k] = NULL;
    }
    wrong += strmap_get(&map, key) != model[k];
  }
  is_int(wrong, 0, "strings: random steps agree with the model");
  is_int(strmap_count(&map), model_count(model), "strings: so does the count");
  for (cursor = walked = 0; (v = strmap_next(&map, &cursor, &key)) != NULL; walked++)
    wrong += strmap_get(&map, key) != v;
  ok(wrong == 0 && walked == strmap_count(&map), "strings: a walk meets every entry once");
  strmap_free(&map);
}

static void
test_str_keys(void)
{
  struct strmap map = { 0 };
  struct egw_slice key;
  char old[] = "key", fresh[] = "key", nul[] = "a\0b";
  size_t cursor = 0;
  int one, two;

  ok(strmap_put(&map, (struct egw_slice){ old, 3 }, &one) == 0, "an entry");
  ok(strmap_put(&map, (struct egw_slice){ fresh, 3 }, &two) == 0, "another for the same key");
  strmap_next(&map, &cursor, &key);
  ok(key.ptr == fresh && strmap_count(&map) == 1, "the borrowed key is replaced as well");
  ok(strmap_put(&map, (struct egw_slice){ nul, 3 }, &one) == 0, "a key with a NUL");
  ok(strmap_get(&map, EGW_LIT("a")) == NULL, "is not its beginning");
  ok(strmap_put(&map, (struct egw_slice){ NULL, 0 }, &two) == 0 &&
       strmap_get(&map, EGW_LIT("")) == &two,
     "the empty key is one");
  strmap_free(&map);
}

int
main(void)
{
  test_siphash();
  test_u64();
  test_u64_size();
  test_str();
  test_str_keys();
  return done_testing();
}
