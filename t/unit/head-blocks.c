/* SPDX-License-Identifier: MIT */
/* Headers by hash and the canonical chain through them: parsing, gaps, branches, the window, and
 * random reorganisations against a plain model. */
#include <stdio.h>
#include <string.h>
#include "head/blocks.h"
#include "../lib/tap.h"

static uint64_t seed = 7;

static unsigned
rnd(unsigned below)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % below);
}

/* A block of branch `branch`; `parent_branch` is that of its parent. */
static struct block
make(uint64_t number, unsigned branch, unsigned parent_branch)
{
  struct block b = { .number = number, .time = 1000 + number };

  memcpy(b.hash, &number, sizeof(number));
  memcpy(b.hash + 8, &branch, sizeof(branch));
  if (number != 0) {
    number--;
    memcpy(b.parent, &number, sizeof(number));
    memcpy(b.parent + 8, &parent_branch, sizeof(parent_branch));
  }
  return b;
}

static struct block *
add(struct blocks *blocks, uint64_t number, unsigned branch, unsigned parent_branch)
{
  struct block b = make(number, branch, parent_branch);

  return blocks_add(blocks, &b, NULL);
}

static void
test_parse(void)
{
#define H64 "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define GOOD "{\"number\":\"0x1f\",\"hash\":\"0x" H64 "\",\"parentHash\":\"0x" H64 \
             "\",\"timestamp\":\"0x64\",\"x\":[{}]}"
  static const char *const bad[] = {
    "null", "[]", "\"0x1\"", "{}", "{\"number\":null,\"hash\":null,\"parentHash\":\"0x" H64 "\",\"timestamp\":\"0x1\"}",
    "{\"number\":\"0x1\",\"hash\":\"0x" H64 "\",\"parentHash\":\"0x00\",\"timestamp\":\"0x1\"}",
    "{\"number\":\"0x1\",\"hash\":\"0x" H64 "0\",\"parentHash\":\"0x" H64 "\",\"timestamp\":\"0x1\"}",
    "{\"number\":\"0x1\",\"hash\":\"zz" H64 "\",\"parentHash\":\"0x" H64 "\",\"timestamp\":\"0x1\"}",
    "{\"number\":\"0x11111111111111111\",\"hash\":\"0x" H64 "\",\"parentHash\":\"0x" H64 "\",\"timestamp\":\"0x1\"}",
  };
  struct block b;
  char text[67];
  size_t i;

  ok(block_parse(EGW_LIT(GOOD), &b), "a header is read");
  is_int((long long)b.number, 31, "its number");
  is_int((long long)b.time, 100, "its time");
  hash_text(b.hash, text);
  ok(strcmp(text, "0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") == 0,
     "its hash");
  ok(block_parse(EGW_LIT("{\"number\":\"0x1\",\"hash\":\"0x" H64 "\",\"parentHash\":\"0x" H64
                         "\"}"), &b) && b.time == 0, "one without time is one too");
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    ok(!block_parse((struct egw_slice){ bad[i], strlen(bad[i]) }, &b), "no header: %.40s", bad[i]);
}

static void
test_gaps(void)
{
  struct blocks blocks = { 0 };
  struct block *base = add(&blocks, 10, 0, 0), *b13, *missing = NULL;

  ok(blocks_at(&blocks, 10) == NULL, "nothing is canonical at first");
  blocks_restart(&blocks, base);
  ok(blocks_at(&blocks, 10) == base, "the first one is");
  b13 = add(&blocks, 13, 0, 0);
  ok(add(&blocks, 13, 0, 0) == b13, "a header is kept once");
  is_int(blocks_reach(&blocks, b13, &missing), REACH_GAP, "there is a gap");
  ok(missing == b13, "below the new one");
  add(&blocks, 12, 0, 0);
  is_int(blocks_reach(&blocks, b13, &missing), REACH_GAP, "a smaller one");
  is_int((long long)missing->number, 12, "below the next");
  add(&blocks, 11, 0, 0);
  is_int(blocks_reach(&blocks, b13, &missing), REACH_LINKED, "and none");
  is_int(blocks_set_tip(&blocks, b13), 0, "nothing is dropped");
  is_int((long long)blocks.high, 13, "the tip is there");
  ok(blocks_at(&blocks, 12) != NULL && blocks_at(&blocks, 14) == NULL, "with all below it");
  is_int(blocks_reach(&blocks, add(&blocks, 9, 5, 5), &missing), REACH_BELOW,
         "what is below the window is none of it");
  ok(!blocks_extend_down(&blocks), "the parent of the lowest is not known");
  add(&blocks, 9, 0, 0);
  ok(blocks_extend_down(&blocks) && blocks.low == 9, "with it the window grows downwards");
  blocks_free(&blocks);
}

