/* SPDX-License-Identifier: MIT */
/* Small exchanges that share one wire request, a JSON array: for transports that carry one
 * exchange at a time (HTTP), where each one costs much more than the call in it.
 *
 *   batch.c        what waits in this turn of the loop, arrays on their way, refusals
 *   batch-reply.c  the reply to an array: members dealt out by id, refusals told apart
 *   batch-pace.c   how many calls an array may have before waiting for each other costs more
 *
 * An exchange whose call a stage marked (egw_may_batch) waits for the end of the turn's work,
 * not for time to pass: what is alone then, or on a link that isn't busy, goes out as ever.
 * Members keep their own time-out, may be aborted one by one, and hear of their end as if they
 * were alone. Whatever a node has against arrays is not their business: they are sent anew. */
#ifndef UPSTREAM_BATCH_H
#define UPSTREAM_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/transport.h>
#include "base/list.h"
#include "rpc/envelope.h"
#include "worker/worker.h"

struct array;

/* Nodes differ in what an array costs: some answer its members one after the other, so that a
 * client waits for the calls of others. Now and then one call of a crowd is sent by itself,
 * beside an array, and both are timed. */
struct batch_pace {
  uint32_t size;                /* calls of one array at most, as things are; 1: none */
  int64_t extra_us, others;     /* averages (x 16): what arrays took longer,
      calls in them but one */
  unsigned rest;                /* crowds until the next comparison */
  uint64_t probe_ms, wait_ms;   /* size 1: when to look again, and the time after that */
};

void pace_init(struct batch_pace *pace);
/* The size for a crowd of `count` at `now_ms`; *compare: send one of them by itself. */
uint32_t pace_size(struct batch_pace *pace, unsigned count, uint64_t now_ms, bool *compare);
/* An array of n (> 1) took array_us, a call sent beside it lone_us. */
void pace_result(struct batch_pace *pace, unsigned n, int64_t lone_us, int64_t array_us,
                 uint64_t now_ms);

/* What a node that does not answer with an array means by it. */
enum objection {
  OBJECTION_NONE,       /* it is no refusal: members fail as the exchange did */
  OBJECTION_SMALLER,    /* too many, or too much: smaller ones may pass */
  OBJECTION_ARRAYS,     /* no arrays at all */
  OBJECTION_UNCLEAR     /* nonsense, or something that each call should hear for itself */
};
/* `text`: what came, or missing; `status`: of HTTP, 0: none. */
enum objection objection_of(struct egw_slice text, int status);
/* Whether an error of one member is about the array, not about the call. */
bool objection_in(const struct rpc_reply *reply);

/* A link's part. */
struct batcher {
  struct list gathering;        /* egw_xchg.batch_node: may share a request */
  struct list alone;            /* to be sent anew, each by itself */
  unsigned waiting;             /* in `gathering` */
  struct worker_job flush;
  bool deferred;                /* flush has let others go first */
  uint32_t limit;               /* of calls, learned until limit_until_ms; 0: nothing */
  uint64_t limit_until_ms;
  unsigned strikes;             /* arrays in a row that were of no use */
  struct batch_pace pace;
  struct comparison {
    unsigned n;                 /* calls of the array; 0: none is under way */
    struct egw_xchg *lone;
    struct array *array;
    uint64_t started_us;
    int64_t lone_us, array_us;  /* 0: not over yet */
  } comparison;
  enum { FAIL_EACH, FAIL_FIRST,
      FAIL_NO_MORE } failing; /* an array fails: that's one failure */
};

void batch_open(struct egw_link *link);
/* Ends what waits. */
void batch_close(struct egw_link *link);

/* Lets the exchange wait for others of this turn. false: it is to be submitted now. */
bool batch_gather(struct egw_xchg *xchg);

/* It is about to end: takes the time, if it is one of a comparison; takes it out of its array
 * or queue. The last one of an array aborts it. */
void batch_note_end(struct egw_xchg *xchg, enum egw_outcome outcome);
void batch_leave(struct egw_xchg *xchg);

/* --- batch-reply.c ------------------------------------------------------------------- */

struct array {
  struct egw_link *link;
  struct egw_xchg *carrier;
  bool settling;                /* its members are being told */
  uint64_t seen;                /* bytes of the reply when it was looked at last */
  unsigned count, left;
  struct rpc_elements elements;
  struct egw_xchg *members[];   /* NULL: ended. The elements' room is behind them */
};

/* Gives each member its part of the carrier's reply, an array. Those that are refused stay:
 * *refused says how the last one was. */
void array_deal(struct array *array, enum objection *refused);

#endif
