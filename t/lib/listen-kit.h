/* SPDX-License-Identifier: MIT */
/* A worker with a WebSocket and an IPC listener and nothing behind them: requests are answered
 * by this kit, which stands in for request_start() and request_cancel_all() (link with
 * --wrap). The worker runs on a thread of its own; the test's thread is the client.
 *
 * What the kit does is in the request's text: "later" (when kit_release() says so), "none" (no
 * answer), "big N" (a result of N bytes), "stream N" (the same in pieces), "cut N" (a stream
 * that breaks off after N bytes); else the text itself is the result. */
#ifndef T_LIB_LISTEN_KIT_H
#define T_LIB_LISTEN_KIT_H

#include <poll.h>
#include <stdatomic.h>
#include "chain/call.h"
#include "gateway/gateway.h"
#include "listen/limits.h"
#include "listen/parts.h"

enum { KIT_WS, KIT_IPC };

struct kit {
  struct gateway gateway;
  struct conf_listener conf[2];
  struct listener listeners[2];
  struct listeners all;
  struct network network;
  struct egw_worker worker;
  pthread_t thread;
  int accept_fd;
  char dir[32], path[64];
  /* the worker's: */
  struct list held;
  /* read by both: */
  atomic_int requests, cancelled;
};

extern struct kit kit;

/* The limits of the next kit_start(), to be changed. */
struct conf_limits *kit_limits(void);
void kit_uids(const char *const *v, size_t n);
void kit_start(void);
/* Stops with whatever is open. NULL, or what is left over that should not be. `clients`:
 * sockets of the test's own that are still open. */
const char *kit_stop(unsigned clients);
unsigned kit_descriptors(void);

/* Runs fn on the worker and waits for it. */
void kit_call(void (*fn)(void *arg), void *arg);
void kit_release(void);
void kit_push(size_t bytes);        /* an event to each session with a "later" request */
void kit_drain(void);
unsigned kit_sessions(void);
int64_t kit_refused(enum refusal refusal);

/* Clients. -1: time-out. */
#define KIT_WAIT 5000
int kit_connect(int which);          /* WebSocket: with its handshake done */
int kit_connect_with(const char *rest, size_t len); /* with bytes behind the handshake */
bool kit_eventually(bool (*fn)(void *arg), void *arg);
void kit_send(int fd, const void *bytes, size_t len);
long kit_read(int fd, void *bytes, size_t len); /* 0: the end, -1: time-out, -2: an error */
bool kit_read_all(int fd, void *bytes, size_t len);
bool kit_read_line(int fd, char *line, size_t size);  /* without its newline */

/* WebSocket frames (RFC 6455). */
struct kit_frame {
  unsigned op;
  bool fin;
  size_t len;
  char *payload;                     /* with a NUL behind; the kit's until the next read */
};
void kit_frame_send(int fd, unsigned op, bool fin, const void *bytes, size_t len);
bool kit_frame_read(int fd, struct kit_frame *frame);
/* A whole message; control frames in between are counted in kit_pongs, pings answered. */
bool kit_message_read(int fd, struct kit_frame *message);
extern unsigned kit_pongs;

#endif
