/* SPDX-License-Identifier: MIT */
/* Chains from the configured stages, and the stages' life on each worker. */
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "rpc/method.h"

#define STATE_ALIGN 16u

static bool
wants(const struct egw_stage *stage, const struct egw_method_info *method)
{
  return stage->mw->wants == NULL || stage->mw->wants(stage->self, method);
}

static struct chain *
make_chain(struct network *network, const struct egw_method_info *method)
{
  struct chain *chain = calloc(1, sizeof(*chain) + network->stage_count * sizeof(chain->at[0]));
  unsigned i;

  if (chain == NULL)
    return NULL;
  for (i = 0; i < network->stage_count; i++) {
    struct egw_stage *stage = &network->stages[i];

    if (!wants(stage, method))
      continue;
    chain->at[chain->count].stage = stage;
    chain->at[chain->count].state_at = chain->state_size;
    chain->count++;
    chain->state_size += (stage->mw->call_size + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
    if (stage->mw->reply != NULL && stage->mw->need > chain->need)
      chain->need = stage->mw->need;
  }
  return chain;
}

static bool
same_chain(const struct chain *a, const struct chain *b)
{
  unsigned i;

  if (a->count != b->count)
    return false;
  for (i = 0; i < a->count; i++)
    if (a->at[i].stage != b->at[i].stage)
      return false;
  return true;
}

/* The stored chain equal to `chain` (which is then freed), or `chain`, now stored. */
static struct chain *
intern(struct network *network, struct chain *chain)
{
  unsigned i;

  for (i = 0; i < network->chain_count; i++)
    if (same_chain(network->chain_store[i], chain)) {
      free(chain);
      return network->chain_store[i];
    }
  network->chain_store[network->chain_count++] = chain;
  return chain;
}

int
network_make_chains(struct network *network)
{
  unsigned i, n = method_count() + 1;

  network->chains = calloc(n, sizeof(*network->chains));
  network->chain_store = calloc(n, sizeof(*network->chain_store));
  if (network->chains == NULL || network->chain_store == NULL)
    return -1;
  for (i = 0; i < network->stage_count; i++)
    if (network->stages[i].mw->head != NULL)
      network->hears_head = true;
  for (i = 0; i < network->stage_count; i++)
    if (network->stages[i].mw->notice != NULL)
      network->hears_notices = true;
  for (i = 0; i < n; i++) {
    struct chain *chain = make_chain(network, i + 1 < n ? method_row(i) : NULL);

    if (chain == NULL)
      return -1;
    network->chains[i] = intern(network, chain);
  }
  return 0;
}

void
network_free_chains(struct network *network)
{
  unsigned i;

  for (i = 0; i < network->chain_count; i++)
    free(network->chain_store[i]);
  free(network->chain_store);
  free(network->chains);
}

/* --- on a worker ------------------------------------------------------------------------- */

static int
start_stage(struct egw_worker *worker, const struct egw_stage *stage)
{
  struct stage_mine *sm = &worker->stages[stage->index];
  const struct egw_plugin *head = stage->plugin->head;

  sm->mine = calloc(1, head->worker_size == 0 ? 1 : head->worker_size);
  sm->metrics = calloc(stage->plugin->metric_count + 1, sizeof(*sm->metrics));
  if (sm->mine == NULL || sm->metrics == NULL)
    return -1;
  if (head->worker_start != NULL && head->worker_start(stage->self, sm->mine, worker) < 0) {
    egw_log(EGW_ERROR, "chain", "stage %s could not start", stage->name);
    return -1;
  }
  sm->started = true;
  return 0;
}

int
stages_start(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  unsigned i, j, count = 0;

  for (i = 0; i < gateway->network_count; i++)
    count += gateway->networks[i].stage_count;
  worker->stage_count = count;
  worker->stages = calloc(count + 1, sizeof(*worker->stages));
  if (worker->stages == NULL)
    return -1;
  for (i = 0; i < gateway->network_count; i++)
    for (j = 0; j < gateway->networks[i].stage_count; j++)
      if (start_stage(worker, &gateway->networks[i].stages[j]) < 0)
        return -1;
  return 0;
}

void
stages_tell_head(struct egw_worker *worker, const struct network *network,
                 const struct egw_head *head)
{
  unsigned i;

  for (i = 0; i < network->stage_count && worker->stages != NULL; i++) {
    struct egw_stage *stage = &network->stages[i];
    const struct stage_mine *sm = &worker->stages[stage->index];
    struct egw_at at = { .self = stage->self, .mine = sm->mine, .stage = stage, .worker = worker };

    if (sm->started && stage->mw->head != NULL)
      stage->mw->head(&at, head);
  }
}

void
stages_stop(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  unsigned i, j;

  if (worker->stages == NULL)
    return;
  for (i = 0; i < gateway->network_count; i++)
    for (j = 0; j < gateway->networks[i].stage_count; j++) {
      const struct egw_stage *stage = &gateway->networks[i].stages[j];
      struct stage_mine *sm = &worker->stages[stage->index];

      if (sm->started && stage->plugin->head->worker_stop != NULL)
        stage->plugin->head->worker_stop(stage->self, sm->mine, worker);
      sm->started = false;
    }
}

void
stages_free(struct egw_worker *worker)
{
  unsigned i;

  for (i = 0; i < worker->stage_count && worker->stages != NULL; i++) {
    free(worker->stages[i].mine);
    free(worker->stages[i].metrics);
  }
  free(worker->stages);
  worker->stages = NULL;
}
