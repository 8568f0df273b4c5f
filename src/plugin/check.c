/* SPDX-License-Identifier: MIT */
/* Judges a plugin's descriptor. Whatever a plugin may get wrong in data is found here, before
 * any of its code runs; each reason names the thing at fault. */
#include "plugin/loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "conf/conf.h"
#include "conf/value.h"

#define ROWS_MAX 256
#define STRUCT_SIZE_MAX 65536u
#define STATE_SIZE_MAX (64u << 20)
#define CALL_SIZE_MAX 65536u

/* What a plugin of ABI 1.0 has; members added later are missing in older plugins. */
#define MIDDLEWARE_SIZE_MIN                                                                 \
  (offsetof(struct egw_middleware, notice) + sizeof((struct egw_middleware *)0)->notice)
#define TRANSPORT_SIZE_MIN                                                                  \
  (offsetof(struct egw_transport, more) + sizeof((struct egw_transport *)0)->more)

struct check {
  char *why;
  size_t cap;
};

EGW_PRINTF(2, 3) static const char *
fail(struct check *c, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  (void)vsnprintf(c->why, c->cap, fmt, ap);
  va_end(ap);
  return c->why;
}

/* [a-z][a-z0-9]* and `joint` between */
static bool
is_word(const char *word, char joint)
{
  size_t len = strnlen(word, 65);

  if (len == 0 || len > 64 || word[0] < 'a' || word[0] > 'z')
    return false;
  for (size_t i = 0; i < len; i++)
    if (!(word[i] >= 'a' && word[i] <= 'z') && !(word[i] >= '0' && word[i] <= '9') &&
        word[i] != joint)
      return false;
  return true;
}

static const char *
type_name(uint32_t type)
{
  return type == EGW_TYPE_MIDDLEWARE  ? "middleware"
         : type == EGW_TYPE_TRANSPORT ? "transport"
                                      : "an unknown type";
}

/* --- the head ---------------------------------------------------------------------------- */

static const char *
check_head(struct check *c, const struct egw_plugin *head, enum egw_type type)
{
  size_t least = type == EGW_TYPE_MIDDLEWARE ? MIDDLEWARE_SIZE_MIN : TRANSPORT_SIZE_MIN;
  size_t known = type == EGW_TYPE_MIDDLEWARE ? sizeof(struct egw_middleware)
                                             : sizeof(struct egw_transport);

  if (head->magic != EGW_MAGIC)
    return fail(c, "it is no ethrpc-gw plugin (wrong magic number)");
  if (head->abi_major != EGW_ABI_MAJOR)
    return fail(c, "it was built for plugin ABI %u.%u, this ethrpc-gw has %u.%u",
                head->abi_major, head->abi_minor, EGW_ABI_MAJOR, EGW_ABI_MINOR);
  if (head->type != (uint32_t)type)
    return fail(c, "it is %s, not %s", type_name(head->type), type_name((uint32_t)type));
  if (head->struct_size < least || head->struct_size > STRUCT_SIZE_MAX ||
      (head->abi_minor <= EGW_ABI_MINOR && head->struct_size > known))
    return fail(
        c,
        "its descriptor has %u bytes, expected are %zu to %zu: was it built with other "
        "headers?",
        head->struct_size, least, known);
  if (head->name == NULL || !is_word(head->name, '-'))
    return fail(c, "its name must be 1 to 64 of a-z, 0-9 and '-', a letter first");
  if (head->version == NULL || head->version[0] == '\0')
    return fail(c, "it has no version");
  if (head->summary == NULL || head->summary[0] == '\0')
    return fail(c, "it has no summary");
  if (head->instance_size > STATE_SIZE_MAX || head->worker_size > STATE_SIZE_MAX)
    return fail(c, "its instance_size or worker_size is over 64 MiB");
  return NULL;
}

/* --- options ----------------------------------------------------------------------------- */

static size_t
field_size(enum egw_option_type type)
{
  switch (type) {
  case EGW_OPT_BOOL: return sizeof(bool);
  case EGW_OPT_INT: return sizeof(int64_t);
  case EGW_OPT_SIZE:
  case EGW_OPT_DURATION: return sizeof(uint64_t);
  case EGW_OPT_RATIO: return sizeof(double);
  case EGW_OPT_STRING:
  case EGW_OPT_SECRET: return sizeof(char *);
  case EGW_OPT_ENUM: return sizeof(int);
  case EGW_OPT_LIST: return sizeof(struct egw_strings);
  case EGW_OPT_SECTION:
  case EGW_OPT_END: break;
  }
  return 0;
}

