/* SPDX-License-Identifier: MIT */
/* Pending transactions. Every node that pushes has one subscription for hashes and one for full bodies,
 * while somebody wants such. Nodes that can't push are asked by a filter of theirs when no other node
 * of the network can. What one node has brought the others' copies are dropped. */
#include "push/pending.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include "base/backoff.h"
#include "base/buf.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "obs/log.h"
#include "push/hub.h"
#include "push/push.h"
#include "push/subscription.h"
#include "upstream/parts.h"

#define SEEN 65536u           /* hashes remembered, a power of two */
#define OPEN_TIMEOUT_MS 5000u
#define RETRY_FIRST_MS 250u
#define RETRY_MAX_MS 30000u
#define HASH_LEN_TEXT 66u

enum stream_how { STREAM_PUSHED, STREAM_POLLED };

/* One node's stream of one kind. */
struct stream {
  struct pending *pending;
  struct egw_link *link;
  enum hub_kind kind;
  enum stream_how how;
  struct subscription *feed;
  struct egw_xchg *xchg;       /* eth_subscribe, eth_newPendingTransactionFilter, eth_getFilterChanges */
  struct egw_buf *filter;      /* POLLED: the node's id, raw */
  struct wheel_timer timer;
  unsigned failures;
};

/* Which hashes went out lately: a table of the last one in each slot. */
struct seen {
  unsigned char (*hash)[8];
};

struct pending {
  struct hub *hub;
  struct stream *streams;      /* two for each upstream: hashes, bodies */
  unsigned count;
  struct seen seen[2];
  atomic_bool posted;
};

static void stream_open(struct stream *s);

/* --- each once --------------------------------------------------------------------------------------- */

/* Whether the hash is new; remembers it. A slot holds the last hash that fell there, so an old one may be
 * taken for new again after tens of thousands of others. */
static bool
is_new(struct pending *p, enum hub_kind kind, const unsigned char hash[32])
{
  struct seen *seen = &p->seen[kind == HUB_PENDING_FULL];
  uint64_t key;
  size_t slot;

  memcpy(&key, hash, sizeof(key));
  slot = (size_t)(hash_u64(key) & (SEEN - 1));
  if (memcmp(seen->hash[slot], hash, 8) == 0)
    return false;
  memcpy(seen->hash[slot], hash, 8);
  return true;
}

static void
tell(struct stream *s, struct egw_slice result)
{
  struct hub *hub = s->pending->hub;
  struct egw_slice text = result;
  unsigned char hash[32];
  struct hub_event *event;

  if (egw_json_kind(result) == EGW_JSON_OBJECT)
    text = egw_json_member(result, "hash");
  else if (s->kind == HUB_PENDING_FULL)
    return; /* a node that does not know of bodies sends hashes all the same */
  if (egw_hex_read(text, hash, sizeof(hash)) != 32 || !is_new(s->pending, s->kind, hash))
    return;
  event = hub_event_new(hub, s->kind);
  if (event != NULL)
    event->buf = egw_buf_copy(s->kind == HUB_PENDING ? text : result);
  if (event == NULL || event->buf == NULL) {
    egw_log(EGW_ERROR, "push", "out of memory: a pending transaction is not told");
    hub_event_unref(event);
    return;
  }
  hub_tell(hub, event);
}

/* --- a node's stream ------------------------------------------------------------------------------------ */

static void
retry_later(struct stream *s)
{
  worker_timer_start(s->link->worker, &s->timer,
                     backoff_ms(s->failures++, RETRY_FIRST_MS, RETRY_MAX_MS));
}

static void
on_event(struct subscription *feed, struct egw_slice result)
{
  struct stream *s = feed->arg;

  s->failures = 0;
  tell(s, result);
}

static void
on_lost(struct subscription *feed)
{
  struct stream *s = feed->arg;

  s->feed = NULL;
  subscription_free(feed, false);
  if (!s->pending->hub->stopped)
    retry_later(s);
}

