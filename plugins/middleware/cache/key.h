/* SPDX-License-Identifier: MIT */
/* Keys: the canonical bytes of a question, and questions written anew for the node.
 * Everything is made in the call's own memory. Worker's thread. */
#ifndef CACHE_KEY_H
#define CACHE_KEY_H

#include "plan.h"

/* Which chain: entries of two never meet, in no tier. Zero: not known. */
#define KEY_IDENTITY 40u
struct key_identity {
  unsigned char bytes[KEY_IDENTITY];  /* chain id, big endian; the genesis block's hash */
};

/* The identity of the head's chain. false: it is not wholly known (all zero then). */
bool key_identity(const struct egw_head *head, struct key_identity *out);

/* The key of a call: identity, form, block, method, the question's other parts. Equal bytes
 * are the same question; the layout is stable, tiers on disk may keep it. ptr NULL: no
 * memory. */
struct egw_slice key_make(struct egw_call *call, const struct key_identity *identity,
                          const struct rules_method *method, const struct ask *ask,
                          const struct plan *plan);

/* The params as plan->rewrite wants them. ptr NULL: no memory. */
struct egw_slice key_rewrite(struct egw_call *call, const struct ask *ask,
                             const struct plan *plan);

#endif
