/* SPDX-License-Identifier: MIT */
/* logsplit: queries of logs or traces over more blocks than an upstream takes are cut into
 * parts, which go down by themselves (through the cache, coalesce, failover) and are joined
 * in order.
 *
 * filter.c reads and prints filters, complaint.c what upstreams say is too much, parts.c
 * cuts, join.c joins, onechain.c sees to it that all are of one chain, split.c runs it. */
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "split.h"

struct logsplit {
  int64_t max_range, parallel, max_parts, retries;
  uint64_t max_result, remember;
  struct split_limits limits;
};

static const struct egw_option options[] = {
  { .name = "max_range", .type = EGW_OPT_INT, .offset = offsetof(struct logsplit, max_range),
    .fallback = "10000", .min = 1, .max = INT64_C(1) << 40,
    .help = "blocks of a part; longer ranges are cut" },
  { .name = "parallel", .type = EGW_OPT_INT, .offset = offsetof(struct logsplit, parallel),
    .fallback = "4", .min = 1, .max = 1000,
    .help = "parts of one call under way at once" },
  { .name = "max_parts", .type = EGW_OPT_INT, .offset = offsetof(struct logsplit, max_parts),
    .fallback = "1000", .min = 1, .max = 10000,
    .help = "calls that need more parts are refused" },
  { .name = "max_result", .type = EGW_OPT_SIZE,
    .offset = offsetof(struct logsplit, max_result),
    .fallback = "64MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "calls with a longer result are refused" },
  { .name = "retries", .type = EGW_OPT_INT, .offset = offsetof(struct logsplit, retries),
    .fallback = "1", .min = 0, .max = 100,
    .help = "how often a part whose upstream failed is asked for again" },
  { .name = "remember", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct logsplit, remember),
    .fallback = "10m", .min = 0, .max = 86400000,
    .help = "how long the limit of an upstream, as its error tells, is kept to" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_SPLIT] = { .name = "split", .kind = EGW_METRIC_COUNTER,
    .help = "calls that were answered in parts" },
  [METRIC_PARTS] = { .name = "parts", .kind = EGW_METRIC_COUNTER,
    .help = "parts that were asked for" },
  [METRIC_CUT] = { .name = "cut", .kind = EGW_METRIC_COUNTER,
    .help = "parts that were cut again after an error" },
  [METRIC_RETRIED] = { .name = "retried", .kind = EGW_METRIC_COUNTER,
    .help = "parts that were asked for again after a failure" },
  [METRIC_REDONE] = { .name = "redone", .kind = EGW_METRIC_COUNTER,
    .help = "calls that were begun anew because the chain changed" },
  [METRIC_REFUSED] = { .name = "refused", .kind = EGW_METRIC_COUNTER,
    .help = "calls that could not be answered in parts" },
  [METRIC_LEARNED] = { .name = "learned", .kind = EGW_METRIC_COUNTER,
    .help = "limits of upstreams that were learned from errors" },
  [METRIC_LEARNED + 1] = EGW_METRIC_TABLE_END
};

static int
logsplit_configure(void *self, struct egw_conf *section)
{
  struct logsplit *l = self;

  (void)section;
  l->limits = (struct split_limits){
    .parallel = (unsigned)l->parallel, .max_parts = (unsigned)l->max_parts,
    .retries = (unsigned)l->retries, .max_result = l->max_result,
    .max_range = (uint64_t)l->max_range, .remember_ms = l->remember,
  };
  return 0;
}

/* Methods whose result is one array over a range of blocks. erigon_getLatestLogs counts
 * from the end. */
static bool
logsplit_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  return method != NULL && method->method_class == EGW_CLASS_RANGE &&
         method->block_kind == EGW_BLOCK_FILTER && method->block_param == 0 &&
         strcmp(method->name, "erigon_getLatestLogs") != 0;
}

static enum egw_verdict
logsplit_request(const struct egw_at *at, struct egw_call *call)
{
  const struct logsplit *l = at->self;
  struct split *s = at->state;
  uint64_t size;

  s->can = filter_read(&s->filter, egw_params(call), egw_head(at));
  if (!s->can)
    return EGW_NEXT;
  s->call = call;
  s->logs = strcmp(egw_method_info(call)->name, "trace_filter") != 0;
  s->at = *at;
  s->limits = &l->limits;
  s->learned = at->mine;
  s->parts.max = l->limits.max_parts;
  size = learned_limit(s->learned, at, l->limits.max_range);
  return s->filter.to - s->filter.from < size ? EGW_NEXT : split_begin(s, size);
}

/* The whole range went down and came back: an error that it is too much begins the cutting. */
static enum egw_verdict
logsplit_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct split *s = at->state;
  uint64_t from = s->filter.from, to = s->filter.to;
  struct complaint why;

  (void)call;
  if (!s->can || s->over || s->parts.count != 0 || !reply->is_error)
    return EGW_NEXT;
  why = complaint_read(reply, from, to);
  if (why.kind == COMPLAINT_NONE)
    return EGW_NEXT;
  learned_note(s->learned, at, s->limits, &why, reply, to - from + 1);
  return why.kind == COMPLAINT_RANGE && why.blocks != 0 ? split_begin(s, why.blocks)
                                                        : split_begin_by(s, &why);
}

static enum egw_verdict
logsplit_timer(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  return split_timer(at->state);
}

static void
logsplit_cancel(const struct egw_at *at, struct egw_call *call)
{
  struct split *s = at->state;

  (void)call;
  s->over = true;
}

static void
logsplit_finish(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  split_end(at->state);
}

/* Nothing is to be done; but with this callback the head is followed from the start on, and
 * known when the first call comes. */
static void
logsplit_head(const struct egw_at *at, const struct egw_head *head)
{
  (void)at;
  (void)head;
}

static const struct egw_middleware logsplit = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "logsplit", .version = "1.0",
              .summary = "cut long ranges of logs into parts and join the results",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct logsplit), .worker_size = sizeof(struct learned),
              .configure = logsplit_configure },
  .call_size = sizeof(struct split),
  .kinds = EGW_KIND_CALL | EGW_KIND_SUBCALL,
  .need = EGW_NEED_HEAD,
  .request = logsplit_request,
  .reply = logsplit_reply,
  .timer = logsplit_timer,
  .cancel = logsplit_cancel,
  .finish = logsplit_finish,
  .head = logsplit_head,
  .wants = logsplit_wants,
};
EGW_REGISTER(logsplit)
