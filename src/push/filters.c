/* SPDX-License-Identifier: MIT */
/* Filters on the owner: made, fed, polled, ended. The way of a call there and back is in filter-ask.c. */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "obs/log.h"
#include "push/filter-ask.h"
#include "push/filters.h"
#include "push/hub.h"
#include "push/subscription.h"

#define SWEEP_MS 5000u
#define EXPIRE_SWEEPS 60u            /* a filter that nobody polls ends after five minutes */
#define FILTERS_MAX 10000u           /* of one network */
#define KEPT_MAX (16u * 1024 * 1024) /* bytes of events of one filter that wait for a poll, */
#define KEPT_ALL_MAX (256u * 1024 * 1024) /* and of all of a network */

/* An event's part that waits for a poll. */
struct kept {
  struct egw_buf *buf;
  struct egw_slice raw;
};

struct filter {
  struct list node;                  /* filters->by_age: the one polled longest ago first */
  enum hub_kind kind;
  struct hub_filter match;           /* LOGS */
  struct egw_buf *object;            /* LOGS: the filter as the client gave it */
  uint64_t since;
  uint64_t polled;                   /* filters->sweeps as of then */
  struct kept *kept;
  size_t kept_count, kept_room, kept_bytes;
  char id[SUBSCRIPTION_ID_LEN + 1];
};

struct filters {
  struct hub *hub;
  struct strmap by_id;
  struct list by_age;
  struct wheel_timer sweep;
  uint64_t sweeps;                   /* so far */
  size_t kept_bytes;                 /* of all filters */
};

/* --- life ----------------------------------------------------------------------------------------- */

static void
forget_kept(struct filters *filters, struct filter *f)
{
  while (f->kept_count != 0)
    egw_buf_unref(f->kept[--f->kept_count].buf);
  filters->kept_bytes -= f->kept_bytes;
  f->kept_bytes = 0;
}

static void
end_filter(struct filters *filters, struct filter *f)
{
  strmap_take(&filters->by_id, (struct egw_slice){ f->id, SUBSCRIPTION_ID_LEN });
  list_remove(&f->node);
  hub_want(filters->hub, f->kind, -1);
  if (f->match.filter != NULL)
    hub_filter_remove(filters->hub, &f->match);
  log_filter_free(f->match.filter);
  egw_buf_unref(f->object);
  forget_kept(filters, f);
  free(f->kept);
  free(f);
}

static void
on_sweep(struct wheel_timer *timer)
{
  struct filters *filters = container_of(timer, struct filters, sweep);
  struct egw_worker *worker = filters->hub->owner;

  filters->sweeps++;
  while (!list_empty(&filters->by_age)) {
    struct filter *f = container_of(filters->by_age.next, struct filter, node);

    if (filters->sweeps - f->polled <= EXPIRE_SWEEPS)
      break;
    end_filter(filters, f);
  }
  if (!list_empty(&filters->by_age))
    worker_timer_start(worker, timer, SWEEP_MS);
}

struct filters *
filters_new(struct hub *hub)
{
  struct filters *filters = calloc(1, sizeof(*filters));

  if (filters == NULL)
    return NULL;
  filters->hub = hub;
  filters->sweep.fn = on_sweep;
  list_init(&filters->by_age);
  return filters;
}

void
filters_stop(struct filters *filters)
{
  if (filters == NULL)
    return;
  while (!list_empty(&filters->by_age))
    end_filter(filters, container_of(filters->by_age.next, struct filter, node));
  worker_timer_stop(filters->hub->owner, &filters->sweep);
}

void
filters_free(struct filters *filters)
{
  if (filters == NULL)
    return;
  strmap_free(&filters->by_id);
  free(filters);
}

/* --- events ----------------------------------------------------------------------------------------- */

/* false: it does not fit. */
static bool
keep(struct filter *f, struct egw_buf *buf, struct egw_slice raw)
{
  if (f->kept_bytes + raw.len > KEPT_MAX)
    return false;
  if (f->kept_count == f->kept_room) {
    size_t room = f->kept_room == 0 ? 8 : f->kept_room * 2;
    struct kept *v = realloc(f->kept, room * sizeof(*v));

    if (v == NULL)
      return false;
    f->kept = v;
    f->kept_room = room;
  }
  f->kept[f->kept_count++] = (struct kept){ egw_buf_ref(buf), raw };
  f->kept_bytes += raw.len + sizeof(struct kept);
  return true;
}

static bool
keep_hash(struct filter *f, const struct hub_event *event)
{
  char text[67];
  struct egw_buf *buf;
  bool good;

  hash_text(event->hash, text);
  buf = egw_buf_new(70);
  good = buf != NULL && egw_buf_printf(buf, "\"%s\"", text) == 0 &&
         keep(f, buf, egw_buf_slice(buf));
  egw_buf_unref(buf);
  return good;
}

