/* SPDX-License-Identifier: MIT */
/* The gate, first half: the bytes of a request head into lines and fields, strictly by the
 * grammar of RFC 9112 and RFC 9110. What the fields may say is judged in gate-policy.c.
 *
 * Nothing of what RFC 9112 lets a lenient parser repair is repaired here: each repair is a way
 * for two parsers of one connection to disagree on where a request ends. */
#include "listen/gate.h"

#include <string.h>
#include <strings.h>

#define METHOD_MAX 32

/* RFC 9110 5.6.2: tchar, as bits: ! # $ % & ' * + - . 0-9 and ^ _ ` | ~ and letters. */
static bool
is_token_byte(unsigned char c)
{
  static const uint64_t bits[4] = { UINT64_C(0x03ff6cfa00000000), UINT64_C(0x57ffffffc7fffffe) };

  return (bits[c >> 6] >> (c & 63) & 1) != 0;
}

/* Eight bytes, of which each that satisfies a condition has its highest bit set; the others
 * are zero. */
#define EACH(byte) ((uint64_t)(byte) * UINT64_C(0x0101010101010101))

/* Whether all of the eight are letters, digits or "-", which are most of those in names. */
static bool
are_usual(const char *p)
{
  uint64_t x, lower, letters, digits, dashes;

  memcpy(&x, p, sizeof x);
  if ((x & EACH(0x80)) != 0)
    return false;
  lower = x | EACH(0x20); /* letters; and other bytes as others that are no letters */
  letters = (lower + EACH(0x80 - 'a')) & ~(lower + EACH(0x7f - 'z'));
  digits = (x + EACH(0x80 - '0')) & ~(x + EACH(0x7f - '9'));
  dashes = ~((x ^ EACH('-')) + EACH(0x7f));
  return ((letters | digits | dashes) & EACH(0x80)) == EACH(0x80);
}

bool
gate_is_token(struct egw_slice text)
{
  size_t i = 0;

  while (text.len - i >= 8 && are_usual(text.ptr + i))
    i += 8;
  /* The rest together with some bytes that were looked at already. */
  if (text.len >= 8 && text.len - i < 8 && are_usual(text.ptr + text.len - 8))
    return true;
  for (; i < text.len; i++)
    if (!is_token_byte((unsigned char)text.ptr[i]))
      return false;
  return text.len > 0;
}

/* Whether all of the eight are visible ASCII or spaces. */
static bool
are_visible(const char *p)
{
  uint64_t x;

  memcpy(&x, p, sizeof x);
  /* No highest bit, none below 0x20, none 0x7f. */
  return ((x | ~(x + EACH(0x80 - 0x20)) | (x + EACH(1))) & EACH(0x80)) == 0;
}

/* RFC 9110 5.5: visible bytes, spaces, tabs, obs-text. */
bool
gate_is_value(struct egw_slice text)
{
  size_t i = 0;

  while (text.len - i >= 8 && are_visible(text.ptr + i))
    i += 8;
  if (text.len >= 8 && text.len - i < 8 && are_visible(text.ptr + text.len - 8))
    return true;
  for (; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];

    if ((c < 0x20 && c != '\t') || c == 0x7f)
      return false;
  }
  return true;
}

struct egw_slice
gate_trim(struct egw_slice name, struct egw_slice value)
{
  if ((name.len == 14 && strncasecmp(name.ptr, "content-length", 14) == 0) ||
      (name.len == 17 && strncasecmp(name.ptr, "transfer-encoding", 17) == 0))
    return value;
  while (value.len > 0 &&
         (value.ptr[value.len - 1] == ' ' || value.ptr[value.len - 1] == '\t'))
    value.len--;
  return value;
}

bool
gate_refuse(struct gate_head *head, int status, enum refusal refusal, const char *why)
{
  head->status = status;
  head->refusal = refusal;
  head->why = why;
  return false;
}

static bool
refuse_head(struct gate_head *head, const char *why)
{
  return gate_refuse(head, 400, REFUSED_HEAD, why);
}

/* --- lines ---------------------------------------------------------------------------- */

enum line { LINE_MORE, LINE_FOUND, LINE_BAD };

/* The line that begins at *at, without its CRLF; *at moves behind it. Bytes that may not stand
 * in any line are found before its end is there. */
static enum line
next_line(const char *bytes, size_t len, size_t *at, struct egw_slice *line)
{
  for (size_t i = *at; i < len; i++) {
    char c = bytes[i];

    if (c == '\n' || c == '\0')
      return LINE_BAD;
    if (c != '\r')
      continue;
    if (i + 1 == len)
      return LINE_MORE;
    if (bytes[i + 1] != '\n')
      return LINE_BAD;
    *line = (struct egw_slice){ bytes + *at, i - *at };
    *at = i + 2;
    return LINE_FOUND;
  }
  return LINE_MORE;
}

