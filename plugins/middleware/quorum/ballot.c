/* SPDX-License-Identifier: MIT */
/* The ballot: who is asked, when it is decided, and how. */
#include "quorum.h"
#include "resolve.h"

#include <string.h>

#define CODE_DISAGREE (-32058)
#define CODE_TOO_FEW (-32059)
#define RECENT 16u           /* blocks below the tip that a node may not have yet */
#define WAIT_FIRST_MS 25u
#define WAIT_MOST_MS 200u

/* --- who is asked ------------------------------------------------------------------------ */

struct candidate {
  unsigned index, rank;
  int64_t tier;
  unsigned turn;
};

static unsigned
rank_of(const struct egw_upstream_info *info, bool avoided, uint64_t need)
{
  unsigned rank = info->up ? 0 : 8;

  if (info->busy || avoided)
    rank += 4;
  if ((info->has_head && info->head < need) ||
      (need != 0 && info->has_lowest && info->lowest > need))
    rank += 2;
  return rank;
}

static bool
before(const struct candidate *a, const struct candidate *b)
{
  if (a->rank != b->rank)
    return a->rank < b->rank;
  if (a->tier != b->tier)
    return a->tier < b->tier;
  return a->turn < b->turn;
}

/* Those that are well and have the block first, then by tier; equal ones in turn, so that all
 * of them get their share. */
static void
make_order(const struct egw_at *at, struct ballot *ballot, uint64_t need)
{
  struct candidate sorted[UPSTREAMS_MAX];
  struct egw_upstream_info info;
  struct egw_route route;
  unsigned i, k, n = egw_upstream_count(at);
  uint64_t number = egw_call_number(ballot->call);

  egw_routed(ballot->call, &route);
  for (i = 0; i < n && i < UPSTREAMS_MAX; i++) {
    struct candidate c = { .index = i };

    if ((route.only != 0 && (route.only >> i & 1) == 0) || !egw_upstream(at, i, &info))
      continue;
    c.rank = rank_of(&info, (route.avoid >> i & 1) != 0, need);
    c.tier = info.tier;
    c.turn = (unsigned)((i + number) % n);
    for (k = ballot->count++; k > 0 && before(&c, &sorted[k - 1]); k--)
      sorted[k] = sorted[k - 1];
    sorted[k] = c;
  }
  for (i = 0; i < ballot->count; i++)
    ballot->order[i] = (unsigned char)sorted[i].index;
}

static void on_reply(void *arg, const struct egw_reply *reply);

static bool
ask(struct ballot *ballot, struct vote *vote)
{
  struct egw_subcall what = { .method = egw_method(ballot->call), .params = ballot->params };

  what.route.only = UINT64_C(1) << vote->upstream;
  what.route.once = true;
  what.ticket = &vote->ticket;
  vote->said = SAID_WAITING;
  if (egw_subcall(&ballot->at, ballot->call, &what, on_reply, vote) == 0) {
    ballot->waiting++;
    return true;
  }
  vote->said = SAID_NOTHING;
  vote->ticket = 0;
  return false;
}

/* Asks the next one that can be asked. false: there is none. */
static bool
ask_next(struct ballot *ballot)
{
  while (ballot->next < ballot->count) {
    struct vote *vote = &ballot->votes[ballot->cast++];

    vote->ballot = ballot;
    vote->upstream = ballot->order[ballot->next++];
    if (ask(ballot, vote))
      return true;
  }
  return false;
}

/* --- the record -------------------------------------------------------------------------- */

static const char *
name_of(const struct ballot *ballot, unsigned upstream)
{
  struct egw_upstream_info info;

  return egw_upstream(&ballot->at, upstream, &info) && info.name != NULL ? info.name : "?";
}

/* The names of those in a group, joined by commas; cut when they are too many. */
static const char *
names(const struct ballot *ballot, unsigned group, char *out, size_t cap)
{
  size_t len = 0;
  unsigned i;

  out[0] = '\0';
  for (i = 0; i < ballot->cast; i++) {
    const struct vote *vote = &ballot->votes[i];
    const char *name = name_of(ballot, vote->upstream);
    size_t n = strlen(name);

    if (!vote_counts(vote) || vote->group != group || len + n + 2 > cap)
      continue;
    if (len > 0)
      out[len++] = ',';
    memcpy(out + len, name, n + 1);
    len += n;
  }
  return out;
}

/* A node that always disagrees must not flood the log: the 1st, 2nd, 4th, 8th.. time is a
 * warning. */
