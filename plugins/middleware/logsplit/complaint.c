/* SPDX-License-Identifier: MIT */
/* Errors of nodes and providers. There is no standard for them but their texts; only the
 * message is read, never `data`, and only of methods that have a range. */
#include "complaint.h"

#include <string.h>
#include <ethrpc-gw/json.h>

#define TEXT_MAX 1024u

/* In lower case; the first that the message contains counts. */
static const struct {
  const char *text;
  enum complaint_kind kind;
} texts[] = {
  { "number of address", COMPLAINT_FILTER },
  { "too many addresses", COMPLAINT_FILTER },
  { "addresses or topics per search position", COMPLAINT_FILTER },
  { "exceed max addresses", COMPLAINT_FILTER },
  { "exceed max topics", COMPLAINT_FILTER },
  { "too many topics", COMPLAINT_FILTER },
  { "max results", COMPLAINT_RESULTS },
  { "too many results", COMPLAINT_RESULTS },
  { "too many logs", COMPLAINT_RESULTS },
  { "returned more than", COMPLAINT_RESULTS },
  { "response size", COMPLAINT_RESULTS },
  { "response too large", COMPLAINT_RESULTS },
  { "response is too big", COMPLAINT_RESULTS },
  { "response is too large", COMPLAINT_RESULTS },
  { "logs over more", COMPLAINT_RESULTS },
  { "logs count exceeds", COMPLAINT_RESULTS },
  { "try paginating", COMPLAINT_RESULTS },
  { "limit the query to", COMPLAINT_RESULTS },
  { "query exceeds limit", COMPLAINT_RESULTS },
  { "query timeout exceeded", COMPLAINT_RESULTS },
  { "try with this block range", COMPLAINT_RESULTS },
  { "block range", COMPLAINT_RANGE },
  { "blocks range", COMPLAINT_RANGE },
  { "range too large", COMPLAINT_RANGE },
  { "range is too", COMPLAINT_RANGE },
  { "range limit", COMPLAINT_RANGE },
  { "exceeds the range", COMPLAINT_RANGE },
  { "exceeds maximum range", COMPLAINT_RANGE },
  { "range exceeds", COMPLAINT_RANGE },
  { "exceeds limit of", COMPLAINT_RANGE },
  { "too large, max is", COMPLAINT_RANGE },
  { "too many blocks", COMPLAINT_RANGE },
  { "blocks distance", COMPLAINT_RANGE },
  { "getlogs is limited", COMPLAINT_RANGE },
  { "getlogs limited", COMPLAINT_RANGE },
  { "ranges over", COMPLAINT_RANGE },
};

static const struct {
  int64_t code;
  enum complaint_kind kind;
} codes[] = {
  { -32008, COMPLAINT_RESULTS }, /* the response is too large; the gateway's own too */
  { -32012, COMPLAINT_RANGE },
  { -32614, COMPLAINT_RANGE },
};

/* These have the words but mean something else: that there is no such range. */
static const char *const others[] = {
  "invalid block range", "beyond current head", "reverted"
};

static enum complaint_kind
kind_of(const char *text, int64_t code)
{
  size_t i;

  if (code == 3)
    return COMPLAINT_NONE;
  for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
    if (strstr(text, others[i]) != NULL)
      return COMPLAINT_NONE;
  for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    if (strstr(text, texts[i].text) != NULL)
      return texts[i].kind;
  for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
    if (codes[i].code == code)
      return codes[i].kind;
  return COMPLAINT_NONE;
}

/* --- numbers in the text ---------------------------------------------------------------- */

static bool
is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static int
hex_value(char c)
{
  return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
push_digit(uint64_t *n, unsigned base, unsigned digit)
{
  if (*n > (UINT64_MAX - digit) / base)
    return false;
  *n = *n * base + digit;
  return true;
}

/* Reads a number at `at`: "0x1a", "10000", "10,000", "2k". Returns its end; NULL: there is
 * none. */
static const char *
read_number(const char *at, uint64_t *n)
{
  const char *begin = at;

  *n = 0;
  if (at[0] == '0' && at[1] == 'x') {
    for (begin = at += 2; hex_value(*at) >= 0; at++)
      if (!push_digit(n, 16, (unsigned)hex_value(*at)))
        return NULL;
    return at > begin ? at : NULL;
  }
  for (;; at++) {
    if (*at == ',' && at > begin && is_digit(at[1]) && is_digit(at[2]) && is_digit(at[3]) &&
        !is_digit(at[4]))
      continue;
    if (!is_digit(*at))
      break;
    if (!push_digit(n, 10, (unsigned)(*at - '0')))
      return NULL;
  }
  if (at == begin)
    return NULL;
  if (*at == 'k' && *n <= UINT64_MAX / 1000) {
    *n *= 1000;
    at++;
  }
  return at;
}

static const char *
skip(const char *at, const char *what)
{
  return at + strspn(at, what);
}

/* A proposal: "[0x5a5a2c, 0x5a5b1d]", "range 24000000-24000099". Blocks in it, 0: there is
 * none. */
static uint64_t
read_proposal(const char *text)
{
  static const char *const before[] = { "block range [", "should work: [", "range: [",
                                        "the range ", "range [" };
  size_t i;

  for (i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
    const char *at = strstr(text, before[i]);
    uint64_t a, b;

    if (at == NULL)
      continue;
    at = read_number(at + strlen(before[i]), &a);
    if (at == NULL)
      continue;
    at = skip(at, " ,-");
    at = strncmp(at, "to ", 3) == 0 ? at + 3 : at;
    if (read_number(at, &b) != NULL && a <= b && b - a < UINT64_MAX)
      return b - a + 1;
  }
  return 0;
}

/* A limit that is named: the largest number that can be one. Not the ends of the range
 * itself or its length, which some errors repeat. */
static uint64_t
read_limit(const char *text, uint64_t from, uint64_t to)
{
  uint64_t n, best = 0, span = to - from;
  const char *at = text;

  while (*at != '\0') {
    const char *end = is_digit(*at) ? read_number(at, &n) : NULL;

    if (end == NULL) {
      at++;
      continue;
    }
    if (n != from && n != to && n < span && n > best)
      best = n;
    at = end;
  }
  return best;
}

struct complaint
complaint_read(const struct egw_reply *reply, uint64_t from, uint64_t to)
{
  struct complaint c = { COMPLAINT_NONE, 0 };
  char text[TEXT_MAX + 8] = ""; /* numbers are looked at a few bytes ahead */
  long len = egw_json_string(reply->message, text, TEXT_MAX), i;

  if (len < 0)
    len = 0; /* a text that long is none of those; the code may tell */
  for (i = 0; i < len; i++) {
    if (text[i] >= 'A' && text[i] <= 'Z')
      text[i] = (char)(text[i] - 'A' + 'a');
    else if (text[i] == '\0')
      text[i] = ' ';
  }
  memset(text + len, 0, sizeof(text) - (size_t)len);
  c.kind = kind_of(text, reply->code);
  if (c.kind == COMPLAINT_NONE)
    return c;
  c.blocks = read_proposal(text);
  if (c.blocks == 0 && c.kind == COMPLAINT_RANGE)
    c.blocks = read_limit(text, from, to);
  if (c.blocks > to - from)
    c.blocks = 0; /* no help */
  return c;
}
