/* SPDX-License-Identifier: MIT */
/* From the upstreams' heads to the network's tip.
 *
 * The tip is the highest head of those that are heard of and whose branch links to the known chain;
 * of two at the same height the one that is the tip already stays as long as anyone has it. It
 * goes down only when its own node has changed its mind (its head is on another branch now), or when
 * for some seconds nobody has shown it any more: a node that lags, or a provider that answers from
 * nodes at different heights, does not move it. */
#include <stdlib.h>
#include <string.h>
#include "gateway/gateway.h"
#include "head/parts.h"
#include "obs/log.h"
#include "push/hub.h"

#define FAR 64u
#define LOWER_AFTER_MS 2500u   /* the tip is given up when all were below it for so long */
#define LOWER_LOOK_MS 500u
#define COMMANDED_MS 5000u     /* after a command that moves a development chain */
#define POLL_MIN_MS 100u
#define IDLE_AFTER_MS 30000u   /* without requests */
#define IDLE_POLL_MS 10000u
#define SPARE_FACTOR 10u
#define TIER_LAG 3u            /* blocks by which the tiers in use may be behind a spare one */
#define ALIVE_EXTRA_MS 1500u
#define FED_ALIVE_MS 15000u

bool
tracker_is_far(const struct tracker *t, const struct block *block)
{
  return t->tip == NULL || (block->number > t->tip->number + FAR && block->number > t->believed);
}

/* --- pace ----------------------------------------------------------------------------------- */

/* Whether any client asked something lately. */
static bool
is_active(struct tracker *t)
{
  struct gateway *gateway = t->network->gateway;
  uint64_t now = uv_now(&t->worker->loop), sum = 0;
  unsigned i, k;

  for (i = 0; i < gateway->worker_count; i++)
    for (k = 0; k < CLIENT_KINDS; k++)
      sum += (uint64_t)metric_read(&gateway->workers[i].metrics->requests[k]);
  if (sum != t->activity || t->active_ms == 0) {
    t->activity = sum;
    t->active_ms = now;
  }
  return now - t->active_ms < IDLE_AFTER_MS;
}

/* One of a tier that is not in use only has to be known roughly: asking it may cost money. */
uint64_t
follower_poll_ms(const struct follower *f)
{
  const struct tracker *t = f->tracker;
  uint64_t most = t->network->conf->poll_interval;
  uint64_t ms = t->block_ms != 0 && t->block_ms / 2 < most ? t->block_ms / 2 : most;

  if (ms < POLL_MIN_MS)
    ms = POLL_MIN_MS < most ? POLL_MIN_MS : most;
  if (t->tip != NULL && f->upstream->conf->tier > t->tier)
    ms *= SPARE_FACTOR;
  return t->idle && ms < IDLE_POLL_MS ? IDLE_POLL_MS : ms;
}

static void
note_activity(struct tracker *t)
{
  bool idle = !is_active(t);

  if (idle == t->idle)
    return;
  t->idle = idle;
  atomic_store_explicit(&t->head->idle, idle, memory_order_release);
}

bool
follower_alive(const struct follower *f)
{
  uint64_t now = uv_now(&f->tracker->worker->loop);
  uint64_t most = 3 * follower_poll_ms(f) + ALIVE_EXTRA_MS;

  if (f->link->health != LINK_UP)
    return false;
  if (feed_alive(f) && most < FED_ALIVE_MS)
    most = FED_ALIVE_MS;
  return now - f->heard_ms <= most;
}

void
tracker_poll_behind(struct tracker *t)
{
  unsigned i;

  for (i = 0; i < t->count; i++) {
    struct follower *f = &t->followers[i];

    if (!feed_alive(f) && f->has_head && t->tip != NULL && f->head.number < t->tip->number &&
        f->upstream->conf->tier <= t->tier)
      follower_poll(f);
  }
}

/* --- the choice ------------------------------------------------------------------------------ */

static bool
is_tip(const struct tracker *t, const struct follower *f)
{
  return t->tip != NULL && f->has_head && memcmp(f->head.hash, t->tip->hash, HASH_LEN) == 0;
}

/* A spare node's head counts when the nodes in use are well behind: the tip is what clients get from
 * those. */
static bool
better(const struct tracker *t, const struct follower *a, const struct follower *b)
{
  int64_t x = a->upstream->conf->tier, y = b->upstream->conf->tier;

  if (x > y)
    return a->head.number > b->head.number + TIER_LAG;
  if (x < y)
    return a->head.number + TIER_LAG >= b->head.number;
  if (a->head.number != b->head.number)
    return a->head.number > b->head.number;
  return is_tip(t, a) && !is_tip(t, b);
}

