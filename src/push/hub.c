/* SPDX-License-Identifier: MIT */
/* From the chain's moves to events. Heads go out at once; logs wait in `steps` until those of the
 * block in front are known, so that they come in the chain's order. */
#include "push/hub.h"

#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "obs/log.h"
#include "push/filter-ask.h"
#include "push/filters.h"
#include "push/local.h"
#include "push/pending.h"
#include "push/syncing.h"

#define STEPS_MAX 4096u      /* blocks whose logs wait; beyond it subscribers are told so by their end */
#define ASK_AT_ONCE 4u       /* blocks whose logs are asked for at the same time */
#define TOLD_MAX 256u        /* blocks whose logs are kept, for reorganisations */
#define ASK_TIMEOUT_MS 10000u
#define AGAIN_FIRST_MS 50u
#define AGAIN_MAX_MS 2000u
#define EMPTY_TRIES 6u       /* no logs, though the bloom speaks of some: true after 3 s */
#define LIES_MAX 3u          /* after so many such blocks a bloom means nothing */
#define REFUSED_MAX 24u      /* refusals until the logs of a block are given up: 40 s */

/* A block whose logs are to be told, or taken back. */
struct log_step {
  struct list node;            /* hub->steps or hub->told */
  struct hub *hub;
  uint64_t number;
  unsigned char hash[HASH_LEN];
  bool removed;                /* `logs` are those to take back, reversed; NULL: not known */
  struct log_set *logs;        /* NULL: not known yet */
  uint64_t version;            /* of the head, when the chain moved */
  uint64_t first_version;      /* removed: when the block came */
  struct egw_call *asking;     /* eth_getLogs */
  struct wheel_timer again;
  unsigned tries, refused;
  bool has_bloom_bits;         /* the header says there are logs */
};

/* --- events ---------------------------------------------------------------------------------- */

static uint64_t
version_now(const struct hub *hub)
{
  return atomic_load_explicit(&hub->network->head->version, memory_order_relaxed);
}

struct hub_event *
hub_event_new(struct hub *hub, enum hub_kind kind)
{
  struct hub_event *event = calloc(1, sizeof(*event));

  if (event == NULL)
    return NULL;
  atomic_init(&event->refs, 1);
  event->kind = kind;
  event->network = hub->network;
  event->version = event->first_version = UINT64_MAX; /* new to all */
  return event;
}

