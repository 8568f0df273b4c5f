/* SPDX-License-Identifier: MIT */
/* Pending transactions: the nodes' own streams, merged, each transaction once. Owner's thread, except
 * pending_changed(). */
#ifndef PUSH_PENDING_H
#define PUSH_PENDING_H

#include <stdbool.h>

struct hub;
struct network;
struct pending;

struct pending *pending_new(struct hub *hub);
void pending_stop(struct pending *pending);
void pending_free(struct pending *pending);

/* Whether any node pushes: only then there are full transactions. Any thread. */
bool pending_any_pushes(const struct network *network);

/* Somebody wants pending transactions, or nobody does any more. Any worker. */
void pending_changed(struct hub *hub);

#endif
