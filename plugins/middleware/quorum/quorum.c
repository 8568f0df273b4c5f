/* SPDX-License-Identifier: MIT */
/* quorum: several upstreams must give the same answer.
 *
 *   quorum.c       options; which calls are voted on
 *   resolve.c      tags become numbers, so that all are asked about one block
 *   ballot.c       who is asked, and when it is decided
 *   vote.c         what was said, and whether two said the same
 *   fingerprint.c  JSON values that mean the same */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/version.h>
#include "../../common/pattern.h"
#include "quorum.h"
#include "resolve.h"

/* In a call. */
struct state {
  struct ballot *ballot;
};

static const char *const disagreement_words[] = { "refuse", "majority", "first", NULL };
static const char *const too_few_words[] = { "refuse", "pass", NULL };

static const struct egw_option options[] = {
  { .name = "methods", .type = EGW_OPT_LIST, .offset = offsetof(struct quorum, methods),
    .fallback = "eth_getBalance,eth_getCode,eth_getStorageAt,eth_getTransactionCount,"
                "eth_getProof,eth_call,eth_getLogs,eth_getBlockByNumber,eth_getBlockByHash,"
                "eth_getBlockReceipts,eth_getTransactionByHash,eth_getTransactionReceipt",
    .help = "methods that are voted on: names, or beginnings of names with a *" },
  { .name = "agree", .type = EGW_OPT_INT, .offset = offsetof(struct quorum, agree),
    .fallback = "2", .min = 1, .max = UPSTREAMS_MAX, .help = "upstreams that must agree" },
  { .name = "ask", .type = EGW_OPT_INT, .offset = offsetof(struct quorum, ask),
    .fallback = "3", .min = 1, .max = UPSTREAMS_MAX,
    .help = "upstreams that are asked at once" },
  { .name = "ignore", .type = EGW_OPT_LIST, .offset = offsetof(struct quorum, ignore),
    .fallback = "totalDifficulty,size",
    .help = "members of objects in which upstreams may differ" },
  { .name = "on_disagreement", .type = EGW_OPT_ENUM,
    .offset = offsetof(struct quorum, on_disagreement), .fallback = "refuse",
    .choices = disagreement_words,
    .help = "what the client gets when too few agree: an error, the answer of most, or of the "
            "first upstream" },
  { .name = "too_few", .type = EGW_OPT_ENUM, .offset = offsetof(struct quorum, too_few),
    .fallback = "refuse", .choices = too_few_words,
    .help = "what the client gets when too few answer: an error, or the answer there is" },
  { .name = "lag_wait", .type = EGW_OPT_DURATION, .offset = offsetof(struct quorum, lag_wait),
    .fallback = "1s", .max = 60000,
    .help = "how long upstreams that do not have a new block yet are waited for" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_ASKED] = { .name = "asked", .kind = EGW_METRIC_COUNTER, .help = "calls voted on" },
  [METRIC_AGREED] = { .name = "agreed", .kind = EGW_METRIC_COUNTER,
                      .help = "calls for which enough upstreams agreed" },
  [METRIC_DISAGREED] = { .name = "disagreed", .kind = EGW_METRIC_COUNTER,
                         .help = "calls for which they did not" },
  [METRIC_ALONE] = { .name = "alone", .kind = EGW_METRIC_COUNTER,
                     .help = "answers that differed from what the others agreed on" },
  [METRIC_TOO_FEW] = { .name = "too_few", .kind = EGW_METRIC_COUNTER,
                       .help = "calls that too few upstreams answered" },
  [METRIC_SPARES] = { .name = "spares", .kind = EGW_METRIC_COUNTER,
                      .help = "upstreams asked in place of one that could not answer" },
  [METRIC_WAITS] = { .name = "waits", .kind = EGW_METRIC_COUNTER,
                     .help = "calls that waited for upstreams to get a new block" },
  [METRIC_PASSED] = { .name = "passed", .kind = EGW_METRIC_COUNTER,
                      .help = "calls that can't be voted on: pending, or an unknown head" },
  EGW_METRIC_TABLE_END
};