static struct egw_slice
params_of(const struct stream *s)
{
  return s->kind == HUB_PENDING_FULL ? EGW_LIT("[\"newPendingTransactions\",true]")
                                     : EGW_LIT("[\"newPendingTransactions\"]");
}

static struct egw_slice
result_of(struct egw_xchg *xchg, enum egw_outcome outcome)
{
  struct rpc_reply reply;

  if (outcome != EGW_OK || xchg->reply->state != INBOUND_COMPLETE)
    return (struct egw_slice){ NULL, 0 };
  inbound_judge(xchg->reply, &reply);
  return reply.kind == RPC_REPLY_RESULT ? reply.body : (struct egw_slice){ NULL, 0 };
}

static void
on_opened(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct stream *s = xchg->owner;
  struct egw_slice result = result_of(xchg, outcome);

  (void)why;
  s->xchg = NULL;
  if (result.ptr != NULL && xchg->conn != NULL)
    s->feed = subscription_feed_new(s->link->worker, s->pending->hub->network,
                                    EGW_LIT("eth_subscribe"), params_of(s), on_event, on_lost, s);
  if (s->feed != NULL && subscription_attach(s->feed, xchg->conn, result) == 0) {
    push_take_early(s->feed, xchg->conn);
    return;
  }
  if (s->feed != NULL)
    subscription_free(s->feed, false);
  s->feed = NULL;
  retry_later(s);
}

/* --- polling ----------------------------------------------------------------------------------------------- */

static void
on_changes(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct stream *s = xchg->owner;
  struct egw_slice result = result_of(xchg, outcome), one;
  size_t cursor = 0;

  (void)why;
  s->xchg = NULL;
  if (egw_json_kind(result) != EGW_JSON_ARRAY) {
    egw_buf_unref(s->filter);
    s->filter = NULL;
    retry_later(s);
    return;
  }
  s->failures = 0;
  worker_timer_start(s->link->worker, &s->timer, s->pending->hub->network->conf->poll_interval);
  while (egw_json_next(result, &cursor, NULL, &one))
    tell(s, one);
}

static void
on_filter(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct stream *s = xchg->owner;
  struct egw_slice result = result_of(xchg, outcome);

  (void)why;
  s->xchg = NULL;
  s->filter = egw_json_kind(result) == EGW_JSON_STRING ? egw_buf_copy(result) : NULL;
  if (s->filter == NULL)
    retry_later(s);
  else
    worker_timer_start(s->link->worker, &s->timer, 1);
}

static void
poll_stream(struct stream *s)
{
  struct egw_buf *params = egw_buf_new(80);
  struct egw_slice id = s->filter != NULL ? egw_buf_slice(s->filter) : EGW_LIT("");
  struct xchg_request what = { .owner = s, .timeout_ms = OPEN_TIMEOUT_MS };

  what.method = s->filter != NULL ? EGW_LIT("eth_getFilterChanges")
                                  : EGW_LIT("eth_newPendingTransactionFilter");
  what.done = s->filter != NULL ? on_changes : on_filter;
  if (params == NULL || egw_buf_printf(params, "[%.*s]", (int)id.len, id.ptr) < 0) {
    egw_buf_unref(params);
    retry_later(s);
    return;
  }
  what.params = egw_buf_slice(params);
  if (xchg_start(s->link, &what, &s->xchg) < 0)
    retry_later(s);
  egw_buf_unref(params);
}

static void
stream_open(struct stream *s)
{
  struct xchg_request what = {
    .method = EGW_LIT("eth_subscribe"),
    .params = params_of(s),
    .done = on_opened,
    .owner = s,
    .timeout_ms = OPEN_TIMEOUT_MS,
    .subscribing = true,
  };

  if (s->feed != NULL || s->xchg != NULL || s->link->closing ||
      !hub_is_wanted(s->pending->hub, s->kind))
    return;
  if (s->link->health != LINK_UP ||
      atomic_load_explicit(&s->link->upstream->stranger, memory_order_relaxed))
    retry_later(s);
  else if (s->how == STREAM_POLLED)
    poll_stream(s);
  else if (xchg_start(s->link, &what, &s->xchg) < 0)
    retry_later(s);
}

