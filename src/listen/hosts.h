/* SPDX-License-Identifier: MIT */
/* The complete list of Host names of a listener, made once when it is bound. */
#ifndef LISTEN_HOSTS_H
#define LISTEN_HOSTS_H

#include "listen/listen.h"

/* Fills in listener->hosts: the loopback names, the bound address, the configured hosts; bound
 * to any address and nothing configured: the addresses of the machine's interfaces. 0, or -1
 * (no memory, reason logged). */
int hosts_make(struct listener *listener) EGW_MUST_CHECK;
void hosts_free(struct listener *listener);

#endif
