/* SPDX-License-Identifier: MIT */
/* The metrics as Prometheus text, format 0.0.4: cells summed over the workers. Each family is
 * written in one run: HELP, TYPE, samples. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include "gateway/gateway.h"
#include "obs/log.h"
#include "obs/families.h"
#include "obs/print.h"
#include "rpc/method.h"

static const char *const outcome_names[CALL_OUTCOMES] = {
  [CALL_RESULT] = "result",
  [CALL_ERROR] = "error",
  [CALL_DENIED] = "denied",
  [CALL_FAULT] = "fault",
  [CALL_CANCELLED] = "cancelled",
};

static const char *const client_names[CLIENT_KINDS] = {
  [CLIENT_HTTP] = "http",
  [CLIENT_WS] = "ws",
  [CLIENT_IPC] = "ipc",
  [CLIENT_INTERNAL] = "internal",
};

static const char *const refusal_names[REFUSED_COUNT] = {
  [REFUSED_CONNECTIONS] = "connections",
  [REFUSED_PER_CLIENT] = "per_client",
  [REFUSED_DESCRIPTORS] = "descriptors",
  [REFUSED_HEAD] = "head",
  [REFUSED_HOST] = "host",
  [REFUSED_ORIGIN] = "origin",
  [REFUSED_CONTENT_TYPE] = "content_type",
  [REFUSED_METHOD] = "method",
  [REFUSED_SIZE] = "size",
  [REFUSED_TIMEOUT] = "timeout",
  [REFUSED_PEER] = "peer",
  [REFUSED_TLS] = "tls",
  [REFUSED_OVERLOAD] = "overload",
  [REFUSED_SLOW_READER] = "slow_reader",
};

#define CELL(member) offsetof(struct metrics, member)
#define CELL_AT(member, i) (CELL(member) + (size_t)(i) * sizeof(metric_cell))

/* --- calls ---------------------------------------------------------------------------- */

static int64_t
calls_sum(const struct gateway *gateway, unsigned row, unsigned outcome)
{
  int64_t sum = 0;
  unsigned i;

  for (i = 0; i < gateway->worker_count; i++)
    if (gateway->workers[i].metrics != NULL)
      sum += metric_read(&gateway->workers[i].metrics->calls[row][outcome]);
  return sum;
}

static int
print_calls(const struct gateway *gateway, struct egw_buf *out)
{
  unsigned row, outcome;

  if (print_family(out, "calls_total", PRINT_COUNTER, "Calls, by how they ended") != 0)
    return -1;
  for (row = 0; row <= method_count(); row++)
    for (outcome = 0; outcome < CALL_OUTCOMES; outcome++) {
      int64_t n = calls_sum(gateway, row, outcome);
      struct print_label labels[] = {
        { "method", row < method_count() ? method_row(row)->name : "unknown" },
        { "outcome", outcome_names[outcome] },
      };

      if (n != 0 && print_sample(out, "calls_total", labels, 2, n) != 0)
        return -1;
    }
  return 0;
}

/* The upper bound of a bucket in seconds, exactly: 50 us * 2^i. */
static int
print_bucket(struct egw_buf *out, const char *client, unsigned i, int64_t count)
{
  unsigned long long us = 50ull << i;
  struct print_label labels[] = { { "client", client }, { "le", "+Inf" } };
  char bound[32];

  if (i < LATENCY_BUCKETS - 1) {
    (void)snprintf(bound, sizeof bound, "%llu.%06llu", us / 1000000, us % 1000000);
    labels[1].value = bound;
  }
  return print_sample(out, "call_duration_seconds_bucket", labels, 2, count);
}

static int
print_latency(const struct gateway *gateway, struct egw_buf *out)
{
  unsigned kind, i;

  if (print_family(out, "call_duration_seconds", PRINT_HISTOGRAM,
                   "Time from a call's arrival to its reply") != 0)
    return -1;
  for (kind = 0; kind < CLIENT_KINDS; kind++) {
    struct print_label label = { "client", client_names[kind] };
    int64_t count = 0;

    for (i = 0; i < LATENCY_BUCKETS; i++) {
      count += workers_sum(gateway, CELL_AT(latency, kind * LATENCY_BUCKETS + i));
      if (print_bucket(out, client_names[kind], i, count) != 0)
        return -1;
    }
    if (print_seconds(out, "call_duration_seconds_sum", &label, 1,
                      workers_sum(gateway, CELL_AT(latency_sum_us, kind))) != 0 ||
        print_sample(out, "call_duration_seconds_count", &label, 1, count) != 0)
      return -1;
  }
  return 0;
}

/* --- families of one label -------------------------------------------------------- */

struct family {
  const char *name;
  enum print_kind kind;
  size_t cell, minus;   /* offsets of the first cells; minus 0: nothing is subtracted */
  const char *help;
};

static int
print_array(const struct gateway *gateway, struct egw_buf *out, const struct family *family,
            const char *label, const char *const *names, unsigned count)
{
  unsigned i;

  if (print_family(out, family->name, family->kind, family->help) != 0)
    return -1;
  for (i = 0; i < count; i++) {
    struct print_label pair = { label, names[i] };
    int64_t n = workers_sum(gateway, family->cell + i * sizeof(metric_cell));

    if (family->minus != 0)
      n -= workers_sum(gateway, family->minus + i * sizeof(metric_cell));
    if (print_sample(out, family->name, &pair, 1, n) != 0)
      return -1;
  }
  return 0;
}