/* The lowest block itself may be on the branch that loses. */
static void
test_bottom(void)
{
  struct blocks blocks = { 0 };
  struct block *missing, *b;

  blocks_restart(&blocks, add(&blocks, 10, 0, 0));
  blocks_set_tip(&blocks, add(&blocks, 11, 0, 0));
  add(&blocks, 10, 1, 0);
  b = add(&blocks, 12, 1, 1);
  is_int(blocks_reach(&blocks, b, &missing), REACH_GAP, "a gap in the other branch");
  add(&blocks, 11, 1, 1);
  is_int(blocks_reach(&blocks, b, &missing), REACH_LINKED, "it has the same parent below the window");
  is_int(blocks_set_tip(&blocks, b), 2, "two blocks go");
  is_int((long long)blocks.low, 10, "the window stays");
  ok(blocks_at(&blocks, 10)->hash[8] == 1 && blocks_at(&blocks, 12) == b, "with other blocks");
  add(&blocks, 10, 2, 2);
  add(&blocks, 11, 2, 2);
  add(&blocks, 12, 2, 2);
  is_int(blocks_reach(&blocks, add(&blocks, 13, 2, 2), &missing), REACH_BELOW,
         "a branch that leaves further down");
  blocks_free(&blocks);
}

static void
test_liar(void)
{
  struct blocks blocks = { 0 };
  struct block lie = make(500, 1, 0), *missing;
  struct block *base = add(&blocks, 10, 0, 0);

  blocks_restart(&blocks, base);
  memcpy(lie.parent, base->hash, HASH_LEN);
  is_int(blocks_reach(&blocks, blocks_add(&blocks, &lie, NULL), &missing), REACH_BELOW,
         "a number that does not follow its parent's is no branch");
  blocks_free(&blocks);
}

static void
test_lower(void)
{
  struct blocks blocks = { 0 };
  struct block *b[20];
  unsigned i;

  for (i = 0; i < 20; i++)
    b[i] = add(&blocks, i, 0, 0);
  blocks_restart(&blocks, b[0]);
  blocks_set_tip(&blocks, b[19]);
  is_int(blocks_set_tip(&blocks, b[15]), 4, "four blocks are taken away");
  ok(blocks_at(&blocks, 16) == NULL && !blocks_is_canonical(&blocks, b[17]), "they are gone");
  is_int(blocks_set_tip(&blocks, b[19]), 0, "and come back");
  ok(blocks_is_canonical(&blocks, b[17]), "as they were");
  blocks_free(&blocks);
}

/* Neither a node that lies for days nor a chain that is moved back again and again fills the memory. */
static void
test_memory(void)
{
  struct blocks blocks = { 0 };
  struct block *tip, *missing;
  unsigned i;

  blocks_restart(&blocks, add(&blocks, 100, 0, 0));
  for (i = 1; i < 20000; i++)
    add(&blocks, i % 2 == 0 ? UINT64_MAX - i : 1000000 + i, i, i);
  ok(strmap_count(&blocks.by_hash) < 5 * HEAD_WINDOW, "lies about far blocks are let go");
  for (i = 1; i < 20000; i++) {
    tip = add(&blocks, 101, i, 0);
    if (blocks_reach(&blocks, tip, &missing) == REACH_LINKED)
      blocks_set_tip(&blocks, tip);
  }
  ok(strmap_count(&blocks.by_hash) < 5 * HEAD_WINDOW, "so are branches of a chain that stands");
  ok(blocks_at(&blocks, 101) == tip && blocks_at(&blocks, 100) != NULL, "what counts stays");
  blocks_free(&blocks);
}

