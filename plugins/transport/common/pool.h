/* SPDX-License-Identifier: MIT */
/* The connections of one link of a multiplexed transport: how many there are, which of them
 * takes an exchange, what waits, and when to connect again. The transport itself connects and
 * moves bytes.
 *
 * An exchange waits in the pool while no connection is usable, then in the queue of one
 * connection until its first byte is written; only then is it bound. So a connection that is
 * lost takes with it nothing but what may have reached the node, and no reply can be matched
 * to a request that is still here.
 *
 *   connect() -> CONNECTING -> pool_opened() -> OPEN -> pool_gone() or drop() -> GONE
 *
 * When nothing is connected the pool tries again after 100 ms (by default), twice as long
 * after each failure up to 5 s, a quarter more or less so that workers do not march in step.
 * A connection counts as a success once the node said something sensible on it, or after it
 * stood for the longest delay: one that is accepted and dropped at once does not. */
#ifndef COMMON_POOL_H
#define COMMON_POOL_H

#include <ethrpc-gw/transport.h>
#include "base/list.h"

enum pool_state { POOL_CONNECTING, POOL_OPEN, POOL_GONE };

/* One connection; the first member of the transport's own struct, zeroed by it. */
struct pool_member {
  struct list node;           /* in pool->members unless GONE */
  struct pool *pool;          /* NULL once GONE: the link may be freed */
  struct egw_conn *conn;      /* OPEN only */
  enum pool_state state;
  bool paused;                /* a reader is full */
  bool proven;                /* the node said something sensible */
  uint64_t opened_ms, used_ms;
  struct list queue;          /* struct pool_wait: nothing of them is written */
  unsigned queued;
};

/* The transport's state of an exchange: xchg_size. Not touched once the exchange is bound. */
struct pool_wait {
  struct list node;
  struct egw_xchg *xchg;
  struct pool_member *member; /* whose queue it is in; NULL: the pool's */
  uint64_t until_ms;
};

struct pool_ops {
  const char *area;           /* for the log */
  /* Starts a connection. It reports pool_opened() or pool_gone(), neither from within this
   * call. NULL: it failed at once, *why says why. */
  struct pool_member *(*connect)(struct egw_link *link, const char **why);
  /* The queue of an OPEN member is not empty: write soon. */
  void (*flush)(struct pool_member *member);
  /* Reading may go on. */
  void (*resume)(struct pool_member *member);
  /* The pool has forgotten the member: close and free it. */
  void (*drop)(struct pool_member *member);
};

/* What the configuration says; embedded in the instance of the transport. */
struct pool_options {
  int64_t connections;
  uint64_t reconnect_min, reconnect_max; /* ms */
};

/* Rows of the option table for `instance`.`member`. */
#define POOL_OPTIONS(instance, member)                                                      \
  { .name = "connections", .type = EGW_OPT_INT,                                             \
    .offset = offsetof(struct instance, member.connections), .fallback = "2",               \
    .help = "Connections of each worker; more are opened while all are held by slow readers", \
    .min = 1, .max = 64 },                                                                  \
  { .name = "reconnect_min", .type = EGW_OPT_DURATION,                                      \
    .offset = offsetof(struct instance, member.reconnect_min), .fallback = "100ms",         \
    .help = "Delay before the first attempt to connect again; doubles with each failure",   \
    .min = 1, .max = 3600000 },                                                             \
  { .name = "reconnect_max", .type = EGW_OPT_DURATION,                                      \
    .offset = offsetof(struct instance, member.reconnect_max), .fallback = "5s",            \
    .help = "The longest delay between attempts to connect", .min = 1, .max = 3600000 }

/* The link's state, or its first member. */
struct pool {
  struct egw_link *link;
  const struct pool_ops *ops;
  const struct pool_options *options;
  struct list members;
  struct list waiting;        /* struct pool_wait without a member */
  unsigned count, open;       /* members; OPEN ones */
  bool known, closed;         /* whether UP or DOWN was ever reported */
  uint64_t delay_ms;          /* after the next failure */
  uint64_t next_try_ms;       /* no attempt before */
  uint64_t tried_ms;          /* the last attempt */
  uint64_t expiry_ms;         /* what the expiry timer is set to; UINT64_MAX: idle */
  uint64_t random;
  struct egw_timer retry, expiry, trim;
};

/* The host's connection state points back to the member: conn_size. */
#define POOL_CONN_SIZE sizeof(struct pool_member *)

/* Called by the transport's open(); the first attempt to connect starts soon. */
void pool_init(struct pool *pool, struct egw_link *link, const struct pool_ops *ops,
               const struct pool_options *options);

/* The transport's callbacks of the same names, for their pool. After pool_close() nothing of
 * the link is touched. */
void pool_close(struct pool *pool);
void pool_submit(struct pool *pool, struct egw_xchg *xchg);
void pool_abort(struct pool *pool, struct egw_xchg *xchg);
void pool_more(struct pool *pool, struct egw_conn *conn);

/* Called by connect(): prepares a member. */
void pool_member_init(struct pool *pool, struct pool_member *member);

/* It is connected. -1: memory is short, close it and call pool_gone(). */
int pool_opened(struct pool_member *member) EGW_MUST_CHECK;

/* It failed or is lost; `why` is constant text without secrets. Not for a connection that the
 * pool itself dropped. */
void pool_gone(struct pool_member *member, const char *why);

/* The first byte of the first exchange in the member's queue was written: binds it and takes
 * it off. Keep a reference to its body if more is to be written. */
void pool_sent(struct pool_member *member);

/* The first exchange in the member's queue, or NULL. */
struct egw_xchg *pool_first(struct pool_member *member);

/* Bytes arrived; as egw_conn_data(). 1: stop reading until resume(). */
int pool_data(struct pool_member *member, const char *bytes, size_t len, unsigned flags);

#endif
