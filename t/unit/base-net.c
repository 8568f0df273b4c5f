/* SPDX-License-Identifier: MIT */
/* IP addresses and networks. */
#include "base/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include "../lib/tap.h"

static bool
read_text(const char *text, struct net_address *address)
{
  return net_read((struct egw_slice){ text, strlen(text) }, address) == 0;
}

static void
test_addresses(void)
{
  static const char *const good[][2] = {
    { "1.2.3.4", "1.2.3.4" },     { "::1", "::1" },          { "::ffff:1.2.3.4", "1.2.3.4" },
    { "::ffff:102:304", "1.2.3.4" }, { "2001:DB8:0:0::1", "2001:db8::1" },
    { "::", "::" },               { "0.0.0.0", "0.0.0.0" },
  };
  static const char *const bad[] = {
    "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4:5",
    "[::1]", "::1%lo", "::g", ":::", "localhost",
    "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
  };
  struct net_address address;
  char text[NET_TEXT];

  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    if (!ok(read_text(good[i][0], &address), "\"%s\"", good[i][0]))
      continue;
    net_print(&address, text);
    ok(strcmp(text, good[i][1]) == 0, "is %s", text);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ok(!read_text(bad[i], &address), "not \"%s\"", bad[i]);
  ok(net_read((struct egw_slice){ "::1\0", 4 }, &address) != 0, "no NUL");
  ok(net_read((struct egw_slice){ NULL, 0 }, &address) != 0, "nothing");
}

static void
test_blocks(void)
{
  static const struct {
    const char *block, *address;
    bool in;
  } rows[] = {
    { "10.0.0.0/8", "10.255.0.1", true },       { "10.0.0.0/8", "11.0.0.1", false },
    { "10.1.2.3", "10.1.2.3", true },           { "10.1.2.3", "10.1.2.2", false },
    { "10.1.2.0/23", "10.1.3.255", true },      { "10.1.2.0/23", "10.1.4.0", false },
    { "0.0.0.0/0", "8.8.8.8", true },           { "0.0.0.0/0", "2001:db8::1", false },
    { "::/0", "2001:db8::1", true },            { "::/0", "8.8.8.8", false },
    { "2001:db8::/33", "2001:db8:7fff::1", true }, { "2001:db8::/33", "2001:db8:8000::1", false },
    { "::1", "::1", true },                     { "::1", "::2", false },
    { "::ffff:10.0.0.0/104", "10.9.9.9", true }, { "10.0.0.0/8", "::ffff:10.9.9.9", true },
  };
  static const char *const bad[] = { "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.1/8",
                                     "10.0.0.0/8x", "10.0.0.0/-1", "10.0.0.0/08/1", "::/129",
                                     "::1/127", "::/", "unix", "10.0.0.0 /8", "10.0.0.0/1000" };
  struct net_block block;
  struct net_address address;

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    ok(net_read_block(rows[i].block, &block) == 0 && read_text(rows[i].address, &address) &&
           net_in_block(&address, &block) == rows[i].in,
       "%s is %sin %s", rows[i].address, rows[i].in ? "" : "not ", rows[i].block);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ok(net_read_block(bad[i], &block) != 0, "no network: \"%s\"", bad[i]);
}

static void
test_sockets(void)
{
  struct sockaddr_storage peer = { .ss_family = AF_INET };
  struct sockaddr_in *in = (void *)&peer;
  struct sockaddr_in6 *in6 = (void *)&peer;
  struct net_address address, same;
  char text[NET_TEXT];

  in->sin_addr.s_addr = htonl(0x01020304);
  ok(net_of_socket(&peer, &address), "an IPv4 peer");
  net_print(&address, text);
  ok(strcmp(text, "1.2.3.4") == 0, "is %s", text);
  ok(read_text("::ffff:1.2.3.4", &same) && net_same(&address, &same), "in both spellings");
  peer.ss_family = AF_INET6;
  inet_pton(AF_INET6, "fe80::1", &in6->sin6_addr);
  ok(net_of_socket(&peer, &address) && !net_same(&address, &same), "an IPv6 peer");
  net_print(&address, text);
  ok(strcmp(text, "fe80::1") == 0, "is %s", text);
  peer.ss_family = AF_UNIX;
  ok(!net_of_socket(&peer, &address), "a unix socket's has none");
}

int
main(void)
{
  test_addresses();
  test_blocks();
  test_sockets();
  done_testing();
}
