/* SPDX-License-Identifier: MIT */
/* The configuration of ratelimit. */
#include "config.h"
#include "ratelimit.h"

#include <stdlib.h>
#include <string.h>

#define METHOD_MAX 128u
#define PREFIX_MAX 100u
#define COST_MAX ((int64_t)(RATE_COST_MAX / RATE_CALL))

/* --- rates ------------------------------------------------------------------------------- */

/* `text` NULL or "none": no limit. `burst` 0: that of one second. */
static int
read_rate(struct egw_conf *section, const char *key, const char *text, int64_t burst,
          struct rate *rate)
{
  if (text == NULL || strcmp(text, "none") == 0)
    return 0;
  if (rate_parse(text, rate) < 0)
    return egw_conf_error(section, key,
                          "\"%s\" is no rate: a number of calls up to 1000000000 with \"/s\", "
                          "\"/m\" or \"/h\" behind it, such as \"100/s\", or \"none\"", text);
  if (burst > 0)
    rate_set_burst(rate, (uint64_t)burst);
  return 0;
}

/* Without per_key a client with a name has the limit of an address, for itself. */
static int
read_rates(struct ratelimit *self, struct egw_conf *section, struct clients_limits *limits)
{
  const char *per_key = self->per_key != NULL ? self->per_key : self->per_client;
  int64_t key_burst =
      self->key_burst > 0 || self->per_key != NULL ? self->key_burst : self->burst;
  int r = read_rate(section, "per_client", self->per_client, self->burst, &self->rules.each) |
          read_rate(section, "total", self->total, 0, &limits->total);

  if (r == 0 || self->per_key != NULL)
    r |= read_rate(section, "per_key", per_key, key_burst, &self->rules.key);
  if (r < 0)
    return -1;
  if (self->rules.each.gain == 0 && self->burst > 0)
    return egw_conf_error(section, "burst", "is for per_client, which is \"none\"");
  if (self->rules.key.gain == 0 && self->key_burst > 0)
    return egw_conf_error(section, "key_burst", "is for per_key, which is \"none\"");
  return 0;
}

/* --- lists of groups --------------------------------------------------------------------- */

struct key_option {
  const char *name, *rate;
  int64_t burst;
};

static const struct egw_option key_options[] = {
  { .name = "name", .type = EGW_OPT_STRING, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct key_option, name), .help = "The client, as auth calls it" },
  { .name = "rate", .type = EGW_OPT_STRING, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct key_option, rate),
    .help = "Its calls, in the form of per_client" },
  { .name = "burst", .type = EGW_OPT_INT, .offset = offsetof(struct key_option, burst),
    .fallback = "0", .min = 0, .max = (int64_t)RATE_MAX,
    .help = "Calls it may make at once; 0: those of one second, at least 1" },
  EGW_OPTION_END
};

static int
read_key(struct ratelimit *self, struct egw_conf *section)
{
  struct key_rule *rule = &self->rules.keys[self->rules.key_count];
  struct key_option option = { .name = NULL };

  if (egw_conf_read(section, key_options, &option) < 0)
    return -1;
  rule->name = option.name;
  self->rules.key_count++;
  return read_rate(section, "rate", option.rate, option.burst, &rule->rate);
}

static const struct egw_option cost_options[] = {
  { .name = "method", .type = EGW_OPT_STRING, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct cost_rule, method),
    .help = "A method, or the beginning of methods with \"*\" behind" },
  { .name = "cost", .type = EGW_OPT_INT, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct cost_rule, calls), .min = 0, .max = COST_MAX,
    .help = "Calls that it counts for; 0: none" },
  EGW_OPTION_END
};

static int
read_cost(struct ratelimit *self, struct egw_conf *section)
{
  struct cost_rule *rule = &self->rules.costs[self->rules.cost_count];
  size_t len, star;

  if (egw_conf_read(section, cost_options, rule) < 0)
    return -1;
  self->rules.cost_count++;
  len = strlen(rule->method);
  star = strcspn(rule->method, "*");
  if (len > 0 && len <= METHOD_MAX && star + 1 >= len &&
      strpbrk(rule->method, " \t,;") == NULL)
    return 0;
  return egw_conf_error(section, "method",
                        "\"%s\" is neither a method, nor the beginning of one and a \"*\"",
                        rule->method);
}

static int
read_list(struct ratelimit *self, struct egw_conf *section, const char *key,
          int (*read)(struct ratelimit *, struct egw_conf *))
{
  int r = 0;

  for (size_t i = 0; i < egw_conf_count(section, key); i++) {
    struct egw_conf *element = egw_conf_element(section, key, i);

    if (element == NULL || read(self, element) < 0)
      r = -1;
  }
  return r;
}

