/* SPDX-License-Identifier: MIT */
/* --dump-config: the configuration in effect in the file's own syntax. Defaults are filled in,
 * secrets and upstream URLs are blanked, and what comes out parses again. */
#include "conf/file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "conf/url.h"

typedef const struct egw_option *dump_options_fn(void *arg, const char *kind,
                                                 const char *name);

struct dump {
  struct egw_buf *out;
  int depth;
  bool failed;
  dump_options_fn *options_of;
  void *arg;
};

#define INDENT(d) ((d)->depth * 2), ""

EGW_PRINTF(2, 3) static void
line(struct dump *d, const char *fmt, ...)
{
  va_list ap;
  char text[512];

  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (egw_buf_printf(d->out, "%*s%s\n", INDENT(d), text) < 0)
    d->failed = true;
}

static void
open_group(struct dump *d, const char *text)
{
  line(d, "%s", text);
  d->depth++;
}

static void
close_group(struct dump *d, const char *text)
{
  d->depth--;
  line(d, "%s", text);
}

/* One option by its field; what is not set is shown as a comment. */
static void
dump_field(struct dump *d, const struct egw_option *o, const void *field)
{
  const char *text = "";

  if (o->type == EGW_OPT_STRING || o->type == EGW_OPT_SECRET)
    memcpy(&text, field, sizeof text);
  if (text == NULL) {
    line(d, "# %s is not set", o->name);
    return;
  }
  if (egw_buf_printf(d->out, "%*s%s = ", INDENT(d), o->name) < 0 ||
      value_print(d->out, o, field) < 0 || egw_buf_append(d->out, ";\n", 2) < 0)
    d->failed = true;
}

/* All options of a core table, by the struct that was read; those in `skip` are left out. */
static void
dump_table(struct dump *d, const struct egw_option *table, const void *from,
           const char *const *skip)
{
  for (const struct egw_option *o = table; o->type != EGW_OPT_END; o++) {
    bool left_out = o->type == EGW_OPT_SECTION;

    for (size_t i = 0; skip != NULL && skip[i] != NULL; i++)
      left_out = left_out || strcmp(skip[i], o->name) == 0;
    if (!left_out)
      dump_field(d, o, (const char *)from + o->offset);
  }
}

/* --- a plugin's own groups and lists: as they stand in the file -------------------------- */

static int
dump_scalar(struct dump *d, const config_setting_t *s)
{
  int64_t n;

  switch (config_setting_type(s)) {
  case CONFIG_TYPE_INT:
  case CONFIG_TYPE_INT64:
    n = config_setting_get_int64(s);
    return egw_buf_printf(d->out, "%" PRId64 "%s", n,
                          n > INT32_MAX || n < INT32_MIN ? "L" : "");
  case CONFIG_TYPE_FLOAT: return egw_buf_printf(d->out, "%.6f", config_setting_get_float(s));
  case CONFIG_TYPE_BOOL:
    return egw_buf_printf(d->out, "%s", config_setting_get_bool(s) ? "true" : "false");
  default:
    /* nobody has said that this text is no secret unless it was read as something else */
    return value_quote(d->out,
                       conf_mark_of(s) == CONF_READ ? config_setting_get_string(s) : "***");
  }
}

static void
dump_node(struct dump *d, const config_setting_t *s)
{
  const char *name = config_setting_name(s);
  const char *opening = "";
  int r = 0, type = config_setting_type(s);

  if (config_setting_is_aggregate(s))
    opening = type == CONFIG_TYPE_GROUP ? "{" : type == CONFIG_TYPE_LIST ? "(" : "[";
  if (egw_buf_printf(d->out, "%*s%s%s%s", INDENT(d), name == NULL ? "" : name,
                     name == NULL ? "" : " = ", opening) < 0)
    d->failed = true;
  if (!config_setting_is_aggregate(s))
    r = dump_scalar(d, s);
  if (r < 0)
    d->failed = true;
}

/* What stands behind a value: ";" in a group, "," in a list unless it is the last. */
static void
dump_end(struct dump *d, const config_setting_t *s)
{
  config_setting_t *parent = config_setting_parent(s);
  bool named = config_setting_name(s) != NULL;
  bool last = config_setting_index(s) == config_setting_length(parent) - 1;

  if (egw_buf_printf(d->out, "%s\n", named ? ";" : last ? "" : ",") < 0)
    d->failed = true;
}

/* Walks without recursion; the depth is that of the file. */
static void
dump_tree(struct dump *d, config_setting_t *top)
{
  config_setting_t *path[CONF_DEPTH_MAX + 1];
  int next[CONF_DEPTH_MAX + 1], depth = 0;

  path[0] = top;
  next[0] = 0;
  dump_node(d, top);
  while (depth >= 0) {
    config_setting_t *s = path[depth];
    int type = config_setting_type(s);
    int n = config_setting_is_aggregate(s) ? config_setting_length(s) : 0;

    if (next[depth] == 0 && n > 0 && egw_buf_append(d->out, "\n", 1) < 0)
      d->failed = true;
    if (next[depth] < n && depth < CONF_DEPTH_MAX) {
      path[depth + 1] = config_setting_get_elem(s, (unsigned)next[depth]++);
      next[++depth] = 0;
      d->depth++;
      dump_node(d, path[depth]);
      continue;
    }
    if (config_setting_is_aggregate(s) &&
        egw_buf_printf(d->out, "%*s%s", n > 0 ? d->depth * 2 : 0, "",
                       type == CONFIG_TYPE_GROUP  ? "}"
                       : type == CONFIG_TYPE_LIST ? ")"
                                                  : "]") < 0)
      d->failed = true;
    dump_end(d, s);
    if (--depth >= 0)
      d->depth--;
  }
}

