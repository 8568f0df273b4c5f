/* SPDX-License-Identifier: MIT */
/* Prometheus text (version 0.0.4) in pieces. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>
#include "obs/print.h"

static const char *const kind_names[] = { "counter", "gauge", "histogram", "summary" };

/* Bytes of the well-formed UTF-8 sequence at `s` (NUL-terminated); 0: malformed. */
static size_t
sequence_length(const unsigned char *s)
{
  size_t n, i;

  if (s[0] < 0x80)
    return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4)
    return 0;
  n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  for (i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return n;
}

/* Escaped text: of a label, where quotes are escaped, or of a HELP line, where not. */
static int
print_text(struct egw_buf *out, const char *value, bool quoted)
{
  const unsigned char *s = (const unsigned char *)value;
  size_t n;
  int bad = 0;

  for (; *s != '\0' && bad == 0; s += n == 0 ? 1 : n) {
    n = sequence_length(s);
    if (n == 0)
      bad = egw_buf_append(out, "\xef\xbf\xbd", 3);
    else if (*s == '\n')
      bad = egw_buf_append(out, "\\n", 2);
    else if (*s == '\\' || (*s == '"' && quoted))
      bad = egw_buf_append(out, *s == '"' ? "\\\"" : "\\\\", 2);
    else
      bad = egw_buf_append(out, s, n);
  }
  return bad;
}

int
print_family(struct egw_buf *out, const char *name, enum print_kind kind, const char *help)
{
  if (egw_buf_printf(out, "# HELP ethrpcgw_%s ", name) != 0 ||
      print_text(out, help, false) != 0)
    return -1;
  return egw_buf_printf(out, "\n# TYPE ethrpcgw_%s %s\n", name, kind_names[kind]);
}

/* The sample's name and labels, up to the space before the value. */
static int
print_series(struct egw_buf *out, const char *name, const struct print_label *labels,
             size_t count)
{
  size_t i;

  if (egw_buf_printf(out, "ethrpcgw_%s", name) != 0)
    return -1;
  for (i = 0; i < count; i++)
    if (egw_buf_printf(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name) != 0 ||
        print_text(out, labels[i].value, true) != 0 || egw_buf_append(out, "\"", 1) != 0)
      return -1;
  return count == 0 ? egw_buf_append(out, " ", 1) : egw_buf_append(out, "} ", 2);
}

int
print_sample(struct egw_buf *out, const char *name, const struct print_label *labels,
             size_t count, int64_t value)
{
  if (print_series(out, name, labels, count) != 0)
    return -1;
  return egw_buf_printf(out, "%lld\n", (long long)value);
}

int
print_seconds(struct egw_buf *out, const char *name, const struct print_label *labels,
              size_t count, int64_t us)
{
  uint64_t u = us < 0 ? 0 : (uint64_t)us;

  if (print_series(out, name, labels, count) != 0)
    return -1;
  return egw_buf_printf(out, "%llu.%06llu\n", (unsigned long long)(u / 1000000),
                        (unsigned long long)(u % 1000000));
}

int
print_one(struct egw_buf *out, const char *name, enum print_kind kind, const char *help,
          int64_t value)
{
  if (print_family(out, name, kind, help) != 0)
    return -1;
  return print_sample(out, name, NULL, 0, value);
}