static bool
keep_logs(struct filter *f, const struct hub_event *event)
{
  size_t i;

  for (i = 0; event->logs != NULL && i < event->logs->count; i++)
    if (log_filter_matches(f->match.filter, &event->logs->v[i]) &&
        !keep(f, event->logs->buf, event->logs->v[i].raw))
      return false;
  return true;
}

static bool
take_event(struct filter *f, const struct hub_event *event)
{
  if (event->broken)
    return false;
  if (event->kind == HUB_HEADS)
    return keep_hash(f, event);
  if (event->kind == HUB_LOGS)
    return keep_logs(f, event);
  return keep(f, event->buf, egw_buf_slice(event->buf));
}

/* The ones that were polled longest ago go first. */
static void
make_room(struct filters *filters)
{
  while (filters->kept_bytes > KEPT_ALL_MAX && !list_empty(&filters->by_age)) {
    egw_log(EGW_WARN, "push", "%s: a filter is ended: all together keep too much",
            filters->hub->network->name);
    end_filter(filters, container_of(filters->by_age.next, struct filter, node));
  }
}

void
filters_event(struct hub *hub, const struct hub_event *event)
{
  struct filters *filters = hub->filters_mine;
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &filters->by_age) {
    struct filter *f = container_of(node, struct filter, node);

    size_t before = f->kept_bytes;
    bool kept;

    if (f->kind != event->kind || !hub_is_new(event, f->since))
      continue;
    kept = take_event(f, event);
    filters->kept_bytes += f->kept_bytes - before;
    if (kept)
      continue;
    /* Better no filter than one with a hole. */
    egw_log(EGW_WARN, "push", "%s: a filter is ended: %s", hub->network->name,
            event->broken ? "an event was lost" : "it is polled too seldom");
    end_filter(filters, f);
  }
  make_room(filters);
}

/* --- what is asked of them ---------------------------------------------------------------------------- */

static void
make(struct filters *filters, struct filter_ask *ask)
{
  struct filter *f = calloc(1, sizeof(*f));

  if (strmap_count(&filters->by_id) >= FILTERS_MAX || !hub_has_room(filters->hub)) {
    free(f);
    filter_ask_fail(ask, -32006, "too many filters");
    return;
  }
  if (f == NULL || subscription_make_id(f->id) < 0 ||
      strmap_put(&filters->by_id, (struct egw_slice){ f->id, SUBSCRIPTION_ID_LEN }, f) < 0) {
    free(f);
    filter_ask_fail(ask, -32603, "out of memory");
    return;
  }
  f->kind = ask->kind;
  f->match.filter = ask->filter;
  ask->filter = NULL;
  f->object = ask->object != NULL ? egw_buf_ref(ask->object) : NULL;
  f->polled = filters->sweeps;
  list_append(&filters->by_age, &f->node);
  hub_want(filters->hub, f->kind, 1);
  if (f->match.filter != NULL)
    hub_filter_add(filters->hub, &f->match);
  f->since = atomic_load_explicit(&filters->hub->network->head->version, memory_order_relaxed);
  if (!wheel_armed(&filters->sweep))
    worker_timer_start(filters->hub->owner, &filters->sweep, SWEEP_MS);
  filter_ask_text(ask, f->id);
}

static void
changes(struct filters *filters, struct filter *f, struct filter_ask *ask)
{
  struct egw_buf *out = egw_buf_new(f->kept_bytes + 2);
  size_t i;
  bool good = out != NULL && egw_buf_append(out, "[", 1) == 0;

  for (i = 0; good && i < f->kept_count; i++)
    good = (i == 0 || egw_buf_append(out, ",", 1) == 0) &&
           egw_buf_append(out, f->kept[i].raw.ptr, f->kept[i].raw.len) == 0;
  if (!good || egw_buf_append(out, "]", 1) < 0) {
    egw_buf_unref(out);
    filter_ask_fail(ask, -32603, "out of memory"); /* the events stay for the next poll */
    return;
  }
  forget_kept(filters, f);
  ask->result = out;
}

void
filters_answer(struct hub *hub, struct filter_ask *ask)
{
  struct filters *filters = hub->filters_mine;
  struct filter *f;

  if (hub->stopped) {
    filter_ask_fail(ask, -32054, "shutting down");
    return;
  }
  if (ask->what == FILTER_NEW) {
    make(filters, ask);
    return;
  }
  f = strmap_get(&filters->by_id, (struct egw_slice){ ask->id, strlen(ask->id) });
  if (ask->what == FILTER_UNINSTALL) {
    if (f != NULL)
      end_filter(filters, f);
    ask->result = egw_buf_copy(f != NULL ? EGW_LIT("true") : EGW_LIT("false"));
    return;
  }
  if (f == NULL || (ask->what == FILTER_LOGS && f->kind != HUB_LOGS)) {
    filter_ask_fail(ask, -32000, "filter not found");
    return;
  }
  f->polled = filters->sweeps;
  list_remove(&f->node);
  list_append(&filters->by_age, &f->node);
  if (ask->what == FILTER_LOGS)
    ask->object = egw_buf_ref(f->object);
  else
    changes(filters, f, ask);
}
