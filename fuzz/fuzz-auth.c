/* SPDX-License-Identifier: MIT */
/* What a stranger sends to be let in: the field Authorization, and the token in it. The
 * first byte of the input chooses what the rest is. A token that gets as far as its claims
 * was not signed by anyone here, so these must stand anything too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/buf.h>
#include "../plugins/middleware/auth/credential.h"
#include "../plugins/middleware/auth/issuer.h"
#include "../plugins/middleware/auth/keyfile.h"

static void
token(struct egw_slice text)
{
  static unsigned char secret[32];
  struct issuer issuer = { .grant.name = "x", .audience = "gw", .leeway_ms = 1000,
                           .max_age_ms = 1000,
                           .key = { .alg = JWT_HS256, .secret = secret, .secret_len = 32 } };
  char identity[ISSUER_IDENTITY_MAX];
  struct jwt_claims claims;
  struct jwt jwt;
  int64_t until;

  if (jwt_parse(text, &jwt) < 0)
    return;
  if (jwt.payload_len > JWT_MAX || jwt.signature_len > sizeof jwt.signature ||
      jwt.kid_len > sizeof jwt.kid || jwt.alg == JWT_NONE || !jwt_looks_like(text))
    abort();
  (void)issuer_check(&issuer, &jwt, 1800000000, &until, identity);
  if (jwt_claims(&jwt, &claims) == 0)
    (void)jwt_is_for(&claims, "gw");
}

/* The payload alone, without base64 around it, which the fuzzer has a hard time with. */
static void
payload(struct egw_slice text)
{
  struct jwt jwt = { .alg = JWT_HS256, .payload_len = text.len };
  struct jwt_claims claims;

  if (text.len > sizeof jwt.payload)
    return;
  memcpy(jwt.payload, text.ptr, text.len);
  if (jwt_claims(&jwt, &claims) < 0)
    return;
  (void)jwt_is_for(&claims, "gw");
  for (long i = 0; i < claims.sub_len; i++)
    if ((unsigned char)claims.sub[i] < ' ')
      abort();
}

static void
keyfile(struct egw_slice text)
{
  char *copy = malloc(text.len + 1), why[KEYFILE_WHY];
  struct keys *keys = keys_new();

  if (copy == NULL || keys == NULL)
    abort();
  memcpy(copy, text.ptr, text.len);
  copy[text.len] = '\0';
  keyfile_free(keyfile_parse(copy, keys, why));
  keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct egw_slice none = { NULL, 0 }, text;
  struct credential credential;

  if (size < 1)
    return 0;
  text = (struct egw_slice){ (const char *)data + 1, size - 1 };
  switch (data[0]) {
  case 't': token(text); return 0;
  case 'p': payload(text); return 0;
  case 'k': keyfile(text); return 0;
  default: break;
  }
  credential_read(&credential, data[0] == 'x' ? none : text, data[0] == 'x' ? text : none,
                  none);
  if (credential.kind >= CREDENTIAL_KEY && credential.text.len == 0)
    abort();
  if (credential.kind == CREDENTIAL_BEARER)
    token(credential.text);
  credential_forget(&credential);
  return 0;
}
