/* SPDX-License-Identifier: MIT */
/* Families of metrics that are printed by files of their own; see metrics_print(). */
#ifndef OBS_FAMILIES_H
#define OBS_FAMILIES_H

#include <ethrpc-gw/buf.h>
#include "obs/metrics.h"

struct gateway;
struct upstream;

/* ethrpcgw_upstream_...{network,upstream}. 0 or -1 (memory). Any thread. */
int print_upstreams(struct gateway *gateway, struct egw_buf *out) EGW_MUST_CHECK;

/* ethrpcgw_head_...{network}, ethrpcgw_upstream_head_block. 0 or -1 (memory). Any thread. */
int print_heads(struct gateway *gateway, struct egw_buf *out) EGW_MUST_CHECK;

/* ethrpcgw_<plugin>_<name>{network,instance}. 0 or -1 (memory). Any thread. */
int print_stages(struct gateway *gateway, struct egw_buf *out) EGW_MUST_CHECK;

/* The sum over the workers of the cell at `offset` in struct metrics. Any thread. */
int64_t workers_sum(const struct gateway *gateway, size_t offset);

/* The sum over the workers' links to `upstream` of the cell at `offset` in struct
 * link_metrics. Any thread. */
int64_t link_sum(const struct gateway *gateway, const struct upstream *upstream, size_t offset);

#endif
