/* SPDX-License-Identifier: MIT */
/* Transports: how a worker reaches one upstream node.
 *
 * The core owns ids, envelopes, reply parsing, validation, health and retries; a transport
 * moves bytes. Per worker and upstream there is one link. The core gives a link exchanges
 * (one wire request each) and the transport reports what happens to them.
 *
 * Two shapes:
 *  - one exchange at a time per connection (HTTP): feed the reply's bytes by
 *    egw_xchg_data(), end with egw_xchg_done().
 *  - multiplexed (EGW_T_MULTIPLEX: WebSocket, IPC): each connection is an egw_conn; bind an
 *    exchange to it when its bytes are queued, feed whatever arrives by egw_conn_data(), and
 *    report the end of the connection by egw_conn_lost(). The core finds message ends
 *    where the transport has none, matches ids, and fails what was in flight.
 *
 * Everything is called on the link's worker. No callback of a transport is called from
 * within one of its own calls into the host, except where a comment says so.
 */
#ifndef ETHRPC_GW_TRANSPORT_H
#define ETHRPC_GW_TRANSPORT_H

#include <ethrpc-gw/plugin.h>
#include <ethrpc-gw/loop.h>
#include <ethrpc-gw/middleware.h> /* enum egw_outcome */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct egw_link;
struct egw_xchg;
struct egw_conn;

enum {
  EGW_T_MULTIPLEX = 1, /* many exchanges in flight on one connection, matched by id */
  EGW_T_PUSH = 2,      /* the node can send subscription messages */
  EGW_T_BATCH = 4      /* a request may be an array */
};

struct egw_transport {
  struct egw_plugin plugin;
  const char *schemes;   /* URL schemes, joined by spaces: "http https" */
  uint32_t caps;         /* EGW_T_* */
  size_t link_size;      /* per-link state, zeroed by the host */
  size_t xchg_size;      /* per-exchange state, zeroed by the host */
  size_t conn_size;      /* per-connection state (MULTIPLEX), zeroed by the host */

  /* Prepares a link; need not connect. 0, or -1 (reason by egw_log()). */
  int (*open)(struct egw_link *link);
  /* Ends the link: everything still in flight is reported by egw_xchg_done()
   * (EGW_ABORTED) or egw_conn_lost(); after egw_link_closed(), which may be called from
   * within close() or later, the host frees the link. */
  void (*close)(struct egw_link *link);
  /* Sends one exchange. May report egw_xchg_done() from within. */
  void (*submit)(struct egw_link *link, struct egw_xchg *xchg);
  /* The core gives up on an exchange it submitted: after return the transport must not touch
   * it. Bytes already queued on a multiplexed connection may still go out whole. */
  void (*abort)(struct egw_link *link, struct egw_xchg *xchg);
  /* The reader has room again after egw_xchg_data()/egw_conn_data() returned 1. Exactly one
   * of the two is not NULL. */
  void (*more)(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn);
};

/* --- links --------------------------------------------------------------------------- */

const void *egw_link_self(const struct egw_link *link);   /* the configured instance */
void *egw_link_mine(const struct egw_link *link);         /* the instance on this worker */
void *egw_link_state(const struct egw_link *link);
struct egw_worker *egw_link_worker(const struct egw_link *link);
const char *egw_link_name(const struct egw_link *link);   /* the upstream's name: printable */

/* The URL, taken apart; every part may be a secret and must not be logged. Strings live as
 * long as the link and are never NULL. `path` begins with '/' (http, ws) and includes the
 * query, or is a file name (ipc, replay). user and password are percent-decoded. */
struct egw_url {
  const char *scheme, *user, *password, *host, *path;
  uint16_t port;         /* the scheme's default is filled in */
  bool tls;              /* https, wss */
};
const struct egw_url *egw_link_url(const struct egw_link *link);