static int
read_lists(struct ratelimit *self, struct egw_conf *section)
{
  const char *twice;
  int r;

  self->rules.keys = calloc(egw_conf_count(section, "keys") + 1, sizeof *self->rules.keys);
  self->rules.costs = calloc(egw_conf_count(section, "costs") + 1, sizeof *self->rules.costs);
  if (self->rules.keys == NULL || self->rules.costs == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  r = read_list(self, section, "keys", read_key) |
      read_list(self, section, "costs", read_cost);
  twice = r == 0 ? rules_sort(&self->rules) : NULL;
  return twice == NULL ? r : egw_conf_error(section, "keys", "\"%s\" is there twice", twice);
}

/* --- exempt ------------------------------------------------------------------------------ */

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

/* --- other gateways ---------------------------------------------------------------------- */

static int
read_redis(struct ratelimit *self, struct egw_conf *section)
{
  if (self->redis == NULL)
    return 0;
  if (strlen(self->redis_prefix) > PREFIX_MAX)
    return egw_conf_error(section, "redis_prefix", "is longer than 100 bytes");
#ifdef HAVE_HIREDIS
  const char *why = redis_address_read(self->redis, &self->address);

  return why == NULL ? 0 : egw_conf_error(section, "redis", "%s", why);
#else
  return egw_conf_error(section, "redis", "this ethrpc-gw was built without hiredis");
#endif
}

static void
free_redis(struct ratelimit *self)
{
#ifdef HAVE_HIREDIS
  if (self->redis != NULL)
    redis_address_free(&self->address);
#else
  (void)self;
#endif
}

/* --- all of it --------------------------------------------------------------------------- */

int
ratelimit_configure(void *mine, struct egw_conf *section)
{
  struct ratelimit *self = mine;
  struct clients_limits limits = { .most = (uint64_t)self->max_clients };
  int r = read_rates(self, section, &limits) | read_lists(self, section) |
          read_exempt(self, section) | read_redis(self, section);

  if (r < 0)
    return -1;
  self->rules.by_method = self->cost == COST_METHOD;
  if (!rules_limit(&self->rules) && limits.total.gain == 0)
    return egw_conf_error(section, "per_client",
                          "is \"none\" and there is no total, nor a limit of any key: nothing "
                          "would be limited");
  self->clients = clients_new(&limits);
  return self->clients != NULL ? 0 : egw_conf_error(section, NULL, "out of memory");
}

void
ratelimit_unconfigure(void *mine)
{
  struct ratelimit *self = mine;

  clients_free(self->clients);
  self->clients = NULL;
  rules_free(&self->rules);
  free_redis(self);
  free(self->nets);
  self->nets = NULL;
  self->net_count = 0;
}

static const char *const cost_words[] = { "flat", "method", NULL };

const struct egw_option ratelimit_options[] = {
  { .name = "per_client", .type = EGW_OPT_STRING,
    .offset = offsetof(struct ratelimit, per_client), .fallback = "100/s",
    .help = "Calls of one client: \"N/s\", \"N/m\", \"N/h\", or \"none\" for no limit" },
  { .name = "burst", .type = EGW_OPT_INT, .offset = offsetof(struct ratelimit, burst),
    .fallback = "0", .min = 0, .max = (int64_t)RATE_MAX,
    .help = "Calls a client may make at once; 0: those of one second, at least 1" },
  { .name = "per_key", .type = EGW_OPT_STRING, .offset = offsetof(struct ratelimit, per_key),
    .help = "Calls of a client with a name (a stage above knows it, such as auth); missing: "
            "as per_client" },
  { .name = "key_burst", .type = EGW_OPT_INT, .offset = offsetof(struct ratelimit, key_burst),
    .fallback = "0", .min = 0, .max = (int64_t)RATE_MAX,
    .help = "The same as burst, for per_key" },
  { .name = "keys", .type = EGW_OPT_SECTION,
    .help = "Clients with limits of their own: ( { name = NAME; rate = \"500/s\"; } )" },
  { .name = "total", .type = EGW_OPT_STRING, .offset = offsetof(struct ratelimit, total),
    .fallback = "none", .help = "Calls of all clients together, in the form of per_client" },
  { .name = "cost", .type = EGW_OPT_ENUM, .offset = offsetof(struct ratelimit, cost),
    .fallback = "flat", .choices = cost_words,
    .help = "What a call counts: one, or what the method table says of its method" },
  { .name = "costs", .type = EGW_OPT_SECTION,
    .help = "What calls of some methods count: ( { method = \"eth_getLogs\"; cost = 20; } )" },
  { .name = "exempt", .type = EGW_OPT_LIST, .offset = offsetof(struct ratelimit, exempt),
    .help = "Clients without limits: addresses, networks, \"local\"" },
  { .name = "max_clients", .type = EGW_OPT_INT,
    .offset = offsetof(struct ratelimit, max_clients), .fallback = "65536", .min = 1,
    .max = 4194304, .help = "Clients that are kept in mind" },
  { .name = "redis", .type = EGW_OPT_SECRET, .offset = offsetof(struct ratelimit, redis),
    .help = "Server by which several gateways have their limits in common: "
            "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or unix:PATH" },
  { .name = "redis_prefix", .type = EGW_OPT_STRING,
    .offset = offsetof(struct ratelimit, redis_prefix), .fallback = "ethrpc-gw:limit:",
    .help = "What the names of keys in Redis begin with" },
  { .name = "http_status", .type = EGW_OPT_BOOL,
    .offset = offsetof(struct ratelimit, http_status), .fallback = "true",
    .help = "Refusals over HTTP have the status 429 instead of 200" },
  EGW_OPTION_END
};
