/* SPDX-License-Identifier: MIT */
/* ratelimit: how many calls a client may make, and all clients together. What is over the
 * limit is answered with -32005 and the time after which it will be let through, in the forms
 * that client libraries look for, and never reaches a node.
 *
 * A client is who a stage above says it is (egw_set_identity), else the address its connection
 * comes from, or that a trusted proxy names. */
#include "config.h"
#include "ratelimit.h"

#include <inttypes.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>
#include "ledger.h"

#define RATE_LIMIT_EXCEEDED (-32005)
#define MESSAGE "rate limit exceeded"

enum metric { METRIC_ALLOWED, METRIC_REFUSED, METRIC_CLIENTS, METRIC_EVICTED,
              METRIC_TOLD, METRIC_UNTOLD };

struct ratelimit_worker {
  struct ledger *ledger;         /* or NULL */
};

/* A stage above may send a call down again: it is let through once it has been. */
struct ratelimit_call {
  bool passed;
};

/* --- calls ------------------------------------------------------------------------------- */

static bool
is_exempt(const struct ratelimit *self, const struct egw_client *client,
          const struct address *address)
{
  if (self->exempt_local && client->local)
    return true;
  for (size_t i = 0; i < self->net_count; i++)
    if (address_in_net(address, &self->nets[i]))
      return true;
  return false;
}

/* The time is said in both forms in use: in the message, and as seconds in the data. With the
 * status 429 the libraries that look at nothing else wait too. */
static enum egw_verdict
refuse(const struct ratelimit *self, struct egw_call *call, uint64_t wait_ms)
{
  struct egw_buf *error = egw_buf_new(160);
  unsigned decimals = 3, rest = (unsigned)(wait_ms % 1000);

  if (self->http_status)
    egw_http_status(call, 429);
  egw_explain(call, "ratelimit: refused, %" PRIu64 " ms too early", wait_ms);
  for (; decimals > 1 && rest % 10 == 0; decimals--)
    rest /= 10;
  if (error != NULL &&
      egw_buf_printf(error,
                     "{\"code\":%d,\"message\":\"" MESSAGE ", try again in %" PRIu64 "ms\","
                     "\"data\":{\"rate\":{\"backoff_seconds\":%" PRIu64 ".%0*u}}}",
                     RATE_LIMIT_EXCEEDED, wait_ms, wait_ms / 1000, (int)decimals, rest) == 0)
    return egw_answer_error(call, error);
  egw_buf_unref(error);
  return egw_refuse(call, RATE_LIMIT_EXCEEDED, MESSAGE);
}

static void
log_refused(const struct egw_call *call, const struct egw_client *client, uint64_t wait_ms)
{
  struct egw_slice name = egw_method(call);

  if (egw_log_on(EGW_DEBUG))
    egw_log(EGW_DEBUG, "ratelimit",
            "refused method=%.*s client=%s peer=%s listener=%s wait_ms=%" PRIu64,
            (int)(name.len > 128 ? 128 : name.len), name.ptr,
            client->identity == NULL ? "-" : client->identity, client->peer,
            client->listener == NULL ? "-" : client->listener, wait_ms);
}

/* --- other gateways ---------------------------------------------------------------------- */

#ifdef HAVE_HIREDIS
static bool
has_ledger(const struct ratelimit_worker *mine)
{
  return ledger_usable(mine->ledger);
}

static void
tell(const struct egw_at *at, const char *network, const struct clients_call *call,
     const struct clients_taken *taken)
{
  const struct ratelimit_worker *mine = at->mine;

  if (taken->due_us > 0 || taken->total_due_us > 0)
    ledger_tell(mine->ledger, at, network, call, taken);
}

static int
ratelimit_worker_start(const void *instance, void *memory, struct egw_worker *worker)
{
  const struct ratelimit *self = instance;
  struct ratelimit_worker *mine = memory;
  struct ledger_options options = { .address = &self->address, .prefix = self->redis_prefix,
                                    .clients = self->clients, .told_metric = METRIC_TOLD,
                                    .failed_metric = METRIC_UNTOLD };

  if (self->redis == NULL)
    return 0;
  mine->ledger = ledger_new(&options, worker);
  if (mine->ledger == NULL)
    egw_log(EGW_WARN, "ratelimit",
            "no connection to redis can be made: a worker limits alone");
  return 0;
}

