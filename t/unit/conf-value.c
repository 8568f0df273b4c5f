/* SPDX-License-Identifier: MIT */
/* Texts of options: sizes, durations, ratios, and values as the file has them. */
#include "../lib/tap.h"

#include <inttypes.h>
#include "conf/conf.h"
#include "conf/value.h"

struct amount {
  const char *text;
  uint64_t value;
};

static const struct amount sizes[] = {
  { "0", 0 },
  { "512", 512 },
  { "1B", 1 },
  { "10kB", 10000 },
  { "3MB", 3000000 },
  { "2GB", UINT64_C(2000000000) },
  { "1TB", UINT64_C(1000000000000) },
  { "1KiB", 1024 },
  { "64MiB", UINT64_C(64) << 20 },
  { "1GiB", UINT64_C(1) << 30 },
  { "4TiB", UINT64_C(4) << 40 },
  { "1.5GiB", UINT64_C(3) << 29 },
  { "0.5KiB", 512 },
  { "64 MiB", UINT64_C(64) << 20 },
  { "007", 7 },
  { "18446744073709551615", UINT64_MAX },
  { "16777215TiB", UINT64_C(16777215) << 40 },
};

static const char *const bad_sizes[] = {
  "",        " ",      "MiB",     "-1",      "+1",    "1 ",       " 1",        "1  MiB", "1.",
  ".5MiB",   "1.5",    "1.0001KiB", "10k",   "10K",   "10KB",     "10mib",     "10MIB",  "1e6",
  "0x10",    "1MiB ",  "1M",      "1MiBs",   "1,5MiB", "1_000",   "18446744073709551616",
  "16777216TiB",       "99999999999999999999999999", "1.1234567MiB", "infinity", "nan", "1\n",
};

static const struct amount durations[] = {
  { "0", 0 },         { "0ms", 0 },           { "250ms", 250 }, { "5s", 5000 },
  { "2m", 120000 },   { "1h", 3600000 },      { "1d", 86400000 }, { "1.5s", 1500 },
  { "0.25s", 250 },   { "0.001s", 1 },        { "10 s", 10000 },
  { "18446744073709551615ms", UINT64_MAX },
};

static const char *const bad_durations[] = {
  "",
  "5",
  "5 ",
  "s",
  "5S",
  "5sec",
  "5us",
  "-5s",
  "+5s",
  "5s ",
  "1m30s",
  "0.0001s",
  "1e3ms",
  "0x5s",
  "18446744073709551616ms",
  "18446744073709551615s",
  "213503982335d",
  "00",
};

static void
test_amounts(void)
{
  uint64_t v;

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    v = 12345;
    ok(conf_parse_size(sizes[i].text, &v) == 0 && v == sizes[i].value, "size '%s'",
       sizes[i].text);
  }
  for (size_t i = 0; i < sizeof bad_sizes / sizeof bad_sizes[0]; i++) {
    v = 12345;
    ok(conf_parse_size(bad_sizes[i], &v) == -1 && v == 12345, "no size: %zu", i);
  }
  for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
    v = 12345;
    ok(conf_parse_duration(durations[i].text, &v) == 0 && v == durations[i].value, "time '%s'",
       durations[i].text);
  }
  for (size_t i = 0; i < sizeof bad_durations / sizeof bad_durations[0]; i++) {
    v = 12345;
    ok(conf_parse_duration(bad_durations[i], &v) == -1 && v == 12345, "no time: '%s'",
       bad_durations[i]);
  }
}

static void
test_ratios(void)
{
  static const struct {
    const char *text;
    double value;
  } goods[] = { { "0", 0 },      { "1", 1 },      { "0.2", 0.2 },     { "20%", 0.2 },
                { "100%", 1 },   { "0%", 0 },     { "12.5%", 0.125 }, { "0.000001", 0.000001 },
                { "1.000", 1 },  { "0.1%", 0.001 } };
  static const char *const bads[] = { "",
                                      "%",
                                      ".2",
                                      "0.",
                                      "-0.2",
                                      "1.1",
                                      "101%",
                                      "20 %",
                                      "20%%",
                                      "0,2",
                                      "nan",
                                      "inf",
                                      "2",
                                      "1e-1",
                                      "0x1",
                                      "0.2 ",
                                      "0.1234567890123456",
                                      "99999999999999999999" };
  double v;

  for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
    v = -1;
    ok(conf_parse_ratio(goods[i].text, &v) == 0 && v > goods[i].value - 1e-12 &&
           v < goods[i].value + 1e-12,
       "ratio '%s'", goods[i].text);
  }
  for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
    v = -1;
    ok(conf_parse_ratio(bads[i], &v) == -1 && v < 0, "no ratio: '%s'", bads[i]);
  }
}

