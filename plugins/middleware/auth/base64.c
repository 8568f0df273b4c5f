/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648). */
#include "base64.h"

#include <stdint.h>

static int
value_of(char c, enum base64 form)
{
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  if (c == (form == BASE64_URL ? '-' : '+'))
    return 62;
  if (c == (form == BASE64_URL ? '_' : '/'))
    return 63;
  return -1;
}

long
base64_decode(struct egw_slice text, enum base64 form, unsigned char *out, size_t cap)
{
  size_t len = text.len, n = 0;
  uint32_t bits = 0;

  if (form == BASE64_PLAIN) {
    if (len % 4 != 0)
      return -1;
    for (unsigned i = 0; i < 2 && len > 0 && text.ptr[len - 1] == '='; i++)
      len--;
  }
  if (len % 4 == 1 || len / 4 * 3 + (len % 4 != 0 ? len % 4 - 1 : 0) > cap)
    return -1;
  for (size_t i = 0; i < len; i++) {
    int value = value_of(text.ptr[i], form);

    if (value < 0)
      return -1;
    bits = (bits << 6 | (uint32_t)value) & 0xffffff;
    if (i % 4 != 0)
      out[n++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
  }
  if (len % 4 != 0 && (bits & (len % 4 == 2 ? 0xf : 0x3)) != 0)
    return -1;
  return (long)n;
}
