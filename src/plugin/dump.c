/* SPDX-License-Identifier: MIT */
/* --dump-plugin: a plugin's descriptor as key=value lines, for people and for the tests that
 * compare it with its manual page. */
#include "plugin/loader.h"

#include <inttypes.h>
#include <string.h>
#include "conf/value.h"

static void
put(struct egw_buf *out, bool *failed, const char *key, const char *value)
{
  if (egw_buf_printf(out, "%s=%s\n", key, value) < 0)
    *failed = true;
}

static void
put_number(struct egw_buf *out, bool *failed, const char *key, uint64_t value)
{
  if (egw_buf_printf(out, "%s=%" PRIu64 "\n", key, value) < 0)
    *failed = true;
}

/* option NAME type=... default=... min=.. max=.. choices=a|b flags=required,reload help=... */
static int
dump_option(struct egw_buf *out, const struct egw_option *o)
{
  int r = egw_buf_printf(out, "option=%s type=%s", o->name, value_type_name(o->type));

  if (o->fallback != NULL)
    r |= egw_buf_printf(out, " default=%s", o->fallback[0] == '\0' ? "\"\"" : o->fallback);
  if (o->min != 0 || o->max != 0)
    r |= egw_buf_printf(out, " min=%" PRId64 " max=%" PRId64, o->min, o->max);
  for (size_t i = 0; o->type == EGW_OPT_ENUM && o->choices[i] != NULL; i++)
    r |= egw_buf_printf(out, "%s%s", i == 0 ? " choices=" : "|", o->choices[i]);
  if ((o->flags & EGW_OPTION_REQUIRED) != 0)
    r |= egw_buf_printf(out, " required");
  if ((o->flags & EGW_OPTION_RELOAD) != 0)
    r |= egw_buf_printf(out, " reload");
  if ((o->flags & EGW_OPTION_SECRET) != 0)
    r |= egw_buf_printf(out, " secret");
  return r | egw_buf_printf(out, " help=%s\n", o->help);
}

static void
dump_head(struct egw_buf *out, bool *failed, const struct plugin *p)
{
  const struct egw_plugin *h = p->head;

  put(out, failed, "name", h->name);
  put(out, failed, "type", h->type == EGW_TYPE_MIDDLEWARE ? "middleware" : "transport");
  put(out, failed, "version", h->version);
  put(out, failed, "summary", h->summary);
  put(out, failed, "path", p->path == NULL ? "" : p->path);
  if (egw_buf_printf(out, "abi=%u.%u\n", h->abi_major, h->abi_minor) < 0)
    *failed = true;
  put_number(out, failed, "struct_size", h->struct_size);
  put_number(out, failed, "instance_size", h->instance_size);
  put_number(out, failed, "worker_size", h->worker_size);
  for (const struct egw_option *o = h->options; o != NULL && o->type != EGW_OPT_END; o++)
    if (dump_option(out, o) < 0)
      *failed = true;
  for (const struct egw_metric *m = h->metrics; m != NULL && m->kind != EGW_METRIC_END; m++)
    if (egw_buf_printf(out, "metric=%s type=%s help=%s\n", m->name,
                       m->kind == EGW_METRIC_COUNTER ? "counter" : "gauge", m->help) < 0)
      *failed = true;
}

struct flag_name {
  uint32_t flag;
  const char *name;
};

static void
put_flags(struct egw_buf *out, bool *failed, const char *key, uint32_t flags,
          const struct flag_name *names)
{
  const char *joint = "";

  if (egw_buf_printf(out, "%s=", key) < 0)
    *failed = true;
  for (; names->name != NULL; names++) {
    if ((flags & names->flag) == 0)
      continue;
    if (egw_buf_printf(out, "%s%s", joint, names->name) < 0)
      *failed = true;
    joint = ",";
  }
  if (egw_buf_append(out, "\n", 1) < 0)
    *failed = true;
}

static void
dump_middleware(struct egw_buf *out, bool *failed, const struct egw_middleware *m)
{
  static const struct flag_name kinds[] = {
    { EGW_KIND_CALL, "call" },           { EGW_KIND_NOTIFICATION, "notification" },
    { EGW_KIND_SUBSCRIBE, "subscribe" }, { EGW_KIND_UNSUBSCRIBE, "unsubscribe" },
    { EGW_KIND_SUBCALL, "subcall" },     { 0, NULL }
  };
  static const struct flag_name flags[] = { { EGW_STAGE_GUARD, "guard" }, { 0, NULL } };
  static const char *const needs[] = { "none", "head", "whole" };
  const struct flag_name callbacks[] = {
    { m->plugin.configure != NULL, "configure" },
    { m->plugin.worker_start != NULL, "worker_start" },
    { m->request != NULL, "request" },
    { m->reply != NULL, "reply" },
    { m->timer != NULL, "timer" },
    { m->cancel != NULL, "cancel" },
    { m->finish != NULL, "finish" },
    { m->wants != NULL, "wants" },
    { 0, NULL }
  };

  put_number(out, failed, "call_size", m->call_size);
  put_flags(out, failed, "kinds", m->kinds, kinds);
  put_flags(out, failed, "flags", m->flags, flags);
  put(out, failed, "need", needs[m->need]);
  put_flags(out, failed, "callbacks", 1, callbacks);
}

static void
dump_transport(struct egw_buf *out, bool *failed, const struct egw_transport *t)
{
  static const struct flag_name caps[] = { { EGW_T_MULTIPLEX, "multiplex" },
                                           { EGW_T_PUSH, "push" },
                                           { EGW_T_BATCH, "batch" },
                                           { 0, NULL } };

  put(out, failed, "schemes", t->schemes);
  put_flags(out, failed, "caps", t->caps, caps);
  put_number(out, failed, "link_size", t->link_size);
  put_number(out, failed, "xchg_size", t->xchg_size);
  put_number(out, failed, "conn_size", t->conn_size);
}

int
plugin_dump(const struct plugin *plugin, int fd)
{
  struct egw_buf *out = egw_buf_new(4096);
  bool failed = false;
  int r = -1;

  if (out == NULL)
    return -1;
  dump_head(out, &failed, plugin);
  if (plugin->head->type == EGW_TYPE_MIDDLEWARE)
    dump_middleware(out, &failed, &plugin->middleware);
  else
    dump_transport(out, &failed, &plugin->transport);
  if (!failed)
    r = value_write(fd, egw_buf_slice(out));
  egw_buf_unref(out);
  return r;
}
