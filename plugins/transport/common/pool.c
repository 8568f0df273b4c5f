/* SPDX-License-Identifier: MIT */
/* The connections of one link: policy, queues, reconnecting. See pool.h. */
#include <inttypes.h>
#include <stddef.h>
#include "pool.h"

#define AWAY_PATIENCE_MS 1000u
#define EAGER_MS 200u           /* between attempts while somebody waits for one */
#define POOL_EXTRA 14u          /* connections above the configured number */
#define POOL_TRIM_MS 10000u     /* how often it is looked for connections that are too many */
#define POOL_IDLE_MS 60000u     /* quiet for so long: may be closed when there are too many */

static void pool_connect(struct pool *pool);
static void pool_place(struct pool *pool, struct pool_wait *wait);

static uint64_t
pool_now(const struct pool *pool)
{
  return egw_now_ms(egw_link_worker(pool->link));
}

static void
pool_start_timer(struct pool *pool, struct egw_timer *timer, uint64_t ms)
{
  egw_timer_start(egw_link_worker(pool->link), timer, ms);
}

static struct pool_member *
pool_member_of(struct list *node)
{
  return container_of(node, struct pool_member, node);
}

static struct pool_wait *
pool_wait_of(struct list *node)
{
  return container_of(node, struct pool_wait, node);
}

static struct pool_member *
pool_of_conn(const struct egw_conn *conn)
{
  return *(struct pool_member **)egw_conn_state(conn);
}

/* --- waiting exchanges ------------------------------------------------------------------ */

/* The connection it has to go out on, or NULL. */
static struct egw_conn *
pool_pinned(const struct egw_xchg *xchg)
{
  return egw_xchg_wants(xchg);
}

static void
pool_fail(struct pool_wait *wait, enum egw_outcome outcome, const char *why)
{
  list_remove(&wait->node);
  egw_xchg_done(wait->xchg, outcome, why);
}

static void
pool_fail_all(struct list *waits, enum egw_outcome outcome, const char *why)
{
  struct list all, *node;

  list_init(&all);
  list_splice(&all, waits);
  while ((node = all.next) != &all)
    pool_fail(pool_wait_of(node), outcome, why);
}

/* Moves the queue of a member to `to`. */
static void
pool_take_queue(struct pool_member *member, struct list *to)
{
  struct list *node;

  list_for_each(node, &member->queue)
    pool_wait_of(node)->member = NULL;
  list_splice(to, &member->queue);
  member->queued = 0;
}

static void
pool_place_all(struct pool *pool, struct list *waits)
{
  struct list all, *node;

  list_init(&all);
  list_splice(&all, waits);
  while ((node = list_shift(&all)) != NULL)
    pool_place(pool, pool_wait_of(node));
}

/* Ends what has waited too long for a connection. */
static void
pool_expire(struct egw_timer *timer)
{
  struct pool *pool = timer->arg;
  uint64_t now = pool_now(pool), soonest = UINT64_MAX;
  struct list late, *node, *tmp;

  list_init(&late);
  list_for_each_safe(node, tmp, &pool->waiting) {
    struct pool_wait *wait = pool_wait_of(node);

    if (wait->until_ms <= now) {
      list_remove(node);
      list_append(&late, node);
    } else if (wait->until_ms < soonest) {
      soonest = wait->until_ms;
    }
  }
  pool->expiry_ms = soonest;
  if (soonest != UINT64_MAX)
    pool_start_timer(pool, &pool->expiry, soonest - now);
  pool_fail_all(&late, EGW_NOT_SENT, "no connection in time");
}

static void
pool_wait_here(struct pool *pool, struct pool_wait *wait)
{
  uint64_t now = pool_now(pool);

  if (wait->until_ms < pool->expiry_ms) {
    pool->expiry_ms = wait->until_ms;
    pool_start_timer(pool, &pool->expiry, wait->until_ms > now ? wait->until_ms - now : 0);
  }
  wait->member = NULL;
  list_append(&pool->waiting, &wait->node);
}

static void
pool_give(struct pool_member *member, struct pool_wait *wait)
{
  wait->member = member;
  list_append(&member->queue, &wait->node);
  member->queued++;
  member->pool->ops->flush(member);
}

