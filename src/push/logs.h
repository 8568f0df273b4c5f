/* SPDX-License-Identifier: MIT */
/* The logs of one block, read once for all subscribers. Counted, immutable; any thread. */
#ifndef PUSH_LOGS_H
#define PUSH_LOGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <ethrpc-gw/buf.h>

#define LOG_TOPICS 4u

struct log_entry {
  struct egw_slice raw;                 /* the object, in set->buf */
  unsigned char address[20];
  unsigned char topics[LOG_TOPICS][32];
  unsigned topic_count;
};

struct log_set {
  atomic_uint refs;
  struct egw_buf *buf;
  size_t count;
  struct log_entry v[];
};

/* From the result of eth_getLogs (`result` lies in `buf`, of which a reference is taken). NULL: it is no
 * list of logs, or memory is short. */
struct log_set *log_set_new(struct egw_buf *buf, struct egw_slice result);

/* The same logs, in reverse order, each with "removed":true. NULL: no memory. */
struct log_set *log_set_removed(const struct log_set *set);

struct log_set *log_set_ref(struct log_set *set);
void log_set_unref(struct log_set *set);

#endif
