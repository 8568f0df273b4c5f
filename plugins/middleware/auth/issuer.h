/* SPDX-License-Identifier: MIT */
/* An issuer of tokens: its key, and what a token of it must say. */
#ifndef AUTH_ISSUER_H
#define AUTH_ISSUER_H

#include "grant.h"
#include "jwt.h"

/* "ISSUER:SUBJECT" */
#define ISSUER_IDENTITY_MAX (GRANT_NAME_MAX + 1 + JWT_TEXT_MAX + 1)

struct issuer {
  const char *secret, *public_key; /* as configured */
  const char *kid, *issuer, *audience; /* wanted; NULL: any */
  int encoding;                  /* enum issuer_encoding, of the secret */
  uint64_t leeway_ms, max_age_ms;
  struct jwt_key key;
  struct grant grant;            /* its name is the issuer's */
};

enum issuer_encoding { ISSUER_TEXT, ISSUER_HEX, ISSUER_BASE64 };

/* Makes the key. NULL, or what is wrong with the option *about. Main thread. */
const char *issuer_open(struct issuer *issuer, const char **about);
void issuer_close(struct issuer *issuer);

enum issuer_says { ISSUER_NO, ISSUER_EXPIRED, ISSUER_YES };

/* Whether the token is good at `now` (seconds since 1970). YES: until *until, for a client
 * called `identity`. `now` before "nbf" or "iat" is NO, not EXPIRED. */
enum issuer_says issuer_check(const struct issuer *issuer, const struct jwt *jwt, int64_t now,
                              int64_t *until, char identity[ISSUER_IDENTITY_MAX]);

#endif
