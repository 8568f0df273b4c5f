/* SPDX-License-Identifier: MIT */
/* What a call asks: its params read once, the block reference told apart from the rest.
 * Pure; any thread. Nothing is allocated; all slices point into the params. */
#ifndef CACHE_ASK_H
#define CACHE_ASK_H

#include "rules.h"

enum ask_kind {
  ASK_ALL,        /* no block is named: the params are the whole question */
  ASK_HASH,
  ASK_NUMBER,
  ASK_LATEST,
  ASK_SAFE,
  ASK_FINALIZED,
  ASK_RANGE       /* from `from` to `to` */
};

/* One end of a range: NUMBER, LATEST, SAFE or FINALIZED. */
struct ask_end {
  enum ask_kind kind;
  uint64_t number;
};

#define ASK_PARTS 12u

struct ask {
  enum ask_kind kind;
  bool omitted;             /* LATEST: as no block is named, which some nodes refuse */
  bool filter;              /* the reference is in a filter object; parts: its other members */
  uint64_t number;          /* NUMBER */
  unsigned char hash[32];   /* HASH */
  struct ask_end from, to;  /* RANGE */
  /* The question without its block: what stands before it, piece by piece, and the text
   * behind it up to the closing bracket (with its comma, or empty). */
  struct egw_slice parts[ASK_PARTS];
  unsigned part_count;
  struct egw_slice after;
};

/* false: it is none that can be kept, or may not be what it seems (two equal keys, a number
 * that is not written as a node wants it, `pending`, `earliest` - which on nodes that drop
 * old blocks is not block 0 -, requireCanonical): let it pass. */
bool ask_read(const struct rules_method *method, struct egw_slice params, struct ask *out);

#endif
