/* SPDX-License-Identifier: MIT */
/* Keccak-256. The permutation is that of FIPS 202, section 3.2; the padding is 0x01, as in the
 * Keccak submission that Ethereum took, where FIPS 202 has 0x06. Libraries have it only in
 * newer releases (OpenSSL 3.2) or as an internal (nettle). */
#include <ethrpc-gw/eth.h>
#include <stdint.h>
#include <string.h>

#define ROUNDS 24u
#define LANES 25u
#define RATE 136u /* bytes taken in between two permutations */

static inline uint64_t
rotate(uint64_t x, unsigned n)
{
  return n == 0 ? x : x << n | x >> (64 - n);
}

/* Theta: each bit takes up the parity of two columns. */
static void
mix_columns(uint64_t a[LANES])
{
  uint64_t parity[5];
  unsigned x, i;

  for (x = 0; x < 5; x++)
    parity[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
  for (x = 0; x < 5; x++) {
    uint64_t d = parity[(x + 4) % 5] ^ rotate(parity[(x + 1) % 5], 1);

    for (i = x; i < LANES; i += 5)
      a[i] ^= d;
  }
}

/* Rho and pi: along the walk (x, y) -> (y, 2x + 3y) each lane moves on by one place and is
 * turned by the next triangular number. */
static void
move_lanes(uint64_t a[LANES])
{
  uint64_t moving = a[1];
  unsigned x = 1, y = 0, t;

  for (t = 1; t <= ROUNDS; t++) {
    unsigned next = (2 * x + 3 * y) % 5, to = y + 5 * next;
    uint64_t there = a[to];

    a[to] = rotate(moving, t * (t + 1) / 2 % 64);
    moving = there;
    x = y;
    y = next;
  }
}

/* Chi: along each row. */
static void
mix_rows(uint64_t a[LANES])
{
  unsigned row, x;

  for (row = 0; row < LANES; row += 5) {
    uint64_t old[5];

    memcpy(old, a + row, sizeof(old));
    for (x = 0; x < 5; x++)
      a[row + x] = old[x] ^ (~old[(x + 1) % 5] & old[(x + 2) % 5]);
  }
}

/* Iota: the round's constant; its bits 2^j - 1 come from a shift register. */
static uint64_t
round_constant(unsigned *reg)
{
  uint64_t constant = 0;
  unsigned j;

  for (j = 0; j < 7; j++) {
    if ((*reg & 1) != 0)
      constant |= UINT64_C(1) << ((1u << j) - 1);
    *reg = (*reg & 0x80) != 0 ? (*reg << 1 ^ 0x171) : *reg << 1;
  }
  return constant;
}

static void
permute(uint64_t a[LANES])
{
  unsigned round, reg = 1;

  for (round = 0; round < ROUNDS; round++) {
    mix_columns(a);
    move_lanes(a);
    mix_rows(a);
    a[0] ^= round_constant(&reg);
  }
}

static void
absorb(uint64_t a[LANES], const unsigned char block[RATE])
{
  unsigned i;

  for (i = 0; i < RATE; i++)
    a[i / 8] ^= (uint64_t)block[i] << 8 * (i % 8);
  permute(a);
}

void
egw_keccak256(struct egw_slice bytes, unsigned char out[32])
{
  const unsigned char *p = (const unsigned char *)bytes.ptr;
  unsigned char last[RATE] = { 0 };
  uint64_t a[LANES] = { 0 };
  size_t left = bytes.len;
  unsigned i;

  for (; left >= RATE; left -= RATE, p += RATE)
    absorb(a, p);
  if (left != 0)
    memcpy(last, p, left);
  last[left] ^= 0x01;
  last[RATE - 1] ^= 0x80;
  absorb(a, last);
  for (i = 0; i < 32; i++)
    out[i] = (unsigned char)(a[i / 8] >> 8 * (i % 8));
}