static const struct family client_families[] = {
  { "requests_total", PRINT_COUNTER, CELL(requests), 0, "Client messages; an array is one" },
  { "sessions", PRINT_GAUGE, CELL(sessions_opened), CELL(sessions_closed), "Open sessions" },
  { "sessions_total", PRINT_COUNTER, CELL(sessions_opened), 0, "Sessions opened" },
  { "received_bytes_total", PRINT_COUNTER, CELL(bytes_in), 0, "Bytes received from clients" },
  { "sent_bytes_total", PRINT_COUNTER, CELL(bytes_out), 0, "Bytes sent to clients" },
};

static const struct family refusal_family = {
  "refused_total", PRINT_COUNTER, CELL(refused), 0,
  "Connections and requests refused before they became calls"
};

static const struct family plain_families[] = {
  { "queue_bytes", PRINT_GAUGE, CELL(queue_bytes), 0, "Output not yet read by clients" },
  { "calls_in_flight", PRINT_GAUGE, CELL(calls_in_flight), 0, "Calls not answered yet" },
  { "subscriptions", PRINT_GAUGE, CELL(subscriptions), 0, "Subscriptions of clients" },
  { "notifications_total", PRINT_COUNTER, CELL(notifications), 0, "Events sent to clients" },
  { "loop_turns_total", PRINT_COUNTER, CELL(loop_turns), 0, "Turns of the workers' loops" },
  { "loop_stalls_total", PRINT_COUNTER, CELL(loop_stalls), 0, "Turns that ran over 5 ms" },
  { "stage_slow_total", PRINT_COUNTER, CELL(stage_slow), 0, "Callbacks of stages over 5 ms" },
};

static int
print_plain(const struct gateway *gateway, struct egw_buf *out)
{
  size_t i;

  for (i = 0; i < sizeof plain_families / sizeof plain_families[0]; i++) {
    const struct family *family = &plain_families[i];

    if (print_one(out, family->name, family->kind, family->help,
                  workers_sum(gateway, family->cell)) != 0)
      return -1;
  }
  return 0;
}

/* The longest turn of any worker. */
static int
print_stall(const struct gateway *gateway, struct egw_buf *out)
{
  int64_t longest = 0;
  unsigned i;

  for (i = 0; i < gateway->worker_count; i++) {
    const struct metrics *metrics = gateway->workers[i].metrics;
    int64_t us = metrics != NULL ? metric_read(&metrics->loop_stall_max_us) : 0;

    longest = us > longest ? us : longest;
  }
  if (print_family(out, "loop_stall_max_seconds", PRINT_GAUGE, "The longest turn so far") != 0)
    return -1;
  return print_seconds(out, "loop_stall_max_seconds", NULL, 0, longest);
}

static int
print_gateway(struct gateway *gateway, struct egw_buf *out)
{
  struct print_label version = { "version", PACKAGE_VERSION };
  size_t used = atomic_load_explicit(&gateway->budget.used, memory_order_relaxed);
  int state = atomic_load_explicit(&gateway->state, memory_order_relaxed);

  if (print_family(out, "build_info", PRINT_GAUGE, "The version that runs") != 0 ||
      print_sample(out, "build_info", &version, 1, 1) != 0)
    return -1;
  if (print_one(out, "ready", PRINT_GAUGE, "Started and not shutting down: 1, else 0",
                state == GATEWAY_READY) != 0 ||
      print_one(out, "workers", PRINT_GAUGE, "Worker threads", gateway->worker_count) != 0 ||
      print_one(out, "buffer_bytes", PRINT_GAUGE, "Bytes of the memory budget in use",
                (int64_t)used) != 0 ||
      print_one(out, "buffer_limit_bytes", PRINT_GAUGE, "The memory budget, 0: none",
                (int64_t)gateway->budget.limit) != 0)
    return -1;
  return print_one(out, "log_lost_total", PRINT_COUNTER, "Log lines lost to a stalled reader",
                   (int64_t)log_lost());
}

int
metrics_print(struct gateway *gateway, struct egw_buf *out)
{
  size_t i;

  if (print_gateway(gateway, out) != 0 || print_calls(gateway, out) != 0 ||
      print_latency(gateway, out) != 0)
    return -1;
  for (i = 0; i < sizeof client_families / sizeof client_families[0]; i++)
    if (print_array(gateway, out, &client_families[i], "client", client_names,
                    CLIENT_KINDS) != 0)
      return -1;
  if (print_array(gateway, out, &refusal_family, "reason", refusal_names,
                  REFUSED_COUNT) != 0 ||
      print_plain(gateway, out) != 0 || print_stall(gateway, out) != 0 ||
      print_upstreams(gateway, out) != 0 || print_heads(gateway, out) != 0 ||
      print_stages(gateway, out) != 0)
    return -1;
  return print_process(out);
}
