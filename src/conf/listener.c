/* SPDX-License-Identifier: MIT */
/* Listeners: reading and cross-checks. */
#include "conf/file.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "base/net.h"
#include "conf/url.h"

#define NAME_MAX_LEN 120

const char *
conf_bad_name(const char *name)
{
  size_t len = strlen(name);

  if (len == 0)
    return "a name can't be empty";
  if (len > NAME_MAX_LEN)
    return "the name is too long (120 bytes at most)";
  for (const char *p = name; *p != '\0'; p++)
    if (*p <= 0x20 || *p > 0x7e || *p == '"' || *p == '\\')
      return "a name has only printable ASCII without blanks, quotes and backslashes";
  return NULL;
}

static bool
is_loopback(const char *address)
{
  struct in6_addr v6;
  struct in_addr v4;

  if (inet_pton(AF_INET, address, &v4) == 1)
    return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, address, &v6) != 1)
    return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

static bool
is_address(const char *address)
{
  unsigned char bytes[16];

  return inet_pton(AF_INET, address, bytes) == 1 || inet_pton(AF_INET6, address, bytes) == 1;
}

/* Options that mean something on the other kind of listener only. */
static void
check_kind(struct egw_conf *section, bool is_unix)
{
  static const char *const of_unix[] = { "mode", "group", "uids", NULL };
  static const char *const of_tcp[] = { "address", "port",      "tls_certificate",
                                        "tls_key", "hosts",     "origins",
                                        "http",    "websocket", "key_in_path",
                                        "trusted_proxies", "explain", NULL };
  const char *const *keys = is_unix ? of_tcp : of_unix;

  for (size_t i = 0; keys[i] != NULL; i++)
    if (conf_member(section, keys[i]) != NULL)
      (void)egw_conf_error(section, keys[i], is_unix ? "has no meaning on a unix socket (path)"
                                                     : "is for unix sockets (path) only");
}

static void
check_unix(struct egw_conf *section, struct conf_listener *l)
{
  struct sockaddr_un addr;
  size_t len = strlen(l->path), digits = strspn(l->mode, "01234567");
  unsigned long mode = strtoul(l->mode, NULL, 8);

  check_kind(section, true);
  if (len == 0)
    (void)egw_conf_error(section, "path", "can't be empty");
  if (len >= sizeof addr.sun_path)
    (void)egw_conf_error(section, "path", "is %zu bytes long; a unix socket's may have %zu",
                         len, sizeof addr.sun_path - 1);
  if (digits == 0 || digits > 4 || l->mode[digits] != '\0' || mode > 0777)
    (void)egw_conf_error(section, "mode", "must be octal in quotes, such as \"0660\"");
  l->address = NULL;
  l->port = 0;
}

static void
check_origin(struct egw_conf *section, const char *origin)
{
  struct egw_url url;

  if (strcmp(origin, "*") == 0 || strcmp(origin, "null") == 0)
    return;
  if (url_parse(origin, &url) == NULL) {
    bool bare = url.host[0] != '\0' && url.user[0] == '\0' && strcmp(url.path, "/") == 0 &&
                origin[strlen(origin) - 1] != '/';

    url_free(&url);
    if (bare)
      return;
  }
  (void)egw_conf_error(
      section, "origins",
      "\"%s\" is no origin: scheme://host or scheme://host:port, nothing behind", origin);
}

static void
check_proxies(struct egw_conf *section, const struct egw_strings *list)
{
  struct net_block block;

  for (size_t i = 0; i < list->n; i++)
    if (net_read_block(list->v[i], &block) != 0)
      (void)egw_conf_error(
          section, "trusted_proxies",
          "\"%s\" is neither an IP address nor a network such as \"10.0.0.0/8\"", list->v[i]);
}

static void
check_tcp(struct egw_conf *section, struct conf_listener *l, bool admin)
{
  check_kind(section, false);
  if (!is_address(l->address))
    (void)egw_conf_error(section, "address", "\"%s\" is not an IP address%s", l->address,
                         strcmp(l->address, "localhost") == 0 ? " (write \"127.0.0.1\")" : "");
  if (l->tls_certificate != NULL && l->tls_key == NULL)
    (void)egw_conf_error(section, "tls_certificate", "needs tls_key, too");
  if (l->tls_key != NULL && l->tls_certificate == NULL)
    (void)egw_conf_error(section, "tls_key", "needs tls_certificate, too");
  if (!l->http && !l->websocket)
    (void)egw_conf_error(section, "http",
                         "and websocket are both off: nothing would be served");
  for (size_t i = 0; i < l->hosts.n; i++)
    if (l->hosts.v[i][0] == '\0' || strpbrk(l->hosts.v[i], "/ @\t") != NULL)
      (void)egw_conf_error(section, "hosts", "\"%s\" is no host name", l->hosts.v[i]);
  for (size_t i = 0; i < l->origins.n; i++)
    check_origin(section, l->origins.v[i]);
  check_proxies(section, &l->trusted_proxies);
  if (admin && is_address(l->address) && !is_loopback(l->address))
    egw_conf_warn(section, "address", "the admin listener can be reached from other machines");
}

