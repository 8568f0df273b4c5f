/* SPDX-License-Identifier: MIT */
/* The head of a network: the chain's tip as the gateway tracks it.
 *
 * One worker owns a network's tracker (track.c): it follows every upstream over its own links, keeps
 * headers by hash, decides which block is the tip, and publishes snapshots. Every worker reads
 * the newest one by head_now(). Snapshots never change; they are counted.
 *
 *   follow.c     one upstream: newHeads or polling, its head, its identity
 *   blocks.c     headers by hash, the canonical chain through them
 *   track.c      from the upstreams' heads to the tip; gaps and reorgs
 *   news.c       what other workers have to tell the owner
 *   snapshot.c   what is published
 */
#ifndef HEAD_HEAD_H
#define HEAD_HEAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <ethrpc-gw/head.h>

struct egw_worker;
struct gateway;
struct network;
struct upstream;
struct tracker;

#define HEAD_WINDOW 1024u   /* canonical hashes kept and published, at most */

#define HEAD_BELIEVED 1024u /* a reply that speaks of a block further above the tip is not believed */

/* How far down the window is filled. */
enum head_depth {
  HEAD_SHALLOW,   /* not yet as far as it is meant to be */
  HEAD_FILLED,    /* to the finalized block */
  HEAD_DEEP       /* as far as for clients that resume, once one has asked */
};

/* A snapshot: what plugins see, and the hashes. hashes[i] belongs to pub.lowest + i. */
struct head_snapshot {
  struct egw_head pub;           /* `settled` is not filled in: see head_settled() */
  atomic_uint refs;
  uint64_t touched;              /* head->touched when the nodes were looked at */
  enum head_depth depth;
  unsigned count;
  unsigned char hashes[][32];
};

/* A network's head, shared by the workers. */
struct head {
  pthread_mutex_t lock;          /* of `newest` */
  struct head_snapshot *newest;  /* never NULL */
  _Atomic uint64_t version;      /* newest->pub.version */
  _Atomic uint64_t evidence;     /* the highest block that any believable reply spoke of */
  _Atomic uint64_t touched;      /* counts events after which the tip may be old; see head_touch() */
  _Atomic uint64_t commanded;    /* `touched` as of the last command that may move the chain back */
  atomic_uint news;              /* HEAD_NEWS_*: on their way to the owner */
  atomic_bool idle;              /* polled seldom, since no client asks anything */
  atomic_bool wanted;            /* the tracker runs (or will) */
  atomic_bool deep;              /* the window is to be filled further down than to the finalized block */
  atomic_uint waiting;           /* calls that wait for it to be known */
  _Atomic int64_t tier;          /* of the node whose head is the tip */
  struct tracker *tracker;       /* the owner's */
  struct egw_worker *owner;      /* set before the workers run */
};

enum {
  HEAD_NEWS_SAW = 1,             /* a reply spoke of a newer block */
  HEAD_NEWS_TOUCH = 2,
  HEAD_NEWS_COMMAND = 4,         /* a command to a development node may have moved the chain back */
  HEAD_NEWS_WAKE = 8,
  HEAD_NEWS_LOOK = 16            /* a client waits for the nodes to be looked at */
};

static inline bool
head_is_tracked(struct head *head)
{
  return atomic_load_explicit(&head->wanted, memory_order_acquire);
}

/* Makes the empty head of a network. 0 or -1. Main thread. */
int head_init(struct head *head) EGW_MUST_CHECK;
void head_free(struct head *head);

struct head_snapshot *head_snapshot_ref(const struct head_snapshot *snapshot);
void head_snapshot_unref(struct head_snapshot *snapshot);

/* The newest snapshot; borrowed until the worker's run queue has turned. Worker's thread. */
const struct head_snapshot *head_now(struct egw_worker *worker, const struct network *network);

/* The public part of the newest snapshot, `settled` left out. Any thread. */
void head_peek(struct head *head, struct egw_head *out);

/* The number of a canonical block by its hash, if it is in the window. */
bool head_number(const struct head_snapshot *snapshot, const unsigned char hash[32],
                 uint64_t *number);

/* The newest block that a client may have been told of: the tip, or what a reply spoke of. */
uint64_t head_newest(const struct head *head, const struct head_snapshot *snapshot);

/* Publishes `snapshot` (taken) and tells every worker. Owner's thread. */
void head_publish(struct network *network, struct head_snapshot *snapshot);

/* A new snapshot with room for `count` hashes, its version set. NULL: no memory. */
struct head_snapshot *head_snapshot_new(struct head *head, unsigned count) EGW_MUST_CHECK;

/* Per-worker memory of the heads. Worker's thread; free: main thread, after join. */
int head_worker_init(struct egw_worker *worker) EGW_MUST_CHECK;
void head_worker_free(struct egw_worker *worker);

/* Starts and stops the trackers that this worker owns. start: after its links are open;
 * stop: before they close. Worker's thread. */
int head_start(struct egw_worker *worker) EGW_MUST_CHECK;
void head_stop(struct egw_worker *worker);

/* A reply of `upstream` shows that it has block `number`. Any worker. */
void head_saw(struct egw_worker *worker, struct upstream *upstream, uint64_t number);

/* Something may have changed the chain just now (a transaction was sent; `command`: a
 * development node was told something): the tip is not settled until it has been looked at
 * anew. Any worker. */
void head_touch(const struct network *network, bool command);

/* Has the nodes looked at now. The snapshot is fresh once its `touched` is at least what this
 * returns. Any worker. */
uint64_t head_look(const struct network *network);

/* A client asks again after a long silence. Any worker. */
void head_wake(const struct network *network);

/* The head of the network is needed: its tracker starts, if it has not. With several
 * upstreams, or a stage that hears of heads, it runs from the beginning. Any worker. */
void head_want(const struct network *network);

/* Whether the chain may just have been moved back on purpose: a lower head is no sign of a
 * node that lags. Any worker. */
bool head_commanded(const struct head *head, const struct head_snapshot *snapshot);

/* Whether the snapshot's tip is the newest block that anyone has heard of. Any worker. */
bool head_settled(const struct head *head, const struct head_snapshot *snapshot);

/* Frees the tracker. Main thread, after join. */
void head_tracker_free(struct head *head);

#endif
