/* SPDX-License-Identifier: MIT */
/* Reading raw JSON that is known to be valid (include/ethrpc-gw/json.h). Text that is not
 * valid gives senseless answers, but nothing outside of the slice is ever read. */
#include <string.h>
#include "rpc/scan-string.h"
#include "rpc/scan.h"

/* --- walking ------------------------------------------------------------------------- */

static const char *
json_space(const char *p, const char *end)
{
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    p++;
  return p;
}

/* The end of the string that begins at `p`, behind its closing quote. */
static const char *
json_skip_string(const char *p, const char *end)
{
  const unsigned char *q = (const unsigned char *)p + 1, *e = (const unsigned char *)end;

  for (;;) {
    q = scan_plain(q, e);
    if (q >= e)
      return end;
    if (*q == '"')
      return (const char *)q + 1;
    if (*q == '\\' && e - q >= 2)
      q++; /* whatever is escaped, a quote above all */
    q++;
  }
}

/* The end of the value that begins at `p`; `p` itself when there is none. */
static const char *
json_skip(const char *p, const char *end)
{
  size_t depth = 0;

  while (p < end) {
    switch (*p) {
    case '"':
      p = json_skip_string(p, end);
      break;
    case '{': case '[':
      depth++;
      p++;
      continue;
    case '}': case ']':
      if (depth == 0)
        return p;
      depth--;
      p++;
      break;
    case ',': case ':': case ' ': case '\n': case '\r': case '\t':
      if (depth == 0)
        return p;
      p++;
      continue;
    default: /* numbers and words */
      while (p < end && memchr(",:]} \n\r\t\"", *p, 9) == NULL)
        p++;
    }
    if (depth == 0)
      return p;
  }
  return p;
}

bool
egw_json_valid(struct egw_slice bytes)
{
  return bytes.ptr != NULL && scan_valid(bytes, 64, NULL);
}

enum egw_json_kind
egw_json_kind(struct egw_slice value)
{
  const char *end, *p;

  if (value.ptr == NULL)
    return EGW_JSON_NONE;
  end = value.ptr + value.len;
  p = json_space(value.ptr, end);
  if (p == end)
    return EGW_JSON_NONE;
  switch (*p) {
  case 'n': return EGW_JSON_NULL;
  case 'f': return EGW_JSON_FALSE;
  case 't': return EGW_JSON_TRUE;
  case '"': return EGW_JSON_STRING;
  case '[': return EGW_JSON_ARRAY;
  case '{': return EGW_JSON_OBJECT;
  default: return EGW_JSON_NUMBER;
  }
}

bool
egw_json_next(struct egw_slice container, size_t *cursor, struct egw_slice *key,
              struct egw_slice *value)
{
  enum egw_json_kind kind = egw_json_kind(container);
  const char *base = container.ptr, *end, *p, *q;

  *value = (struct egw_slice){ NULL, 0 };
  if (key != NULL)
    *key = *value;
  if ((kind != EGW_JSON_ARRAY && kind != EGW_JSON_OBJECT) || *cursor > container.len)
    return false;
  end = base + container.len;
  p = json_space(base + *cursor, end);
  if (p == end || *p == ']' || *p == '}')
    return false;
  p = json_space(p + 1, end); /* the opening bracket, or the comma */
  if (kind == EGW_JSON_OBJECT) {
    if (p == end || *p != '"')
      return false;
    q = json_skip_string(p, end);
    if (key != NULL)
      *key = (struct egw_slice){ p, (size_t)(q - p) };
    p = json_space(q, end);
    p = p == end ? p : json_space(p + 1, end);
  }
  q = json_skip(p, end);
  if (q == p)
    return false;
  *value = (struct egw_slice){ p, (size_t)(q - p) };
  *cursor = (size_t)(q - base);
  return true;
}

struct egw_slice
egw_json_member(struct egw_slice object, const char *key)
{
  struct egw_slice name, value;
  size_t cursor = 0;

  if (egw_json_kind(object) == EGW_JSON_OBJECT)
    while (egw_json_next(object, &cursor, &name, &value))
      if (egw_json_equals(name, key))
        return value;
  return (struct egw_slice){ NULL, 0 };
}

struct egw_slice
egw_json_element(struct egw_slice array, size_t index)
{
  struct egw_slice name, value;
  size_t cursor = 0, i = 0;

  if (egw_json_kind(array) == EGW_JSON_ARRAY)
    while (egw_json_next(array, &cursor, &name, &value))
      if (i++ == index)
        return value;
  return (struct egw_slice){ NULL, 0 };
}

/* --- strings ------------------------------------------------------------------------- */

/* What is left of a string between its quotes. */
struct json_text {
  const char *p, *end;
};

static bool
json_text_begin(struct json_text *text, struct egw_slice value)
{
  const char *end;

  if (egw_json_kind(value) != EGW_JSON_STRING)
    return false;
  end = value.ptr + value.len;
  text->p = json_space(value.ptr, end);
  text->end = json_skip_string(text->p, end);
  if (text->end - text->p < 2 || text->end[-1] != '"')
    return false;
  text->p++;
  text->end--;
  return true;
}

