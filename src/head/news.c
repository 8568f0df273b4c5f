/* SPDX-License-Identifier: MIT */
/* What other workers tell the owner of a tracker: that replies spoke of newer blocks, that
 * something may have changed the chain, that somebody waits for it to be looked at. */
#include "gateway/gateway.h"
#include "head/parts.h"

#define COMMANDED_MS 5000u /* after a command that moves a development chain */

void
tracker_look_later(struct tracker *t)
{
  if (!wheel_armed(&t->choose_timer))
    worker_timer_start(t->worker, &t->choose_timer, OVERDUE_MS);
}

/* All but the spare ones: asking them may cost money. */
static void
poll_all(struct tracker *t, bool now)
{
  unsigned i;

  for (i = 0; i < t->count; i++) {
    struct follower *f = &t->followers[i];

    if (t->tip != NULL && f->upstream->conf->tier > t->tier)
      continue;
    if (now)
      f->polled_ms = 0; /* whenever the last one was */
    follower_poll(f);
  }
  tracker_look_later(t);
}

static void
on_news(void *arg)
{
  struct head *head = arg;
  struct tracker *t = head->tracker;
  unsigned news = atomic_exchange_explicit(&head->news, 0, memory_order_acq_rel);

  if (t == NULL || !t->started || t->stopped)
    return; /* it looks at everything when it starts */
  if ((news & HEAD_NEWS_COMMAND) != 0)
    t->allow_lower_ms = uv_now(&t->worker->loop) + COMMANDED_MS;
  if ((news & HEAD_NEWS_WAKE) != 0) {
    t->active_ms = 0;
    tracker_note_activity(t);
    finality_ask(t);
  }
  poll_all(t, (news & HEAD_NEWS_LOOK) != 0);
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

  tell_owner(network, HEAD_NEWS_LOOK);
  return touched;
}

void
head_wake(const struct network *network)
{
  struct head *head = network->head;

  /* What was found out while nobody asked is old: not settled until the nodes have been
   * looked at. */
  atomic_fetch_add_explicit(&head->touched, 1, memory_order_acq_rel);
  if (atomic_exchange_explicit(&head->idle, false, memory_order_acq_rel))
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
