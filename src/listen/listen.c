/* SPDX-License-Identifier: MIT */
/* All listeners together: opening and closing them, and the parts that serve them on a
 * worker. */
#include "listen/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "listen/door.h"
#include "listen/hosts.h"
#include "listen/limits.h"
#include "listen/linger.h"
#include "listen/parts.h"
#include "listen/proxies.h"
#include "listen/sockets.h"
#include "listen/tls.h"

static int
open_one(struct listener *listener, const struct conf_listener *conf, bool admin,
         unsigned workers)
{
  listener->conf = conf;
  listener->admin = admin;
  listener->clients = client_counts_new();
  if (listener->clients == NULL) {
    egw_log(EGW_ERROR, "listen", "out of memory");
    return -1;
  }
  if (sockets_open(listener, admin ? 1 : workers) != 0 || hosts_make(listener) != 0)
    return -1;
  if (conf->trusted_proxies.n > 0 &&
      (listener->proxies = proxies_new(&conf->trusted_proxies)) == NULL) {
    egw_log(EGW_ERROR, "listen", "out of memory");
    return -1;
  }
  if (conf->tls_certificate == NULL)
    return 0;
  listener->tls = tls_context_new(listener->name, conf->tls_certificate, conf->tls_key);
  return listener->tls == NULL ? -1 : 0;
}

int
listen_open(struct listeners *listeners, const struct conf *conf, unsigned workers)
{
  size_t n = conf->listener_count + (conf->has_admin ? 1 : 0);

  listeners->n = 0;
  listeners->v = calloc(n == 0 ? 1 : n, sizeof *listeners->v);
  if (listeners->v == NULL) {
    egw_log(EGW_ERROR, "listen", "out of memory");
    return -1;
  }
  for (size_t i = 0; i < n; i++) {
    bool admin = i == conf->listener_count;

    listeners->n = i + 1;
    if (open_one(&listeners->v[i], admin ? &conf->admin : &conf->listeners[i], admin,
                 workers) != 0) {
      listen_close(listeners);
      return -1;
    }
  }
  return 0;
}

void
listen_close(struct listeners *listeners)
{
  for (size_t i = 0; i < listeners->n; i++) {
    struct listener *listener = &listeners->v[i];

    sockets_close(listener);
    hosts_free(listener);
    client_counts_free(listener->clients);
    tls_context_free(listener->tls);
    proxies_free(listener->proxies);
  }
  free(listeners->v);
  listeners->v = NULL;
  listeners->n = 0;
}

/* --- on a worker ---------------------------------------------------------------------- */

void
listen_part_closed(struct listen_worker *lw)
{
  void (*stopped)(struct egw_worker *worker) = lw->stopped;
  struct egw_worker *worker = lw->worker;

  if (--lw->parts_open > 0)
    return;
  free(lw);
  worker->listen = NULL;
  if (stopped != NULL)
    stopped(worker);
}

/* What fails leaves the later ones NULL. The door is last: it lets clients in. */
static int
start_parts(struct listen_worker *lw)
{
  if ((lw->linger = linger_new(lw)) == NULL)
    return -1;
  if (http_start(lw) != 0 || ws_start(lw) != 0 || ipc_start(lw) != 0)
    return -1;
  return door_start(lw);
}

int
listen_worker_start(struct egw_worker *worker, struct listeners *listeners)
{
  struct listen_worker *lw = calloc(1, sizeof *lw);

  if (lw == NULL)
    return -1;
  lw->worker = worker;
  lw->listeners = listeners;
  worker->listen = lw;
  if (start_parts(lw) == 0)
    return 0;
  egw_log(EGW_ERROR, "listen", "worker %u: could not start", worker->index);
  listen_worker_stop(worker, NULL);
  return -1;
}

void
listen_worker_drain(struct egw_worker *worker)
{
  struct listen_worker *lw = worker->listen;

  if (lw == NULL || lw->draining)
    return;
  lw->draining = true;
  door_drain(lw->door);
  http_drain(lw->http);
  ws_drain(lw->ws);
  ipc_drain(lw->ipc);
}

unsigned
listen_worker_sessions(const struct egw_worker *worker)
{
  const struct listen_worker *lw = worker->listen;

  return lw == NULL ? 0 : lw->sessions + door_pending(lw->door);
}

void
listen_worker_stop(struct egw_worker *worker, void (*done)(struct egw_worker *worker))
{
  struct listen_worker *lw = worker->listen;

  if (lw == NULL) {
    if (done != NULL)
      done(worker);
    return;
  }
  lw->draining = true;
  lw->stopped = done;
  if (lw->stopping)
    return;
  lw->stopping = true;
  lw->parts_open = 1u + (lw->door != NULL) + (lw->http != NULL) + (lw->ws != NULL) +
                   (lw->ipc != NULL) + (lw->linger != NULL);
  if (lw->door != NULL)
    door_stop(lw->door);
  if (lw->http != NULL)
    http_stop(lw->http);
  if (lw->ws != NULL)
    ws_stop(lw->ws);
  if (lw->ipc != NULL)
    ipc_stop(lw->ipc);
  if (lw->linger != NULL)
    linger_stop(lw->linger);
  listen_part_closed(lw);
}
