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
#define AHEAD_MAX_MS 5000u     /* a block that somebody spoke of is waited for so long */
#define SWITCHED_MS 200u       /* the tip's node has announced a lower block of another branch */
#define POLL_MIN_MS 100u
#define IDLE_AFTER_MS 30000u   /* without requests */
#define IDLE_POLL_MS 10000u
#define SPARE_FACTOR 10u
#define TIER_LAG 3u            /* blocks by which the tiers in use may be behind a spare one */
#define ALIVE_EXTRA_MS 1500u
#define FED_ALIVE_MS 15000u
#define FED_POLL_FACTOR 4u     /* a node that pushes is polled so much less often, */
#define FED_POLL_MIN_MS 4000u  /* only to see whether its feed has fallen silent */
#define MEASURED 16u           /* blocks over which the time between two is measured */

bool
tracker_is_far(const struct tracker *t, const struct block *block)
{
  uint64_t near = t->tip == NULL || t->believed > t->tip->number ? t->believed : t->tip->number;

  return t->tip == NULL || (block->number > near && block->number - near > FAR);
}

/* --- pace ----------------------------------------------------------------------------------- */

/* Whether any client asked something lately, or waits for events. */
static bool
is_active(struct tracker *t)
{
  struct gateway *gateway = t->network->gateway;
  uint64_t now = uv_now(&t->worker->loop), sum = 0;
  unsigned i, k;

  for (k = 0; t->network->hub != NULL && k < HUB_KINDS; k++)
    if (hub_is_wanted(t->network->hub, (enum hub_kind)k))
      return true;
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

uint64_t
follower_pause_ms(const struct follower *f)
{
  uint64_t ms = follower_poll_ms(f);

  if (!feed_alive(f))
    return ms;
  return ms * FED_POLL_FACTOR < FED_POLL_MIN_MS ? FED_POLL_MIN_MS : ms * FED_POLL_FACTOR;
}

void
tracker_note_activity(struct tracker *t)
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
  if (feed_alive(f))
    most = follower_pause_ms(f) + FED_ALIVE_MS;
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

/* A spare node's head counts when the nodes in use are well behind: the tip is what clients
 * get from those. */
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

/* Whether anyone has the tip, or a block above it: a spare node, when those of the tier in
 * use are back but not yet there. */
static bool
is_held(const struct tracker *t)
{
  struct block *missing;
  unsigned i;

  for (i = 0; i < t->count; i++) {
    const struct follower *f = &t->followers[i];
    struct block *b = f->has_head ? blocks_find(&t->blocks, f->head.hash) : NULL;

    if (b != NULL && b->number >= t->tip->number && f->identity != IDENTITY_STRANGER &&
        follower_alive(f) && blocks_reach(&t->blocks, b, &missing) == REACH_LINKED)
      return true;
  }
  return false;
}

/* Whether all have been below the tip for long enough, or are meant to be. */
static bool
is_low_for_long(struct tracker *t)
{
  uint64_t now = uv_now(&t->worker->loop);

  if (now < t->allow_lower_ms)
    return true;
  if (t->lower_since_ms == 0)
    t->lower_since_ms = now;
  if (now - t->lower_since_ms >= LOWER_AFTER_MS)
    return true;
  worker_timer_start(t->worker, &t->choose_timer, LOWER_LOOK_MS);
  return false;
}

/* The tip's own node is on another branch, lower down. Nodes announce the blocks of a
 * branch one by one, upwards: the next ones are awaited, so that the tip need not go down
 * and up again. */
static bool
is_switched(struct tracker *t)
{
  uint64_t now = uv_now(&t->worker->loop);

  if (t->lower_since_ms == 0)
    t->lower_since_ms = now;
  if (now < t->allow_lower_ms || now - t->lower_since_ms >= SWITCHED_MS)
    return true;
  worker_timer_start(t->worker, &t->choose_timer, SWITCHED_MS);
  return false;
}

/* Whether the tip may go down to `block`, the best there is. */
static bool
may_lower(struct tracker *t, const struct follower *f, const struct block *block)
{
  uint64_t now = uv_now(&t->worker->loop);

  if (f->was_tip && !blocks_is_canonical(&t->blocks, block))
    return is_switched(t);
  /* In the beginning the first one to answer may just have been a spare one. */
  if (now >= t->allow_lower_ms && now - t->started_ms > 2 * LOWER_AFTER_MS && is_held(t)) {
    t->lower_since_ms = 0;
    return false;
  }
  return is_low_for_long(t);
}

/* Time between blocks, by their own time stamps; these are whole seconds, so several blocks
 * are needed. */
static void
measure(struct tracker *t, const struct block *block)
{
  uint64_t known = block->number - t->blocks.low, n = known < MEASURED ? known : MEASURED;
  const struct block *before = blocks_at(&t->blocks, block->number - n);

  if (n == 0 || before == NULL || before->time == 0 || block->time < before->time)
    return;
  t->block_ms = (block->time - before->time) * 1000 / n;
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
  struct block *first = blocks_at(&t->blocks, t->blocks.low);

  if (hub != NULL && t->replaced)
    hub_moved(hub, NULL, 0, &first, 1);
  if (hub != NULL && whole)
    hub_moved(hub, move->dropped, move->dropped_count, move->added, move->added_count);
  else if (hub != NULL)
    hub_lost(hub);
  t->replaced = false;
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
  t->lower_since_ms = t->ahead_since_ms = 0;
  finality_moved(t);
  if (atomic_load_explicit(&t->head->evidence, memory_order_relaxed) > block->number &&
      dropped != 0)
    atomic_store_explicit(&t->head->evidence, block->number, memory_order_relaxed);
  measure(t, block);
  for (i = 0; i < t->count; i++)
    t->followers[i].was_tip = is_tip(t, &t->followers[i]);
}

/* Whether it is not just a node that lags: it is above the tip, or its own head was the tip
 * and now for long is not (a development chain that was moved back by more than the
 * window). */
static bool
has_left(struct tracker *t, const struct follower *f, const struct block *block)
{
  return block->number > t->tip->number || (f->was_tip && is_low_for_long(t));
}

/* Every node is on a branch that leaves the known chain below its lowest block: there is no
 * telling what lies between. */
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
        t->tip == NULL || !has_left(t, one, b))
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

