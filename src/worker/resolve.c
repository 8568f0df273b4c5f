/* SPDX-License-Identifier: MIT */
/* getaddrinfo() runs on libuv's thread pool. A query that was cancelled ends there in its own
 * time; its result is then dropped. IP literals take the same path with AI_NUMERICHOST, which
 * does not look anything up. */
#include "worker/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "worker/worker.h"

#define ADDRESSES_MAX 16

struct egw_resolve {
  uv_getaddrinfo_t req;
  struct list node;
  egw_resolve_fn *fn;           /* NULL: cancelled */
  void *arg;
};

struct egw_resolver {
  struct list pending;
};

static size_t
collect(const struct addrinfo *info, struct egw_address *out)
{
  size_t n = 0;

  for (; info != NULL && n < ADDRESSES_MAX; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6)
      continue;
    if (info->ai_addrlen > sizeof(out[n].bytes))
      continue;
    memcpy(out[n].bytes, info->ai_addr, info->ai_addrlen);
    out[n].len = (uint32_t)info->ai_addrlen;
    n++;
  }
  return n;
}

static void
on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *info)
{
  struct egw_resolve *r = container_of(req, struct egw_resolve, req);
  struct egw_address addresses[ADDRESSES_MAX];
  size_t n = status == 0 ? collect(info, addresses) : 0;

  list_remove(&r->node);
  if (r->fn != NULL)
    r->fn(r->arg, addresses, n, n == 0 ? "the name can't be resolved" : NULL);
  uv_freeaddrinfo(info);
  free(r);
}

struct egw_resolve *
egw_resolve(struct egw_worker *worker, const char *host, uint16_t port, egw_resolve_fn *fn,
            void *arg)
{
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC };
  struct egw_resolve *r = calloc(1, sizeof(*r));
  unsigned char literal[16];
  char service[8];

  if (r == NULL)
    return NULL;
  hints.ai_flags = AI_NUMERICSERV;
  if (uv_inet_pton(AF_INET, host, literal) == 0 || uv_inet_pton(AF_INET6, host, literal) == 0)
    hints.ai_flags |= AI_NUMERICHOST;
  snprintf(service, sizeof(service), "%u", port);
  r->fn = fn;
  r->arg = arg;
  if (uv_getaddrinfo(&worker->loop, &r->req, on_resolved, host, service, &hints) != 0) {
    free(r);
    return NULL;
  }
  list_append(&worker->resolver->pending, &r->node);
  return r;
}

void
egw_resolve_cancel(struct egw_resolve *handle)
{
  handle->fn = NULL;
  uv_cancel((uv_req_t *)&handle->req);
}

int
resolver_init(struct egw_worker *worker)
{
  worker->resolver = calloc(1, sizeof(*worker->resolver));
  if (worker->resolver == NULL)
    return -1;
  list_init(&worker->resolver->pending);
  return 0;
}

void
resolver_close(struct egw_worker *worker)
{
  struct list *node;

  list_for_each(node, &worker->resolver->pending)
    egw_resolve_cancel(container_of(node, struct egw_resolve, node));
}

void
resolver_free(struct egw_worker *worker)
{
  free(worker->resolver);
  worker->resolver = NULL;
}
