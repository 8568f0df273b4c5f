/* SPDX-License-Identifier: MIT */
/* What the cache knows of a method: whether its answers can be kept, what it takes for its
 * block, and how a result shows which block it is about. Pure; any thread. */
#ifndef CACHE_RULES_H
#define CACHE_RULES_H

#include <ethrpc-gw/middleware.h>

/* How a result names the block it was made from. */
enum rules_proof {
  PROOF_NONE,    /* it does not */
  PROOF_BLOCK,   /* an object with `hash` and `number` */
  PROOF_MEMBER,  /* an object with `blockHash` and `blockNumber` */
  PROOF_LIST     /* an array of such objects */
};

struct rules_method {
  const struct egw_method_info *info;
  enum rules_proof proof;
  const char *subject;    /* BY_TX: member of the result that repeats the transaction's hash */
  bool optional;          /* a left out block means the latest one, on every node */
  bool by_hash;           /* its block can be given by hash: EIP-1898, or in a filter */
  bool ranges;            /* BLOCK_FILTER: ranges above the finalized block may be kept */
  bool of_chain;          /* CONSTANT: of one chain; else of all */
  bool tip;               /* its result is the number of the latest block */
  bool control;           /* drives a development chain: what was true may be no more */
};

/* Whether the cache has something to do with calls of this method. */
bool rules_want(const struct egw_method_info *method);

/* The facts about a method that is wanted. */
void rules_of(const struct egw_method_info *method, struct rules_method *out);

/* A block as a result names it. */
struct rules_block {
  uint64_t number;
  unsigned char hash[32];
};

/* The block that `value`, an object, says it belongs to, by the members of `proof` (BLOCK or
 * MEMBER; LIST: as MEMBER). false: it names none, as what is pending does. */
bool rules_block(enum rules_proof proof, struct egw_slice value, struct rules_block *out);

/* Whether an array is empty. */
bool rules_is_empty(struct egw_slice value);

/* Reads a 32-byte hash as JSON string. false: it is none. */
bool rules_hash(struct egw_slice value, unsigned char out[32]);

#endif
