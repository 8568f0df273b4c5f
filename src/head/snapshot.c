/* SPDX-License-Identifier: MIT */
/* Snapshots: from the owner to every worker. A worker keeps a reference to the one it saw last;
 * when it finds a newer version it takes that one, and lets the old one go only after the callback
 * that may still look at it has returned. */
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "push/local.h"

/* Tells a worker's stages of a change; at most one of a network is on its way. */
struct notice {
  struct egw_worker *worker;
  const struct network *network;
  atomic_bool posted;
};

/* What egw_head() gave out: the snapshot's public part and what has changed since. */
struct view {
  struct egw_head pub;
  const struct head_snapshot *of;
};

/* A worker's view of all networks. */
struct head_worker {
  struct worker_job job;              /* lets old ones go */
  struct egw_worker *worker;
  struct head_snapshot **seen;        /* by network index */
  struct head_snapshot **old;         /* waiting to be let go */
  size_t old_count, old_room;
  struct notice *notices;             /* by network index */
  struct view *views;                 /* by network index */
};

void
head_snapshot_unref(struct head_snapshot *snapshot)
{
  if (snapshot != NULL && atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) == 1)
    free(snapshot);
}

struct head_snapshot *
head_snapshot_ref(const struct head_snapshot *snapshot)
{
  struct head_snapshot *mine = (struct head_snapshot *)(uintptr_t)snapshot; /* only its count */

  atomic_fetch_add_explicit(&mine->refs, 1, memory_order_relaxed);
  return mine;
}

struct head_snapshot *
head_snapshot_new(struct head *head, unsigned count)
{
  struct head_snapshot *snapshot;
  size_t size;

  if (!size_mul(count, sizeof(snapshot->hashes[0]), &size) ||
      !size_add(size, sizeof(*snapshot), &size))
    return NULL;
  snapshot = calloc(1, size);
  if (snapshot == NULL)
    return NULL;
  atomic_init(&snapshot->refs, 1);
  snapshot->count = count;
  snapshot->pub.version = atomic_load_explicit(&head->version, memory_order_relaxed) + 1;
  return snapshot;
}

int
head_init(struct head *head)
{
  atomic_init(&head->version, 0);
  atomic_init(&head->evidence, 0);
  atomic_init(&head->touched, 0);
  atomic_init(&head->commanded, 0);
  atomic_init(&head->news, 0);
  atomic_init(&head->idle, false);
  atomic_init(&head->wanted, false);
  atomic_init(&head->deep, false);
  atomic_init(&head->tier, 0);
  atomic_init(&head->waiting, 0);
  head->tracker = NULL;
  head->owner = NULL;
  head->newest = head_snapshot_new(head, 0);
  if (head->newest == NULL)
    return -1;
  pthread_mutex_init(&head->lock, NULL); /* can't fail without attributes */
  atomic_store(&head->version, head->newest->pub.version);
  return 0;
}

void
head_free(struct head *head)
{
  if (head->newest == NULL)
    return;
  head_tracker_free(head);
  head_snapshot_unref(head->newest);
  head->newest = NULL;
  pthread_mutex_destroy(&head->lock);
}

/* --- workers --------------------------------------------------------------------------------- */

static void
on_let_go(struct worker_job *job)
{
  struct head_worker *hw = container_of(job, struct head_worker, job);

  while (hw->old_count != 0)
    head_snapshot_unref(hw->old[--hw->old_count]);
}

int
head_worker_init(struct egw_worker *worker)
{
  size_t i, n = worker->gateway->network_count;
  struct head_worker *hw = calloc(1, sizeof(*hw));

  if (hw == NULL)
    return -1;
  hw->worker = worker;
  hw->job.fn = on_let_go;
  list_init(&hw->job.node);
  hw->old_room = 2 * n + 2;
  hw->seen = calloc(n + 1, sizeof(struct head_snapshot *));
  hw->old = calloc(hw->old_room, sizeof(struct head_snapshot *));
  hw->notices = calloc(n + 1, sizeof(*hw->notices));
  hw->views = calloc(n + 1, sizeof(*hw->views));
  worker->heads = hw;
  if (hw->seen == NULL || hw->old == NULL || hw->notices == NULL || hw->views == NULL)
    return -1;
  for (i = 0; i < n; i++) {
    hw->notices[i].worker = worker;
    hw->notices[i].network = &worker->gateway->networks[i];
  }
  return 0;
}

void
head_worker_free(struct egw_worker *worker)
{
  struct head_worker *hw = worker->heads;
  size_t i;

  if (hw == NULL)
    return;
  on_let_go(&hw->job);
  for (i = 0; hw->seen != NULL && i < worker->gateway->network_count; i++)
    head_snapshot_unref(hw->seen[i]);
  free(hw->seen);
  free(hw->old);
  free(hw->notices);
  free(hw->views);
  free(hw);
  worker->heads = NULL;
}

/* Many changes within one turn. false: no memory. */
static bool
more_room(struct head_worker *hw)
{
  struct head_snapshot **old = realloc(hw->old, 2 * hw->old_room * sizeof(*old));

  if (old == NULL)
    return false;
  hw->old = old;
  hw->old_room *= 2;
  return true;
}