static struct follower *
choose(struct tracker *t, struct block **block)
{
  struct follower *best = NULL;
  struct block *missing;
  unsigned i;

  for (i = 0; i < t->count; i++) {
    struct follower *f = &t->followers[i];
    struct block *b = f->has_head ? blocks_find(&t->blocks, f->head.hash) : NULL;

    if (b == NULL || f->identity == IDENTITY_STRANGER || !follower_alive(f) ||
        blocks_reach(&t->blocks, b, &missing) != REACH_LINKED)
      continue;
    if (best == NULL || better(t, f, best)) {
      best = f;
      *block = b;
    }
  }
  return best;
}

/* Whether the tip may go down to `block`, the best there is. */
static bool
may_lower(struct tracker *t, const struct follower *f, const struct block *block)
{
  uint64_t now = uv_now(&t->worker->loop);

  if (now < t->allow_lower_ms || (f->was_tip && !blocks_is_canonical(&t->blocks, block)))
    return true;
  if (t->lower_since_ms == 0)
    t->lower_since_ms = now;
  if (now - t->lower_since_ms >= LOWER_AFTER_MS)
    return true;
  worker_timer_start(t->worker, &t->choose_timer, LOWER_LOOK_MS);
  return false;
}

/* Time between blocks, by their own time stamps: half of the error is corrected with each. */
static void
measure(struct tracker *t, const struct block *block)
{
  const struct block *parent = blocks_at(&t->blocks, block->number - 1);
  uint64_t ms;

  if (block->number == 0 || parent == NULL || block->time < parent->time)
    return;
  ms = (block->time - parent->time) * 1000;
  t->block_ms = t->block_ms == 0 ? ms : (t->block_ms + ms) / 2;
}

/* What moves when `block` becomes the tip, for the hub. */
struct move {
  struct block **dropped, **added;   /* downwards from the old tip; upwards to the new one */
  unsigned dropped_count, added_count;
};

static bool
move_find(const struct blocks *blocks, struct block *block, struct move *move)
{
  uint64_t n, ancestor;
  struct block *b = block;
  unsigned i;

  memset(move, 0, sizeof(*move));
  for (ancestor = 0; !blocks_is_canonical(blocks, b); b = blocks_find(blocks, b->parent)) {
    move->added_count++;
    if (blocks_at_bottom(blocks, b))
      break;
  }
  ancestor = blocks_is_canonical(blocks, b) ? b->number + 1 : b->number;
  move->dropped_count = (unsigned)(blocks->high + 1 - ancestor);
  move->added = calloc(move->added_count + 1, sizeof(struct block *));
  move->dropped = calloc(move->dropped_count + 1, sizeof(struct block *));
  if (move->added == NULL || move->dropped == NULL)
    return false;
  for (i = move->added_count, b = block; i-- > 0; b = blocks_find(blocks, b->parent))
    move->added[i] = b;
  for (n = blocks->high, i = 0; i < move->dropped_count; n--)
    move->dropped[i++] = blocks_at(blocks, n);
  return true;
}

static void
tell_hub(struct tracker *t, struct move *move, bool whole)
{
  struct hub *hub = t->network->hub;

  if (hub != NULL && whole)
    hub_moved(hub, move->dropped, move->dropped_count, move->added, move->added_count);
  free(move->dropped);
  free(move->added);
}

static void
set_tip(struct tracker *t, const struct follower *best, struct block *block)
{
  unsigned i, dropped = blocks_set_tip(&t->blocks, block);

  if (dropped != 0) {
    t->reorgs++;
    egw_log(EGW_INFO, "head", "%s: a reorganisation took %u blocks away, the tip is %llu",
            t->network->name, dropped, (unsigned long long)block->number);
  }
  t->tip = block;
  t->fresh = false;
  t->believed = 0;
  t->tier = best->upstream->conf->tier;
  atomic_store_explicit(&t->head->tier, t->tier, memory_order_relaxed);
  t->lower_since_ms = 0;
  if (t->finality.has_finalized && t->finality.finalized.number > block->number)
    t->finality.has_finalized = false;
  if (t->finality.has_safe && t->finality.safe.number > block->number)
    t->finality.has_safe = false;
  if (atomic_load_explicit(&t->head->evidence, memory_order_relaxed) > block->number &&
      dropped != 0)
    atomic_store_explicit(&t->head->evidence, block->number, memory_order_relaxed);
  measure(t, block);
  for (i = 0; i < t->count; i++)
    t->followers[i].was_tip = is_tip(t, &t->followers[i]);
}

