/* SPDX-License-Identifier: MIT */
/* Upstreams: the nodes of a network, a worker's links to them, and the exchanges on the links.
 *
 *   dispatch.c  a call's attempts: picks a link (group.c), judges, tries again or gives up
 *   link.c      a link's life, health and probes
 *   exchange.c  one wire request: submit, time-out, end
 *   batch.c     small exchanges that share one wire request (batch.h)
 *   conn.c      connections of multiplexed transports: message ends, matching of ids
 *   inbound.c   the bytes of one reply: collected and checked, or passed on in pieces
 *
 * All on the link's worker. */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include <stdatomic.h>
#include <ethrpc-gw/transport.h>
#include "base/list.h"
#include "base/map.h"
#include "base/wheel.h"
#include "chain/call.h"
#include "rpc/envelope.h"
#include "upstream/batch.h"

struct gateway;

/* One configured node; constant once the workers run. */
struct upstream {
  const struct conf_upstream *conf;
  const char *name;
  struct egw_url url;
  struct network *network;
  const struct plugin *plugin;
  const struct egw_transport *transport;   /* = &plugin->transport */
  void *self;                               /* the transport's instance */
  unsigned index;                           /* in gateway->upstreams: worker->links[index] */
  unsigned position;                        /* in network->upstreams */
  /* What head/ found out; any worker reads it. */
  _Atomic uint64_t head;                    /* 1 + the highest block it is known to have; 0: unknown */
  _Atomic uint64_t lowest;                  /* 1 + the lowest block whose state it has; 0: unknown */
  atomic_bool stranger;                     /* it serves another chain: never used */
};

/* Its highest block, the lowest block whose state it has; false: not known. Any thread. */
static inline bool
upstream_head(const struct upstream *upstream, uint64_t *number)
{
  uint64_t n = atomic_load_explicit(&upstream->head, memory_order_relaxed);

  *number = n != 0 ? n - 1 : 0;
  return n != 0;
}

static inline bool
upstream_lowest(const struct upstream *upstream, uint64_t *number)
{
  uint64_t n = atomic_load_explicit(&upstream->lowest, memory_order_relaxed);

  *number = n != 0 ? n - 1 : 0;
  return n != 0;
}

enum link_health {
  LINK_UP,         /* used */
  LINK_DOWN        /* passed over while another is up; probed */
};

struct egw_link {
  struct upstream *upstream;
  struct egw_worker *worker;
  struct egw_link_limits limits;
  void *state;                    /* the transport's */
  void *mine;                     /* the transport's instance on this worker */
  enum link_health health;
  bool transport_down;            /* the transport said EGW_LINK_DOWN */
  bool closing, closed;
  unsigned in_flight;
  unsigned failures;              /* in a row */
  unsigned downs;                 /* times down since it was last well for long: spaces probes */
  uint64_t up_since_ms;
  uint64_t busy_until_ms;         /* it asked to be left alone till then (429, 503) */
  struct wheel_timer probe_timer;
  struct egw_xchg *probe;
  struct list xchgs;
  struct list conns;
  struct u64map by_id;            /* exchanges bound to a connection */
  struct batcher batch;
  uint64_t next_id;
  char last_error[96];            /* for /status; no secrets */
  struct link_metrics metrics;
};

/* How far the bytes of a reply have come. */
enum inbound_state {
  INBOUND_COLLECT,    /* kept until complete */
  INBOUND_HELD,       /* the head is with the chain; nothing is read meanwhile */
  INBOUND_STREAM,     /* the result's bytes pass on */
  INBOUND_DISCARD,    /* read to find the end, not kept */
  INBOUND_COMPLETE,   /* the value is complete */
  INBOUND_BAD
};

struct inbound {
  struct rpc_reply_parser parser;
  struct egw_buf *buf;            /* COLLECT: the message so far */
  size_t begin;                   /* where in buf it begins: not 0 for one out of an array */
  enum inbound_state state;
  uint64_t seen;                  /* bytes of the message fed to the parser */
  size_t reserved;                /* of the gateway's byte budget */
  enum rpc_fault fault;           /* INBOUND_BAD: REPLY_TOO_LARGE, OVERLOADED or BAD_REPLY */
  const char *why;
};

struct egw_xchg {
  struct egw_link *link;
  struct list node;               /* link->xchgs */
  struct list conn_node;          /* conn->bound */
  struct egw_conn *conn;          /* bound to, or NULL */
  struct egw_conn *wants;         /* must go out there, or NULL */
  struct egw_call *call;          /* or NULL: a probe */
  void (*done)(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why); /* owner's */
  uint64_t id;
  struct egw_buf *body;
  void *state;                    /* the transport's */
  void *owner;                    /* of done() */
  bool fresh, idempotent, subscribing, sent, finished;
  struct inbound in;              /* transports that do not multiplex */
  struct inbound *reply;          /* where the reply's bytes are: &in, or the connection's */
  int http_status;
  uint32_t retry_after_ms;
  struct wheel_timer timeout;
  uint64_t started_us;
  uint64_t deadline_ms;
  struct out *out;                /* INBOUND_STREAM */
  struct worker_job tell;         /* tells out's consumer of new pieces: not from within a
                                     transport's call, since that may end the exchange */
  bool paused;                    /* the transport was told 1 */
  /* batch.c */
  const struct egw_batching *batching; /* may share a wire request, or NULL */
  struct list batch_node;         /* link->batch.gathering or .alone: not sent yet */
  bool gathered;                  /* batch_node is in one of these */
  bool by_itself;                 /* was in an array once: never again */
  struct array *array;            /* carried by this one, */
  unsigned slot;                  /* and its place there */
  struct array *carries;          /* this is no call but the wire request of an array */
};

