/* SPDX-License-Identifier: MIT */
/* Addresses of clients, and networks of them. */
#ifndef RATELIMIT_ADDRESS_H
#define RATELIMIT_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum address_family { ADDRESS_NONE, ADDRESS_V4, ADDRESS_V6, ADDRESS_NAME };

struct address {
  enum address_family family;
  unsigned char bytes[16];       /* the first 4, or all */
};

struct address_net {
  struct address base;
  unsigned bits;                 /* that count */
};

/* Reads an address; IPv4 written as IPv6 (::ffff:1.2.3.4) becomes IPv4. Anything else gives
 * ADDRESS_NONE. */
void address_parse(const char *text, struct address *address);

/* Reads "ADDRESS" or "ADDRESS/BITS". 0, or -1 when it is neither, or when the address has bits
 * set behind the network's. */
int address_parse_net(const char *text, struct address_net *net);

bool address_in_net(const struct address *address, const struct address_net *net);

/* Who is counted as one client: an IPv4 address; a /64 of IPv6, since that is what one
 * customer has at least; else the text itself. */
struct client_key {
  uint64_t value;
  uint32_t kind;                 /* enum address_family */
};
struct client_key address_key(const struct address *address, const char *text);

/* The same for a client that has a name. */
struct client_key address_key_of_name(const char *name);

#endif
