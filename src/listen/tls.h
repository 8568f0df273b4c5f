/* SPDX-License-Identifier: MIT */
/* TLS in front of the gate: the handshake, the first head from the decrypted bytes, then a
 * pump between the client and a socket pair, whose other end the HTTP or WebSocket server
 * gets. */
#ifndef LISTEN_TLS_H
#define LISTEN_TLS_H

#include "listen/parts.h"

/* An SSL_CTX for certificate chain and key (PEM files), TLS 1.2 and later. NULL with the
 * reason logged. Main thread. */
void *tls_context_new(const char *name, const char *certificate,
                      const char *key) EGW_MUST_CHECK;
void tls_context_free(void *context);

struct tls_door;

/* This worker's TLS connections. NULL when memory is short. */
struct tls_door *tls_door_new(struct listen_worker *lw) EGW_MUST_CHECK;

/* Takes an accepted socket and the peer's place. */
void tls_accept(struct tls_door *door, struct listener *listener, int fd, struct peer *peer);

/* Connections that still have bytes to bring to their client after their session ended. */
unsigned tls_door_flushing(const struct tls_door *door);

/* Ends those that have not asked for anything. */
void tls_door_drain(struct tls_door *door);

/* Cuts all; the door is freed when the last one has left the loop, then `gone` is called. */
void tls_door_stop(struct tls_door *door, void (*gone)(struct listen_worker *lw));

#endif
