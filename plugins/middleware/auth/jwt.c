/* SPDX-License-Identifier: MIT */
/* Taking a token apart, and its claims. */
#include "jwt.h"

#include <string.h>
#include <ethrpc-gw/json.h>
#include "base64.h"

#define HEADER_MAX 1024u

/* --- the parts --------------------------------------------------------------------------- */

struct parts {
  struct egw_slice header, payload, signature;
};

static int
split(struct egw_slice token, struct parts *out)
{
  const char *end = token.ptr + token.len, *first, *second;

  if (token.len == 0)
    return -1;
  first = memchr(token.ptr, '.', token.len);
  if (first == NULL)
    return -1;
  second = memchr(first + 1, '.', (size_t)(end - first - 1));
  if (second == NULL || memchr(second + 1, '.', (size_t)(end - second - 1)) != NULL)
    return -1;
  out->header = (struct egw_slice){ token.ptr, (size_t)(first - token.ptr) };
  out->payload = (struct egw_slice){ first + 1, (size_t)(second - first - 1) };
  out->signature = (struct egw_slice){ second + 1, (size_t)(end - second - 1) };
  return 0;
}

bool
jwt_looks_like(struct egw_slice text)
{
  struct parts parts;

  return split(text, &parts) == 0;
}

static enum jwt_alg
alg_of(struct egw_slice value)
{
  if (egw_json_equals(value, "HS256"))
    return JWT_HS256;
  if (egw_json_equals(value, "RS256"))
    return JWT_RS256;
  return egw_json_equals(value, "ES256") ? JWT_ES256 : JWT_NONE;
}

/* RFC 7515 4. A name that is there twice must be refused, or the last one taken. */
static int
read_header(struct egw_slice json, struct jwt *out)
{
  struct egw_slice key, value;
  bool has_alg = false, has_kid = false;
  size_t cursor = 0;

  if (!egw_json_valid(json) || egw_json_kind(json) != EGW_JSON_OBJECT)
    return -1;
  while (egw_json_next(json, &cursor, &key, &value)) {
    if (egw_json_equals(key, "crit"))
      return -1;
    if (egw_json_equals(key, "alg")) {
      if (has_alg)
        return -1;
      has_alg = true;
      out->alg = alg_of(value);
    } else if (egw_json_equals(key, "kid")) {
      long len = egw_json_string(value, out->kid, sizeof out->kid);

      if (has_kid || len <= 0)
        return -1;
      has_kid = true;
      out->kid_len = (size_t)len;
    }
  }
  return out->alg == JWT_NONE ? -1 : 0;
}

int
jwt_parse(struct egw_slice token, struct jwt *out)
{
  unsigned char header[HEADER_MAX];
  struct parts parts;
  long n, signature_len, payload_len;

  out->alg = JWT_NONE;
  out->kid_len = out->signature_len = out->payload_len = 0;
  if (token.len > JWT_MAX || split(token, &parts) < 0)
    return -1;
  n = base64_decode(parts.header, BASE64_URL, header, sizeof header);
  if (n <= 0 || read_header((struct egw_slice){ (const char *)header, (size_t)n }, out) < 0)
    return -1;
  payload_len = base64_decode(parts.payload, BASE64_URL, out->payload, sizeof out->payload);
  signature_len =
      base64_decode(parts.signature, BASE64_URL, out->signature, sizeof out->signature);
  if (payload_len <= 0 || signature_len <= 0)
    return -1;
  out->payload_len = (size_t)payload_len;
  out->signature_len = (size_t)signature_len;
  out->signed_part =
      (struct egw_slice){ token.ptr, parts.header.len + 1 + parts.payload.len };
  return 0;
}

/* --- claims ------------------------------------------------------------------------------ */

/* NumericDate (RFC 7519 2): seconds, perhaps with a fraction, which is cut off. */
static int
read_time(struct egw_slice value, int64_t *out)
{
  struct egw_slice whole = value;
  const char *point;
  uint64_t seconds;

  if (egw_json_kind(value) != EGW_JSON_NUMBER || memchr(value.ptr, 'e', value.len) != NULL ||
      memchr(value.ptr, 'E', value.len) != NULL)
    return -1;
  point = memchr(value.ptr, '.', value.len);
  if (point != NULL)
    whole.len = (size_t)(point - value.ptr);
  /* so far away that sums with a leeway can't be too large */
  if (egw_json_u64(whole, &seconds) < 0 || seconds > (uint64_t)1 << 56)
    return -1;
  *out = (int64_t)seconds;
  return 0;
}

static int
read_subject(struct egw_slice value, struct jwt_claims *out)
{
  out->sub_len = egw_json_string(value, out->sub, sizeof out->sub);
  if (out->sub_len <= 0)
    return -1;
  for (long i = 0; i < out->sub_len; i++)
    if ((unsigned char)out->sub[i] < ' ' || out->sub[i] == 0x7f)
      return -1;
  return 0;
}

enum claim { CLAIM_EXP, CLAIM_NBF, CLAIM_IAT, CLAIM_ISS, CLAIM_AUD, CLAIM_SUB, CLAIM_COUNT };

static int
read_claim(enum claim claim, struct egw_slice value, struct jwt_claims *out)
{
  switch (claim) {
  case CLAIM_EXP: return read_time(value, &out->exp);
  case CLAIM_NBF: return read_time(value, &out->nbf);
  case CLAIM_IAT: return read_time(value, &out->iat);
  case CLAIM_ISS: out->iss = value; return egw_json_kind(value) == EGW_JSON_STRING ? 0 : -1;
  case CLAIM_AUD: out->aud = value; return 0;
  case CLAIM_SUB: return read_subject(value, out);
  case CLAIM_COUNT: break;
  }
  return 0;
}

int
jwt_claims(const struct jwt *jwt, struct jwt_claims *out)
{
  static const char *const names[CLAIM_COUNT] = { "exp", "nbf", "iat", "iss", "aud", "sub" };
  struct egw_slice json = { (const char *)jwt->payload, jwt->payload_len }, key, value;
  bool seen[CLAIM_COUNT] = { false };
  size_t cursor = 0;

  *out = (struct jwt_claims){ .exp = JWT_NO_TIME, .nbf = JWT_NO_TIME, .iat = JWT_NO_TIME,
                              .sub_len = -1 };
  if (!egw_json_valid(json) || egw_json_kind(json) != EGW_JSON_OBJECT)
    return -1;
  while (egw_json_next(json, &cursor, &key, &value)) {
    unsigned i = 0;

    while (i < CLAIM_COUNT && !egw_json_equals(key, names[i]))
      i++;
    if (i == CLAIM_COUNT)
      continue;
    if (seen[i] || read_claim((enum claim)i, value, out) < 0)
      return -1;
    seen[i] = true;
  }
  return 0;
}

bool
jwt_is_for(const struct jwt_claims *claims, const char *audience)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  if (egw_json_kind(claims->aud) == EGW_JSON_STRING)
    return egw_json_equals(claims->aud, audience);
  if (egw_json_kind(claims->aud) != EGW_JSON_ARRAY)
    return false;
  while (egw_json_next(claims->aud, &cursor, &key, &value))
    if (egw_json_equals(value, audience))
      return true;
  return false;
}
