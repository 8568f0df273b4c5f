/* SPDX-License-Identifier: MIT */
/* The hub of a network: what the chain does becomes events for the subscriptions and filters of all
 * workers. It lives with the network's tracker, on the worker that owns that.
 *
 *   tracker moves the tip -> hub: heads, and the logs of each block in order -> every worker's inbox
 *   -> the subscriptions there (local.c) and, on the owner, the filters (filters.c)
 *
 * Each block's logs are asked for once, by its hash, whoever wants them, and only while someone does.
 */
#ifndef PUSH_HUB_H
#define PUSH_HUB_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "head/blocks.h"
#include "head/head.h"
#include "push/logs.h"
#include "push/match.h"

struct egw_call;
struct egw_worker;
struct gateway;
struct network;

enum hub_kind { HUB_HEADS, HUB_LOGS, HUB_PENDING, HUB_PENDING_FULL, HUB_SYNCING, HUB_KINDS };

/* An event, shared by all who get it. */
struct hub_event {
  atomic_uint refs;
  enum hub_kind kind;
  struct network *network;
  uint64_t number;               /* HEADS, LOGS: of the block */
  unsigned char hash[HASH_LEN];
  uint64_t version;              /* of the head's first snapshot that has it: hub_is_new() */
  uint64_t first_version;        /* removed: of the event that brought them; else the same */
  uint64_t again;                /* HEADS: told before, to all who had begun before this version; or 0 */
  bool removed;
  bool broken;                   /* something was lost: who wants such events is to be told so */
  struct egw_buf *buf;           /* HEADS, PENDING*: the raw result */
  struct log_set *logs;          /* LOGS; removed and NULL: a block whose logs were not told goes */
};
void hub_event_unref(struct hub_event *event);

/* A filter that is in use somewhere, for the blooms. */
struct hub_filter {
  struct list node;
  struct log_filter *filter;
};

struct log_step;

/* A head as it was told last at its height. */
struct hub_told {
  unsigned char hash[HASH_LEN];
  uint64_t version;              /* of the head; 0: none */
};

struct hub {
  struct network *network;
  struct egw_worker *owner;
  atomic_uint wanted[HUB_KINDS]; /* subscriptions and filters that want such events */
  pthread_mutex_t lock;          /* of the two lists */
  struct list filters;           /* struct hub_filter */
  struct list asks;              /* struct filter_ask: in the mail */
  /* the owner's: */
  struct list steps;             /* blocks whose logs are to be told, in their order */
  unsigned step_count, asking;
  bool bloom_seen;               /* headers of this chain do have blooms */
  unsigned bloom_lies;           /* blocks in a row whose bloom spoke of logs that are not */
  struct hub_told told_heads[HEAD_WINDOW]; /* by number % HEAD_WINDOW */
  uint64_t told_top;             /* the number of the last one */
  struct list told;              /* blocks whose logs were told, newest last */
  unsigned told_count;
  struct filters *filters_mine;  /* filters.c */
  struct pending *pending;       /* pending.c */
  struct syncing *syncing;       /* syncing.c */
  bool stopped;
};

int hub_init(struct hub *hub, struct network *network) EGW_MUST_CHECK;
void hub_free(struct hub *hub);

/* The owner's: before the tracker starts, and when it has stopped. */
int hub_start(struct hub *hub) EGW_MUST_CHECK;
void hub_stop(struct hub *hub);

/* The canonical chain has changed: `dropped` from the highest down, `added` upwards. Owner. */
void hub_moved(struct hub *hub, struct block *const *dropped, unsigned dropped_count,
               struct block *const *added, unsigned added_count);

/* The chain was taken up anew: some blocks will not be told. Owner. */
void hub_lost(struct hub *hub);

/* Takes `event` (its reference) to every worker that has a use for it. Owner. */
void hub_tell(struct hub *hub, struct hub_event *event);
struct hub_event *hub_event_new(struct hub *hub, enum hub_kind kind) EGW_MUST_CHECK;

/* Whether the network may have one more subscription or filter. Any worker. */
bool hub_has_room(const struct hub *hub);

static inline bool
hub_is_wanted(struct hub *hub, enum hub_kind kind)
{
  return atomic_load(&hub->wanted[kind]) != 0; /* sequentially consistent: see hub_moved() */
}

/* Whether the event is one to whoever began when the head's version was `since`: what that snapshot has is
 * old, what came later is new; of what is taken back only what was new is; nothing is new twice. */
static inline bool
hub_is_new(const struct hub_event *event, uint64_t since)
{
  return event->version > since && event->first_version > since &&
         (event->again == 0 || event->again <= since);
}

/* Somebody wants such events from now on (or no more). The head's version that is read
 * after this (and hub_filter_add()) is the one it begins at. Any worker. */
void hub_want(struct hub *hub, enum hub_kind kind, int change);

/* Counts a filter in. Any worker. */
void hub_filter_add(struct hub *hub, struct hub_filter *entry);
void hub_filter_remove(struct hub *hub, struct hub_filter *entry);

#endif
