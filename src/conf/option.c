/* SPDX-License-Identifier: MIT */
/* Reading a section by an option table. Every member that is read is marked, so that what is
 * left over can be reported in the end. */
#include "conf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_FILE_MAX 65536

static const char *
setting_type_name(const config_setting_t *setting)
{
  switch (config_setting_type(setting)) {
  case CONFIG_TYPE_INT:
  case CONFIG_TYPE_INT64: return "a bare number";
  case CONFIG_TYPE_FLOAT: return "a number with a point";
  case CONFIG_TYPE_STRING: return "text";
  case CONFIG_TYPE_BOOL: return "true or false";
  case CONFIG_TYPE_ARRAY:
  case CONFIG_TYPE_LIST: return "a list";
  case CONFIG_TYPE_GROUP: return "a group";
  default: return "nothing";
  }
}

/* A setting that is not text into a value of its type. */
static int
value_from_scalar(const struct egw_option *option, config_setting_t *setting,
                  union value *value, char *why)
{
  int type = config_setting_type(setting);
  bool integer = type == CONFIG_TYPE_INT || type == CONFIG_TYPE_INT64;

  if (option->type == EGW_OPT_BOOL && type == CONFIG_TYPE_BOOL) {
    value->flag = config_setting_get_bool(setting) != 0;
  } else if (option->type == EGW_OPT_INT && integer) {
    value->number = config_setting_get_int64(setting);
  } else if (option->type == EGW_OPT_RATIO && (integer || type == CONFIG_TYPE_FLOAT)) {
    value->ratio = integer ? (double)config_setting_get_int64(setting)
                           : config_setting_get_float(setting);
    if (!(value->ratio >= 0 && value->ratio <= 1)) {
      (void)snprintf(why, VALUE_WHY, "must be %s", value_form(EGW_OPT_RATIO));
      return -1;
    }
  } else {
    (void)snprintf(why, VALUE_WHY, "must be %s, not %s", value_form(option->type),
                   setting_type_name(setting));
    return -1;
  }
  return value_check(option, value, why);
}

/* The first line of a file into `out` (SECRET_FILE_MAX bytes); NULL or a reason. */
static const char *
secret_file_line(const char *path, char *out)
{
  struct stat st;
  ssize_t n = -1;
  int fd;

  if (path[0] != '/')
    return "the path behind \"file:\" must be absolute";
  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return strerror(errno);
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
    n = read(fd, out, SECRET_FILE_MAX - 1);
  (void)close(fd);
  if (n < 0)
    return "it is not a file that can be read";
  out[n] = '\0';
  out[strcspn(out, "\r\n")] = '\0';
  return out[0] == '\0' ? "its first line is empty" : NULL;
}

/* "file:PATH" gives the first line of PATH. NULL with a reason. */
static const char *
secret_text(struct conf_file *file, const char *text, bool *from_file, char *why)
{
  const char *reason, *copy = NULL;
  char *line;

  *from_file = strncmp(text, "file:", 5) == 0;
  if (!*from_file)
    return conf_copy(file, text);
  line = malloc(SECRET_FILE_MAX);
  if (line == NULL) {
    (void)snprintf(why, VALUE_WHY, "out of memory");
    return NULL;
  }
  reason = secret_file_line(text + 5, line);
  if (reason == NULL)
    copy = conf_copy(file, line);
  else
    (void)snprintf(why, VALUE_WHY, "can't read the secret from its file: %s", reason);
  explicit_bzero(line, SECRET_FILE_MAX);
  free(line);
  return copy;
}

void
conf_secret_seen(struct egw_conf *section, const char *key)
{
  if (!section->file->world_readable || section->file->secret_warned)
    return;
  section->file->secret_warned = true;
  egw_conf_warn(section, key,
                "everybody on this machine can read the file and the secret in it "
                "(chmod o-r)");
}

/* The secret itself in place of what stands in the file. */
static int
read_secret(struct egw_conf *section, const char *key, const char **text, char *why)
{
  bool from_file;

  *text = secret_text(section->file, *text, &from_file, why);
  if (*text == NULL)
    return -1;
  if (!from_file)
    conf_secret_seen(section, key);
  conf_secret(section->file, *text);
  return 0;
}

/* One of a secret list is often a header: its value may turn up without its name. */
static int
read_secret_element(struct egw_conf *section, const char *key, const char **text, char *why)
{
  const char *part;

  if (read_secret(section, key, text, why) < 0)
    return -1;
  part = strstr(*text, ": ");
  if (part != NULL)
    conf_secret(section->file, part + 2);
  part = strrchr(*text, ' ');
  if (part != NULL)
    conf_secret(section->file, part + 1);
  return 0;
}

static int
value_from_setting(struct egw_conf *section, const struct egw_option *option,
                   config_setting_t *setting, union value *value, char *why)
{
  bool wants_text = option->type != EGW_OPT_BOOL && option->type != EGW_OPT_INT;

  if (config_setting_type(setting) != CONFIG_TYPE_STRING || !wants_text)
    return value_from_scalar(option, setting, value, why);
  if (value_parse(option, config_setting_get_string(setting), value, why) < 0)
    return -1;
  if (option->type == EGW_OPT_SECRET) {
    conf_mark_set(setting, CONF_READ_SECRET);
    return read_secret(section, option->name, &value->text, why);
  }
  if (option->type == EGW_OPT_STRING) {
    value->text = conf_copy(section->file, value->text);
    if (value->text == NULL) {
      (void)snprintf(why, VALUE_WHY, "out of memory");
      return -1;
    }
  }
  return 0;
}

