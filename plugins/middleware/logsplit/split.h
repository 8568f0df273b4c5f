/* SPDX-License-Identifier: MIT */
/* A query that is answered in parts: runs them, some at a time, and gives the call its
 * answer. */
#ifndef LOGSPLIT_SPLIT_H
#define LOGSPLIT_SPLIT_H

#include "onechain.h"
#include "parts.h"

struct split_limits {
  unsigned parallel;            /* parts of one call at once */
  unsigned max_parts;
  unsigned retries;             /* of a part whose upstream failed */
  uint64_t max_result;          /* bytes of the whole */
  uint64_t max_range;           /* blocks of a part */
  uint64_t remember_ms;         /* how long a limit that was learned holds */
};

/* Indices of the plugin's metrics. */
enum split_metric {
  METRIC_SPLIT, METRIC_PARTS, METRIC_CUT, METRIC_RETRIED, METRIC_REDONE, METRIC_REFUSED,
  METRIC_LEARNED
};

#define LEARNED_UPSTREAMS 64u

/* What a worker has learned: how many blocks an upstream takes. */
struct learned {
  struct {
    uint64_t blocks;            /* 0: nothing known */
    uint64_t until_ms;
  } upstreams[LEARNED_UPSTREAMS];
};

/* What a call waits for, looking again from time to time. */
enum split_pause {
  PAUSE_NONE,
  PAUSE_HEAD,                   /* before it begins: the head is to catch up */
  PAUSE_REDO                    /* before it begins anew */
};

/* A call here: its state. */
struct split {
  struct filter filter;
  bool logs;                    /* it asks for logs, which can be had by block hash */
  bool can;                     /* the filter has a range that can be cut */
  bool over;                    /* answered or cancelled */
  unsigned redone;              /* times that it was begun anew */
  enum split_pause pause;
  uint64_t until_ms;            /* PAUSE_HEAD: no longer than this */
  struct onechain one;
  uint64_t size;                /* blocks of a part; UINT64_MAX: as it comes */
  struct egw_call *call;
  struct egw_at at;
  const struct split_limits *limits;
  struct learned *learned;
  struct parts parts;
  unsigned flying;
  uint64_t bytes;
};

/* How many blocks the upstreams in use take. */
uint64_t learned_limit(const struct learned *learned, const struct egw_at *at,
                       uint64_t max_range);

/* The whole range was refused: notes the limit. */
void learned_note(struct learned *learned, const struct egw_at *at,
                  const struct split_limits *limits, const struct complaint *why,
                  const struct egw_reply *reply, uint64_t blocks);

/* The call's timer: it goes on. NEXT: the call is to go down as it is. */
enum egw_verdict split_timer(struct split *split);

/* Begins with parts of `size` blocks; and, after an error, with what it proposes (NEXT: it
 * can't be cut, the error stands). The verdict is WAIT, or DONE if there is an answer at
 * once. */
enum egw_verdict split_begin(struct split *split, uint64_t size);
enum egw_verdict split_begin_by(struct split *split, const struct complaint *why);

/* Frees what it holds; the call is over. */
void split_end(struct split *split);

#endif
