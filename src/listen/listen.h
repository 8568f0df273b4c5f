/* SPDX-License-Identifier: MIT */
/* Listeners: from sockets to sessions.
 *
 * TCP: accept -> the gate reads and checks the first request head -> HTTP: libmicrohttpd gets
 * the socket (and each later request's head is checked again) | WebSocket: libwebsockets gets
 * the socket with a rebuilt handshake | refused: a short answer and a close. TLS is ended in
 * front of the gate (OpenSSL), so that one port serves HTTPS and WSS under the same checks;
 * the plain side goes on through a socket pair.
 * Unix sockets: IPC sessions, JSON values back to back.
 * The admin listener is an HTTP one whose requests go to admin/.
 *
 * listen_open() and listen_close() on the main thread; the rest on the worker. */
#ifndef LISTEN_LISTEN_H
#define LISTEN_LISTEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "conf/conf.h"

struct egw_worker;
struct gateway;

/* One configured listener; shared by all workers, constant once open except the counters. */
struct listener {
  const struct conf_listener *conf;
  bool admin;                     /* serves /metrics and the like instead of JSON-RPC */
  bool local;                     /* unix socket, or bound to a loopback address */
  int *fds;                       /* one a worker (SO_REUSEPORT); unix and admin: one in all */
  unsigned fd_count;
  uint16_t port;                  /* really bound */
  char name[128];                 /* for logs and `egw_client` */
  void *tls;                      /* SSL_CTX, or NULL */
  struct proxies *proxies;        /* trusted ones, or NULL: none */
  atomic_uint connections;        /* open now, all workers */
  struct client_counts *clients;  /* open connections by address (mutex inside) */
  struct egw_strings hosts;       /* complete allow-list: "name" (the bound port or none) or
                                     "name:port"; "*": any */
  struct socket_file {            /* unix: the file that was made, to remove only that one */
    uint64_t device, inode;       /* inode 0: none */
    uint64_t born_ns;             /* inodes are used again at once */
  } file;
};

struct listeners {
  struct listener *v;             /* the admin listener, if any, is the last */
  size_t n;
};

/* Binds everything. -1 with the reason logged: nothing stays bound. */
int listen_open(struct listeners *listeners, const struct conf *conf,
                unsigned workers) EGW_MUST_CHECK;

/* Closes the sockets and removes the unix sockets this process made. */
void listen_close(struct listeners *listeners);

/* Starts accepting on this worker: creates its MHD daemons, its lws context, its acceptors
 * (worker->listen). 0 or -1. */
int listen_worker_start(struct egw_worker *worker, struct listeners *listeners) EGW_MUST_CHECK;

/* Stops accepting; idle sessions are closed (HTTP keep-alive, IPC; WebSocket 1001 once nothing
 * is in flight), others after their last reply (HTTP: "Connection: close" on it). */
void listen_worker_drain(struct egw_worker *worker);

/* Open sessions of this worker, the admin ones not counted. */
unsigned listen_worker_sessions(const struct egw_worker *worker);

/* Cuts what is left, ends suspended requests, stops the daemons and starts the end of the lws
 * context, which needs more turns of the loop: done(worker) is called when all is gone. */
void listen_worker_stop(struct egw_worker *worker, void (*done)(struct egw_worker *worker));

#endif
