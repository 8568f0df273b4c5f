/* SPDX-License-Identifier: MIT */
/* Networks and their chains of stages, as built from the configuration; constant once the
 * workers run. A chain is specialised for each method: stages that have nothing to say on it
 * are not in it. */
#ifndef CHAIN_CHAIN_H
#define CHAIN_CHAIN_H

#include "conf/conf.h"
#include "obs/metrics.h"
#include "plugin/loader.h"

#define CHAIN_STAGES_MAX 64u
#define NETWORK_UPSTREAMS_MAX 64u

struct egw_head;
struct gateway;
struct head;
struct hub;
struct upstream;

/* One middleware instance of a network. */
struct egw_stage {
  const struct plugin *plugin;
  const struct egw_middleware *mw;   /* = &plugin->middleware */
  const char *name;                  /* of the instance */
  struct network *network;
  void *self;
  unsigned index;                    /* among all stages of the gateway: worker->stages[index] */
};

/* A stage on one worker. */
struct stage_mine {
  void *mine;
  metric_cell *metrics;              /* plugin->metric_count cells */
  bool started;
};

/* The stages that one method passes. */
struct chain {
  unsigned count;
  enum egw_need need;                /* the most any stage needs */
  size_t state_size;                 /* of all stages' per-call state */
  struct {
    struct egw_stage *stage;
    size_t state_at;
  } at[];
};

struct network {
  const struct conf_network *conf;
  const char *name;
  unsigned index;
  struct gateway *gateway;
  struct egw_stage *stages;
  unsigned stage_count;
  struct chain **chains;             /* by method_index(); the last one is for unknown methods */
  struct chain **chain_store;        /* the distinct ones */
  unsigned chain_count;
  struct upstream **upstreams;       /* sorted by tier */
  unsigned upstream_count;
  struct head *head;                 /* head/head.h */
  bool hears_head;                   /* a stage has a head() callback */
  bool hears_notices;                /* a stage has a notice() callback */
  struct hub *hub;                   /* push/hub.h */
};

/* Builds chains from the configured stages. 0 or -1 (memory, too many stages). Main thread. */
int network_make_chains(struct network *network) EGW_MUST_CHECK;
void network_free_chains(struct network *network);

/* Starts and stops the instances of all stages on a worker. */
struct egw_worker;
int stages_start(struct egw_worker *worker) EGW_MUST_CHECK;
void stages_stop(struct egw_worker *worker);
/* Calls head() of the network's stages on this worker. */
void stages_tell_head(struct egw_worker *worker, const struct network *network,
                      const struct egw_head *head);
void stages_free(struct egw_worker *worker); /* main thread, after join */

#endif
