/* SPDX-License-Identifier: MIT */
/* "syncing" by asking eth_syncing: an event when the answer turns from false to an object
 * ({"syncing":true,"status":...}, as geth says it) or back (false). */
#include "push/syncing.h"

#include <stdlib.h>
#include <ethrpc-gw/json.h>
#include "base/buf.h"
#include "chain/call.h"
#include "gateway/gateway.h"
#include "obs/log.h"
#include "push/hub.h"

#define ASK_TIMEOUT_MS 5000u
#define PAUSE_MIN_MS 2000u   /* between two questions, and at least poll_interval */

struct syncing {
  struct hub *hub;
  struct egw_call *asking;
  struct wheel_timer timer;
  bool known, on;            /* what was said last */
  atomic_bool posted;
};

static void
tell(struct syncing *s, bool on, struct egw_slice status)
{
  struct hub_event *event = hub_event_new(s->hub, HUB_SYNCING);

  if (event == NULL)
    return; /* told with the next answer, since nothing was noted */
  event->buf = egw_buf_new(status.len + 40);
  if (event->buf == NULL ||
      (on ? egw_buf_printf(event->buf, "{\"syncing\":true,\"status\":%.*s}", (int)status.len, status.ptr)
          : egw_buf_printf(event->buf, "false")) < 0) {
    hub_event_unref(event);
    return;
  }
  s->on = on;
  hub_tell(s->hub, event);
}

static void
on_answer(void *arg, const struct egw_reply *reply)
{
  struct syncing *s = arg;
  enum egw_json_kind kind = EGW_JSON_NONE;
  uint64_t pause = s->hub->network->conf->poll_interval;

  s->asking = NULL;
  if (s->hub->stopped || !hub_is_wanted(s->hub, HUB_SYNCING))
    return;
  if (reply->outcome == EGW_OK && !reply->is_error && !reply->partial)
    kind = egw_json_kind(reply->body);
  if (kind == EGW_JSON_FALSE || kind == EGW_JSON_OBJECT) {
    bool on = kind == EGW_JSON_OBJECT;

    if (!s->known)
      s->on = on;
    s->known = true;
    if (on != s->on)
      tell(s, on, reply->body);
  }
  worker_timer_start(s->hub->owner, &s->timer, pause > PAUSE_MIN_MS ? pause : PAUSE_MIN_MS);
}

static void
on_timer(struct wheel_timer *timer)
{
  struct syncing *s = container_of(timer, struct syncing, timer);

  if (s->asking != NULL)
    return;
  s->asking = call_new_internal(s->hub->owner, s->hub->network, EGW_LIT("eth_syncing"), EGW_LIT("[]"),
                                ASK_TIMEOUT_MS, on_answer, s);
  if (s->asking == NULL)
    worker_timer_start(s->hub->owner, timer, PAUSE_MIN_MS);
}

static void
end_asking(struct syncing *s)
{
  if (s->asking != NULL) {
    s->asking->sub->done = NULL;
    call_cancel(s->asking, RPC_FAULT_CANCELLED);
  }
  s->asking = NULL;
  s->known = false;
  worker_timer_stop(s->hub->owner, &s->timer);
}

static void
on_changed(void *arg)
{
  struct syncing *s = arg;

  atomic_store_explicit(&s->posted, false, memory_order_release);
  if (s->hub->stopped)
    return;
  if (!hub_is_wanted(s->hub, HUB_SYNCING))
    end_asking(s);
  else if (s->asking == NULL && !wheel_armed(&s->timer))
    on_timer(&s->timer);
}

void
syncing_changed(struct hub *hub)
{
  struct syncing *s = hub->syncing;

  if (s == NULL || atomic_exchange_explicit(&s->posted, true, memory_order_acq_rel))
    return;
  if (egw_post(hub->owner, on_changed, s) < 0)
    atomic_store_explicit(&s->posted, false, memory_order_release);
}

struct syncing *
syncing_new(struct hub *hub)
{
  struct syncing *s = calloc(1, sizeof(*s));

  if (s == NULL)
    return NULL;
  s->hub = hub;
  s->timer.fn = on_timer;
  atomic_init(&s->posted, false);
  return s;
}

void
syncing_stop(struct syncing *s)
{
  if (s != NULL)
    end_asking(s);
}

void
syncing_free(struct syncing *s)
{
  free(s);
}
