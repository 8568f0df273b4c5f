/* SPDX-License-Identifier: MIT */
/* Texts of options to values. All arithmetic is checked: a size that does not fit is refused,
 * never cut. Numbers are read by hand, since strtod() depends on the locale and strtoull()
 * takes signs and blanks. */
#include "conf/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conf/conf.h"

struct unit {
  const char *name;
  uint64_t factor;
};

static const struct unit size_units[] = {
  { "", 1 },
  { "B", 1 },
  { "kB", 1000 },
  { "MB", 1000000 },
  { "GB", UINT64_C(1000000000) },
  { "TB", UINT64_C(1000000000000) },
  { "KiB", UINT64_C(1) << 10 },
  { "MiB", UINT64_C(1) << 20 },
  { "GiB", UINT64_C(1) << 30 },
  { "TiB", UINT64_C(1) << 40 },
  { NULL, 0 },
};

static const struct unit duration_units[] = {
  { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 },
};

/* Takes digits off *text. Returns how many, or -1 when the number exceeds 64 bits. */
static int
take_digits(const char **text, uint64_t *out)
{
  const char *p = *text;
  uint64_t n = 0;

  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(n, 10u, &n) ||
        __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
      return -1;
  *out = n;
  if (p - *text > 64)
    return -1;
  n = (uint64_t)(p - *text);
  *text = p;
  return (int)n;
}

/* NUMBER[.NUMBER][ ]UNIT; the result must be whole. */
static int
parse_amount(const char *text, const struct unit *units, uint64_t *out)
{
  uint64_t whole, part = 0, scale = 1, r;
  int digits = 0;

  if (take_digits(&text, &whole) < 1)
    return -1;
  if (*text == '.') {
    text++;
    digits = take_digits(&text, &part);
    if (digits < 1 || digits > 6)
      return -1;
    for (int i = 0; i < digits; i++)
      scale *= 10;
  }
  if (*text == ' ' && text[1] != '\0')
    text++;
  for (; units->name != NULL; units++)
    if (strcmp(units->name, text) == 0)
      break;
  if (units->name == NULL || __builtin_mul_overflow(whole, units->factor, &r))
    return -1;
  if (__builtin_mul_overflow(part, units->factor, &part) || part % scale != 0)
    return -1;
  if (__builtin_add_overflow(r, part / scale, &r))
    return -1;
  *out = r;
  return 0;
}

int
conf_parse_size(const char *text, uint64_t *bytes)
{
  return parse_amount(text, size_units, bytes);
}

int
conf_parse_duration(const char *text, uint64_t *ms)
{
  if (strcmp(text, "0") == 0) {
    *ms = 0;
    return 0;
  }
  return parse_amount(text, duration_units, ms);
}

int
conf_parse_ratio(const char *text, double *out)
{
  uint64_t whole, part = 0;
  double scale = 1, r;
  int digits = 0;

  if (take_digits(&text, &whole) < 1)
    return -1;
  if (*text == '.') {
    text++;
    digits = take_digits(&text, &part);
    if (digits < 1 || digits > 15)
      return -1;
  }
  for (int i = 0; i < digits; i++)
    scale *= 10;
  r = (double)whole + (double)part / scale;
  if (strcmp(text, "%") == 0)
    r /= 100;
  else if (*text != '\0')
    return -1;
  if (r > 1)
    return -1;
  *out = r;
  return 0;
}

static int
parse_int(const char *text, int64_t *out)
{
  uint64_t n;
  bool minus = *text == '-';

  if (minus)
    text++;
  if (take_digits(&text, &n) < 1 || *text != '\0' || n > (uint64_t)INT64_MAX)
    return -1;
  *out = minus ? -(int64_t)n : (int64_t)n;
  return 0;
}

static int
parse_choice(const struct egw_option *option, const char *text, int *out, char *why)
{
  size_t at = 0;

  for (int i = 0; option->choices[i] != NULL; i++) {
    if (strcmp(option->choices[i], text) == 0) {
      *out = i;
      return 0;
    }
  }
  at = (size_t)snprintf(why, VALUE_WHY, "must be one of");
  for (int i = 0; option->choices[i] != NULL && at < VALUE_WHY; i++)
    at += (size_t)snprintf(why + at, VALUE_WHY - at, "%s \"%s\"", i == 0 ? "" : ",",
                           option->choices[i]);
  return -1;
}

