/* SPDX-License-Identifier: MIT */
/* The manual page ethrpc-gw.conf(5) and the examples in etc/ say what the option tables say.
 */
#include "conf-kit.h"

#include <ctype.h>

static char *
read_source(const char *name)
{
  const char *source = getenv("EGW_SOURCE");
  char path[1000];
  char *text;
  long len;
  FILE *f;

  snprintf(path, sizeof path, "%s/%s", source == NULL ? "." : source, name);
  f = fopen(path, "re");
  if (f == NULL || fseek(f, 0, SEEK_END) < 0 || (len = ftell(f)) < 0) {
    printf("Bail out! %s\n", path);
    exit(1);
  }
  rewind(f);
  text = calloc(1, (size_t)len + 1);
  if (text == NULL || fread(text, 1, (size_t)len, f) != (size_t)len)
    exit(1);
  fclose(f);
  return text;
}

/* --- the manual page --------------------------------------------------------------------- */

/* The part of the page about a section (malloc'ed). */
static char *
part_of(const char *pod, const char *section)
{
  char heading[100];
  const char *begin, *end;

  snprintf(heading, sizeof heading, "\n=head2 %s",
           section[0] == '\0' ? "The top level" : section);
  begin = strstr(pod, heading);
  if (begin == NULL)
    return calloc(1, 1);
  end = strstr(begin + 5, "\n=head");
  return strndup(begin, end == NULL ? strlen(begin) : (size_t)(end - begin));
}

/* Whether the part describes the option, alone or in a list of names, with its default. */
static void
described(const char *part, const char *section, const struct egw_option *o)
{
  char name[100], item[400], quoted[200];
  const char *value = o->fallback == NULL ? NULL : quoted;
  bool text = o->type != EGW_OPT_BOOL && o->type != EGW_OPT_INT && o->type != EGW_OPT_RATIO;

  snprintf(name, sizeof name, "B<%s>", o->name);
  if (!ok(strstr(part, name) != NULL, "%s.%s is in the manual", section, o->name))
    return;
  if (o->type == EGW_OPT_SECTION)
    return;
  if (o->type == EGW_OPT_LIST)
    value = strcpy(quoted, "( )");
  else if (value != NULL)
    snprintf(quoted, sizeof quoted, text ? "\"%s\"" : "%s", o->fallback);
  snprintf(item, sizeof item, "\n=item B<%s>%s%s\n", o->name, value == NULL ? "" : " = ",
           value == NULL ? "" : value);
  if (!ok(strstr(part, item) != NULL, "%s.%s: with its default", section, o->name))
    printf("#   wanted: %s", item + 1);
}

/* Nothing else is described. */
static void
no_others(const char *part, const char *section, const struct egw_option *table)
{
  for (const char *p = strstr(part, "=item B<"); p != NULL; p = strstr(p + 1, "=item B<")) {
    const char *end = strchr(p, '\n');

    for (const char *b = strstr(p, "B<"); b != NULL && b < end; b = strstr(b + 1, "B<")) {
      size_t len = strcspn(b + 2, ">");
      bool known = false;

      for (const struct egw_option *o = table; o->type != EGW_OPT_END; o++)
        known = known || (strlen(o->name) == len && memcmp(o->name, b + 2, len) == 0);
      ok(known, "%s.%.*s is an option", section, (int)len, b + 2);
    }
  }
}

static void
test_manual(void)
{
  char *pod = read_source("docs/ethrpc-gw.conf.5.pod");
  size_t n;
  const struct conf_table *tables = conf_tables(&n);

  for (size_t i = 0; i < n; i++) {
    char *part = part_of(pod, tables[i].section);

    ok(part[0] != '\0', "the manual has a part about '%s'", tables[i].section);
    if (strcmp(tables[i].section, "admin") == 0) { /* as listen, but for its port */
      ok(strstr(part, "8646") != NULL, "and the default port");
      free(part);
      continue;
    }
    for (const struct egw_option *o = tables[i].options; o->type != EGW_OPT_END; o++)
      described(part, tables[i].section, o);
    no_others(part, tables[i].section, tables[i].options);
    free(part);
  }
  free(pod);
}

/* --- the examples ------------------------------------------------------------------------ */

static void
write_dump(void *conf, int fd)
{
  if (conf_dump(conf, fd, NULL, NULL) < 0)
    exit(1);
}

/* The configuration in effect, as text. */
static char *
in_effect(const char *text, const char *what)
{
  struct conf *conf = kit_load(text);
  char *errors = kit_errors(conf, kit_path("x.conf")), *dump;

  if (!ok(conf_errors(conf) == 0 && errors[0] == '\0', "%s is valid", what))
    printf("#   %s\n", errors);
  dump = conf_errors(conf) == 0 ? kit_written(write_dump, conf) : strdup("");
  conf_free(conf);
  free(errors);
  return dump;
}

/* Takes the # off "#name = value;". */
static void
uncomment(char *text)
{
  for (char *p = text; (p = strchr(p, '#')) != NULL; p++) {
    const char *before = p;

    while (before > text && before[-1] == ' ')
      before--;
    if ((before == text || before[-1] == '\n') && islower((unsigned char)p[1]) &&
        strncmp(p + 1 + strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_"), " = ", 3) == 0)
      *p = ' ';
  }
}

static void
test_examples(void)
{
  char *text = read_source("etc/ethrpc-gw.conf"), *minimal = read_source("etc/minimal.conf");
  char *before = in_effect(text, "etc/ethrpc-gw.conf"), *after;
  size_t n;
  const struct conf_table *tables = conf_tables(&n);

  free(in_effect(minimal, "etc/minimal.conf"));
  free(minimal);
  for (size_t i = 0; i < n; i++)
    for (const struct egw_option *o = tables[i].options; o->type != EGW_OPT_END; o++) {
      char setting[100];

      snprintf(setting, sizeof setting, "%s = ", o->name);
      ok(strstr(text, setting) != NULL, "%s.%s is in etc/ethrpc-gw.conf", tables[i].section,
         o->name);
    }
  uncomment(text);
  after = in_effect(text, "etc/ethrpc-gw.conf with all defaults written out");
  if (!ok(strcmp(before, after) == 0, "they are the defaults"))
    printf("# before:\n%s# after:\n%s", before, after);
  ok(strstr(text, "  workers = 0;") != NULL || strstr(text, "\n workers = 0;") != NULL,
     "the defaults were taken in");
  free(text);
  free(before);
  free(after);
}

int
main(void)
{
  kit_begin();
  test_manual();
  test_examples();
  kit_end();
  return done_testing();
}
