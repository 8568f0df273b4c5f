/* SPDX-License-Identifier: MIT */
/* A generation from its configuration: plugins loaded, their options read, networks, chains and
 * upstreams made. All errors are collected in the conf. Main thread. */
#include <stdlib.h>
#include <string.h>
#include "chain/chain.h"
#include "conf/url.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "push/hub.h"
#include "upstream/upstream.h"

#define WHY_MAX 512

/* Reads the plugin's options from its section into a new instance. */
static int
make_instance(const struct plugin *plugin, struct egw_conf *section, void **self)
{
  const struct egw_plugin *head = plugin->head;

  *self = calloc(1, head->instance_size == 0 ? 1 : head->instance_size);
  if (*self == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  if (head->options != NULL && egw_conf_read(section, head->options, *self) < 0)
    return -1;
  if (head->configure != NULL && head->configure(*self, section) < 0)
    return -1;
  return 0;
}

/* --- upstreams ------------------------------------------------------------------------------- */

static int
make_upstream(struct gateway *gateway, struct network *network, const struct conf_upstream *conf,
              struct upstream *upstream)
{
  char why[WHY_MAX];
  const char *wrong;

  upstream->conf = conf;
  upstream->name = conf->name;
  upstream->network = network;
  if (conf->url == NULL)
    return -1; /* reported when it was read */
  wrong = url_parse(conf->url, &upstream->url);
  if (wrong != NULL)
    return egw_conf_error(conf->section, "url", "%s", wrong);
  upstream->plugin = loader_transport(&gateway->loader, upstream->url.scheme, why, sizeof(why));
  if (upstream->plugin == NULL)
    return egw_conf_error(conf->section, "url", "%s", why);
  upstream->transport = &upstream->plugin->transport;
  return make_instance(upstream->plugin, conf->section, &upstream->self);
}

static int
by_tier(const void *a, const void *b)
{
  const struct upstream *const *x = a, *const *y = b;

  if ((*x)->conf->tier != (*y)->conf->tier)
    return (*x)->conf->tier < (*y)->conf->tier ? -1 : 1;
  return (*x)->index < (*y)->index ? -1 : 1; /* the configured order */
}

static int
make_upstreams(struct gateway *gateway, struct network *network, size_t *next)
{
  size_t i, n = network->conf->upstream_count;
  int rc = 0;

  if (n > NETWORK_UPSTREAMS_MAX) {
    conf_error(gateway->conf, "network %s has %zu upstreams, at most %u are possible",
               network->name, n, NETWORK_UPSTREAMS_MAX);
    return -1;
  }
  network->upstreams = calloc(n + 1, sizeof(*network->upstreams));
  if (network->upstreams == NULL)
    return -1;
  for (i = 0; i < n; i++) {
    struct upstream *upstream = &gateway->upstreams[*next];

    upstream->index = (unsigned)(*next)++;
    if (make_upstream(gateway, network, &network->conf->upstreams[i], upstream) < 0)
      rc = -1;
    network->upstreams[i] = upstream;
  }
  network->upstream_count = (unsigned)n;
  qsort(network->upstreams, n, sizeof(network->upstreams[0]), by_tier);
  for (i = 0; i < n; i++)
    network->upstreams[i]->position = (unsigned)i;
  return rc;
}

/* --- stages ----------------------------------------------------------------------------------- */

static int
make_stages(struct gateway *gateway, struct network *network, unsigned *next)
{
  size_t i, n = network->conf->stage_count;
  int rc = 0;

  if (n > CHAIN_STAGES_MAX) {
    conf_error(gateway->conf, "network %s has %zu stages, at most %u are possible",
               network->name, n, CHAIN_STAGES_MAX);
    return -1;
  }
  network->stages = calloc(n + 1, sizeof(*network->stages));
  if (network->stages == NULL)
    return -1;
  network->stage_count = (unsigned)n;
  for (i = 0; i < n; i++) {
    const struct conf_stage *conf = &network->conf->stages[i];
    struct egw_stage *stage = &network->stages[i];
    char why[WHY_MAX];

    stage->index = (*next)++;
    stage->network = network;
    stage->name = conf->name;
    if (conf->use == NULL) {
      rc = -1;
      continue;
    }
    stage->plugin = loader_get(&gateway->loader, EGW_TYPE_MIDDLEWARE, conf->use, why, sizeof(why));
    if (stage->plugin == NULL) {
      egw_conf_error(conf->section, "use", "%s", why);
      rc = -1;
      continue;
    }
    stage->mw = &stage->plugin->middleware;
    if (make_instance(stage->plugin, conf->section, &stage->self) < 0)
      rc = -1;
  }
  return rc;
}

/* --- all of it ---------------------------------------------------------------------------------- */

static int
allocate(struct gateway *gateway)
{
  struct conf *conf = gateway->conf;
  size_t i, upstreams = 0;

  for (i = 0; i < conf->network_count; i++)
    upstreams += conf->networks[i].upstream_count;
  gateway->networks = calloc(conf->network_count + 1, sizeof(*gateway->networks));
  gateway->upstreams = calloc(upstreams + 1, sizeof(*gateway->upstreams));
  gateway->heads = calloc(conf->network_count + 1, sizeof(*gateway->heads));
  if (gateway->networks == NULL || gateway->upstreams == NULL || gateway->heads == NULL)
    return -1;
  gateway->hubs = calloc(conf->network_count + 1, sizeof(*gateway->hubs));
  if (gateway->hubs == NULL)
    return -1;
  gateway->network_count = conf->network_count;
  gateway->upstream_count = upstreams;
  return 0;
}

int
gateway_build(struct gateway *gateway, struct conf *conf)
{
  size_t i, next_upstream = 0;
  unsigned next_stage = 0;
  int rc = 0;

  memset(gateway, 0, sizeof(*gateway));
  gateway->conf = conf;
  gateway->started_us = clock_us();
  gateway->budget.limit = (size_t)conf->memory;
  if (loader_init(&gateway->loader, conf->plugin_path) < 0 || allocate(gateway) < 0) {
    conf_error(conf, "out of memory");
    return -1;
  }
  for (i = 0; i < gateway->network_count; i++) {
    struct network *network = &gateway->networks[i];

    network->conf = &conf->networks[i];
    network->name = conf->networks[i].name;
    network->index = (unsigned)i;
    network->gateway = gateway;
    network->head = &gateway->heads[i];
    network->hub = &gateway->hubs[i];
    if (head_init(network->head) < 0 || hub_init(network->hub, network) < 0) {
      conf_error(conf, "out of memory");
      return -1;
    }
    if (make_upstreams(gateway, network, &next_upstream) < 0)
      rc = -1;
    if (make_stages(gateway, network, &next_stage) < 0)
      rc = -1;
    if (rc == 0 && network_make_chains(network) < 0) {
      conf_error(conf, "out of memory");
      rc = -1;
    }
  }
  conf_check_unknown(conf);
  return rc == 0 && conf_errors(conf) == 0 ? 0 : -1;
}

static void
free_instance(const struct plugin *plugin, void *self)
{
  if (plugin != NULL && self != NULL && plugin->head->unconfigure != NULL)
    plugin->head->unconfigure(self);
  free(self);
}

void
gateway_free(struct gateway *gateway)
{
  size_t i, j;

  for (i = 0; i < gateway->network_count; i++) {
    struct network *network = &gateway->networks[i];

    for (j = 0; j < network->stage_count; j++)
      free_instance(network->stages[j].plugin, network->stages[j].self);
    network_free_chains(network);
    free(network->stages);
    free(network->upstreams);
    if (network->hub != NULL)
      hub_free(network->hub);
    if (network->head != NULL)
      head_free(network->head);
  }
  for (i = 0; i < gateway->upstream_count; i++) {
    free_instance(gateway->upstreams[i].plugin, gateway->upstreams[i].self);
    url_free(&gateway->upstreams[i].url);
  }
  free(gateway->hubs);
  free(gateway->heads);
  free(gateway->networks);
  free(gateway->upstreams);
  loader_free(&gateway->loader);
  memset(gateway, 0, sizeof(*gateway));
}

/* --- networks by path ------------------------------------------------------------------------------ */

static bool
is_chain_id(const struct network *network, const char *text, size_t len)
{
  int64_t n = 0;
  size_t i;

  if (network->conf->chain_id <= 0 || len == 0 || len > 18)
    return false;
  for (i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9')
      return false;
    n = n * 10 + (text[i] - '0');
  }
  return n == network->conf->chain_id;
}

struct network *
gateway_network(struct gateway *gateway, const char *path, size_t len)
{
  size_t i;

  while (len != 0 && path[0] == '/') {
    path++;
    len--;
  }
  while (len != 0 && path[len - 1] == '/')
    len--;
  if (len == 0)
    return gateway->network_count != 0 ? &gateway->networks[0] : NULL;
  for (i = 0; i < gateway->network_count; i++) {
    struct network *network = &gateway->networks[i];

    if (strlen(network->name) == len && memcmp(network->name, path, len) == 0)
      return network;
    if (is_chain_id(network, path, len))
      return network;
  }
  return NULL;
}