/* Every node is on a branch that leaves the known chain below its lowest block: there is no telling what
 * lies between. */
static bool
is_lost(struct tracker *t, struct follower **f, struct block **block)
{
  struct block *missing;
  unsigned i;

  *f = NULL;
  for (i = 0; i < t->count; i++) {
    struct follower *one = &t->followers[i];
    struct block *b = one->has_head ? blocks_find(&t->blocks, one->head.hash) : NULL;

    if (b == NULL || one->identity == IDENTITY_STRANGER || !follower_alive(one) ||
        t->tip == NULL || b->number <= t->tip->number)
      continue;
    if (blocks_reach(&t->blocks, b, &missing) != REACH_BELOW)
      return false;
    if (*f == NULL || b->number > (*block)->number) {
      *f = one;
      *block = b;
    }
  }
  return *f != NULL;
}

/* Takes the chain up anew; who was told of the old one learns that something is missing. */
static void
start_anew(struct tracker *t, struct follower *f, struct block *block)
{
  egw_log(EGW_WARN, "head", "%s: the chain of %s leaves the known one further down than that is "
          "known; it is taken up anew at block %llu", t->network->name, f->upstream->name,
          (unsigned long long)block->number);
  blocks_restart(&t->blocks, block);
  t->tip = block;
  t->fresh = true;
  if (t->network->hub != NULL)
    hub_lost(t->network->hub);
  tracker_choose(t);
}

void
tracker_choose(struct tracker *t)
{
  struct block *block = NULL;
  struct follower *best;
  struct move move;
  bool whole;

  if (t->stopped)
    return;
  note_activity(t);
  best = choose(t, &block);
  if (best == NULL && is_lost(t, &best, &block)) {
    start_anew(t, best, block);
    return;
  }
  if (best != NULL && best->upstream->conf->tier > t->tier) { /* none of those in use is left */
    t->tier = best->upstream->conf->tier;
    follower_poll(best);
  }
  if (best == NULL || (block == t->tip && !t->fresh) ||
      (block->number < t->tip->number && !may_lower(t, best, block))) {
    if (best != NULL && block == t->tip) {
      best->was_tip = true;
      t->lower_since_ms = 0;
    }
    tracker_publish(t);
    return;
  }
  whole = move_find(&t->blocks, block, &move);
  set_tip(t, best, block);
  tracker_publish(t);
  tell_hub(t, &move, whole);
  finality_ask(t);
  tracker_backfill(t);
  tracker_poll_behind(t);
}

static void
on_choose_timer(struct wheel_timer *timer)
{
  tracker_choose(container_of(timer, struct tracker, choose_timer));
}

/* --- other workers' news ------------------------------------------------------------------------ */

static void
poll_all(struct tracker *t)
{
  unsigned i;

  for (i = 0; i < t->count; i++)
    follower_poll(&t->followers[i]);
}

static void
on_news(void *arg)
{
  struct head *head = arg;
  struct tracker *t = head->tracker;
  unsigned news = atomic_exchange_explicit(&head->news, 0, memory_order_acq_rel);

  if (t == NULL || t->stopped)
    return;
  if ((news & HEAD_NEWS_COMMAND) != 0)
    t->allow_lower_ms = uv_now(&t->worker->loop) + COMMANDED_MS;
  if ((news & HEAD_NEWS_WAKE) != 0) {
    t->active_ms = 0;
    note_activity(t);
  }
  poll_all(t);
  tracker_backfill(t);
}

static void
tell_owner(const struct network *network, unsigned news)
{
  struct head *head = network->head;

  if (head->owner == NULL)
    return;
  if (atomic_fetch_or_explicit(&head->news, news, memory_order_acq_rel) != 0)
    return; /* it is on its way */
  if (egw_post(head->owner, on_news, head) < 0)
    atomic_store_explicit(&head->news, 0, memory_order_release);
}

static void
raise_to(_Atomic uint64_t *at, uint64_t value)
{
  uint64_t now = atomic_load_explicit(at, memory_order_relaxed);

  while (now < value && !atomic_compare_exchange_weak_explicit(at, &now, value,
                                                               memory_order_acq_rel,
                                                               memory_order_relaxed))
    ;
}

