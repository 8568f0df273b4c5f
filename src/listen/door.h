/* SPDX-License-Identifier: MIT */
/* The door: accepted connections of one worker up to the decision of the gate.
 *
 *   acceptor.c  accept4, caps, descriptors running out
 *   visitor.c   a connection whose first head is awaited, without TLS
 *   tls.c       the same behind TLS */
#ifndef LISTEN_DOOR_H
#define LISTEN_DOOR_H

#include "listen/linger.h"
#include "listen/parts.h"

/* One listening socket of this worker. */
struct acceptor {
  struct door *door;
  struct listener *listener;
  int fd;
  uv_poll_t poll;
  struct wheel_timer pause;    /* armed: accepting rests */
  bool open;
};

struct door {
  struct listen_worker *lw;
  struct acceptor *acceptors;
  unsigned acceptor_count;
  struct list visitors;
  struct tls_door *tls;
  unsigned handles;            /* on the loop, the tls door counting as one */
  int reserve;                 /* a descriptor to give up when there are no others; -1: none */
  int fd_high;                 /* connections with descriptors from here on are refused */
  bool stopping;
  char head[GATE_HEAD_MAX];    /* where heads are looked at */
};

/* Makes lw->door and starts accepting. 0, or -1; if lw->door is set then, it is to be
 * stopped. */
int door_start(struct listen_worker *lw) EGW_MUST_CHECK;
void door_drain(struct door *door);
void door_stop(struct door *door); /* ends in listen_part_closed() */

/* Connections that still have bytes to bring to their client after their session ended. */
unsigned door_pending(const struct door *door);

/* A handle of the door has left the loop. */
void door_left(struct door *door);

/* The network a WebSocket handshake is for; NULL (and head->status 404) when there is none. */
struct network *door_network(struct door *door, const struct listener *listener,
                             struct gate_head *head);

/* What the gate's refusal reads like. */
struct refusal_text door_refusal(const struct listener *listener,
                                 const struct gate_head *head);

/* --- visitor.c ------------------------------------------------------------------------ */

/* Takes an accepted socket and the peer's place. */
void visitor_accept(struct door *door, struct listener *listener, int fd, struct peer *peer);

/* Ends all of them; `waiting` only: those that have not sent anything yet. */
void visitors_end(struct door *door, bool waiting);

#endif
