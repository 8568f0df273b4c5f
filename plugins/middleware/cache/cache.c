/* SPDX-License-Identifier: MIT */
/* cache: answers that can't change any more are kept, and given to whoever asks the same again.
 *
 * What "can't change" means is in rules.c; what is final comes from finality.c; the bytes are in
 * store.c. A call's answer is kept only if its params (or its result) were final when the answer
 * came, not when the call went down. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "finality.h"
#include "rules.h"
#include "store.h"

enum metric { METRIC_HITS, METRIC_MISSES, METRIC_STORED, METRIC_EVICTED, METRIC_FLUSHES, METRIC_HIT_BYTES };

struct cache {
  uint64_t memory, max_value, interval;
  struct shared *shared;
};

/* What all workers share; the instance itself is const once they run. */
struct shared {
  struct store *store;
  struct finality finality;
  atomic_uint flushes;
};

struct state {
  bool asked;                   /* looked up here, and missed */
  unsigned flushes;             /* when it went down */
};

static const struct egw_option options[] = {
  { .name = "memory", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, memory),
    .fallback = "256MiB", .min = 1 << 20, .max = INT64_C(1) << 44,
    .help = "bytes of answers, keys and bookkeeping kept in memory" },
  { .name = "max_value", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, max_value),
    .fallback = "4MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "longer results are not kept" },
  { .name = "poll_interval", .type = EGW_OPT_DURATION, .offset = offsetof(struct cache, interval),
    .fallback = "4s", .min = 100, .max = 3600000,
    .help = "how often the finalized block is asked for" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  { .name = "hits", .kind = EGW_METRIC_COUNTER, .help = "calls answered from the cache" },
  { .name = "misses", .kind = EGW_METRIC_COUNTER, .help = "calls that could have been kept, but were not here" },
  { .name = "stored", .kind = EGW_METRIC_COUNTER, .help = "answers put in" },
  { .name = "evicted", .kind = EGW_METRIC_COUNTER, .help = "answers thrown out for room" },
  { .name = "flushes", .kind = EGW_METRIC_COUNTER, .help = "times everything was thrown out because history changed" },
  { .name = "hit_bytes", .kind = EGW_METRIC_COUNTER, .help = "bytes of results answered from the cache" },
  EGW_METRIC_TABLE_END
};

/* --- life ------------------------------------------------------------------------------------------------ */

static void
on_history_changed(void *arg)
{
  struct shared *shared = arg;

  egw_count(&shared->finality.at, METRIC_FLUSHES, 1);
  atomic_fetch_add(&shared->flushes, 1);
  store_clear(shared->store);
}

static int
cache_configure(void *self, struct egw_conf *section)
{
  struct cache *c = self;

  c->shared = calloc(1, sizeof(*c->shared));
  if (c->shared != NULL)
    c->shared->store = store_new(c->memory);
  if (c->shared == NULL || c->shared->store == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  finality_init(&c->shared->finality, c->interval, on_history_changed, c->shared);
  return 0;
}

static void
cache_unconfigure(void *self)
{
  struct cache *c = self;

  if (c->shared != NULL)
    store_free(c->shared->store);
  free(c->shared);
}

static void
cache_worker_stop(const void *self, void *mine, struct egw_worker *worker)
{
  const struct cache *c = self;

  (void)mine;
  finality_stop(&c->shared->finality, worker);
}

static bool
cache_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  return rules_want(method);
}

/* --- calls --------------------------------------------------------------------------------------------------- */

static enum keep
judge(const struct shared *shared, const struct egw_call *call, bool *known, uint64_t *number)
{
  *known = atomic_load_explicit(&shared->finality.known, memory_order_acquire);
  *number = atomic_load_explicit(&shared->finality.number, memory_order_relaxed);
  return rules_params(egw_method_info(call), egw_params(call), *known, *number);
}

static enum egw_verdict
cache_request(const struct egw_at *at, struct egw_call *call)
{
  struct shared *shared = ((const struct cache *)at->self)->shared;
  struct store_key key = { egw_method(call), egw_params(call) };
  struct state *state = at->state;
  struct egw_buf *value;
  uint64_t number;
  bool known;

  finality_touch(&shared->finality, at);
  if (judge(shared, call, &known, &number) == KEEP_NO)
    return EGW_NEXT;
  value = store_get(shared->store, &key);
  if (value != NULL) {
    egw_count(at, METRIC_HITS, 1);
    egw_count(at, METRIC_HIT_BYTES, (int64_t)egw_buf_slice(value).len);
    return egw_answer_part(call, value, egw_buf_slice(value), false);
  }
  egw_count(at, METRIC_MISSES, 1);
  state->asked = true;
  state->flushes = atomic_load(&shared->flushes);
  return EGW_NEXT;
}

static enum egw_verdict
cache_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  const struct cache *c = at->self;
  const struct state *state = at->state;
  struct store_key key = { egw_method(call), egw_params(call) };
  struct egw_buf *copy;
  unsigned evicted;
  uint64_t number;
  bool known;
  enum keep keep;

  if (reply->outcome != EGW_OK || reply->is_error || reply->partial ||
      reply->body.len > c->max_value || !state->asked)
    return EGW_NEXT;
  keep = judge(c->shared, call, &known, &number);
  if (!rules_result(keep, reply->body, known, number) ||
      !rules_matches(egw_method_info(call), egw_params(call), reply->body) ||
      state->flushes != atomic_load(&c->shared->flushes))
    return EGW_NEXT;
  /* A copy of its own size: the reply's buffer has its envelope and room to spare. */
  copy = egw_buf_copy(reply->body);
  if (copy == NULL)
    return EGW_NEXT;
  if (store_put(c->shared->store, &key, copy, &evicted))
    egw_count(at, METRIC_STORED, 1);
  egw_count(at, METRIC_EVICTED, evicted);
  return EGW_NEXT;
}

static const struct egw_middleware cache = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "cache", .version = "1.0",
              .summary = "keep answers that can't change any more",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct cache),
              .configure = cache_configure, .unconfigure = cache_unconfigure,
              .worker_stop = cache_worker_stop },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_SUBCALL,
  .need = EGW_NEED_WHOLE,
  .request = cache_request,
  .reply = cache_reply,
  .wants = cache_wants,
};
EGW_REGISTER(cache)