const struct head_snapshot *
head_now(struct egw_worker *worker, const struct network *network)
{
  struct head_worker *hw = worker->heads;
  struct head *head = network->head;
  struct head_snapshot **seen = &hw->seen[network->index];
  struct head_snapshot *newest;

  if (*seen != NULL &&
      (*seen)->pub.version == atomic_load(&head->version)) /* see hub_moved() */
    return *seen;
  if (*seen != NULL && hw->old_count == hw->old_room && !more_room(hw))
    return *seen; /* the next turn sees the newest */
  pthread_mutex_lock(&head->lock);
  newest = head->newest;
  atomic_fetch_add_explicit(&newest->refs, 1, memory_order_relaxed);
  pthread_mutex_unlock(&head->lock);
  if (*seen != NULL) {
    hw->old[hw->old_count++] = *seen;
    worker_run_soon(worker, &hw->job);
  }
  *seen = newest;
  return newest;
}

void
head_peek(struct head *head, struct egw_head *out)
{
  pthread_mutex_lock(&head->lock);
  *out = head->newest->pub;
  pthread_mutex_unlock(&head->lock);
}

/* From the newest on, since those are what is asked for. Eight bytes tell nearly all of them apart. */
bool
head_number(const struct head_snapshot *snapshot, const unsigned char hash[32], uint64_t *number)
{
  uint64_t want, have;
  unsigned i;

  memcpy(&want, hash, sizeof(want));
  for (i = snapshot->count; i-- > 0;) {
    memcpy(&have, snapshot->hashes[i], sizeof(have));
    if (have == want && memcmp(snapshot->hashes[i], hash, 32) == 0) {
      *number = snapshot->pub.lowest + i;
      return true;
    }
  }
  return false;
}

uint64_t
head_newest(const struct head *head, const struct head_snapshot *snapshot)
{
  uint64_t seen = atomic_load_explicit(&head->evidence, memory_order_acquire);

  return seen > snapshot->pub.tip.number ? seen : snapshot->pub.tip.number;
}

bool
head_settled(const struct head *head, const struct head_snapshot *snapshot)
{
  return snapshot->pub.live && snapshot->pub.known &&
         !atomic_load_explicit(&head->idle, memory_order_acquire) &&
         atomic_load_explicit(&head->evidence, memory_order_acquire) <= snapshot->pub.tip.number &&
         atomic_load_explicit(&head->touched, memory_order_acquire) == snapshot->touched;
}

bool
head_commanded(const struct head *head, const struct head_snapshot *snapshot)
{
  return atomic_load_explicit(&head->commanded, memory_order_acquire) > snapshot->touched;
}

static const struct egw_head *
view(struct egw_worker *worker, const struct network *network)
{
  const struct head_snapshot *now = head_now(worker, network);
  struct view *v = &worker->heads->views[network->index];

  if (v->of != now || v->pub.version != now->pub.version) {
    v->pub = now->pub;
    v->of = now;
  }
  if (atomic_load_explicit(&network->head->idle, memory_order_relaxed))
    head_wake(network);
  v->pub.settled = head_settled(network->head, now);
  return &v->pub;
}

/* --- publishing -------------------------------------------------------------------------------- */

/* On each worker: its stages hear of it. */
static void
on_notice(void *arg)
{
  struct notice *n = arg;

  atomic_store_explicit(&n->posted, false, memory_order_release);
  if (n->worker->state < WORKER_STOPPING)
    stages_tell_head(n->worker, n->network, view(n->worker, n->network));
  if (n->worker->state < WORKER_STOPPING)
    local_head_known(n->worker, n->network);
}

void
head_publish(struct network *network, struct head_snapshot *snapshot)
{
  struct head *head = network->head;
  struct gateway *gateway = network->gateway;
  struct head_snapshot *before;
  unsigned i;

  pthread_mutex_lock(&head->lock);
  before = head->newest;
  head->newest = snapshot;
  atomic_store(&head->version, snapshot->pub.version);
  pthread_mutex_unlock(&head->lock);
  head_snapshot_unref(before);
  if (!network->hears_head && atomic_load(&head->waiting) == 0)
    return;
  for (i = 0; i < gateway->worker_count; i++) {
    struct egw_worker *worker = &gateway->workers[i];
    struct notice *n = &worker->heads->notices[network->index];

    if (!atomic_exchange_explicit(&n->posted, true, memory_order_acq_rel) &&
        egw_post(worker, on_notice, n) < 0) /* no memory; the snapshot is seen all the same */
      atomic_store_explicit(&n->posted, false, memory_order_release);
  }
}

/* --- for plugins --------------------------------------------------------------------------------- */

const struct egw_head *
egw_head(const struct egw_at *at)
{
  const struct network *network = at->stage->network;

  if (!head_is_tracked(network->head))
    head_want(network);
  return view(at->worker, network);
}

bool
egw_head_hash(const struct egw_head *head, uint64_t number, unsigned char hash[32])
{
  const struct head_snapshot *snapshot = container_of(head, struct view, pub)->of;

  if (!head->known || number < head->lowest || number - head->lowest >= snapshot->count)
    return false;
  memcpy(hash, snapshot->hashes[number - head->lowest], 32);
  return true;
}
