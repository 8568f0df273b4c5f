/* SPDX-License-Identifier: MIT */
/* Fingerprints of JSON values. An array's is a hash of its elements' in their order; an
 * object's a hash of the sum of its members', which is the same in any order. */
#include "fingerprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <ethrpc-gw/json.h>

#define QUANTITY_DIGITS 64u /* longer ones are data, where zeros count */

/* --- SipHash-2-4 with 128 bits, fed in pieces -------------------------------------------- */

struct sip {
  uint64_t v[4];
  uint64_t word;               /* bytes that do not make eight yet */
  uint64_t len;
};

static inline uint64_t
rotl(uint64_t x, unsigned n)
{
  return x << n | x >> (64 - n);
}

static inline void
sip_round(uint64_t v[4])
{
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotl(v[1], 13) ^ v[0];
  v[3] = rotl(v[3], 16) ^ v[2];
  v[0] = rotl(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotl(v[1], 17) ^ v[2];
  v[3] = rotl(v[3], 21) ^ v[0];
  v[2] = rotl(v[2], 32);
}

/* `kind` goes first: a string is never an array with the same bytes. */
static void
sip_begin(struct sip *s, const struct fingerprint_key *key, unsigned char kind)
{
  s->v[0] = key->k[0] ^ UINT64_C(0x736f6d6570736575);
  s->v[1] = key->k[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee;
  s->v[2] = key->k[0] ^ UINT64_C(0x6c7967656e657261);
  s->v[3] = key->k[1] ^ UINT64_C(0x7465646279746573);
  s->word = kind;
  s->len = 1;
}

static inline void
sip_word(struct sip *s, uint64_t word)
{
  s->v[3] ^= word;
  sip_round(s->v);
  sip_round(s->v);
  s->v[0] ^= word;
}

static inline void
sip_byte(struct sip *s, unsigned char c)
{
  s->word |= (uint64_t)c << (8 * (s->len & 7));
  if ((++s->len & 7) == 0) {
    sip_word(s, s->word);
    s->word = 0;
  }
}

static void
sip_bytes(struct sip *s, const void *bytes, size_t len)
{
  const unsigned char *p = bytes;

  while (len-- > 0)
    sip_byte(s, *p++);
}

static void
sip_end(struct sip *s, struct fingerprint *out)
{
  unsigned i, half;

  sip_word(s, s->word | s->len << 56);
  for (half = 0; half < 2; half++) {
    s->v[half == 0 ? 2 : 1] ^= half == 0 ? 0xee : 0xdd;
    for (i = 0; i < 4; i++)
      sip_round(s->v);
    out->h[half] = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
  }
}

int
fingerprint_key(struct fingerprint_key *key)
{
  char *at = (char *)key->k;
  size_t left = sizeof key->k;

  while (left > 0) {
    ssize_t n = getrandom(at, left, 0);

    if (n < 0 && errno != EINTR)
      return -1;
    if (n > 0) {
      at += n;
      left -= (size_t)n;
    }
  }
  return 0;
}

/* --- walking ----------------------------------------------------------------------------- */

struct frame {
  bool object;
  bool has_key, skip;          /* object: of the member whose value comes */
  struct fingerprint key;
  struct sip array;
  struct fingerprint sum;
};

#define FRAMES_FIRST 16u

struct walk {
  const struct fingerprint_key *key;
  const struct egw_strings *ignore;
  const char *at, *end;
  struct frame *frames;
  size_t depth, room;
  struct frame first[FRAMES_FIRST];
  struct fingerprint result;
};

static bool
is_hex(const char *p, size_t len)
{
  size_t i;

  for (i = 0; i < len; i++)
    if (!((p[i] >= '0' && p[i] <= '9') || ((p[i] | 32) >= 'a' && (p[i] | 32) <= 'f')))
      return false;
  return true;
}

/* Hashes the decoded text of a string. */
static void
hash_text(const struct walk *w, const char *p, size_t len, struct fingerprint *out)
{
  struct sip s;
  size_t i = 2;

  if (len < 2 || p[0] != '0' || (p[1] | 32) != 'x' || !is_hex(p + 2, len - 2)) {
    sip_begin(&s, w->key, 's');
    sip_bytes(&s, p, len);
    sip_end(&s, out);
    return;
  }
  sip_begin(&s, w->key, 'x');
  if (len - 2 <= QUANTITY_DIGITS)
    while (i + 1 < len && p[i] == '0')
      i++;
  for (; i < len; i++)
    sip_byte(&s, (unsigned char)(p[i] | 32)); /* of a digit, too, in which the bit is set */
  sip_end(&s, out);
}

static bool
ignored(const struct walk *w, const char *p, size_t len)
{
  size_t i;

  for (i = 0; i < w->ignore->n; i++)
    if (strlen(w->ignore->v[i]) == len && memcmp(w->ignore->v[i], p, len) == 0)
      return true;
  return false;
}

/* The string at w->at, and behind it. `skip`: whether a member of this name is left out. */
static int
take_string(struct walk *w, struct fingerprint *out, bool *skip)
{
  const char *p = w->at + 1, *q = p;
  char *plain = NULL;
  long len;

  while (q < w->end && *q != '"')
    q += *q == '\\' ? 2 : 1;
  if (q >= w->end)
    q = w->end - 1; /* can't be: the value is valid */
  w->at = q + 1;
  len = q - p;
  if (memchr(p, '\\', (size_t)len) != NULL) {
    struct egw_slice whole = { p - 1, (size_t)len + 2 };

    plain = malloc((size_t)len);
    if (plain == NULL)
      return -1;
    len = egw_json_string(whole, plain, (size_t)len);
    p = plain;
  }
  if (len < 0)
    len = 0;
  hash_text(w, p, (size_t)len, out);
  *skip = ignored(w, p, (size_t)len);
  free(plain);
  return 0;
}

/* A number or a word. Numbers compare by their text. */
static void
take_word(struct walk *w, struct fingerprint *out, bool *null)
{
  const char *p = w->at;
  struct sip s;

  while (w->at < w->end && strchr(",]} \t\r\n", *w->at) == NULL)
    w->at++;
  if (w->at == p)
    w->at++; /* can't be either */
  *null = *p == 'n';
  sip_begin(&s, w->key, 'w');
  sip_bytes(&s, p, (size_t)(w->at - p));
  sip_end(&s, out);
}

/* A value is complete: into its container, or it is the result. */
static void
give(struct walk *w, const struct fingerprint *value, bool null)
{
  struct frame *f = w->depth > 0 ? &w->frames[w->depth - 1] : NULL;
  struct fingerprint member;
  struct sip s;

  if (f == NULL) {
    w->result = *value;
  } else if (!f->object) {
    sip_bytes(&f->array, value->h, sizeof value->h);
  } else {
    f->has_key = false;
    if (null || f->skip)
      return;
    sip_begin(&s, w->key, 'm');
    sip_bytes(&s, f->key.h, sizeof f->key.h);
    sip_bytes(&s, value->h, sizeof value->h);
    sip_end(&s, &member);
    f->sum.h[0] += member.h[0];
    f->sum.h[1] += member.h[1];
  }
}

static int
open_container(struct walk *w, bool object)
{
  struct frame *f;

  if (w->depth == w->room) {
    struct frame *more = malloc(2 * w->room * sizeof *more);

    if (more == NULL)
      return -1;
    memcpy(more, w->frames, w->room * sizeof *more);
    if (w->frames != w->first)
      free(w->frames);
    w->frames = more;
    w->room *= 2;
  }
  f = &w->frames[w->depth++];
  memset(f, 0, sizeof *f);
  f->object = object;
  sip_begin(&f->array, w->key, 'a');
  return 0;
}

static void
close_container(struct walk *w)
{
  struct fingerprint value;
  struct frame *f;

  if (w->depth == 0)
    return; /* can't be */
  f = &w->frames[--w->depth];
  if (f->object) {
    sip_begin(&f->array, w->key, 'o');
    sip_bytes(&f->array, f->sum.h, sizeof f->sum.h);
  }
  sip_end(&f->array, &value);
  give(w, &value, false);
}

static int
take_text(struct walk *w)
{
  struct frame *f = w->depth > 0 ? &w->frames[w->depth - 1] : NULL;
  struct fingerprint value;
  bool skip;

  if (take_string(w, &value, &skip) != 0)
    return -1;
  if (f != NULL && f->object && !f->has_key) {
    f->key = value;
    f->skip = skip;
    f->has_key = true;
  } else {
    give(w, &value, false);
  }
  return 0;
}

static int
step(struct walk *w)
{
  struct fingerprint value;
  bool null;

  switch (*w->at) {
  case ' ': case '\t': case '\r': case '\n': case ',': case ':':
    w->at++;
    return 0;
  case '[': case '{':
    return open_container(w, *w->at++ == '{');
  case ']': case '}':
    w->at++;
    close_container(w);
    return 0;
  case '"':
    return take_text(w);
  default:
    take_word(w, &value, &null);
    give(w, &value, null);
    return 0;
  }
}

int
fingerprint(const struct fingerprint_key *key, struct egw_slice value,
            const struct egw_strings *ignore, struct fingerprint *out)
{
  struct walk w = { .key = key, .ignore = ignore, .at = value.ptr,
                    .end = value.ptr + value.len, .room = FRAMES_FIRST };
  int r = 0;

  w.frames = w.first;
  while (w.at < w.end && r == 0)
    r = step(&w);
  if (w.frames != w.first)
    free(w.frames);
  *out = w.result;
  return r;
}