/* What is printed is read back as the same. */
static void
print_as(const struct egw_option *o, const void *field, const char *want)
{
  struct egw_buf *out = egw_buf_new(0);

  if (out == NULL ||
      !ok(value_print(out, o, field) == 0, "a %s is printed", value_type_name(o->type)))
    exit(1);
  is_slice(egw_buf_slice(out), want, want);
  egw_buf_unref(out);
}

static void
test_print(void)
{
  static const char *const words[] = { "off", "on", NULL };
  const char *texts[] = { "a", "b\"c" };
  struct egw_option o = { .name = "x" };
  struct egw_strings list = { texts, 2 }, none = { NULL, 0 };
  uint64_t n;
  int64_t i;
  double d = 0.25;
  bool b = true;
  int e = 1;
  const char *s = "a \"b\" \\ \x01 \xc3\xa9";

  o.type = EGW_OPT_SIZE;
  n = 0, print_as(&o, &n, "\"0\"");
  n = 1536, print_as(&o, &n, "\"1536B\"");
  n = 5 << 20, print_as(&o, &n, "\"5MiB\"");
  n = UINT64_C(2048) << 40, print_as(&o, &n, "\"2048TiB\"");
  o.type = EGW_OPT_DURATION;
  n = 0, print_as(&o, &n, "\"0\"");
  n = 250, print_as(&o, &n, "\"250ms\"");
  n = 90000, print_as(&o, &n, "\"90s\"");
  n = 86400000, print_as(&o, &n, "\"1d\"");
  o.type = EGW_OPT_INT;
  i = 7, print_as(&o, &i, "7");
  i = -7, print_as(&o, &i, "-7");
  i = INT64_C(2147483648), print_as(&o, &i, "2147483648L");
  i = -INT64_C(2147483649), print_as(&o, &i, "-2147483649L");
  o.type = EGW_OPT_RATIO;
  print_as(&o, &d, "0.250000");
  o.type = EGW_OPT_BOOL;
  print_as(&o, &b, "true");
  o.type = EGW_OPT_ENUM;
  o.choices = words;
  print_as(&o, &e, "\"on\"");
  o.type = EGW_OPT_STRING;
  print_as(&o, &s, "\"a \\\"b\\\" \\\\ \\x01 \xc3\xa9\"");
  o.type = EGW_OPT_SECRET;
  print_as(&o, &s, "\"***\"");
  o.type = EGW_OPT_LIST;
  print_as(&o, &list, "( \"a\", \"b\\\"c\" )");
  print_as(&o, &none, "( )");
}

static void
parses(const struct egw_option *o, const char *text, bool good, const char *part)
{
  union value value;
  char why[VALUE_WHY] = "";
  int r = value_parse(o, text, &value, why);

  ok((r == 0) == good, "%s '%s' is %s", value_type_name(o->type), text,
     good ? "read" : "refused");
  if (part != NULL && !ok(strstr(why, part) != NULL, "the reason has '%s'", part))
    printf("#   it is: %s\n", why);
}

static void
test_parse(void)
{
  static const char *const words[] = { "off", "on", NULL };
  struct egw_option o = { .name = "x", .type = EGW_OPT_BOOL };

  parses(&o, "true", true, NULL);
  parses(&o, "false", true, NULL);
  parses(&o, "1", false, "true or false");
  o.type = EGW_OPT_ENUM, o.choices = words;
  parses(&o, "on", true, NULL);
  parses(&o, "On", false, "\"off\", \"on\"");
  o.type = EGW_OPT_INT;
  parses(&o, "-9223372036854775807", true, NULL);
  parses(&o, "9223372036854775808", false, "whole number");
  o.min = 1, o.max = 5;
  parses(&o, "0", false, "from 1 to 5");
  parses(&o, "1", true, NULL);
  parses(&o, "5", true, NULL);
  parses(&o, "6", false, "from 1 to 5");
  o.type = EGW_OPT_SIZE, o.min = 1024, o.max = 2 << 20;
  parses(&o, "1023", false, "from \"1KiB\" to \"2MiB\"");
  parses(&o, "1KiB", true, NULL);
  parses(&o, "2MiB", true, NULL);
  parses(&o, "2097153", false, "from");
  parses(&o, "18446744073709551615", false, "from");
  o.type = EGW_OPT_DURATION, o.min = 0, o.max = 60000;
  parses(&o, "0", true, NULL);
  parses(&o, "61s", false, "from \"0\" to \"1m\"");
  parses(&o, "5", false, "\"250ms\"");
}

int
main(void)
{
  test_amounts();
  test_ratios();
  test_print();
  test_parse();
  return done_testing();
}
