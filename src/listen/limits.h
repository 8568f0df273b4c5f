/* SPDX-License-Identifier: MIT */
/* Open connections by client address: IPv4 by the whole address, IPv6 by its /64, since one
 * client has that many. Any thread. */
#ifndef LISTEN_LIMITS_H
#define LISTEN_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <ethrpc-gw/buf.h>

struct client_counts;

/* NULL when memory is short. */
struct client_counts *client_counts_new(void) EGW_MUST_CHECK;
void client_counts_free(struct client_counts *counts);

/* One more connection of `addr`, unless it has `max` already (0: no limit) or memory is short.
 * Addresses that are not IP ones are always let in and not counted. */
bool client_counts_take(struct client_counts *counts, const struct sockaddr_storage *addr,
                        uint64_t max);
void client_counts_give(struct client_counts *counts, const struct sockaddr_storage *addr);

/* Addresses with at least one connection. */
size_t client_counts_size(struct client_counts *counts);

#endif
