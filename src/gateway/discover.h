/* SPDX-License-Identifier: MIT */
/* Finding a node when none was named. */
#ifndef GATEWAY_DISCOVER_H
#define GATEWAY_DISCOVER_H

#include <stddef.h>

/* Writes into `url` what was found: a connectable /tmp/reth.ipc, else http://127.0.0.1:8545 if
 * something listens there, else the demo chain (a replay: URL of demo.io from $EGW_DEMO, the
 * data directory, or etc/ beside the program's source). Returns words for the user, or NULL
 * when there is nothing. Main thread, before the workers start: it may block for a moment. */
const char *discover_node(char *url, size_t cap);

#endif
