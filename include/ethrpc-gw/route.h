/* SPDX-License-Identifier: MIT */
/* Routing: the upstreams of a stage's network, and what a call wishes of them. Worker's thread
 * only. Upstreams are numbered from 0 in their order of use (tier, then configuration); masks have
 * bit 1 << index. */
#ifndef ETHRPC_GW_ROUTE_H
#define ETHRPC_GW_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct egw_at;
struct egw_call;

#define EGW_NO_UPSTREAM UINT32_MAX

struct egw_upstream_info {
  const char *name;            /* as configured */
  int64_t tier;
  bool up;                     /* this worker's link is not down */
  bool busy;                   /* it asked to be left alone (429, 503, Retry-After) */
  bool pushes;                 /* it can push events */
  bool has_head, has_lowest;
  uint64_t head;               /* the highest block it is known to have */
  uint64_t lowest;             /* the lowest block whose state it is known to have */
  unsigned in_flight;          /* exchanges of this worker */
};

/* How many upstreams the stage's network has, and facts about one of them. false: there is no
 * such index. `out` is filled in. */
unsigned egw_upstream_count(const struct egw_at *at);
bool egw_upstream(const struct egw_at *at, unsigned index, struct egw_upstream_info *out);

/* Tells the core that an upstream has no state at `block` and below (it is pruned): calls that need
 * such state go elsewhere from now on, on every worker, while another one can serve. Nothing else
 * takes that back than a restart, so be sure. */
void egw_upstream_lacks(const struct egw_at *at, unsigned index, uint64_t block);

/* What a call wishes of its next attempts. Zero: nothing. */
struct egw_route {
  uint64_t avoid;              /* not these, while another one can serve */
  uint64_t only;               /* none but these; 0: all */
  bool once;                   /* one attempt: what it gives comes back up, good or bad */
  bool fresh;                  /* not on a connection that was used before */
};

/* Sets the wishes; they stay until set again. Copied. A stage that holds back (EGW_AGAIN) sets
 * them before. */
void egw_route(struct egw_call *call, const struct egw_route *route);

/* The wishes in effect, to add to them. */
void egw_routed(const struct egw_call *call, struct egw_route *out);

/* Lets the call travel in one array with others that wait in the same turn of the loop, where the
 * upstream takes arrays over a transport that can carry them and is busy; a lone call is never
 * held back for it. `limits` must live as long as the instance. */
struct egw_batching {
  uint32_t max_calls;          /* of one array */
  uint32_t max_bytes;          /* of its text */
  uint32_t busy;               /* calls in flight, those that wait to be sent among them, from
                                  which a link counts as busy */
};
void egw_may_batch(struct egw_call *call, const struct egw_batching *limits);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
