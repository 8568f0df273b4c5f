/* SPDX-License-Identifier: MIT */
/* A configuration from the command line: the arguments are put into a tree as if a file had
 * said so, and go through the same reading and checks. */
#include "conf/file.h"

#include <stdlib.h>
#include <string.h>

static config_setting_t *
add(struct conf_file *file, config_setting_t *parent, const char *name, int type)
{
  config_setting_t *s = parent == NULL ? NULL : config_setting_add(parent, name, type);

  if (s == NULL)
    file->no_memory = true;
  return s;
}

static void
add_text(struct conf_file *file, config_setting_t *group, const char *name, const char *text)
{
  config_setting_t *s = add(file, group, name, CONFIG_TYPE_STRING);

  if (s != NULL && config_setting_set_string(s, text) != CONFIG_TRUE)
    file->no_memory = true;
}

/* The port behind the last colon, or the whole; -1: it is none. */
static int
port_of(const char *text)
{
  size_t len = strlen(text);

  if (len == 0 || len > 5 || text[strspn(text, "0123456789")] != '\0')
    return -1;
  return (int)strtol(text, NULL, 10);
}

/* "ADDRESS:PORT", "[ADDRESS]:PORT", ":PORT", "PORT", "/PATH", "unix:/PATH" */
static void
add_listener(struct conf_file *file, config_setting_t *group, const char *text)
{
  const char *colon = strrchr(text, ':');
  const char *digits = colon == NULL ? text : colon + 1;
  size_t len = colon == NULL ? 0 : (size_t)(colon - text);
  char address[64] = "";
  config_setting_t *port;

  if (text[0] == '/' || strncmp(text, "unix:", 5) == 0) {
    add_text(file, group, "path", text[0] == '/' ? text : text + 5);
    return;
  }
  if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
    text++;
    len -= 2;
  } else if (len > 0 && memchr(text, ':', len) != NULL) {
    digits = ""; /* an IPv6 address without brackets: where it ends can't be told */
  }
  if (port_of(digits) < 0 || len >= sizeof address) {
    conf_message(file, false, 0,
                 "\"%s\" is nothing to listen on: ADDRESS:PORT, [ADDRESS]:PORT, "
                 "PORT or /PATH",
                 text);
    return;
  }
  if (len > 0) {
    memcpy(address, text, len);
    add_text(file, group, "address", address);
  }
  port = add(file, group, "port", CONFIG_TYPE_INT);
  if (port != NULL)
    (void)config_setting_set_int(port, port_of(digits));
}

struct conf *
conf_from_args(const char *const *upstreams, size_t upstream_count, const char *const *listens,
               size_t listen_count, const char *admin)
{
  struct conf *conf = conf_new("command line");
  config_setting_t *root, *list;
  struct conf_file *file;

  if (conf == NULL)
    return NULL;
  file = conf->file;
  root = config_root_setting(&file->tree);
  if (listen_count > 0) {
    list = add(file, root, "listen", CONFIG_TYPE_LIST);
    for (size_t i = 0; i < listen_count; i++)
      add_listener(file, add(file, list, NULL, CONFIG_TYPE_GROUP), listens[i]);
  }
  if (admin != NULL)
    add_listener(file, add(file, root, "admin", CONFIG_TYPE_GROUP), admin);
  if (upstream_count > 0) {
    list = add(file, root, "upstreams", CONFIG_TYPE_LIST);
    for (size_t i = 0; i < upstream_count; i++)
      add_text(file, add(file, list, NULL, CONFIG_TYPE_GROUP), "url", upstreams[i]);
  }
  if (!file->no_memory)
    conf_read_all(conf);
  return conf;
}
