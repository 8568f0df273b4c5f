/* SPDX-License-Identifier: MIT */
/* Each reply is judged and noted in one place, whichever way its call went. */
#include "failover.h"

#include <string.h>
#include <ethrpc-gw/json.h>

#define RECENT 128u /* blocks: state that is missing above that is late rather than pruned */
#define QUIET_MS 1000u /* a rate limit that names no time */
#define QUIET_MAX_MS 60000u
#define HEAVY 50u /* methods from here on may take long by right */
#define CHEAP 10u /* methods up to here have comparable latencies */

/* The gateway itself would not take the reply: no upstream's fault. */
static bool
is_own_limit(const struct egw_reply *reply)
{
  return reply->outcome == EGW_BAD_REPLY && (reply->code == -32008 || reply->code == -32055);
}

/* A first look, which spares most results the other ones. */
static bool
may_be_stale(const struct egw_method_info *info, const struct egw_reply *reply)
{
  return !reply->partial && info != NULL && info->idempotent &&
         (egw_json_kind(reply->body) == EGW_JSON_NULL ||
          strcmp(info->name, "eth_getBlockByNumber") == 0);
}

static void
tell_log(const struct egw_reply *reply, const struct verdict *v)
{
  const char *upstream = reply->upstream != NULL ? reply->upstream : "-";

  if (v->class ==
      CLASS_UNMATCHED) /* worth a row of its own: it can be seen without debugging */
    egw_log(EGW_INFO, "failover", "%s: no rule for the error code=%lld message=%.*s", upstream,
            (long long)reply->code, (int)(reply->message.len < 200 ? reply->message.len : 200),
            reply->message.ptr != NULL ? reply->message.ptr : "");
  else if (v->class != CLASS_RESULT)
    egw_log(EGW_DEBUG, "failover", "%s: %s row=%s code=%lld", upstream,
            class_info(v->class)->name, v->row, (long long)reply->code);
}

/* What the reply says of its upstream's health. */
static void
tell_breakers(const struct egw_at *at, const struct egw_method_info *info,
              const struct egw_reply *reply, const struct verdict *v, int64_t ms)
{
  const struct failover *f = at->self;
  enum mark mark = class_info(v->class)->mark;

  if (reply->upstream_index == EGW_NO_UPSTREAM)
    return;
  if (v->class == CLASS_RATE) {
    uint64_t quiet = reply->retry_after_ms != 0 ? reply->retry_after_ms : QUIET_MS;

    breakers_quiet(f->breakers, at, reply->upstream_index,
                   quiet < QUIET_MAX_MS ? quiet : QUIET_MAX_MS);
  }
  if (v->class == CLASS_SILENT && info != NULL && info->cost >= HEAVY)
    mark = MARK_NONE;
  if (breakers_note(f->breakers, at, &f->breaker, reply->upstream_index, mark, ms)) {
    egw_count(at, METRIC_BREAKER_OPENED, 1);
    egw_log(EGW_WARN, "failover", "%s fails too often: its breaker is open", reply->upstream);
  }
}

static void
note(const struct egw_at *at, const struct egw_method_info *info,
     const struct egw_reply *reply, const struct verdict *v, int64_t ms)
{
  egw_count(at, v->class, 1);
  if (v->number != 0)
    egw_count(at, METRIC_ROWS + v->number - 1, 1);
  tell_log(reply, v);
  tell_breakers(at, info, reply, v, ms);
}

/* State that is missing at an old block was pruned; at a recent one it is only late. */
static void
judge_state(const struct egw_at *at, const struct subject *subject,
            const struct egw_reply *reply, struct verdict *v)
{
  const struct failover *f = at->self;
  const struct egw_head *head = egw_head(at);
  uint64_t number;

  if (!subject_exists(subject, head, &number))
    return;
  if (number + RECENT >= head->tip.number)
    v->class = CLASS_MISSING_BLOCK;
  else if (reply->upstream_index != EGW_NO_UPSTREAM &&
           breakers_lacked(f->breakers, reply->upstream_index))
    egw_upstream_lacks(at, reply->upstream_index, number);
}

static void
tell_story(struct egw_call *call, const struct egw_reply *reply, const struct verdict *v)
{
  const char *upstream = reply->upstream != NULL ? reply->upstream : "nobody";

  if (v->class == CLASS_RESULT || !egw_explains(call))
    return;
  if (v->row[0] != '\0')
    egw_explain(call, "failover judged %s: %s by rule %s", upstream,
                class_info(v->class)->name, v->row);
  else
    egw_explain(call, "failover judged %s: %s", upstream, class_info(v->class)->name);
}

struct verdict
witness(const struct egw_at *at, struct egw_call *call, struct state *state,
        const struct egw_reply *reply, uint64_t ms)
{
  const struct failover *f = at->self;
  const struct egw_method_info *info = egw_method_info(call);
  struct verdict v = classify(f->rules, egw_method(call), info, reply);

  if (is_own_limit(reply))
    v = (struct verdict){ CLASS_RANGE, "own_limit", 0 };
  else if (v.class == CLASS_RESULT && may_be_stale(info, reply) &&
           subject_stale(failover_subject(call, state), info->name, egw_head(at), reply->body))
    v = (struct verdict){ CLASS_STALE, "stale", 0 };
  else if (v.class == CLASS_MISSING_STATE)
    judge_state(at, failover_subject(call, state), reply, &v);
  note(at, info, reply, &v, info != NULL && info->cost <= CHEAP ? (int64_t)ms : -1);
  tell_story(call, reply, &v);
  if (v.class == CLASS_RESULT)
    hedge_learn(at, call, ms);
  return v;
}

struct verdict
witness_copy(const struct egw_at *at, struct egw_call *call,
             const struct egw_method_info *info, const struct egw_reply *reply, int64_t ms)
{
  const struct failover *f = at->self;
  struct egw_slice method = { info->name, strlen(info->name) };
  struct verdict v = classify(f->rules, method, info, reply);

  note(at, info, reply, &v, info->cost <= CHEAP ? ms : -1);
  if (call != NULL)
    tell_story(call, reply, &v);
  return v;
}
