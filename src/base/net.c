/* SPDX-License-Identifier: MIT */
/* See net.h. */
#include "base/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static bool
is_v4(const struct net_address *address)
{
  return memcmp(address->bytes, mapped, sizeof mapped) == 0;
}

static void
from_v4(struct net_address *address, const void *four)
{
  memcpy(address->bytes, mapped, sizeof mapped);
  memcpy(address->bytes + sizeof mapped, four, 4);
}

int
net_read(struct egw_slice text, struct net_address *address)
{
  char copy[NET_TEXT];
  unsigned char four[4];

  if (text.len == 0 || text.len >= sizeof copy || memchr(text.ptr, '\0', text.len) != NULL)
    return -1;
  memcpy(copy, text.ptr, text.len);
  copy[text.len] = '\0';
  if (inet_pton(AF_INET, copy, four) == 1) {
    from_v4(address, four);
    return 0;
  }
  return inet_pton(AF_INET6, copy, address->bytes) == 1 ? 0 : -1;
}

/* A whole number up to 128, or -1. */
static int
read_bits(const char *text)
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

int
net_read_block(const char *text, struct net_block *block)
{
  size_t len = strcspn(text, "/");
  bool four = memchr(text, ':', len) == NULL;
  int bits = 128;

  if (net_read((struct egw_slice){ text, len }, &block->base) != 0)
    return -1;
  if (text[len] != '\0') {
    bits = read_bits(text + len + 1);
    if (bits < 0 || (four && bits > 32))
      return -1;
    bits += four ? 96 : 0;
  }
  for (unsigned i = (unsigned)bits; i < 128; i++)
    if ((block->base.bytes[i / 8] >> (7 - i % 8) & 1) != 0)
      return -1;
  block->bits = (unsigned)bits;
  return 0;
}

bool
net_of_socket(const struct sockaddr_storage *peer, struct net_address *address)
{
  if (peer->ss_family == AF_INET) {
    from_v4(address, &((const struct sockaddr_in *)(const void *)peer)->sin_addr);
    return true;
  }
  if (peer->ss_family != AF_INET6)
    return false;
  memcpy(address->bytes, &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr,
         sizeof address->bytes);
  return true;
}

/* "::/0" is all of IPv6 and nothing of IPv4. */
bool
net_in_block(const struct net_address *address, const struct net_block *block)
{
  unsigned whole = block->bits / 8, rest = block->bits % 8;

  if ((block->bits < 96 && is_v4(address)) ||
      memcmp(address->bytes, block->base.bytes, whole) != 0)
    return false;
  return rest == 0 || (address->bytes[whole] ^ block->base.bytes[whole]) >> (8 - rest) == 0;
}

bool
net_same(const struct net_address *a, const struct net_address *b)
{
  return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void
net_print(const struct net_address *address, char text[NET_TEXT])
{
  const char *done = is_v4(address)
                         ? inet_ntop(AF_INET, address->bytes + sizeof mapped, text, NET_TEXT)
                         : inet_ntop(AF_INET6, address->bytes, text, NET_TEXT);

  if (done == NULL)
    text[0] = '\0';
}
