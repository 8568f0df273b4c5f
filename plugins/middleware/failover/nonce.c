/* SPDX-License-Identifier: MIT */
/* Nonces: all upstreams are asked how many transactions an account has sent, and the highest
 * number is the answer: a node that has not heard of the last transaction would make the
 * client use its nonce again. */
#include "failover.h"

#include <string.h>
#include <ethrpc-gw/json.h>

#define LATE_MS 1000u /* so long the others are waited for when one has answered */

struct nonce {
  struct egw_at at;
  struct egw_call *call;
  unsigned out;
  uint64_t highest;
  bool known;
  struct leg leg[UPSTREAMS_MAX];
};

/* Of the account as it is now: old blocks are the same everywhere. */
static bool
is_current(const struct egw_call *call)
{
  struct egw_slice params = egw_params(call), block;

  if (egw_json_kind(params) != EGW_JSON_ARRAY)
    return false;
  block = egw_json_element(params, 1);
  return block.ptr == NULL || egw_json_equals(block, "pending") ||
         egw_json_equals(block, "latest");
}

static enum egw_verdict
answer(struct nonce *n)
{
  struct egw_buf *buf = egw_buf_new(24);
  unsigned i;

  for (i = 0; i < UPSTREAMS_MAX; i++)
    if (n->leg[i].out)
      egw_subcall_cancel(n->at.worker, n->leg[i].ticket);
  if (buf == NULL || egw_buf_printf(buf, "\"0x%llx\"", (unsigned long long)n->highest) < 0) {
    egw_buf_unref(buf);
    return telling_fault(n->call, -32603);
  }
  egw_explain(n->call, "failover takes the highest nonce of all upstreams");
  return egw_answer(n->call, buf);
}

static void
on_leg(void *arg, const struct egw_reply *reply)
{
  struct leg *leg = arg;
  struct nonce *n = leg->owner;
  struct state *state = n->at.state;
  struct verdict v =
      witness(&n->at, n->call, state, reply, egw_now_ms(n->at.worker) - leg->began_ms);
  uint64_t value;
  enum egw_verdict verdict;

  leg->out = false;
  n->out--;
  if (v.class == CLASS_RESULT && egw_json_u64(reply->body, &value) == 0) {
    if (!n->known)
      egw_call_timer(&n->at, n->call, LATE_MS);
    n->known = true;
    n->highest = value > n->highest ? value : n->highest;
  }
  if (n->out != 0) {
    if (v.class != CLASS_RESULT)
      telling_note(&state->telling, reply, v.class);
    return;
  }
  egw_call_timer(&n->at, n->call, 0);
  if (n->known) {
    egw_resume(n->call, answer(n));
    return;
  }
  verdict = retry_after(&n->at, n->call, reply, &v, false);
  if (verdict != EGW_WAIT)
    egw_resume(n->call, verdict);
}

static bool
start(struct nonce *n, struct state *state, unsigned index)
{
  struct egw_upstream_info info;

  if (!egw_upstream(&n->at, index, &info) || !info.up ||
      (state->base.only != 0 && (state->base.only >> index & 1) == 0))
    return false;
  n->leg[index].owner = n;
  if (leg_start(&n->at, n->call, &n->leg[index], index, 0, on_leg) < 0)
    return false;
  state->tried |= UINT64_C(1) << index;
  n->out++;
  return true;
}

bool
nonce_start(const struct egw_at *at, struct egw_call *call)
{
  const struct failover *f = at->self;
  const struct egw_method_info *info = egw_method_info(call);
  struct state *state = at->state;
  unsigned i, count = egw_upstream_count(at);
  struct nonce *n;

  if (f->nonce != NONCE_MAX || count < 2 || info == NULL ||
      strcmp(info->name, "eth_getTransactionCount") != 0 || !is_current(call))
    return false;
  n = egw_alloc(call, sizeof(*n));
  if (n == NULL)
    return false;
  n->at = *at;
  n->call = call;
  for (i = 0; i < count && i < UPSTREAMS_MAX; i++)
    start(n, state, i);
  if (n->out == 0)
    return false;
  state->attempts = 1;
  state->own = n;
  state->mode = MODE_NONCE;
  egw_count(at, METRIC_NONCE_READS, 1);
  return true;
}

/* Some upstreams are late. */
enum egw_verdict
nonce_timer(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  (void)call;
  return answer(state->own);
}