/* --- choosing --------------------------------------------------------------------------- */

static unsigned
pool_load(const struct pool_member *member)
{
  return egw_conn_in_flight(member->conn) + member->queued;
}

static struct pool_member *
pool_pick(const struct pool *pool)
{
  struct pool_member *best = NULL;
  struct list *node;

  list_for_each(node, &pool->members) {
    struct pool_member *m = pool_member_of(node);

    if (m->state != POOL_OPEN || m->paused)
      continue;
    if (best == NULL || pool_load(m) < pool_load(best))
      best = m;
  }
  return best;
}

/* Opens one connection more where that helps; while none is open the retry timer does it. */
static void
pool_grow(struct pool *pool, bool all_paused)
{
  uint64_t limit = (uint64_t)pool->options->connections + (all_paused ? POOL_EXTRA : 0);

  if (pool->open == 0 || pool->open != pool->count || pool->count >= limit)
    return;
  if (pool_now(pool) >= pool->next_try_ms)
    pool_connect(pool);
}

static void
pool_place(struct pool *pool, struct pool_wait *wait)
{
  struct egw_conn *conn = pool_pinned(wait->xchg);
  struct pool_member *best;

  if (conn != NULL) {
    pool_give(pool_of_conn(conn), wait);
    return;
  }
  best = pool_pick(pool);
  if (best == NULL || pool_load(best) > 0)
    pool_grow(pool, best == NULL);
  if (best != NULL)
    pool_give(best, wait);
  else
    pool_wait_here(pool, wait);
}

/* --- when to try again ------------------------------------------------------------------ */

/* A number below `n` (not for secrets): xorshift. */
static uint64_t
pool_random(struct pool *pool, uint64_t n)
{
  pool->random ^= pool->random << 13;
  pool->random ^= pool->random >> 7;
  pool->random ^= pool->random << 17;
  return pool->random % n;
}

static void
pool_back_off(struct pool *pool, bool success)
{
  const struct pool_options *o = pool->options;
  uint64_t delay, longest = o->reconnect_max > o->reconnect_min ? o->reconnect_max
                                                                : o->reconnect_min;

  if (success || pool->delay_ms == 0)
    pool->delay_ms = o->reconnect_min;
  delay = pool->delay_ms - pool->delay_ms / 4 + pool_random(pool, pool->delay_ms / 2 + 1);
  pool->next_try_ms = pool_now(pool) + delay;
  pool->delay_ms = pool->delay_ms > longest / 2 ? longest : pool->delay_ms * 2;
}

static void
pool_down(struct pool *pool, const char *why)
{
  if (!pool->known || pool->open > 0)
    egw_link_set(pool->link, EGW_LINK_DOWN, why);
  pool->known = true;
}

static void
pool_retry(struct egw_timer *timer)
{
  struct pool *pool = timer->arg;

  if (pool->count == 0)
    pool_connect(pool);
}

/* Nothing is connected. */
static void
pool_try_later(struct pool *pool)
{
  uint64_t now = pool_now(pool);
  uint64_t wait = pool->next_try_ms > now ? pool->next_try_ms - now : 0;

  if (pool->count == 0)
    pool_start_timer(pool, &pool->retry, wait);
}

/* What was handed in while something was connected (or while nothing was known) fails when the
 * link goes down, since another upstream may do better; what comes later is a last resort and
 * waits for the next attempts. Taken aside first: what fails may come back at once. */
static void
pool_take_waiting(struct pool *pool, struct list *to)
{
  list_splice(to, &pool->waiting);
}

static void
pool_connect(struct pool *pool)
{
  const char *why = "cannot connect";
  struct list left;

  pool->tried_ms = pool_now(pool);
  if (pool->ops->connect(pool->link, &why) != NULL)
    return;
  egw_log(EGW_DEBUG, pool->ops->area, "%s: %s", egw_link_name(pool->link), why);
  pool_back_off(pool, false);
  if (pool->open > 0)
    return;
  list_init(&left);
  if (!pool->known)
    pool_take_waiting(pool, &left);
  pool_down(pool, why);
  pool_try_later(pool);
  pool_fail_all(&left, EGW_NOT_SENT, why);
}

