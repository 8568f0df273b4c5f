/* SPDX-License-Identifier: MIT */
/* The gateway: one loaded configuration made into networks, chains, upstreams and listeners,
 * and the workers that run it.
 *
 *   gateway_build (main thread) -> gateway_run (main thread: signals) -> gateway_free
 *
 * Constant once the workers run, except where atomics say so. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include <stdatomic.h>
#include "base/budget.h"
#include "conf/conf.h"
#include "listen/listen.h"
#include "plugin/loader.h"
#include "worker/worker.h"

struct head;
struct hub;
struct network;
struct upstream;
struct gateway_run;

enum gateway_state { GATEWAY_STARTING, GATEWAY_READY, GATEWAY_DRAINING, GATEWAY_STOPPED };

struct gateway {
  struct conf *conf;
  struct loader loader;
  struct network *networks;      /* chain/chain.h */
  size_t network_count;
  struct head *heads;            /* head/head.h; by network index */
  struct hub *hubs;              /* push/hub.h; by network index */
  struct upstream *upstreams;    /* upstream/upstream.h; all networks, by index */
  size_t upstream_count;
  struct listeners listeners;
  struct egw_worker *workers;
  unsigned worker_count;
  struct budget budget;
  atomic_int state;              /* enum gateway_state */
  atomic_bool started;           /* every worker has its links and stages; stays true */
  uint64_t started_us;
  struct gateway_run *run;       /* while gateway_run() is on the stack */
};

/* Loads plugins, configures stages and upstreams. Errors are collected in conf. 0 or -1. */
int gateway_build(struct gateway *gateway, struct conf *conf) EGW_MUST_CHECK;

/* Binds, starts workers, serves until SIGTERM or SIGINT, drains, stops. The exit status. */
int gateway_run(struct gateway *gateway);

void gateway_free(struct gateway *gateway);

/* The network for a path ("/", "/mainnet", "/1"), or NULL if there is none by that name. Any
 * thread. */
struct network *gateway_network(struct gateway *gateway, const char *path, size_t len);

#endif
