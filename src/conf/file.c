/* SPDX-License-Identifier: MIT */
/* What a configuration owns: its memory, and the messages about it, kept in order of lines. */
#include "conf/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ethrpc-gw/transport.h>
#include "base/checked.h"
#include "conf/conf.h"
#include "obs/log.h"

struct conf_block {
  struct conf_block *next;
  max_align_t bytes[];
};

struct conf_file *
conf_file_new(const char *name)
{
  struct conf_file *file = calloc(1, sizeof *file);

  if (file == NULL)
    return NULL;
  file->name = strdup(name);
  if (file->name == NULL) {
    free(file);
    return NULL;
  }
  config_init(&file->tree);
  return file;
}

void
conf_file_free(struct conf_file *file)
{
  struct conf_block *block;

  if (file == NULL)
    return;
  config_destroy(&file->tree);
  for (size_t i = 0; i < file->message_count; i++)
    free(file->messages[i].text);
  free(file->messages);
  while ((block = file->blocks) != NULL) {
    file->blocks = block->next;
    free(block);
  }
  free(file->name);
  free(file);
}

void *
conf_memory(struct conf_file *file, size_t size)
{
  struct conf_block *block = NULL;

  if (size_add(sizeof *block, size, &size))
    block = calloc(1, size);
  if (block == NULL) {
    file->no_memory = true;
    return NULL;
  }
  block->next = file->blocks;
  file->blocks = block;
  return block->bytes;
}

char *
conf_copy(struct conf_file *file, const char *text)
{
  size_t size = strlen(text) + 1;
  char *copy = conf_memory(file, size);

  if (copy != NULL)
    memcpy(copy, text, size);
  return copy;
}

char *
conf_printf(struct conf_file *file, const char *fmt, ...)
{
  va_list ap;
  char *text = NULL, *copy;
  int len;

  va_start(ap, fmt);
  len = vasprintf(&text, fmt, ap);
  va_end(ap);
  if (len < 0) {
    file->no_memory = true;
    return NULL;
  }
  copy = conf_copy(file, text);
  free(text);
  return copy;
}

/* Where a message of `line` goes: behind all of the same line. */
static size_t
message_place(const struct conf_file *file, int line)
{
  size_t i = file->message_count;

  while (i > 0 && file->messages[i - 1].line > line)
    i--;
  return i;
}

EGW_PRINTF(4, 0) static void
message_add(struct conf_file *file, bool warning, int line, const char *fmt, va_list ap)
{
  struct conf_message *m;
  char *text = NULL;
  size_t at;

  if (!warning)
    file->error_count++;
  if (file->message_count == file->message_cap) {
    size_t cap = file->message_cap == 0 ? 16 : file->message_cap * 2;

    m = reallocarray(file->messages, cap, sizeof *m);
    if (m == NULL) {
      file->no_memory = true;
      return;
    }
    file->messages = m;
    file->message_cap = cap;
  }
  if (vasprintf(&text, fmt, ap) < 0) {
    file->no_memory = true;
    return;
  }
  log_scrub(text);
  at = message_place(file, line);
  m = &file->messages[at];
  memmove(m + 1, m, (file->message_count - at) * sizeof *m);
  *m = (struct conf_message){ .line = line, .warning = warning, .text = text };
  file->message_count++;
}

void
conf_message(struct conf_file *file, bool warning, int line, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  message_add(file, warning, line, fmt, ap);
  va_end(ap);
}

void
conf_error(struct conf *conf, const char *fmt, ...)
{
  va_list ap;

  va_start(ap, fmt);
  message_add(conf->file, false, 0, fmt, ap);
  va_end(ap);
}

size_t
conf_errors(const struct conf *conf)
{
  return conf->file->error_count + (conf->file->no_memory ? 1 : 0);
}

/* Messages may quote the file; what could steer a terminal does not get through. */
static void
print_message(const struct conf_file *file, const struct conf_message *m, int fd)
{
  char where[32] = "";

  if (m->line > 0)
    (void)snprintf(where, sizeof where, ":%d", m->line);
  for (char *p = m->text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = '?';
  (void)dprintf(fd, "%s%s: %s%s\n", file->name, where, m->warning ? "warning: " : "", m->text);
}

void
conf_print_errors(const struct conf *conf, int fd)
{
  for (size_t i = 0; i < conf->file->message_count; i++)
    print_message(conf->file, &conf->file->messages[i], fd);
  if (conf->file->no_memory)
    (void)dprintf(fd, "%s: out of memory\n", conf->file->name);
}

void
conf_secret(struct conf_file *file, const char *secret)
{
  if (log_secret(secret) < 0)
    file->no_memory = true;
}

/* A key often stands alone in messages of providers: each long part of the path counts too. */
static bool
path_secrets(struct conf_file *file, const char *path)
{
  bool found = false;
  const char *p = path;

  while (*p != '\0') {
    size_t len = strcspn(p, "/?&=");

    if (len >= 12) {
      char *part = strndup(p, len);

      if (part == NULL)
        file->no_memory = true;
      else
        conf_secret(file, part);
      free(part);
      found = true;
    }
    p += len + (p[len] == '\0' ? 0 : 1);
  }
  return found || strchr(path, '?') != NULL;
}

bool
conf_url_secrets(struct conf_file *file, const struct egw_url *url)
{
  bool found;

  if (url->host[0] == '\0')
    return false;
  found = path_secrets(file, url->path);
  if (url->path[1] != '\0')
    conf_secret(file, url->path);
  if (url->user[0] != '\0')
    conf_secret(file, url->user);
  if (url->password[0] != '\0')
    conf_secret(file, url->password);
  return found || url->user[0] != '\0' || url->password[0] != '\0';
}
