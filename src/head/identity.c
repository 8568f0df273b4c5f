/* SPDX-License-Identifier: MIT */
/* Which chain an upstream serves: chain id and genesis are asked for, and pinned for the network by
 * the configuration or by the first upstream that tells. One that serves another chain is never
 * used. When all of them do (a development chain was begun anew), and the configuration does not
 * speak against it, the network becomes that chain and everything known of the old one is gone. */
#include <stdlib.h>
#include <string.h>
#include "head/parts.h"
#include "obs/log.h"
#include "push/hub.h"

static void on_genesis(struct question *q);

static bool
same_chain(const struct tracker *t, const struct follower *f)
{
  uint64_t want = (uint64_t)t->network->conf->chain_id;

  if (f->has_chain_id && want != 0 && f->chain_id != want)
    return false;
  if (f->has_chain_id && t->has_chain_id && f->chain_id != t->chain_id)
    return false;
  return !(f->has_genesis && t->has_genesis && memcmp(f->genesis, t->genesis, HASH_LEN) != 0);
}

/* Whether every upstream that can be asked serves the follower's chain. */
static bool
all_agree(const struct tracker *t, const struct follower *f)
{
  uint64_t want = (uint64_t)t->network->conf->chain_id;
  unsigned i;

  if (want != 0 && f->chain_id != want)
    return false;
  for (i = 0; i < t->count; i++) {
    const struct follower *o = &t->followers[i];

    if (o == f || o->link->health != LINK_UP)
      continue;
    if (!o->has_chain_id || o->chain_id != f->chain_id || !o->has_genesis || !f->has_genesis ||
        memcmp(o->genesis, f->genesis, HASH_LEN) != 0)
      return false;
  }
  return true;
}

/* All that was told of the old chain is taken back. */
static void
take_back(struct tracker *t)
{
  unsigned i, n = (unsigned)(t->blocks.high - t->blocks.low + 1);
  struct block **dropped = calloc(n, sizeof(*dropped));

  for (i = 0; dropped != NULL && i < n; i++)
    dropped[i] = blocks_at(&t->blocks, t->blocks.high - i);
  if (dropped != NULL)
    hub_moved(t->network->hub, dropped, n, NULL, 0);
  else
    hub_lost(t->network->hub);
  free(dropped);
}

static void
forget_chain(struct tracker *t)
{
  bool known = t->tip != NULL;
  unsigned i;

  t->tip = NULL;
  tracker_publish(t);
  if (known && t->network->hub != NULL)
    take_back(t);
  t->replaced = t->replaced || known;
  blocks_free(&t->blocks);
  t->finality.has_safe = t->finality.has_finalized = false;
  t->depth = HEAD_SHALLOW;
  t->backfill_failures = 0;
  t->believed = 0;
  atomic_store(&t->head->evidence, 0);
  for (i = 0; i < t->count; i++) {
    t->followers[i].has_head = t->followers[i].has_target = false;
    t->followers[i].was_tip = false;
    atomic_store(&t->followers[i].upstream->head, 0);
  }
}

static void
set_stranger(struct follower *f, bool stranger)
{
  bool was = atomic_exchange(&f->upstream->stranger, stranger);

  if (stranger && !was)
    egw_log(EGW_ERROR, "head", "%s serves another chain (id %llu): it is not used",
            f->upstream->name, (unsigned long long)f->chain_id);
  else if (!stranger && was)
    egw_log(EGW_INFO, "head", "%s serves the right chain again", f->upstream->name);
}

static void
pin(struct tracker *t, const struct follower *f)
{
  if (f->has_chain_id) {
    t->has_chain_id = true;
    t->chain_id = f->chain_id;
  }
  if (f->has_genesis) {
    t->has_genesis = true;
    memcpy(t->genesis, f->genesis, HASH_LEN);
  }
}

/* All is known that the upstream tells of its chain. */
static void
judge(struct follower *f)
{
  struct tracker *t = f->tracker;
  unsigned i;

  if (!same_chain(t, f) && all_agree(t, f)) {
    egw_log(EGW_WARN, "head", "network %s is another chain now (id %llu): what was known of the "
            "old one is forgotten", t->network->name, (unsigned long long)f->chain_id);
    forget_chain(t);
    t->has_chain_id = t->has_genesis = false;
    pin(t, f);
    for (i = 0; i < t->count; i++)
      if (t->followers[i].identity == IDENTITY_STRANGER && same_chain(t, &t->followers[i])) {
        t->followers[i].identity = IDENTITY_KNOWN;
        set_stranger(&t->followers[i], false);
      }
  }
  if (!same_chain(t, f)) {
    f->identity = IDENTITY_STRANGER;
    f->has_head = f->has_target = false;
    atomic_store(&f->upstream->head, 0);
    set_stranger(f, true);
  } else {
    pin(t, f);
    f->identity = IDENTITY_KNOWN;
    atomic_store(&f->upstream->lowest, 0); /* it may have been set up anew */
    set_stranger(f, false);
    f->polled_ms = 0;
    follower_poll(f);
  }
  tracker_choose(t);
}

static void
on_chain_id(struct question *q)
{
  struct follower *f = q->follower;

  if (!q->answered)
    return; /* the next poll asks again */
  f->has_chain_id = q->has_number;
  f->chain_id = q->number;
  question_ask(q, f, "eth_getBlockByNumber", "[\"0x0\",false]", on_genesis);
}

static void
on_genesis(struct question *q)
{
  struct follower *f = q->follower;

  if (!q->answered)
    return;
  f->has_genesis = q->has_block && q->block.number == 0;
  if (f->has_genesis)
    memcpy(f->genesis, q->block.hash, HASH_LEN);
  judge(f);
}

void
follower_identify(struct follower *f)
{
  if (!f->ask_identity.waiting)
    question_ask(&f->ask_identity, f, "eth_chainId", "[]", on_chain_id);
}
