/* SPDX-License-Identifier: MIT */
/* Keccak-256 and hex, by the values everybody knows. */
#include "../lib/tap.h"

#include <ethrpc-gw/eth.h>

static void
hash_is(const char *text, size_t len, const char *want, const char *what)
{
  unsigned char hash[32];
  char got[67];

  egw_keccak256((struct egw_slice){ text, len }, hash);
  egw_hex_print(hash, sizeof hash, got);
  ok(strcmp(got, want) == 0, "keccak256 of %s", what);
}

/* Lengths at the edges of a block, hashed into one another: one wrong bit shows. */
static void
edges(void)
{
  static const char want[] =
      "0xe8ef80accdddddf1ac487f20928a7b666c5abc9cf8eef2bc883f5d99085c48d3";
  unsigned char hash[32] = { 0 }, text[300];
  char got[67];
  size_t len, i;

  for (len = 0; len < sizeof text; len++) {
    for (i = 0; i < len; i++)
      text[i] = (unsigned char)(hash[i % 32] + i);
    egw_keccak256((struct egw_slice){ (const char *)text, len }, hash);
  }
  egw_hex_print(hash, sizeof hash, got);
  ok(strcmp(got, want) == 0, "each length below 300");
}

static void
hex(void)
{
  unsigned char out[4];

  is_int(egw_hex_read(EGW_LIT("\"0x00fFA1\""), out, 4), 3, "three bytes");
  ok(out[0] == 0 && out[1] == 0xff && out[2] == 0xa1, "their values");
  is_int(egw_hex_read(EGW_LIT(" \"0x01\" "), out, 4), 1, "white space around");
  is_int(egw_hex_read(EGW_LIT("\"0x\""), out, 4), 0, "none");
  is_int(egw_hex_read(EGW_LIT("\"0x01020304\""), out, 4), 4, "just room");
  is_int(egw_hex_read(EGW_LIT("\"0x0102030405\""), out, 4), -1, "no room");
  is_int(egw_hex_read(EGW_LIT("\"0x0102030405\""), NULL, 0), 5, "counted only");
  is_int(egw_hex_read(EGW_LIT("\"0x012\""), out, 4), -1, "an odd number of digits");
  is_int(egw_hex_read(EGW_LIT("\"0X01\""), out, 4), -1, "0X");
  is_int(egw_hex_read(EGW_LIT("\"01\""), out, 4), -1, "no prefix");
  is_int(egw_hex_read(EGW_LIT("\"0x0g\""), out, 4), -1, "no hex");
  is_int(egw_hex_read(EGW_LIT("\"\\u0030x01\""), out, 4), -1, "an escape");
  is_int(egw_hex_read(EGW_LIT("1"), out, 4), -1, "a number");
  is_int(egw_hex_read((struct egw_slice){ NULL, 0 }, out, 4), -1, "nothing");
}

int
main(void)
{
  hash_is("", 0, "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
          "nothing");
  hash_is("abc", 3, "0x4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
          "abc");
  hash_is("Transfer(address,address,uint256)", 33,
          "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", "an event");
  hash_is("\x80", 1, "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
          "the empty trie");
  edges();
  hex();
  return done_testing();
}