static void
ratelimit_worker_stop(const void *instance, void *memory, struct egw_worker *worker)
{
  struct ratelimit_worker *mine = memory;

  (void)instance;
  (void)worker;
  ledger_free(mine->ledger);
  mine->ledger = NULL;
}
#else
static bool
has_ledger(const struct ratelimit_worker *mine)
{
  return mine->ledger != NULL;
}

static void
tell(const struct egw_at *at, const char *network, const struct clients_call *call,
     const struct clients_taken *taken)
{
  (void)at;
  (void)network;
  (void)call;
  (void)taken;
}

#define ratelimit_worker_start NULL
#define ratelimit_worker_stop NULL
#endif

/* --- calls ------------------------------------------------------------------------------- */

static struct clients_taken
take(const struct egw_at *at, const struct egw_call *call, const struct egw_client *client,
     const struct address *address)
{
  const struct ratelimit *self = at->self;
  const struct ratelimit_worker *mine = at->mine;
  struct clients_taken taken = { .wait_ms = 0 };
  struct clients_call asked = {
    .who = client->identity != NULL ? address_key_of_name(client->identity)
                                    : address_key(address, client->peer),
    .each = rules_rate(&self->rules, client->identity),
    .cost = rules_cost(&self->rules, call),
    .now = egw_now_ms(at->worker),
    .share = has_ledger(mine),
  };

  if (asked.cost > 0)
    taken = clients_take(self->clients, &asked);
  tell(at, egw_network(call), &asked, &taken);
  if (taken.added != 0)
    egw_count(at, METRIC_CLIENTS, taken.added);
  if (taken.evicted != 0)
    egw_count(at, METRIC_EVICTED, taken.evicted);
  egw_count(at, taken.wait_ms == 0 ? METRIC_ALLOWED : METRIC_REFUSED, 1);
  return taken;
}

static enum egw_verdict
ratelimit_request(const struct egw_at *at, struct egw_call *call)
{
  const struct ratelimit *self = at->self;
  struct ratelimit_call *state = at->state;
  struct clients_taken taken;
  struct egw_client client;
  struct address address;

  egw_client(call, &client);
  if (state->passed || strcmp(client.transport, "internal") == 0)
    return EGW_NEXT;
  address_parse(client.peer, &address);
  if (is_exempt(self, &client, &address))
    return EGW_NEXT;
  taken = take(at, call, &client, &address);
  state->passed = taken.wait_ms == 0;
  if (state->passed)
    return EGW_NEXT;
  log_refused(call, &client, taken.wait_ms);
  return refuse(self, call, taken.wait_ms);
}

/* --- the plugin -------------------------------------------------------------------------- */

static const struct egw_metric metrics[] = {
  [METRIC_ALLOWED] = { .name = "allowed", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls that were within the limits" },
  [METRIC_REFUSED] = { .name = "refused", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls that were over a limit" },
  [METRIC_CLIENTS] = { .name = "clients", .kind = EGW_METRIC_GAUGE,
                       .help = "Clients in the table" },
  [METRIC_EVICTED] = { .name = "evicted", .kind = EGW_METRIC_COUNTER,
                       .help = "Clients forgotten too early, because the table was full" },
  [METRIC_TOLD] = { .name = "shared", .kind = EGW_METRIC_COUNTER,
                    .help = "Times that counters were settled with those of other gateways" },
  [METRIC_UNTOLD] = { .name = "unshared", .kind = EGW_METRIC_COUNTER,
                      .help = "Times that Redis gave no answer of use to it" },
  EGW_METRIC_TABLE_END
};

static const struct egw_middleware ratelimit = {
  .plugin = {
    EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
    .name = "ratelimit",
    .version = EGW_VERSION,
    .summary = "Limits how many calls clients may make",
    .options = ratelimit_options,
    .metrics = metrics,
    .instance_size = sizeof(struct ratelimit),
    .worker_size = sizeof(struct ratelimit_worker),
    .configure = ratelimit_configure,
    .unconfigure = ratelimit_unconfigure,
    .worker_start = ratelimit_worker_start,
    .worker_stop = ratelimit_worker_stop,
  },
  .call_size = sizeof(struct ratelimit_call),
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD,
  .need = EGW_NEED_NONE,
  .request = ratelimit_request,
};

EGW_REGISTER(ratelimit)
