/* SPDX-License-Identifier: MIT */
/* What the files of head/ share among themselves. Owner's thread. */
#ifndef HEAD_PARTS_H
#define HEAD_PARTS_H

#include "chain/chain.h"
#include "head/blocks.h"
#include "upstream/upstream.h"
#include "worker/worker.h"

#define BACKFILL_AT_ONCE 8u
#define FED_MAX 8u   /* headers of a feed kept until they are looked at */
#define OVERDUE_MS 500u /* an answer to a poll: who is slower does not hold the others up */

struct subscription;
struct tracker;
struct follower;

/* One exchange of the tracker's own at a time, and its answer. An answer is looked at from
 * the run queue, never from within the transport's call that brought it: what follows may
 * start others. */
struct question {
  struct egw_xchg *xchg;             /* under way, or NULL */
  struct worker_job job;             /* the answer waits to be looked at */
  struct follower *follower;
  void (*fn)(struct question *question);
  bool waiting;                      /* xchg or job */
  bool answered;                     /* a valid reply came, of whatever kind */
  bool has_block, has_number;
  struct block block;                /* the result as a block's header, */
  struct egw_buf *raw;               /* and its bytes, while fn() runs */
  uint64_t number;                   /* the result as a quantity */
};

enum identity {
  IDENTITY_UNKNOWN,   /* not asked, or it gave no answer: used all the same */
  IDENTITY_CHAIN,     /* the chain id is as it should be; the genesis has been asked for */
  IDENTITY_KNOWN,
  IDENTITY_STRANGER   /* another chain: never used */
};

/* One upstream as the tracker follows it. */
struct follower {
  struct tracker *tracker;
  struct upstream *upstream;
  struct egw_link *link;

  struct question poll;              /* the latest block */
  struct wheel_timer poll_timer;
  bool poll_again;                   /* another one is wanted as soon as it ends */
  uint64_t poll_touched;             /* head->touched when `poll` began */
  uint64_t seen_touched;             /* ...when the last one that succeeded began */
  uint64_t linked_touched;           /* ...and the last one whose block was linked */
  uint64_t walk_ms;                  /* when `walk` began */
  uint64_t polled_ms;                /* when the last poll began */
  uint64_t polled_before;            /* the number that the last one gave */

  struct question walk;              /* a missing ancestor: the parent of walk_child */
  struct block walk_child;
  unsigned char walk_target[HASH_LEN]; /* for which head */
  unsigned walked;                   /* ancestors asked for since the last head that linked */
  struct block target;               /* the head that is to be linked; has_target */
  bool has_target;
  unsigned claims;                   /* far jumps in a row that could not be linked */
  uint64_t lost_since_ms;            /* it has no ancestors of its heads since; 0: it has */
  bool below;                        /* its head is on no branch of the window */

  struct question ask_identity;
  enum identity identity;
  uint64_t chain_id;
  unsigned char genesis[HASH_LEN];
  bool has_chain_id, has_genesis;
  bool was_up;

  struct subscription *feed;         /* newHeads, or NULL */
  struct egw_xchg *opening;          /* eth_subscribe */
  struct worker_job fed_job;         /* looks at what it brought */
  struct block fed[FED_MAX];
  struct egw_buf *fed_raw[FED_MAX];
  unsigned fed_count;
  struct wheel_timer feed_timer;     /* opens it (again) */
  unsigned feed_failures;
  uint64_t fed_ms;                   /* when it last brought something */

  bool has_head;
  struct block head;                 /* the highest it is known to have, linked */
  uint64_t heard_ms;                 /* when that was last confirmed */
  bool was_tip;                      /* its head has been the tip */
};

/* Questions about finality, to one upstream at a time. */
struct finality {
  struct question question;
  bool asking_safe;
  bool dirty;                        /* the tip has moved since */
  struct wheel_timer timer;
  uint64_t asked_ms;
  unsigned refusals;                 /* in a row: nodes that know of no finality */
  bool has_safe, has_finalized;
  struct egw_block safe, finalized;
};