static void
dump_plugin_option(struct dump *d, struct egw_conf *section, const struct egw_option *o)
{
  config_setting_t *member = conf_member(section, o->name);
  union value value;

  if (o->type == EGW_OPT_SECTION) {
    if (member != NULL)
      dump_tree(d, member);
  } else if ((o->flags & EGW_OPTION_SECRET) != 0) {
    line(d, "# %s: %d, not shown", o->name,
         member == NULL ? 0 : config_setting_length(member));
  } else if (o->type == EGW_OPT_SECRET) {
    /* a plugin may check its form: it is left out where it can be */
    if (member != NULL)
      line(d, (o->flags & EGW_OPTION_REQUIRED) != 0 ? "%s = \"***\";" : "# %s = \"***\";",
           o->name);
    else
      line(d, "# %s is not set", o->name);
  } else if (conf_peek(section, o, &value)) {
    dump_field(d, o, &value);
  } else {
    line(d, "# %s is not set", o->name);
  }
}

static void
dump_plugin(struct dump *d, struct egw_conf *section, const char *kind, const char *name)
{
  const struct egw_option *o =
      d->options_of == NULL ? NULL : d->options_of(d->arg, kind, name);

  for (; o != NULL && o->type != EGW_OPT_END; o++)
    dump_plugin_option(d, section, o);
}

/* --- the parts --------------------------------------------------------------------------- */

static void
dump_listener(struct dump *d, const struct conf_listener *l, bool admin)
{
  static const char *const of_tcp[] = { "address", "port",      "tls_certificate",
                                        "tls_key", "hosts",     "origins",
                                        "http",    "websocket", "key_in_path",
                                        "trusted_proxies", "explain", NULL };
  static const char *const of_unix[] = { "path", "mode", "group", "uids", NULL };

  dump_table(d, admin ? conf_admin_options : conf_listener_options, l,
             l->path != NULL ? of_tcp : of_unix);
  open_group(d, "limits = {");
  dump_table(d, conf_limit_options, &l->limits, NULL);
  close_group(d, "};");
}

static void
dump_upstream(struct dump *d, const struct conf_upstream *u)
{
  static const char *const skip[] = { "url", NULL };
  struct egw_url url;

  if (u->url == NULL || url_parse(u->url, &url) != NULL) {
    line(d, "# bad url");
    return;
  }
  dump_table(d, conf_upstream_options, u, skip);
  line(d, "url = \"%s://%s***\";", url.scheme, url.host[0] == '\0' ? "/" : "");
  dump_plugin(d, u->section, "transport", url.scheme);
  url_free(&url);
}

static void
dump_network(struct dump *d, const struct conf_network *net)
{
  dump_table(d, conf_network_options, net, NULL);
  open_group(d, "upstreams = (");
  for (size_t i = 0; i < net->upstream_count; i++) {
    open_group(d, "{");
    dump_upstream(d, &net->upstreams[i]);
    close_group(d, i + 1 < net->upstream_count ? "}," : "}");
  }
  close_group(d, ");");
  open_group(d, "middleware = (");
  for (size_t i = 0; i < net->stage_count; i++) {
    open_group(d, "{");
    dump_table(d, conf_stage_options, &net->stages[i], NULL);
    dump_plugin(d, net->stages[i].section, "middleware", net->stages[i].use);
    close_group(d, i + 1 < net->stage_count ? "}," : "}");
  }
  close_group(d, ");");
}

static void
dump_all(struct dump *d, const struct conf *conf)
{
  line(d, "# the configuration in effect; secrets and URLs are blanked");
  dump_table(d, conf_top_options, conf, NULL);
  open_group(d, "log = {");
  dump_table(d, conf_log_options, conf, NULL);
  close_group(d, "};");
  open_group(d, "listen = (");
  for (size_t i = 0; i < conf->listener_count; i++) {
    open_group(d, "{");
    dump_listener(d, &conf->listeners[i], false);
    close_group(d, i + 1 < conf->listener_count ? "}," : "}");
  }
  close_group(d, ");");
  if (conf->has_admin) {
    open_group(d, "admin = {");
    dump_listener(d, &conf->admin, true);
    close_group(d, "};");
  } else {
    line(d, "# admin is not set");
  }
  open_group(d, "networks = (");
  for (size_t i = 0; i < conf->network_count; i++) {
    open_group(d, "{");
    dump_network(d, &conf->networks[i]);
    close_group(d, i + 1 < conf->network_count ? "}," : "}");
  }
  close_group(d, ");");
}

int
conf_dump(const struct conf *conf, int fd, dump_options_fn *options_of, void *arg)
{
  struct dump d = { .out = egw_buf_new(16384), .options_of = options_of, .arg = arg };
  int r = -1;

  if (d.out == NULL)
    return -1;
  dump_all(&d, conf);
  if (!d.failed)
    r = value_write(fd, egw_buf_slice(d.out));
  egw_buf_unref(d.out);
  return r;
}
