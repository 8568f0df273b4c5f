/* SPDX-License-Identifier: MIT */
/* Running parts. */
#include "split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ethrpc-gw/json.h>

#define CODE_TOO_LARGE (-32012)
#define CODE_REORG (-32000)
#define REDO_MAX 3u
#define PAUSE_MS 50u
#define HEAD_MS 2000u           /* how long the head may take to catch up */

static void on_part(void *arg, const struct egw_reply *reply);

/* --- limits of upstreams ---------------------------------------------------------------- */

uint64_t
learned_limit(const struct learned *learned, const struct egw_at *at, uint64_t max_range)
{
  unsigned i, n = egw_upstream_count(at);
  uint64_t now = egw_now_ms(at->worker), limit = max_range;
  struct egw_upstream_info info;
  int64_t tier = INT64_MAX;

  /* They are in the order of their use: what counts is the first tier that is up. */
  for (i = 0; i < n && i < LEARNED_UPSTREAMS; i++) {
    if (!egw_upstream(at, i, &info) || !info.up || info.tier > tier)
      continue;
    tier = info.tier;
    if (learned->upstreams[i].blocks != 0 && learned->upstreams[i].until_ms > now &&
        learned->upstreams[i].blocks < limit)
      limit = learned->upstreams[i].blocks;
  }
  return limit;
}

void
learned_note(struct learned *learned, const struct egw_at *at,
             const struct split_limits *limits, const struct complaint *why,
             const struct egw_reply *reply, uint64_t blocks)
{
  uint64_t now = egw_now_ms(at->worker);
  uint64_t limit = why->blocks != 0 ? why->blocks : blocks - blocks / 2;
  unsigned i = reply->upstream_index;
  uint64_t known;

  if (why->kind != COMPLAINT_RANGE || reply->upstream == NULL || i >= LEARNED_UPSTREAMS)
    return;
  known = learned->upstreams[i].until_ms > now ? learned->upstreams[i].blocks : 0;
  if (known != 0 && why->blocks == 0 && known <= limit)
    return; /* this is but a guess, and an older one */
  if (known != limit) {
    egw_count(at, METRIC_LEARNED, 1);
    egw_log(EGW_DEBUG, "logsplit", "%s takes %" PRIu64 " blocks at once",
            reply->upstream, limit);
  }
  learned->upstreams[i].blocks = limit;
  learned->upstreams[i].until_ms = now + limits->remember_ms;
}

/* --- answers ---------------------------------------------------------------------------- */

static enum egw_verdict
refuse(struct split *s, int code, const char *message)
{
  egw_count(&s->at, METRIC_REFUSED, 1);
  return egw_refuse(s->call, code, message);
}

static enum egw_verdict
refuse_too_many(struct split *s)
{
  char text[160];

  snprintf(text, sizeof(text), "the range needs more than %u parts (max_parts); ask for fewer "
           "blocks at once", s->limits->max_parts);
  return refuse(s, CODE_TOO_LARGE, text);
}

static enum egw_verdict
refuse_too_large(struct split *s)
{
  char text[160];

  snprintf(text, sizeof(text), "the result is larger than %" PRIu64 " bytes (max_result); ask "
           "for fewer blocks at once", s->limits->max_result);
  return refuse(s, CODE_TOO_LARGE, text);
}

static enum egw_verdict
no_memory(struct split *s)
{
  return refuse(s, -32603, "Internal error");
}

/* A part could not be had, with no error of a node to show: in the words of docs/errors.md. */
static enum egw_verdict
refuse_fault(struct split *s, const struct egw_reply *reply)
{
  static const struct {
    int code;
    const char *message;
  } faults[] = {
    { -32008, "response too large" },
    { -32050, "no upstream could be reached" },
    { -32051, "request timed out" },
    { -32052, "the upstream gave an unusable response" },
    { -32053, "the connection broke; the request may have been executed" },
    { -32055, "the gateway is overloaded, try again later" },
  };
  size_t i;

  for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
    if (faults[i].code == reply->code)
      return refuse(s, faults[i].code, faults[i].message);
  return no_memory(s);
}

