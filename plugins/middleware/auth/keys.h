/* SPDX-License-Identifier: MIT */
/* The API keys: SHA-256 of each, and what it grants. The keys themselves are not kept. */
#ifndef AUTH_KEYS_H
#define AUTH_KEYS_H

#include <stddef.h>
#include "grant.h"

#define KEYS_DIGEST 32u
#define KEYS_MAX 16384u

struct keys;

struct keys *keys_new(void);
void keys_free(struct keys *keys); /* NULL is allowed */

enum keys_added { KEYS_ADDED, KEYS_TWICE, KEYS_TOO_MANY, KEYS_NO_MEMORY };

/* Copies `grant`, not what it points to. */
enum keys_added keys_add(struct keys *keys, const unsigned char digest[KEYS_DIGEST],
                         const struct grant *grant);

size_t keys_count(const struct keys *keys);

/* What the key with this digest grants, or NULL. Its time depends on the number of keys
 * only: all are compared, in full, without a branch. */
const struct grant *keys_find(const struct keys *keys,
                              const unsigned char digest[KEYS_DIGEST]);

/* Reads 64 hex digits. 0 or -1. */
int keys_read_hex(const char *text, size_t len, unsigned char digest[KEYS_DIGEST]);

#endif
