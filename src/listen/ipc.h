/* SPDX-License-Identifier: MIT */
/* The IPC listener's own structs, shared by ipc.c (doors: accepting, start, stop) and
 * ipc-session.c (one connection). See parts.h for the outside. */
#ifndef LISTEN_IPC_H
#define LISTEN_IPC_H

#include <uv.h>
#include "listen/ipc-frame.h"
#include "listen/parts.h"
#include "listen/stream.h"

#define IPC_READ 65536u       /* bytes read in one turn from one session */
#define IPC_WRITE (1u << 20)  /* bytes written in one turn to one session */

/* A listening socket as one worker polls it. */
struct ipc_door {
  struct list node;
  struct ipc_server *server;
  struct listener *listener;
  uv_poll_t poll;
  struct wheel_timer pause;   /* out of descriptors: not polled until it fires */
  uid_t *uids;                /* allowed peers; NULL: any */
  size_t uid_count;
};

struct ipc_server {
  struct listen_worker *lw;
  struct list doors;
  struct list sessions;
  unsigned handles;           /* libuv's, not yet closed */
  bool stopping;
  struct worker_job gone;     /* the last step of the stop */
  char read_buffer[IPC_READ];
};

enum ipc_state {
  IPC_OPEN,
  IPC_ENDING,                 /* reads no more; closed when all is answered and sent */
  IPC_CLOSED                  /* waits for libuv to let go of the handle */
};

struct ipc_session {
  struct session session;
  struct list node;
  struct ipc_server *server;
  struct peer peer;
  enum ipc_state state;
  uv_poll_t poll;
  int fd;
  int events;                 /* polled now */
  bool blocked;               /* session_may_read() said no */
  bool resumed;               /* blocked no more: what was kept is to be looked at */
  bool choked;                /* the socket took no more */
  bool cut;                   /* to be closed at once, from the job */
  unsigned pending;           /* requests not yet answered */
  struct frame frame;
  struct stream stream;
  struct worker_job job;
  struct wheel_timer timer;
  uint64_t value_due;         /* ms: an unfinished value must be whole by then; 0: none */
  struct stall stall;
};

/* Takes the socket and the peer's place. */
void ipc_session_open(struct ipc_server *server, struct listener *listener, int fd,
                      const struct peer *peer);

/* No further requests; ends when what is in flight is answered. */
void ipc_session_drain(struct ipc_session *s);

/* At once. */
void ipc_session_cut(struct ipc_session *s);

/* A handle of the server was closed. */
void ipc_handle_gone(struct ipc_server *server);

#endif