static void
log_alone(const struct ballot *ballot, const struct vote *vote, unsigned winner)
{
  const struct quorum *q = ballot->at.self;
  struct egw_slice method = egw_method(ballot->call);
  uint64_t times = atomic_fetch_add(&q->alone[vote->upstream], 1) + 1;
  char with[200];

  egw_count(&ballot->at, METRIC_ALONE, 1);
  egw_log((times & (times - 1)) == 0 ? EGW_WARN : EGW_DEBUG, "quorum",
          "an upstream stands alone: method=%.*s upstream=%s agreed=%s times=%llu",
          (int)(method.len > 100 ? 100 : method.len), method.ptr,
          name_of(ballot, vote->upstream), names(ballot, winner, with, sizeof with),
          (unsigned long long)times);
}

static void
record_alone(const struct ballot *ballot, unsigned winner)
{
  unsigned i;

  for (i = 0; i < ballot->cast; i++)
    if (vote_counts(&ballot->votes[i]) && ballot->votes[i].group != winner)
      log_alone(ballot, &ballot->votes[i], winner);
}

static void
record_disagreement(const struct ballot *ballot, const struct tally *tally)
{
  struct egw_slice method = egw_method(ballot->call);
  char who[200];

  egw_count(&ballot->at, METRIC_DISAGREED, 1);
  egw_log(EGW_WARN, "quorum", "no agreement: method=%.*s answers=%u different=%u most=%s",
          (int)(method.len > 100 ? 100 : method.len), method.ptr, tally->votes, tally->groups,
          names(ballot, tally->best, who, sizeof who));
  egw_explain(ballot->call, "quorum: %u answers, %u different", tally->votes, tally->groups);
}

/* --- the decision ------------------------------------------------------------------------ */

static void
give_up_rest(struct ballot *ballot)
{
  unsigned i;

  for (i = 0; i < ballot->cast; i++) {
    struct vote *vote = &ballot->votes[i];

    if (vote->said != SAID_WAITING || vote->ticket == 0)
      continue;
    egw_subcall_cancel(ballot->at.worker, vote->ticket);
    vote->said = SAID_NOTHING;
    vote->ticket = 0;
  }
  ballot->waiting = 0;
}

static enum egw_verdict
answer_with(struct ballot *ballot, const struct vote *vote)
{
  return egw_answer_part(ballot->call, egw_buf_ref(vote->buf), vote->body,
                         vote->said != SAID_RESULT);
}

static const struct vote *
first_that(const struct ballot *ballot, bool counts)
{
  unsigned i;

  for (i = 0; i < ballot->cast; i++)
    if (counts ? vote_counts(&ballot->votes[i])
               : ballot->votes[i].said == SAID_ERROR || ballot->votes[i].said == SAID_LATE)
      return &ballot->votes[i];
  return NULL;
}

static enum egw_verdict
disagreement(struct ballot *ballot, const struct tally *tally)
{
  const struct quorum *q = ballot->at.self;

  record_disagreement(ballot, tally);
  if (q->on_disagreement == DISAGREEMENT_REFUSE)
    return egw_refuse(ballot->call, CODE_DISAGREE, "the upstreams do not agree");
  if (q->on_disagreement == DISAGREEMENT_MAJORITY)
    return answer_with(ballot, &ballot->votes[tally->best]);
  return answer_with(ballot, first_that(ballot, true));
}

/* Fewer answered than must agree. Errors that come from all sides are the answer. */
static enum egw_verdict
too_few(struct ballot *ballot, const struct tally *tally)
{
  const struct quorum *q = ballot->at.self;
  const struct vote *one = first_that(ballot, true);

  if (one == NULL && tally->errors >= (unsigned)q->agree)
    return answer_with(ballot, first_that(ballot, false));
  egw_count(&ballot->at, METRIC_TOO_FEW, 1);
  egw_explain(ballot->call, "quorum: only %u answers", tally->votes);
  if (q->too_few == TOO_FEW_REFUSE)
    return egw_refuse(ballot->call, CODE_TOO_FEW, "too few upstreams answered to agree");
  return one != NULL ? answer_with(ballot, one) : EGW_NEXT;
}

/* Nodes get a new block some moments after each other: those that were late are asked again,
 * for a while. */
