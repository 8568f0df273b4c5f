/* SPDX-License-Identifier: MIT */
/* Bytes as "0x..." strings: egw_hex_* of ethrpc-gw/eth.h. */
#include <ethrpc-gw/eth.h>
#include <limits.h>
#include <stdbool.h>

static int
digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool
is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What stands between the quotes. */
static bool
inside(struct egw_slice value, const char **text, size_t *len)
{
  const char *p = value.ptr, *end = p + value.len;

  while (p < end && is_space(*p))
    p++;
  while (p < end && is_space(end[-1]))
    end--;
  if (end - p < 2 || *p != '"' || end[-1] != '"')
    return false;
  *text = p + 1;
  *len = (size_t)(end - p) - 2;
  return true;
}

long
egw_hex_read(struct egw_slice value, unsigned char *out, size_t cap)
{
  const char *text;
  size_t len, i;

  if (value.ptr == NULL || !inside(value, &text, &len) || len < 2 || len % 2 != 0 ||
      text[0] != '0' || text[1] != 'x')
    return -1;
  len = len / 2 - 1;
  if (len > LONG_MAX || (out != NULL && len > cap))
    return -1;
  for (i = 0; i < len; i++) {
    int high = digit(text[2 + 2 * i]), low = digit(text[3 + 2 * i]);

    if (high < 0 || low < 0)
      return -1;
    if (out != NULL)
      out[i] = (unsigned char)(high << 4 | low);
  }
  return (long)len;
}

void
egw_hex_print(const unsigned char *bytes, size_t len, char *out)
{
  static const char digits[] = "0123456789abcdef";
  size_t i;

  *out++ = '0';
  *out++ = 'x';
  for (i = 0; i < len; i++) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = '\0';
}