static int
json_hex_digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* Reads XXXX of \uXXXX at `p`; -1 when it isn't there. */
static long
json_unit(const char *p, const char *end)
{
  long unit = 0;
  int i, digit;

  if (end - p < 4)
    return -1;
  for (i = 0; i < 4; i++) {
    digit = json_hex_digit(p[i]);
    if (digit < 0)
      return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/* Writes a code point as UTF-8; returns the number of bytes. */
static size_t
json_utf8(unsigned long code, char out[4])
{
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    out[0] = (char)(0xc0 | code >> 6);
    out[1] = (char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
  }
  out[0] = (char)(0xf0 | code >> 18);
  out[1] = (char)(0x80 | (code >> 12 & 0x3f));
  out[2] = (char)(0x80 | (code >> 6 & 0x3f));
  out[3] = (char)(0x80 | (code & 0x3f));
  return 4;
}

/* The code point of the \uXXXX whose XXXX is at text->p; takes the other
 * half of a pair too. */
static unsigned long
json_code(struct json_text *text)
{
  long unit = json_unit(text->p, text->end), low;

  if (unit < 0) {
    text->p = text->end;
    return 0xfffd;
  }
  text->p += 4;
  if (unit < 0xd800 || unit > 0xdfff)
    return (unsigned long)unit;
  if (unit > 0xdbff || text->end - text->p < 6 || text->p[0] != '\\' || text->p[1] != 'u')
    return 0xfffd;
  low = json_unit(text->p + 2, text->end);
  if (low < 0xdc00 || low > 0xdfff)
    return 0xfffd;
  text->p += 6;
  return 0x10000 + ((unsigned long)(unit - 0xd800) << 10) + (unsigned long)(low - 0xdc00);
}

/* The next decoded bytes: a run of the text itself, or one escape in `small`. False at
 * the end. */
static bool
json_text_next(struct json_text *text, char small[4], struct egw_slice *run)
{
  const char *stop;
  char c;

  if (text->p >= text->end)
    return false;
  if (*text->p != '\\') {
    stop = memchr(text->p, '\\', (size_t)(text->end - text->p));
    if (stop == NULL)
      stop = text->end;
    *run = (struct egw_slice){ text->p, (size_t)(stop - text->p) };
    text->p = stop;
    return true;
  }
  c = text->end - text->p >= 2 ? text->p[1] : '\\';
  text->p += text->end - text->p >= 2 ? 2 : 1;
  *run = (struct egw_slice){ small, 1 };
  switch (c) {
  case 'b': small[0] = '\b'; break;
  case 'f': small[0] = '\f'; break;
  case 'n': small[0] = '\n'; break;
  case 'r': small[0] = '\r'; break;
  case 't': small[0] = '\t'; break;
  case 'u': run->len = json_utf8(json_code(text), small); break;
  default: small[0] = c;
  }
  return true;
}

long
egw_json_string(struct egw_slice value, char *out, size_t cap)
{
  struct json_text text;
  struct egw_slice run;
  char small[4];
  size_t len = 0;

  if (!json_text_begin(&text, value))
    return -1;
  while (json_text_next(&text, small, &run)) {
    if (run.len > cap - len)
      return -1;
    memcpy(out + len, run.ptr, run.len);
    len += run.len;
  }
  return (long)len;
}

bool
egw_json_equals(struct egw_slice value, const char *text)
{
  struct json_text left;
  struct egw_slice run;
  size_t len = strlen(text);
  char small[4];

  /* The common case first: the same bytes between quotes, without an escape. */
  if (value.len == len + 2 && value.ptr[0] == '"' && memcmp(value.ptr + 1, text, len) == 0 &&
      value.ptr[len + 1] == '"' && memchr(text, '\\', len) == NULL)
    return true;
  if (!json_text_begin(&left, value))
    return false;
  while (json_text_next(&left, small, &run)) {
    if (run.len > len || memcmp(run.ptr, text, run.len) != 0)
      return false;
    text += run.len;
    len -= run.len;
  }
  return len == 0;
}

/* --- numbers ------------------------------------------------------------------------- */

static int
json_decimal(struct egw_slice value, uint64_t *out)
{
  const char *end = value.ptr + value.len, *p = json_space(value.ptr, end);
  uint64_t n = 0;

  if (p == end)
    return -1;
  for (; p < end && *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(n, 10u, &n) ||
        __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
      return -1;
  if (json_space(p, end) != end)
    return -1;
  *out = n;
  return 0;
}

static int
json_quantity(struct egw_slice value, uint64_t *out)
{
  struct json_text text;
  struct egw_slice run;
  uint64_t n = 0;
  size_t at = 0, i;
  char small[4];
  int digit;

  if (!json_text_begin(&text, value))
    return -1;
  while (json_text_next(&text, small, &run)) {
    for (i = 0; i < run.len; i++, at++) {
      if (at < 2) {
        if (run.ptr[i] != "0x"[at])
          return -1;
        continue;
      }
      digit = json_hex_digit(run.ptr[i]);
      if (digit < 0 || n >> 60 != 0)
        return -1;
      n = n << 4 | (uint64_t)digit;
    }
  }
  if (at < 3)
    return -1;
  *out = n;
  return 0;
}

int
egw_json_u64(struct egw_slice value, uint64_t *out)
{
  switch (egw_json_kind(value)) {
  case EGW_JSON_NUMBER: return json_decimal(value, out);
  case EGW_JSON_STRING: return json_quantity(value, out);
  default: return -1;
  }
}