/* --- life ------------------------------------------------------------------------------- */

/* Closes one connection of those above the configured number when it is quiet: no exchange,
 * and nothing came for a long time, so that no subscription is likely to be on it. */
static void
pool_trim(struct egw_timer *timer)
{
  struct pool *pool = timer->arg;
  uint64_t now = pool_now(pool);
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &pool->members) {
    struct pool_member *m = pool_member_of(node);

    if (pool->open <= (uint64_t)pool->options->connections)
      break;
    if (m->state != POOL_OPEN || m->paused || pool_load(m) > 0
        || now - m->used_ms < POOL_IDLE_MS)
      continue;
    list_remove(&m->node);
    pool->count--;
    pool->open--;
    m->state = POOL_GONE;
    m->pool = NULL;
    egw_conn_lost(m->conn, "one connection too many");
    pool->ops->drop(m);
  }
  if (pool->count > (uint64_t)pool->options->connections)
    pool_start_timer(pool, &pool->trim, POOL_TRIM_MS);
}

void
pool_init(struct pool *pool, struct egw_link *link, const struct pool_ops *ops,
          const struct pool_options *options)
{
  pool->link = link;
  pool->ops = ops;
  pool->options = options;
  list_init(&pool->members);
  list_init(&pool->waiting);
  pool->retry.fn = pool_retry;
  pool->expiry.fn = pool_expire;
  pool->trim.fn = pool_trim;
  pool->retry.arg = pool->expiry.arg = pool->trim.arg = pool;
  pool->expiry_ms = UINT64_MAX;
  pool->random = ((uint64_t)(uintptr_t)pool ^ pool_now(pool)) | 1;
  pool_start_timer(pool, &pool->retry, 0);
}

void
pool_member_init(struct pool *pool, struct pool_member *member)
{
  member->pool = pool;
  member->state = POOL_CONNECTING;
  list_init(&member->queue);
  list_append(&pool->members, &member->node);
  if (++pool->count == (uint64_t)pool->options->connections + 1)
    pool_start_timer(pool, &pool->trim, POOL_TRIM_MS);
}

int
pool_opened(struct pool_member *member)
{
  struct pool *pool = member->pool;

  member->conn = egw_conn_new(pool->link);
  if (member->conn == NULL)
    return -1;
  *(struct pool_member **)egw_conn_state(member->conn) = member;
  member->state = POOL_OPEN;
  member->opened_ms = member->used_ms = pool_now(pool);
  egw_log(EGW_DEBUG, pool->ops->area, "%s: connected", egw_link_name(pool->link));
  if (pool->open++ == 0) {
    pool->known = true;
    egw_link_set(pool->link, EGW_LINK_UP, "connected");
  }
  pool_place_all(pool, &pool->waiting);
  return 0;
}

/* Exchanges that had to go out on this very connection end with it. */
static void
pool_fail_pinned(struct pool_member *member, struct list *waits, const char *why)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, waits) {
    struct pool_wait *wait = pool_wait_of(node);

    if (pool_pinned(wait->xchg) == member->conn)
      pool_fail(wait, EGW_NOT_SENT, why);
  }
}

static void
pool_lost(struct pool *pool, struct pool_member *member, const char *why)
{
  struct list left;

  list_init(&left);
  pool_take_queue(member, &left);
  pool_fail_pinned(member, &left, why);
  if (pool->open == 1) {
    pool_take_waiting(pool, &left);
    pool_down(pool, why);
  }
  pool->open--;
  egw_conn_lost(member->conn, why);
  member->conn = NULL;
  if (pool->open > 0)
    pool_place_all(pool, &left);
  else
    pool_fail_all(&left, EGW_NOT_SENT, why);
}

static void
pool_failed(struct pool *pool, const char *why)
{
  struct list left;

  list_init(&left);
  if (!pool->known)
    pool_take_waiting(pool, &left);
  if (pool->open == 0)
    pool_down(pool, why);
  pool_fail_all(&left, EGW_NOT_SENT, why);
}

