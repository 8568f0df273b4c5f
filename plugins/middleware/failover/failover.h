/* SPDX-License-Identifier: MIT */
/* What the files of this plugin share.
 *
 *   failover.c   the stage: options, callbacks, which way a call goes
 *   classify.c   what an upstream's reply means (errors.def)
 *   subject.c    what block a call is about
 *   witness.c    takes note of each reply: class, health, what an upstream lacks
 *   breaker.c    how the upstreams do
 *   trial.c      copies of calls for upstreams that are avoided
 *   retry.c      whether a call is sent again, where and when
 *   telling.c    the reply that tells the client most, while others are tried
 *   choose.c     picks one upstream, for calls that go to a certain one
 *   hedge.c      a second attempt beside a slow first one
 *   nonce.c      nonces: the highest of all upstreams
 *   rawtx.c      raw transactions
 *   txhash.c     their hashes
 */
#ifndef FAILOVER_FAILOVER_H
#define FAILOVER_FAILOVER_H

#include <ethrpc-gw/middleware.h>
#include "breaker.h"
#include "budget.h"
#include "classify.h"
#include "latency.h"
#include "subject.h"
#include "telling.h"

/* The first CLASS_COUNT metrics count replies by class. */
enum metric {
  METRIC_RETRIES = CLASS_COUNT,
  METRIC_PAUSES,
  METRIC_BUDGET_DENIED,
  METRIC_EXTRA,
  METRIC_BREAKER_OPENED,
  METRIC_HEDGES,
  METRIC_HEDGE_WINS,
  METRIC_TX_COPIES,
  METRIC_TX_ASKED,
  METRIC_TX_RESOLVED,
  METRIC_TX_UNKNOWN,
  METRIC_TX_MISMATCH,
  METRIC_NONCE_READS,
  METRIC_ROWS /* one for each row of errors.def, and one for the configured rules */
};

enum nonce_from { NONCE_ANY, NONCE_MAX };

/* An instance. */
struct failover {
  int64_t attempts;
  double retry_budget;
  uint64_t backoff, missing_wait;
  struct breaker_limits breaker;
  bool hedge;
  double hedge_quantile;
  uint64_t hedge_min;
  int64_t hedge_cost;
  const char *broadcast_text;
  unsigned broadcast; /* copies at first; UPSTREAMS_MAX: all */
  int nonce;          /* enum nonce_from */
  struct rules *rules;
  struct breakers *breakers; /* shared by the workers */
};

#define COST_BANDS 4u

/* On a worker. */
struct mine {
  struct budget budget;
  struct latency latency[COST_BANDS];
  uint32_t seed; /* of the jitter */
  unsigned turn; /* of choose_upstream() among equals */
};

/* Which way a call goes. */
enum mode {
  MODE_NONE,  /* not seen yet */
  MODE_WATCH, /* only watched: it may not be sent twice */
  MODE_PLAIN, /* sent down; retry.c */
  MODE_HEDGE,
  MODE_NONCE,
  MODE_TX
};

struct state {
  enum mode mode;
  struct egw_route base; /* the wishes of the stages above */
  struct egw_route next; /* of the next attempt */
  uint64_t avoid;        /* what the breakers said when it came */
  uint64_t tried;
  unsigned attempts, pauses, denied;
  unsigned moves;      /* to other upstreams, since the last pause */
  uint64_t began_ms;   /* of the attempt in flight */
  uint64_t missing_ms; /* since when something is missing, 0: nothing is */
  bool needs_extra;    /* the next attempt is on the retry budget */
  bool extra;          /* ...and so is the one in flight */
  bool has_subject;
  struct subject subject;
  struct telling telling;
  void *own; /* struct hedge, nonce or tx */
};

/* A sub-call to one upstream, in memory that lives as long as its call. */
struct leg {
  void *owner;
  unsigned upstream;
  bool out; /* in flight */
  uint64_t ticket, began_ms;
};

/* An attempt on the retry budget: *extra says that it has one, and must give it back. */
bool failover_take_extra(const struct egw_at *at, bool *extra);
void failover_give_extra(const struct egw_at *at, bool *extra);

uint64_t failover_left_ms(const struct egw_at *at, const struct egw_call *call);
const struct subject *failover_subject(const struct egw_call *call, struct state *state);

/* --- witness.c --------------------------------------------------------------------------- */

/* Judges a reply to `call` and takes note of it: metrics, health, log, story. `ms`: how long
 * it took. */
struct verdict witness(const struct egw_at *at, struct egw_call *call, struct state *state,
                       const struct egw_reply *reply, uint64_t ms);

/* The same for a copy of a call of `info`'s method. `call` NULL: nobody waits for it any more.
 * `ms` -1: how long it took says nothing. */
struct verdict
witness_copy(const struct egw_at *at, struct egw_call *call,
             const struct egw_method_info *info, const struct egw_reply *reply, int64_t ms);

/* --- trial.c ----------------------------------------------------------------------------- */

/* Sends a copy of the call (one that may be sent twice) to an upstream that is avoided. */
void trial_start(const struct egw_at *at, struct egw_call *call, unsigned upstream);

/* --- retry.c ----------------------------------------------------------------------------- */

/* What to do after a reply that was judged: the verdict for a callback (EGW_NEXT: the client
 * gets this reply). `here` false: the reply is not the call's own, so the client gets what
 * told most. */
enum egw_verdict
retry_after(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply,
            const struct verdict *v, bool here);

/* The pause is over. */
enum egw_verdict retry_paused(const struct egw_at *at, struct egw_call *call);

/* A random time around `ms`. */
uint64_t retry_jitter(struct mine *mine, uint64_t ms);

/* --- choose.c ---------------------------------------------------------------------------- */

/* What may be wrong with an upstream, the worst last. */
enum lack {
  LACK_NOTHING,
  LACK_BLOCK = 1,  /* it does not have the call's block */
  LACK_TRUST = 2,  /* it is avoided by the breakers, or by a stage above */
  LACK_WISHES = 3, /* both of these */
  LACK_CALM = 4,   /* it asked to be left alone */
  LACK_HEALTH = 8, /* it is down */
  LACK_ALL = 15
};

/* The best upstream outside `never`, with the least wrong with it, and no more than `most`;
 * lowest tier, least in flight. EGW_NO_UPSTREAM: there is none. */
unsigned choose_upstream(const struct egw_at *at, struct egw_call *call, struct state *state,
                         uint64_t never, enum lack most);

/* Starts `leg` at one upstream, as part of `call`. 0 or -1. */
int leg_start(const struct egw_at *at, struct egw_call *call, struct leg *leg,
              unsigned upstream, uint32_t timeout_ms, egw_sub_fn *done);

/* --- the other ways ---------------------------------------------------------------------- */

/* Whether the call can be hedged now; then it is under way and to be waited for. */
bool hedge_start(const struct egw_at *at, struct egw_call *call);
enum egw_verdict hedge_timer(const struct egw_at *at, struct egw_call *call);
void hedge_leave(struct state *state);
void hedge_learn(const struct egw_at *at, const struct egw_call *call, uint64_t ms);

bool nonce_start(const struct egw_at *at, struct egw_call *call);
enum egw_verdict nonce_timer(const struct egw_at *at, struct egw_call *call);

bool rawtx_start(const struct egw_at *at, struct egw_call *call);
enum egw_verdict rawtx_timer(const struct egw_at *at, struct egw_call *call);
void rawtx_leave(struct state *state);

#endif
