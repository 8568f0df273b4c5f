/* SPDX-License-Identifier: MIT */
/* From a file to a configuration: its text is checked, parsed by libconfig, read by the option
 * tables and cross-checked. Nothing stops at the first error. */
#include "conf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the file ---------------------------------------------------------------------------- */

struct conf *
conf_new(const char *name)
{
  struct conf *conf = calloc(1, sizeof *conf);

  if (conf == NULL)
    return NULL;
  conf->file = conf_file_new(name);
  if (conf->file == NULL) {
    free(conf);
    return NULL;
  }
  return conf;
}

void
conf_free(struct conf *conf)
{
  if (conf == NULL)
    return;
  conf_file_free(conf->file);
  free(conf);
}

static char *
read_text(struct conf_file *file, int fd, const struct stat *st, size_t *len)
{
  size_t cap = (size_t)st->st_size + 1;
  char *text = malloc(cap);
  ssize_t n;

  *len = 0;
  if (text == NULL) {
    file->no_memory = true;
    return NULL;
  }
  while (*len < cap - 1 && (n = read(fd, text + *len, cap - 1 - *len)) != 0) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      conf_message(file, false, 0, "can't read it: %s", strerror(errno));
      free(text);
      return NULL;
    }
    *len += (size_t)n;
  }
  text[*len] = '\0';
  return text;
}

/* The whole file as text (malloc'ed); NULL after a message. */
static char *
open_text(struct conf_file *file, size_t *len)
{
  int fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st;
  char *text = NULL;

  if (fd < 0 || fstat(fd, &st) < 0)
    conf_message(file, false, 0, "can't open it: %s", strerror(errno));
  else if (!S_ISREG(st.st_mode))
    conf_message(file, false, 0, "it is not a file");
  else if (st.st_size > (off_t)CONF_FILE_MAX)
    conf_message(file, false, 0, "it is too large");
  else
    text = read_text(file, fd, &st, len);
  if (fd >= 0) {
    file->world_readable = (st.st_mode & S_IROTH) != 0;
    (void)close(fd);
  }
  return text;
}

static bool
parse_text(struct conf_file *file, const char *text)
{
  const char *what;

  if (config_read_string(&file->tree, text) == CONFIG_TRUE)
    return true;
  what = config_error_text(&file->tree);
  if (what != NULL && strcmp(what, "syntax error") == 0)
    what = "syntax error here or just before (each setting ends with ';')";
  conf_message(file, false, config_error_line(&file->tree), "%s",
               what == NULL ? "can't be parsed" : what);
  return false;
}

struct conf *
conf_load(const char *path)
{
  struct conf *conf = conf_new(path);
  size_t len;
  char *text;

  if (conf == NULL)
    return NULL;
  text = open_text(conf->file, &len);
  if (text != NULL && conf_text_check(conf->file, text, len) && parse_text(conf->file, text))
    conf_read_all(conf);
  if (text != NULL)
    explicit_bzero(text, len);
  free(text);
  return conf;
}

/* --- the top level ----------------------------------------------------------------------- */

/* Marks the limit whose default depends on the listener. */
static void
default_limits(struct egw_conf *root, struct conf_limits *limits)
{
  struct egw_conf *section = egw_conf_section(root, "limits");

  memset(limits, 0, sizeof *limits);
  limits->max_connections_per_client = UINT64_MAX;
  if (section == NULL)
    section = conf_section_empty(root->file);
  if (section != NULL)
    (void)conf_read(section, conf_limit_options, limits, false);
}

void
conf_read_all(struct conf *conf)
{
  struct egw_conf *root = conf_section_of(conf->file, config_root_setting(&conf->file->tree));
  struct egw_conf *log;
  struct conf_limits limits;

  if (root == NULL)
    return;
  conf->file->conf = conf;
  (void)conf_read(root, conf_top_options, conf, false);
  log = egw_conf_section(root, "log");
  if (log == NULL)
    log = conf_section_empty(conf->file);
  if (log != NULL)
    (void)conf_read(log, conf_log_options, conf, false);
  default_limits(root, &limits);
  conf_read_listeners(conf, root, &limits);
  conf_read_networks(conf, root);
  conf_report_unknown(conf->file, false);
}
