/* SPDX-License-Identifier: MIT */
/* Keeps configured secrets out of what is written: the part of the logger that knows them.
 *
 * A secret is looked for as it is, with any of its bytes percent-encoded, and inside base64,
 * where it can begin at three positions relative to the 3-byte groups. For each of the three
 * only the characters that depend on the secret alone are compared. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "obs/log.h"
#include "obs/secret.h"

#define SECRET_MIN 6u

struct secret {
  char *raw;
  size_t len;
  char *base64[3];
  struct secret *next;
};

/* Filled before the workers start, then constant. */
static struct {
  struct secret *first;
  size_t longest;
} secrets;

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The characters of base64(`before` unknown bytes + raw + anything) that are known. */
static char *
secret_base64(const char *raw, size_t len, size_t before)
{
  size_t bits = (before + len) * 8, from = (before * 8 + 5) / 6, to = bits / 6, i, n = 0;
  char *out = malloc(to - from + 1);

  if (out == NULL)
    return NULL;
  for (i = from; i < to; i++) {
    size_t bit = i * 6 - before * 8, byte = bit / 8;
    unsigned pair = (unsigned)(unsigned char)raw[byte] << 8;

    if (byte + 1 < len)
      pair |= (unsigned char)raw[byte + 1];
    out[n++] = base64_digits[(pair >> (10 - bit % 8)) & 63];
  }
  out[n] = '\0';
  return out;
}

static void
secret_free(struct secret *secret)
{
  size_t i;

  if (secret == NULL)
    return;
  for (i = 0; i < 3; i++)
    free(secret->base64[i]);
  free(secret->raw);
  free(secret);
}

static int
hex_value(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* The byte that "%XX" at `text` stands for, or -1. */
static int
percent_value(const char *text, size_t left)
{
  int high, low;

  if (left < 3 || text[0] != '%')
    return -1;
  high = hex_value(text[1]);
  low = hex_value(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int
secret_add(const char *raw, size_t len)
{
  struct secret *secret;
  size_t i, form;

  for (secret = secrets.first; secret != NULL; secret = secret->next)
    if (secret->len == len && memcmp(secret->raw, raw, len) == 0)
      return 0;
  if (len < SECRET_MIN)
    return 0;
  if (!size_mul(len, 8, &form) || (secret = calloc(1, sizeof *secret)) == NULL)
    return -1;
  secret->len = len;
  secret->raw = malloc(len);
  if (secret->raw == NULL) {
    secret_free(secret);
    return -1;
  }
  memcpy(secret->raw, raw, len);
  for (i = 0; i < 3; i++)
    if ((secret->base64[i] = secret_base64(raw, len, i)) == NULL) {
      secret_free(secret);
      return -1;
    }
  secret->next = secrets.first;
  secrets.first = secret;
  form = len * 3;
  if (form > secrets.longest)
    secrets.longest = form;
  return 0;
}

int
log_secret(const char *secret)
{
  size_t len = strlen(secret), i, n = 0;
  char *plain;
  int result;

  if (secret_add(secret, len) != 0)
    return -1;
  if (strchr(secret, '%') == NULL)
    return 0;
  /* A part of a URL is a secret in its decoded form too. */
  plain = malloc(len + 1);
  if (plain == NULL)
    return -1;
  for (i = 0; i < len; i++) {
    int byte = percent_value(secret + i, len - i);

    plain[n++] = byte < 0 ? secret[i] : (char)byte;
    if (byte >= 0)
      i += 2;
  }
  result = secret_add(plain, n);
  free(plain);
  return result;
}

/* How many bytes of `text` are the secret, percent-encoded or not; 0: it is not there. */
static size_t
match_plain(const struct secret *secret, const char *text, size_t left)
{
  size_t i, at = 0;

  for (i = 0; i < secret->len; i++) {
    if (at < left && text[at] == secret->raw[i]) {
      at++;
      continue;
    }
    if (at >= left || percent_value(text + at, left - at) != (unsigned char)secret->raw[i])
      return 0;
    at += 3;
  }
  return at;
}

/* The same for one base64 form, in either alphabet. */
static size_t
match_base64(const char *form, const char *text, size_t left)
{
  size_t i;

  for (i = 0; form[i] != '\0'; i++) {
    char c = i < left ? text[i] : '\0';

    c = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    if (c != form[i])
      return 0;
  }
  return i;
}

/* Length of the longest secret that begins at `text`. */
static size_t
match_any(const char *text, size_t left)
{
  const struct secret *secret;
  size_t best = 0, n, i;

  for (secret = secrets.first; secret != NULL; secret = secret->next) {
    n = match_plain(secret, text, left);
    for (i = 0; i < 3; i++) {
      size_t m = match_base64(secret->base64[i], text, left);

      n = m > n ? m : n;
    }
    best = n > best ? n : best;
  }
  return best;
}

size_t
secret_longest(void)
{
  return secrets.longest;
}

size_t
secret_scrub(char *text, size_t len)
{
  size_t from = 0, to = 0, end, at, n;

  if (secrets.first == NULL)
    return len;
  while (from < len) {
    n = match_any(text + from, len - from);
    if (n == 0) {
      text[to++] = text[from++];
      continue;
    }
    /* Others may overlap this one and reach further. */
    end = from + n;
    for (at = from + 1; at < end; at++) {
      n = match_any(text + at, len - at);
      if (at + n > end)
        end = at + n;
    }
    memcpy(text + to, "***", 3);
    to += 3;
    from = end;
  }
  return to;
}

void
log_scrub(char *text)
{
  text[secret_scrub(text, strlen(text))] = '\0';
}

bool
log_has_secret(struct egw_slice bytes)
{
  size_t i;

  if (secrets.first == NULL)
    return false;
  for (i = 0; i < bytes.len; i++)
    if (match_any(bytes.ptr + i, bytes.len - i) != 0)
      return true;
  return false;
}