/* --- running ---------------------------------------------------------------------------- */

static int
start_part(struct split *s, struct part *part)
{
  struct egw_subcall what = { .method = egw_method(s->call), .ticket = &part->ticket };
  struct egw_buf *params = egw_buf_new(s->filter.params.len + 80);
  int r = -1;

  if (params != NULL && filter_print(&s->filter, &part->what, params) == 0) {
    what.params = egw_buf_slice(params);
    if (!onechain_is_final(&s->one, part->what.to))
      what.route.avoid = onechain_behind(&s->filter, &s->at);
    r = egw_subcall(&s->at, s->call, &what, on_part, part);
  }
  egw_buf_unref(params);
  if (r < 0)
    return -1;
  part->state = PART_FLYING;
  s->flying++;
  egw_count(&s->at, METRIC_PARTS, 1);
  return 0;
}

static int
start_parts(struct split *s, bool *all_done)
{
  struct part *part;

  *all_done = true;
  for (part = s->parts.first; part != NULL; part = part->next) {
    if (part->state == PART_DONE)
      continue;
    *all_done = false;
    if (s->flying >= s->limits->parallel)
      return 0;
    if (part->state == PART_WAITING && start_part(s, part) < 0)
      return -1;
  }
  return 0;
}

static enum egw_verdict
complete(struct split *s)
{
  struct egw_buf *all = parts_join(&s->parts);

  if (all == NULL)
    return no_memory(s);
  egw_explain(s->call, "logsplit: %u parts joined", s->parts.count);
  return egw_answer(s->call, all);
}

/* Parts that are under way are not waited for. */
static void
give_up_parts(struct split *s)
{
  struct part *part;

  for (part = s->parts.first; part != NULL; part = part->next)
    if (part->state == PART_FLYING)
      egw_subcall_cancel(s->at.worker, part->ticket);
  parts_clear(&s->parts);
  s->flying = 0;
  s->bytes = 0;
}

/* Not all is of one chain. `soon`: what came can't be for what the head knows, so it is a
 * little behind, or a node is. */
static enum egw_verdict
redo(struct split *s, bool soon)
{
  if (s->redone++ == REDO_MAX)
    return refuse(s, CODE_REORG, "the chain was reorganised meanwhile, try again");
  egw_count(&s->at, METRIC_REDONE, 1);
  give_up_parts(s);
  s->pause = PAUSE_REDO;
  if (!soon)
    return split_timer(s);
  egw_call_timer(&s->at, s->call, PAUSE_MS);
  return EGW_WAIT;
}

/* Starts what can be started; WAIT while something is under way. */
static enum egw_verdict
run(struct split *s)
{
  bool all_done;

  if (start_parts(s, &all_done) < 0)
    return no_memory(s);
  if (!all_done)
    return EGW_WAIT;
  switch (onechain_check(&s->one, &s->filter, egw_head(&s->at), s->parts.first)) {
  case ONECHAIN_SAME: return complete(s);
  case ONECHAIN_CHANGED: return redo(s, false);
  case ONECHAIN_ODD: break;
  }
  return redo(s, true);
}

/* Blocks that are not final, more than a node takes at once. By their hashes any node has the
 * same; else they are loose. What may end above the tip as it was when the filter was read is never
 * cut by hashes, however much is known by now: what is above would be left out. */