enum conn_state {
  CONN_BETWEEN,       /* no message begun */
  CONN_MESSAGE,       /* inside one */
  CONN_SKIP           /* inside a broken one: to the end of the message or line */
};

struct egw_conn {
  struct egw_link *link;
  struct list node;               /* link->conns */
  struct list bound;              /* exchanges */
  unsigned in_flight;
  void *state;                    /* the transport's */
  enum conn_state phase;
  struct inbound in;              /* the message that is coming in */
  struct egw_xchg *current;       /* whose reply it is, once known */
  bool id_known;
  bool paused;
  struct worker_job resume;       /* tells the transport to read on */
  struct wheel_timer held_up;     /* a slow reader holds the connection: see conn.c */
  uint64_t skipped;
  struct list subscriptions;      /* push/ */
  struct strmap by_subscription;  /* push/: by the upstream's id */
  unsigned subscribing;           /* exchanges in flight that may open a stream */
  struct list early;              /* push/: events before their subscription is known */
  unsigned early_count;
};

/* --- life ------------------------------------------------------------------------------ */

/* Opens all links of a worker; -1 after logging. */
int links_open(struct egw_worker *worker) EGW_MUST_CHECK;
/* Closes them; links_closed() says when the transports are through. */
void links_close(struct egw_worker *worker);
bool links_closed(const struct egw_worker *worker);
/* Stops the transports' instances (after links_closed(); the loop must turn once more for
 * some), then frees. */
void links_stop(struct egw_worker *worker);
void links_free(struct egw_worker *worker);

/* --- group.c: choosing ------------------------------------------------------------------ */

/* The link for the call's next attempt, by call->route, call->dispatch.tried and .want: see there.
 * NULL: all were tried, or none can do it. */
struct egw_link *group_pick(struct egw_call *call);
/* Whether there is another one than those tried. */
bool group_has_other(const struct egw_call *call);
/* Whether any upstream of the network is usable on this worker. */
bool group_usable(struct egw_worker *worker, struct network *network);

/* --- health: link.c ---------------------------------------------------------------------- */

void link_note_ok(struct egw_link *link);
void link_note_failure(struct egw_link *link, enum egw_outcome outcome, const char *why);
/* It answered "too many requests" or "unavailable": passed over for the time it named (RFC 9110
 * 10.2.3), or a second, while another upstream is there. */
void link_note_busy(struct egw_link *link, uint32_t retry_after_ms);

/* --- dispatch.c --------------------------------------------------------------------------- */

void dispatch_start(struct egw_call *call);
void dispatch_cancel(struct egw_call *call);
/* The chain let a partial reply pass: `out` (open, already with the session) gets the pieces.
 * NULL: nobody wants it. */
void dispatch_stream(struct egw_call *call, struct out *out);

/* --- exchange.c --------------------------------------------------------------------------- */

struct xchg_request {
  struct egw_slice method, params;
  struct egw_call *call;          /* or NULL */
  struct egw_conn *wants;         /* or NULL */
  void (*done)(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why);
  void *owner;                    /* for done() */
  uint32_t timeout_ms;
  bool fresh, idempotent;
  bool subscribing;               /* events may follow the reply on its connection */
  const struct egw_batching *batching; /* it may travel with others (batch.c), or NULL */
};

/* Makes and submits an exchange; *slot points to it before anything can happen to it. done() is
 * called once, perhaps from within; then the exchange is freed. In done(), xchg->reply holds
 * the bytes (outcome EGW_OK). 0, or -1: no memory, done() is not called. */
int xchg_start(struct egw_link *link, const struct xchg_request *what, struct egw_xchg **slot)
    EGW_MUST_CHECK;
/* Gives it up: done() is not called. */
void xchg_abort(struct egw_xchg *xchg);
/* The wire request of an array: `body` (taken) goes out, done() as with xchg_start(). It counts
 * nowhere and has no time-out: its members do. NULL: no memory. Submit it with xchg_submit(). */
struct egw_xchg *xchg_new_carrier(struct egw_link *link, struct array *array, struct egw_buf *body,
                                  void (*done)(struct egw_xchg *xchg, enum egw_outcome outcome,
                                               const char *why)) EGW_MUST_CHECK;
void xchg_submit(struct egw_xchg *xchg);
/* Ends it from the core's side: done() is called, the transport forgets it. */
void xchg_finish(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why);
/* The reader of a streamed or held reply has room (again). */
void xchg_more(struct egw_xchg *xchg);

/* --- inbound.c ---------------------------------------------------------------------------- */

void inbound_begin(struct inbound *in);
void inbound_end(struct inbound *in, struct gateway *gateway); /* frees and returns the budget */

/* Feeds bytes of the message; *used: how many belong to it. `xchg` whose reply it is, NULL while
 * unknown. Returns the state afterwards. COMPLETE: judge with inbound_judge(). */
enum inbound_state inbound_feed(struct inbound *in, struct egw_link *link, struct egw_xchg *xchg,
                                const char *bytes, size_t len, size_t *used);

/* Goes on with a reply as a stream into xchg->out (or, without one, discards it). */
void inbound_stream(struct inbound *in, struct egw_xchg *xchg);

/* The message is a part of another one, which is complete: an element of an array. The bytes are
 * not copied, unless they are a small part of a large whole. false: no memory. */
bool inbound_take(struct inbound *in, struct egw_buf *whole, struct rpc_span part);

/* Parses the complete message. */
void inbound_judge(struct inbound *in, struct rpc_reply *reply);

#endif
