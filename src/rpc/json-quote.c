/* SPDX-License-Identifier: MIT */
/* Writing a JSON string from any bytes. */
#include <string.h>
#include "rpc/scan-string.h"

/* How many bytes the UTF-8 character at `p` has (RFC 3629 section 4); 0 when it is none. */
static size_t
quote_character(const unsigned char *p, const unsigned char *end)
{
  unsigned char lo = 0x80, hi = 0xbf;
  size_t len, i;

  if (*p >= 0xc2 && *p <= 0xdf)
    len = 2;
  else if (*p >= 0xe0 && *p <= 0xef)
    len = 3;
  else if (*p >= 0xf0 && *p <= 0xf4)
    len = 4;
  else
    return 0;
  if (*p == 0xe0)
    lo = 0xa0;
  if (*p == 0xed)
    hi = 0x9f;
  if (*p == 0xf0)
    lo = 0x90;
  if (*p == 0xf4)
    hi = 0x8f;
  if ((size_t)(end - p) < len)
    return 0;
  for (i = 1; i < len; i++) {
    if (p[i] < lo || p[i] > hi)
      return 0;
    lo = 0x80;
    hi = 0xbf;
  }
  return len;
}

/* Appends what stands for the byte at `p`, which is not plain; *len gets how many bytes of the
 * text that takes. */
static int
quote_special(struct egw_buf *out, const unsigned char *p, const unsigned char *end,
              size_t *len)
{
  static const char short_names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
  const char *at;
  size_t i;

  *len = 1;
  if (*p >= 0x80) {
    i = quote_character(p, end);
    if (i == 0)
      return egw_buf_append(out, "\xef\xbf\xbd", 3); /* U+FFFD */
    *len = i;
    return egw_buf_append(out, p, i);
  }
  for (at = short_names; *at != '\0'; at += 2) {
    if ((unsigned char)*at == *p) {
      char two[2] = { '\\', at[1] };

      return egw_buf_append(out, two, 2);
    }
  }
  return egw_buf_printf(out, "\\u%04x", (unsigned)*p);
}

int
egw_json_quote(struct egw_buf *out, struct egw_slice text)
{
  const unsigned char *p, *end, *stop;
  size_t len;

  if (text.ptr == NULL) /* nothing may be added to a null pointer */
    text = EGW_LIT("");
  p = (const unsigned char *)text.ptr;
  end = p + text.len;
  if (egw_buf_append(out, "\"", 1) != 0)
    return -1;
  while (p < end) {
    stop = scan_plain(p, end);
    if (egw_buf_append(out, p, (size_t)(stop - p)) != 0)
      return -1;
    p = stop;
    if (p < end) {
      if (quote_special(out, p, end, &len) != 0)
        return -1;
      p += len;
    }
  }
  return egw_buf_append(out, "\"", 1);
}
