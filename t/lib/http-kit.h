/* SPDX-License-Identifier: MIT */
/* A worker with the real listeners, and a stand-in for all that is behind them: what a
 * request's text says is what happens to it. With a small blocking client. For tests of
 * listen/.
 *
 *   "echo ..."   answered with its own text, later in the same turn
 *   "shut"       the session is closed
 *   "gate"       as "echo", but the worker stands still before until kit_gate is posted
 *   "slow MS"    answered after that time
 *   "hold"       never answered
 *   "none"       nothing to say
 *   "big N"      one piece of N bytes
 *   "many N"     N pieces of "piece;", whole
 *   "stream N"   N pieces of 10,000 bytes, each when the one before has gone
 *   "drip N"     N pieces of 5 bytes, one each 5 ms
 *   "break"      the first piece of a stream, which is then aborted
 *   "late"       a stream whose first piece comes after 150 ms
 * */
#ifndef T_LIB_HTTP_KIT_H
#define T_LIB_HTTP_KIT_H

#include <pthread.h>
#include <semaphore.h>
#include "gateway/gateway.h"

struct kit {
  struct gateway gateway;
  struct egw_worker worker;
  struct conf conf;
  struct conf_listener listeners[2];
  pthread_t thread;
  bool stopped;
};

/* Counters of the stand-in, over all kits. */
extern sem_t kit_gate;
extern atomic_int kit_started, kit_cancelled, kit_websockets, kit_gated;

/* Defaults in kit->conf: one listener on a free port of 127.0.0.1. */
void kit_init(struct kit *kit);
/* Opens and starts; the test is over when that fails. */
void kit_start(struct kit *kit);
/* Changes the limits of the first listener, on the worker, which reads them. */
void kit_limit(struct kit *kit, const struct conf_limits *limits);
uint16_t kit_port(const struct kit *kit);
void kit_drain(struct kit *kit);
/* Sessions, asked on the worker. */
unsigned kit_sessions(struct kit *kit);
int64_t kit_refused(const struct kit *kit, enum refusal why);
void kit_stop(struct kit *kit);

/* Waits until `counter` is at least `value`, at most 5 s. */
bool kit_wait(const atomic_int *counter, int value);

/* --- the client ----------------------------------------------------------------------- */

#define KIT_WAIT 5000  /* ms that anything may take */

struct reply {
  int status;
  char head[4096];
  char *body;          /* NUL behind it; freed by the next read into this struct */
  size_t len;
  bool chunked, whole; /* whole: the body came to its end */
};

int kit_connect(uint16_t port);
void kit_send(int fd, const char *text);
void kit_send_bytes(int fd, const void *bytes, size_t len);

/* Reads one response; `head` is the answer to a HEAD. status 0: the connection ended or time
 * ran out first. */
void kit_read(int fd, struct reply *reply, bool head);
void reply_free(struct reply *reply);
/* The value of a header, in static memory; NULL: not there. */
const char *reply_header(const struct reply *reply, const char *name);

/* Whether the other side has closed and sent nothing more. */
bool kit_closed(int fd);

/* Sends a POST of `body` with further header lines ("X: y\r\n"). */
void kit_post(int fd, const char *lines, const char *body);

#endif
