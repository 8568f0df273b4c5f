/* SPDX-License-Identifier: MIT */
/* Of several replies that are no good, the one that tells the client most. */
#ifndef FAILOVER_TELLING_H
#define FAILOVER_TELLING_H

#include <ethrpc-gw/middleware.h>
#include "classify.h"

struct telling {
  bool known;
  unsigned rank;
  struct egw_buf *buf; /* a reference; NULL: a fault */
  struct egw_slice part;
  bool is_error;
  int fault; /* the gateway's own code */
};

/* Takes note of a reply. True: it is the one to give now. */
bool
telling_note(struct telling *telling, const struct egw_reply *reply, enum error_class class);

/* Whether an upstream's own words are there. */
bool telling_has_words(const struct telling *telling);

/* Sets it as the reply; returns EGW_DONE. Without one: no upstream could be reached. */
enum egw_verdict telling_answer(struct telling *telling, struct egw_call *call);

/* Sets one of the gateway's own errors (docs/errors.md). */
enum egw_verdict telling_fault(struct egw_call *call, int code);

void telling_free(struct telling *telling);

#endif
