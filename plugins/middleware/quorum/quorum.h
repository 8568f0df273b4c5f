/* SPDX-License-Identifier: MIT */
/* What the parts of quorum share. */
#ifndef QUORUM_QUORUM_H
#define QUORUM_QUORUM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/middleware.h>
#include "fingerprint.h"

#define UPSTREAMS_MAX 64u /* what a mask can say */

enum on_disagreement { DISAGREEMENT_REFUSE, DISAGREEMENT_MAJORITY, DISAGREEMENT_FIRST };
enum too_few { TOO_FEW_REFUSE, TOO_FEW_PASS };

enum metric {
  METRIC_ASKED,
  METRIC_AGREED,
  METRIC_DISAGREED,
  METRIC_ALONE,
  METRIC_TOO_FEW,
  METRIC_SPARES,
  METRIC_WAITS,
  METRIC_PASSED
};

struct quorum {
  struct egw_strings methods, ignore;
  int64_t agree, ask;
  int on_disagreement;         /* enum on_disagreement */
  int too_few;                 /* enum too_few */
  uint64_t lag_wait;           /* ms */
  struct fingerprint_key key;
  atomic_uint_fast64_t *alone; /* by upstream: how often it stood alone */
};

/* What an upstream said. */
enum said {
  SAID_WAITING,
  SAID_NOTHING,                /* no answer, or none that can be compared */
  SAID_LATE,                   /* it does not have the block yet: no vote, it is asked again */
  SAID_ERROR,                  /* it could not answer: no vote */
  SAID_REVERT,
  SAID_RESULT
};

struct vote {
  struct ballot *ballot;
  unsigned upstream;
  uint64_t ticket;
  enum said said;
  struct egw_buf *buf;         /* a reference, or NULL; the slices lie in it */
  struct egw_slice body, data;
  bool has_print;
  struct fingerprint print;
  unsigned group;              /* index of the first vote that says the same */
};

/* One call that is voted on; lives as long as the call. */
struct ballot {
  struct egw_at at;
  struct egw_call *call;
  struct egw_slice params;     /* as the upstreams get them */
  uint64_t need;               /* the highest block that it takes to answer, or 0 */
  bool exists, recent;         /* the network has that block; a node may not have it yet */
  bool is_filter;              /* a node that does not have it answers all the same */
  uint64_t began_ms;
  unsigned waits;
  unsigned cast;               /* votes[0 .. cast): those asked */
  unsigned waiting;
  unsigned next, count;        /* order[next ..): who can be asked yet */
  bool decided;
  unsigned char order[UPSTREAMS_MAX];
  struct vote votes[];
};

/* Makes a ballot of the call and asks the first ones; `need` as of resolve_params(). EGW_WAIT,
 * or what else becomes of it. */
enum egw_verdict ballot_begin(const struct egw_at *at, struct egw_call *call,
                              struct egw_slice params, uint64_t need, struct ballot **out);

/* The time to ask those again that were late has come. */
enum egw_verdict ballot_again(struct ballot *ballot);

/* Gives back what the votes hold; those who were not heard yet are given up. */
void ballot_clear(struct ballot *ballot);

/* --- votes: what was said, and who said the same (vote.c) -------------------------------- */

/* Takes down an upstream's reply. */
void vote_take(const struct ballot *ballot, struct vote *vote, const struct egw_reply *reply);

/* Puts the vote into a group with those before it that say the same. */
void vote_group(const struct quorum *q, struct ballot *ballot, struct vote *vote);

static inline bool
vote_counts(const struct vote *vote)
{
  return vote->said == SAID_REVERT || vote->said == SAID_RESULT;
}

/* How the votes stand. */
struct tally {
  unsigned votes, groups, errors, late;
  unsigned best, best_count;   /* the largest group; of equal ones that of the first vote */
};
void ballot_tally(const struct ballot *ballot, struct tally *out);

#endif
