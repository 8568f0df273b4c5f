/* SPDX-License-Identifier: MIT */
/* A kept answer outside of this process: on disk or in Redis.
 *
 * What comes back from there is not trusted. A record carries its whole key, the lengths
 * and a tag over all of it, and is taken only if each byte is accounted for:
 *
 *   "EGWC" | version (1) | 0 0 0 | key length (4) | value length (8) | nonce (12) | tag (16)
 *   | key | value
 *
 * Numbers are little-endian. The tag is a GMAC (AES-128-GCM, NIST SP 800-38D, over data that
 * is not encrypted; 2 GB/s and more) under a random nonce and a key that is made of a secret:
 * with one, only those that know it can make records; without (all zeros) it is a checksum.
 *
 * Any thread; a codec is const once made. */
#ifndef CACHE_RECORD_H
#define CACHE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#define RECORD_HEADER 48u
#define RECORD_DIGEST 32u

struct record_codec;

/* `secret`: or NULL. NULL: memory is short, or OpenSSL has no GMAC. */
struct record_codec *record_codec_new(const char *secret);
void record_codec_free(struct record_codec *codec);

/* SHA-256 of the key: where its record is kept. -1: memory is short. */
int record_digest(struct egw_slice key, unsigned char digest[RECORD_DIGEST]) EGW_MUST_CHECK;

/* Bytes of a record; 0: too long for one. */
size_t record_size(size_t key_len, size_t value_len);

/* Writes a record of record_size() bytes at `out`. -1: memory is short. */
int record_write(const struct record_codec *codec, char *out, struct egw_slice key,
                 struct egw_slice value) EGW_MUST_CHECK;

/* Whether `bytes` are a whole, undamaged record of this key; *value gets its part of them. */
bool record_read(const struct record_codec *codec, struct egw_slice bytes,
                 struct egw_slice key, struct egw_slice *value);

#endif
