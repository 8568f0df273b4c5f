/* SPDX-License-Identifier: MIT */
/* From the path of a request to its network and, on listeners that take them there, the
 * client's key. */
#ifndef LISTEN_ROUTE_H
#define LISTEN_ROUTE_H

#include <ethrpc-gw/buf.h>

struct gate_head;
struct gateway;
struct listener;
struct network;

/* The network of a path: "/", "/NETWORK" and, with the listener's key_in_path, "/KEY" and
 * "/NETWORK/KEY". A key is one segment of 1 to 256 letters, digits and ".", "_", "~", "-" that
 * is no network's name; it is pointed to in `path` (missing: none). NULL: no such network. */
struct network *route_path(struct gateway *gateway, const struct listener *listener,
                           struct egw_slice path, struct egw_slice *key);

/* The same for the target of a head; the key goes to head->path_key. */
struct network *route_head(struct gateway *gateway, const struct listener *listener,
                           struct gate_head *head);

#endif