static void
on_timer(struct wheel_timer *timer)
{
  stream_open(container_of(timer, struct stream, timer));
}

static void
stream_close(struct stream *s)
{
  if (s->xchg != NULL)
    xchg_abort(s->xchg);
  s->xchg = NULL;
  if (s->feed != NULL)
    subscription_free(s->feed, true);
  s->feed = NULL;
  egw_buf_unref(s->filter);
  s->filter = NULL;
  s->failures = 0;
  worker_timer_stop(s->link->worker, &s->timer);
}

/* --- life ------------------------------------------------------------------------------------------------- */

bool
pending_any_pushes(const struct network *network)
{
  unsigned i;

  for (i = 0; i < network->upstream_count; i++)
    if ((network->upstreams[i]->transport->caps & EGW_T_PUSH) != 0)
      return true;
  return false;
}

struct pending *
pending_new(struct hub *hub)
{
  const struct network *network = hub->network;
  struct pending *p = calloc(1, sizeof(*p));
  bool pushes = pending_any_pushes(network);
  unsigned i;

  if (p == NULL)
    return NULL;
  p->hub = hub;
  atomic_init(&p->posted, false);
  p->streams = calloc(2 * network->upstream_count + 1, sizeof(*p->streams));
  if (p->streams == NULL) {
    free(p);
    return NULL;
  }
  for (i = 0; i < 2 * network->upstream_count; i++) {
    const struct upstream *upstream = network->upstreams[i / 2];
    struct stream *s = &p->streams[p->count];
    bool can = (upstream->transport->caps & EGW_T_PUSH) != 0;

    /* Bodies can't be had from a node's filter. */
    if (!can && (pushes || i % 2 == 1))
      continue;
    s->pending = p;
    s->link = hub->owner->links[upstream->index];
    s->kind = i % 2 == 0 ? HUB_PENDING : HUB_PENDING_FULL;
    s->how = can ? STREAM_PUSHED : STREAM_POLLED;
    s->timer.fn = on_timer;
    p->count++;
  }
  return p;
}

static void
on_changed(void *arg)
{
  struct pending *p = arg;
  unsigned i, k;

  atomic_store_explicit(&p->posted, false, memory_order_release);
  if (p->hub->stopped)
    return;
  for (k = 0; k < 2; k++)
    if (p->seen[k].hash == NULL && hub_is_wanted(p->hub, k == 0 ? HUB_PENDING : HUB_PENDING_FULL)) {
      p->seen[k].hash = calloc(SEEN, sizeof(p->seen[k].hash[0]));
      if (p->seen[k].hash == NULL) {
        egw_log(EGW_ERROR, "push", "out of memory: no pending transactions");
        return;
      }
    }
  for (i = 0; i < p->count; i++) {
    struct stream *s = &p->streams[i];

    if (!hub_is_wanted(p->hub, s->kind))
      stream_close(s);
    else if (!wheel_armed(&s->timer))
      stream_open(s);
  }
}

void
pending_changed(struct hub *hub)
{
  struct pending *p = hub->pending;

  if (p == NULL || atomic_exchange_explicit(&p->posted, true, memory_order_acq_rel))
    return;
  if (egw_post(hub->owner, on_changed, p) < 0)
    atomic_store_explicit(&p->posted, false, memory_order_release);
}

void
pending_stop(struct pending *p)
{
  unsigned i;

  for (i = 0; p != NULL && i < p->count; i++)
    stream_close(&p->streams[i]);
}

void
pending_free(struct pending *p)
{
  if (p == NULL)
    return;
  free(p->seen[0].hash);
  free(p->seen[1].hash);
  free(p->streams);
  free(p);
}
