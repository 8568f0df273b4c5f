/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648), read strictly: one text for one value. */
#ifndef AUTH_BASE64_H
#define AUTH_BASE64_H

#include <stddef.h>
#include <ethrpc-gw/buf.h>

enum base64 {
  BASE64_PLAIN, /* section 4: '+' and '/', padded to a multiple of 4 */
  BASE64_URL    /* section 5: '-' and '_', without padding, as RFC 7515 wants it */
};

/* Decodes into `out` (`cap` bytes). How many they are, or -1: a character of neither alphabet,
 * wrong padding, bits left over that are not 0, or no room. */
long base64_decode(struct egw_slice text, enum base64 form, unsigned char *out, size_t cap);

#endif