static struct egw_slice
cut(struct egw_slice *rest, char end)
{
  const char *p = memchr(rest->ptr, end, rest->len);
  struct egw_slice first = { rest->ptr, p == NULL ? rest->len : (size_t)(p - rest->ptr) };
  size_t used = first.len + (p == NULL ? 0 : 1);

  rest->ptr += used;
  rest->len -= used;
  return first;
}

/* What a first line that has not ended yet can be judged by: another protocol on this port
 * shows in its first bytes. */
static bool
check_beginning(const char *bytes, size_t len, struct gate_head *head)
{
  for (size_t i = 0; i < len && bytes[i] != ' '; i++)
    if (i >= METHOD_MAX || !is_token_byte((unsigned char)bytes[i]))
      return refuse_head(head, "not an HTTP request");
  return true;
}

/* RFC 9112 3: method SP request-target SP HTTP-version. */
static bool
read_request_line(struct egw_slice line, struct gate_head *head)
{
  struct egw_slice rest = line;

  head->method = cut(&rest, ' ');
  head->target = cut(&rest, ' ');
  head->version = rest;
  if (head->method.len > METHOD_MAX || !gate_is_token(head->method) || head->version.len == 0)
    return refuse_head(head, "not an HTTP request");
  return true;
}

/* RFC 9112 5: name ":" OWS value OWS; no folding, no space before the colon. */
static bool
read_field(struct egw_slice line, struct gate_head *head)
{
  const char *colon = memchr(line.ptr, ':', line.len);
  struct gate_header *h;
  size_t from;

  if (line.ptr[0] == ' ' || line.ptr[0] == '\t')
    return refuse_head(head, "folded header line");
  if (colon == NULL)
    return refuse_head(head, "header line without a colon");
  if (head->header_count == GATE_HEADERS_MAX)
    return gate_refuse(head, 431, REFUSED_HEAD, "too many headers");
  from = (size_t)(colon - line.ptr) + 1;
  while (from < line.len && (line.ptr[from] == ' ' || line.ptr[from] == '\t'))
    from++;
  h = &head->headers[head->header_count++];
  h->name = (struct egw_slice){ line.ptr, (size_t)(colon - line.ptr) };
  h->value = gate_trim(h->name, (struct egw_slice){ line.ptr + from, line.len - from });
  return true;
}

/* Reads lines as far as they go. LINE_FOUND: up to the empty line. */
static enum line
read_lines(const char *bytes, size_t len, struct gate_head *head)
{
  struct egw_slice line;
  size_t at = 0;
  bool first = true;

  /* RFC 9112 2.2: one empty line in front is to be overlooked. */
  if (len >= 2 && bytes[0] == '\r' && bytes[1] == '\n')
    at = 2;
  else if (len == 1 && bytes[0] == '\r')
    return LINE_MORE;
  for (;;) {
    size_t begin = at;
    enum line found = next_line(bytes, len, &at, &line);

    if (found == LINE_BAD)
      refuse_head(head, first ? "not an HTTP request" : "control bytes in a header line");
    else if (found == LINE_MORE && first && !check_beginning(bytes + begin, len - begin, head))
      return LINE_BAD;
    if (found != LINE_FOUND)
      return found;
    if (!first && line.len == 0) {
      head->length = at;
      return LINE_FOUND;
    }
    if (first ? !read_request_line(line, head) : !read_field(line, head))
      return LINE_BAD;
    first = false;
  }
}

static void
reset(struct gate_head *head)
{
  size_t from = offsetof(struct gate_head, header_count);

  head->method = head->target = head->version = (struct egw_slice){ NULL, 0 };
  memset((char *)head + from, 0, sizeof *head - from);
}

enum gate_kind
gate_check(const struct listener *listener, const char *bytes, size_t len,
           struct gate_head *head)
{
  enum gate_kind kind;

  reset(head);
  switch (read_lines(bytes, len > GATE_HEAD_MAX ? GATE_HEAD_MAX : len, head)) {
  case LINE_BAD:
    return GATE_REFUSED;
  case LINE_FOUND:
    kind = gate_judge(listener, head);
    if (kind != GATE_HTTP || head->length <= GATE_HTTP_HEAD_MAX)
      return kind;
    gate_refuse(head, 431, REFUSED_HEAD, "request head too long");
    return GATE_REFUSED;
  case LINE_MORE:
    break;
  }
  if (len < GATE_HEAD_MAX)
    return GATE_MORE;
  if (head->method.ptr == NULL)
    gate_refuse(head, 414, REFUSED_HEAD, "request line too long");
  else
    gate_refuse(head, 431, REFUSED_HEAD, "request head too long");
  return GATE_REFUSED;
}

bool
gate_check_headers(const struct listener *listener, struct gate_head *head)
{
  return gate_judge(listener, head) != GATE_REFUSED;
}
