/* SPDX-License-Identifier: MIT */
/* Verified tokens. Only what has been verified comes in, so strangers can't push anything
 * out. */
#include "tokens.h"

#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>

int
tokens_init(struct tokens *tokens, size_t most)
{
  tokens->sets = most == 0 ? 0 : 1;
  while (tokens->sets != 0 && tokens->sets * TOKENS_WAYS < most)
    tokens->sets *= 2;
  tokens->clock = 0;
  tokens->places = NULL;
  if (tokens->sets == 0)
    return 0;
  tokens->places = calloc(tokens->sets * TOKENS_WAYS, sizeof *tokens->places);
  return tokens->places != NULL ? 0 : -1;
}

void
tokens_free(struct tokens *tokens)
{
  free(tokens->places);
  tokens->places = NULL;
  tokens->sets = 0;
}

static struct token *
set_of(const struct tokens *tokens, const unsigned char digest[KEYS_DIGEST])
{
  uint64_t h;

  memcpy(&h, digest, sizeof h);
  return tokens->places + (h & (tokens->sets - 1)) * TOKENS_WAYS;
}

const struct token *
tokens_get(struct tokens *tokens, const unsigned char digest[KEYS_DIGEST])
{
  struct token *set;

  if (tokens->sets == 0)
    return NULL;
  set = set_of(tokens, digest);
  for (unsigned i = 0; i < TOKENS_WAYS; i++) {
    if (set[i].until == 0 || CRYPTO_memcmp(set[i].digest, digest, KEYS_DIGEST) != 0)
      continue;
    set[i].used = ++tokens->clock;
    return &set[i];
  }
  return NULL;
}

void
tokens_put(struct tokens *tokens, const struct token *token, int64_t now)
{
  struct token *set, *place;

  if (tokens->sets == 0)
    return;
  set = place = set_of(tokens, token->digest);
  for (unsigned i = 0; i < TOKENS_WAYS; i++) {
    bool gone = set[i].until <= now, worst_gone = place->until <= now;

    if (gone != worst_gone ? gone : set[i].used < place->used)
      place = &set[i];
  }
  *place = *token;
  place->used = ++tokens->clock;
}
