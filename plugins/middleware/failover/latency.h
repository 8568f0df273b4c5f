/* SPDX-License-Identifier: MIT */
/* Recent latencies, and their quantiles: a histogram whose buckets are about a fifth apart, in
 * which older samples fade. */
#ifndef FAILOVER_LATENCY_H
#define FAILOVER_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#define LATENCY_BUCKETS 80u

struct latency {
  uint32_t count[LATENCY_BUCKETS];
  uint32_t total;
};

void latency_add(struct latency *latency, uint64_t ms);

/* So many ms are not exceeded by the share `q` of the samples. false: too few of them to say.
 */
bool latency_quantile(const struct latency *latency, double q, uint64_t *ms);

#endif
