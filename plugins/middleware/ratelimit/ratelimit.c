/* SPDX-License-Identifier: MIT */
/* ratelimit: how many calls a client may make, and all clients together. What is over the
 * limit is answered with -32005 and the time after which it will be let through, in the forms
 * that client libraries look for, and never reaches a node.
 *
 * A client is who a stage above says it is (egw_set_identity), else the address its connection
 * comes from, or that a trusted proxy names. */
#include "ratelimit.h"

#include <inttypes.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>

#define RATE_LIMIT_EXCEEDED (-32005)
#define MESSAGE "rate limit exceeded"

enum metric { METRIC_ALLOWED, METRIC_REFUSED, METRIC_CLIENTS, METRIC_EVICTED };

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

static struct clients_taken
take(const struct egw_at *at, const struct egw_call *call, const struct egw_client *client,
     const struct address *address)
{
  const struct ratelimit *self = at->self;
  struct clients_taken taken = { .wait_ms = 0 };
  unsigned cost = rules_cost(&self->rules, call);
  struct client_key who = client->identity != NULL ? address_key_of_name(client->identity)
                                                   : address_key(address, client->peer);

  if (cost > 0)
    taken = clients_take(self->clients, who, rules_rate(&self->rules, client->identity), cost,
                         egw_now_ms(at->worker));
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

/* --- the plugin --------------------------------------------------------------------------- */

static const struct egw_metric metrics[] = {
  [METRIC_ALLOWED] = { .name = "allowed", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls that were within the limits" },
  [METRIC_REFUSED] = { .name = "refused", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls that were over a limit" },
  [METRIC_CLIENTS] = { .name = "clients", .kind = EGW_METRIC_GAUGE,
                       .help = "Clients in the table" },
  [METRIC_EVICTED] = { .name = "evicted", .kind = EGW_METRIC_COUNTER,
                       .help = "Clients forgotten too early, because the table was full" },
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
    .configure = ratelimit_configure,
    .unconfigure = ratelimit_unconfigure,
  },
  .call_size = sizeof(struct ratelimit_call),
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD,
  .need = EGW_NEED_NONE,
  .request = ratelimit_request,
};

EGW_REGISTER(ratelimit)
