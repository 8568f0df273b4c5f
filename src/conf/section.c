/* SPDX-License-Identifier: MIT */
/* Sections: the groups of the file, which of their members have been read, and messages that
 * say where in the file they belong. */
#include "conf/file.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* The hooks of members that are not groups point to one of these. */
static const char marks[] = { CONF_UNREAD, CONF_READ, CONF_READ_LIST, CONF_READ_SECRET };

enum conf_mark
conf_mark_of(const config_setting_t *setting)
{
  const char *hook = config_setting_get_hook(setting);

  if (hook == NULL)
    return CONF_UNREAD;
  return config_setting_type(setting) == CONFIG_TYPE_GROUP ? CONF_READ : (enum conf_mark)*hook;
}

void
conf_mark_set(config_setting_t *setting, enum conf_mark mark)
{
  config_setting_set_hook(setting, (void *)(uintptr_t)&marks[mark]);
}

struct egw_conf *
conf_section_empty(struct conf_file *file)
{
  struct egw_conf *section = conf_memory(file, sizeof *section);

  if (section != NULL)
    section->file = file;
  return section;
}

struct egw_conf *
conf_section_of(struct conf_file *file, config_setting_t *group)
{
  struct egw_conf *section = config_setting_get_hook(group);

  if (section != NULL)
    return section;
  section = conf_section_empty(file);
  if (section == NULL)
    return NULL;
  section->group = group;
  section->next = file->sections;
  file->sections = section;
  config_setting_set_hook(group, section);
  return section;
}

void
conf_mark_read(struct egw_conf *section, config_setting_t *setting)
{
  if (config_setting_type(setting) == CONFIG_TYPE_GROUP) {
    struct egw_conf *inner = conf_section_of(section->file, setting);

    if (inner != NULL)
      inner->rejected = true;
  } else {
    conf_mark_set(setting, CONF_READ);
  }
}

config_setting_t *
conf_member(const struct egw_conf *section, const char *key)
{
  return section->group == NULL ? NULL : config_setting_get_member(section->group, key);
}

bool
conf_is_empty(const struct egw_conf *section, const char *key)
{
  config_setting_t *member = conf_member(section, key);
  int type = member == NULL ? CONFIG_TYPE_NONE : config_setting_type(member);

  return member == NULL || ((type == CONFIG_TYPE_LIST || type == CONFIG_TYPE_ARRAY) &&
                            config_setting_length(member) == 0);
}

/* --- messages ---------------------------------------------------------------------------- */

/* "networks[0].upstreams[1].url" into `out`, from the setting upwards. */
static const char *
setting_path(const config_setting_t *setting, const char *key, char *out, size_t cap)
{
  size_t at = cap - 1;

  out[at] = '\0';
  for (;;) {
    const char *point = out[at] == '\0' || out[at] == '[' ? "" : ".";
    const char *name = key != NULL ? key : config_setting_name(setting);
    char part[128];
    size_t len;

    if (key == NULL && config_setting_is_root(setting))
      return out + at;
    if (name != NULL)
      (void)snprintf(part, sizeof part, "%s%s", name, point);
    else
      (void)snprintf(part, sizeof part, "[%d]%s", config_setting_index(setting), point);
    len = strlen(part);
    if (len > at)
      return out + at;
    at -= len;
    memcpy(out + at, part, len);
    if (key == NULL)
      setting = config_setting_parent(setting);
    key = NULL;
  }
}

EGW_PRINTF(4, 0) static void
section_message(struct egw_conf *section, bool warning, const char *key, const char *fmt,
                va_list ap)
{
  char text[1024], path[256];
  const char *where = key == NULL ? "" : key;
  int line = 0;

  (void)vsnprintf(text, sizeof text, fmt, ap);
  if (section->group != NULL) {
    config_setting_t *member = key == NULL ? NULL : conf_member(section, key);

    line = (int)config_setting_source_line(member != NULL ? member : section->group);
    where = setting_path(section->group, key, path, sizeof path);
  }
  conf_message(section->file, warning, line, "%s%s%s", where, where[0] == '\0' ? "" : ": ",
               text);
}

int
egw_conf_error(struct egw_conf *section, const char *key, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  section_message(section, false, key, fmt, ap);
  va_end(ap);
  if (section->open && (key == NULL || strcmp(key, "use") == 0 || strcmp(key, "url") == 0))
    section->rejected = true;
  return -1;
}

void
egw_conf_warn(struct egw_conf *section, const char *key, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  section_message(section, true, key, fmt, ap);
  va_end(ap);
}

/* --- sub-sections ------------------------------------------------------------------------ */

bool
egw_conf_has_listener(const struct egw_conf *section, const char *name)
{
  const struct conf *conf = section->file->conf;

  for (size_t i = 0; conf != NULL && i < conf->listener_count; i++)
    if (strcmp(conf->listeners[i].name, name) == 0)
      return true;
  return false;
}

struct egw_conf *
egw_conf_section(struct egw_conf *section, const char *key)
{
  config_setting_t *member = conf_member(section, key);

  if (member == NULL)
    return NULL;
  if (config_setting_type(member) == CONFIG_TYPE_GROUP)
    return conf_section_of(section->file, member);
  if (conf_mark_of(member) == CONF_UNREAD) {
    conf_mark_set(member, CONF_READ);
    (void)egw_conf_error(section, key, "must be a group { ... }");
  }
  return NULL;
}

size_t
egw_conf_count(struct egw_conf *section, const char *key)
{
  config_setting_t *member = conf_member(section, key);
  int type = member == NULL ? CONFIG_TYPE_NONE : config_setting_type(member);

  if (member == NULL)
    return 0;
  if (type == CONFIG_TYPE_LIST || type == CONFIG_TYPE_ARRAY) {
    if (conf_mark_of(member) == CONF_UNREAD)
      conf_mark_set(member, CONF_READ_LIST);
    return (size_t)config_setting_length(member);
  }
  if (conf_mark_of(member) == CONF_UNREAD) {
    conf_mark_read(section, member);
    (void)egw_conf_error(section, key, "must be a list of groups ( { ... }, { ... } )");
  }
  return 0;
}

struct egw_conf *
egw_conf_element(struct egw_conf *section, const char *key, size_t index)
{
  config_setting_t *element;

  if (index >= egw_conf_count(section, key) || index > INT_MAX)
    return NULL;
  element = config_setting_get_elem(conf_member(section, key), (unsigned)index);
  if (element == NULL || config_setting_type(element) != CONFIG_TYPE_GROUP)
    return NULL;
  return conf_section_of(section->file, element);
}
