/* SPDX-License-Identifier: MIT */
/* What an upstream complains about when a query is too much for it, and what it proposes.
 * Pure; any thread. */
#ifndef LOGSPLIT_COMPLAINT_H
#define LOGSPLIT_COMPLAINT_H

#include <ethrpc-gw/middleware.h>

enum complaint_kind {
  COMPLAINT_NONE,      /* an error of another sort */
  COMPLAINT_RANGE,     /* more blocks than it looks at */
  COMPLAINT_RESULTS,   /* more results than it gives */
  COMPLAINT_FILTER     /* more addresses or topics than it takes */
};

struct complaint {
  enum complaint_kind kind;
  uint64_t blocks;     /* how many it would take, 0: it does not say */
};

/* Reads the error that came for blocks `from` to `to`. */
struct complaint complaint_read(const struct egw_reply *reply, uint64_t from, uint64_t to);

#endif
