/* SPDX-License-Identifier: MIT */
/* The eth_newFilter family, served from the hub's events: filters belong to the network, not to a
 * connection or a node, so any client transport may ask and no loss of a node ends one. They live
 * on the owner of the hub; calls of other workers go there and back. */
#ifndef PUSH_FILTERS_H
#define PUSH_FILTERS_H

#include <stdbool.h>

struct egw_call;
struct filters;
struct hub;
struct hub_event;

/* The owner's. */
struct filters *filters_new(struct hub *hub);
void filters_stop(struct filters *filters);
void filters_free(struct filters *filters);
void filters_event(struct hub *hub, const struct hub_event *event);

/* At the bottom of the chain, on the call's worker: takes the call if it is one of the family. false: it
 * is not, or goes on to a node (eth_getFilterLogs, as an eth_getLogs). */
bool filters_take(struct egw_call *call);

#endif