void
hub_event_unref(struct hub_event *event)
{
  if (event == NULL ||
      atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
    return;
  egw_buf_unref(event->buf);
  log_set_unref(event->logs);
  free(event);
}

void
hub_tell(struct hub *hub, struct hub_event *event)
{
  struct gateway *gateway = hub->network->gateway;
  unsigned i;

  filters_event(hub, event);
  for (i = 0; i < gateway->worker_count; i++)
    local_post(&gateway->workers[i], event);
  hub_event_unref(event);
}

bool
hub_has_room(const struct hub *hub)
{
  uint64_t sum = 0;
  unsigned i;

  for (i = 0; i < HUB_KINDS; i++)
    sum += atomic_load_explicit(&hub->wanted[i], memory_order_relaxed);
  return sum < (uint64_t)hub->network->conf->max_subscriptions;
}

void
hub_want(struct hub *hub, enum hub_kind kind, int change)
{
  if (change > 0) {
    atomic_fetch_add(&hub->wanted[kind], 1);
    head_want(hub->network);
  } else {
    atomic_fetch_sub_explicit(&hub->wanted[kind], 1, memory_order_acq_rel);
  }
  if (kind == HUB_PENDING || kind == HUB_PENDING_FULL)
    pending_changed(hub);
  else if (kind == HUB_SYNCING)
    syncing_changed(hub);
}

void
hub_filter_add(struct hub *hub, struct hub_filter *entry)
{
  pthread_mutex_lock(&hub->lock);
  list_append(&hub->filters, &entry->node);
  pthread_mutex_unlock(&hub->lock);
}

void
hub_filter_remove(struct hub *hub, struct hub_filter *entry)
{
  pthread_mutex_lock(&hub->lock);
  list_remove(&entry->node);
  pthread_mutex_unlock(&hub->lock);
}

/* --- logs ------------------------------------------------------------------------------------- */

static void pump(struct hub *hub);

static void
step_free(struct log_step *step)
{
  if (step->asking != NULL) {
    step->asking->sub->done = NULL;
    call_cancel(step->asking, RPC_FAULT_CANCELLED);
  }
  if (step->hub->owner != NULL)
    worker_timer_stop(step->hub->owner, &step->again);
  list_remove(&step->node);
  log_set_unref(step->logs);
  free(step);
}

static void
ask_again(struct log_step *step)
{
  worker_timer_start(step->hub->owner, &step->again,
                     backoff_ms(step->tries++, AGAIN_FIRST_MS, AGAIN_MAX_MS));
}

/* The node may have the block, and not its logs yet. Blooms of some chains speak of logs
 * that nobody is given, always. */
static bool
is_too_early(struct log_step *step)
{
  struct hub *hub = step->hub;

  if (step->logs->count != 0)
    hub->bloom_lies = 0;
  if (step->logs->count != 0 || !step->has_bloom_bits || hub->bloom_lies >= LIES_MAX)
    return false;
  if (step->tries < EMPTY_TRIES)
    return true;
  hub->bloom_lies++;
  return false;
}

static void
on_logs(void *arg, const struct egw_reply *reply)
{
  struct log_step *step = arg;
  struct hub *hub = step->hub;

  step->asking = NULL;
  hub->asking--;
  if (hub->stopped)
    return;
  if (reply->outcome == EGW_OK && !reply->is_error && !reply->partial && reply->buf != NULL)
    step->logs = log_set_new(reply->buf, reply->body);
  else if (reply->outcome == EGW_OK && reply->is_error)
    step->refused++;
  if (step->logs != NULL && is_too_early(step)) {
    log_set_unref(step->logs);
    step->logs = NULL;
  }
  if (step->logs == NULL && step->refused < REFUSED_MAX) {
    ask_again(step);
  } else if (step->logs == NULL) {
    list_remove(&step->node);
    hub->step_count--;
    step_free(step);
    local_broken(hub, HUB_LOGS, "the nodes refuse to give the logs of a block");
  }
  pump(hub);
}

static void
ask(struct log_step *step)
{
  struct hub *hub = step->hub;
  char hash[67], params[96];

  hash_text(step->hash, hash);
  snprintf(params, sizeof(params), "[{\"blockHash\":\"%s\"}]", hash);
  step->asking = call_new_internal(hub->owner, hub->network, EGW_LIT("eth_getLogs"),
                                   (struct egw_slice){ params, strlen(params) }, ASK_TIMEOUT_MS,
                                   on_logs, step);
  if (step->asking == NULL)
    ask_again(step);
  else
    hub->asking++;
}

static void
on_again(struct wheel_timer *timer)
{
  struct log_step *step = container_of(timer, struct log_step, again);

  ask(step);
}

/* Asks for the logs of the first few blocks. */
static void
ask_ahead(struct hub *hub)
{
  struct list *node;

  list_for_each(node, &hub->steps) {
    struct log_step *step = container_of(node, struct log_step, node);

    if (hub->asking >= ASK_AT_ONCE)
      return;
    if (step->logs == NULL && !step->removed && step->asking == NULL && !wheel_armed(&step->again))
      ask(step);
  }
}

/* Keeps a block's logs for the case that it is taken away again. */
static void
keep_told(struct hub *hub, struct log_step *step)
{
  list_append(&hub->told, &step->node);
  if (++hub->told_count <= TOLD_MAX)
    return;
  hub->told_count--;
  step_free(container_of(hub->told.next, struct log_step, node));
}

static void
tell_step(struct hub *hub, struct log_step *step)
{
  bool something = step->removed || step->logs == NULL || step->logs->count != 0;
  struct hub_event *event = something ? hub_event_new(hub, HUB_LOGS) : NULL;

  if (event != NULL) {
    event->number = step->number;
    memcpy(event->hash, step->hash, HASH_LEN);
    event->removed = step->removed;
    event->version = step->version;
    event->first_version = step->first_version;
    event->logs = step->logs != NULL ? log_set_ref(step->logs) : NULL;
    hub_tell(hub, event);
  } else if (something) {
    local_broken(hub, HUB_LOGS, "out of memory");
  }
  if (step->removed)
    step_free(step);
  else
    keep_told(hub, step);
}

/* Tells what is ready, from the front. */
static void
pump(struct hub *hub)
{
  struct list *node;

  while ((node = hub->steps.next) != &hub->steps) {
    struct log_step *step = container_of(node, struct log_step, node);

    if (step->logs == NULL && !step->removed)
      break;
    list_remove(&step->node);
    hub->step_count--;
    tell_step(hub, step);
  }
  ask_ahead(hub);
}

static struct log_step *
step_new(struct hub *hub, const struct block *block)
{
  struct log_step *step = calloc(1, sizeof(*step));

  if (step == NULL || hub->step_count >= STEPS_MAX) {
    free(step);
    local_broken(hub, HUB_LOGS, "the logs can't be kept");
    return NULL;
  }
  step->hub = hub;
  step->number = block->number;
  memcpy(step->hash, block->hash, HASH_LEN);
  step->version = step->first_version = version_now(hub);
  step->again.fn = on_again;
  return step;
}

/* Whether any filter may find something in the block; a chain whose headers never have a
 * bloom says nothing by an empty one. */
static bool
worth_asking(struct hub *hub, const struct block *block, bool *has_bits)
{
  static const unsigned char none[256];
  unsigned char bloom[256];
  struct list *node;
  bool worth = false;

  *has_bits = false;
  if (block->raw == NULL || !bloom_read(egw_buf_slice(block->raw), bloom))
    return true;
  *has_bits = memcmp(bloom, none, sizeof(bloom)) != 0;
  hub->bloom_seen = hub->bloom_seen || *has_bits;
  if (!hub->bloom_seen)
    return true;
  pthread_mutex_lock(&hub->lock);
  list_for_each(node, &hub->filters)
    worth = worth || log_filter_bloom(container_of(node, struct hub_filter, node)->filter, bloom);
  pthread_mutex_unlock(&hub->lock);
  return worth;
}

static void
add_logs(struct hub *hub, const struct block *block)
{
  struct log_step *step;
  bool has_bits;

  if (!worth_asking(hub, block, &has_bits))
    return;
  step = step_new(hub, block);
  if (step == NULL)
    return;
  step->has_bloom_bits = has_bits;
  list_append(&hub->steps, &step->node);
  hub->step_count++;
}

static struct log_step *
find_step(struct list *list, const struct block *block)
{
  struct list *node;

  list_for_each(node, list) {
    struct log_step *step = container_of(node, struct log_step, node);

    if (!step->removed && memcmp(step->hash, block->hash, HASH_LEN) == 0)
      return step;
  }
  return NULL;
}

/* Queues that the block's logs are taken back: `told` of them, or, when the hub has told
 * none, whatever somebody was told as past. */
static void
take_back(struct hub *hub, const struct block *block, const struct log_step *told)
{
  struct log_step *back = step_new(hub, block);

  if (back == NULL)
    return;
  back->removed = true;
  if (told != NULL)
    back->first_version = told->version;
  back->logs = told != NULL ? log_set_removed(told->logs) : NULL;
  if (told != NULL && back->logs == NULL) {
    step_free(back);
    local_broken(hub, HUB_LOGS, "out of memory");
    return;
  }
  list_append(&hub->steps, &back->node);
  hub->step_count++;
}

/* What was told is taken back; what was not told yet is forgotten. */
static void
drop_logs(struct hub *hub, const struct block *block)
{
  struct log_step *step = find_step(&hub->steps, block);

  if (step != NULL) {
    if (step->asking != NULL)
      hub->asking--;
    hub->step_count--;
    step_free(step);
    step = NULL;
  } else {
    step = find_step(&hub->told, block);
  }
  if (step != NULL || hub_is_wanted(hub, HUB_LOGS))
    take_back(hub, block, step);
  if (step == NULL)
    return;
  hub->told_count--;
  step_free(step);
}

/* --- moves -------------------------------------------------------------------------------------- */

/* Listeners are not told of blocks that are taken away without others in their place. When these are there
 * again, or were never away but for a node's late announcement, who has had them has them still. */
static void
note_told(struct hub *hub, const struct block *block, struct hub_event *event)
{
  struct hub_told *told = &hub->told_heads[block->number % HEAD_WINDOW];

  if (block->number <= hub->told_top && told->version != 0 &&
      memcmp(told->hash, block->hash, HASH_LEN) == 0)
    event->again = told->version;
  else
    hub->told_top = block->number;
  memcpy(told->hash, block->hash, HASH_LEN);
  told->version = event->version;
}

static void
tell_head(struct hub *hub, const struct block *block)
{
  struct hub_event *event = block->raw != NULL ? hub_event_new(hub, HUB_HEADS) : NULL;

  if (event == NULL) {
    local_broken(hub, HUB_HEADS, "out of memory");
    return;
  }
  event->number = block->number;
  memcpy(event->hash, block->hash, HASH_LEN);
  event->version = event->first_version = version_now(hub);
  note_told(hub, block, event);
  event->buf = egw_buf_ref(block->raw);
  hub_tell(hub, event);
}

void
hub_moved(struct hub *hub, struct block *const *dropped, unsigned dropped_count,
          struct block *const *added, unsigned added_count)
{
  bool logs;
  unsigned i;

  if (hub->stopped)
    return;
  /* The snapshot of this move is published. Who is not seen to want events from here on has
   * not read the head's version yet, and finds these blocks in the snapshot. All four
   * accesses are sequentially consistent. */
  logs = hub_is_wanted(hub, HUB_LOGS);
  for (i = 0; i < dropped_count; i++)
    drop_logs(hub, dropped[i]);
  for (i = 0; i < added_count; i++) {
    if (hub_is_wanted(hub, HUB_HEADS))
      tell_head(hub, added[i]);
    if (logs)
      add_logs(hub, added[i]);
  }
  pump(hub);
}

void
hub_lost(struct hub *hub)
{
  if (hub->stopped)
    return;
  while (!list_empty(&hub->steps)) {
    struct log_step *step = container_of(hub->steps.next, struct log_step, node);

    if (step->asking != NULL)
      hub->asking--;
    hub->step_count--;
    step_free(step);
  }
  while (!list_empty(&hub->told))
    step_free(container_of(hub->told.next, struct log_step, node));
  hub->told_count = 0;
  if (hub_is_wanted(hub, HUB_HEADS))
    local_broken(hub, HUB_HEADS, "blocks are missing");
  if (hub_is_wanted(hub, HUB_LOGS))
    local_broken(hub, HUB_LOGS, "blocks are missing");
}

/* --- life --------------------------------------------------------------------------------------- */

int
hub_init(struct hub *hub, struct network *network)
{
  unsigned i;

  hub->network = network;
  for (i = 0; i < HUB_KINDS; i++)
    atomic_init(&hub->wanted[i], 0);
  list_init(&hub->filters);
  list_init(&hub->asks);
  list_init(&hub->steps);
  list_init(&hub->told);
  return pthread_mutex_init(&hub->lock, NULL) == 0 ? 0 : -1;
}

int
hub_start(struct hub *hub)
{
  hub->owner = hub->network->head->owner;
  hub->filters_mine = filters_new(hub);
  hub->pending = pending_new(hub);
  hub->syncing = syncing_new(hub);
  return hub->filters_mine != NULL && hub->pending != NULL && hub->syncing != NULL ? 0 : -1;
}

void
hub_stop(struct hub *hub)
{
  if (hub->stopped || hub->owner == NULL)
    return;
  hub->stopped = true;
  while (!list_empty(&hub->steps))
    step_free(container_of(hub->steps.next, struct log_step, node));
  while (!list_empty(&hub->told))
    step_free(container_of(hub->told.next, struct log_step, node));
  pending_stop(hub->pending);
  syncing_stop(hub->syncing);
  filters_stop(hub->filters_mine);
}

void
hub_free(struct hub *hub)
{
  if (hub->network == NULL)
    return;
  filter_asks_free(hub);
  filters_free(hub->filters_mine);
  pending_free(hub->pending);
  syncing_free(hub->syncing);
  pthread_mutex_destroy(&hub->lock);
  hub->network = NULL;
}
