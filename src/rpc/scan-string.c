/* SPDX-License-Identifier: MIT */
/* The loops that skip the plain bytes of strings, in three flavours, and the scanner's loop
 * compiled around each. Nearly all bytes of Ethereum JSON are plain bytes of strings, so this
 * is where a large reply spends its time. */
#include <string.h>
#include "rpc/scan-string.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SCAN_X86 1
#include <immintrin.h>
#else
#define SCAN_X86 0
#endif

#define SCAN_INLINE static inline __attribute__((always_inline))

typedef enum scan_status scan_run_fn(struct scan *, const unsigned char *, size_t, size_t *);
typedef const unsigned char *scan_plain_fn(const unsigned char *, const unsigned char *);

static const char scan_literals[3][6] = { "true", "false", "null" };

/* --- what the loop asks of single bytes ---------------------------------------------- */

SCAN_INLINE bool
scan_is_space(unsigned char c)
{
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

SCAN_INLINE bool
scan_is_digit(unsigned char c)
{
  return c >= '0' && c <= '9';
}

SCAN_INLINE bool
scan_is_hex(unsigned char c)
{
  return scan_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* RFC 3629 section 4: how many bytes follow the first one, and the range of the second. */
SCAN_INLINE bool
scan_utf8_lead(unsigned char c, uint8_t *left, uint8_t *lo, uint8_t *hi)
{
  *lo = 0x80;
  *hi = 0xbf;
  if (c >= 0xc2 && c <= 0xdf) {
    *left = 1;
  } else if (c >= 0xe0 && c <= 0xef) {
    *left = 2;
    if (c == 0xe0)
      *lo = 0xa0; /* no overlong forms */
    if (c == 0xed)
      *hi = 0x9f; /* no surrogates */
  } else if (c >= 0xf0 && c <= 0xf4) {
    *left = 3;
    if (c == 0xf0)
      *lo = 0x90;
    if (c == 0xf4)
      *hi = 0x8f; /* nothing above U+10FFFF */
  } else {
    return false;
  }
  return true;
}

/* The stack: bit depth - 1 is set while the container at `depth` is an object. */
SCAN_INLINE bool
scan_in_object(const struct scan *s, unsigned depth)
{
  unsigned i = depth - 1;

  return depth > 0 && (s->stack[i / 64] >> (i % 64) & 1) != 0;
}

SCAN_INLINE void
scan_push(struct scan *s, unsigned depth, bool object)
{
  uint64_t bit = UINT64_C(1) << (depth % 64);

  if (object)
    s->stack[depth / 64] |= bit;
  else
    s->stack[depth / 64] &= ~bit;
}

/* --- scalar -------------------------------------------------------------------------- */

SCAN_INLINE bool
scan_is_plain(unsigned char c)
{
  return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

#define SCAN_ONES UINT64_C(0x0101010101010101)
#define SCAN_TOPS UINT64_C(0x8080808080808080)

/* Eight bytes at a time: the top bit of each byte of the result up to and including the first
 * byte that is not plain is right (a borrow can only spoil later ones). */
SCAN_INLINE uint64_t
scan_swar(uint64_t x)
{
  uint64_t quote = x ^ SCAN_ONES * '"', slash = x ^ SCAN_ONES * '\\';

  return ((x - SCAN_ONES * 0x20) | (quote - SCAN_ONES) | (slash - SCAN_ONES) | x) & SCAN_TOPS;
}

SCAN_INLINE const unsigned char *
plain_scalar(const unsigned char *p, const unsigned char *end)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  uint64_t x, hit;

  for (; end - p >= 8; p += 8) {
    memcpy(&x, p, 8);
    hit = scan_swar(x);
    if (hit != 0)
      return p + __builtin_ctzll(hit) / 8;
  }
#endif
  while (p < end && scan_is_plain(*p))
    p++;
  return p;
}

/* The last bytes of a piece, for the vector flavours: not inlined, since it is rare. */
static __attribute__((noinline)) const unsigned char *
plain_tail(const unsigned char *p, const unsigned char *end)
{
  return plain_scalar(p, end);
}

#define SCAN_RUN run_scalar
#define SCAN_TARGET
#define SCAN_PLAIN plain_scalar
#include "rpc/scan-loop.h"

/* --- SSE2 ---------------------------------------------------------------------------- */

#if SCAN_X86
/* As signed numbers both control characters and non-ASCII bytes are below 0x20. */
SCAN_INLINE unsigned
sse2_hits(const unsigned char *p)
{
  __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
  __m128i low = _mm_cmplt_epi8(v, _mm_set1_epi8(0x20));
  __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
  __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));

  return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_or_si128(quote, slash)));
}

