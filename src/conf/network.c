/* SPDX-License-Identifier: MIT */
/* Networks, their upstreams and stages: reading and cross-checks. */
#include "conf/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "conf/url.h"

/* --- upstreams --------------------------------------------------------------------------- */

/* "url = "file:PATH"" keeps a URL with a key in it out of the file: read as a SECRET is. */
static const struct egw_option url_as_secret[] = {
  { .name = "url", .type = EGW_OPT_SECRET },
  EGW_OPTION_END
};

static int
url_from_file(struct egw_conf *section, struct conf_upstream *u)
{
  if (strncmp(u->url, "file:", 5) != 0)
    return 0;
  u->url = NULL;
  return conf_read(section, url_as_secret, &u->url, true);
}

static const char *
default_name(struct conf_file *file, const struct egw_url *url)
{
  struct egw_buf *buf = egw_buf_new(64);
  char *name = NULL;

  if (buf == NULL || url_default_name(url, buf) < 0) {
    file->no_memory = true;
  } else {
    struct egw_slice s = egw_buf_slice(buf);

    name = conf_printf(file, "%.*s", (int)s.len, s.ptr);
  }
  egw_buf_unref(buf);
  for (char *p = name; p != NULL && *p != '\0'; p++)
    if (*p <= 0x20 || *p > 0x7e || *p == '"' || *p == '\\')
      *p = '_';
  return name;
}

static bool
upstream_named(const struct conf_network *net, size_t count, const char *name)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(net->upstreams[i].name, name) == 0)
      return true;
  return false;
}

static void
name_upstream(struct egw_conf *section, struct conf_network *net, struct conf_upstream *u,
              const struct egw_url *url)
{
  const char *base, *why = u->name == NULL ? NULL : conf_bad_name(u->name);

  if (why != NULL)
    (void)egw_conf_error(section, "name", "%s", why);
  else if (u->name != NULL && upstream_named(net, net->upstream_count, u->name))
    (void)egw_conf_error(section, "name", "another upstream of this network is called \"%s\"",
                         u->name);
  if (u->name != NULL)
    return;
  base = u->name = url == NULL ? "?" : default_name(section->file, url);
  for (unsigned i = 2; u->name != NULL && upstream_named(net, net->upstream_count, u->name);
       i++)
    u->name = conf_printf(section->file, "%s-%u", base, i);
  if (u->name == NULL)
    u->name = "?";
}

static void
check_url(struct egw_conf *section, struct conf_network *net, struct conf_upstream *u)
{
  bool from_file = u->url != NULL && strncmp(u->url, "file:", 5) == 0;
  struct egw_url url;
  const char *why;

  if (u->url == NULL || url_from_file(section, u) < 0) {
    name_upstream(section, net, u, NULL);
    return;
  }
  why = url_parse(u->url, &url);
  if (why != NULL) {
    (void)egw_conf_error(section, "url", "bad URL: %s", why);
    u->url = NULL;
    name_upstream(section, net, u, NULL);
    return;
  }
  if (conf_url_secrets(section->file, &url) && !from_file)
    conf_secret_seen(section, "url");
  if (strcmp(url.host, "***") == 0 || strcmp(url.path, "/***") == 0)
    egw_conf_warn(section, "url",
                  "was blanked by --dump-config: put the real one in its place");
  name_upstream(section, net, u, &url);
  url_free(&url);
}

/* A node with two URLs is two upstreams that share their section: calls find the one that works. */
static void
add_ws(struct egw_conf *section, struct conf_network *net, const struct conf_upstream *u)
{
  struct conf_upstream *more = &net->upstreams[net->upstream_count];
  struct egw_url url;
  const char *why = url_parse(u->ws, &url);

  if (why != NULL) {
    (void)egw_conf_error(section, "ws", "bad URL: %s", why);
    return;
  }
  if (strcmp(url.scheme, "ws") != 0 && strcmp(url.scheme, "wss") != 0)
    (void)egw_conf_error(section, "ws", "is for ws:// and wss:// URLs");
  else if (conf_url_secrets(section->file, &url))
    conf_secret_seen(section, "ws");
  url_free(&url);
  *more = *u;
  more->url = u->ws;
  more->ws = NULL;
  more->name = conf_printf(section->file, "%s-ws", u->name);
  if (more->name == NULL)
    return;
  if (upstream_named(net, net->upstream_count, more->name))
    (void)egw_conf_error(section, "ws", "another upstream of this network is called \"%s\"",
                         more->name);
  net->upstream_count++;
}

static void
read_upstreams(struct egw_conf *section, struct conf_network *net)
{
  size_t n = egw_conf_count(section, "upstreams");

  if (conf_is_empty(section, "upstreams"))
    (void)egw_conf_error(section,
                         conf_member(section, "upstreams") != NULL ? "upstreams" : NULL,
                         "the network has no upstream");
  if (n == 0)
    return;
  net->upstreams = conf_memory(section->file, 2 * n * sizeof *net->upstreams);
  for (size_t i = 0; i < n && net->upstreams != NULL; i++) {
    struct egw_conf *sub = egw_conf_element(section, "upstreams", i);
    struct conf_upstream *u = &net->upstreams[net->upstream_count];

    if (sub == NULL)
      continue;
    sub->open = true;
    u->section = sub;
    (void)conf_read(sub, conf_upstream_options, u, false);
    check_url(sub, net, u);
    net->upstream_count++;
    if (u->ws != NULL)
      add_ws(sub, net, u);
    u->ws = NULL;
  }
}

