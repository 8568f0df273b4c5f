/* SPDX-License-Identifier: MIT */
/* Caps on connections: of a listener, and of one client address on it. */
#include "listen/limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "listen/parts.h"

struct client_counts {
  pthread_mutex_t lock;
  struct u64map map;     /* key -> the count itself, as a pointer's value */
};

struct client_counts *
client_counts_new(void)
{
  struct client_counts *counts = calloc(1, sizeof *counts);

  if (counts == NULL)
    return NULL;
  if (pthread_mutex_init(&counts->lock, NULL) != 0) {
    free(counts);
    return NULL;
  }
  return counts;
}

void
client_counts_free(struct client_counts *counts)
{
  if (counts == NULL)
    return;
  u64map_free(&counts->map);
  pthread_mutex_destroy(&counts->lock);
  free(counts);
}

/* IPv4 keys lie in the multicast range of IPv6, where no client's prefix is. */
static bool
key_of(const struct sockaddr_storage *addr, uint64_t *key)
{
  if (addr->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const void *)addr;

    *key = UINT64_C(0xff00000000000000) | ntohl(in->sin_addr.s_addr);
    return true;
  }
  if (addr->ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const void *)addr;

    *key = 0;
    for (int i = 0; i < 8; i++)
      *key = *key << 8 | in6->sin6_addr.s6_addr[i];
    return true;
  }
  return false;
}

bool
client_counts_take(struct client_counts *counts, const struct sockaddr_storage *addr,
                   uint64_t max)
{
  uint64_t key;
  uintptr_t n;
  bool fits;

  if (!key_of(addr, &key))
    return true;
  pthread_mutex_lock(&counts->lock);
  n = (uintptr_t)u64map_get(&counts->map, key);
  fits = (max == 0 || n < max) && u64map_put(&counts->map, key, (void *)(n + 1)) == 0;
  pthread_mutex_unlock(&counts->lock);
  return fits;
}

void
client_counts_give(struct client_counts *counts, const struct sockaddr_storage *addr)
{
  uint64_t key;
  uintptr_t n;

  if (!key_of(addr, &key))
    return;
  pthread_mutex_lock(&counts->lock);
  n = (uintptr_t)u64map_get(&counts->map, key);
  /* Putting a smaller count needs no room; the last one takes the entry away. */
  if (n > 1 && u64map_put(&counts->map, key, (void *)(n - 1)) != 0)
    n = 1;
  if (n == 1)
    u64map_take(&counts->map, key);
  pthread_mutex_unlock(&counts->lock);
}

size_t
client_counts_size(struct client_counts *counts)
{
  size_t n;

  pthread_mutex_lock(&counts->lock);
  n = u64map_count(&counts->map);
  pthread_mutex_unlock(&counts->lock);
  return n;
}

/* --- peers ---------------------------------------------------------------------------- */

void
peer_describe(struct peer *peer)
{
  const void *address = NULL;
  char text[INET6_ADDRSTRLEN];

  if (peer->addr.ss_family == AF_INET)
    address = &((const struct sockaddr_in *)(const void *)&peer->addr)->sin_addr;
  else if (peer->addr.ss_family == AF_INET6)
    address = &((const struct sockaddr_in6 *)(const void *)&peer->addr)->sin6_addr;
  if (address == NULL || inet_ntop(peer->addr.ss_family, address, text, sizeof text) == NULL)
    snprintf(peer->text, sizeof peer->text, "local");
  else
    snprintf(peer->text, sizeof peer->text, "%s", text);
}

bool
listen_admit(struct listen_worker *lw, struct listener *listener, struct peer *peer)
{
  const struct conf_limits *limits = &listener->conf->limits;
  metric_cell *refused = lw->worker->metrics->refused;
  unsigned before = atomic_fetch_add_explicit(&listener->connections, 1, memory_order_relaxed);

  if (limits->max_connections != 0 && before >= limits->max_connections) {
    atomic_fetch_sub_explicit(&listener->connections, 1, memory_order_relaxed);
    metric_add(&refused[REFUSED_CONNECTIONS], 1);
    return false;
  }
  if (peer == NULL)
    return true;
  if (!client_counts_take(listener->clients, &peer->addr,
                          limits->max_connections_per_client)) {
    atomic_fetch_sub_explicit(&listener->connections, 1, memory_order_relaxed);
    metric_add(&refused[REFUSED_PER_CLIENT], 1);
    return false;
  }
  peer->counted = true;
  return true;
}

void
peer_release(struct listener *listener, struct peer *peer)
{
  if (!peer->counted)
    return;
  peer->counted = false;
  client_counts_give(listener->clients, &peer->addr);
  atomic_fetch_sub_explicit(&listener->connections, 1, memory_order_relaxed);
}