/* Keys that the core reads from the same group. */
static bool
is_taken(enum egw_type type, const char *name)
{
  static const char *const stage[] = { "use", "name", NULL };
  static const char *const upstream[] = { "name",    "url",       "tier", "connect_timeout",
                                          "timeout", "max_reply", NULL };
  const char *const *names = type == EGW_TYPE_MIDDLEWARE ? stage : upstream;

  for (size_t i = 0; names[i] != NULL; i++)
    if (strcmp(names[i], name) == 0)
      return true;
  return false;
}

static const char *
check_fallback(struct check *c, const struct egw_option *o)
{
  char why[VALUE_WHY];
  union value value;

  if (o->fallback == NULL || o->type == EGW_OPT_LIST)
    return NULL;
  if (o->type == EGW_OPT_SECTION || o->type == EGW_OPT_SECRET)
    return fail(c, "option %s: a %s can't have a default", o->name, value_type_name(o->type));
  if ((o->flags & EGW_OPTION_REQUIRED) != 0)
    return fail(c, "option %s: it is required and has a default", o->name);
  if (value_parse(o, o->fallback, &value, why) < 0)
    return fail(c, "option %s: the default \"%s\" %s", o->name, o->fallback, why);
  return NULL;
}

static const char *
check_option(struct check *c, const struct egw_plugin *head, enum egw_type type,
             const struct egw_option *o)
{
  size_t size = field_size(o->type);
  bool amount = o->type == EGW_OPT_SIZE || o->type == EGW_OPT_DURATION;

  if (o->name == NULL || !is_word(o->name, '_'))
    return fail(c, "an option's name must be 1 to 64 of a-z, 0-9 and '_', a letter first");
  if ((unsigned)o->type > EGW_OPT_SECTION)
    return fail(c, "option %s: unknown type %d", o->name, (int)o->type);
  if (is_taken(type, o->name))
    return fail(c, "option %s: the gateway itself has an option of this name", o->name);
  if (o->help == NULL || o->help[0] == '\0')
    return fail(c, "option %s: no help", o->name);
  if (size > 0 && (size > head->instance_size || o->offset > head->instance_size - size))
    return fail(c, "option %s: its field is outside of the instance (instance_size %zu)",
                o->name, head->instance_size);
  if (size > 0 && o->offset % (size < 8 ? size : 8) != 0)
    return fail(c, "option %s: its field is not aligned", o->name);
  if (o->min > o->max || (amount && o->min < 0))
    return fail(c, "option %s: bad range", o->name);
  if (o->type == EGW_OPT_ENUM && (o->choices == NULL || o->choices[0] == NULL))
    return fail(c, "option %s: no choices", o->name);
  if ((o->flags & ~(uint32_t)(EGW_OPTION_REQUIRED | EGW_OPTION_RELOAD | EGW_OPTION_SECRET)) !=
          0 &&
      head->abi_minor <= EGW_ABI_MINOR)
    return fail(c, "option %s: unknown flags", o->name);
  if ((o->flags & EGW_OPTION_SECRET) != 0 && o->type != EGW_OPT_LIST)
    return fail(c, "option %s: only a list can have EGW_OPTION_SECRET", o->name);
  return check_fallback(c, o);
}

static const char *
check_options(struct check *c, const struct egw_plugin *head, enum egw_type type)
{
  const struct egw_option *o = head->options;

  for (size_t i = 0; o != NULL && o[i].type != EGW_OPT_END; i++) {
    const char *why;

    if (i == ROWS_MAX)
      return fail(c, "its option table has no end (EGW_OPTION_END)");
    why = check_option(c, head, type, &o[i]);
    if (why != NULL)
      return why;
    for (size_t j = 0; j < i; j++)
      if (strcmp(o[i].name, o[j].name) == 0)
        return fail(c, "option %s: twice in the table", o[i].name);
  }
  return NULL;
}

/* --- metrics ----------------------------------------------------------------------------- */

