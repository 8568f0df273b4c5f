/* SPDX-License-Identifier: MIT */
/* A session: one client connection, as the rest of the gateway sees it. The listeners (HTTP,
 * WebSocket, IPC) embed it in their own struct.
 *
 *   listener: session_init -> request_start ... -> session_gone -> (frees its struct)
 *
 * Everything happens on the session's worker. After session_gone() the core calls none of its
 * operations again. */
#ifndef LISTEN_SESSION_H
#define LISTEN_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/out.h"
#include "obs/metrics.h"

struct egw_worker;
struct listener;
struct network;
struct request;
struct session;

enum session_state {
  SESSION_OPEN,
  SESSION_DRAINING,   /* no further requests are read; what is in flight is answered */
  SESSION_GONE
};

/* What a request tells of who sent it, beside its connection. Slices are borrowed from where the
 * listener keeps them: they last until the request is answered or cancelled. Secrets. */
struct client_facts {
  struct egw_slice authorization, api_key, user_agent; /* headers; missing: not sent, or twice */
  struct egw_slice path_key;    /* missing: none */
  bool forwarded;               /* by a trusted proxy, */
  char peer[46];                /* for this address; "": it did not tell, or not well */
};

/* What goes with an answer beside its bytes, on sessions that have a place for it (HTTP). What is
 * wanted is set before request_start(), the rest before ops->reply() is called. */
struct answer_notes {
  bool want_cache, want_story;
  int status;                   /* of an answer that is one error; 0: the usual one */
  char *cache, *story;          /* malloc'ed for the session; NULL: not wanted, or no memory */
};

struct session_ops {
  /* The answer to the request started with `cookie`; takes `out`, which may still be open
   * (pieces follow; see base/out.h). NULL: there is nothing to say (notifications). Called
   * exactly once for each request unless it was cancelled; never from within
   * request_start(). */
  void (*reply)(struct session *session, void *cookie, struct out *out);
  /* An event outside of any request (subscriptions); takes `out`. NULL member: not possible on
   * this kind of session (HTTP). */
  void (*push)(struct session *session, struct out *out);
  /* request_start() may be called again after session_may_read() was false. */
  void (*ready)(struct session *session);
  /* Ends the connection after what is queued has been sent, or at once when `now`. */
  void (*close)(struct session *session, bool now, int ws_code, const char *reason);
};

struct session {
  const struct session_ops *ops;
  struct egw_worker *worker;
  struct listener *listener;
  struct network *network;      /* chosen by the path of the request; never NULL once open */
  enum client_kind kind;
  enum session_state state;
  bool local;                   /* unix socket or loopback listener */
  bool has_uid;                 /* the peer of a unix socket: */
  uint32_t uid;
  uint64_t number;              /* unique in this process */
  char peer[48];                /* "127.0.0.1", "::1", "uid 1000" */
  const struct client_facts *facts; /* of the request under way (HTTP), of the one that opened the
                                   session (WebSocket); NULL: nothing is known */
  struct answer_notes *notes;   /* of the request under way; NULL: there is no place for them */
  /* the core's: */
  struct list requests;
  struct list subscriptions;
  unsigned subscription_count;
  unsigned calls_in_flight;     /* running and waiting */
  unsigned calls_running;
  struct list calls_waiting;    /* read, not yet started: struct egw_call.waiting */
  unsigned calls_waiting_count;
  size_t request_bytes;         /* text of the requests that are not answered */
  bool read_blocked;            /* session_may_read() said no; ready() is owed */
  size_t queue_bytes;           /* output handed over, not yet sent: see session_queue() */
};

/* Who the client is. Borrowed from the session. */
struct egw_client;
void session_client(const struct session *session, struct egw_client *out);

/* Prepares the common part and counts the session, also in worker->listen->sessions (not those of
 * the admin listener); `peer` is filled in by the caller before or after. */
void session_init(struct session *session, const struct session_ops *ops, enum client_kind kind,
                  struct egw_worker *worker, struct listener *listener, struct network *network);

/* Whether another request may be read now. Slow reading of answers is no reason against it: a client
 * that writes before it reads on would wait for us for ever. Its calls wait instead (they are
 * started as output drains), and only when many of them wait is reading stopped; ready() is
 * called when that has changed. */
bool session_may_read(struct session *session);

/* Output was handed over (`more` bytes) or sent or dropped (`less`): keeps queue_bytes, its metric
 * and the gateway's byte budget. */
void session_queue(struct session *session, size_t more, size_t less);

/* The listener sent queued bytes (queue_bytes went down): may call ops->ready(). */
void session_sent(struct session *session);

/* The connection is over: cancels what is in flight, ends subscriptions, counts it as closed. Doing
 * it twice does nothing. */
void session_gone(struct session *session);

/* --- requests: rpc/request.c --------------------------------------------------------- */

/* Takes a client's message (taken: the reference passes to the request) and runs it. `cookie`
 * comes back in ops->reply(). `network` NULL: the session's. Returns a handle for
 * request_cancel(), valid until reply() was called with a closed `out` or the open one it was
 * given is closed or aborted; NULL when memory is short (nothing will be called; answer
 * with an internal error). */
struct request *request_start(struct session *session, struct network *network,
                              struct egw_buf *text, void *cookie);

/* Lets a single call that has just been started take its first steps at once, not when the run
 * queue is drained: what a stage can answer by itself is answered within this, while all that the
 * request touches is still near. Right after request_start(), from where reply() and
 * close() may be called; the request, not the session, may be gone after it. */
void request_run(struct request *request);

/* The client has lost interest in this request; ops->reply() will not be called for it. An open
 * `out` is closed by the core no more: free it after this. */
void request_cancel(struct request *request);

/* The same for all of the session's requests. */
void request_cancel_all(struct session *session);

#endif