void
pool_gone(struct pool_member *member, const char *why)
{
  struct pool *pool = member->pool;
  bool was_open = member->state == POOL_OPEN;
  bool lasted = was_open && pool_now(pool) - member->opened_ms >= pool->options->reconnect_max;

  list_remove(&member->node);
  pool->count--;
  member->state = POOL_GONE;
  member->pool = NULL;
  egw_log(EGW_DEBUG, pool->ops->area, "%s: %s: %s", egw_link_name(pool->link),
          was_open ? "connection lost" : "cannot connect", why);
  pool_back_off(pool, member->proven || lasted);
  if (was_open)
    pool_lost(pool, member, why);
  else
    pool_failed(pool, why);
  if (pool->open == 0)
    pool_try_later(pool);
}

void
pool_close(struct pool *pool)
{
  struct list left, *node;

  pool->closed = true;
  egw_timer_stop(egw_link_worker(pool->link), &pool->retry);
  egw_timer_stop(egw_link_worker(pool->link), &pool->expiry);
  egw_timer_stop(egw_link_worker(pool->link), &pool->trim);
  list_init(&left);
  list_splice(&left, &pool->waiting);
  while ((node = list_shift(&pool->members)) != NULL) {
    struct pool_member *m = pool_member_of(node);

    pool_take_queue(m, &left);
    m->state = POOL_GONE;
    m->pool = NULL;
    if (m->conn != NULL)
      egw_conn_lost(m->conn, "the link is closed");
    m->conn = NULL;
    pool->ops->drop(m);
  }
  pool->count = pool->open = 0;
  pool_fail_all(&left, EGW_ABORTED, "the link is closed");
}

/* Somebody waits: the next attempt to connect need not wait for the end of a long pause. */
static void
pool_hurry(struct pool *pool)
{
  uint64_t soon = pool->tried_ms + EAGER_MS;

  if (pool->count != 0 || !pool->known || pool->next_try_ms <= soon)
    return;
  pool->next_try_ms = soon;
  pool_try_later(pool);
}

/* --- exchanges -------------------------------------------------------------------------- */

void
pool_submit(struct pool *pool, struct egw_xchg *xchg)
{
  struct pool_wait *wait = egw_xchg_state(xchg);
  uint64_t patience = egw_link_limits(pool->link)->connect_timeout_ms;

  /* The node is known to be away: long enough for a restart, not for a client's patience. */
  if (pool->known && pool->open == 0 && patience > AWAY_PATIENCE_MS)
    patience = AWAY_PATIENCE_MS;
  wait->xchg = xchg;
  list_init(&wait->node);
  wait->until_ms = pool_now(pool) + patience;
  pool_hurry(pool);
  pool_place(pool, wait);
}

void
pool_abort(struct pool *pool, struct egw_xchg *xchg)
{
  struct pool_wait *wait = egw_xchg_state(xchg);

  (void)pool;
  if (!list_empty(&wait->node) && wait->member != NULL)
    wait->member->queued--;
  list_remove(&wait->node);
}

struct egw_xchg *
pool_first(struct pool_member *member)
{
  if (list_empty(&member->queue))
    return NULL;
  return pool_wait_of(member->queue.next)->xchg;
}

void
pool_sent(struct pool_member *member)
{
  struct pool_wait *wait = pool_wait_of(member->queue.next);

  list_remove(&wait->node);
  member->queued--;
  member->used_ms = pool_now(member->pool);
  egw_xchg_bind(wait->xchg, member->conn);
  egw_xchg_sent(wait->xchg);
}

/* --- reading ---------------------------------------------------------------------------- */

int
pool_data(struct pool_member *member, const char *bytes, size_t len, unsigned flags)
{
  struct pool *pool = member->pool;
  struct list left;
  int verdict;

  member->used_ms = pool_now(pool);
  verdict = egw_conn_data(member->conn, bytes, len, flags);
  if (verdict < 0)
    return verdict;
  member->proven = true;
  if (verdict == 0)
    return 0;
  member->paused = true;
  list_init(&left);
  pool_take_queue(member, &left);
  pool_place_all(pool, &left);
  return 1;
}

void
pool_more(struct pool *pool, struct egw_conn *conn)
{
  struct pool_member *member = pool_of_conn(conn);

  member->paused = false;
  pool->ops->resume(member);
  pool_place_all(pool, &pool->waiting);
}