/* --- stages ------------------------------------------------------------------------------ */

static void
check_stage(struct egw_conf *section, struct conf_network *net, struct conf_stage *stage)
{
  const char *why, *base;

  base = stage->use == NULL ? NULL : strrchr(stage->use, '/');
  if (stage->name == NULL)
    stage->name = stage->use == NULL ? "?" : base == NULL ? stage->use : base + 1;
  why = conf_bad_name(stage->name);
  if (why != NULL)
    (void)egw_conf_error(section, "name", "%s", why);
  for (size_t i = 0; i < net->stage_count; i++)
    if (strcmp(net->stages[i].name, stage->name) == 0) {
      (void)egw_conf_error(
          section, "name",
          "another stage of this network is called \"%s\": give each a name of "
          "its own",
          stage->name);
      return;
    }
}

static void
default_stages(struct egw_conf *section, struct conf_network *net)
{
  net->stages = conf_memory(section->file, sizeof *net->stages);
  if (net->stages == NULL)
    return;
  net->stages[0] = (struct conf_stage){ .use = "methods", .name = "methods",
                                        .section = conf_section_empty(section->file) };
  net->stage_count = net->stages[0].section == NULL ? 0 : 1;
}

static void
read_stages(struct egw_conf *section, struct conf_network *net)
{
  size_t n = egw_conf_count(section, "middleware");
  bool guarded = false;

  if (conf_member(section, "middleware") == NULL) {
    default_stages(section, net);
    return;
  }
  net->stages = conf_memory(section->file, (n + 1) * sizeof *net->stages);
  for (size_t i = 0; i < n && net->stages != NULL; i++) {
    struct egw_conf *sub = egw_conf_element(section, "middleware", i);
    struct conf_stage *stage = &net->stages[net->stage_count];

    if (sub == NULL)
      continue;
    sub->open = true;
    stage->section = sub;
    (void)conf_read(sub, conf_stage_options, stage, false);
    check_stage(sub, net, stage);
    guarded = guarded || (stage->use != NULL && strcmp(stage->use, "methods") == 0);
    net->stage_count++;
  }
  if (!guarded)
    egw_conf_warn(section, "middleware",
                  "has no stage \"methods\": clients can call every method of the nodes");
}

/* --- networks ---------------------------------------------------------------------------- */

/* Names are path segments; one of only digits stands for a chain id. */
static void
check_network_name(struct egw_conf *section, const struct conf_network *net)
{
  char digits[24];

  if (net->name[0] == '\0' || strlen(net->name) > 64 ||
      net->name[strspn(net->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-")] != '\0') {
    (void)egw_conf_error(section, "name", "must be 1 to 64 letters, digits, '.', '_' or '-'");
    return;
  }
  (void)snprintf(digits, sizeof digits, "%" PRId64, net->chain_id);
  if (net->name[strspn(net->name, "0123456789")] == '\0' && strcmp(net->name, digits) != 0)
    (void)egw_conf_error(section, "name", "a name of digits must be the network's chain_id");
}

static void
compare_networks(struct egw_conf *section, const struct conf_network *a,
                 const struct conf_network *b)
{
  if (strcmp(a->name, b->name) == 0)
    (void)egw_conf_error(section, "name", "another network is called \"%s\"", b->name);
  if (a->chain_id != 0 && a->chain_id == b->chain_id)
    (void)egw_conf_error(section, "chain_id", "network \"%s\" has the same", b->name);
}

static void
read_network(struct conf *conf, struct egw_conf *section)
{
  struct conf_network *net = &conf->networks[conf->network_count];

  (void)conf_read(section, conf_network_options, net, false);
  check_network_name(section, net);
  for (size_t i = 0; i < conf->network_count; i++)
    compare_networks(section, net, &conf->networks[i]);
  read_upstreams(section, net);
  read_stages(section, net);
  conf->network_count++;
}

void
conf_read_networks(struct conf *conf, struct egw_conf *root)
{
  size_t n = egw_conf_count(root, "networks");
  bool single = conf_member(root, "upstreams") != NULL;

  conf->networks = conf_memory(conf->file, (n + 1) * sizeof *conf->networks);
  if (conf->networks == NULL)
    return;
  if (single && conf_member(root, "networks") == NULL) {
    read_network(conf, root);
    return;
  }
  if (single) {
    (void)egw_conf_error(root, "upstreams",
                         "stands beside networks: move it into one of them");
    conf_mark_read(root, conf_member(root, "upstreams"));
  }
  if (conf_is_empty(root, "networks"))
    (void)egw_conf_error(root, conf_member(root, "networks") != NULL ? "networks" : NULL,
                         "no upstream is given: networks or upstreams is needed");
  for (size_t i = 0; i < n; i++) {
    struct egw_conf *section = egw_conf_element(root, "networks", i);

    if (section != NULL)
      read_network(conf, section);
  }
}
