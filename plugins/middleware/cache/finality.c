/* SPDX-License-Identifier: MIT */
/* Polling what is final: eth_blockNumber, then the finalized block, then the block at the anchor. */
#include "finality.h"

#include <stdio.h>
#include <string.h>
#include <ethrpc-gw/json.h>

#define TIMEOUT_MS 5000u
#define FIRST_MS 200u           /* between the first two samples */

static void ask_head(struct finality *f);

void
finality_init(struct finality *f, uint64_t interval_ms, void (*changed)(void *arg), void *arg)
{
  f->interval_ms = interval_ms;
  f->changed = changed;
  f->arg = arg;
}

static void
on_timer(struct egw_timer *timer)
{
  ask_head(timer->arg);
}

static void
again(struct finality *f)
{
  f->polling = false;
  if (f->stopped)
    return;
  f->timer.fn = on_timer;
  f->timer.arg = f;
  egw_timer_start(f->at.worker, &f->timer, f->samples < 2 ? FIRST_MS : f->interval_ms);
}

/* Nothing is final as far as is known. */
static void
lose(struct finality *f)
{
  atomic_store(&f->known, false);
  f->samples = 0;
}

static int
ask(struct finality *f, const char *method, const char *params, egw_sub_fn *done)
{
  struct egw_subcall what = {
    .method = { method, strlen(method) },
    .params = { params, strlen(params) },
    .timeout_ms = TIMEOUT_MS,
    .below = true, /* or the cache would answer its own questions */
  };

  return egw_subcall(&f->at, NULL, &what, done, f);
}

static bool
is_result(const struct egw_reply *reply)
{
  return reply->outcome == EGW_OK && !reply->is_error && !reply->partial;
}

/* History is not what it was. */
static void
forget(struct finality *f)
{
  egw_log(EGW_WARN, "cache", "a final block has changed: everything kept is thrown out");
  lose(f);
  f->anchor_hash[0] = '\0';
  f->changed(f->arg);
}

static void
publish(struct finality *f)
{
  f->polling = false;
  if (f->samples >= 2) {
    atomic_store(&f->number, f->last < f->before ? f->last : f->before);
    atomic_store(&f->known, true);
  }
  again(f);
}

static void
on_anchor(void *arg, const struct egw_reply *reply)
{
  struct finality *f = arg;
  struct egw_slice hash;

  if (!is_result(reply)) { /* a node that does not answer now says nothing about history */
    lose(f);
    again(f);
    return;
  }
  hash = egw_json_member(reply->body, "hash");
  if (f->anchor_hash[0] != '\0' &&
      (hash.len != strlen(f->anchor_hash) || memcmp(hash.ptr, f->anchor_hash, hash.len) != 0)) {
    forget(f);
    again(f);
    return;
  }
  publish(f);
}

static void
ask_anchor(struct finality *f)
{
  char params[64];

  snprintf(params, sizeof(params), "[\"0x%llx\",false]", (unsigned long long)f->anchor);
  if (ask(f, "eth_getBlockByNumber", params, on_anchor) < 0)
    again(f);
}

/* The finalized block: a new sample, and the anchor of the next polls. */
static void
on_finalized(void *arg, const struct egw_reply *reply)
{
  struct finality *f = arg;
  struct egw_slice hash = { NULL, 0 };
  uint64_t number = 0;

  if (is_result(reply))
    hash = egw_json_member(reply->body, "hash");
  if (hash.ptr == NULL || hash.len >= sizeof(f->anchor_hash) ||
      egw_json_u64(egw_json_member(reply->body, "number"), &number) < 0 || number > f->head) {
    lose(f);
    again(f);
    return;
  }
  f->before = f->last;
  f->last = number;
  f->samples++;
  if (f->anchor_hash[0] != '\0') {
    ask_anchor(f);
    return;
  }
  f->anchor = number;
  memcpy(f->anchor_hash, hash.ptr, hash.len);
  f->anchor_hash[hash.len] = '\0';
  publish(f);
}

static void
on_head(void *arg, const struct egw_reply *reply)
{
  struct finality *f = arg;

  if (!is_result(reply) || egw_json_u64(reply->body, &f->head) < 0 ||
      ask(f, "eth_getBlockByNumber", "[\"finalized\",false]", on_finalized) < 0) {
    lose(f);
    again(f);
  }
}

static void
ask_head(struct finality *f)
{
  if (f->polling || f->stopped)
    return;
  f->polling = true;
  if (ask(f, "eth_blockNumber", "[]", on_head) < 0)
    again(f);
}

void
finality_touch(struct finality *f, const struct egw_at *at)
{
  struct egw_worker *none = NULL;

  if (atomic_load_explicit(&f->poller, memory_order_relaxed) != NULL ||
      !atomic_compare_exchange_strong(&f->poller, &none, at->worker))
    return;
  f->at = *at;
  f->at.state = NULL;
  ask_head(f);
}

void
finality_stop(struct finality *f, struct egw_worker *worker)
{
  if (atomic_load(&f->poller) != worker)
    return;
  f->stopped = true;
  egw_timer_stop(worker, &f->timer);
}
