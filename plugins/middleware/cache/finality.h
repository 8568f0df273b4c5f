/* SPDX-License-Identifier: MIT */
/* What is final: polls the network's finalized block and publishes its number.
 *
 * A sample counts only when the next one confirms it: the number published is the lower of the
 * last two, none above the head. A node that reports nonsense once is thus outvoted by itself. The hash of
 * a block that was final is asked for again with each poll: should it ever differ (a development
 * chain was reset, a node of another chain was put in), everything that was kept is thrown out. */
#ifndef CACHE_FINALITY_H
#define CACHE_FINALITY_H

#include <stdatomic.h>
#include <ethrpc-gw/middleware.h>

struct finality {
  _Atomic(struct egw_worker *) poller; /* whose loop polls; set once */
  atomic_bool known;
  _Atomic uint64_t number;      /* of a final block, while known */
  void (*changed)(void *arg);   /* history has changed: forget everything */
  void *arg;

  /* the poller's worker only: */
  struct egw_at at;
  uint64_t interval_ms;
  struct egw_timer timer;
  bool polling, stopped;
  uint64_t head;                /* of this poll */
  uint64_t last, before;        /* finalized numbers of the last two polls */
  unsigned samples;
  uint64_t anchor;              /* a block that was final, */
  char anchor_hash[72];         /* and its hash, raw; "" : none yet */
};

void finality_init(struct finality *f, uint64_t interval_ms, void (*changed)(void *arg), void *arg);

/* With each call that passes: the first one makes its worker the poller. */
void finality_touch(struct finality *f, const struct egw_at *at);

/* A worker stops; if it is the poller, polling ends. */
void finality_stop(struct finality *f, struct egw_worker *worker);

#endif
