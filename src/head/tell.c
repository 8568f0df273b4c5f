/* SPDX-License-Identifier: MIT */
/* From the tracker's state to a snapshot. */
#include <string.h>
#include "head/parts.h"

static bool
at_tip(const struct tracker *t, const struct follower *f)
{
  return f->has_head && memcmp(f->head.hash, t->tip->hash, HASH_LEN) == 0 && follower_alive(f);
}

static void
fill_in(const struct tracker *t, struct egw_head *pub)
{
  const struct finality *fin = &t->finality;
  unsigned i;

  pub->has_chain_id = t->has_chain_id;
  pub->has_genesis = t->has_genesis;
  pub->chain_id = t->chain_id;
  memcpy(pub->genesis, t->genesis, HASH_LEN);
  if (t->tip == NULL)
    return;
  pub->known = true;
  pub->tip.number = t->tip->number;
  memcpy(pub->tip.hash, t->tip->hash, HASH_LEN);
  pub->tip_time = t->tip->time;
  pub->block_ms = t->block_ms;
  pub->reorgs = t->reorgs;
  pub->lowest = t->blocks.low;
  pub->has_safe = fin->has_safe;
  pub->safe = fin->safe;
  pub->has_finalized = fin->has_finalized;
  pub->finalized = fin->finalized;
  for (i = 0; i < t->count; i++) {
    const struct follower *f = &t->followers[i];

    if (!at_tip(t, f))
      continue;
    pub->live = true;
    pub->pushed = pub->pushed || feed_alive(f);
  }
}

static bool
counts(const struct tracker *t, const struct follower *f)
{
  uint64_t now = uv_now(&t->worker->loop);

  return f->has_head && f->identity == IDENTITY_KNOWN && follower_alive(f) &&
         f->upstream->conf->tier <= t->tier &&
         !(f->poll.waiting && now - f->polled_ms > OVERDUE_MS) &&
         !(f->walk.waiting && now - f->walk_ms > OVERDUE_MS);
}

/* A block that is not linked yet is not known yet: the tip is to move to it. */
static uint64_t
looked_at(const struct follower *f)
{
  return f->has_target ? f->linked_touched : f->seen_touched;
}

/* Every node that is heard of has been looked at since so many touches. */
static uint64_t
touched_seen(const struct tracker *t)
{
  uint64_t seen = UINT64_MAX;
  unsigned i;

  for (i = 0; i < t->count; i++)
    if (counts(t, &t->followers[i]) && looked_at(&t->followers[i]) < seen)
      seen = looked_at(&t->followers[i]);
  return seen == UINT64_MAX ? 0 : seen;
}

void
tracker_publish(struct tracker *t)
{
  struct head_snapshot *snapshot;
  struct egw_head pub;
  uint64_t touched = touched_seen(t);
  unsigned count, i;

  memset(&pub, 0, sizeof(pub));
  fill_in(t, &pub);
  if (t->has_published && memcmp(&pub, &t->published, sizeof(pub)) == 0 &&
      touched == t->published_touched && t->depth == t->published_depth)
    return;
  count = t->tip != NULL ? (unsigned)(t->blocks.high - t->blocks.low + 1) : 0;
  snapshot = head_snapshot_new(t->head, count);
  if (snapshot == NULL)
    return; /* the old one stays; the next change tries again */
  t->published = pub;
  t->published_touched = touched;
  t->published_depth = t->depth;
  t->has_published = true;
  pub.version = snapshot->pub.version;
  snapshot->pub = pub;
  snapshot->touched = touched;
  snapshot->depth = t->depth;
  for (i = 0; i < count; i++)
    memcpy(snapshot->hashes[i], blocks_at(&t->blocks, t->blocks.low + i)->hash, HASH_LEN);
  head_publish(t->network, snapshot);
}
