/* SPDX-License-Identifier: MIT */
/* What is done with a call: its block resolved by the head, the form its answer is kept
 * under, and how the node has to be asked so that it is certain which block the answer is
 * of. Pure; any thread. */
#ifndef CACHE_PLAN_H
#define CACHE_PLAN_H

#include "ask.h"

enum plan_form {
  PLAN_ALL,      /* the whole question */
  PLAN_NUMBER,   /* a final block, by number */
  PLAN_HASH,     /* a block by hash: what is true of it never changes */
  PLAN_RANGE     /* blocks first..number */
};

enum plan_rewrite {
  REWRITE_NO,
  REWRITE_NUMBER,  /* tags by their numbers */
  REWRITE_HASH     /* the block by its hash */
};

struct plan {
  enum plan_form form;
  enum plan_rewrite rewrite;
  uint64_t first, number;   /* NUMBER: number; RANGE: both; HASH: number, if `numbered` */
  bool numbered;            /* HASH: its number is known; it was canonical then */
  bool lasting;             /* the answer can't change any more (a transaction's: only
                               the answer tells) */
  bool pinned;              /* RANGE: true only while `hash` is canonical at `number` */
  unsigned char hash[32];   /* HASH; RANGE: of `number` if `pinned` */
};

struct plan_terms {
  const struct egw_head *head;
  bool tags;                /* tags may be resolved now, */
  bool finality;            /* safe and finalized among them */
  bool by_hash;             /* nodes take this method's block by hash, as far as is known */
};

/* false: let the call pass. */
bool plan_make(const struct rules_method *method, const struct ask *ask,
               const struct plan_terms *terms, struct plan *out);

/* A final block that is kept by number may have been kept by hash before it was final: the
 * plan for that. false: its hash is not known. */
bool plan_by_hash(const struct plan *plan, const struct egw_head *head, struct plan *out);

/* Whether block `number` is final. */
bool plan_is_final(const struct egw_head *head, uint64_t number);

enum plan_verdict {
  PLAN_DROP,      /* not to be kept */
  PLAN_WRONG,     /* nor what was asked for: it is of another block, or nothing */
  PLAN_KEEP,      /* under the plan's form */
  PLAN_KEEP_LASTING,
  PLAN_KEEP_PINNED, /* only while block `pin` is canonical */
  PLAN_KEEP_IF_FINAL /* for ever, if the transaction's block is known to be final */
};

/* Judges a result, now. `archive`: the node that gave it has the state of all blocks of the
 * plan, so that an empty list says something. `pin` is filled in. */
enum plan_verdict plan_result(const struct rules_method *method, const struct ask *ask,
                              const struct plan *plan, const struct egw_head *head,
                              struct egw_slice result, bool archive, struct rules_block *pin);

#endif
