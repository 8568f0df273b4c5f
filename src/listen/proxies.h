/* SPDX-License-Identifier: MIT */
/* Proxies in front of a listener that are trusted to say whom they forward for, by the header
 * Forwarded (RFC 7239) or X-Forwarded-For. Any thread. */
#ifndef LISTEN_PROXIES_H
#define LISTEN_PROXIES_H

#include "base/net.h"
#include "listen/session.h"

struct gate_head;
struct proxies;

/* Of the configured addresses and networks, checked before. NULL when memory is short. */
struct proxies *proxies_new(const struct egw_strings *list) EGW_MUST_CHECK;
void proxies_free(struct proxies *proxies); /* NULL is allowed */

/* What a request with this head tells if it came from `peer`: nothing unless that is one of the
 * proxies and sent such a header. Then facts->forwarded is set, and facts->peer to the client's
 * address if there is one to be believed. That is, from the right, the first address which is
 * no proxy's; what stands left of it is the client's own word. When all are proxies it is the
 * leftmost. An element that is no address (unknown, hidden, malformed) ends the walk without
 * one. A proxy sets one of the headers and passes the other one on from anybody: where both are
 * there they must agree. `proxies` may be NULL. */
void proxies_ask(const struct proxies *proxies, const struct sockaddr_storage *peer,
                 const struct gate_head *head, struct client_facts *facts);

#endif
