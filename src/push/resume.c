/* SPDX-License-Identifier: MIT */
/* Telling the past: see resume.h. A few blocks are asked for at a time and told in order. */
#include "push/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include "base/buf.h"
#include "chain/call.h"
#include "head/head.h"
#include "listen/session.h"
#include "push/push.h"
#include "push/subscription.h"

#define AT_ONCE 8u                   /* blocks asked for at the same time */
#define ASK_TIMEOUT_MS 10000u
#define AGAIN_MS 100u
#define TRIES 20u
#define TOLD_MAX 64u                 /* blocks whose logs are kept */
#define HELD_MAX (16u * 1024 * 1024) /* bytes of events held back */

struct held {
  struct list node;
  struct egw_buf *buf;
  struct egw_slice result;
};

/* One block that is being asked for. */
struct past {
  struct resume *resume;
  struct egw_call *asking;
  uint64_t number;                   /* 0: the place is free (block 0 is nobody's past) */
  unsigned tries;
  struct wheel_timer again;
  bool known;
  struct egw_buf *header;
  struct log_set *logs;
};

/* A block's logs that were told, in case it is taken away. */
struct told {
  unsigned char hash[32];
  struct log_set *logs;
};

struct resume {
  struct subscription *sub;
  struct head_snapshot *head;
  bool done;                         /* all is told; kept for reorganisations */
  struct told told[TOLD_MAX];        /* by number % TOLD_MAX */
  uint64_t next, asked, last;        /* the next one to tell, to ask for; the end */
  struct past past[AT_ONCE];         /* by number % AT_ONCE */
  struct list held;
  size_t held_bytes;
  struct worker_job job;
};

/* --- what is wanted -------------------------------------------------------------------------------- */

static bool
number_of(const struct head_snapshot *head, struct egw_slice value, uint64_t *number)
{
  unsigned char hash[32];

  if (egw_hex_read(value, hash, sizeof(hash)) != sizeof(hash))
    return egw_json_u64(value, number) == 0;
  return head_number(head, hash, number);
}

static struct egw_slice
value_of(const struct egw_call *call)
{
  bool logs = egw_json_equals(egw_json_element(call->params, 0), "logs");

  return egw_json_member(egw_json_element(call->params, logs ? 2 : 1), "resumeFrom");
}

bool
resume_asked(const struct egw_call *call)
{
  enum egw_json_kind kind = egw_json_kind(value_of(call));

  return kind != EGW_JSON_NONE && kind != EGW_JSON_NULL;
}

bool
resume_wanted(const struct egw_call *call, const struct head_snapshot *head, uint64_t *from,
              const char **why)
{
  struct egw_slice value = value_of(call);
  uint64_t number;

  *why = NULL;
  if (!resume_asked(call))
    return false;
  if (egw_json_kind(value) != EGW_JSON_STRING || !number_of(head, value, &number))
    *why = "resumeFrom is no block of the canonical chain";
  else if (number > head->pub.tip.number)
    *why = "resumeFrom is beyond the newest block";
  else if (number + 1 < head->pub.lowest)
    *why = "resumeFrom is too far back";
  else
    *from = number + 1;
  return true;
}

/* --- the end ------------------------------------------------------------------------------------------ */

static void
past_clear(struct past *past)
{
  if (past->asking != NULL) {
    past->asking->sub->done = NULL;
    call_cancel(past->asking, RPC_FAULT_CANCELLED);
  }
  worker_timer_stop(past->resume->sub->worker, &past->again);
  egw_buf_unref(past->header);
  log_set_unref(past->logs);
  *past = (struct past){ .resume = past->resume, .again.fn = past->again.fn };
}

void
resume_stop(struct subscription *sub)
{
  struct resume *r = sub->resume;
  struct list *node;
  unsigned i;

  if (r == NULL)
    return;
  sub->resume = NULL;
  for (i = 0; i < AT_ONCE; i++)
    past_clear(&r->past[i]);
  for (i = 0; i < TOLD_MAX; i++)
    log_set_unref(r->told[i].logs);
  while ((node = list_shift(&r->held)) != NULL) {
    struct held *h = container_of(node, struct held, node);

    egw_buf_unref(h->buf);
    free(h);
  }
  list_remove(&r->job.node);
  head_snapshot_unref(r->head);
  free(r);
}

/* --- telling ------------------------------------------------------------------------------------------- */

/* Tells a block; the session may end within, and the subscription with it: false then. */
static bool
tell(struct subscription *sub, const struct past *past)
{
  struct log_set *logs = past->logs != NULL ? log_set_ref(past->logs) : NULL;
  struct egw_buf *header = past->header != NULL ? egw_buf_ref(past->header) : NULL;
  bool there = true;
  size_t i;

  if (header != NULL)
    there = push_tell(sub, header, egw_buf_slice(header));
  for (i = 0; logs != NULL && there && i < logs->count; i++)
    if (log_filter_matches(sub->filter.filter, &logs->v[i]))
      there = push_tell(sub, logs->buf, logs->v[i].raw);
  log_set_unref(logs);
  egw_buf_unref(header);
  return there;
}

/* The past is told: what happened meanwhile, and then the present. */
static void
finish(struct subscription *sub)
{
  struct resume *r = sub->resume;
  struct list held, *node;
  bool there = true;

  list_init(&held);
  list_splice(&held, &r->held);
  r->done = true;
  while ((node = list_shift(&held)) != NULL) {
    struct held *h = container_of(node, struct held, node);

    if (there)
      there = push_tell(sub, h->buf, h->result);
    egw_buf_unref(h->buf);
    free(h);
  }
}