static bool
wait_for_late(struct ballot *ballot, const struct tally *tally)
{
  const struct quorum *q = ballot->at.self;
  uint64_t ms = (uint64_t)WAIT_FIRST_MS << ballot->waits;
  uint64_t now = egw_now_ms(ballot->at.worker);

  if (ms > WAIT_MOST_MS)
    ms = WAIT_MOST_MS;
  if (tally->late == 0 || tally->best_count + tally->late < (unsigned)q->agree ||
      now + ms - ballot->began_ms > q->lag_wait)
    return false;
  if (ballot->waits++ == 0)
    egw_count(&ballot->at, METRIC_WAITS, 1);
  egw_explain(ballot->call, "quorum: %u upstreams do not have the block yet", tally->late);
  egw_call_timer(&ballot->at, ballot->call, ms);
  return true;
}

/* What becomes of the call now: EGW_WAIT, or the verdict it is resumed with. */
static enum egw_verdict
count_up(struct ballot *ballot)
{
  const struct quorum *q = ballot->at.self;
  enum egw_verdict verdict;
  struct tally tally;

  ballot_tally(ballot, &tally);
  if (tally.best_count >= (unsigned)q->agree) {
    egw_count(&ballot->at, METRIC_AGREED, 1);
    record_alone(ballot, tally.best);
    egw_explain(ballot->call, "quorum: %u of %u agree", tally.best_count, ballot->cast);
    verdict = answer_with(ballot, &ballot->votes[tally.best]);
  } else if (ballot->waiting > 0 || wait_for_late(ballot, &tally)) {
    return EGW_WAIT;
  } else if (tally.groups > 1) {
    verdict = disagreement(ballot, &tally);
  } else {
    verdict = too_few(ballot, &tally);
  }
  ballot->decided = true;
  give_up_rest(ballot);
  return verdict;
}

static void
on_reply(void *arg, const struct egw_reply *reply)
{
  struct vote *vote = arg;
  struct ballot *ballot = vote->ballot;
  enum egw_verdict verdict;

  if (ballot->decided)
    return;
  vote->ticket = 0;
  ballot->waiting--;
  vote_take(ballot, vote, reply);
  vote_group(ballot->at.self, ballot, vote);
  if (!vote_counts(vote) && ask_next(ballot))
    egw_count(&ballot->at, METRIC_SPARES, 1);
  verdict = count_up(ballot);
  if (verdict != EGW_WAIT)
    egw_resume(ballot->call, verdict);
}

enum egw_verdict
ballot_again(struct ballot *ballot)
{
  unsigned i;

  for (i = 0; i < ballot->cast; i++) {
    struct vote *vote = &ballot->votes[i];

    if (vote->said != SAID_LATE)
      continue;
    egw_buf_unref(vote->buf);
    vote->buf = NULL;
    vote->has_print = false;
    ask(ballot, vote);
  }
  return ballot->waiting > 0 ? EGW_WAIT : count_up(ballot);
}

/* What is known of the block that it takes. */
static void
look_at_block(struct ballot *ballot, uint64_t need)
{
  const struct egw_head *head = egw_head(&ballot->at);
  const struct egw_method_info *info = egw_method_info(ballot->call);
  uint64_t latest = resolve_latest(&ballot->at);

  ballot->need = need;
  ballot->exists = need != 0 && head->known && need <= latest;
  ballot->recent = ballot->exists && latest - need < RECENT;
  ballot->is_filter = info != NULL && info->block_kind == EGW_BLOCK_FILTER;
}

enum egw_verdict
ballot_begin(const struct egw_at *at, struct egw_call *call, struct egw_slice params,
             uint64_t need, struct ballot **out)
{
  const struct quorum *q = at->self;
  unsigned n = egw_upstream_count(at), i;
  struct ballot *ballot = egw_alloc(call, sizeof *ballot + n * sizeof ballot->votes[0]);

  if (ballot == NULL)
    return egw_refuse(call, -32603, "out of memory");
  *out = ballot;
  ballot->at = *at;
  ballot->call = call;
  ballot->params = params;
  ballot->began_ms = egw_now_ms(at->worker);
  look_at_block(ballot, need);
  make_order(at, ballot, need);
  egw_count(at, METRIC_ASKED, 1);
  for (i = 0; i < (unsigned)q->ask && ballot->count >= (unsigned)q->agree; i++)
    if (!ask_next(ballot))
      break;
  if (ballot->waiting > 0)
    return EGW_WAIT;
  ballot->decided = true;
  return too_few(ballot, &(struct tally){ 0 });
}

void
ballot_clear(struct ballot *ballot)
{
  unsigned i;

  if (ballot == NULL)
    return;
  ballot->decided = true;
  give_up_rest(ballot);
  for (i = 0; i < ballot->cast; i++) {
    egw_buf_unref(ballot->votes[i].buf);
    ballot->votes[i].buf = NULL;
  }
}
