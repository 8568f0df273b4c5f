/* SPDX-License-Identifier: MIT */
/* What the tests of the middleware `auth` share: keys of issuers, and tokens signed by
 * them. */
#ifndef T_UNIT_AUTH_KIT_H
#define T_UNIT_AUTH_KIT_H

#include "../lib/tap.h"

#include <time.h>
#include <unistd.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <ethrpc-gw/buf.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define SECRET "a secret that is as long as a hash"

static inline struct egw_slice
slice_of(const char *text)
{
  return (struct egw_slice){ text, strlen(text) };
}

/* base64url without padding; into a buffer that is large enough. */
static inline size_t
base64url(const void *bytes, size_t len, char *out)
{
  int n = EVP_EncodeBlock((unsigned char *)out, bytes, (int)len);

  while (n > 0 && out[n - 1] == '=')
    n--;
  for (int i = 0; i < n; i++)
    out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
  out[n] = '\0';
  return (size_t)n;
}

static inline const char *
hex_of_sha256(const char *text)
{
  static char hex[65];
  unsigned char digest[32];

  EVP_Digest(text, strlen(text), digest, NULL, EVP_sha256(), NULL);
  for (size_t i = 0; i < sizeof digest; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  return hex;
}

/* Signs `input` with a private key, or by HMAC with `secret`. How long the signature is. */
static inline size_t
sign(EVP_PKEY *key, const char *secret, const char *input, unsigned char out[1024])
{
  EVP_MD_CTX *ctx;
  size_t len = 1024;
  unsigned mac_len;

  if (key == NULL) {
    HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)input,
         strlen(input), out, &mac_len);
    return mac_len;
  }
  ctx = EVP_MD_CTX_new();
  EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key);
  EVP_DigestSign(ctx, out, &len, (const unsigned char *)input, strlen(input));
  EVP_MD_CTX_free(ctx);
  if (EVP_PKEY_is_a(key, "EC")) {
    const unsigned char *der = out;
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)len);

    BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + 32, 32);
    ECDSA_SIG_free(sig);
    len = 64;
  }
  return len;
}

/* A token of any header and payload; valid until the next but seven. */
static inline const char *
token_of(EVP_PKEY *key, const char *secret, const char *header, const char *payload)
{
  static char texts[8][16384];
  static unsigned next;
  char *text = texts[next++ % 8];
  unsigned char signature[1024];
  size_t len = base64url(header, strlen(header), text);

  text[len++] = '.';
  len += base64url(payload, strlen(payload), text + len);
  text[len] = '\0';
  base64url(signature, sign(key, secret, text, signature), text + len + 1);
  text[len] = '.';
  return text;
}

/* The public half in a PEM file, which the caller removes. */
static inline const char *
public_file(EVP_PKEY *key, const char *name)
{
  static char paths[4][200];
  static unsigned next;
  char *path = paths[next++ % 4];
  const char *tmp = getenv("TMPDIR");
  FILE *file;

  snprintf(path, sizeof paths[0], "%s/egw-auth-%ld-%s.pem", tmp == NULL ? "/tmp" : tmp,
           (long)getpid(), name);
  file = fopen(path, "we");
  if (file == NULL || PEM_write_PUBKEY(file, key) != 1) {
    printf("Bail out! %s\n", path);
    exit(1);
  }
  fclose(file);
  return path;
}

#endif
