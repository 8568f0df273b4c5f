/* SPDX-License-Identifier: MIT */
/* failover: what becomes of a call when an upstream fails it.
 *
 * Every reply is judged first (classify.c); what is an answer goes to the client as it is. The
 * rest decides what follows: another upstream, the same one later, or nothing. The core below
 * makes one attempt at a time (egw_route.once); this stage says where. */
#include "failover.h"

#include <stdlib.h>
#include <string.h>

#define QUICK_COST 20u /* calls up to here do not wait for an upstream that is slow */

static const char *const nonce_choices[] = { "any", "max", NULL };

static const struct egw_option options[] = {
  { .name = "attempts", .type = EGW_OPT_INT, .offset = offsetof(struct failover, attempts),
    .fallback = "3", .min = 1, .max = 20, .help = "times a call is sent at most" },
  { .name = "retry_budget", .type = EGW_OPT_RATIO,
    .offset = offsetof(struct failover, retry_budget), .fallback = "20%",
    .help = "extra attempts in flight, as a share of the calls; three are always allowed" },
  { .name = "backoff", .type = EGW_OPT_DURATION, .offset = offsetof(struct failover, backoff),
    .fallback = "50ms", .min = 1, .max = 60000,
    .help = "first pause before the same upstream is asked again; it doubles" },
  { .name = "missing_wait", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct failover, missing_wait), .fallback = "2s", .min = 0,
    .max = 600000,
    .help = "how long a block that exists is asked for when no upstream has it" },
  { .name = "breaker_errors", .type = EGW_OPT_RATIO,
    .offset = offsetof(struct failover, breaker.errors), .fallback = "50%",
    .help = "share of failures at which an upstream's breaker opens" },
  { .name = "breaker_samples", .type = EGW_OPT_INT,
    .offset = offsetof(struct failover, breaker.samples), .fallback = "10", .min = 1,
    .max = 1000000, .help = "calls that must be in the window for that" },
  { .name = "breaker_failures", .type = EGW_OPT_INT,
    .offset = offsetof(struct failover, breaker.failures), .fallback = "3", .min = 1,
    .max = 1000000, .help = "failures in a row that open it as well" },
  { .name = "breaker_window", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct failover, breaker.window), .fallback = "10s", .min = 100,
    .max = 3600000, .help = "over how long failures are counted" },
  { .name = "breaker_open", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct failover, breaker.open), .fallback = "5s", .min = 1,
    .max = 3600000,
    .help = "how long it is open before the upstream is tried; it doubles up to 16 times" },
  { .name = "max_lag", .type = EGW_OPT_INT,
    .offset = offsetof(struct failover, breaker.max_lag), .fallback = "10", .min = 0,
    .max = 1000000000,
    .help = "blocks that an upstream may be behind the tip before it is avoided" },
  { .name = "hedge", .type = EGW_OPT_BOOL, .offset = offsetof(struct failover, hedge),
    .fallback = "false", .help = "whether a slow cheap read is sent to a second upstream" },
  { .name = "hedge_quantile", .type = EGW_OPT_RATIO,
    .offset = offsetof(struct failover, hedge_quantile), .fallback = "95%",
    .help = "slow is what takes longer than this share of the recent ones" },
  { .name = "hedge_min", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct failover, hedge_min), .fallback = "20ms", .min = 1, .max = 60000,
    .help = "...and longer than this" },
  { .name = "hedge_cost", .type = EGW_OPT_INT, .offset = offsetof(struct failover, hedge_cost),
    .fallback = "15", .min = 1, .max = 100,
    .help = "methods that cost more (1 to 100) are not hedged" },
  { .name = "broadcast", .type = EGW_OPT_STRING,
    .offset = offsetof(struct failover, broadcast_text), .fallback = "first",
    .help = "upstreams that get a raw transaction at once: first, all, or a number" },
  { .name = "nonce", .type = EGW_OPT_ENUM, .offset = offsetof(struct failover, nonce),
    .fallback = "any", .choices = nonce_choices,
    .help = "whose eth_getTransactionCount counts: any upstream's, or the highest of all" },
  { .name = "rules", .type = EGW_OPT_SECTION, .help = "further rules for what errors mean" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  { .name = "results", .kind = EGW_METRIC_COUNTER, .help = "results" },
  { .name = "reverts", .kind = EGW_METRIC_COUNTER,
    .help = "reverts: a contract's own errors" },
  { .name = "invalid", .kind = EGW_METRIC_COUNTER,
    .help = "errors that say the request is wrong" },
  { .name = "range_too_large", .kind = EGW_METRIC_COUNTER,
    .help = "errors that say too much was asked" },
  { .name = "already_known", .kind = EGW_METRIC_COUNTER,
    .help = "transactions a node had already" },
  { .name = "nonce_too_low", .kind = EGW_METRIC_COUNTER,
    .help = "transactions with a used nonce" },
  { .name = "tx_refused", .kind = EGW_METRIC_COUNTER,
    .help = "transactions refused for good" },
  { .name = "tx_busy", .kind = EGW_METRIC_COUNTER,
    .help = "transactions a node had no room for" },
  { .name = "unmatched", .kind = EGW_METRIC_COUNTER,
    .help = "errors that no rule knows; passed on" },
  { .name = "stale", .kind = EGW_METRIC_COUNTER,
    .help = "null for what exists, or an old block as the latest" },
  { .name = "missing_block", .kind = EGW_METRIC_COUNTER,
    .help = "errors: the node does not have the block yet" },
  { .name = "missing_state", .kind = EGW_METRIC_COUNTER,
    .help = "errors: the node has the state no more" },
  { .name = "node_timeout", .kind = EGW_METRIC_COUNTER, .help = "errors: the node gave up" },
  { .name = "server", .kind = EGW_METRIC_COUNTER, .help = "errors: the node is in trouble" },
  { .name = "rate_limited", .kind = EGW_METRIC_COUNTER, .help = "errors: too many requests" },
  { .name = "unsupported", .kind = EGW_METRIC_COUNTER,
    .help = "errors: the node lacks the method" },
  { .name = "billing", .kind = EGW_METRIC_COUNTER,
    .help = "errors: the provider wants to be paid" },
  { .name = "unauthorized", .kind = EGW_METRIC_COUNTER,
    .help = "errors: the gateway may not ask" },
  { .name = "silent", .kind = EGW_METRIC_COUNTER,
    .help = "attempts without an answer in time" },
  { .name = "broken", .kind = EGW_METRIC_COUNTER,
    .help = "attempts that ended with the connection or in nonsense" },
  { .name = "unreachable", .kind = EGW_METRIC_COUNTER,
    .help = "attempts at upstreams that could not be reached" },
  { .name = "retries", .kind = EGW_METRIC_COUNTER, .help = "calls sent again" },
  { .name = "pauses", .kind = EGW_METRIC_COUNTER, .help = "pauses before that" },
  { .name = "budget_denied", .kind = EGW_METRIC_COUNTER,
    .help = "times the retry budget said no" },
  { .name = "extra", .kind = EGW_METRIC_GAUGE,
    .help = "attempts in flight on the retry budget" },
  { .name = "breaker_opened", .kind = EGW_METRIC_COUNTER, .help = "times a breaker opened" },
  { .name = "hedges", .kind = EGW_METRIC_COUNTER,
    .help = "second attempts beside a slow first one" },
  { .name = "hedge_wins", .kind = EGW_METRIC_COUNTER, .help = "...that were faster" },
  { .name = "tx_copies", .kind = EGW_METRIC_COUNTER,
    .help = "raw transactions sent to an upstream" },
  { .name = "tx_asked", .kind = EGW_METRIC_COUNTER,
    .help = "questions whether an upstream has a transaction" },
  { .name = "tx_resolved", .kind = EGW_METRIC_COUNTER,
    .help = "transactions that an upstream turned out to have" },
  { .name = "tx_unknown", .kind = EGW_METRIC_COUNTER,
    .help = "transactions whose outcome stayed unknown" },
  { .name = "tx_mismatch", .kind = EGW_METRIC_COUNTER,
    .help = "answers that were not the transaction's hash" },
  { .name = "nonce_reads", .kind = EGW_METRIC_COUNTER,
    .help = "nonces asked of all upstreams" },
#define ROW(row, class, scope, code, http, texts)                                             \
  { .name = "row_" #row, .kind = EGW_METRIC_COUNTER, .help = "errors judged by this row" },
#include "errors.def"
#undef ROW
  { .name = "row_configured", .kind = EGW_METRIC_COUNTER,
    .help = "errors judged by a rule of the configuration" },
  EGW_METRIC_TABLE_END
};

_Static_assert(sizeof(metrics) / sizeof(metrics[0]) == METRIC_ROWS + ROW_COUNT + 2, "metrics");

/* --- life -------------------------------------------------------------------------------- */

static int
read_broadcast(struct failover *f, struct egw_conf *section)
{
  char *end;
  unsigned long n;

  if (strcmp(f->broadcast_text, "first") == 0) {
    f->broadcast = 1;
    return 0;
  }
  if (strcmp(f->broadcast_text, "all") == 0) {
    f->broadcast = UPSTREAMS_MAX;
    return 0;
  }
  n = strtoul(f->broadcast_text, &end, 10);
  if (f->broadcast_text[0] < '1' || f->broadcast_text[0] > '9' || *end != '\0' ||
      n > UPSTREAMS_MAX)
    return egw_conf_error(section, "broadcast",
                          "\"%s\" is neither \"first\" nor \"all\" nor a number"
                          " from 1 to 64",
                          f->broadcast_text);
  f->broadcast = (unsigned)n;
  return 0;
}

static int
failover_configure(void *self, struct egw_conf *section)
{
  struct failover *f = self;
  int r = read_broadcast(f, section);

  f->breakers = breakers_new();
  if (f->breakers == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  if (rules_read(section, &f->rules) < 0)
    r = -1;
  return r;
}

static void
failover_unconfigure(void *self)
{
  struct failover *f = self;

  breakers_free(f->breakers);
  rules_free(f->rules);
}

static int
failover_worker_start(const void *self, void *mine, struct egw_worker *worker)
{
  struct mine *m = mine;

  (void)self;
  m->seed = (egw_worker_index(worker) + 1) * 0x9e3779b9u ^ (uint32_t)egw_now_ms(worker);
  return 0;
}

/* Not what belongs to one upstream or one connection: filters, subscriptions. */
static bool
failover_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  return method == NULL || (method->method_class != EGW_CLASS_STATEFUL &&
                            method->method_class != EGW_CLASS_SUBSCRIPTION);
}

/* --- for the other files ----------------------------------------------------------------- */

uint64_t
failover_left_ms(const struct egw_at *at, const struct egw_call *call)
{
  uint64_t now = egw_now_ms(at->worker), deadline = egw_deadline_ms(call);

  return deadline > now ? deadline - now : 0;
}

bool
failover_take_extra(const struct egw_at *at, bool *extra)
{
  const struct failover *f = at->self;
  struct mine *mine = at->mine;

  if (!budget_take(&mine->budget, f->retry_budget)) {
    egw_count(at, METRIC_BUDGET_DENIED, 1);
    return false;
  }
  egw_count(at, METRIC_EXTRA, 1);
  *extra = true;
  return true;
}

void
failover_give_extra(const struct egw_at *at, bool *extra)
{
  struct mine *mine = at->mine;

  if (!*extra)
    return;
  budget_give(&mine->budget);
  egw_count(at, METRIC_EXTRA, -1);
  *extra = false;
}

const struct subject *
failover_subject(const struct egw_call *call, struct state *state)
{
  if (!state->has_subject)
    subject_of(call, &state->subject);
  state->has_subject = true;
  return &state->subject;
}

/* --- calls ------------------------------------------------------------------------------- */

static void
explain_view(const struct egw_at *at, struct egw_call *call, const struct breaker_view *view)
{
  struct egw_upstream_info info;
  unsigned i;

  if (!egw_explains(call))
    return;
  for (i = 0; i < UPSTREAMS_MAX; i++)
    if ((view->avoid >> i & 1) != 0 && egw_upstream(at, i, &info))
      egw_explain(call, "failover avoids %s: %s", info.name, shunned_text(view->why[i]));
  if (view->trial != EGW_NO_UPSTREAM && egw_upstream(at, view->trial, &info))
    egw_explain(call, "failover sends %s a copy, to see how it does", info.name);
}

/* Sends it down. What may not be sent twice is left to the core, which knows when nothing was
 * sent. */
static enum egw_verdict
go_down(const struct egw_at *at, struct egw_call *call, bool twice)
{
  struct state *state = at->state;
  struct egw_route route = state->base;

  route.avoid |= state->avoid;
  route.once = route.once || twice;
  state->mode = twice ? MODE_PLAIN : MODE_WATCH;
  state->attempts = 1;
  state->began_ms = egw_now_ms(at->worker);
  egw_route(call, &route);
  return EGW_NEXT;
}

/* What is to be avoided; what is avoided for long enough gets a copy of the call. */
static void
look_around(const struct egw_at *at, struct egw_call *call, bool twice)
{
  const struct failover *f = at->self;
  const struct egw_method_info *info = egw_method_info(call);
  struct state *state = at->state;
  bool quick = info != NULL && info->cost <= QUICK_COST;
  struct breaker_view view;

  breakers_view(f->breakers, at, &f->breaker, quick, quick && twice, &view);
  explain_view(at, call, &view);
  state->avoid = view.avoid;
  if (view.trial != EGW_NO_UPSTREAM)
    trial_start(at, call, view.trial);
}

static enum egw_verdict
failover_request(const struct egw_at *at, struct egw_call *call)
{
  const struct egw_method_info *info = egw_method_info(call);
  struct state *state = at->state;
  struct mine *mine = at->mine;
  bool twice;

  if (state->mode != MODE_NONE) /* sent again from above */
    return EGW_NEXT;
  budget_enter(&mine->budget);
  state->mode = MODE_WATCH;
  egw_routed(call, &state->base);
  twice = info != NULL && info->idempotent && !state->base.once;
  look_around(at, call, twice);
  if (info == NULL || state->base.once)
    return go_down(at, call, twice);
  if (strcmp(info->name, "eth_sendRawTransaction") == 0 && rawtx_start(at, call))
    return EGW_WAIT;
  if (twice && (nonce_start(at, call) || hedge_start(at, call)))
    return EGW_WAIT;
  return go_down(at, call, twice);
}

static enum egw_verdict
failover_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct state *state = at->state;
  struct verdict v;

  if (state->mode == MODE_NONE || reply->outcome == EGW_ABORTED ||
      failover_left_ms(at, call) == 0)
    return EGW_NEXT;
  v = witness(at, call, state, reply, egw_now_ms(at->worker) - state->began_ms);
  if (state->mode == MODE_PLAIN && v.class != CLASS_RESULT)
    return retry_after(at, call, reply, &v, true);
  failover_give_extra(at, &state->extra);
  return EGW_NEXT;
}

