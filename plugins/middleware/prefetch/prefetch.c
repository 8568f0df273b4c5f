/* SPDX-License-Identifier: MIT */
/* prefetch: a client that walks through the chain gets the next blocks fetched before it
 * asks.
 *
 * shape.c tells the block number from the rest of a call, track.c whether a client's
 * numbers are a walk, walk.c keeps where it is and how far ahead is right, ahead.c fetches.
 * warm.c fetches new heads. This stage never changes a call or an answer, and never holds
 * one: it stands above the cache and coalesce, starts sub-calls below itself, and lets
 * those two do the rest. */
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "ahead.h"
#include "warm.h"

struct prefetch {
  int64_t after, window, in_flight, busy, max_walks, max_cost;
  uint64_t max_bytes, max_reply, idle;
  int by;
  struct egw_strings on_head;
  unsigned warm;                /* WARM_* of on_head */
  struct ahead_limits limits;
};

enum { BY_ADDRESS, BY_CONNECTION };
static const char *const by_names[] = { "address", "connection", NULL };

struct mine {
  struct ahead ahead;
  struct warm warm;
};

static const struct egw_option options[] = {
  { .name = "after", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, after),
    .fallback = "2", .min = 1, .max = 6,
    .help = "steps in a row that make a walk" },
  { .name = "window", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, window),
    .fallback = "32", .min = 1, .max = 1024,
    .help = "how many calls ahead of a client at most" },
  { .name = "in_flight", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, in_flight),
    .fallback = "32", .min = 1, .max = 1024,
    .help = "fetches of one worker at once" },
  { .name = "busy", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, busy),
    .fallback = "64", .min = 1, .max = 100000,
    .help = "real calls in flight at which nothing is fetched ahead" },
  { .name = "max_bytes", .type = EGW_OPT_SIZE, .offset = offsetof(struct prefetch, max_bytes),
    .fallback = "64MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "bytes of one worker that were fetched and not yet asked for" },
  { .name = "max_reply", .type = EGW_OPT_SIZE, .offset = offsetof(struct prefetch, max_reply),
    .fallback = "4MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "walks with longer results are left alone; what the cache keeps" },
  { .name = "max_cost", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, max_cost),
    .fallback = "100", .min = 1, .max = 100,
    .help = "methods that cost a node more are left alone" },
  { .name = "max_walks", .type = EGW_OPT_INT, .offset = offsetof(struct prefetch, max_walks),
    .fallback = "64", .min = 1, .max = 256,
    .help = "walks of one worker at once" },
  { .name = "idle", .type = EGW_OPT_DURATION, .offset = offsetof(struct prefetch, idle),
    .fallback = "2s", .min = 100, .max = 600000,
    .help = "a walk without a call for so long is over" },
  { .name = "by", .type = EGW_OPT_ENUM, .offset = offsetof(struct prefetch, by),
    .fallback = "address", .choices = by_names,
    .help = "whether HTTP calls of one address are one client's, or those of a connection" },
  { .name = "on_head", .type = EGW_OPT_LIST, .offset = offsetof(struct prefetch, on_head),
    .help = "what is fetched of each new block: block, full, receipts, logs" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_WALKS] = { .name = "walks", .kind = EGW_METRIC_COUNTER,
    .help = "walks that were recognised" },
  [METRIC_WALKING] = { .name = "walking", .kind = EGW_METRIC_GAUGE, .help = "walks going on" },
  [METRIC_FETCHED] = { .name = "fetched", .kind = EGW_METRIC_COUNTER,
    .help = "calls made ahead of clients" },
  [METRIC_USED] = { .name = "used", .kind = EGW_METRIC_COUNTER,
    .help = "of these, those a client came to ask for" },
  [METRIC_LATE] = { .name = "late", .kind = EGW_METRIC_COUNTER,
    .help = "of those used, the ones still under way then" },
  [METRIC_WASTED] = { .name = "wasted", .kind = EGW_METRIC_COUNTER,
    .help = "calls made ahead that nobody asked for" },
  [METRIC_BYTES] = { .name = "bytes", .kind = EGW_METRIC_COUNTER,
    .help = "bytes of results that were fetched" },
  [METRIC_HELD] = { .name = "held", .kind = EGW_METRIC_COUNTER,
    .help = "times that fetching was held back by a limit" },
  [METRIC_IN_FLIGHT] = { .name = "in_flight", .kind = EGW_METRIC_GAUGE,
    .help = "fetches under way" },
  [METRIC_WARMED] = { .name = "warmed", .kind = EGW_METRIC_COUNTER,
    .help = "calls made for new heads" },
  [METRIC_WARMED + 1] = EGW_METRIC_TABLE_END
};

