/* SPDX-License-Identifier: MIT */
/* Fetching ahead, on one worker: its walks, what flies, and when to hold back. */
#ifndef PREFETCH_AHEAD_H
#define PREFETCH_AHEAD_H

#include "walk.h"

struct ahead_limits {
  unsigned after;               /* steps that make a walk */
  unsigned window;              /* blocks ahead of one walk */
  unsigned in_flight;           /* fetches at once */
  unsigned busy;                /* exchanges of others from which nothing is fetched */
  unsigned max_walks;
  uint64_t max_bytes;           /* fetched and not yet asked for */
  uint64_t max_reply;           /* longer replies are not fetched */
  uint64_t idle_ms;             /* a walk without a call ends */
};

/* Indices of the plugin's metrics. */
enum ahead_metric {
  METRIC_WALKS, METRIC_WALKING, METRIC_FETCHED, METRIC_USED, METRIC_LATE, METRIC_WASTED,
  METRIC_BYTES, METRIC_HELD, METRIC_IN_FLIGHT, METRIC_WARMED
};

struct ahead {
  struct egw_at at;             /* with no state; valid once `started` */
  bool started;
  const struct ahead_limits *limits;
  struct tracks tracks;
  struct walk *first, *last;    /* walks by last use, the newest first */
  unsigned walks, flying;
  unsigned allowed;             /* fetches at once, as the node's time lets */
  uint64_t slowed_ms;           /* when that was lowered last */
  uint64_t bytes;               /* ready and unused */
  struct egw_timer timer;
};

/* What to remember of a client's call until its reply. */
struct ahead_call {
  uint64_t key;                 /* of its track; 0: none */
  bool ready;                   /* it had been fetched before */
};

void ahead_start(struct ahead *ahead, const struct ahead_limits *limits);
void ahead_stop(struct ahead *ahead, struct egw_worker *worker);

/* A client's call goes by: notes it, and fetches what comes next. `client` tells clients
 * apart. */
void ahead_request(struct ahead *ahead, const struct egw_at *at, struct egw_call *call,
                   const struct shape *shape, uint64_t client, struct ahead_call *state);

/* Its reply goes by. */
void ahead_reply(struct ahead *ahead, const struct ahead_call *state,
                 const struct egw_reply *reply);

/* Whether there is room beside the real calls; `flying`: of the exchanges, those of our own.
 * Returns how many fetches may be in flight. */
unsigned ahead_room(const struct egw_at *at, unsigned allowed, unsigned busy, unsigned flying);

#endif
