/* SPDX-License-Identifier: MIT */
/* The WebSocket listener's own structs, shared by ws.c (context, adopting, start, stop),
 * ws-session.c (one session: states, timers, operations), ws-recv.c (messages in) and
 * ws-send.c (frames out). RFC 6455; see parts.h for the outside.
 *
 * libwebsockets 4.1 as Debian 12 has it decides some of the shape:
 * - A close it is asked for (lws_close_reason() and -1 from a callback) is cut short on a
 *   libuv loop: builds with assertions close twice in a row. So the close frame is written
 *   here, and the client's own close frame, or a timer, ends the connection.
 * - Its timers run only after one of its sockets had an event. So timers are the worker's.
 * - What it can't send at once it copies and keeps. So at most WS_CHUNK bytes are given to it,
 *   and only when it has nothing left. */
#ifndef LISTEN_WS_H
#define LISTEN_WS_H

#include <libwebsockets.h>
#include <uv.h>
#include "base/lws-compat.h"
#include "listen/parts.h"
#include "listen/stream.h"

#define WS_READ 4096u          /* bytes read in one turn from one session */
#define WS_CHUNK 131072u       /* bytes given to lws at once: whole frames */
#define WS_ROUNDS 4u           /* chunks sent in one turn to one session */

struct ws_server {
  struct listen_worker *lw;
  struct lws_context *context; /* NULL: not made, or gone */
  struct lws_vhost *vhost;
  struct lws_own_log log;
  struct ws_session *adopting; /* lws is being given the socket of this one */
  struct list sessions;
  unsigned char *chunk;        /* LWS_PRE + WS_CHUNK bytes: frames on their way to lws */
  uv_prepare_t watch;          /* stopping: looks in each turn whether lws has left the loop */
  bool watching, draining, stopping;
  struct worker_job gone;      /* the last step of the stop */
};

enum ws_state {
  WS_HANDSHAKE,                /* the socket is with lws, which has not said established yet */
  WS_OPEN,
  WS_CLOSING,                  /* session_gone() was called; a close frame is to be sent */
  WS_CLOSE_SENT,               /* waiting for the client's */
  WS_DEAD                      /* the socket was shut down; waiting for lws to let go of it */
};

struct ws_session {
  struct session session;
  struct list node;
  struct ws_server *server;
  struct lws *wsi;             /* NULL: not (or no longer) with lws */
  struct peer peer;
  enum ws_state state;
  bool blocked;                /* reading is off: session_may_read() said no, or draining */
  bool begun;                  /* the message under way has had its first frame */
  bool ping_wanted;
  unsigned pending;            /* requests not yet answered */
  int code;                    /* to be closed with this code, from the job; 0: no */
  bool abrupt;                 /* `code` set: at once, not after what is queued */
  char reason[64];
  struct stream stream;
  struct worker_job job;

  bool in_message;
  bool refused;                /* the rest of the message is dropped */
  struct egw_buf *text;        /* of a message that came in pieces */
  size_t reserved;             /* of the budget, for `text` */

  uint64_t seen;               /* bytes of the message */
  uint64_t began, message_due; /* ms: its first bytes; when to look whether it grows; 0: no */

  struct wheel_timer timer;
  uint64_t heard, pinged;      /* ms: last bytes from the client, last ping to it */
  struct stall stall;
  uint64_t end_due;            /* ms: handshake, close; 0: none */
};

/* --- ws-session.c --------------------------------------------------------------------- */

/* What `facts` tell is copied. NULL: no memory. */
struct ws_session *ws_session_new(struct ws_server *server, struct listener *listener,
                                  struct peer *peer, struct network *network,
                                  const struct client_facts *facts) EGW_MUST_CHECK;
void ws_session_established(struct ws_session *s);
/* The client has sent its close frame, and lws will answer it. */
void ws_session_left(struct ws_session *s);
/* lws has closed it: nobody may use the session after this, but the memory lives until
 * ws_session_free(). */
void ws_session_closed(struct ws_session *s);
void ws_session_free(struct ws_session *s);
void ws_session_drain(struct ws_session *s);

/* Asks for the end, from the job: after what is queued, or `abrupt`. The first one counts. */
void ws_session_close(struct ws_session *s, int code, const char *reason, bool abrupt);

/* Cuts the connection without a close frame. */
void ws_session_kill(struct ws_session *s);

void ws_session_run_soon(struct ws_session *s);
void ws_session_arm(struct ws_session *s);
void ws_session_read(struct ws_session *s, bool on);

/* --- ws-recv.c ------------------------------------------------------------------------ */

/* A piece of a message. */
void ws_receive(struct ws_session *s, const char *bytes, size_t len);
void ws_receive_drop(struct ws_session *s);

/* Whether the message under way has come too slowly until `now`. */
bool ws_receive_late(struct ws_session *s, uint64_t now);

/* --- ws-send.c ------------------------------------------------------------------------ */

/* Sends what can be sent. `writeable`: lws has just said that the socket takes something. -1:
 * the connection is broken. */
int ws_flush(struct ws_session *s, bool writeable) EGW_MUST_CHECK;

/* Puts whole frames of the queued messages into `chunk`; bytes. Pure as to sockets. */
size_t ws_fill(struct ws_session *s, unsigned char *chunk, size_t size);

#endif
