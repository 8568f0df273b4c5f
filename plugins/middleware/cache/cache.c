/* SPDX-License-Identifier: MIT */
/* The middleware `cache` itself: its options, metrics and life. See cache.h. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

static const char *const tags_choices[] = { "auto", "always", "never", NULL };

static const struct egw_option options[] = {
  { .name = "memory", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, memory),
    .fallback = "256MiB", .min = 1 << 20, .max = INT64_C(1) << 44,
    .help = "bytes of answers, keys and bookkeeping kept in memory" },
  { .name = "max_value", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, max_value),
    .fallback = "4MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "longer results are not kept" },
  { .name = "tags", .type = EGW_OPT_ENUM, .offset = offsetof(struct cache, tags),
    .fallback = "auto", .choices = tags_choices,
    .help = "when latest, safe, finalized and left out blocks are resolved" },
  TIERS_OPTIONS(cache, below),
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_HITS] = { .name = "hits", .kind = EGW_METRIC_COUNTER,
                    .help = "calls answered from the cache" },
  [METRIC_MISSES] = { .name = "misses", .kind = EGW_METRIC_COUNTER,
                      .help = "calls that could have been kept, but were not here" },
  [METRIC_BYPASSES] = { .name = "bypasses", .kind = EGW_METRIC_COUNTER,
                        .help = "calls whose answer could not be kept" },
  [METRIC_STORED] = { .name = "stored", .kind = EGW_METRIC_COUNTER, .help = "answers put in" },
  [METRIC_EVICTED] = { .name = "evicted", .kind = EGW_METRIC_COUNTER,
                       .help = "answers thrown out for room" },
  [METRIC_EVICTED_SECONDS] = { .name = "evicted_seconds", .kind = EGW_METRIC_COUNTER,
                               .help = "their age when they went, summed up" },
  [METRIC_REORGED] = { .name = "reorged", .kind = EGW_METRIC_COUNTER,
                       .help = "answers dropped as their block is not canonical any more" },
  [METRIC_FLUSHES] = { .name = "flushes", .kind = EGW_METRIC_COUNTER,
                       .help = "times everything was thrown out because history changed" },
  [METRIC_HIT_BYTES] = { .name = "hit_bytes", .kind = EGW_METRIC_COUNTER,
                         .help = "bytes of results answered from the cache" },
  [METRIC_BYTES] = { .name = "bytes", .kind = EGW_METRIC_GAUGE,
                     .help = "bytes of answers, keys and bookkeeping in memory" },
  [METRIC_ENTRIES] = { .name = "entries", .kind = EGW_METRIC_GAUGE,
                       .help = "answers in memory" },
  [METRIC_REWRITTEN] = { .name = "rewritten", .kind = EGW_METRIC_COUNTER,
                         .help = "calls sent on with their block by hash or number" },
  [METRIC_RESENT] = { .name = "resent", .kind = EGW_METRIC_COUNTER,
                      .help = "calls sent once more as the client wrote them" },
  [METRIC_REFUSED] = { .name = "refused", .kind = EGW_METRIC_COUNTER,
                       .help = "times a method's block by hash was found to be refused" },
  TIERS_METRICS(METRIC_TIERS),
  EGW_METRIC_TABLE_END
};

/* --- life -------------------------------------------------------------------------------- */