struct egw_link_limits {
  uint32_t connect_timeout_ms;
  uint64_t max_reply;            /* bytes of one reply */
};
const struct egw_link_limits *egw_link_limits(const struct egw_link *link);

/* Whether the link can carry calls now. A transport that keeps connections reports UP and
 * DOWN as they come and go; HTTP reports nothing. `why` is logged and shown: no secrets. */
enum egw_link_state { EGW_LINK_UP, EGW_LINK_DOWN };
void egw_link_set(struct egw_link *link, enum egw_link_state state, const char *why);
void egw_link_closed(struct egw_link *link);

/* --- exchanges ----------------------------------------------------------------------- */

void *egw_xchg_state(const struct egw_xchg *xchg);

/* The request's bytes, one JSON value, no newline. Take a reference to keep them after the
 * exchange ended. */
struct egw_buf *egw_xchg_body(const struct egw_xchg *xchg);

/* Milliseconds until the core gives up; a hint for time-outs of the transport's own. */
uint32_t egw_xchg_time_left(const struct egw_xchg *xchg);

/* The exchange must not reuse a connection (a retry, or not idempotent), and no library may
 * send it twice by itself. */
bool egw_xchg_fresh(const struct egw_xchg *xchg);
bool egw_xchg_idempotent(const struct egw_xchg *xchg);

/* The connection that must carry this exchange (a MULTIPLEX transport asks before it chooses one:
 * what belongs to a subscription goes where the subscription is), or NULL: any. */
struct egw_conn *egw_xchg_wants(const struct egw_xchg *xchg);

/* A piece of the reply's body (not MULTIPLEX); its bytes are taken in any case. 0: go on. 1: the
 * reader is full, pause until more(), which is not called from within this call. -1: the reply
 * is of no use; stop, and call egw_xchg_done() with EGW_BAD_REPLY. */
int egw_xchg_data(struct egw_xchg *xchg, const char *bytes, size_t len);

/* Facts of an HTTP reply, before egw_xchg_done(). */
void egw_xchg_http(struct egw_xchg *xchg, int status, uint32_t retry_after_ms);

/* The end of an exchange, exactly once unless abort() came first; the exchange is gone after
 * it. EGW_OK: the transport did its part, the core judges the bytes. `why` is copied. */
void egw_xchg_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why);

/* --- connections of MULTIPLEX transports --------------------------------------------- */

/* A new connection of the link, to be called when it is established; NULL when memory is
 * short. It ends with egw_conn_lost(). */
struct egw_conn *egw_conn_new(struct egw_link *link);
void *egw_conn_state(const struct egw_conn *conn);
struct egw_link *egw_conn_link(const struct egw_conn *conn);

/* The exchange's bytes are about to go out on `conn`: from now on its reply is awaited there
 * and its end comes from the core. */
void egw_xchg_bind(struct egw_xchg *xchg, struct egw_conn *conn);

/* At least one byte of a bound exchange has gone to the kernel: a loss from now on counts as
 * EGW_MAYBE_SENT. */
void egw_xchg_sent(struct egw_xchg *xchg);

/* Number of exchanges in flight on the connection. */
unsigned egw_conn_in_flight(const struct egw_conn *conn);

/* Bytes arrived. Message ends: EGW_CONN_STREAM finds them by the JSON itself (IPC);
 * otherwise FIRST and LAST mark the first and last piece of a message.
 * 0: go on. 1: a reader is full: stop reading until more(). -1: the stream can't be
 * understood any more: close the connection and call egw_conn_lost(). */
enum { EGW_CONN_FIRST = 1, EGW_CONN_LAST = 2, EGW_CONN_STREAM = 4 };
int egw_conn_data(struct egw_conn *conn, const char *bytes, size_t len, unsigned flags);

/* The connection is gone: everything bound to it ends (EGW_NOT_SENT where egw_xchg_sent() was
 * not called, else EGW_MAYBE_SENT) before this returns, and `conn` is freed. */
void egw_conn_lost(struct egw_conn *conn, const char *why);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
