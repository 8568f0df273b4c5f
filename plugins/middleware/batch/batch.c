/* SPDX-License-Identifier: MIT */
/* batch: lets cheap calls to a busy node over HTTP travel in one request.
 *
 * Only the policy is here: which calls, how many, from when on. Carrying them is the core's
 * part, which also learns what a node takes. */
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "../../common/pattern.h"

enum metric { METRIC_OFFERED };

struct batch {
  int64_t max_calls;
  uint64_t max_bytes;
  int64_t busy;
  int64_t max_cost;
  struct egw_strings deny;
  struct egw_batching limits;
};

static const struct egw_option options[] = {
  { .name = "max_calls", .type = EGW_OPT_INT, .offset = offsetof(struct batch, max_calls),
    .fallback = "32", .min = 2, .max = 1000, .help = "calls of one array" },
  { .name = "max_bytes", .type = EGW_OPT_SIZE, .offset = offsetof(struct batch, max_bytes),
    .fallback = "64KiB", .min = 1024, .max = 1 << 24, .help = "bytes of one array" },
  { .name = "busy", .type = EGW_OPT_INT, .offset = offsetof(struct batch, busy),
    .fallback = "4", .min = 2, .max = 100000,
    .help = "calls in flight to the node, of one worker, from which it counts as busy" },
  { .name = "max_cost", .type = EGW_OPT_INT, .offset = offsetof(struct batch, max_cost),
    .fallback = "10", .min = 1, .max = 100,
    .help = "cost of a method (1 trivial, 100 heavy) up to which its calls may travel "
        "together" },
  { .name = "deny", .type = EGW_OPT_LIST, .offset = offsetof(struct batch, deny),
    .help = "methods whose calls always go alone; a pattern may end in *" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  { .name = "offered", .kind = EGW_METRIC_COUNTER, .help = "calls that may travel with "
   "others" },
  EGW_METRIC_TABLE_END
};

static int
batch_configure(void *self, struct egw_conf *section)
{
  struct batch *b = self;

  (void)section;
  b->limits = (struct egw_batching){ .max_calls = (uint32_t)b->max_calls,
                                     .max_bytes = (uint32_t)b->max_bytes,
                                     .busy = (uint32_t)b->busy };
  return 0;
}

/* What may be sent twice and is soon answered: others would wait for it. */
static bool
batch_wants(const void *self, const struct egw_method_info *method)
{
  const struct batch *b = self;

  return method != NULL && method->idempotent && !method->changes_node &&
         method->method_class != EGW_CLASS_SUBSCRIPTION &&
         method->method_class != EGW_CLASS_BROADCAST && method->cost <= b->max_cost &&
         !pattern_listed(&b->deny, (struct egw_slice){ method->name, strlen(method->name) });
}

static enum egw_verdict
batch_request(const struct egw_at *at, struct egw_call *call)
{
  const struct batch *b = at->self;

  egw_may_batch(call, &b->limits);
  egw_count(at, METRIC_OFFERED, 1);
  return EGW_NEXT;
}

static const struct egw_middleware batch = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "batch", .version = "1.0",
              .summary = "let cheap calls to a busy node over HTTP travel in one request",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct batch),
              .configure = batch_configure },
  .kinds = EGW_KIND_CALL | EGW_KIND_NOTIFICATION | EGW_KIND_SUBCALL,
  .need = EGW_NEED_NONE,
  .request = batch_request,
  .wants = batch_wants,
};

EGW_REGISTER(batch)
