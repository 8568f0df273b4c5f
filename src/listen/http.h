/* SPDX-License-Identifier: MIT */
/* The HTTP server of a worker, as its files see it. libmicrohttpd has an epoll of its own,
 * which the loop polls; it runs in a hook of the worker, so that requests read in a turn and
 * answers made in it leave in the same turn.
 *
 *   http.c          the daemon on the loop, connections from adoption to end
 *   http-request.c  a request from its head to request_start()
 *   http-reply.c    answers: whole, in pieces, small ones of our own
 *   http-sweep.c    deadlines, and clients that have left
 *
 * One connection has one request at a time (RFC 9112 9.3.2: answers in order), which is why
 * the request's state is part of the connection and costs no memory of its own. */
#ifndef LISTEN_HTTP_H
#define LISTEN_HTTP_H

#include <microhttpd.h>
#include "listen/linger.h"
#include "listen/parts.h"

#define HTTP_POOL ((size_t)12 << 10) /* libmicrohttpd's memory of a connection and its request */

enum http_phase {
  HTTP_IDLE,       /* between requests */
  HTTP_HEAD,       /* the request line is there, the rest of the head is not */
  HTTP_BODY,       /* the head was judged, the body is read */
  HTTP_RUNNING,    /* request_start() was called; no answer yet */
  HTTP_REPLYING,   /* the answer is with libmicrohttpd */
  HTTP_CUT         /* over: ends as soon as libmicrohttpd asks */
};

/* What is asked for, once the head is judged. */
enum http_task { HTTP_CALL, HTTP_HELLO, HTTP_PREFLIGHT, HTTP_ADMIN };

struct http_conn {
  struct session session;
  struct http_server *server;
  struct list node;            /* in server->active, or in a list of its http_port */
  struct list adopting;        /* in server->adopting until libmicrohttpd announces it */
  struct MHD_Connection *mhd;
  struct peer peer;
  int fd;
  enum http_phase phase;
  enum http_task task;
  bool suspended;              /* libmicrohttpd leaves it alone until it is woken */
  bool answered;               /* running: `out` is the answer (NULL: there is none) */
  bool linger;                 /* a refusal is on its way: close gently */
  bool later;                  /* not the first request: gate_check() has not seen its head */
  bool no_body;                /* HEAD */
  bool bad_target;
  /* in libmicrohttpd's memory, valid until the request ends: */
  const char *target;
  const char *target_end;      /* with its query */
  size_t target_len;           /* without it */
  struct egw_slice path;
  struct egw_slice origin;     /* allowed and to be named in the answer, or missing */
  struct client_facts facts;   /* the same */
  struct answer_notes notes;
  struct network *network;
  struct egw_buf *body;
  size_t announced;            /* Content-Length, only for the first size of the buffer */
  size_t body_len;
  size_t reserved;             /* of the gateway's byte budget, for the body */
  struct request *request;
  struct out *out;             /* the answer until libmicrohttpd has it (pieces: to the end) */
  size_t queued;               /* bytes of it, part of session.queue_bytes */
  uint64_t since;              /* ms: of the phase, or of the request while it is read */
  uint64_t looked;             /* ms: last look of the sweeper */
  uint64_t acked;              /* bytes the client had taken at that time */
};

/* What is kept for each listener. */
struct http_port {
  struct list rested;          /* connections that have just become idle, see http-sweep.c */
  struct list idle;            /* the others, longest idle first */
};

struct http_server {
  struct listen_worker *lw;
  struct egw_worker *worker;
  struct MHD_Daemon *daemon;
  bool strict_parser;          /* libmicrohttpd refuses by itself what it used to repair */
  uv_poll_t poll;
  uv_idle_t idle;              /* keeps the loop from sleeping while libmicrohttpd has work */
  struct worker_hook hook;
  bool wanted;                 /* MHD_run() has something to do */
  bool busy;                   /* idle handle is started */
  unsigned runs;               /* in the turn of number `turn` */
  unsigned started;            /* requests, in this MHD_run() */
  int64_t turn;
  struct http_port *ports;     /* by listener */
  struct list active;          /* connections with a request */
  struct wheel_timer sweep;
  struct list adopting;
  unsigned conns, handles;
  bool draining, stopping;
};

static inline struct http_port *
http_port_of(struct http_conn *conn)
{
  return &conn->server->ports[conn->session.listener - conn->server->lw->listeners->v];
}

/* --- http.c --------------------------------------------------------------------------- */

/* Lets libmicrohttpd go on with the connection. */
void http_wake(struct http_conn *conn);

/* The request is over: what is in flight is cancelled, its memory freed. */
void http_request_end(struct http_conn *conn);

/* Ends the connection, whatever it is doing. */
void http_cut(struct http_conn *conn);

/* --- http-request.c ------------------------------------------------------------------- */

void *http_on_target(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result http_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_len, void **context);

/* Answers with a refusal and ends the connection. MHD_NO, for the caller to return. */
enum MHD_Result http_refuse(struct http_conn *conn, int status, enum refusal refusal,
                            const char *why);

/* --- http-reply.c --------------------------------------------------------------------- */

extern const struct session_ops http_session_ops;

/* Queues the answer that has come (conn->out). */
enum MHD_Result http_reply(struct http_conn *conn);

/* Those that need no call: GET, OPTIONS, the admin pages. */
enum MHD_Result http_reply_hello(struct http_conn *conn);
enum MHD_Result http_reply_preflight(struct http_conn *conn);
enum MHD_Result http_reply_admin(struct http_conn *conn, const char *method);

/* --- http-sweep.c --------------------------------------------------------------------- */

void http_sweep_init(struct http_server *server);

/* A request has begun, or a connection is idle: the sweeper is to look in time. */
void http_sweep_soon(struct http_conn *conn);

/* Ends the idle connections that have sent nothing. */
void http_sweep_idle(struct http_server *server);

#endif
