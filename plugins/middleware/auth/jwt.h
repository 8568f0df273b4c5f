/* SPDX-License-Identifier: MIT */
/* JSON Web Tokens: JWS in its compact form (RFC 7515) with claims (RFC 7519).
 *
 * What a token says about its algorithm only has to agree with the issuer's key, whose kind
 * fixes the algorithm: "none" does not exist here, and a public key is never a secret of
 * HMAC (RFC 8725 3.1). Cryptography is OpenSSL's. */
#ifndef AUTH_JWT_H
#define AUTH_JWT_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#define JWT_MAX 8192u            /* bytes of a token */
#define JWT_TEXT_MAX 128u        /* of the key's id, and of the subject */

enum jwt_alg { JWT_NONE, JWT_HS256, JWT_RS256, JWT_ES256 };

/* A token taken apart. Nothing in it has been verified. */
struct jwt {
  struct egw_slice signed_part;  /* in the token: header and payload as they were sent */
  enum jwt_alg alg;
  size_t kid_len;                /* 0: none */
  char kid[JWT_TEXT_MAX];
  size_t signature_len, payload_len;
  unsigned char signature[1024]; /* as for an RSA key of 8192 bits */
  unsigned char payload[JWT_MAX]; /* JSON, or not */
};

/* Whether text looks like a token: three parts with points between. */
bool jwt_looks_like(struct egw_slice text);

/* 0, or -1: it is no token, its algorithm is none of these, or it wants something
 * understood that is not ("crit"). */
int jwt_parse(struct egw_slice token, struct jwt *out);

/* --- verifying --------------------------------------------------------------------------- */

struct evp_pkey_st;
struct jwt_key {
  enum jwt_alg alg;
  unsigned char *secret;         /* of HS256 */
  size_t secret_len;
  struct evp_pkey_st *public_key;
};

/* A key from a secret (copied), or from the PEM file at `path`: RSA of 2048 bits or more,
 * or EC on P-256. NULL, or what is wrong. Main thread. */
const char *jwt_key_secret(struct jwt_key *key, const unsigned char *secret, size_t len);
const char *jwt_key_file(struct jwt_key *key, const char *path);
void jwt_key_free(struct jwt_key *key);

/* Whether the token was signed by the key. */
bool jwt_verify(const struct jwt *jwt, const struct jwt_key *key);

/* --- claims ------------------------------------------------------------------------------ */

#define JWT_NO_TIME INT64_MIN

struct jwt_claims {
  int64_t exp, nbf, iat;         /* seconds since 1970; JWT_NO_TIME: the claim is missing */
  struct egw_slice iss, aud;     /* raw JSON, or missing; in jwt->payload */
  long sub_len;                  /* -1: missing */
  char sub[JWT_TEXT_MAX];        /* no control characters; not NUL-terminated */
};

/* 0, or -1: the payload is no object, or a claim is there twice or is none of its kind. */
int jwt_claims(const struct jwt *jwt, struct jwt_claims *out);

/* Whether "aud", text or a list, names the audience. */
bool jwt_is_for(const struct jwt_claims *claims, const char *audience);

#endif
