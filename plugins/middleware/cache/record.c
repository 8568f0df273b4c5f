/* SPDX-License-Identifier: MIT */
/* Records: see record.h. */
#include "record.h"

#include <stdlib.h>
#include <string.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#define VERSION 1
#define NONCE_AT 20u
#define NONCE_BYTES 12u
#define TAG_AT (NONCE_AT + NONCE_BYTES)
#define TAG_BYTES 16u

struct record_codec {
  EVP_MAC *mac;
  EVP_MAC_CTX *begun;           /* keyed; each use is of a copy */
};

static const unsigned char head[8] = { 'E', 'G', 'W', 'C', VERSION, 0, 0, 0 };

/* --- the tag ----------------------------------------------------------------------------- */

/* 16 bytes of a hash of the secret; zeros without one. */
static bool
make_key(const char *secret, unsigned char key[TAG_BYTES])
{
  unsigned char digest[RECORD_DIGEST];

  memset(key, 0, TAG_BYTES);
  if (secret == NULL)
    return true;
  if (record_digest((struct egw_slice){ secret, strlen(secret) }, digest) < 0)
    return false;
  memcpy(key, digest, TAG_BYTES);
  OPENSSL_cleanse(digest, sizeof digest);
  return true;
}

struct record_codec *
record_codec_new(const char *secret)
{
  struct record_codec *codec = calloc(1, sizeof(*codec));
  unsigned char key[TAG_BYTES];
  char cipher[] = "AES-128-GCM";
  OSSL_PARAM params[2] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, cipher, 0),
                           OSSL_PARAM_construct_end() };
  bool fine = codec != NULL && make_key(secret, key);

  if (fine)
    codec->mac = EVP_MAC_fetch(NULL, "GMAC", NULL);
  if (fine && codec->mac != NULL)
    codec->begun = EVP_MAC_CTX_new(codec->mac);
  fine = fine && codec->begun != NULL &&
         EVP_MAC_init(codec->begun, key, sizeof key, params) == 1;
  OPENSSL_cleanse(key, sizeof key);
  if (fine)
    return codec;
  record_codec_free(codec);
  return NULL;
}

void
record_codec_free(struct record_codec *codec)
{
  if (codec == NULL)
    return;
  EVP_MAC_CTX_free(codec->begun);
  EVP_MAC_free(codec->mac);
  free(codec);
}

/* Over the head, and what stands behind the tag, under the nonce in between. */
static bool
make_tag(const struct record_codec *codec, const char *record, struct egw_slice key,
         struct egw_slice value, unsigned char tag[TAG_BYTES])
{
  EVP_MAC_CTX *ctx = EVP_MAC_CTX_dup(codec->begun);
  unsigned char nonce[NONCE_BYTES];
  OSSL_PARAM params[2] = { OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce,
                                                             sizeof nonce),
                           OSSL_PARAM_construct_end() };
  size_t len = 0;
  bool fine;

  memcpy(nonce, record + NONCE_AT, sizeof nonce);
  fine = ctx != NULL && EVP_MAC_init(ctx, NULL, 0, params) == 1 &&
         EVP_MAC_update(ctx, (const unsigned char *)record, NONCE_AT) == 1 &&
         EVP_MAC_update(ctx, (const unsigned char *)key.ptr, key.len) == 1 &&
         EVP_MAC_update(ctx, (const unsigned char *)value.ptr, value.len) == 1 &&
         EVP_MAC_final(ctx, tag, &len, TAG_BYTES) == 1 && len == TAG_BYTES;
  EVP_MAC_CTX_free(ctx);
  return fine;
}

int
record_digest(struct egw_slice key, unsigned char digest[RECORD_DIGEST])
{
  return EVP_Digest(key.ptr, key.len, digest, NULL, EVP_sha256(), NULL) == 1 ? 0 : -1;
}

/* --- bytes ------------------------------------------------------------------------------- */

static void
put_number(char *out, uint64_t n, unsigned bytes)
{
  unsigned i;

  for (i = 0; i < bytes; i++)
    out[i] = (char)(n >> 8 * i & 0xff);
}

static uint64_t
get_number(const char *at, unsigned bytes)
{
  uint64_t n = 0;
  unsigned i;

  for (i = 0; i < bytes; i++)
    n |= (uint64_t)(unsigned char)at[i] << 8 * i;
  return n;
}

size_t
record_size(size_t key_len, size_t value_len)
{
  if (key_len > UINT32_MAX || value_len > SIZE_MAX / 2)
    return 0;
  return RECORD_HEADER + key_len + value_len;
}

int
record_write(const struct record_codec *codec, char *out, struct egw_slice key,
             struct egw_slice value)
{
  memcpy(out, head, sizeof head);
  put_number(out + 8, key.len, 4);
  put_number(out + 12, value.len, 8);
  if (RAND_bytes((unsigned char *)out + NONCE_AT, NONCE_BYTES) != 1)
    return -1;
  memcpy(out + RECORD_HEADER, key.ptr, key.len);
  memcpy(out + RECORD_HEADER + key.len, value.ptr, value.len);
  return make_tag(codec, out, key, value, (unsigned char *)out + TAG_AT) ? 0 : -1;
}

bool
record_read(const struct record_codec *codec, struct egw_slice bytes, struct egw_slice key,
            struct egw_slice *value)
{
  unsigned char tag[TAG_BYTES];
  size_t rest;

  if (bytes.len < RECORD_HEADER || memcmp(bytes.ptr, head, sizeof head) != 0)
    return false;
  rest = bytes.len - RECORD_HEADER;
  if (get_number(bytes.ptr + 8, 4) != key.len || rest < key.len ||
      get_number(bytes.ptr + 12, 8) != rest - key.len ||
      memcmp(bytes.ptr + RECORD_HEADER, key.ptr, key.len) != 0)
    return false;
  *value = (struct egw_slice){ bytes.ptr + RECORD_HEADER + key.len, rest - key.len };
  return make_tag(codec, bytes.ptr, key, *value, tag) &&
         CRYPTO_memcmp(tag, bytes.ptr + TAG_AT, TAG_BYTES) == 0;
}