static const char *
check_metrics(struct check *c, const struct egw_plugin *head)
{
  const struct egw_metric *m = head->metrics;

  for (size_t i = 0; m != NULL && m[i].kind != EGW_METRIC_END; i++) {
    if (i == ROWS_MAX)
      return fail(c, "its metric table has no end (EGW_METRIC_TABLE_END)");
    if (m[i].name == NULL || !is_word(m[i].name, '_'))
      return fail(c, "a metric's name must be 1 to 64 of a-z, 0-9 and '_', a letter first");
    if (m[i].kind != EGW_METRIC_COUNTER && m[i].kind != EGW_METRIC_GAUGE)
      return fail(c, "metric %s: unknown kind %d", m[i].name, (int)m[i].kind);
    if (m[i].help == NULL || m[i].help[0] == '\0')
      return fail(c, "metric %s: no help", m[i].name);
    for (size_t j = 0; j < i; j++)
      if (strcmp(m[i].name, m[j].name) == 0)
        return fail(c, "metric %s: twice in the table", m[i].name);
  }
  return NULL;
}

/* --- the two kinds ----------------------------------------------------------------------- */

static const char *
check_middleware(struct check *c, const struct egw_middleware *m)
{
  bool newer = m->plugin.abi_minor > EGW_ABI_MINOR;

  if (m->request == NULL)
    return fail(c, "its callback request() is missing");
  if (m->kinds == 0)
    return fail(c, "it declares no kind of call");
  if (!newer && (m->kinds & ~EGW_KIND_ALL) != 0)
    return fail(c, "it declares unknown kinds of calls");
  if (!newer && (m->flags & ~(uint32_t)EGW_STAGE_GUARD) != 0)
    return fail(c, "it has unknown flags");
  if ((m->flags & EGW_STAGE_GUARD) != 0 && (m->kinds & EGW_KIND_ALL) != EGW_KIND_ALL)
    return fail(
        c, "it is a GUARD but does not declare every kind of call: something would pass it "
           "unseen");
  if ((unsigned)m->need > EGW_NEED_WHOLE)
    return fail(c, "unknown value %d of need", (int)m->need);
  if (m->need != EGW_NEED_NONE && m->reply == NULL)
    return fail(c, "it needs replies, but its callback reply() is missing");
  if (m->call_size > CALL_SIZE_MAX)
    return fail(c, "its call_size is over 64 KiB");
  return NULL;
}

static const char *
check_schemes(struct check *c, const char *schemes)
{
  size_t n = 0;

  while (schemes != NULL && *schemes != '\0') {
    size_t len = strcspn(schemes, " ");
    char word[65] = "";

    if (len < sizeof word)
      memcpy(word, schemes, len);
    if (!is_word(word, '-'))
      return fail(c, "its schemes must be words of a-z, 0-9 and '-' joined by single spaces");
    schemes += len + (schemes[len] == ' ' ? 1 : 0);
    n++;
  }
  return n == 0 ? fail(c, "it has no URL schemes") : NULL;
}

static const char *
check_transport(struct check *c, const struct egw_transport *t)
{
  const char *missing = t->open == NULL     ? "open"
                        : t->close == NULL  ? "close"
                        : t->submit == NULL ? "submit"
                        : t->abort == NULL  ? "abort"
                        : t->more == NULL   ? "more"
                                            : NULL;

  if (missing != NULL)
    return fail(c, "its callback %s() is missing", missing);
  if ((t->caps & ~(uint32_t)(EGW_T_MULTIPLEX | EGW_T_PUSH | EGW_T_BATCH)) != 0 &&
      t->plugin.abi_minor <= EGW_ABI_MINOR)
    return fail(c, "it has unknown caps");
  if ((t->caps & EGW_T_PUSH) != 0 && (t->caps & EGW_T_MULTIPLEX) == 0)
    return fail(c, "a transport with EGW_T_PUSH must be EGW_T_MULTIPLEX");
  if (t->link_size > STATE_SIZE_MAX || t->conn_size > STATE_SIZE_MAX ||
      t->xchg_size > CALL_SIZE_MAX)
    return fail(c, "its link_size, conn_size or xchg_size is too large");
  return check_schemes(c, t->schemes);
}

const char *
plugin_check(const struct egw_plugin *head, enum egw_type type, char *why, size_t cap)
{
  struct check c = { why, cap };
  const char *reason;

  if (head == NULL)
    return fail(&c, "it is no ethrpc-gw plugin (its egw_plugin_entry is NULL)");
  reason = check_head(&c, head, type);
  if (reason == NULL)
    reason = check_options(&c, head, type);
  if (reason == NULL)
    reason = check_metrics(&c, head);
  if (reason != NULL)
    return reason;
  /* the head is the first member of both */
  if (type == EGW_TYPE_MIDDLEWARE)
    return check_middleware(&c, (const struct egw_middleware *)(const void *)head);
  return check_transport(&c, (const struct egw_transport *)(const void *)head);
}