static int
cache_configure(void *self, struct egw_conf *section)
{
  struct cache *c = self;

  c->shared = calloc(1, sizeof(*c->shared));
  if (c->shared != NULL)
    c->shared->store = store_new(c->memory);
  if (c->shared == NULL || c->shared->store == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  pthread_mutex_init(&c->shared->lock, NULL); /* can't fail without attributes */
  return tiers_configure(section, &c->below, c->max_value, METRIC_TIERS, &c->shared->tiers);
}

static void
cache_unconfigure(void *self)
{
  struct cache *c = self;

  if (c->shared == NULL)
    return;
  if (c->shared->store != NULL)
    pthread_mutex_destroy(&c->shared->lock);
  tiers_free(c->shared->tiers);
  store_free(c->shared->store);
  free(c->shared);
}

static int
cache_worker_start(const void *self, void *mine, struct egw_worker *worker)
{
  const struct cache *c = self;

  ((struct mine *)mine)->tiers = tiers_start(c->shared->tiers, worker);
  return 0;
}

static void
cache_worker_stop(const void *self, void *mine, struct egw_worker *worker)
{
  struct mine *m = mine;

  (void)self;
  (void)worker;
  tiers_stop(m->tiers);
  egw_buf_unref(m->tip);
}

static bool
cache_wants(const void *self, const struct egw_method_info *method)
{
  const struct cache *c = self;

  if (method != NULL && method->method_class == EGW_CLASS_HEAD && c->tags == TAGS_NEVER)
    return false;
  return rules_want(method);
}

/* --- what its parts share ---------------------------------------------------------------- */

/* The worker's slot for a method; there are always free ones. */
struct method *
cache_method(struct mine *mine, const struct egw_method_info *info)
{
  size_t i = (size_t)((uintptr_t)info / sizeof(*info)) & (METHODS - 1);

  while (mine->methods[i].rules.info != NULL && mine->methods[i].rules.info != info)
    i = (i + 1) & (METHODS - 1);
  if (mine->methods[i].rules.info == NULL)
    rules_of(info, &mine->methods[i].rules);
  return &mine->methods[i];
}

void
cache_count(const struct egw_at *at, const struct store_change *change)
{
  egw_count(at, METRIC_BYTES, change->bytes);
  egw_count(at, METRIC_ENTRIES, change->entries);
  if (change->evicted != 0) {
    egw_count(at, METRIC_EVICTED, (int64_t)change->evicted);
    egw_count(at, METRIC_EVICTED_SECONDS, (int64_t)(change->evicted_ms / 1000));
  }
}

bool
cache_keeps(const struct egw_at *at, struct egw_slice key, size_t len, bool pinned, bool lasting)
{
  return store_fits(cache_shared(at)->store, key, len, pinned) ||
         (lasting && ((const struct mine *)at->mine)->tiers != NULL);
}

void
cache_put(const struct egw_at *at, struct egw_slice key, struct egw_buf *value,
    const struct store_pin *pin)
{
  struct store_terms terms = { pin, egw_now_ms(at->worker),
                               ((const struct state *)at->state)->cleared };
  struct store_change change = { 0 };

  if (store_put(cache_shared(at)->store, key, egw_buf_ref(value), &terms, &change))
    egw_count(at, METRIC_STORED, 1);
  cache_count(at, &change);
}

uint64_t
cache_tip_age(const struct egw_at *at, const struct egw_head *head)
{
  struct mine *mine = at->mine;
  uint64_t now = egw_now_ms(at->worker);

  if (mine->seen.number != head->tip.number ||
      memcmp(mine->seen.hash, head->tip.hash, sizeof(head->tip.hash)) != 0) {
    mine->seen = head->tip;
    mine->seen_ms = now;
  }
  return now - mine->seen_ms;
}

bool
cache_is_of_chain(struct egw_slice key)
{
  static const struct key_identity unknown;

  return memcmp(key.ptr, unknown.bytes, KEY_IDENTITY) != 0;
}

void
cache_lasting(const struct egw_at *at, struct egw_slice key, struct egw_buf *value)
{
  struct tiers_desk *tiers = ((struct mine *)at->mine)->tiers;
  const struct store *store = cache_shared(at)->store;
  const struct state *state = at->state;

  if (!cache_is_of_chain(key) || store_cleared(store) != state->cleared)
    return;
  tiers_keep(tiers, at, key, value);
  if (store_cleared(store) != state->cleared)
    tiers_flush(tiers, at, true);
}

/* A command that no answer came to may have been carried out all the same. */
static void
cache_finish(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  if (((const struct state *)at->state)->phase == PHASE_CONTROL)
    cache_flush(at, true);
}

static const struct egw_middleware cache = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "cache", .version = "1.1",
              .summary = "keep answers as long as they are true",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct cache), .worker_size = sizeof(struct mine),
              .configure = cache_configure, .unconfigure = cache_unconfigure,
              .worker_start = cache_worker_start, .worker_stop = cache_worker_stop },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_NOTIFICATION | EGW_KIND_SUBCALL,
  .need = EGW_NEED_WHOLE,
  .request = cache_request,
  .reply = cache_reply,
  .cancel = cache_cancel,
  .finish = cache_finish,
  .wants = cache_wants,
  .head = cache_head,
};
EGW_REGISTER(cache)
