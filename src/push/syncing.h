/* SPDX-License-Identifier: MIT */
/* The subscription "syncing": whether the network's nodes are being synchronised, told when that
 * changes. One question for all subscribers, whatever transport the nodes have. Owner's thread, except
 * syncing_changed(). */
#ifndef PUSH_SYNCING_H
#define PUSH_SYNCING_H

struct hub;
struct syncing;

struct syncing *syncing_new(struct hub *hub);
void syncing_stop(struct syncing *syncing);
void syncing_free(struct syncing *syncing);

/* Somebody wants to know, or nobody does any more. Any worker. */
void syncing_changed(struct hub *hub);

#endif
