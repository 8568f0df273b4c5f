/* SPDX-License-Identifier: MIT */
/* For tests of the configuration: files in a directory of their own, messages as text. */
#ifndef T_UNIT_CONF_KIT_H
#define T_UNIT_CONF_KIT_H

#include "../lib/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "conf/conf.h"

static char kit_dir[64];

static inline void
kit_begin(void)
{
  strcpy(kit_dir, "/tmp/egw-conf-XXXXXX");
  if (mkdtemp(kit_dir) == NULL) {
    perror("mkdtemp");
    exit(1);
  }
}

static inline const char *
kit_path(const char *name)
{
  static char path[4][160];
  static unsigned next;
  char *p = path[next++ % 4];

  snprintf(p, sizeof path[0], "%s/%s", kit_dir, name);
  return p;
}

static inline void
kit_end(void)
{
  unlink(kit_path("x.conf"));
  unlink(kit_path("out"));
  unlink(kit_path("secret"));
  rmdir(kit_dir);
}

/* A file in the test's directory. */
static inline const char *
kit_file(const char *name, const void *bytes, size_t len, mode_t mode)
{
  const char *path = kit_path(name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

  if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || fchmod(fd, mode) < 0) {
    perror(path);
    exit(1);
  }
  close(fd);
  return path;
}

static inline struct conf *
kit_load(const char *text)
{
  struct conf *conf = conf_load(kit_file("x.conf", text, strlen(text), 0600));

  if (conf == NULL)
    exit(1);
  return conf;
}

/* What `fn` writes to a descriptor; malloc'ed. */
static inline char *
kit_written(void (*fn)(void *arg, int fd), void *arg)
{
  const char *path = kit_path("out");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  struct stat st;
  char *text;

  if (fd < 0)
    exit(1);
  fn(arg, fd);
  if (fstat(fd, &st) < 0 || (text = calloc(1, (size_t)st.st_size + 1)) == NULL ||
      pread(fd, text, (size_t)st.st_size, 0) != st.st_size)
    exit(1);
  close(fd);
  return text;
}

static inline void
kit_print_errors(void *arg, int fd)
{
  conf_print_errors(arg, fd);
}

/* The messages, without the name of the file before each line. */
static inline char *
kit_errors(struct conf *conf, const char *name)
{
  char *text = kit_written(kit_print_errors, conf), *out = calloc(1, strlen(text) + 1),
       *to = out;
  size_t len = strlen(name);

  if (out == NULL)
    exit(1);
  for (char *p = text; *p != '\0';) {
    size_t n = strcspn(p, "\n") + 1;

    if (strncmp(p, name, len) == 0) {
      p += len + 1;
      n -= len + 1;
    }
    memcpy(to, p, n);
    to += n;
    p += n;
  }
  free(text);
  return out;
}

#endif