SCAN_INLINE const unsigned char *
plain_sse2(const unsigned char *p, const unsigned char *end)
{
  unsigned hits;

  for (; end - p >= 16; p += 16) {
    hits = sse2_hits(p);
    if (hits != 0)
      return p + __builtin_ctz(hits);
  }
  return plain_tail(p, end);
}

#define SCAN_RUN run_sse2
#define SCAN_TARGET
#define SCAN_PLAIN plain_sse2
#include "rpc/scan-loop.h"

/* --- AVX2 ---------------------------------------------------------------------------- */

#define SCAN_AVX2 __attribute__((target("avx2,bmi")))

SCAN_INLINE SCAN_AVX2 __m256i
avx2_hits(const unsigned char *p)
{
  __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
  __m256i low = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), v);
  __m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
  __m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));

  return _mm256_or_si256(low, _mm256_or_si256(quote, slash));
}

/* Long strings (input, code, logsBloom), four vectors at a time; out of line, so that the
 * loop for the short ones stays small. */
static __attribute__((noinline)) SCAN_AVX2 const unsigned char *
avx2_long(const unsigned char *p, const unsigned char *end)
{
  __m256i a, b, c, d, any;

  for (; end - p >= 128; p += 128) {
    a = avx2_hits(p);
    b = avx2_hits(p + 32);
    c = avx2_hits(p + 64);
    d = avx2_hits(p + 96);
    any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    if (_mm256_movemask_epi8(any) != 0)
      break;
  }
  return p;
}

SCAN_INLINE SCAN_AVX2 const unsigned char *
plain_avx2(const unsigned char *p, const unsigned char *end)
{
  unsigned hits, i;

  for (;;) {
    for (i = 0; i < 4; i++, p += 32) {
      if (end - p < 32)
        return plain_tail(p, end);
      hits = (unsigned)_mm256_movemask_epi8(avx2_hits(p));
      if (hits != 0)
        return p + __builtin_ctz(hits);
    }
    p = avx2_long(p, end);
  }
}

#define SCAN_RUN run_avx2
#define SCAN_TARGET SCAN_AVX2
#define SCAN_PLAIN plain_avx2
#include "rpc/scan-loop.h"

/* Functions whose address is taken can't be always_inline. */
static const unsigned char *
plain_sse2_call(const unsigned char *p, const unsigned char *end)
{
  return plain_sse2(p, end);
}

static SCAN_AVX2 const unsigned char *
plain_avx2_call(const unsigned char *p, const unsigned char *end)
{
  return plain_avx2(p, end);
}

static bool
avx2_there(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
}

static bool
sse2_there(void)
{
  return true;
}
#endif

static bool
scalar_there(void)
{
  return true;
}

/* --- choice -------------------------------------------------------------------------- */

/* Best first. */
static const struct scan_flavour {
  const char *name;
  bool (*there)(void);
  scan_run_fn *run;
  scan_plain_fn *plain;
} scan_flavours[] = {
#if SCAN_X86
  { "avx2", avx2_there, run_avx2, plain_avx2_call },
  { "sse2", sse2_there, run_sse2, plain_sse2_call },
#endif
  { "scalar", scalar_there, run_scalar, plain_tail },
};

/* Set at load, before any thread; changed by tests only. */
static const struct scan_flavour *scan_chosen;

static __attribute__((constructor)) void
scan_choose(void)
{
  scan_chosen = scan_flavours;
#if SCAN_X86
  __builtin_cpu_init();
#endif
  while (!scan_chosen->there())
    scan_chosen++;
}

const char *
scan_flavour(void)
{
  return scan_chosen->name;
}

bool
scan_force(const char *flavour)
{
  size_t i;

  for (i = 0; i < sizeof(scan_flavours) / sizeof(scan_flavours[0]); i++) {
    if (strcmp(scan_flavours[i].name, flavour) == 0 && scan_flavours[i].there()) {
      scan_chosen = &scan_flavours[i];
      return true;
    }
  }
  return false;
}

const unsigned char *
scan_plain(const unsigned char *p, const unsigned char *end)
{
  return scan_chosen->plain(p, end);
}

enum scan_status
scan_run(struct scan *scan, const unsigned char *bytes, size_t len, size_t *used)
{
  return scan_chosen->run(scan, bytes, len, used);
}
