/* SPDX-License-Identifier: MIT */
/* The inside of the middleware `cache`: answers are kept as long as they are true, and
 * given to whoever asks the same again.
 *
 *   ask.c       what a call asks, read from its params
 *   plan.c      which block that is by the head, and what a result proves
 *   key.c       the canonical bytes of the question; params written anew
 *   rules.c     facts about methods
 *   store.c     the bytes in memory
 *   tiers.c     disk and Redis, for what can't change any more
 *   lookup.c    a call on its way down: hit, miss, how the node is asked
 *   answer.c    a reply on its way up: shown, kept, or asked for again
 *   history.c   chains that are not what they were
 *
 * A question about a block that is not final is kept under the block's hash, so nothing has
 * to be taken back when the chain turns: nobody asks for the other block any more. Only
 * transactions and ranges of logs, whose key can't name the block, are pinned to it (struct
 * store_pin) and looked at with each hit.
 *
 * To know which block an answer is of, the node is asked by the block's hash where it takes
 * that, and the result is looked at where it names its block. What a node answers to a
 * question that was written anew, other than a result of that block, is never shown: the
 * client's own question is sent then. */
#ifndef CACHE_CACHE_H
#define CACHE_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <ethrpc-gw/middleware.h>
#include "key.h"
#include "store.h"
#include "tiers.h"

enum metric {
  METRIC_HITS, METRIC_MISSES, METRIC_BYPASSES, METRIC_STORED, METRIC_EVICTED,
  METRIC_EVICTED_SECONDS, METRIC_REORGED, METRIC_FLUSHES, METRIC_HIT_BYTES, METRIC_BYTES,
  METRIC_ENTRIES, METRIC_REWRITTEN, METRIC_RESENT, METRIC_REFUSED,
  METRIC_TIERS                    /* the first of TIERS_METRICS */
};

enum { TAGS_AUTO, TAGS_ALWAYS, TAGS_NEVER };

struct cache {
  uint64_t memory, max_value;
  int tags;
  struct tiers_options below;
  struct shared *shared;
};

/* What all workers share; the instance itself is const once they run. */
struct shared {
  struct store *store;
  struct tiers *tiers;            /* or NULL */
  pthread_mutex_t lock;           /* of the rest */
  uint64_t version;               /* of the newest head that was taken note of */
  bool has_identity, has_anchor;
  struct key_identity identity;   /* the chain, as last known */
  struct egw_block anchor;        /* a block that was final */
};

#define METHODS 512u              /* a power of two, well above the methods there are */
#define STRIKES 3u
#define OFF_MS 600000u            /* no blocks by hash for so long after a refusal */
#define OFF_SHORT_MS 60000u       /* ...after answers that may have had other reasons */

struct method {
  struct rules_method rules;      /* info NULL: a free slot */
  bool may_omit;                  /* a node has answered a call that left its block out */
  uint64_t off_until;
  unsigned strikes;
};

/* Of one worker. */
struct mine {
  struct method methods[METHODS];
  struct egw_buf *tip;            /* the answer to eth_blockNumber, while that is tip_number */
  uint64_t tip_number;
  struct egw_block seen;          /* the tip that was seen last, */
  uint64_t seen_ms;               /* and since when */
  struct tiers_desk *tiers;       /* or NULL */
};

enum phase {
  PHASE_PASS,                     /* none of ours */
  PHASE_ASKED,                    /* below, as the client sent it */
  PHASE_REWRITTEN,                /* below, in other words */
  PHASE_RESENT,                   /* that came to nothing: below, as the client sent it */
  PHASE_OMITTED,                  /* below, to see whether its block may be left out */
  PHASE_CONTROL                   /* a command that may change what was true */
};

struct state {
  enum phase phase;
  unsigned cleared;               /* of the store, when it was asked */
  int64_t code;                   /* RESENT: of the error before, or 0 */
  struct egw_slice key, params;   /* the client's params */
  struct plan plan;
  struct tiers_wait wait;
};

/* --- cache.c ----------------------------------------------------------------------------- */

static inline struct shared *
cache_shared(const struct egw_at *at)
{
  return ((const struct cache *)at->self)->shared;
}

/* The worker's slot for a method that is wanted. */
struct method *cache_method(struct mine *mine, const struct egw_method_info *info);

/* Counts what a change of the store did. */
void cache_count(const struct egw_at *at, const struct store_change *change);

/* Whether something keeps a value of `len` bytes that cache_put() and, when it lasts, cache_lasting() are
 * given: what nothing keeps need not be copied. */
bool cache_keeps(const struct egw_at *at, struct egw_slice key, size_t len, bool pinned, bool lasting);

/* Keeps `value` (borrowed), for ever or while `pin` is canonical. */
void cache_put(const struct egw_at *at, struct egw_slice key, struct egw_buf *value,
               const struct store_pin *pin);

/* Whether the key names its chain: others are for this process only. */
bool cache_is_of_chain(struct egw_slice key);

/* An answer that is true for ever went into the memory: the tiers below get it too. */
void cache_lasting(const struct egw_at *at, struct egw_slice key, struct egw_buf *value);

/* Takes note of the tip. How long it has been the tip, in ms. */
uint64_t cache_tip_age(const struct egw_at *at, const struct egw_head *head);

/* --- lookup.c ---------------------------------------------------------------------------- */

enum egw_verdict cache_request(const struct egw_at *at, struct egw_call *call);
void cache_cancel(const struct egw_at *at, struct egw_call *call);

/* --- answer.c ---------------------------------------------------------------------------- */

enum egw_verdict cache_reply(const struct egw_at *at, struct egw_call *call,
                             const struct egw_reply *reply);

/* --- history.c --------------------------------------------------------------------------- */

void cache_head(const struct egw_at *at, const struct egw_head *head);

/* What was true may be no more: nothing stays, and nothing that is on its way comes in.
 * `same`: the chain still has the same identity, so that keys don't tell the old answers
 * from the new ones. */
void cache_flush(const struct egw_at *at, bool same);

#endif
