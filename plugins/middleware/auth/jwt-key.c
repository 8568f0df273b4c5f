/* SPDX-License-Identifier: MIT */
/* Keys of issuers, and signatures (RFC 7518 3). */
#include "jwt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#define HMAC_KEY_MIN 32u         /* RFC 7518 3.2: as long as the hash */
#define RSA_BITS_MIN 2048        /* RFC 7518 3.3 */
#define P256_BYTES 32u

const char *
jwt_key_secret(struct jwt_key *key, const unsigned char *secret, size_t len)
{
  if (len < HMAC_KEY_MIN)
    return "is too short: HS256 wants 32 bytes or more";
  if (len > INT32_MAX)
    return "is too long";
  key->secret = malloc(len);
  if (key->secret == NULL)
    return "out of memory";
  memcpy(key->secret, secret, len);
  key->secret_len = len;
  key->alg = JWT_HS256;
  return NULL;
}

/* The kind of a public key fixes what it is used for. */
static const char *
judge_public(struct jwt_key *key)
{
  char group[64] = "";
  size_t len;

  if (EVP_PKEY_is_a(key->public_key, "RSA")) {
    key->alg = JWT_RS256;
    return EVP_PKEY_get_bits(key->public_key) < RSA_BITS_MIN
             ? "holds an RSA key of less than 2048 bits" : NULL;
  }
  if (EVP_PKEY_is_a(key->public_key, "EC") &&
      EVP_PKEY_get_group_name(key->public_key, group, sizeof group, &len) == 1 &&
      (strcmp(group, "prime256v1") == 0 || strcmp(group, "P-256") == 0)) {
    key->alg = JWT_ES256;
    return NULL;
  }
  return "holds neither an RSA key nor an EC key on P-256";
}

const char *
jwt_key_file(struct jwt_key *key, const char *path)
{
  FILE *file = fopen(path, "re");
  const char *why;

  if (file == NULL)
    return strerror(errno);
  key->public_key = PEM_read_PUBKEY(file, NULL, NULL, NULL);
  (void)fclose(file);
  ERR_clear_error();
  if (key->public_key == NULL)
    return "holds no public key in PEM (-----BEGIN PUBLIC KEY-----)";
  why = judge_public(key);
  if (why != NULL)
    jwt_key_free(key);
  return why;
}

void
jwt_key_free(struct jwt_key *key)
{
  if (key->secret != NULL)
    OPENSSL_cleanse(key->secret, key->secret_len);
  free(key->secret);
  EVP_PKEY_free(key->public_key);
  *key = (struct jwt_key){ .alg = JWT_NONE };
}

/* --- signatures -------------------------------------------------------------------------- */

static bool
verify_hmac(const struct jwt *jwt, const struct jwt_key *key)
{
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned len = 0;

  return HMAC(EVP_sha256(), key->secret, (int)key->secret_len,
              (const unsigned char *)jwt->signed_part.ptr, jwt->signed_part.len, mac,
              &len) != NULL &&
         len == jwt->signature_len && CRYPTO_memcmp(mac, jwt->signature, len) == 0;
}

static bool
verify_digest(const struct jwt *jwt, const struct jwt_key *key, const unsigned char *signature,
              size_t len)
{
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  bool good;

  good = ctx != NULL &&
         EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key->public_key) == 1 &&
         EVP_DigestVerify(ctx, signature, len,
                          (const unsigned char *)jwt->signed_part.ptr,
                          jwt->signed_part.len) == 1;
  EVP_MD_CTX_free(ctx);
  ERR_clear_error();
  return good;
}

/* Two numbers of 32 bytes (RFC 7518 3.4); OpenSSL wants them in DER. */
static bool
verify_ecdsa(const struct jwt *jwt, const struct jwt_key *key)
{
  unsigned char *der = NULL;
  ECDSA_SIG *sig;
  BIGNUM *r, *s;
  bool good;
  int len;

  if (jwt->signature_len != 2 * P256_BYTES)
    return false;
  sig = ECDSA_SIG_new();
  r = BN_bin2bn(jwt->signature, (int)P256_BYTES, NULL);
  s = BN_bin2bn(jwt->signature + P256_BYTES, (int)P256_BYTES, NULL);
  if (sig == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(sig, r, s) != 1) {
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return false;
  }
  len = i2d_ECDSA_SIG(sig, &der);
  good = len > 0 && verify_digest(jwt, key, der, (size_t)len);
  OPENSSL_free(der);
  ECDSA_SIG_free(sig);
  return good;
}

bool
jwt_verify(const struct jwt *jwt, const struct jwt_key *key)
{
  if (jwt->alg != key->alg)
    return false;
  switch (key->alg) {
  case JWT_HS256: return verify_hmac(jwt, key);
  case JWT_RS256: return verify_digest(jwt, key, jwt->signature, jwt->signature_len);
  case JWT_ES256: return verify_ecdsa(jwt, key);
  case JWT_NONE: break;
  }
  return false;
}
