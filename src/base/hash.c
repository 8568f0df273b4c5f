/* SPDX-License-Identifier: MIT */
/* SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF") under a key of this
 * process. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base/map.h"

static uint64_t hash_key[2];
static pthread_once_t hash_once = PTHREAD_ONCE_INIT;

static void
hash_make_key(void)
{
  char *at = (char *)hash_key;
  size_t left = sizeof(hash_key);
  struct timespec ts;
  ssize_t n;

  while (left > 0) {
    n = getrandom(at, left, 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    at += n;
    left -= (size_t)n;
  }
  if (left > 0) { /* no such system call: the clock and the address layout must do */
    clock_gettime(CLOCK_MONOTONIC, &ts);
    hash_key[0] ^= (uint64_t)ts.tv_nsec * UINT64_C(0x9e3779b97f4a7c15);
    hash_key[1] ^= (uint64_t)(uintptr_t)&ts ^ (uint64_t)getpid() << 32;
  }
}

static inline uint64_t
hash_rotl(uint64_t x, unsigned n)
{
  return x << n | x >> (64 - n);
}

static inline void
hash_round(uint64_t v[4])
{
  v[0] += v[1];
  v[1] = hash_rotl(v[1], 13) ^ v[0];
  v[0] = hash_rotl(v[0], 32);
  v[2] += v[3];
  v[3] = hash_rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = hash_rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = hash_rotl(v[1], 17) ^ v[2];
  v[2] = hash_rotl(v[2], 32);
}

/* Little-endian, as the function is defined; `n` of up to 8 bytes. */
static inline uint64_t
hash_load(const unsigned char *p, size_t n)
{
  uint64_t x = 0;
  size_t i;

  for (i = 0; i < n; i++)
    x |= (uint64_t)p[i] << (8 * i);
  return x;
}

uint64_t
hash_bytes_keyed(const void *bytes, size_t len, const uint64_t key[2])
{
  uint64_t v[4] = {
    key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
    key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573),
  };
  const unsigned char *p = bytes;
  size_t left = len;
  uint64_t m;

  for (; left >= 8; left -= 8, p += 8) {
    m = hash_load(p, 8);
    v[3] ^= m;
    hash_round(v);
    hash_round(v);
    v[0] ^= m;
  }
  m = (uint64_t)(len & 0xff) << 56 | hash_load(p, left);
  v[3] ^= m;
  hash_round(v);
  hash_round(v);
  v[0] ^= m;
  v[2] ^= 0xff;
  hash_round(v);
  hash_round(v);
  hash_round(v);
  hash_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t
hash_bytes(const void *bytes, size_t len)
{
  pthread_once(&hash_once, hash_make_key);
  return hash_bytes_keyed(bytes, len, hash_key);
}

uint64_t
hash_u64(uint64_t x)
{
  pthread_once(&hash_once, hash_make_key);
  x ^= hash_key[0];
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}
