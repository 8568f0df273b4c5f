/* SPDX-License-Identifier: MIT */
/* The API keys. The digests stand in an array of their own: looking at all of them takes
 * about as long as reading them. */
#include "keys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (KEYS_DIGEST / sizeof(uint64_t))

struct keys {
  uint64_t (*digests)[WORDS];
  struct grant *grants;
  size_t count, room;
};

struct keys *
keys_new(void)
{
  return calloc(1, sizeof(struct keys));
}

void
keys_free(struct keys *keys)
{
  if (keys == NULL)
    return;
  free(keys->digests);
  free(keys->grants);
  free(keys);
}

static int
make_room(struct keys *keys)
{
  size_t room = keys->room == 0 ? 16 : keys->room * 2; /* below KEYS_MAX * 2 */
  void *digests, *grants;

  if (keys->count < keys->room)
    return 0;
  digests = realloc(keys->digests, room * sizeof *keys->digests);
  if (digests == NULL)
    return -1;
  keys->digests = digests;
  grants = realloc(keys->grants, room * sizeof *keys->grants);
  if (grants == NULL)
    return -1;
  keys->grants = grants;
  keys->room = room;
  return 0;
}

enum keys_added
keys_add(struct keys *keys, const unsigned char digest[KEYS_DIGEST], const struct grant *grant)
{
  if (keys_find(keys, digest) != NULL)
    return KEYS_TWICE;
  if (keys->count >= KEYS_MAX)
    return KEYS_TOO_MANY;
  if (make_room(keys) < 0)
    return KEYS_NO_MEMORY;
  memcpy(keys->digests[keys->count], digest, KEYS_DIGEST);
  keys->grants[keys->count++] = *grant;
  return KEYS_ADDED;
}

size_t
keys_count(const struct keys *keys)
{
  return keys->count;
}

const struct grant *
keys_find(const struct keys *keys, const unsigned char digest[KEYS_DIGEST])
{
  uint64_t want[WORDS], found = 0;

  memcpy(want, digest, KEYS_DIGEST);
  for (size_t i = 0; i < keys->count; i++) {
    const uint64_t *have = keys->digests[i];
    uint64_t differs = 0;

    for (size_t w = 0; w < WORDS; w++)
      differs |= have[w] ^ want[w];
    /* all ones where nothing differs */
    found |= (((differs | (0 - differs)) >> 63) - 1) & (uint64_t)(i + 1);
  }
  return found == 0 ? NULL : &keys->grants[found - 1];
}

static int
nibble(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

int
keys_read_hex(const char *text, size_t len, unsigned char digest[KEYS_DIGEST])
{
  if (len != 2 * KEYS_DIGEST)
    return -1;
  for (size_t i = 0; i < KEYS_DIGEST; i++) {
    int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);

    if (high < 0 || low < 0)
      return -1;
    digest[i] = (unsigned char)(high << 4 | low);
  }
  return 0;
}