struct tracker {
  struct network *network;
  struct head *head;
  struct egw_worker *worker;
  struct follower *followers;        /* by position in network->upstreams */
  unsigned count;
  struct blocks blocks;
  struct block *tip;                 /* canonical, or NULL */
  struct finality finality;
  struct question backfill[BACKFILL_AT_ONCE]; /* blocks below the lowest canonical one, by number */
  uint64_t backfill_number[BACKFILL_AT_ONCE];
  unsigned backfill_failures;        /* in a row: the nodes do not have what is below */
  bool replaced;                     /* by another chain, of which nothing was told yet */
  bool fresh;                        /* taken up anew: the tip is to be looked at as a new one */
  uint64_t reorgs, block_ms;
  uint64_t believed;                 /* a far head up to here was checked: it is walked to */
  uint64_t ahead_since_ms;           /* somebody has spoken of a block above the tip since; 0: no */
  uint64_t lower_since_ms;           /* all are below the tip since; 0: no */
  uint64_t allow_lower_ms;           /* until then the tip may go down at once */
  struct wheel_timer choose_timer;
  uint64_t activity, active_ms;      /* client requests counted, and when they last grew */
  bool has_chain_id, has_genesis;
  uint64_t chain_id;
  unsigned char genesis[HASH_LEN];
  bool started, stopped;
  uint64_t started_ms;
  bool idle;                         /* no client asks anything: polled seldom */
  int64_t tier;                      /* of the node whose head is the tip */
  struct egw_head published;         /* to see whether something differs */
  uint64_t published_touched;
  enum head_depth depth, published_depth;
  bool has_published;
};

/* --- track.c ------------------------------------------------------------------------------- */

/* A follower has a new head, or one less: decides on the tip and publishes. */
void tracker_choose(struct tracker *tracker);
/* How long between two polls of it now, in ms, while it does not push; */
uint64_t follower_poll_ms(const struct follower *follower);
/* and in truth. */
uint64_t follower_pause_ms(const struct follower *follower);
/* Whether what the follower says of its head is recent enough to count. */
bool follower_alive(const struct follower *follower);
/* Whether the block is too far above the tip (or the first of all) to be linked by walking. */
bool tracker_is_far(const struct tracker *tracker, const struct block *block);
/* Whether clients ask anything may have changed. */
void tracker_note_activity(struct tracker *tracker);
/* Takes the chain up anew at `block`; who was told of the old one learns that something is
 * missing. The caller has tracker_choose() called. */
void tracker_restart(struct tracker *tracker, struct block *block);
/* The tip moved: others may have it too. */
void tracker_poll_behind(struct tracker *tracker);

/* --- follow.c ------------------------------------------------------------------------------ */

void follower_start(struct follower *follower);
void follower_stop(struct follower *follower);
/* Asks for the latest block now (or right after the question that is under way). */
void follower_poll(struct follower *follower);
/* A header that the follower's node says is its newest; `raw`: its bytes (header_raw()), or
 * NULL. */
void follower_saw(struct follower *follower, const struct block *block, struct egw_buf *raw);

/* --- question.c ----------------------------------------------------------------------------- */

/* Asks the follower's node; fn() looks at the answer. 0, or -1: it is busy, or this can't
 * be. */
int question_ask(struct question *question, struct follower *follower, const char *method,
                 const char *params, void (*fn)(struct question *));
void question_stop(struct question *question);

/* --- walk.c -------------------------------------------------------------------------------- */

/* Links follower->target with the canonical chain by asking for its ancestors. */
void follower_walk(struct follower *follower);
/* Fetches ancestors of the lowest canonical block while more are wanted. */
void tracker_backfill(struct tracker *tracker);

/* --- identity.c ---------------------------------------------------------------------------- */

/* Asks (anew) which chain the upstream serves. */
void follower_identify(struct follower *follower);

/* --- feed.c --------------------------------------------------------------------------------- */

/* Opens the follower's newHeads, if its transport can push; does nothing while it is open. */
void feed_open(struct follower *follower);
void feed_close(struct follower *follower);
/* It is open and believed. */
bool feed_alive(const struct follower *follower);

/* --- finality.c ------------------------------------------------------------------------------ */

void finality_start(struct tracker *tracker);
void finality_ask(struct tracker *tracker);
void finality_stop(struct tracker *tracker);
/* The chain has another tip: what is not on it any more is forgotten. */
void finality_moved(struct tracker *tracker);

/* --- news.c -------------------------------------------------------------------------------- */

/* For a while from now on, a stalled node is looked for: it is found out by its silence,
 * not by an event. */
void tracker_look_later(struct tracker *tracker);

/* --- tell.c ----------------------------------------------------------------------------------- */

/* Publishes a snapshot if something differs from the last one. */
void tracker_publish(struct tracker *tracker);

#endif
