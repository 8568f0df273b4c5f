/* SPDX-License-Identifier: MIT */
/* Addresses of clients. */
#include "address.h"

#include <arpa/inet.h>
#include <string.h>
#include <ethrpc-gw/eth.h>

void
address_parse(const char *text, struct address *address)
{
  static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

  *address = (struct address){ .family = ADDRESS_NONE };
  if (strchr(text, ':') == NULL) {
    if (inet_pton(AF_INET, text, address->bytes) == 1)
      address->family = ADDRESS_V4;
    return;
  }
  if (inet_pton(AF_INET6, text, address->bytes) != 1)
    return;
  address->family = ADDRESS_V6;
  if (memcmp(address->bytes, mapped, sizeof mapped) == 0) {
    address->family = ADDRESS_V4;
    memmove(address->bytes, address->bytes + sizeof mapped, 4);
    memset(address->bytes + 4, 0, sizeof address->bytes - 4);
  }
}

static unsigned
width_of(const struct address *address)
{
  return address->family == ADDRESS_V4 ? 32 : 128;
}

/* A whole number up to 128, or -1. */
static int
bits_of(const char *text)
{
  int bits = 0;

  if (*text == '\0')
    return -1;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || bits > 12)
      return -1;
    bits = bits * 10 + (*text - '0');
  }
  return bits <= 128 ? bits : -1;
}

static bool
bit_is_set(const unsigned char *bytes, unsigned i)
{
  return (bytes[i / 8] >> (7 - i % 8) & 1) != 0;
}

int
address_parse_net(const char *text, struct address_net *net)
{
  char alone[INET6_ADDRSTRLEN];
  size_t len = strcspn(text, "/");
  int bits;

  if (len >= sizeof alone)
    return -1;
  memcpy(alone, text, len);
  alone[len] = '\0';
  address_parse(alone, &net->base);
  if (net->base.family == ADDRESS_NONE)
    return -1;
  net->bits = width_of(&net->base);
  if (text[len] == '\0')
    return 0;
  bits = bits_of(text + len + 1);
  if (strchr(alone, ':') != NULL && net->base.family == ADDRESS_V4)
    bits -= 96; /* ::ffff:10.0.0.0/104 is 10.0.0.0/8 */
  if (bits < 0 || bits > (int)net->bits)
    return -1;
  for (unsigned i = (unsigned)bits; i < net->bits; i++)
    if (bit_is_set(net->base.bytes, i))
      return -1;
  net->bits = (unsigned)bits;
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
