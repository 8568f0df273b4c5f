/* SPDX-License-Identifier: MIT */
/* A node's newHeads, where its transport can push. */
#include <string.h>
#include "base/backoff.h"
#include "head/parts.h"
#include "obs/log.h"
#include "push/subscription.h"
#include "upstream/parts.h"

#define OPEN_TIMEOUT_MS 5000u
#define RETRY_FIRST_MS 250u
#define RETRY_MAX_MS 60000u
#define LATE_MAX 64u

static void
retry_later(struct follower *f)
{
  worker_timer_start(f->tracker->worker, &f->feed_timer,
                     backoff_ms(f->feed_failures++, RETRY_FIRST_MS, RETRY_MAX_MS));
}

static void
on_retry(struct wheel_timer *timer)
{
  struct follower *f = container_of(timer, struct follower, feed_timer);

  if (f->link->health == LINK_UP && f->identity == IDENTITY_KNOWN)
    feed_open(f);
  else
    worker_timer_start(f->tracker->worker, timer, RETRY_FIRST_MS);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Whether the announced block is one below the node's head on the same branch: nodes announce the blocks
 * of a branch one by one, and a poll may have found the last one before. Only if the next poll says so, too,
 * the chain was moved back. */
static bool
is_late(const struct follower *f, const struct block *block)
{
  const struct blocks *blocks = &f->tracker->blocks;
  const struct block *b = f->has_head ? blocks_find(blocks, f->head.hash) : NULL;
  unsigned i;

  for (i = 0; b != NULL && b->number > block->number && i < LATE_MAX; i++)
    b = blocks_find(blocks, b->parent);
  return b != NULL && i != 0 && memcmp(b->hash, block->hash, HASH_LEN) == 0;
}

static void
take_fed(struct follower *f, const struct block *block, struct egw_buf *raw)
{
  if (!is_late(f, block)) {
    follower_saw(f, block, raw);
    return;
  }
  f->heard_ms = uv_now(&f->tracker->worker->loop);
  follower_poll(f);
}

static void
on_fed(struct worker_job *job)
{
  struct follower *f = container_of(job, struct follower, fed_job);
  unsigned i, n = f->fed_count;

  f->fed_count = 0;
  f->fed_ms = uv_now(&f->tracker->worker->loop);
  f->feed_failures = 0;
  for (i = 0; i < n; i++) {
    if (!f->tracker->stopped)
      take_fed(f, &f->fed[i], f->fed_raw[i]);
    egw_buf_unref(f->fed_raw[i]);
  }
}

/* From within the transport: keeps the header for the run queue. When many come at once the
 * last ones are enough, the others are walked to. */
static void
on_event(struct subscription *feed, struct egw_slice result)
{
  struct follower *f = feed->arg;
  struct block block;

  if (!block_parse(result, &block))
    return;
  if (f->fed_count == FED_MAX) {
    egw_buf_unref(f->fed_raw[0]);
    memmove(&f->fed_raw[0], &f->fed_raw[1], (FED_MAX - 1) * sizeof(f->fed_raw[0]));
    memmove(&f->fed[0], &f->fed[1], (FED_MAX - 1) * sizeof(f->fed[0]));
    f->fed_count--;
  }
  f->fed_raw[f->fed_count] = egw_buf_copy(result); /* as the node gave it */
  f->fed[f->fed_count++] = block;
  f->fed_job.fn = on_fed;
  worker_run_soon(f->tracker->worker, &f->fed_job);
}

/* From within the transport: its connection is gone. */
static void
on_lost(struct subscription *feed)
{
  struct follower *f = feed->arg;

  f->feed = NULL;
  f->identity = IDENTITY_UNKNOWN; /* another node may answer the next connection */
  subscription_free(feed, false);
  if (!f->tracker->stopped)
    worker_timer_start(f->tracker->worker, &f->feed_timer, RETRY_FIRST_MS);
  /* It is looked at anew right away. */
  f->polled_ms = 0;
  worker_timer_start(f->tracker->worker, &f->poll_timer, 1);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void
on_opened(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct follower *f = xchg->owner;
  struct rpc_reply reply = { .kind = RPC_REPLY_BAD };
  struct subscription *feed = NULL;

  (void)why;
  f->opening = NULL;
  if (outcome == EGW_OK && xchg->reply->state == INBOUND_COMPLETE)
    inbound_judge(xchg->reply, &reply);
  if (reply.kind == RPC_REPLY_RESULT && xchg->conn != NULL)
    feed = subscription_feed_new(f->tracker->worker, f->tracker->network, EGW_LIT("eth_subscribe"),
                                 EGW_LIT("[\"newHeads\"]"), on_event, on_lost, f);
  if (feed == NULL || subscription_attach(feed, xchg->conn, reply.body) < 0) {
    if (feed != NULL)
      subscription_free(feed, false);
    egw_log(EGW_DEBUG, "head", "%s does not push its heads", f->upstream->name);
    retry_later(f);
    return;
  }
  f->feed = feed;
  f->fed_ms = uv_now(&f->tracker->worker->loop);
  push_take_early(feed, xchg->conn);
}

void
feed_open(struct follower *f)
{
  struct xchg_request what = {
    .method = EGW_LIT("eth_subscribe"),
    .params = EGW_LIT("[\"newHeads\"]"),
    .done = on_opened,
    .owner = f,
    .timeout_ms = OPEN_TIMEOUT_MS,
    .subscribing = true,
  };

  if (f->feed != NULL || f->opening != NULL || f->tracker->stopped || f->link->closing ||
      wheel_armed(&f->feed_timer) || (f->upstream->transport->caps & EGW_T_PUSH) == 0)
    return;
  f->feed_timer.fn = on_retry;
  if (xchg_start(f->link, &what, &f->opening) < 0)
    retry_later(f);
}

void
feed_close(struct follower *f)
{
  if (f->opening != NULL)
    xchg_abort(f->opening);
  f->opening = NULL;
  if (f->feed != NULL) {
    subscription_free(f->feed, true);
    f->feed = NULL;
    if (!f->tracker->stopped)
      retry_later(f);
  }
  while (f->fed_count != 0)
    egw_buf_unref(f->fed_raw[--f->fed_count]);
  if (f->fed_job.node.next != NULL)
    list_remove(&f->fed_job.node);
}

bool
feed_alive(const struct follower *f)
{
  return f->feed != NULL && f->feed->conn != NULL;
}
