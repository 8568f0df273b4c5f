/* SPDX-License-Identifier: MIT */
/* A node for tests of multiplexed transports: JSON-RPC on a unix socket (a line a request) or
 * as a WebSocket server on a port of 127.0.0.1, with TLS where a certificate is given. Each
 * connection has a thread. What it does is told by the requests' methods:
 *
 *   echo            the result is the params
 *   late            answered by the next `release` on the connection, in reverse order
 *   release         answers what is late, then itself
 *   big [n, m]      a result of n bytes; m: bytes of a write (unix) or frame (ws), 0: one
 *   dribble         the answer in writes of one byte
 *   push [n]        n messages without an id, then the answer
 *   noise           bytes that are not JSON (ws: as a message), then the answer
 *   empty           ws: an empty message, then the answer
 *   drop            the connection is closed without an answer
 *   mute            nothing is answered
 *   freeze          from now on nothing is read on this connection, nor answered
 *   early           answers the id after this one too
 *
 * Members of `struct node` may be read while it runs (they are atomic). */
#ifndef T_LIB_TEST_NODE_H
#define T_LIB_TEST_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum node_mode {
  NODE_SERVE,
  NODE_RESET,     /* accepts and closes at once, with a reset where there is one */
  NODE_SILENT,    /* accepts, then reads and says nothing */
  NODE_REDIRECT,  /* ws: answers the handshake with 302 to node->elsewhere */
  NODE_REFUSE     /* ws: answers the handshake with 403 */
};

struct node {
  atomic_int mode;            /* enum node_mode, for connections to come */
  atomic_uint accepted;       /* connections ever */
  atomic_uint live;           /* connections now */
  atomic_uint established;    /* ws: handshakes answered with 101; unix: as accepted */
  atomic_uint requests;       /* messages read */
  atomic_uint pings;          /* ws */
  atomic_uint closes;         /* ws: close frames read */
  unsigned port;              /* ws */
  char elsewhere[128];        /* NODE_REDIRECT: the Location */
  char head[4096];            /* ws: the last handshake's request head */
  /* inside: */
  int listener;
  char path[108];
  void *tls;                  /* SSL_CTX */
  pthread_t thread;
  pthread_mutex_t lock;       /* of peers and head */
  struct node_peer *peers;
  atomic_bool stopping;
};

/* path: a unix socket; NULL: WebSocket on 127.0.0.1, on `port` or one of the kernel's choice
 * when it is 0; tls: an SSL_CTX with a certificate, or NULL. NULL: it could not be made. */
struct node *node_new(const char *path, unsigned port, void *tls);

/* Ends it and all its connections; the socket is gone when it returns. */
void node_free(struct node *node);

/* Closes all connections there are. */
void node_kill(struct node *node);

/* A certificate for `names` (as of the extension subjectAltName: "DNS:localhost,IP:127.0.0.1")
 * valid from `from_days` to `to_days` from now, signed by itself: an SSL_CTX for node_new().
 * Written to the file `pem` as well. */
void *node_tls(const char *names, int from_days, int to_days, const char *pem);
void node_tls_free(void *tls);

#endif
