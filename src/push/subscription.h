/* SPDX-License-Identifier: MIT */
/* One subscription of one session, as the files of push/ see it.
 *
 *   OPENING --- answered ---> LIVE --- connection lost ---> BROKEN --- answered ---> LIVE
 *      any --- unsubscribed, session gone ---> freed
 */
#ifndef PUSH_SUBSCRIPTION_H
#define PUSH_SUBSCRIPTION_H

#include "base/list.h"
#include "base/out.h"
#include "base/wheel.h"
#include "push/hub.h"
#include "upstream/upstream.h"

#define SUBSCRIPTION_ID_LEN 34u     /* "0x" and 32 hex digits */
#define SUBSCRIPTION_HELD_MAX 1024u /* events kept until the client has its answer */
#define EARLY_MAX 256u              /* events kept until their subscription is known */

struct resume;

struct subscription {
  struct list session_node;      /* session->subscriptions */
  struct list conn_node;         /* conn->subscriptions while live upstream */
  struct session *session;       /* NULL: a feed of the gateway's own */
  void (*event)(struct subscription *feed, struct egw_slice result); /* feeds: within the transport */
  void (*lost)(struct subscription *feed); /* feeds: detached, its connection is gone; may free it */
  void *arg;                     /* feeds: the owner's */
  struct egw_worker *worker;
  struct network *network;
  struct egw_conn *conn;         /* NULL: broken */
  struct egw_buf *method, *params; /* to make it again */
  struct egw_buf *upstream_id;   /* decoded */
  const struct request *waiting; /* its answer is not out yet: events are held */
  struct list held;              /* struct out */
  unsigned held_count;
  struct egw_call *opening;      /* the client's call while it is not over */
  struct egw_call *renewing;     /* the call that makes it again */
  struct wheel_timer retry;
  unsigned retries;
  /* local.c: served from the hub, no connection of its own */
  bool served;
  struct list hub_node;
  enum hub_kind hub_kind;
  struct hub_filter filter;      /* logs */
  uint64_t since;                /* the head's version it begins at: see hub_is_new() */
  struct resume *resume;         /* its past is being told; or NULL */
  char id[SUBSCRIPTION_ID_LEN + 1];
};

/* A random id, unguessable: SUBSCRIPTION_ID_LEN characters and a NUL. 0, or -1: no randomness. */
int subscription_make_id(char *out) EGW_MUST_CHECK;

/* An event that came before its subscription was known. */
struct early_event {
  struct list node;
  struct egw_buf *buf;
  struct egw_slice method, params;
};

/* New, on no list yet. NULL: no memory or no randomness. */
struct subscription *subscription_new(struct session *session, struct network *network,
                                      struct egw_slice method, struct egw_slice params);

/* A feed: events go to `event`, not to a client; nothing makes it again when its connection is lost.
 * NULL: no memory or no randomness. */
struct subscription *
subscription_feed_new(struct egw_worker *worker, struct network *network, struct egw_slice method,
                      struct egw_slice params,
                      void (*event)(struct subscription *, struct egw_slice),
                      void (*lost)(struct subscription *), void *arg);

/* Events of a new subscription that came before it was known: to their receiver. */
void push_take_early(struct subscription *sub, struct egw_conn *conn);

/* Takes it off every list and ends it at the upstream if `tell`. */
void subscription_free(struct subscription *sub, bool tell);

/* It is now open on `conn` under `upstream_id` (raw JSON). -1: no memory, or not an id. */
int subscription_attach(struct subscription *sub, struct egw_conn *conn,
                        struct egw_slice upstream_id);
void subscription_detach(struct subscription *sub);

/* Its connection is gone: makes it again, at once and then with growing pauses. */
void subscription_renew(struct subscription *sub);

/* Ends an upstream subscription by its raw id. */
void upstream_unsubscribe(struct egw_conn *conn, struct egw_slice method, struct egw_slice id);

#endif
