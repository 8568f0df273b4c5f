/* SPDX-License-Identifier: MIT */
/* Tokens that were verified, by their SHA-256, until they expire: so a client pays for its
 * signature once and not for each call. Of one worker; bounded. */
#ifndef AUTH_TOKENS_H
#define AUTH_TOKENS_H

#include "issuer.h"
#include "keys.h"

struct token {
  unsigned char digest[KEYS_DIGEST];
  int64_t until;                 /* seconds since 1970; 0: the place is free */
  uint64_t used;                 /* a count: the smallest was used longest ago */
  const struct issuer *issuer;
  char identity[ISSUER_IDENTITY_MAX];
};

struct tokens {
  struct token *places;
  size_t sets;                   /* of TOKENS_WAYS places; a power of two, or 0 */
  uint64_t clock;
};

#define TOKENS_WAYS 4u

/* Room for at least `most` (0: keeps none). 0 or -1. */
int tokens_init(struct tokens *tokens, size_t most);
void tokens_free(struct tokens *tokens);

/* The token, expired or not, or NULL. Valid until the next tokens_put(). */
const struct token *tokens_get(struct tokens *tokens, const unsigned char digest[KEYS_DIGEST]);

/* Keeps a copy in place of what expired, or was used longest ago, of four. */
void tokens_put(struct tokens *tokens, const struct token *token, int64_t now);

#endif