static enum cut
loosen(struct split *s, struct part *part, const struct complaint *why)
{
  const struct egw_head *head = egw_head(&s->at);
  enum cut cut = CUT_NOT;

  if (part->what.by_hash || onechain_is_final(&s->one, part->what.to))
    return parts_cut(&s->parts, part, s->call, &s->filter, why);
  if (why->kind != COMPLAINT_FILTER && part->what.to != part->what.from &&
      s->filter.last.ptr == NULL && s->logs)
    cut = parts_cut_blocks(&s->parts, part, s->call, head);
  if (cut != CUT_NOT)
    return cut;
  s->one.loose = true;
  return parts_cut(&s->parts, part, s->call, &s->filter, why);
}

/* --- parts that have come --------------------------------------------------------------- */

static struct egw_slice
trim(struct egw_slice text)
{
  while (text.len > 0 && strchr(" \t\r\n", text.ptr[0]) != NULL) {
    text.ptr++;
    text.len--;
  }
  while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]) != NULL)
    text.len--;
  return text;
}

static enum egw_verdict
take_result(struct split *s, struct part *part, const struct egw_reply *reply)
{
  struct egw_slice array = trim(reply->body);

  if (part->what.by_hash && egw_json_kind(array) == EGW_JSON_NULL)
    return redo(s, true);
  if (egw_json_kind(array) != EGW_JSON_ARRAY || reply->partial)
    return refuse(s, -32052, "the upstream gave an unusable response");
  part->state = PART_DONE;
  part->buf = egw_buf_ref(reply->buf);
  part->array = array;
  part->inner = trim((struct egw_slice){ array.ptr + 1, array.len - 2 });
  s->bytes += part->inner.len;
  return s->bytes > s->limits->max_result ? refuse_too_large(s) : run(s);
}

static enum egw_verdict
verbatim(struct split *s, const struct egw_reply *reply)
{
  if (reply->outcome != EGW_OK)
    return refuse_fault(s, reply);
  return egw_answer_part(s->call, egw_buf_ref(reply->buf), reply->body, true);
}

static enum egw_verdict
after_cut(struct split *s, enum cut cut, const struct egw_reply *reply)
{
  switch (cut) {
  case CUT_DONE: egw_count(&s->at, METRIC_CUT, 1); return run(s);
  case CUT_NOT: return verbatim(s, reply);
  case CUT_TOO_MANY: return refuse_too_many(s);
  case CUT_NO_MEMORY: break;
  }
  return no_memory(s);
}

/* What was said of one part holds for those that are to come. */
static enum cut
cut_others(struct split *s, const struct complaint *why, uint64_t blocks)
{
  struct complaint same = { COMPLAINT_RANGE, blocks };
  struct part *part, *next;
  enum cut cut = CUT_DONE;

  if (why->kind != COMPLAINT_RANGE || blocks == 0)
    return CUT_DONE;
  for (part = s->parts.first; part != NULL && cut == CUT_DONE; part = next) {
    next = part->next;
    if (part->state != PART_WAITING || part->what.to - part->what.from < blocks)
      continue;
    cut = loosen(s, part, &same);
  }
  return cut;
}

static enum egw_verdict
take_failure(struct split *s, struct part *part, const struct egw_reply *reply)
{
  struct complaint why = complaint_read(reply, part->what.from, part->what.to);
  uint64_t blocks = part->what.to - part->what.from + 1;
  enum cut cut;

  if (why.kind != COMPLAINT_NONE) {
    learned_note(s->learned, &s->at, s->limits, &why, reply, blocks);
    cut = loosen(s, part, &why);
    if (cut == CUT_DONE)
      cut = cut_others(s, &why, why.blocks != 0 ? why.blocks : blocks - blocks / 2);
    return after_cut(s, cut, reply);
  }
  if (reply->outcome != EGW_OK && part->tries++ < s->limits->retries) {
    egw_count(&s->at, METRIC_RETRIED, 1);
    return run(s);
  }
  /* A node does not know the block of a branch that is gone, or not yet. */
  if (part->what.by_hash && reply->outcome == EGW_OK && s->redone < REDO_MAX)
    return redo(s, true);
  return verbatim(s, reply);
}