static int
prefetch_configure(void *self, struct egw_conf *section)
{
  struct prefetch *p = self;
  size_t i;
  int r = 0;

  for (i = 0; i < p->on_head.n; i++) {
    unsigned bit = warm_bit(p->on_head.v[i]);

    if (bit == 0)
      r = egw_conf_error(section, "on_head", "\"%s\" is none of block, full, receipts, logs",
                         p->on_head.v[i]);
    p->warm |= bit;
  }
  p->limits = (struct ahead_limits){
    .after = (unsigned)p->after, .window = (unsigned)p->window,
    .in_flight = (unsigned)p->in_flight, .busy = (unsigned)p->busy,
    .max_walks = (unsigned)p->max_walks, .max_bytes = p->max_bytes, .max_reply = p->max_reply,
    .idle_ms = p->idle,
  };
  return r;
}

static int
prefetch_worker_start(const void *self, void *mine, struct egw_worker *worker)
{
  const struct prefetch *p = self;
  struct mine *m = mine;

  (void)worker;
  ahead_start(&m->ahead, &p->limits);
  return 0;
}

static void
prefetch_worker_stop(const void *self, void *mine, struct egw_worker *worker)
{
  struct mine *m = mine;

  (void)self;
  ahead_stop(&m->ahead, worker);
}

static bool
prefetch_wants(const void *self, const struct egw_method_info *method)
{
  const struct prefetch *p = self;

  if (method == NULL || !method->idempotent || method->changes_node ||
      method->block_param < 0 || method->cost > p->max_cost)
    return false;
  return method->method_class == EGW_CLASS_BY_BLOCK || method->method_class == EGW_CLASS_RANGE;
}

static uint64_t
hash_text(uint64_t h, const char *text)
{
  for (; text != NULL && *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return (h ^ 0x2f) * UINT64_C(0x100000001b3);
}

/* Who it is: a WebSocket or IPC connection is a client; over HTTP a client may have many,
 * or a new one for each call. */
static uint64_t
client_of(const struct prefetch *p, const struct egw_call *call)
{
  struct egw_client client;

  egw_client(call, &client);
  if (p->by == BY_CONNECTION || strcmp(client.transport, "http") != 0)
    return client.session * UINT64_C(0x9e3779b97f4a7c15);
  return hash_text(hash_text(UINT64_C(0xcbf29ce484222325), client.peer), client.identity);
}

static enum egw_verdict
prefetch_request(const struct egw_at *at, struct egw_call *call)
{
  struct mine *m = at->mine;
  struct shape shape;

  if (shape_read(&shape, egw_method_info(call), egw_params(call)))
    ahead_request(&m->ahead, at, call, &shape, client_of(at->self, call), at->state);
  return EGW_NEXT;
}

static enum egw_verdict
prefetch_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct mine *m = at->mine;

  (void)call;
  ahead_reply(&m->ahead, at->state, reply);
  return EGW_NEXT;
}

static void
prefetch_head(const struct egw_at *at, const struct egw_head *head)
{
  const struct prefetch *p = at->self;
  struct mine *m = at->mine;

  if (p->warm != 0 && egw_worker_index(at->worker) == 0)
    warm_head(&m->warm, at, head, p->warm);
}

static const struct egw_middleware prefetch = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "prefetch", .version = "1.0",
              .summary = "fetch ahead for clients that walk through the chain",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct prefetch), .worker_size = sizeof(struct mine),
              .configure = prefetch_configure, .worker_start = prefetch_worker_start,
              .worker_stop = prefetch_worker_stop },
  .call_size = sizeof(struct ahead_call),
  .kinds = EGW_KIND_CALL,
  .need = EGW_NEED_NONE,
  .request = prefetch_request,
  .reply = prefetch_reply,
  .head = prefetch_head,
  .wants = prefetch_wants,
};
EGW_REGISTER(prefetch)
