/* SPDX-License-Identifier: MIT */
/* Fuzzes the comparison of answers: a value must have the same fingerprint as its text with
 * more white space, with hex digits of the other case, and with zeros before its quantities;
 * and another one inside an array. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/buf.h>
#include "../plugins/middleware/quorum/fingerprint.h"
#include "rpc/scan.h"

#define DEPTH 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

static void
add(struct egw_buf *out, const char *text, size_t len)
{
  check(egw_buf_append(out, text, len) == 0);
}

/* How long the hex digits of the string that begins at p[0] == '"' are; 0: it has none. */
static size_t
digits(const char *p, const char *end)
{
  const char *q = p + 3;

  if (end - p < 4 || p[1] != '0' || p[2] != 'x')
    return 0;
  while (q < end && ((*q >= '0' && *q <= '9') || ((*q | 32) >= 'a' && (*q | 32) <= 'f')))
    q++;
  return q < end && *q == '"' ? (size_t)(q - p - 3) : 0;
}

/* One string, rewritten; where it ends. */
static const char *
string(const char *p, const char *end, struct egw_buf *out)
{
  size_t n = digits(p, end), i;
  const char *q = p + 1;

  if (n == 0) {
    while (q < end && *q != '"')
      q += *q == '\\' ? 2 : 1;
    add(out, p, (size_t)(q + 1 - p));
    return q + 1;
  }
  add(out, "\"0x", 3);
  if (n < 64)
    add(out, "0", 1);
  for (i = 0; i < n; i++) {
    char c = p[3 + i];

    c = c >= 'a' ? (char)(c - 32) : c >= 'A' ? (char)(c + 32) : c;
    add(out, &c, 1);
  }
  add(out, "\"", 1);
  return p + n + 4;
}

static void
rewrite(const char *text, size_t size, struct egw_buf *out)
{
  const char *p = text, *end = text + size;

  while (p < end) {
    if (*p == '"') {
      p = string(p, end, out);
    } else {
      bool between = strchr("[]{},:", *p) != NULL && *p != '\0';

      add(out, p, 1);
      if (between)
        add(out, "\n ", 2);
      p++;
    }
  }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char *const names[] = { "size" };
  struct egw_strings ignore = { names, 1 };
  struct fingerprint_key key = { { 1, 2 } };
  struct egw_slice text = { (const char *)data, size };
  struct fingerprint a, b;
  struct egw_buf *out;

  if (size == 0 || !scan_valid(text, DEPTH, NULL))
    return 0;
  out = egw_buf_new(size + 16);
  check(out != NULL && fingerprint(&key, text, &ignore, &a) == 0);
  rewrite(text.ptr, text.len, out);
  check(fingerprint(&key, egw_buf_slice(out), &ignore, &b) == 0 && fingerprint_same(&a, &b));
  egw_buf_unref(out);
  out = egw_buf_new(size + 2);
  check(out != NULL);
  add(out, "[", 1);
  add(out, text.ptr, text.len);
  add(out, "]", 1);
  check(fingerprint(&key, egw_buf_slice(out), &ignore, &b) == 0 && !fingerprint_same(&a, &b));
  egw_buf_unref(out);
  return 0;
}
