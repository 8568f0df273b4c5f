/* SPDX-License-Identifier: MIT */
/* The shared tier: answers in a Redis or Valkey server, for several gateways.
 *
 * A value is a record (record.h) and is taken only if all of it is right: its own whole
 * key, its tag, one JSON value. The server being slow, gone or wrong costs hits.
 *
 * Keys are "<prefix>1:<epoch>:<SHA-256 of the key>". When history changed under the same
 * chain id and genesis (development chains), what is there must not be found again, by no
 * gateway and after no restart: the epoch, a number at "<prefix>epoch", is raised. It is
 * read again every second.
 *
 * Two connections of each worker: lookups do not wait behind long values on their way out.
 * Worker's thread, but for struct share_common. */
#ifndef CACHE_SHARE_H
#define CACHE_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/loop.h>
#include "../../common/redis/redis.h"
#include "record.h"

/* What the workers have in common; zeroed. */
struct share_common {
  atomic_uint flushes;
  atomic_int raising;           /* the epoch is to be raised: nothing is done until it is */
};

struct share_options {
  struct redis_address address;
  const char *prefix;
  uint64_t timeout_ms, ttl_ms;  /* ttl 0: for ever */
  size_t max_value;
  struct record_codec *codec;
  struct share_common *common;
};

struct share;
struct share_read;

enum share_outcome {
  SHARE_HIT,
  SHARE_MISS,
  SHARE_BAD,                    /* something else than was written, or an error */
  SHARE_LATE                    /* no answer in time */
};

struct share_counts {
  int64_t stored, dropped, errors;
};

/* `value` (taken) with SHARE_HIT only. */
typedef void share_fn(void *arg, enum share_outcome outcome, struct egw_buf *value);

/* NULL: memory is short, or the worker has no libuv loop. The options are borrowed. */
struct share *share_new(const struct share_options *options, struct egw_worker *worker);
void share_free(struct share *share); /* lookups in flight end as SHARE_LATE first */

/* Looks `key` up; fn is called once, never from within. NULL: it can't be asked now. */
struct share_read *share_get(struct share *share, struct egw_slice key, share_fn *fn,
                             void *arg);
void share_cancel(struct share_read *read);

/* Sends an answer off; copied. */
void share_put(struct share *share, struct egw_slice key, struct egw_slice value);

/* What is there is found no more. On one worker for all. */
void share_flush(struct share *share);

/* Since the last time. */
void share_take_counts(struct share *share, struct share_counts *out);

#endif
