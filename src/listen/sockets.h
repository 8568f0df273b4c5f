/* SPDX-License-Identifier: MIT */
/* Making the listening sockets. Main thread, before the workers exist. */
#ifndef LISTEN_SOCKETS_H
#define LISTEN_SOCKETS_H

#include "listen/listen.h"

#define LISTEN_BACKLOG 4096

/* Binds listener->conf: fills in fds, fd_count, port, name, local (and file). `count` TCP
 * sockets share the port by SO_REUSEPORT; a unix socket is one. -1 with the reason logged;
 * what was opened is closed by sockets_close() then too. */
int sockets_open(struct listener *listener, unsigned count) EGW_MUST_CHECK;
void sockets_close(struct listener *listener);

/* The unix half, in socket-unix.c. */
int sockets_open_unix(struct listener *listener) EGW_MUST_CHECK;
void sockets_remove_unix(struct listener *listener);

#endif