static void
name_listener(struct conf_file *file, struct egw_conf *section, struct conf_listener *l,
              bool admin, size_t index)
{
  const char *why = l->name == NULL ? NULL : conf_bad_name(l->name);

  if (why != NULL)
    (void)egw_conf_error(section, "name", "%s", why);
  if (l->name != NULL)
    return;
  if (admin)
    l->name = "admin";
  else if (l->path != NULL)
    l->name = l->path;
  else if (l->port == 0 && index > 0) /* several may have "any port" */
    l->name = conf_printf(file, "%s:0#%zu", l->address, index + 1);
  else
    l->name =
        conf_printf(file, strchr(l->address, ':') != NULL ? "[%s]:%" PRId64 : "%s:%" PRId64,
                    l->address, l->port);
}

static void
read_listener(struct conf *conf, struct egw_conf *section, const struct conf_limits *limits,
              struct conf_listener *l, size_t index)
{
  bool admin = l == &conf->admin;
  struct egw_conf *own;

  l->limits = *limits;
  l->http = l->websocket = true;
  (void)conf_read(section, admin ? conf_admin_options : conf_listener_options, l, false);
  own = egw_conf_section(section, "limits");
  if (own != NULL)
    (void)conf_read(own, conf_limit_options, &l->limits, true);
  if (l->path != NULL)
    check_unix(section, l);
  else
    check_tcp(section, l, admin);
  if (l->limits.max_connections_per_client == UINT64_MAX)
    l->limits.max_connections_per_client =
        l->path != NULL || is_loopback(l->address) ? 0 : 1000;
  name_listener(conf->file, section, l, admin, index);
  if (l->name == NULL)
    l->name = "";
}

static bool
same_place(const struct conf_listener *a, const struct conf_listener *b)
{
  if (a->path != NULL || b->path != NULL)
    return a->path != NULL && b->path != NULL && strcmp(a->path, b->path) == 0;
  return a->port != 0 && a->port == b->port && strcmp(a->address, b->address) == 0;
}

/* `a` stands later in the file than `b`. */
static void
compare_listeners(struct egw_conf *section, const struct conf_listener *a,
                  const struct conf_listener *b)
{
  if (same_place(a, b))
    (void)egw_conf_error(section, a->path != NULL ? "path" : "port",
                         "listener \"%s\" already listens there", b->name);
  else if (strcmp(a->name, b->name) == 0)
    (void)egw_conf_error(section, "name", "another listener is called \"%s\"", b->name);
}

static void
read_list(struct conf *conf, struct egw_conf *root, const struct conf_limits *limits)
{
  size_t n = egw_conf_count(root, "listen");

  conf->listeners = conf_memory(conf->file, (n + 1) * sizeof *conf->listeners);
  if (conf->listeners == NULL)
    return;
  if (conf_member(root, "listen") != NULL && conf_is_empty(root, "listen"))
    (void)egw_conf_error(root, "listen", "needs at least one listener");
  for (size_t i = 0; i < n; i++) {
    struct egw_conf *section = egw_conf_element(root, "listen", i);
    struct conf_listener *l = &conf->listeners[conf->listener_count];

    if (section == NULL)
      continue; /* conf_report_unknown() finds it */
    read_listener(conf, section, limits, l, i);
    for (size_t j = 0; j < conf->listener_count; j++)
      compare_listeners(section, l, &conf->listeners[j]);
    conf->listener_count++;
  }
}

void
conf_read_listeners(struct conf *conf, struct egw_conf *root, const struct conf_limits *limits)
{
  struct egw_conf *section;

  read_list(conf, root, limits);
  if (conf->listeners != NULL && conf_member(root, "listen") == NULL) {
    section = conf_section_empty(conf->file);
    if (section != NULL) {
      read_listener(conf, section, limits, &conf->listeners[0], 0);
      conf->listener_count = 1;
    }
  }
  section = egw_conf_section(root, "admin");
  if (section == NULL)
    return;
  conf->has_admin = true;
  read_listener(conf, section, limits, &conf->admin, 0);
  for (size_t j = 0; j < conf->listener_count; j++)
    compare_listeners(section, &conf->admin, &conf->listeners[j]);
}
