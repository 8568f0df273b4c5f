/* SPDX-License-Identifier: MIT */
/* Inside of egw_buf (see include/ethrpc-gw/buf.h for the rules). */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdatomic.h>
#include <ethrpc-gw/buf.h>

struct egw_buf {
  atomic_uint refs;
  size_t len, cap;
  char *data;     /* points behind this struct, or to memory of its own once it has grown */
  size_t span;    /* not 0: `data` is of span_alloc(), and this is its size */
};

/* The bytes of `buf` from `at` on. */
static inline struct egw_slice
buf_from(const struct egw_buf *buf, size_t at)
{
  return (struct egw_slice){ buf->data + at, buf->len - at };
}

#endif