static void
keep(struct resume *r, struct past *past)
{
  struct told *told = &r->told[past->number % TOLD_MAX];

  log_set_unref(told->logs);
  told->logs = past->logs;
  past->logs = NULL;
  memcpy(told->hash, r->head->hashes[past->number - r->head->pub.lowest], sizeof(told->hash));
}

static void ask_more(struct resume *r);

static void
on_job(struct worker_job *job)
{
  struct resume *r = container_of(job, struct resume, job);
  struct subscription *sub = r->sub;

  while (r->next <= r->last) {
    struct past *past = &r->past[r->next % AT_ONCE];

    if (past->number != r->next || !past->known)
      break;
    if (!tell(sub, past))
      return; /* it is gone, and `r` with it */
    keep(r, past);
    past_clear(past);
    r->next++;
  }
  if (r->next > r->last)
    finish(sub);
  else
    ask_more(r);
}

/* --- asking --------------------------------------------------------------------------------------------- */

static void ask(struct past *past);

static void
on_again(struct wheel_timer *timer)
{
  ask(container_of(timer, struct past, again));
}

static void
on_answer(void *arg, const struct egw_reply *reply)
{
  struct past *past = arg;
  struct resume *r = past->resume;
  struct subscription *sub = r->sub;

  past->asking = NULL;
  if (reply->outcome == EGW_OK && !reply->is_error && !reply->partial && reply->buf != NULL) {
    if (sub->hub_kind == HUB_LOGS)
      past->logs = log_set_new(reply->buf, reply->body);
    else if (egw_json_kind(reply->body) == EGW_JSON_OBJECT)
      past->header = header_raw(reply->body);
  }
  past->known = past->logs != NULL || past->header != NULL;
  if (past->known) {
    worker_run_soon(sub->worker, &r->job);
  } else if (++past->tries < TRIES) {
    worker_timer_start(sub->worker, &past->again, AGAIN_MS * past->tries);
  } else {
    sub->session->ops->close(sub->session, true, 1011, "the past can't be told");
  }
}

static void
ask(struct past *past)
{
  struct resume *r = past->resume;
  struct subscription *sub = r->sub;
  bool logs = sub->hub_kind == HUB_LOGS;
  char hash[67], params[96];

  egw_hex_print(r->head->hashes[past->number - r->head->pub.lowest], 32, hash);
  snprintf(params, sizeof(params), logs ? "[{\"blockHash\":\"%s\"}]" : "[\"%s\",false]", hash);
  past->asking = call_new_internal(
      sub->worker, sub->network, logs ? EGW_LIT("eth_getLogs") : EGW_LIT("eth_getBlockByHash"),
      (struct egw_slice){ params, strlen(params) }, ASK_TIMEOUT_MS, on_answer, past);
  if (past->asking == NULL)
    worker_timer_start(sub->worker, &past->again, AGAIN_MS);
}

static void
ask_more(struct resume *r)
{
  for (; r->asked <= r->last && r->asked < r->next + AT_ONCE; r->asked++) {
    struct past *past = &r->past[r->asked % AT_ONCE];

    past->number = r->asked;
    ask(past);
  }
}

int
resume_start(struct subscription *sub, const struct head_snapshot *head, uint64_t from)
{
  struct resume *r = calloc(1, sizeof(*r));
  unsigned i;

  if (r == NULL)
    return -1;
  r->sub = sub;
  r->head = head_snapshot_ref(head);
  r->next = r->asked = from;
  r->last = head->pub.tip.number;
  r->job.fn = on_job;
  list_init(&r->held);
  list_init(&r->job.node);
  for (i = 0; i < AT_ONCE; i++) {
    r->past[i].resume = r;
    r->past[i].again.fn = on_again;
  }
  sub->resume = r;
  worker_run_soon(sub->worker, &r->job);
  return 0;
}

void
resume_turn(struct subscription *sub, const struct hub_event *event)
{
  struct resume *r = sub->resume;
  unsigned i;

  if (r == NULL || r->done || event->broken || event->version <= sub->since ||
      event->number > r->last || (event->kind == HUB_LOGS && !event->removed))
    return;
  r->last = (event->number > r->next ? event->number : r->next) - 1;
  for (i = 0; i < AT_ONCE; i++)
    if (r->past[i].number > r->last)
      past_clear(&r->past[i]);
  if (r->asked > r->last + 1)
    r->asked = r->last + 1;
  worker_run_soon(sub->worker, &r->job);
}

struct log_set *
resume_removed(const struct subscription *sub, const struct hub_event *event)
{
  const struct resume *r = sub->resume;
  const struct told *told = r != NULL ? &r->told[event->number % TOLD_MAX] : NULL;

  if (told == NULL || !event->removed || told->logs == NULL ||
      memcmp(told->hash, event->hash, sizeof(told->hash)) != 0)
    return NULL;
  return log_set_removed(told->logs);
}

bool
resume_busy(const struct subscription *sub)
{
  return sub->resume != NULL && !sub->resume->done;
}

bool
resume_hold(struct subscription *sub, struct egw_buf *buf, struct egw_slice result)
{
  struct resume *r = sub->resume;
  struct held *h = r->held_bytes + result.len <= HELD_MAX ? calloc(1, sizeof(*h)) : NULL;

  if (h == NULL)
    return false;
  h->buf = egw_buf_ref(buf);
  h->result = result;
  r->held_bytes += result.len + sizeof(*h);
  list_append(&r->held, &h->node);
  return true;
}
