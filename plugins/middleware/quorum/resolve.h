/* SPDX-License-Identifier: MIT */
/* Which block a call is about: tags and left out blocks become the number of the block that
 * they mean now, so that all upstreams answer about the same one. */
#ifndef QUORUM_RESOLVE_H
#define QUORUM_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/middleware.h>

enum resolved {
  RESOLVED_AS_IS,   /* nothing to replace */
  RESOLVED_NEW,     /* *out has the params to send */
  RESOLVED_NOT,     /* it can't be said: pending, the head is not known, odd params */
  RESOLVED_NO_MEMORY
};

/* The newest block that clients may have heard of: the tip, or above it what a node is known
 * to have already. Valid if the head is known. */
uint64_t resolve_latest(const struct egw_at *at);

/* `latest` is what resolve_latest() says. `info` may be NULL. *out is the caller's. *need: the
 * highest block that an upstream must have to answer, or 0. */
enum resolved resolve_params(const struct egw_head *head, uint64_t latest,
                             const struct egw_method_info *info, struct egw_slice params,
                             struct egw_buf **out, uint64_t *need);

#endif