void
tracker_restart(struct tracker *t, struct block *block)
{
  bool gap = t->tip != NULL || (t->replaced && block->number != 0);

  if (gap && t->network->hub != NULL)
    hub_lost(t->network->hub);
  t->replaced = t->replaced && !gap;
  blocks_restart(&t->blocks, block);
  t->tip = block;
  t->fresh = true;
  t->depth = HEAD_SHALLOW;
  t->backfill_failures = 0;
  t->lower_since_ms = 0;
  if (atomic_load_explicit(&t->head->evidence, memory_order_relaxed) > block->number)
    atomic_store_explicit(&t->head->evidence, block->number, memory_order_relaxed);
}

static void
start_anew(struct tracker *t, struct follower *f, struct block *block)
{
  egw_log(EGW_WARN, "head", "%s: the chain of %s leaves the known one further down than that is "
          "known; it is taken up anew at block %llu", t->network->name, f->upstream->name,
          (unsigned long long)block->number);
  tracker_restart(t, block);
  tracker_choose(t);
}

/* Somebody spoke of a newer block, and for long nobody has it: it was a lie, or it is gone. Until then it
 * is not unsaid. */
static void
forget_evidence(struct tracker *t)
{
  uint64_t now = uv_now(&t->worker->loop);
  uint64_t seen = atomic_load_explicit(&t->head->evidence, memory_order_relaxed);

  if (t->tip == NULL || seen <= t->tip->number)
    t->ahead_since_ms = 0;
  else if (t->ahead_since_ms == 0)
    t->ahead_since_ms = now;
  else if (now - t->ahead_since_ms >= AHEAD_MAX_MS) /* unless it has just been raised */
    atomic_compare_exchange_strong(&t->head->evidence, &seen, t->tip->number);
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
  tracker_note_activity(t);
  forget_evidence(t);
  best = choose(t, &block);
  if (best == NULL && is_lost(t, &best, &block)) {
    start_anew(t, best, block);
    return;
  }
  if (best != NULL && best->upstream->conf->tier != t->tier) {
    bool spare = best->upstream->conf->tier > t->tier; /* none of those in use is left */

    t->tier = best->upstream->conf->tier;
    atomic_store_explicit(&t->head->tier, t->tier, memory_order_relaxed);
    if (spare)
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
  struct tracker *t = container_of(timer, struct tracker, choose_timer);

  tracker_choose(t);
  if (!t->stopped && atomic_load(&t->head->waiting) != 0)
    tracker_look_later(t);
}

/* --- life --------------------------------------------------------------------------------------- */

static void
start_tracker(void *arg)
{
  struct head *head = arg;
  struct tracker *t = head->tracker;
  unsigned i;

  if (t == NULL || t->started || t->stopped || t->worker->state >= WORKER_STOPPING)
    return;
  t->started = true;
  t->started_ms = uv_now(&t->worker->loop);
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
