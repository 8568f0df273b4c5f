/* SPDX-License-Identifier: MIT */
/* Addresses of clients. */
#include "address.h"

#include <string.h>
#include <ethrpc-gw/eth.h>
#include "base/net.h"

static void
take(const struct net_address *from, struct address *address)
{
  static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

  *address = (struct address){ .family = ADDRESS_V6 };
  if (memcmp(from->bytes, mapped, sizeof mapped) == 0) {
    address->family = ADDRESS_V4;
    memcpy(address->bytes, from->bytes + sizeof mapped, 4);
  } else {
    memcpy(address->bytes, from->bytes, sizeof address->bytes);
  }
}

void
address_parse(const char *text, struct address *address)
{
  struct net_address read;

  *address = (struct address){ .family = ADDRESS_NONE };
  if (net_read((struct egw_slice){ text, strlen(text) }, &read) == 0)
    take(&read, address);
}

int
address_parse_net(const char *text, struct address_net *net)
{
  struct net_block read;

  if (net_read_block(text, &read) < 0)
    return -1;
  take(&read.base, &net->base);
  net->bits = read.bits;
  if (net->base.family == ADDRESS_V4) {
    if (read.bits < 96) /* wider than all of IPv4 */
      return -1;
    net->bits -= 96;
  }
  return 0;
}

bool
address_in_net(const struct address *address, const struct address_net *net)
{
  unsigned whole = net->bits / 8, rest = net->bits % 8;

  if (address->family != net->base.family ||
      memcmp(address->bytes, net->base.bytes, whole) != 0)
    return false;
  return rest == 0 || (address->bytes[whole] ^ net->base.bytes[whole]) >> (8 - rest) == 0;
}

/* Clients may have a say in such texts (the subject of a token): none can be made that falls
 * together with another one's. */
static uint64_t
hash_of(const char *text)
{
  unsigned char hash[32];
  uint64_t value = 0;

  egw_keccak256((struct egw_slice){ text, strlen(text) }, hash);
  for (size_t i = 0; i < sizeof value; i++)
    value = value << 8 | hash[i];
  return value;
}

struct client_key
address_key(const struct address *address, const char *text)
{
  struct client_key key = { .kind = (uint32_t)address->family };
  size_t len = address->family == ADDRESS_V4 ? 4 : 8;

  if (address->family == ADDRESS_NONE) {
    key.value = hash_of(text);
    return key;
  }
  for (size_t i = 0; i < len; i++)
    key.value = key.value << 8 | address->bytes[i];
  return key;
}

struct client_key
address_key_of_name(const char *name)
{
  return (struct client_key){ .value = hash_of(name), .kind = ADDRESS_NAME };
}
