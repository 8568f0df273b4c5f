/* SPDX-License-Identifier: MIT */
/* Inside of the transport host: what its two files share. */
#ifndef T_LIB_TRANSPORT_HOST_PARTS_H
#define T_LIB_TRANSPORT_HOST_PARTS_H

#include <stdarg.h>
#include <pthread.h>
#include <stdlib.h>
#include <uv.h>
#include "base/list.h"
#include "transport-host.h"

struct thost_post {
  struct thost_post *next;
  void (*fn)(void *arg);
  void *arg;
};

struct thost_alias {
  struct thost_alias *next;
  char *name, *addresses;
};

struct egw_conf {
  char error[256];
};

struct egw_worker {
  uv_loop_t loop;
  uv_async_t mailbox;
  uv_timer_t clock;              /* bounds a turn */
  uv_prepare_t glance;           /* before the loop sleeps: is what the test awaits there? */
  bool (*until)(void *arg);
  void *until_arg;
  pthread_mutex_t lock;
  struct thost_post *posts;
};

struct thost {
  struct egw_worker worker;      /* first: an egw_worker is its host */
  void *handle;
  const struct egw_transport *transport;
  void *self, *mine;
  struct egw_strings *lists;     /* of EGW_OPT_LIST, one for each row of the option table */
  size_t option_count;
  char **strings;                /* texts that options point to */
  size_t string_count;
  struct list links;
  struct thost_alias *aliases;
  unsigned resolved, faults;
  uint64_t next_id;
};

struct egw_link {
  struct list node;
  struct thost *host;
  void *state;
  struct egw_url url;
  struct egw_link_limits limits;
  struct list xchgs, conns;
  bool closed, closing, up, hold;
  unsigned ups, downs, conns_ever;
  char why[160];
  char *pushed;
  size_t pushed_len;
};

struct egw_xchg {
  struct list node;              /* in link->xchgs */
  struct egw_link *link;
  struct thost_call *call;
  struct egw_conn *conn;
  struct egw_buf *body;
  void *state;
};

struct egw_conn {
  struct list node;              /* in link->conns */
  struct egw_link *link;
  void *state;
  char *part;                    /* of a message that is not complete */
  size_t part_len, part_room;
  unsigned depth;
  bool in_string, escaped, full, hold;
};

/* Fills in the instance from the fallbacks and the pairs. False: a name is unknown. */
bool thost_set_options(struct thost *host, const char *const *options);

/* Out of memory ends the test. */
static inline void *
must(void *memory)
{
  if (memory == NULL)
    abort();
  return memory;
}

/* Counts a broken rule and prints it. */
void thost_fault(struct thost *host, const char *fmt, ...) EGW_PRINTF(2, 3);

#endif
