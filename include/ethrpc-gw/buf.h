/* SPDX-License-Identifier: MIT */
/* Byte slices and reference-counted buffers.
 *
 * Three kinds of memory are told apart by type: `struct egw_slice` is borrowed (valid as
 * long as the documentation of the call that gave it says), `struct egw_buf *` is a counted
 * reference, and what egw_alloc() returns dies with its call. A function that keeps a
 * buffer reference passed to it says "takes"; every other function leaves the reference
 * with the caller.
 *
 * A buffer may be filled (append, room/commit) only while it has one reference; from the
 * second reference on it is immutable. Counts are atomic, so a reference may cross workers.
 */
#ifndef ETHRPC_GW_BUF_H
#define ETHRPC_GW_BUF_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The host is built with hidden symbols; what is declared here plugins may call. */
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#if defined(__GNUC__)
#define EGW_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define EGW_MUST_CHECK __attribute__((warn_unused_result))
#else
#define EGW_PRINTF(fmt, args)
#define EGW_MUST_CHECK
#endif

/* Borrowed bytes; not NUL-terminated. A missing slice has ptr == NULL. */
struct egw_slice {
  const char *ptr;
  size_t len;
};

/* A slice of a string literal. */
#define EGW_LIT(s) ((struct egw_slice){ (s), sizeof(s) - 1 })

/* A counted byte buffer; opaque to plugins. */
struct egw_buf;

/* New empty buffer with room for `capacity` bytes (0 is fine). One reference, the caller's.
 * NULL when memory is short. Any thread. */
struct egw_buf *egw_buf_new(size_t capacity) EGW_MUST_CHECK;

/* New buffer holding a copy of `bytes`. NULL when memory is short. Any thread. */
struct egw_buf *egw_buf_copy(struct egw_slice bytes) EGW_MUST_CHECK;

/* The same for what is kept long: where `bytes` are many, their memory comes from where more of it costs
 * the least time. It can be filled further like any other. NULL when memory is short. Any thread. */
struct egw_buf *egw_buf_keep(struct egw_slice bytes) EGW_MUST_CHECK;

/* One more reference to `buf`; returns `buf`. Any thread. */
struct egw_buf *egw_buf_ref(struct egw_buf *buf);

/* Gives one reference back; the last one frees. NULL is allowed. Any thread. */
void egw_buf_unref(struct egw_buf *buf);

/* The bytes; borrowed while the caller holds a reference and nobody appends. */
struct egw_slice egw_buf_slice(const struct egw_buf *buf);

/* Appends `len` bytes. 0, or -1 when memory is short (contents unchanged). */
int egw_buf_append(struct egw_buf *buf, const void *bytes, size_t len) EGW_MUST_CHECK;

/* Appends formatted text. 0, or -1 when memory is short. */
int egw_buf_printf(struct egw_buf *buf, const char *fmt, ...) EGW_PRINTF(2, 3) EGW_MUST_CHECK;

/* Makes room for `len` more bytes and returns where they go; call egw_buf_commit() with the
 * number really written. NULL when memory is short. */
char *egw_buf_room(struct egw_buf *buf, size_t len) EGW_MUST_CHECK;
void egw_buf_commit(struct egw_buf *buf, size_t len);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