static int
list_from_setting(struct egw_conf *section, const struct egw_option *option,
                  config_setting_t *setting, struct egw_strings *list, char *why)
{
  bool secret = (option->flags & EGW_OPTION_SECRET) != 0;
  int type = config_setting_type(setting), n = config_setting_length(setting);
  const char **v = NULL;

  (void)snprintf(why, VALUE_WHY, "must be %s", value_form(EGW_OPT_LIST));
  if (type != CONFIG_TYPE_LIST && type != CONFIG_TYPE_ARRAY)
    return -1;
  if (n > 0 && (v = conf_memory(section->file, (size_t)n * sizeof *v)) == NULL)
    return -1;
  for (int i = 0; i < n; i++) {
    const char *text = config_setting_get_string_elem(setting, i);

    if (text == NULL || (v[i] = conf_copy(section->file, text)) == NULL)
      return -1;
    if (secret && read_secret_element(section, option->name, &v[i], why) < 0)
      return -1;
    conf_mark_set(config_setting_get_elem(setting, (unsigned)i),
                  secret ? CONF_READ_SECRET : CONF_READ);
  }
  if (secret)
    conf_mark_set(setting, CONF_READ_SECRET);
  list->v = v;
  list->n = (size_t)n;
  return 0;
}

/* A default for a LIST: words joined by commas. */
static int
list_from_text(struct conf_file *file, const char *text, struct egw_strings *list)
{
  char *p = conf_copy(file, text);
  size_t most = 1;
  const char **v;

  for (const char *c = text; *c != '\0'; c++)
    most += *c == ',';
  v = conf_memory(file, most * sizeof *v);
  if (p == NULL || v == NULL)
    return -1;
  list->v = v;
  list->n = 0;
  while (*(p += strspn(p, ", ")) != '\0') {
    v[list->n++] = p;
    p += strcspn(p, ", ");
    if (*p != '\0')
      *p++ = '\0';
  }
  return 0;
}

static int
read_fallback(struct egw_conf *section, const struct egw_option *option, void *target)
{
  char why[VALUE_WHY];
  union value value;

  if (option->fallback == NULL || option->type == EGW_OPT_SECTION)
    return 0;
  if (option->type == EGW_OPT_LIST) {
    if (list_from_text(section->file, option->fallback, &value.list) < 0)
      return egw_conf_error(section, option->name, "out of memory");
  } else if (value_parse(option, option->fallback, &value, why) < 0) {
    return egw_conf_error(section, option->name, "the plugin's own default is wrong: it %s",
                          why);
  }
  value_store(option, &value, target);
  return 0;
}

/* SECTION: only its kind is looked at; it stays unread until somebody asks for it. */
static int
check_section_option(struct egw_conf *section, const struct egw_option *option,
                     config_setting_t *setting)
{
  if (config_setting_is_aggregate(setting))
    return 0;
  conf_mark_set(setting, CONF_READ);
  return egw_conf_error(section, option->name, "must be %s", value_form(EGW_OPT_SECTION));
}

static int
read_option(struct egw_conf *section, const struct egw_option *option, void *target, bool keep)
{
  config_setting_t *setting = conf_member(section, option->name);
  char why[VALUE_WHY];
  union value value;
  int r;

  if (setting == NULL) {
    if ((option->flags & EGW_OPTION_REQUIRED) != 0)
      return egw_conf_error(section, NULL, "%s is missing", option->name);
    return keep ? 0 : read_fallback(section, option, target);
  }
  if (option->type == EGW_OPT_SECTION)
    return check_section_option(section, option, setting);
  conf_mark_read(section, setting);
  if (option->type == EGW_OPT_LIST)
    r = list_from_setting(section, option, setting, &value.list, why);
  else
    r = value_from_setting(section, option, setting, &value, why);
  if (r < 0)
    return egw_conf_error(section, option->name, "%s", why);
  value_store(option, &value, target);
  return 0;
}

int
conf_read(struct egw_conf *section, const struct egw_option *options, void *target, bool keep)
{
  int r = 0;

  if (section->table_count < SECTION_TABLES_MAX)
    section->tables[section->table_count++] = options;
  for (const struct egw_option *o = options; o->type != EGW_OPT_END; o++)
    if (read_option(section, o, target, keep) < 0)
      r = -1;
  return r;
}

int
egw_conf_read(struct egw_conf *section, const struct egw_option *options, void *target)
{
  return conf_read(section, options, target, false);
}

bool
conf_peek(struct egw_conf *section, const struct egw_option *option, union value *value)
{
  struct egw_option row = *option;

  row.offset = 0;
  row.flags = 0;
  memset(value, 0, sizeof *value);
  if (conf_member(section, option->name) == NULL && option->fallback == NULL)
    return false;
  return read_option(section, &row, value, false) == 0;
}
