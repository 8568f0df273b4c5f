/* SPDX-License-Identifier: MIT */
/* Reference-counted byte buffers. The first bytes live in the same block as the head, so that
 * a buffer of known size costs one allocation; one that outgrows it moves to a block of its
 * own. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/checked.h"
#include "base/span.h"

#define BUF_GROW_MIN 256u

static char *
buf_inside(struct egw_buf *buf)
{
  return (char *)(buf + 1);
}

/* Filling a buffer somebody else can see is a bug of the caller. */
static void
buf_check_own(const struct egw_buf *buf)
{
#ifdef EGW_DEVELOPER
  if (atomic_load_explicit(&buf->refs, memory_order_relaxed) != 1)
    abort();
#else
  (void)buf;
#endif
}

struct egw_buf *
egw_buf_new(size_t capacity)
{
  struct egw_buf *buf;
  size_t size;

  if (!size_add(sizeof(*buf), capacity, &size))
    return NULL;
  buf = malloc(size);
  if (buf == NULL)
    return NULL;
  atomic_init(&buf->refs, 1);
  buf->len = 0;
  buf->cap = capacity;
  buf->data = buf_inside(buf);
  buf->span = 0;
  return buf;
}

struct egw_buf *
egw_buf_copy(struct egw_slice bytes)
{
  struct egw_buf *buf = egw_buf_new(bytes.len);

  if (buf == NULL)
    return NULL;
  if (bytes.len > 0)
    memcpy(buf->data, bytes.ptr, bytes.len);
  buf->len = bytes.len;
  return buf;
}

struct egw_buf *
egw_buf_keep(struct egw_slice bytes)
{
  struct egw_buf *buf;
  char *data;

  if (bytes.len < SPAN_MIN || bytes.len > SPAN_MAX)
    return egw_buf_copy(bytes);
  data = span_alloc(bytes.len);
  if (data == NULL)
    return egw_buf_copy(bytes);
  buf = egw_buf_new(0);
  if (buf == NULL) {
    span_free(data, bytes.len);
    return NULL;
  }
  memcpy(data, bytes.ptr, bytes.len);
  buf->data = data;
  buf->len = buf->cap = buf->span = bytes.len;
  return buf;
}

/* Gives back memory that is not the buffer's own block. */
static void
buf_free_data(struct egw_buf *buf)
{
  if (buf->span != 0)
    span_free(buf->data, buf->span);
  else if (buf->data != buf_inside(buf))
    free(buf->data);
}

struct egw_buf *
egw_buf_ref(struct egw_buf *buf)
{
  atomic_fetch_add_explicit(&buf->refs, 1, memory_order_relaxed);
  return buf;
}

void
egw_buf_unref(struct egw_buf *buf)
{
  if (buf == NULL)
    return;
  /* Acquire-release: the thread that frees must see what the others did to the bytes. */
  if (atomic_fetch_sub_explicit(&buf->refs, 1, memory_order_acq_rel) != 1)
    return;
  buf_free_data(buf);
  free(buf);
}

struct egw_slice
egw_buf_slice(const struct egw_buf *buf)
{
  return (struct egw_slice){ buf->data, buf->len };
}

/* Grows to at least `need` bytes, by doubling so that appending stays linear. */
static int
buf_grow(struct egw_buf *buf, size_t need)
{
  size_t cap = buf->cap < BUF_GROW_MIN ? BUF_GROW_MIN : buf->cap;
  char *data;

  while (cap < need)
    if (!size_mul(cap, 2, &cap))
      cap = need;
  if (buf->span != 0 || buf->data == buf_inside(buf)) {
    data = malloc(cap);
    if (data != NULL && buf->len > 0)
      memcpy(data, buf->data, buf->len);
    if (data != NULL)
      buf_free_data(buf);
  } else {
    data = realloc(buf->data, cap);
  }
  if (data == NULL)
    return -1;
  buf->data = data;
  buf->cap = cap;
  buf->span = 0;
  return 0;
}

char *
egw_buf_room(struct egw_buf *buf, size_t len)
{
  size_t need;

  buf_check_own(buf);
  if (!size_add(buf->len, len, &need))
    return NULL;
  if (need > buf->cap && buf_grow(buf, need) != 0)
    return NULL;
  return buf->data + buf->len;
}

void
egw_buf_commit(struct egw_buf *buf, size_t len)
{
  buf->len += len;
}

int
egw_buf_append(struct egw_buf *buf, const void *bytes, size_t len)
{
  char *at = egw_buf_room(buf, len);

  if (at == NULL)
    return -1;
  if (len > 0)
    memcpy(at, bytes, len);
  buf->len += len;
  return 0;
}

int
egw_buf_printf(struct egw_buf *buf, const char *fmt, ...)
{
  size_t room = buf->cap - buf->len;
  va_list ap;
  char *at;
  int n;

  buf_check_own(buf);
  va_start(ap, fmt);
  n = vsnprintf(buf->data + buf->len, room, fmt, ap);
  va_end(ap);
  if (n < 0)
    return -1;
  if ((size_t)n >= room) { /* vsnprintf wants a byte for its NUL */
    at = egw_buf_room(buf, (size_t)n + 1);
    if (at == NULL)
      return -1;
    va_start(ap, fmt);
    n = vsnprintf(at, (size_t)n + 1, fmt, ap);
    va_end(ap);
    if (n < 0)
      return -1;
  }
  buf->len += (size_t)n;
  return 0;
}
