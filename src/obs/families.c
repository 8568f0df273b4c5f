/* SPDX-License-Identifier: MIT */
/* Metrics of upstreams and of stages: cells of links and instances summed over the workers. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <string.h>
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "obs/families.h"
#include "obs/print.h"
#include "upstream/upstream.h"

#define FAMILY_NAME_MAX 128

int64_t
workers_sum(const struct gateway *gateway, size_t offset)
{
  int64_t sum = 0;
  unsigned i;

  for (i = 0; i < gateway->worker_count; i++) {
    const char *metrics = (const char *)gateway->workers[i].metrics;

    if (metrics != NULL)
      sum += metric_read((const metric_cell *)(const void *)(metrics + offset));
  }
  return sum;
}

/* Links and stages are made by their workers: nobody else may look before they say so. */
static bool
workers_started(const struct gateway *gateway)
{
  return atomic_load_explicit(&gateway->started, memory_order_acquire);
}

/* --- upstreams -------------------------------------------------------------------------- */

int64_t
link_sum(const struct gateway *gateway, const struct upstream *upstream, size_t offset)
{
  int64_t sum = 0;
  unsigned i;

  for (i = 0; i < gateway->worker_count && workers_started(gateway); i++) {
    struct egw_link *const *links = gateway->workers[i].links;

    if (links != NULL && links[upstream->index] != NULL) {
      const char *metrics = (const char *)&links[upstream->index]->metrics;

      sum += metric_read((const metric_cell *)(const void *)(metrics + offset));
    }
  }
  return sum;
}

#define LINK_CELL(member) offsetof(struct link_metrics, member)

static const char *const attempt_names[] = {
  [EGW_OK] = "ok",
  [EGW_NOT_SENT] = "not_sent",
  [EGW_MAYBE_SENT] = "maybe_sent",
  [EGW_BAD_REPLY] = "bad_reply",
  [EGW_TIMED_OUT] = "timed_out",
  [EGW_ABORTED] = "aborted",
};

static int
print_attempts(const struct gateway *gateway, struct egw_buf *out)
{
  size_t i;
  unsigned outcome;

  if (print_family(out, "upstream_requests_total", PRINT_COUNTER,
                   "Requests to upstreams, by how they ended") != 0)
    return -1;
  for (i = 0; i < gateway->upstream_count; i++)
    for (outcome = 0; outcome <= EGW_ABORTED; outcome++) {
      const struct upstream *upstream = &gateway->upstreams[i];
      struct print_label labels[] = {
        { "network", upstream->network->name },
        { "upstream", upstream->name },
        { "outcome", attempt_names[outcome] },
      };
      size_t cell = LINK_CELL(outcomes) + outcome * sizeof(metric_cell);

      if (print_sample(out, "upstream_requests_total", labels, 3,
                       link_sum(gateway, upstream, cell)) != 0)
        return -1;
    }
  return 0;
}

enum link_unit { UNIT_PLAIN, UNIT_ALL, UNIT_MICROSECONDS };

static const struct link_family {
  const char *name;
  enum print_kind kind;
  enum link_unit unit;
  size_t cell;
  const char *help;
} link_families[] = {
  { "upstream_up", PRINT_GAUGE, UNIT_ALL, LINK_CELL(up), "Usable on every worker: 1" },
  { "upstream_errors_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(errors),
    "Replies that were JSON-RPC errors" },
  { "upstream_in_flight", PRINT_GAUGE, UNIT_PLAIN, LINK_CELL(in_flight),
    "Requests not answered yet" },
  { "upstream_connects_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(connects),
    "Connections made" },
  { "upstream_disconnects_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(disconnects),
    "Connections lost or closed" },
  { "upstream_received_bytes_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(bytes_in),
    "Bytes of replies" },
  { "upstream_sent_bytes_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(bytes_out),
    "Bytes of requests" },
  { "upstream_probes_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(probes),
    "Probes of upstreams that were down" },
  { "upstream_batches_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(batches),
    "Arrays of calls sent in one request" },
  { "upstream_batched_calls_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(batched),
    "Calls in upstream_batches_total" },
  { "upstream_batch_refusals_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(batch_refusals),
    "Arrays that were refused and sent anew" },
  { "upstream_latency_seconds_total", PRINT_COUNTER, UNIT_MICROSECONDS,
    LINK_CELL(latency_sum_us), "Time spent waiting for replies" },
  { "upstream_latency_replies_total", PRINT_COUNTER, UNIT_PLAIN, LINK_CELL(latency_count),
    "Replies in upstream_latency_seconds_total" },
};