/* --- which calls ------------------------------------------------------------------------- */

/* `exact`: only a name without a star. */
static bool
listed(const struct quorum *q, struct egw_slice name, bool exact)
{
  size_t i;

  for (i = 0; i < q->methods.n; i++)
    if ((!exact || strchr(q->methods.v[i], '*') == NULL) &&
        pattern_matches(q->methods.v[i], name))
      return true;
  return false;
}

/* What may not be sent to several upstreams never is, whatever the list says. */
static bool
quorum_wants(const void *self, const struct egw_method_info *info)
{
  if (info == NULL)
    return true;
  return info->idempotent && !info->changes_node && info->method_class != EGW_CLASS_STATEFUL &&
         info->method_class != EGW_CLASS_SUBSCRIPTION &&
         info->method_class != EGW_CLASS_BROADCAST && info->method_class != EGW_CLASS_WRITE &&
         listed(self, (struct egw_slice){ info->name, strlen(info->name) }, false);
}

/* --- callbacks --------------------------------------------------------------------------- */

/* The params in memory of the call. */
static struct egw_slice
kept(struct egw_call *call, struct egw_buf *buf)
{
  struct egw_slice from = egw_buf_slice(buf);
  char *copy = egw_alloc(call, from.len);

  if (copy != NULL)
    memcpy(copy, from.ptr, from.len);
  egw_buf_unref(buf);
  return (struct egw_slice){ copy, from.len };
}

static enum egw_verdict
quorum_request(const struct egw_at *at, struct egw_call *call)
{
  const struct egw_method_info *info = egw_method_info(call);
  struct state *state = at->state;
  struct egw_slice params = egw_params(call);
  struct egw_buf *buf;
  uint64_t need;

  ballot_clear(state->ballot); /* of the time before, if it was sent again from above */
  state->ballot = NULL;
  if (info == NULL && !listed(at->self, egw_method(call), true))
    return EGW_NEXT;
  switch (resolve_params(egw_head(at), resolve_latest(at), info, params, &buf, &need)) {
  case RESOLVED_NOT:
    egw_count(at, METRIC_PASSED, 1);
    egw_explain(call, "quorum: passed on, the block is not known");
    return EGW_NEXT;
  case RESOLVED_NEW:
    params = kept(call, buf);
    break;
  case RESOLVED_NO_MEMORY:
    params.ptr = NULL;
    break;
  case RESOLVED_AS_IS:
    break;
  }
  if (params.ptr == NULL)
    return egw_refuse(call, -32603, "out of memory");
  return ballot_begin(at, call, params, need, &state->ballot);
}

static enum egw_verdict
quorum_timer(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  return ballot_again(state->ballot);
}

static void
quorum_cancel(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  egw_call_timer(at, call, 0);
  ballot_clear(state->ballot);
}

static void
quorum_over(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  ballot_clear(state->ballot);
}

/* --- configuration ----------------------------------------------------------------------- */

static int
quorum_configure(void *self, struct egw_conf *section)
{
  struct quorum *q = self;
  int r = 0;

  if (q->agree > q->ask)
    r = egw_conf_error(section, "agree", "is more than ask, so they never could");
  if (q->methods.n == 0)
    egw_conf_warn(section, "methods", "is empty: nothing is voted on");
  q->alone = calloc(UPSTREAMS_MAX, sizeof *q->alone);
  if (q->alone == NULL || fingerprint_key(&q->key) != 0)
    r = egw_conf_error(section, NULL, "out of memory");
  return r;
}

static void
quorum_unconfigure(void *self)
{
  struct quorum *q = self;

  free(q->alone);
  q->alone = NULL;
}

static const struct egw_middleware quorum = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "quorum", .version = EGW_VERSION,
              .summary = "several upstreams must give the same answer",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct quorum),
              .configure = quorum_configure, .unconfigure = quorum_unconfigure },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_SUBCALL,
  .need = EGW_NEED_NONE,
  .request = quorum_request,
  .timer = quorum_timer,
  .cancel = quorum_cancel,
  .finish = quorum_over,
  .wants = quorum_wants,
};
EGW_REGISTER(quorum)