const char *
value_form(enum egw_option_type type)
{
  switch (type) {
  case EGW_OPT_BOOL: return "true or false, without quotes";
  case EGW_OPT_INT: return "a whole number without quotes, such as 10";
  case EGW_OPT_SIZE: return "a size in quotes, such as \"64MiB\", \"10kB\" or \"512\"";
  case EGW_OPT_DURATION:
    return "a time in quotes, such as \"250ms\", \"5s\", \"2m\" or \"1h\"";
  case EGW_OPT_RATIO: return "a ratio from 0 to 1, such as 0.2 or \"20%\"";
  case EGW_OPT_STRING: return "text in quotes";
  case EGW_OPT_SECRET: return "text in quotes, or \"file:/PATH\"";
  case EGW_OPT_ENUM: return "a word in quotes";
  case EGW_OPT_LIST: return "a list of texts, such as ( \"a\", \"b\" )";
  case EGW_OPT_SECTION: return "a group { ... } or a list ( ... )";
  case EGW_OPT_END: break;
  }
  return "nothing";
}

const char *
value_type_name(enum egw_option_type type)
{
  static const char *const names[] = { "end",    "bool",   "int",  "size", "duration", "ratio",
                                       "string", "secret", "enum", "list", "section" };

  return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

int
value_parse(const struct egw_option *option, const char *text, union value *out, char *why)
{
  int r = -1;

  memset(out, 0, sizeof *out);
  switch (option->type) {
  case EGW_OPT_BOOL:
    out->flag = strcmp(text, "true") == 0;
    r = out->flag || strcmp(text, "false") == 0 ? 0 : -1;
    break;
  case EGW_OPT_INT: r = parse_int(text, &out->number); break;
  case EGW_OPT_SIZE: r = conf_parse_size(text, &out->amount); break;
  case EGW_OPT_DURATION: r = conf_parse_duration(text, &out->amount); break;
  case EGW_OPT_RATIO: r = conf_parse_ratio(text, &out->ratio); break;
  case EGW_OPT_STRING:
  case EGW_OPT_SECRET:
    out->text = text;
    r = 0;
    break;
  case EGW_OPT_ENUM: return parse_choice(option, text, &out->choice, why);
  case EGW_OPT_LIST:
  case EGW_OPT_SECTION:
  case EGW_OPT_END: break;
  }
  if (r < 0) {
    (void)snprintf(why, VALUE_WHY, "must be %s", value_form(option->type));
    return -1;
  }
  return value_check(option, out, why);
}

/* An amount in the unit in which it is shortest, such that it parses again. */
static void
format_amount(uint64_t n, enum egw_option_type type, char *out, size_t cap)
{
  static const char *const sizes[] = { "B", "KiB", "MiB", "GiB", "TiB" };
  const struct unit *best = &duration_units[0];
  unsigned i = 0;

  if (n == 0) {
    (void)snprintf(out, cap, "0");
  } else if (type == EGW_OPT_SIZE) {
    for (; i < 4 && n % 1024 == 0; i++)
      n /= 1024;
    (void)snprintf(out, cap, "%" PRIu64 "%s", n, sizes[i]);
  } else {
    for (const struct unit *u = best; u->name != NULL; u++)
      if (n % u->factor == 0)
        best = u;
    (void)snprintf(out, cap, "%" PRIu64 "%s", n / best->factor, best->name);
  }
}

int
value_check(const struct egw_option *option, const union value *value, char *why)
{
  char low[32], high[32];

  if (option->min == 0 && option->max == 0)
    return 0;
  if (option->type == EGW_OPT_INT) {
    if (value->number >= option->min && value->number <= option->max)
      return 0;
    (void)snprintf(why, VALUE_WHY, "must be from %" PRId64 " to %" PRId64, option->min,
                   option->max);
    return -1;
  }
  if (option->type != EGW_OPT_SIZE && option->type != EGW_OPT_DURATION)
    return 0;
  if (value->amount >= (uint64_t)option->min && value->amount <= (uint64_t)option->max)
    return 0;
  format_amount((uint64_t)option->min, option->type, low, sizeof low);
  format_amount((uint64_t)option->max, option->type, high, sizeof high);
  (void)snprintf(why, VALUE_WHY, "must be from \"%s\" to \"%s\"", low, high);
  return -1;
}

void
value_store(const struct egw_option *option, const union value *value, void *target)
{
  void *field = (char *)target + option->offset;

  switch (option->type) {
  case EGW_OPT_BOOL: memcpy(field, &value->flag, sizeof value->flag); break;
  case EGW_OPT_INT: memcpy(field, &value->number, sizeof value->number); break;
  case EGW_OPT_SIZE:
  case EGW_OPT_DURATION: memcpy(field, &value->amount, sizeof value->amount); break;
  case EGW_OPT_RATIO: memcpy(field, &value->ratio, sizeof value->ratio); break;
  case EGW_OPT_STRING:
  case EGW_OPT_SECRET: memcpy(field, &value->text, sizeof value->text); break;
  case EGW_OPT_ENUM: memcpy(field, &value->choice, sizeof value->choice); break;
  case EGW_OPT_LIST: memcpy(field, &value->list, sizeof value->list); break;
  case EGW_OPT_SECTION:
  case EGW_OPT_END: break;
  }
}

int
value_quote(struct egw_buf *out, const char *text)
{
  if (egw_buf_append(out, "\"", 1) < 0)
    return -1;
  for (const char *p = text; *p != '\0'; p++) {
    int r;

    if (*p == '"' || *p == '\\')
      r = egw_buf_printf(out, "\\%c", *p);
    else if ((unsigned char)*p < 0x20 || *p == 0x7f)
      r = egw_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)*p);
    else
      r = egw_buf_append(out, p, 1);
    if (r < 0)
      return -1;
  }
  return egw_buf_append(out, "\"", 1);
}

