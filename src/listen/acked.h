/* SPDX-License-Identifier: MIT */
/* How much of what was sent on a TCP socket the other side has taken. */
#ifndef LISTEN_ACKED_H
#define LISTEN_ACKED_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes acknowledged since the connection was made; false: not a TCP socket, or an old
 * kernel. */
bool acked_bytes(int fd, uint64_t *bytes);

#endif
