/* SPDX-License-Identifier: MIT */
/* The head of a network: what the gateway knows of the chain's tip.
 *
 * One worker of the gateway follows all upstreams of a network (newHeads where they push, polling
 * where they don't), keeps recent headers by hash and publishes snapshots. A snapshot never
 * changes; each callback sees the newest one when it asks. Worker's thread only. */
#ifndef ETHRPC_GW_HEAD_H
#define ETHRPC_GW_HEAD_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct egw_at;

struct egw_block {
  uint64_t number;
  unsigned char hash[32];
};

/* A snapshot. `known` false: nothing but the chain's identity is valid. */
struct egw_head {
  uint64_t version;            /* another one whenever something differs */
  bool known;
  bool live;                   /* an upstream at the tip was heard of within its time: false while
                                  all are lost */
  bool pushed;                 /* ...and it pushes its heads: the tip is as new as it can be */
  bool settled;                /* nothing newer than the tip has been heard of, and no transaction was
                                  sent since it was looked at: a tag can be resolved to its block */
  bool has_safe, has_finalized;
  bool has_chain_id, has_genesis;
  struct egw_block tip, safe, finalized;
  uint64_t tip_time;           /* of the tip's header, seconds since 1970 */
  uint64_t block_ms;           /* time between blocks as measured; 0: not yet known */
  uint64_t reorgs;             /* that took blocks away, since the start */
  uint64_t lowest;             /* the canonical hash is known from here up to the tip */
  uint64_t chain_id;
  unsigned char genesis[32];
};

/* The newest snapshot of the stage's network; never NULL. Borrowed, valid during this callback. */
const struct egw_head *egw_head(const struct egw_at *at);

/* The hash of the canonical block `number`, from head->lowest up to the tip. false: not known. */
bool egw_head_hash(const struct egw_head *head, uint64_t number, unsigned char hash[32]);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