static int
print_list(struct egw_buf *out, const struct egw_strings *list)
{
  if (egw_buf_append(out, "(", 1) < 0)
    return -1;
  for (size_t i = 0; i < list->n; i++)
    if (egw_buf_append(out, i == 0 ? " " : ", ", i == 0 ? 1 : 2) < 0 ||
        value_quote(out, list->v[i]) < 0)
      return -1;
  return egw_buf_append(out, " )", 2);
}

static int
print_int(struct egw_buf *out, const void *field)
{
  int64_t n;

  memcpy(&n, field, sizeof n);
  return egw_buf_printf(out, "%" PRId64 "%s", n, n > INT32_MAX || n < INT32_MIN ? "L" : "");
}

static int
print_amount(struct egw_buf *out, enum egw_option_type type, const void *field)
{
  uint64_t n;
  char text[32];

  memcpy(&n, field, sizeof n);
  format_amount(n, type, text, sizeof text);
  return egw_buf_printf(out, "\"%s\"", text);
}

int
value_print(struct egw_buf *out, const struct egw_option *option, const void *field)
{
  union value v;

  memset(&v, 0, sizeof v);
  switch (option->type) {
  case EGW_OPT_BOOL:
    memcpy(&v.flag, field, sizeof v.flag);
    return egw_buf_printf(out, "%s", v.flag ? "true" : "false");
  case EGW_OPT_INT: return print_int(out, field);
  case EGW_OPT_SIZE:
  case EGW_OPT_DURATION: return print_amount(out, option->type, field);
  case EGW_OPT_RATIO:
    memcpy(&v.ratio, field, sizeof v.ratio);
    return egw_buf_printf(out, "%.6f", v.ratio);
  case EGW_OPT_STRING:
    memcpy(&v.text, field, sizeof v.text);
    return value_quote(out, v.text);
  case EGW_OPT_SECRET: return value_quote(out, "***");
  case EGW_OPT_ENUM:
    memcpy(&v.choice, field, sizeof v.choice);
    return value_quote(out, option->choices[v.choice]);
  case EGW_OPT_LIST: return print_list(out, field);
  case EGW_OPT_SECTION:
  case EGW_OPT_END: break;
  }
  return -1;
}

int
value_write(int fd, struct egw_slice text)
{
  while (text.len > 0) {
    ssize_t n = write(fd, text.ptr, text.len);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    text.ptr += n;
    text.len -= (size_t)n;
  }
  return 0;
}
