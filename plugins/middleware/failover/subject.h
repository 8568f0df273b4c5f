/* SPDX-License-Identifier: MIT */
/* What block a call is about, and whether the network has it. */
#ifndef FAILOVER_SUBJECT_H
#define FAILOVER_SUBJECT_H

#include <ethrpc-gw/middleware.h>

enum subject_kind {
  SUBJECT_NONE, /* no block, or one that cannot be told */
  SUBJECT_NUMBER,
  SUBJECT_HASH,
  SUBJECT_TIP, /* latest */
  SUBJECT_SAFE,
  SUBJECT_FINALIZED,
  SUBJECT_TX /* a transaction */
};

struct subject {
  enum subject_kind kind;
  uint64_t number;
  unsigned char hash[32];
};

void subject_of(const struct egw_call *call, struct subject *out);

/* Whether the network has the block for certain; then *number is the height an upstream must
 * have reached to know it. Without a doubt only: false if the head is not known. */
bool
subject_exists(const struct subject *subject, const struct egw_head *head, uint64_t *number);

/* Whether a result is that of an upstream that does not have (yet) what is asked for: null for
 * a block that exists, or an older block as the latest one. */
bool subject_stale(const struct subject *subject, const char *method,
                   const struct egw_head *head, struct egw_slice result);

#endif