static void
on_part(void *arg, const struct egw_reply *reply)
{
  struct part *part = arg;
  struct split *s = part->split;
  enum egw_verdict verdict;

  s->flying--;
  part->state = PART_WAITING;
  if (s->over)
    return;
  verdict = reply->outcome == EGW_OK && !reply->is_error ? take_result(s, part, reply)
                                                         : take_failure(s, part, reply);
  if (verdict == EGW_WAIT)
    return;
  s->over = true;
  give_up_parts(s);
  egw_resume(s->call, verdict);
}

/* --- begin and end ---------------------------------------------------------------------- */

static enum egw_verdict
first_run(struct split *s)
{
  enum egw_verdict verdict;

  if (s->redone == 0)
    egw_count(&s->at, METRIC_SPLIT, 1);
  egw_explain(s->call, "logsplit: %" PRIu64 " blocks in %u parts",
              s->filter.to - s->filter.from + 1, s->parts.count);
  verdict = run(s);
  s->over = verdict != EGW_WAIT;
  return verdict;
}

static enum egw_verdict
cut_and_run(struct split *s, enum cut cut)
{
  switch (cut) {
  case CUT_DONE: return first_run(s);
  case CUT_NOT: return EGW_NEXT;
  case CUT_TOO_MANY: return refuse_too_many(s);
  case CUT_NO_MEMORY: break;
  }
  return no_memory(s);
}

/* Waits for the head to catch up with what has been heard of newer blocks. */
static bool
head_is_behind(struct split *s)
{
  const struct egw_head *head = egw_head(&s->at);
  uint64_t now = egw_now_ms(s->at.worker);

  if (!head->known || head->settled)
    return false;
  if (s->pause == PAUSE_NONE)
    s->until_ms = now + HEAD_MS;
  if (now >= s->until_ms)
    return false;
  s->pause = PAUSE_HEAD;
  egw_call_timer(&s->at, s->call, PAUSE_MS);
  return true;
}

static struct part *
last_part(const struct parts *parts)
{
  struct part *part = parts->first;

  while (part->next != NULL)
    part = part->next;
  return part;
}

enum egw_verdict
split_begin(struct split *s, uint64_t size)
{
  struct complaint why = { COMPLAINT_RANGE, size };
  uint64_t tail;
  bool too_long;
  int r;

  s->size = size;
  onechain_begin(&s->one, &s->filter, egw_head(&s->at));
  s->one.loose = false;
  tail = onechain_tail(&s->one, &s->filter);
  too_long = tail <= s->filter.to && s->filter.to - tail >= size;
  if (too_long && head_is_behind(s))
    return EGW_WAIT;
  s->pause = PAUSE_NONE;
  r = parts_make(&s->parts, s, size, tail);
  if (r != 0)
    return r < 0 ? no_memory(s) : refuse_too_many(s);
  return cut_and_run(s, too_long ? loosen(s, last_part(&s->parts), &why) : CUT_DONE);
}

enum egw_verdict
split_begin_by(struct split *s, const struct complaint *why)
{
  int r;

  s->size = UINT64_MAX;
  onechain_begin(&s->one, &s->filter, egw_head(&s->at));
  r = parts_make(&s->parts, s, UINT64_MAX, UINT64_MAX);
  if (r != 0)
    return r < 0 ? no_memory(s) : refuse_too_many(s);
  return cut_and_run(s, loosen(s, s->parts.first, why));
}

/* The range is read anew: the head may be another one. */
enum egw_verdict
split_timer(struct split *s)
{
  s->can = filter_read(&s->filter, egw_params(s->call), egw_head(&s->at));
  if (!s->can && s->redone > 0)
    return refuse(s, CODE_REORG, "the chain was reorganised meanwhile, try again");
  return s->can ? split_begin(s, s->size) : EGW_NEXT;
}

void
split_end(struct split *s)
{
  s->over = true;
  parts_clear(&s->parts);
}