static int
print_link_family(const struct gateway *gateway, struct egw_buf *out,
                  const struct link_family *family)
{
  size_t i;

  if (print_family(out, family->name, family->kind, family->help) != 0)
    return -1;
  for (i = 0; i < gateway->upstream_count; i++) {
    const struct upstream *upstream = &gateway->upstreams[i];
    struct print_label labels[] = {
      { "network", upstream->network->name },
      { "upstream", upstream->name },
    };
    int64_t n = link_sum(gateway, upstream, family->cell);

    if (family->unit == UNIT_ALL)
      n = n > 0 && n == (int64_t)gateway->worker_count;
    if (family->unit == UNIT_MICROSECONDS) {
      if (print_seconds(out, family->name, labels, 2, n) != 0)
        return -1;
    } else if (print_sample(out, family->name, labels, 2, n) != 0) {
      return -1;
    }
  }
  return 0;
}

int
print_upstreams(struct gateway *gateway, struct egw_buf *out)
{
  size_t i;

  if (print_attempts(gateway, out) != 0)
    return -1;
  for (i = 0; i < sizeof link_families / sizeof link_families[0]; i++)
    if (print_link_family(gateway, out, &link_families[i]) != 0)
      return -1;
  return 0;
}

/* --- stages --------------------------------------------------------------------------- */

static int64_t
stage_sum(const struct gateway *gateway, const struct egw_stage *stage, unsigned id)
{
  int64_t sum = 0;
  unsigned i;

  for (i = 0; i < gateway->worker_count && workers_started(gateway); i++) {
    const struct stage_mine *mine = gateway->workers[i].stages;

    if (mine != NULL && mine[stage->index].metrics != NULL)
      sum += metric_read(&mine[stage->index].metrics[id]);
  }
  return sum;
}

/* "<plugin>_<name>[_total]" in the characters a metric may have. */
static void
stage_family_name(char *name, const struct plugin *plugin, const struct egw_metric *metric)
{
  char *c;

  (void)snprintf(name, FAMILY_NAME_MAX, "%s_%s%s", plugin->head->name, metric->name,
                 metric->kind == EGW_METRIC_COUNTER ? "_total" : "");
  for (c = name; *c != '\0'; c++)
    if ((*c < 'a' || *c > 'z') && (*c < 'A' || *c > 'Z') && (*c < '0' || *c > '9'))
      *c = '_';
}

/* The samples of one metric of a plugin: a row for each instance in any network. */
static int
print_stage_samples(const struct gateway *gateway, struct egw_buf *out, const char *name,
                    const struct plugin *plugin, unsigned id)
{
  size_t n;
  unsigned s;

  for (n = 0; n < gateway->network_count; n++) {
    const struct network *network = &gateway->networks[n];

    for (s = 0; s < network->stage_count; s++) {
      const struct egw_stage *stage = &network->stages[s];
      struct print_label labels[] = { { "network", network->name },
                                      { "instance", stage->name } };

      if (stage->plugin == plugin &&
          print_sample(out, name, labels, 2, stage_sum(gateway, stage, id)) != 0)
        return -1;
    }
  }
  return 0;
}

static bool
plugin_in_use(const struct gateway *gateway, const struct plugin *plugin)
{
  size_t n;
  unsigned s;

  for (n = 0; n < gateway->network_count; n++)
    for (s = 0; s < gateway->networks[n].stage_count; s++)
      if (gateway->networks[n].stages[s].plugin == plugin)
        return true;
  return false;
}

int
print_stages(struct gateway *gateway, struct egw_buf *out)
{
  const struct plugin *plugin;
  char name[FAMILY_NAME_MAX];
  unsigned id;

  for (plugin = gateway->loader.plugins; plugin != NULL; plugin = plugin->next) {
    if (!plugin_in_use(gateway, plugin))
      continue;
    for (id = 0; id < plugin->metric_count; id++) {
      const struct egw_metric *metric = &plugin->head->metrics[id];

      stage_family_name(name, plugin, metric);
      if (print_family(out, name,
                       metric->kind == EGW_METRIC_COUNTER ? PRINT_COUNTER : PRINT_GAUGE,
                       metric->help != NULL ? metric->help : "") != 0 ||
          print_stage_samples(gateway, out, name, plugin, id) != 0)
        return -1;
    }
  }
  return 0;
}