static enum egw_verdict
failover_timer(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  switch (state->mode) {
  case MODE_HEDGE:
    return hedge_timer(at, call);
  case MODE_NONCE:
    return nonce_timer(at, call);
  case MODE_TX:
    return rawtx_timer(at, call);
  case MODE_NONE:
  case MODE_WATCH:
  case MODE_PLAIN:
    break;
  }
  return retry_paused(at, call);
}

/* Sub-calls of a call end with it; copies of a transaction go on. */
static void
failover_finish(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;
  struct mine *mine = at->mine;

  (void)call;
  if (state->mode == MODE_NONE)
    return;
  if (state->mode == MODE_HEDGE)
    hedge_leave(state);
  if (state->mode == MODE_TX)
    rawtx_leave(state);
  failover_give_extra(at, &state->extra);
  budget_leave(&mine->budget);
  telling_free(&state->telling);
}

static void
failover_cancel(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  if (state->mode == MODE_HEDGE)
    hedge_leave(state);
  if (state->mode == MODE_TX)
    rawtx_leave(state);
  state->mode = MODE_WATCH;
}

static const struct egw_middleware failover = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "failover",
              .version = "1.0", .summary = "retry, break, hedge, and send transactions safely",
              .options = options, .metrics = metrics, .instance_size = sizeof(struct failover),
              .worker_size = sizeof(struct mine), .configure = failover_configure,
              .unconfigure = failover_unconfigure, .worker_start = failover_worker_start },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_NOTIFICATION | EGW_KIND_SUBCALL,
  .need = EGW_NEED_HEAD,
  .request = failover_request,
  .reply = failover_reply,
  .timer = failover_timer,
  .cancel = failover_cancel,
  .finish = failover_finish,
  .wants = failover_wants,
};
EGW_REGISTER(failover)