void
head_touch(const struct network *network, bool command)
{
  uint64_t touched;

  if (!head_is_tracked(network->head))
    return;
  touched = 1 + atomic_fetch_add_explicit(&network->head->touched, 1, memory_order_acq_rel);
  if (command)
    raise_to(&network->head->commanded, touched);
  tell_owner(network, command ? HEAD_NEWS_COMMAND : HEAD_NEWS_TOUCH);
}

uint64_t
head_look(const struct network *network)
{
  uint64_t touched =
      1 + atomic_fetch_add_explicit(&network->head->touched, 1, memory_order_acq_rel);

  tell_owner(network, HEAD_NEWS_TOUCH);
  return touched;
}

void
head_wake(const struct network *network)
{
  if (atomic_exchange_explicit(&network->head->idle, false, memory_order_acq_rel))
    tell_owner(network, HEAD_NEWS_WAKE);
}

void
head_saw(struct egw_worker *worker, struct upstream *upstream, uint64_t number)
{
  const struct network *network = upstream->network;
  const struct egw_head *now = &head_now(worker, network)->pub;

  if (!now->known || number > now->tip.number + HEAD_BELIEVED)
    return;
  raise_to(&upstream->head, number + 1);
  if (number <= now->tip.number ||
      upstream->conf->tier > atomic_load_explicit(&network->head->tier, memory_order_relaxed))
    return;
  raise_to(&network->head->evidence, number);
  tell_owner(network, HEAD_NEWS_SAW);
}

/* --- life --------------------------------------------------------------------------------------- */

static void
start_tracker(void *arg)
{
  struct head *head = arg;
  struct tracker *t = head->tracker;
  unsigned i;

  if (t->started || t->stopped || t->worker->state >= WORKER_STOPPING)
    return;
  t->started = true;
  for (i = 0; i < t->count; i++)
    follower_start(&t->followers[i]);
}

static struct tracker *
make_tracker(struct egw_worker *worker, struct network *network)
{
  struct tracker *t = calloc(1, sizeof(*t));
  unsigned i;

  if (t == NULL)
    return NULL;
  t->followers = calloc(network->upstream_count + 1, sizeof(*t->followers));
  if (t->followers == NULL) {
    free(t);
    return NULL;
  }
  t->network = network;
  t->head = network->head;
  t->worker = worker;
  t->count = network->upstream_count;
  t->choose_timer.fn = on_choose_timer;
  finality_start(t);
  for (i = 0; i < t->count; i++) {
    struct follower *f = &t->followers[i];

    f->tracker = t;
    f->upstream = network->upstreams[i];
    f->link = worker->links[f->upstream->index];
  }
  return t;
}

int
head_start(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  size_t i;

  for (i = 0; i < gateway->network_count; i++) {
    struct network *network = &gateway->networks[i];
    struct head *head = network->head;

    if (head->owner != worker)
      continue;
    head->tracker = make_tracker(worker, network);
    if (head->tracker == NULL || hub_start(network->hub) < 0)
      return -1;
    if (network->upstream_count > 1 || network->hears_head ||
        atomic_load_explicit(&head->wanted, memory_order_acquire)) {
      atomic_store_explicit(&head->wanted, true, memory_order_release);
      start_tracker(head);
    }
  }
  return 0;
}

void
head_want(const struct network *network)
{
  struct head *head = network->head;

  if (atomic_exchange_explicit(&head->wanted, true, memory_order_acq_rel) || head->owner == NULL)
    return;
  if (egw_post(head->owner, start_tracker, head) < 0)
    atomic_store_explicit(&head->wanted, false, memory_order_release);
}

void
head_stop(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  size_t i;
  unsigned k;

  for (i = 0; i < gateway->network_count; i++) {
    struct tracker *t = gateway->networks[i].head->tracker;

    if (gateway->networks[i].head->owner != worker || t == NULL || t->stopped)
      continue;
    hub_stop(gateway->networks[i].hub);
    t->stopped = true;
    for (k = 0; k < t->count; k++)
      follower_stop(&t->followers[k]);
    for (k = 0; k < BACKFILL_AT_ONCE; k++)
      question_stop(&t->backfill[k]);
    finality_stop(t);
    worker_timer_stop(worker, &t->choose_timer);
  }
}

void
head_tracker_free(struct head *head)
{
  if (head->tracker == NULL)
    return;
  blocks_free(&head->tracker->blocks);
  free(head->tracker->followers);
  free(head->tracker);
  head->tracker = NULL;
}
