/* SPDX-License-Identifier: MIT */
/* Inside of the ws transport: what its files share.
 *
 *   ws.c           descriptor, options, links, the callbacks of the transport
 *   ws-hub.c       the libwebsockets context of a worker, and its end
 *   ws-connect.c   one connection: name, addresses, handshake, time-outs, end
 *   ws-io.c        one open connection: messages out and in, pings
 *   ws-tls.c       certificates
 *
 * libwebsockets calls a connection a wsi; ours belongs to it by its opaque user data. Either
 * may end first: whoever does cuts that tie, so a wsi without a connection only wants to be
 * closed. */
#ifndef PLUGINS_TRANSPORT_WS_H
#define PLUGINS_TRANSPORT_WS_H

#include <libwebsockets.h>
#include <uv.h>
#include "../common/auth.h"
#include "../common/pool.h"
#include "base/lws-compat.h"

#define WS_READ 32768u          /* bytes of one read, and of the pieces that are handed on */
#define WS_ADDRESSES 8u         /* of a name that are tried */
/* libwebsockets cuts longer Host headers and request lines. */
#define WS_NAME_MAX 100u        /* bytes of a host name */
#define WS_PATH_MAX 1900u       /* bytes of a path with its query */

/* An instance: the options of one upstream. Constant once workers run. */
struct ws {
  struct pool_options pool;
  struct auth auth;
  uint64_t ping_interval, pong_timeout; /* ms */
  const char *ca_file;
  bool insecure_skip_verify;
};

/* Where a link goes: made when it is opened, kept until the context is gone. */
struct ws_site {
  struct ws_site *next;
  struct ws_hub *hub;
  struct lws_vhost *vhost;
  void *tls;                    /* SSL_CTX; NULL: plain */
  char *host;                   /* to be found in its certificate */
  const char *tls_fault;        /* why a certificate was refused last; constant text */
  bool insecure;
};

/* One context on the worker's loop. It outlives worker_stop() until lws has left the loop. */
struct ws_hub {
  struct lws_context *context;  /* set to NULL by lws when it is freed */
  struct lws_own_log log;
  struct egw_worker *worker;
  uv_loop_t *loop;
  uv_timer_t watch;             /* while stopping */
  uint64_t stop_ms;             /* when stopping began */
  unsigned live;                /* wsi that were made and are not destroyed */
  struct lws *dropping;         /* the wsi being dropped; NULL once it is destroyed */
  bool doomed;                  /* lws_context_destroy() was called */
  bool failing;                 /* a wsi may be destroyed whose watcher lws has lost */
  struct ws_site *sites;
  unsigned char *out;           /* scratch for a message being sent, LWS_PRE bytes in front */
  size_t out_room;
};

/* The instance on a worker. */
struct ws_mine {
  struct ws_hub *hub;
};

struct ws_link {
  struct pool pool;             /* first */
  struct egw_link *link;
  struct ws_site *site;
};

enum ws_state {
  WS_RESOLVING,
  WS_NEXT,                      /* the next address is tried soon */
  WS_CONNECTING,                /* TCP, TLS, handshake */
  WS_OPEN
};

struct ws_conn {
  struct pool_member member;    /* first */
  struct ws_link *link;
  struct ws_hub *hub;
  enum ws_state state;
  struct lws *wsi;              /* NULL: none (yet), or cut off */
  struct egw_timer timer;       /* connecting: its time-out; open: pings */
  struct egw_resolve *resolve;
  struct egw_address addresses[WS_ADDRESSES];
  size_t address_count, address_next;
  uint64_t give_up_ms;          /* connecting: the end of the whole attempt */
  const char *why;              /* why it is being closed, or what went wrong last; constant */
  bool connecting;              /* within lws_client_connect_via_info() */
  uint64_t heard_ms, pinged_ms; /* last byte from the node; ping without answer, or 0 */
  bool ping_due;
};

/* --- ws-hub.c --------------------------------------------------------------------------- */

/* NULL, with the reason logged. */
struct ws_hub *hub_new(struct egw_worker *worker);
/* The links are closed. Frees itself once lws has left the loop. */
void hub_stop(struct ws_hub *hub);
/* A site for the link; NULL with the reason logged. */
struct ws_site *hub_site(struct ws_hub *hub, const struct ws *ws, struct egw_link *link);
/* lws looks at its timers only after something happened on its descriptors: to be called after
 * it was told something outside of its callbacks. */
void hub_poke(struct ws_hub *hub);
/* Room for a message of `len` bytes behind LWS_PRE ones, or NULL. */
unsigned char *hub_out(struct ws_hub *hub, size_t len);
/* lws messages go to the log at level trace: they are made in one buffer for all threads, which
 * may mix them up. Main thread. */
void hub_route_log(void);

/* --- ws-connect.c ----------------------------------------------------------------------- */

/* For the pool: starts a connection. */
struct pool_member *conn_start(struct egw_link *link, const char **why);
/* For the pool: closes it politely and frees it. */
void conn_drop(struct pool_member *member);
/* It is dead: ends and frees it. Outside of lws callbacks on it. */
void conn_kill(struct ws_conn *c, const char *why);
/* All events of lws on any wsi of ours. */
int conn_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
               size_t len);

/* --- ws-io.c ---------------------------------------------------------------------------- */

/* The handshake is done: 0, or -1 with c->why set. */
int io_open(struct ws_conn *c);
/* The socket takes something. 0, or -1: close it, c->why set. */
int io_write(struct ws_conn *c);
/* A piece of a message. 0, or -1: close it, c->why set. */
int io_read(struct ws_conn *c, const char *bytes, size_t len);
void io_pong(struct ws_conn *c);
/* The timer of an open connection. May free it. */
void io_tick(struct ws_conn *c);
/* For the pool. */
void io_flush(struct pool_member *member);
void io_resume(struct pool_member *member);

/* --- ws-tls.c --------------------------------------------------------------------------- */

/* Whether `ca_file` can be used; main thread. 0, or -1 with `why` filled in. */
int tls_check_file(const char *ca_file, char *why, size_t cap);
/* An SSL_CTX that checks certificates for the site; NULL when that can't be. */
void *tls_new(struct ws_site *site, const struct ws *ws);
void tls_free(void *tls);

#endif
