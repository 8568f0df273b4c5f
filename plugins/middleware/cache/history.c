/* SPDX-License-Identifier: MIT */
/* Chains that are not what they were: a development chain that was reset, nodes of another
 * chain behind the same name. */
#include "cache.h"

#include <string.h>

void
cache_flush(const struct egw_at *at, bool same)
{
  struct shared *shared = cache_shared(at);
  struct store_change change = { 0 };

  /* Twice, since neither is first for all workers: who kept something old below between the
   * two sees the first (cache_lasting), what came up from below before it was flushed is
   * thrown out by the second. */
  store_clear(shared->store, &change);
  tiers_flush(((struct mine *)at->mine)->tiers, at, same);
  store_clear(shared->store, &change);
  cache_count(at, &change);
  egw_count(at, METRIC_FLUSHES, 1);
}

/* Whether a block that was final is gone: a development chain was reset, or nodes of
 * another one stand behind the name now. */
static bool
is_rewound(const struct shared *shared, const struct egw_head *head)
{
  unsigned char hash[32];

  if (!shared->has_anchor || !head->known)
    return false;
  if (!egw_head_hash(head, shared->anchor.number, hash))
    return head->tip.number < shared->anchor.number;
  return memcmp(hash, shared->anchor.hash, 32) != 0;
}

enum history { HISTORY_SAME, HISTORY_REWOUND, HISTORY_OTHER };

/* Takes note of the chain. */
static enum history
note_head(struct shared *shared, const struct egw_head *head)
{
  enum history history = is_rewound(shared, head) ? HISTORY_REWOUND : HISTORY_SAME;
  struct key_identity identity;
  bool known = key_identity(head, &identity);

  if (head->version <= shared->version)
    return HISTORY_SAME; /* another worker was here with this one, or with a newer one */
  shared->version = head->version;
  if (known && shared->has_identity &&
      memcmp(&identity, &shared->identity, sizeof(identity)) != 0)
    history = HISTORY_OTHER;
  if (known) {
    shared->identity = identity;
    shared->has_identity = true;
  }
  if (history != HISTORY_SAME)
    shared->has_anchor = false;
  if (head->known && head->has_finalized &&
      (!shared->has_anchor || head->finalized.number > shared->anchor.number)) {
    shared->anchor = head->finalized;
    shared->has_anchor = true;
  }
  return history;
}

void
cache_head(const struct egw_at *at, const struct egw_head *head)
{
  struct shared *shared = cache_shared(at);
  enum history history;

  cache_tip_age(at, head);
  tiers_count(((struct mine *)at->mine)->tiers, at);
  pthread_mutex_lock(&shared->lock);
  history = note_head(shared, head);
  pthread_mutex_unlock(&shared->lock);
  if (history == HISTORY_SAME)
    return;
  egw_log(EGW_WARN, "cache", history == HISTORY_OTHER
                                 ? "the chain is another one: everything kept is thrown out"
                                 : "a final block is gone: everything kept is thrown out");
  cache_flush(at, history == HISTORY_REWOUND);
}