/* What one node says of another's block does not stay in the other's way. */
static void
test_replaced(void)
{
  struct blocks blocks = { 0 };
  struct block truth = make(11, 0, 0), lie = truth, *missing;

  blocks_restart(&blocks, add(&blocks, 10, 0, 0));
  memset(lie.parent, 0xee, sizeof(lie.parent));
  lie.number = 500;
  is_int(blocks_reach(&blocks, blocks_add(&blocks, &lie, NULL), &missing), REACH_GAP, "a lie");
  is_int(blocks_reach(&blocks, blocks_add(&blocks, &truth, NULL), &missing), REACH_LINKED,
         "the truth of the same block");
  blocks_set_tip(&blocks, blocks_find(&blocks, truth.hash));
  is_int((long long)blocks_add(&blocks, &lie, NULL)->number, 11, "what counts is not replaced");
  blocks_free(&blocks);
}

/* Another genesis is another chain; a branch longer than the window can't be told. */
static void
test_ends(void)
{
  struct blocks blocks = { 0 };
  struct block other = make(0, 5, 0), *missing, *tip = NULL;
  unsigned i;

  blocks_restart(&blocks, add(&blocks, 0, 0, 0));
  is_int(blocks_reach(&blocks, blocks_add(&blocks, &other, NULL), &missing), REACH_BELOW,
         "another genesis");
  for (i = 1; i <= HEAD_WINDOW + 5; i++)
    tip = add(&blocks, i, 0, 0);
  is_int(blocks_reach(&blocks, tip, &missing), REACH_BELOW, "longer than the window");
  is_int(blocks_reach(&blocks, blocks_find(&blocks, tip->parent), &missing), REACH_BELOW,
         "still longer");
  blocks_free(&blocks);
}

#define MODEL 6000u

/* Random growth and reorganisations over many windows. */
static void
test_random(void)
{
  static unsigned model[MODEL]; /* the branch of each canonical block */
  struct blocks blocks = { 0 };
  unsigned high = 0, branch = 0, step, wrong = 0, i;

  blocks_restart(&blocks, add(&blocks, 0, 0, 0));
  for (step = 0; high < MODEL - 40; step++) {
    unsigned depth = rnd(4) == 0 ? rnd(high < 20 ? high + 1 : 20) : 0, grow = 1 + rnd(8), from;
    struct block *tip = NULL, *missing;

    from = high - depth;
    if (depth != 0)
      branch++;
    for (i = 1; i <= grow; i++) {
      unsigned number = from + i;

      tip = add(&blocks, number, depth != 0 ? branch : model[high], model[number - 1]);
      model[number] = depth != 0 ? branch : model[high];
    }
    wrong += blocks_reach(&blocks, tip, &missing) != REACH_LINKED;
    wrong += blocks_set_tip(&blocks, tip) != depth;
    high = from + grow;
    for (i = (unsigned)blocks.low; i <= high; i++) {
      struct block want = make(i, model[i], 0);
      const struct block *got = blocks_at(&blocks, i);

      wrong += got == NULL || memcmp(got->hash, want.hash, HASH_LEN) != 0;
    }
    wrong += blocks.high != high || high - blocks.low >= HEAD_WINDOW;
  }
  is_int(wrong, 0, "random reorganisations end as they should");
  ok(strmap_count(&blocks.by_hash) < 4 * HEAD_WINDOW, "what has left the window is let go");
  blocks_free(&blocks);
}

int
main(void)
{
  test_parse();
  test_gaps();
  test_bottom();
  test_liar();
  test_lower();
  test_memory();
  test_replaced();
  test_ends();
  test_random();
  return done_testing();
}
