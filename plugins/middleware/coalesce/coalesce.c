/* SPDX-License-Identifier: MIT */
/* coalesce: identical calls that are in flight together are sent once.
 *
 * The first one goes on down and leads a flight; the others wait here. When the leader's answer is
 * there each follower gets it, by reference, under its own id. A leader that fails or leaves
 * hands over to one follower; nobody waits for a leader that is gone. */
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "flights.h"

#define HANDOVERS_MAX 3u /* then everybody goes by himself */

enum metric { METRIC_LEADERS, METRIC_FOLLOWERS, METRIC_HANDOVERS, METRIC_WAITING };

struct coalesce {
  int64_t max_followers;
  bool share_errors;
  struct flights *flights;      /* shared by the workers */
};

enum role { ROLE_NONE, ROLE_LEADER, ROLE_FOLLOWER };

/* A call here. */
struct state {
  enum role role;
  bool waiting;                 /* held by EGW_WAIT */
  struct flight *flight;        /* leader */
  struct follower *follower;    /* one hold, until finish() */
};

static const struct egw_option options[] = {
  { .name = "max_followers", .type = EGW_OPT_INT, .offset = offsetof(struct coalesce, max_followers),
    .fallback = "10000", .min = 1, .max = 1000000,
    .help = "calls that may wait for one; further ones are sent by themselves" },
  { .name = "share_errors", .type = EGW_OPT_BOOL, .offset = offsetof(struct coalesce, share_errors),
    .fallback = "true", .help = "whether a node's error is shared like a result" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  { .name = "leaders", .kind = EGW_METRIC_COUNTER, .help = "calls that were sent for themselves and others" },
  { .name = "followers", .kind = EGW_METRIC_COUNTER, .help = "calls that waited for the answer to another" },
  { .name = "handovers", .kind = EGW_METRIC_COUNTER, .help = "leaders that failed or left, with followers waiting" },
  { .name = "waiting", .kind = EGW_METRIC_GAUGE, .help = "calls waiting for the answer to another" },
  EGW_METRIC_TABLE_END
};

/* --- telling followers --------------------------------------------------------------------------- */

static void hand_over(struct flight *flight);

/* On the follower's worker: its call may have ended, or no longer be held here. */
static void
on_mail(void *arg)
{
  struct follower *follower = arg;
  struct egw_call *call = egw_find(follower->worker, follower->ticket);
  struct state *state = follower->state;

  if (call == NULL || !state->waiting) {
    /* Its call ended meanwhile: whoever waits for it to lead must not wait for ever. */
    if (follower->news == NEWS_LEAD)
      hand_over(follower->inherits);
  } else {
    state->waiting = false;
    if (follower->news == NEWS_ANSWER) {
      egw_resume(call, egw_answer_part(call, egw_buf_ref(follower->buf), follower->part,
                                       follower->is_error));
    } else {
      if (follower->news == NEWS_LEAD) {
        state->role = ROLE_LEADER;
        state->flight = follower->inherits;
      }
      egw_resume(call, EGW_NEXT);
    }
  }
  egw_buf_unref(follower->buf);
  follower->buf = NULL;
  follower_put(follower);
}

/* Sends the news off; the flight's hold goes with it. */
static void
tell(struct follower *follower, enum news news)
{
  follower->news = news;
  if (egw_post(follower->worker, on_mail, follower) == 0)
    return;
  /* Its worker takes no mail: it is stopping, and ends its calls by itself. */
  if (news == NEWS_LEAD)
    hand_over(follower->inherits);
  egw_buf_unref(follower->buf);
  follower->buf = NULL;
  follower_put(follower);
}

static void
tell_all(struct follower *all, enum news news)
{
  while (all != NULL) {
    struct follower *next = all->next;

    tell(all, news);
    all = next;
  }
}

/* The flight has no leader any more: another one, or everybody by himself. */
static void
hand_over(struct flight *flight)
{
  struct follower *rest;
  struct follower *heir = flight_hand_over(flight, HANDOVERS_MAX, &rest);

  if (heir != NULL) {
    heir->inherits = flight;
    tell(heir, NEWS_LEAD);
  } else {
    tell_all(rest, NEWS_GO);
  }
}

/* --- callbacks ------------------------------------------------------------------------------------ */

static int
coalesce_configure(void *self, struct egw_conf *section)
{
  struct coalesce *c = self;

  c->flights = flights_new();
  return c->flights != NULL ? 0 : egw_conf_error(section, NULL, "out of memory");
}

static void
coalesce_unconfigure(void *self)
{
  struct coalesce *c = self;

  flights_free(c->flights);
}

/* Only reads whose answer belongs to nobody in particular. */
static bool
coalesce_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  if (method == NULL || !method->idempotent || method->changes_node)
    return false;
  return method->method_class != EGW_CLASS_STATEFUL &&
         method->method_class != EGW_CLASS_SUBSCRIPTION &&
         method->method_class != EGW_CLASS_BROADCAST && method->method_class != EGW_CLASS_WRITE;
}

