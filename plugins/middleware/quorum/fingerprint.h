/* SPDX-License-Identifier: MIT */
/* Fingerprints of JSON values: two values that mean the same have the same one. What does not
 * matter: white space, the order of an object's members, escapes in strings, the case of hex
 * digits and the leading zeros of quantities up to 32 bytes ("0x00Ab" is "0xab"; "0x" is no
 * quantity), members that are null or are named in `ignore`.
 *
 * 128 bits of SipHash under a key of this instance, so that no node can make two values
 * collide. */
#ifndef QUORUM_FINGERPRINT_H
#define QUORUM_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/plugin.h>

struct fingerprint_key {
  uint64_t k[2];
};

struct fingerprint {
  uint64_t h[2];
};

/* A key from the system's random numbers. 0 or -1. Any thread. */
int fingerprint_key(struct fingerprint_key *key) EGW_MUST_CHECK;

/* The fingerprint of one valid JSON value. 0, or -1 when memory is short. One pass, no
 * recursion; memory only for the nesting and for strings with escapes. Any thread. */
int fingerprint(const struct fingerprint_key *key, struct egw_slice value,
                const struct egw_strings *ignore, struct fingerprint *out) EGW_MUST_CHECK;

static inline bool
fingerprint_same(const struct fingerprint *a, const struct fingerprint *b)
{
  return a->h[0] == b->h[0] && a->h[1] == b->h[1];
}

#endif
