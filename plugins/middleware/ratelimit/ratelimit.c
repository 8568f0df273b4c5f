/* SPDX-License-Identifier: MIT */
/* ratelimit: how many calls a client may make, and all clients together. What is over the
 * limit is answered with -32005 and the time after which it will be let through, in the forms
 * that client libraries look for, and never reaches a node.
 *
 * A client is the address its connection comes from. What it says about itself, such as
 * X-Forwarded-For, counts for nothing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>
#include "address.h"
#include "clients.h"
#include "rate.h"

#define RATE_LIMIT_EXCEEDED (-32005)
#define MESSAGE "rate limit exceeded"

enum cost { COST_FLAT, COST_METHOD };
enum metric { METRIC_ALLOWED, METRIC_REFUSED, METRIC_CLIENTS, METRIC_EVICTED };

struct ratelimit {
  const char *per_client, *total;
  int64_t burst, max_clients;
  int cost;                      /* enum cost */
  struct egw_strings exempt;
  bool exempt_local;
  struct address_net *nets;      /* of exempt */
  size_t net_count;
  struct clients *clients;       /* shared by the workers */
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

static unsigned
cost_of(const struct ratelimit *self, const struct egw_call *call)
{
  const struct egw_method_info *info = egw_method_info(call);

  if (self->cost == COST_FLAT || info == NULL)
    return RATE_CALL;
  return info->cost > 0 ? info->cost : 1;
}

/* The time is said in both forms in use: in the message, and as seconds in the data. */
static enum egw_verdict
refuse(struct egw_call *call, uint64_t wait_ms)
{
  struct egw_buf *error = egw_buf_new(160);
  unsigned decimals = 3, rest = (unsigned)(wait_ms % 1000);

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
    egw_log(EGW_DEBUG, "ratelimit", "refused method=%.*s peer=%s listener=%s wait_ms=%" PRIu64,
            (int)(name.len > 128 ? 128 : name.len), name.ptr, client->peer,
            client->listener == NULL ? "-" : client->listener, wait_ms);
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
  taken = clients_take(self->clients, address_key(&address, client.peer), cost_of(self, call),
                       egw_now_ms(at->worker));
  if (taken.added != 0)
    egw_count(at, METRIC_CLIENTS, taken.added);
  if (taken.evicted != 0)
    egw_count(at, METRIC_EVICTED, taken.evicted);
  egw_count(at, taken.wait_ms == 0 ? METRIC_ALLOWED : METRIC_REFUSED, 1);
  state->passed = taken.wait_ms == 0;
  if (state->passed)
    return EGW_NEXT;
  log_refused(call, &client, taken.wait_ms);
  return refuse(call, taken.wait_ms);
}

/* --- configuration ----------------------------------------------------------------------- */

/* `text` NULL or "none": no limit. */
static int
read_rate(struct egw_conf *section, const char *key, const char *text, struct rate *rate)
{
  if (text == NULL || strcmp(text, "none") == 0 || rate_parse(text, rate) == 0)
    return 0;
  return egw_conf_error(section, key,
                        "\"%s\" is no rate: a number of calls up to 1000000000 with \"/s\", "
                        "\"/m\" or \"/h\" behind it, such as \"100/s\", or \"none\"", text);
}

static int
read_exempt(struct ratelimit *self, struct egw_conf *section)
{
  int r = 0;

  if (self->exempt.n == 0)
    return 0;
  self->nets = calloc(self->exempt.n, sizeof *self->nets);
  if (self->nets == NULL)
    return egw_conf_error(section, "exempt", "out of memory");
  for (size_t i = 0; i < self->exempt.n; i++) {
    const char *text = self->exempt.v[i];

    if (strcmp(text, "local") == 0)
      self->exempt_local = true;
    else if (address_parse_net(text, &self->nets[self->net_count]) == 0)
      self->net_count++;
    else
      r = egw_conf_error(section, "exempt",
                         "\"%s\" is neither an address, nor a network such as \"10.0.0.0/8\", "
                         "nor \"local\"", text);
  }
  return r;
}

static int
ratelimit_configure(void *mine, struct egw_conf *section)
{
  struct ratelimit *self = mine;
  struct clients_limits limits = { .most = (uint64_t)self->max_clients };
  int r = read_rate(section, "per_client", self->per_client, &limits.each) |
          read_rate(section, "total", self->total, &limits.total) |
          read_exempt(self, section);

  if (r < 0)
    return -1;
  if (limits.each.gain == 0 && limits.total.gain == 0)
    return egw_conf_error(section, "per_client", "is \"none\" and there is no total: nothing "
                                                 "would be limited");
  if (limits.each.gain == 0 && self->burst > 0)
    return egw_conf_error(section, "burst", "is for per_client, which is \"none\"");
  if (self->burst > 0)
    rate_set_burst(&limits.each, (uint64_t)self->burst);
  self->clients = clients_new(&limits);
  return self->clients != NULL ? 0 : egw_conf_error(section, NULL, "out of memory");
}

static void
ratelimit_unconfigure(void *mine)
{
  struct ratelimit *self = mine;

  clients_free(self->clients);
  self->clients = NULL;
  free(self->nets);
  self->nets = NULL;
  self->net_count = 0;
}

static const char *const cost_words[] = { "flat", "method", NULL };

static const struct egw_option options[] = {
  { .name = "per_client", .type = EGW_OPT_STRING,
    .offset = offsetof(struct ratelimit, per_client), .fallback = "100/s",
    .help = "Calls of one client: \"N/s\", \"N/m\", \"N/h\", or \"none\" for no limit" },
  { .name = "burst", .type = EGW_OPT_INT, .offset = offsetof(struct ratelimit, burst),
    .fallback = "0", .min = 0, .max = (int64_t)RATE_MAX,
    .help = "Calls a client may make at once; 0: those of one second, at least 1" },
  { .name = "total", .type = EGW_OPT_STRING, .offset = offsetof(struct ratelimit, total),
    .fallback = "none", .help = "Calls of all clients together, in the form of per_client" },
  { .name = "cost", .type = EGW_OPT_ENUM, .offset = offsetof(struct ratelimit, cost),
    .fallback = "flat", .choices = cost_words,
    .help = "What a call counts: one, or what the method table says of its method" },
  { .name = "exempt", .type = EGW_OPT_LIST, .offset = offsetof(struct ratelimit, exempt),
    .help = "Clients without limits: addresses, networks, \"local\"" },
  { .name = "max_clients", .type = EGW_OPT_INT,
    .offset = offsetof(struct ratelimit, max_clients), .fallback = "65536", .min = 1,
    .max = 4194304, .help = "Clients that are kept in mind" },
  EGW_OPTION_END
};

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
    .options = options,
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
