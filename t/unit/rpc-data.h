/* SPDX-License-Identifier: MIT */
/* What the rpc tests share: the folder of test data, whole files, copies of exact size. */
#ifndef T_UNIT_RPC_DATA_H
#define T_UNIT_RPC_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/buf.h>

/* Path of `name` in the test data; in static memory. */
static inline const char *
data_path(const char *name)
{
  static char path[4096];
  const char *root = getenv("EGW_TEST_DATA"), *source = getenv("EGW_SOURCE");

  if (root != NULL && root[0] != '\0')
    snprintf(path, sizeof(path), "%s/%s", root, name);
  else
    snprintf(path, sizeof(path), "%s/../shared/data/%s", source != NULL ? source : ".", name);
  return path;
}

/* A copy of exactly `len` bytes, so that a sanitizer sees every byte read beyond it. */
static inline char *
data_exact(const void *bytes, size_t len)
{
  char *copy = malloc(len > 0 ? len : 1);

  if (copy == NULL)
    abort();
  if (len > 0)
    memcpy(copy, bytes, len);
  return copy;
}

/* JSON in tables is written with ' for ", to be readable: a copy with the real ones. */
static inline struct egw_slice
data_quoted(const char *text)
{
  size_t len = strlen(text), i;
  char *copy = data_exact(text, len);

  for (i = 0; i < len; i++)
    if (copy[i] == '\'')
      copy[i] = '"';
  return (struct egw_slice){ copy, len };
}

/* Whether a slice is `want`, written in the same way; NULL: missing. */
static inline bool
data_is(struct egw_slice slice, const char *want)
{
  size_t i;

  if (want == NULL || slice.ptr == NULL)
    return want == NULL && slice.ptr == NULL;
  for (i = 0; i < slice.len; i++)
    if (slice.ptr[i] != (want[i] == '\'' ? '"' : want[i]))
      return false;
  return want[i] == '\0';
}

/* The whole file, to be freed; ptr is NULL when it can't be read. */
static inline struct egw_slice
data_file(const char *path)
{
  FILE *f = fopen(path, "re");
  struct egw_slice text = { NULL, 0 };
  char *bytes = NULL;
  size_t len = 0, cap = 0, n;

  if (f == NULL)
    return text;
  do {
    if (cap - len < 65536) {
      cap = cap * 2 + 65536;
      bytes = realloc(bytes, cap);
      if (bytes == NULL)
        abort();
    }
    n = fread(bytes + len, 1, cap - len, f);
    len += n;
  } while (n > 0);
  fclose(f);
  text = (struct egw_slice){ data_exact(bytes, len), len };
  free(bytes);
  return text;
}

static inline void
data_free(struct egw_slice text)
{
  free((void *)(uintptr_t)text.ptr);
}

/* Takes the next line off `text`, without its end; false when there is none. */
static inline bool
data_line(struct egw_slice *text, struct egw_slice *line)
{
  const char *end;

  if (text->len == 0)
    return false;
  end = memchr(text->ptr, '\n', text->len);
  line->ptr = text->ptr;
  line->len = end != NULL ? (size_t)(end - text->ptr) : text->len;
  text->ptr += line->len + (end != NULL);
  text->len -= line->len + (end != NULL);
  return true;
}

#endif
