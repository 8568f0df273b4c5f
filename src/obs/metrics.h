/* SPDX-License-Identifier: MIT */
/* Metrics: per-worker arrays of counters, written by their worker only and summed at scrape.
 * Core metrics are named here; plugins bring tables of their own (struct egw_metric). No
 * string work on the data path; labels come from closed sets, so that no client can make
 * series. */
#ifndef OBS_METRICS_H
#define OBS_METRICS_H

#include <stdatomic.h>
#include <stdint.h>
#include <ethrpc-gw/plugin.h>

/* One counter or gauge of one worker. */
typedef _Atomic int64_t metric_cell;

/* By the cell's own worker only: no locked instruction needed. */
static inline void
metric_add(metric_cell *cell, int64_t n)
{
  atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + n,
                        memory_order_relaxed);
}

static inline void
metric_max(metric_cell *cell, int64_t n)
{
  if (atomic_load_explicit(cell, memory_order_relaxed) < n)
    atomic_store_explicit(cell, n, memory_order_relaxed);
}

static inline int64_t
metric_read(const metric_cell *cell)
{
  return atomic_load_explicit(cell, memory_order_relaxed);
}

/* How a client's call ended. */
enum call_outcome {
  CALL_RESULT,      /* a result */
  CALL_ERROR,       /* an error object of a node or stage */
  CALL_DENIED,      /* not allowed here */
  CALL_FAULT,       /* an error of the gateway's own: no upstream, time-out, bad reply... */
  CALL_CANCELLED,   /* the client left first */
  CALL_OUTCOMES
};

enum client_kind { CLIENT_HTTP, CLIENT_WS, CLIENT_IPC, CLIENT_INTERNAL, CLIENT_KINDS };

/* Why a connection or request was refused before it became a call. */
enum refusal {
  REFUSED_CONNECTIONS,  /* cap on connections */
  REFUSED_PER_CLIENT,   /* cap for one address */
  REFUSED_DESCRIPTORS,  /* out of descriptors */
  REFUSED_HEAD,         /* malformed request head */
  REFUSED_HOST,         /* Host not on the list */
  REFUSED_ORIGIN,
  REFUSED_CONTENT_TYPE,
  REFUSED_METHOD,
  REFUSED_SIZE,
  REFUSED_TIMEOUT,      /* head, body or handshake took too long */
  REFUSED_PEER,         /* uid not allowed */
  REFUSED_TLS,
  REFUSED_OVERLOAD,     /* byte budget */
  REFUSED_SLOW_READER,  /* closed: its queue was full */
  REFUSED_COUNT
};

#define LATENCY_BUCKETS 22 /* upper bounds 50 us * 2^i; the last one is +Inf */

struct metrics {
  /* [method index | unknown][outcome]; row method_count() is "unknown" */
  metric_cell (*calls)[CALL_OUTCOMES];
  metric_cell latency[CLIENT_KINDS][LATENCY_BUCKETS];
  metric_cell latency_sum_us[CLIENT_KINDS];
  metric_cell sessions_opened[CLIENT_KINDS], sessions_closed[CLIENT_KINDS];
  metric_cell requests[CLIENT_KINDS];       /* client messages (a batch is one) */
  metric_cell bytes_in[CLIENT_KINDS], bytes_out[CLIENT_KINDS];
  metric_cell refused[REFUSED_COUNT];
  metric_cell queue_bytes;                  /* gauge: output not yet sent */
  metric_cell calls_in_flight;              /* gauge */
  metric_cell subscriptions;                /* gauge */
  metric_cell notifications;                /* events sent to clients */
  metric_cell loop_turns, loop_stalls, loop_stall_max_us; /* a stall: callbacks of one turn > 5 ms */
  metric_cell stage_slow;                   /* callbacks of a stage over 5 ms */
};

/* New zeroed metrics for one worker; NULL when memory is short. Main thread. */
struct metrics *metrics_new(void) EGW_MUST_CHECK;
void metrics_free(struct metrics *metrics);

/* Records a finished call. method_index: method_index() or method_count() for unknown. */
void metrics_call(struct metrics *metrics, unsigned method_index, enum call_outcome outcome,
                  enum client_kind kind, uint64_t took_us);

/* Counters of one worker's link to one upstream; the link's worker writes. */
struct link_metrics {
  metric_cell outcomes[6];       /* by enum egw_outcome */
  metric_cell errors;            /* replies that were JSON-RPC errors */
  metric_cell in_flight;         /* gauge */
  metric_cell up;                /* gauge: 1 usable, 0 not */
  metric_cell connects, disconnects;
  metric_cell bytes_in, bytes_out;
  metric_cell latency_sum_us, latency_count;
  metric_cell probes;
  metric_cell batches, batched;  /* arrays sent, calls in them */
  metric_cell batch_refusals;    /* arrays whose calls were sent anew */
};

struct gateway;

/* Appends all metrics as Prometheus text (version 0.0.4). 0 or -1 (memory). Any thread. */
int metrics_print(struct gateway *gateway, struct egw_buf *out) EGW_MUST_CHECK;

#endif
