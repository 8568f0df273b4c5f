/* SPDX-License-Identifier: MIT */
/* IP addresses and networks of them. IPv4 is kept the way IPv6 writes it (::ffff:a.b.c.d), so
 * that both spellings of one address are equal. Any thread. */
#ifndef BASE_NET_H
#define BASE_NET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <ethrpc-gw/buf.h>

#define NET_TEXT 46u /* bytes of an address as text, with its NUL */

struct net_address {
  unsigned char bytes[16];
};

struct net_block {
  struct net_address base;
  unsigned bits;               /* that count: 96 to 128 for IPv4 */
};

/* Reads an address as text. 0, or -1: it is none. */
int net_read(struct egw_slice text, struct net_address *address) EGW_MUST_CHECK;

/* Reads "ADDRESS" or "ADDRESS/BITS". 0, or -1: it is neither, or the address has bits set
 * behind the network's. */
int net_read_block(const char *text, struct net_block *block) EGW_MUST_CHECK;

/* The address of a socket's peer. false: not an IP one. */
bool net_of_socket(const struct sockaddr_storage *peer, struct net_address *address);

bool net_in_block(const struct net_address *address, const struct net_block *block);
bool net_same(const struct net_address *a, const struct net_address *b);

void net_print(const struct net_address *address, char text[NET_TEXT]);

#endif
