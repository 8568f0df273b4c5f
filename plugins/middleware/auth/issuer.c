/* SPDX-License-Identifier: MIT */
/* An issuer of tokens. */
#include "issuer.h"

#include <stdio.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include <openssl/crypto.h>
#include "base64.h"

#define SECRET_MAX 4096u

/* --- the key ----------------------------------------------------------------------------- */

static int
nibble(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* With or without "0x" in front, as the secrets that nodes share with consensus clients. */
static long
decode_hex(const char *text, unsigned char *out, size_t cap)
{
  size_t n = 0;

  if (strncmp(text, "0x", 2) == 0)
    text += 2;
  for (; *text != '\0'; text += 2) {
    int high = nibble(text[0]), low = high < 0 ? -1 : nibble(text[1]);

    if (low < 0 || n == cap)
      return -1;
    out[n++] = (unsigned char)(high << 4 | low);
  }
  return (long)n;
}

/* Either alphabet, with or without padding. */
static long
decode_base64(const char *text, unsigned char *out, size_t cap)
{
  struct egw_slice all = { text, strlen(text) };
  long n = base64_decode(all, BASE64_PLAIN, out, cap);

  return n >= 0 ? n : base64_decode(all, BASE64_URL, out, cap);
}

static const char *
open_secret(struct issuer *issuer)
{
  unsigned char bytes[SECRET_MAX];
  size_t len = strlen(issuer->secret);
  const char *why;
  long n;

  if (issuer->encoding == ISSUER_TEXT)
    return jwt_key_secret(&issuer->key, (const unsigned char *)issuer->secret, len);
  n = issuer->encoding == ISSUER_HEX ? decode_hex(issuer->secret, bytes, sizeof bytes)
                                     : decode_base64(issuer->secret, bytes, sizeof bytes);
  why = n < 0 ? "is not written in its secret_encoding"
              : jwt_key_secret(&issuer->key, bytes, (size_t)n);
  OPENSSL_cleanse(bytes, sizeof bytes);
  return why;
}

const char *
issuer_open(struct issuer *issuer, const char **about)
{
  const char *path = issuer->public_key;

  *about = issuer->secret != NULL ? "secret" : "public_key";
  if ((issuer->secret == NULL) == (path == NULL)) {
    *about = NULL;
    return "either secret or public_key must be given";
  }
  if (issuer->secret != NULL)
    return open_secret(issuer);
  if (strncmp(path, "file:", 5) == 0)
    path += 5;
  return jwt_key_file(&issuer->key, path);
}

void
issuer_close(struct issuer *issuer)
{
  jwt_key_free(&issuer->key);
}

/* --- claims ------------------------------------------------------------------------------ */

static bool
is_meant(const struct issuer *issuer, const struct jwt_claims *claims)
{
  if (issuer->issuer != NULL &&
      (claims->iss.ptr == NULL || !egw_json_equals(claims->iss, issuer->issuer)))
    return false;
  /* who is not among those a token is for must refuse it (RFC 7519 4.1.3): without an audience
   * configured that is all who are named */
  if (issuer->audience == NULL)
    return claims->aud.ptr == NULL;
  return jwt_is_for(claims, issuer->audience);
}

/* In seconds, rounded up. */
static int64_t
seconds(uint64_t ms)
{
  return (int64_t)(ms / 1000 + (ms % 1000 != 0));
}

/* A token ends by "exp", or by its age where that is limited; one that never ends is
 * refused. */
static enum issuer_says
check_times(const struct issuer *issuer, const struct jwt_claims *claims, int64_t now,
            int64_t *until)
{
  int64_t leeway = seconds(issuer->leeway_ms), age = seconds(issuer->max_age_ms);

  if ((claims->nbf != JWT_NO_TIME && now < claims->nbf - leeway) ||
      (claims->iat != JWT_NO_TIME && now < claims->iat - leeway))
    return ISSUER_NO;
  *until = INT64_MAX;
  if (claims->exp != JWT_NO_TIME)
    *until = claims->exp + leeway;
  if (age > 0 && claims->iat == JWT_NO_TIME)
    return ISSUER_NO;
  if (age > 0 && claims->iat + age + leeway < *until)
    *until = claims->iat + age + leeway;
  if (*until == INT64_MAX)
    return ISSUER_NO;
  return now < *until ? ISSUER_YES : ISSUER_EXPIRED;
}

enum issuer_says
issuer_check(const struct issuer *issuer, const struct jwt *jwt, int64_t now, int64_t *until,
             char identity[ISSUER_IDENTITY_MAX])
{
  struct jwt_claims claims;
  enum issuer_says says;

  if (issuer->kid != NULL && (strlen(issuer->kid) != jwt->kid_len ||
                              memcmp(issuer->kid, jwt->kid, jwt->kid_len) != 0))
    return ISSUER_NO;
  if (!jwt_verify(jwt, &issuer->key) || jwt_claims(jwt, &claims) < 0 ||
      !is_meant(issuer, &claims))
    return ISSUER_NO;
  says = check_times(issuer, &claims, now, until);
  if (claims.sub_len > 0)
    (void)snprintf(identity, ISSUER_IDENTITY_MAX, "%s:%.*s", issuer->grant.name,
                   (int)claims.sub_len, claims.sub);
  else
    (void)snprintf(identity, ISSUER_IDENTITY_MAX, "%s", issuer->grant.name);
  return says;
}
