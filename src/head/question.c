/* SPDX-License-Identifier: MIT */
/* The tracker's own questions to nodes. */
#include <string.h>
#include <ethrpc-gw/json.h>
#include "head/parts.h"
#include "rpc/envelope.h"

#define ASK_TIMEOUT_MS 5000u

static void
on_job(struct worker_job *job)
{
  struct question *q = container_of(job, struct question, job);
  struct egw_buf *raw = q->raw; /* fn() may ask the next one */

  q->waiting = false;
  q->fn(q);
  if (q->raw == raw)
    q->raw = NULL;
  egw_buf_unref(raw);
}

static void
on_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct question *q = xchg->owner;
  struct rpc_reply reply = { .kind = RPC_REPLY_BAD };

  q->xchg = NULL;
  if (outcome == EGW_OK && xchg->reply->state == INBOUND_COMPLETE)
    inbound_judge(xchg->reply, &reply);
  q->answered = reply.kind == RPC_REPLY_RESULT || reply.kind == RPC_REPLY_ERROR;
  if (q->answered)
    link_note_ok(xchg->link);
  else
    link_note_failure(xchg->link, outcome == EGW_OK ? EGW_BAD_REPLY : outcome,
                      outcome == EGW_OK ? reply.why : why);
  q->has_block = reply.kind == RPC_REPLY_RESULT && block_parse(reply.body, &q->block);
  egw_buf_unref(q->raw);
  q->raw = q->has_block ? header_raw(reply.body) : NULL;
  q->has_number = reply.kind == RPC_REPLY_RESULT && egw_json_u64(reply.body, &q->number) == 0;
  worker_run_soon(xchg->link->worker, &q->job);
}

int
question_ask(struct question *q, struct follower *follower, const char *method, const char *params,
             void (*fn)(struct question *))
{
  struct xchg_request what = {
    .method = { method, strlen(method) },
    .params = { params, strlen(params) },
    .done = on_done,
    .owner = q,
    .timeout_ms = ASK_TIMEOUT_MS,
    .idempotent = true,
  };

  if (q->waiting || follower->tracker->stopped || follower->link->closing)
    return -1;
  q->follower = follower;
  q->fn = fn;
  q->job.fn = on_job;
  q->waiting = true;
  q->raw = NULL; /* an answer that is being looked at is on_job()'s */
  if (xchg_start(follower->link, &what, &q->xchg) == 0)
    return 0;
  q->waiting = false;
  return -1;
}

void
question_stop(struct question *q)
{
  if (q->xchg != NULL)
    xchg_abort(q->xchg);
  q->xchg = NULL;
  if (q->job.node.next != NULL)
    list_remove(&q->job.node);
  if (q->waiting)
    egw_buf_unref(q->raw);
  q->raw = NULL;
  q->waiting = false;
}
