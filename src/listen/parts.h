/* SPDX-License-Identifier: MIT */
/* The parts of listen/ as they see each other. Included by listen/ only.
 *
 *   acceptor.c  accept4 and caps -> visitor.c reads the first head (tls.c: behind TLS) ->
 *               gate.c decides
 *   linger.c    refusals, and closing such that the client can read them
 *   gate.c      pure checks of a request head: no sockets, fuzzed
 *   http.c      MHD daemon(s) of the worker: http_adopt()
 *   ws.c        lws context of the worker: ws_adopt()
 *   ipc.c       unix sockets: accepts by itself
 *   session.c   the part of a session common to all
 * */
#ifndef LISTEN_PARTS_H
#define LISTEN_PARTS_H

#include <sys/socket.h>
#include "listen/listen.h"
#include "listen/session.h"
#include "worker/worker.h"

/* What listen/ keeps on one worker. */
struct listen_worker {
  struct egw_worker *worker;
  struct listeners *listeners;
  struct door *door;              /* acceptors, and connections whose first head is awaited */
  struct linger_set *linger;      /* refused connections on their way out */
  struct http_server *http;
  struct ws_server *ws;
  struct ipc_server *ipc;
  bool draining, stopping;
  unsigned sessions;              /* open, admin ones not counted */
  void (*stopped)(struct egw_worker *worker);
  unsigned parts_open;            /* parts that have not reported listen_part_closed() */
};

/* A part has nothing left on the loop. */
void listen_part_closed(struct listen_worker *lw);

/* Who is on the other side of an accepted socket. */
struct peer {
  struct sockaddr_storage addr;
  socklen_t addr_len;
  char text[48];
  bool counted;                   /* holds a place in the caps, see peer_release() */
  bool has_uid;                   /* a unix socket's: */
  uint32_t uid;
};
/* Fills in the text from the address. */
void peer_describe(struct peer *peer);
/* Gives the place back, if it holds one. Unix peers count for the listener only. */
void peer_release(struct listener *listener, struct peer *peer);

/* --- the gate ----------------------------------------------------------------------- */

#define GATE_HEAD_MAX 16384       /* bytes of a request head */
#define GATE_HTTP_HEAD_MAX 8192   /* of one that goes to the HTTP server */
#define GATE_HEADERS_MAX 64

enum gate_kind { GATE_MORE, GATE_HTTP, GATE_WEBSOCKET, GATE_REFUSED };

struct gate_header {
  struct egw_slice name, value;
};

/* Fields that are not the gate's business, but the middleware's or the answer's. */
enum gate_field {
  FIELD_AUTHORIZATION,
  FIELD_API_KEY,
  FIELD_USER_AGENT,
  FIELD_CACHE,                    /* X-Ethrpc-Gw-Cache, X-Ethrpc-Gw-Explain: the answer is to */
  FIELD_EXPLAIN,                  /* have them, too */
  GATE_FIELDS
};

struct gate_head {
  struct egw_slice method, target, version;
  struct gate_header headers[GATE_HEADERS_MAX];
  size_t header_count;
  size_t length;                  /* bytes of the head, with its empty line */
  struct egw_slice host, origin, ws_key;
  struct egw_slice content_type, content_encoding; /* missing: no such header, or (type) two */
  struct egw_slice fields[GATE_FIELDS];            /* missing: no such header, or two */
  struct egw_slice path_key;      /* route_head(): of the target, or missing */
  uint64_t body_length;           /* announced by Content-Length, 0 without */
  bool chunked;                   /* the body comes in chunks: length not known */
  bool expects;                   /* waits for "100 Continue" */
  /* GATE_REFUSED: */
  int status;                     /* of the answer; the connection is closed after it */
  enum refusal refusal;
  const char *why;                /* constant text */
};

/* Judges the bytes received so far. GATE_MORE: the head is not complete (and not too long).
 * The rules are those of RFC 9112 read strictly, section 2.1-2.3 and 2.8 of the threat model
 * in docs/internals/threats.md: CRLF line ends, token names, one Host that is on the
 * listener's list, no NUL or obs-fold, Content-Length and Transfer-Encoding as RFC 9112 6
 * allows them (not both), Origin on the list if present, origin-form target (or absolute-form
 * of the same authority). Pure: any thread. */
enum gate_kind gate_check(const struct listener *listener, const char *bytes, size_t len,
                          struct gate_head *head);

/* The same rules on parsed headers, for the later requests of a connection that MHD has
 * parsed. */
bool gate_check_headers(const struct listener *listener, struct gate_head *head);

/* Host and Origin lists. */
bool gate_host_allowed(const struct listener *listener, struct egw_slice host);
bool gate_origin_allowed(const struct listener *listener, struct egw_slice origin);

/* --- HTTP, WebSocket, IPC ----------------------------------------------------------- */

int http_start(struct listen_worker *lw);
/* Takes the socket and the peer's place. The first request's bytes are still in the socket. */
void http_adopt(struct http_server *http, struct listener *listener, int fd,
                struct peer *peer);
void http_drain(struct http_server *http);
void http_stop(struct http_server *http);   /* ends in listen_part_closed() */

int ws_start(struct listen_worker *lw);
/* Takes the socket and the peer's place. `head` was judged GATE_WEBSOCKET; `rest` are bytes
 * that were read from the socket behind the head (usually none). `network` by the target's
 * path. */
void ws_adopt(struct ws_server *ws, struct listener *listener, int fd, struct peer *peer,
              struct network *network, const struct gate_head *head, struct egw_slice rest);
void ws_drain(struct ws_server *ws);
void ws_stop(struct ws_server *ws);

int ipc_start(struct listen_worker *lw);    /* accepts on every unix listener */
void ipc_drain(struct ipc_server *ipc);
void ipc_stop(struct ipc_server *ipc);

/* Room for one more connection of `listener` (and, `peer` given, of that address): counts it,
 * or false with the refusal counted. */
bool listen_admit(struct listen_worker *lw, struct listener *listener, struct peer *peer);

#endif
