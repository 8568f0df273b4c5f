/* SPDX-License-Identifier: MIT */
/* The transport host: option tables and the section of the configuration (plugin.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "transport-host-parts.h"

static uint64_t
read_unit(const char *text)
{
  static const struct {
    const char *unit;
    uint64_t factor;
  } units[] = { { "", 1 },        { "ms", 1 },           { "s", 1000 },
                { "m", 60000 },   { "h", 3600000 },      { "kB", 1000 },
                { "KiB", 1024 },  { "MiB", 1024 * 1024 } };
  char *end;
  uint64_t n = strtoull(text, &end, 10);

  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
    if (strcmp(end, units[i].unit) == 0)
      return n * units[i].factor;
  abort();
}

static const char *
keep_string(struct thost *host, const char *text)
{
  host->strings = must(realloc(host->strings, (host->string_count + 1) * sizeof(char *)));
  return host->strings[host->string_count++] = must(strdup(text));
}

/* "file:PATH" of a secret. */
static const char *
read_secret(struct thost *host, const char *text)
{
  char bytes[4096];
  size_t n;
  FILE *f;

  if (strncmp(text, "file:", 5) != 0)
    return keep_string(host, text);
  f = must(fopen(text + 5, "re"));
  n = fread(bytes, 1, sizeof bytes - 1, f);
  fclose(f);
  while (n > 0 && bytes[n - 1] == '\n')
    n--;
  bytes[n] = 0;
  return keep_string(host, bytes);
}

static void
add_to_list(struct thost *host, struct egw_strings *list, const char *value)
{
  void *old = (void *)(uintptr_t)list->v;
  const char **grown = must(realloc(old, (list->n + 1) * sizeof(char *)));

  grown[list->n] = keep_string(host, value);
  list->v = grown;
  list->n++;
}

static void
set_option(struct thost *host, size_t row, const char *value)
{
  const struct egw_option *o = &host->transport->plugin.options[row];
  char *field = (char *)host->self + o->offset;

  switch (o->type) {
  case EGW_OPT_BOOL:
    *(bool *)(void *)field = strcmp(value, "true") == 0;
    break;
  case EGW_OPT_INT:
    *(int64_t *)(void *)field = strtoll(value, NULL, 0);
    break;
  case EGW_OPT_SIZE:
  case EGW_OPT_DURATION:
    *(uint64_t *)(void *)field = read_unit(value);
    break;
  case EGW_OPT_RATIO:
    *(double *)(void *)field = strtod(value, NULL);
    break;
  case EGW_OPT_STRING:
    *(const char **)(void *)field = keep_string(host, value);
    break;
  case EGW_OPT_SECRET:
    *(const char **)(void *)field = read_secret(host, value);
    break;
  case EGW_OPT_ENUM:
    for (int i = 0; o->choices[i] != NULL; i++)
      if (strcmp(o->choices[i], value) == 0)
        *(int *)(void *)field = i;
    break;
  case EGW_OPT_LIST:
    add_to_list(host, &host->lists[row], value);
    *(struct egw_strings *)(void *)field = host->lists[row];
    break;
  case EGW_OPT_SECTION:
  case EGW_OPT_END:
    abort();
  }
}

static bool
apply_option(struct thost *host, const char *name, const char *value)
{
  const struct egw_option *o = host->transport->plugin.options;

  for (size_t i = 0; i < host->option_count; i++)
    if (strcmp(o[i].name, name) == 0) {
      set_option(host, i, value);
      return true;
    }
  printf("# no such option: %s\n", name);
  return false;
}

bool
thost_set_options(struct thost *host, const char *const *options)
{
  const struct egw_option *o = host->transport->plugin.options;

  while (o != NULL && o[host->option_count].type != EGW_OPT_END)
    host->option_count++;
  host->lists = must(calloc(host->option_count + 1, sizeof *host->lists));
  for (size_t i = 0; i < host->option_count; i++)
    if (o[i].fallback != NULL && o[i].type != EGW_OPT_LIST)
      set_option(host, i, o[i].fallback);
  for (; options != NULL && options[0] != NULL; options += 2)
    if (!apply_option(host, options[0], options[1]))
      return false;
  return true;
}

int
egw_conf_error(struct egw_conf *section, const char *key, const char *fmt, ...)
{
  int n = snprintf(section->error, sizeof section->error, "%s: ", key == NULL ? "" : key);
  va_list ap;

  va_start(ap, fmt);
  vsnprintf(section->error + n, sizeof section->error - (size_t)n, fmt, ap);
  va_end(ap);
  return -1;
}

void
egw_conf_warn(struct egw_conf *section, const char *key, const char *fmt, ...)
{
  (void)section;
  (void)key;
  (void)fmt;
}