static enum egw_verdict
coalesce_request(const struct egw_at *at, struct egw_call *call)
{
  const struct coalesce *c = at->self;
  struct state *state = at->state;
  struct boarder who = { at->worker, egw_ticket(call), state };

  if (who.ticket == 0 || state->role != ROLE_NONE) /* sent again from above: it has had its chance */
    return EGW_NEXT;
  switch (flights_board(c->flights, egw_method(call), egw_params(call), (unsigned)c->max_followers,
                        &who, &state->flight, &state->follower)) {
  case BOARD_LEAD:
    state->role = ROLE_LEADER;
    egw_count(at, METRIC_LEADERS, 1);
    return EGW_NEXT;
  case BOARD_FOLLOW:
    state->role = ROLE_FOLLOWER;
    state->waiting = true;
    egw_count(at, METRIC_FOLLOWERS, 1);
    egw_count(at, METRIC_WAITING, 1);
    return EGW_WAIT;
  case BOARD_ALONE:
    break;
  }
  return EGW_NEXT;
}

/* The followers get what the leader got. */
static void
share(struct follower *all, const struct egw_reply *reply)
{
  while (all != NULL) {
    struct follower *next = all->next;

    all->buf = egw_buf_ref(reply->buf);
    all->part = reply->body;
    all->is_error = reply->is_error;
    tell(all, NEWS_ANSWER);
    all = next;
  }
}

static enum egw_verdict
coalesce_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  const struct coalesce *c = at->self;
  struct state *state = at->state;
  struct flight *flight = state->flight;

  (void)call;
  if (state->role != ROLE_LEADER || flight == NULL)
    return EGW_NEXT;
  state->flight = NULL;
  if (reply->outcome != EGW_OK || (reply->is_error && !c->share_errors)) {
    egw_count(at, METRIC_HANDOVERS, 1);
    hand_over(flight);
  } else if (reply->partial) {
    tell_all(flight_land(flight), NEWS_GO);
  } else {
    share(flight_land(flight), reply);
  }
  return EGW_NEXT;
}

static void
coalesce_cancel(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  state->waiting = false;
  if (state->follower != NULL)
    follower_leave(state->follower);
}

static void
coalesce_finish(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  if (state->flight != NULL) { /* a leader that ended without a reply of its own */
    egw_count(at, METRIC_HANDOVERS, 1);
    hand_over(state->flight);
    state->flight = NULL;
  }
  if (state->follower != NULL) {
    egw_count(at, METRIC_WAITING, -1);
    follower_put(state->follower);
    state->follower = NULL;
  }
}

static const struct egw_middleware coalesce = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "coalesce", .version = "1.0",
              .summary = "send identical calls that are in flight together once",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct coalesce),
              .configure = coalesce_configure, .unconfigure = coalesce_unconfigure },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_SUBCALL,
  .need = EGW_NEED_WHOLE,
  .request = coalesce_request,
  .reply = coalesce_reply,
  .cancel = coalesce_cancel,
  .finish = coalesce_finish,
  .wants = coalesce_wants,
};
EGW_REGISTER(coalesce)
