/* SPDX-License-Identifier: MIT */
/* An outgoing message: a queue of byte pieces that reference buffers, so that a result goes
 * from the upstream's buffer to the client's socket without a copy. The producer appends,
 * the consumer takes from the front. A message is `open` while pieces may still come
 * (streaming) and whole when it is closed. One thread. */
#ifndef BASE_OUT_H
#define BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <ethrpc-gw/buf.h>
#include "base/list.h"

#define OUT_PIECES_OWN 4u
#define OUT_TEXT_OWN 256u

struct out_piece {
  struct egw_buf *buf;    /* a reference, or NULL for text inside the message itself */
  const char *ptr;
  size_t len;
};

struct out {
  struct list node;             /* for the consumer's queue */
  size_t bytes;                 /* not yet consumed */
  size_t total;                 /* ever added */
  bool open;                    /* more may come */
  bool aborted;                 /* will never be whole: the consumer cuts its connection if any
                                   of it was sent */
  /* The producer's: called by the consumer after out_consume() when an open message got
   * room again; may be NULL. */
  void (*drained)(struct out *out, void *arg);
  void *arg;
  /* The consumer's: called by the producer after it added to, closed or aborted an open
   * message that it has already handed over; may be NULL. */
  void (*changed)(struct out *out, void *arg);
  void *changed_arg;

  struct out_piece *pieces;     /* ring of `cap`, `first` the oldest */
  unsigned first, count, cap;
  /* Small copied pieces live in `text`, `text_len` of `text_cap` bytes: first in `text_own`, then in
   * a buffer. */
  char *text;
  size_t text_len, text_cap;
  struct egw_buf *text_buf;
  /* What most messages need, so that they are one block of memory. */
  struct out_piece pieces_own[OUT_PIECES_OWN];
  char text_own[OUT_TEXT_OWN];
};

/* New empty, closed message with room for `pieces` pieces and `text` bytes of copied text
 * (both grow; a few come with it). NULL when memory is short. */
struct out *out_new(unsigned pieces, size_t text) EGW_MUST_CHECK;

/* Frees the message and drops its references; NULL is allowed. */
void out_free(struct out *out);

/* Appends a piece of `buf`; takes the reference, also when it fails. 0, or -1: no memory. */
int out_add(struct out *out, struct egw_buf *buf, struct egw_slice piece) EGW_MUST_CHECK;

/* Appends bytes that live for ever (literals). */
int out_add_static(struct out *out, struct egw_slice piece) EGW_MUST_CHECK;

/* Appends a copy. */
int out_add_copy(struct out *out, struct egw_slice piece) EGW_MUST_CHECK;

/* Fills up to `max` iovecs with the oldest bytes; returns how many. */
unsigned out_peek(const struct out *out, struct iovec *iov, unsigned max);

/* Drops the oldest `n` bytes (n <= bytes) and the references that are done. */
void out_consume(struct out *out, size_t n);

#endif
