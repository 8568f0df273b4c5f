/* SPDX-License-Identifier: MIT */
/* What a client may do. */
#include "grant.h"

#include <string.h>
#include <time.h>
#include "../../common/pattern.h"

bool
grant_allows(const struct grant *grant, struct egw_slice method)
{
  if (pattern_listed(&grant->deny, method))
    return false;
  return grant->allow.n == 0 || pattern_listed(&grant->allow, method);
}

bool
grant_pattern_valid(const char *pattern)
{
  size_t len = strlen(pattern);

  return len > 0 && len <= GRANT_METHOD_MAX && strcspn(pattern, "*") + 1 >= len &&
         strpbrk(pattern, " \t,;!=") == NULL;
}

static bool
is_name_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '.' || c == '_' || c == '-' || c == '@';
}

bool
grant_name_valid(const char *name)
{
  size_t len = strlen(name);

  if (len == 0 || len > GRANT_NAME_MAX)
    return false;
  for (size_t i = 0; i < len; i++)
    if (!is_name_char(name[i]))
      return false;
  return true;
}

int
grant_read_date(const char *text, int64_t *seconds)
{
  static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ" };
  static const size_t lengths[] = { 10, 20 };
  size_t which = strlen(text) == lengths[0] ? 0 : 1;
  struct tm tm = { .tm_isdst = 0 };
  const char *end;
  int day;
  time_t t;

  if (strlen(text) != lengths[which])
    return -1;
  end = strptime(text, forms[which], &tm);
  if (end == NULL || *end != '\0')
    return -1;
  day = tm.tm_mday;
  t = timegm(&tm);
  /* February 30 becomes a day of March */
  if (t == (time_t)-1 || tm.tm_mday != day)
    return -1;
  *seconds = t;
  return 0;
}
