/* SPDX-License-Identifier: MIT */
/* Raw transactions. A transaction is known by its hash, so sending it twice does no harm to
 * the chain; but what a node said of it has to be read with that in mind: "already known" is
 * success, and so is "nonce too low" when the node has this very transaction. Each upstream
 * gets one copy at most.
 *
 * When the outcome at an upstream is not known (the connection broke, or it is silent) two
 * things are done at once: all upstreams are asked for the hash, and another one gets a copy.
 *
 * Copies are sub-calls without a parent, so that those under way arrive although the client
 * has its answer. The record is counted: one hold of the call, one of each copy. */
#include "failover.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>
#include "txhash.h"

#define PATIENCE_MAX_MS                                                                       \
  3000u                   /* an upstream that is silent for longer is not waited for alone */
#define ASK_MS 2000u      /* the longest to wait for what an upstream says of the hash */
#define ASK_AGAIN_MS 100u /* first pause before asking again, when nobody knows it */
#define ASK_ROUNDS 5u
#define UNSENT_ROUNDS 2u /* times an upstream that could not be reached is tried again */
#define MARGIN_MS 40u    /* before the deadline, to answer */

/* A copy, or a question about it. */
struct copy {
  struct tx *tx;
  unsigned upstream;
};

struct tx {
  unsigned holds;
  struct egw_at at;
  struct egw_call *call; /* NULL: it has its answer, or is gone */
  struct state *state;
  const struct egw_method_info *info;
  unsigned char hash[32];
  char hash_text[67];
  uint64_t sent;            /* bits of upstreams that have, or may have, a copy */
  unsigned wanted;          /* copies at first */
  unsigned sending, asking; /* in flight */
  unsigned rounds, unsent_rounds;
  bool unsent;    /* an upstream could not be reached */
  bool uncertain; /* one may have it without having said so */
  struct copy copies[UPSTREAMS_MAX];
};

static void proceed(struct tx *tx, bool more);

static void
drop(struct tx *tx)
{
  if (--tx->holds == 0)
    free(tx);
}

void
rawtx_leave(struct state *state)
{
  struct tx *tx = state->own;

  if (tx == NULL)
    return;
  state->own = NULL;
  tx->call = NULL;
  tx->state = NULL;
  drop(tx);
}

/* --- the answer -------------------------------------------------------------------------- */

static void
finish(struct tx *tx, enum egw_verdict verdict)
{
  struct egw_call *call = tx->call;

  tx->call = NULL; /* what comes later is of no matter to the client */
  egw_call_timer(&tx->at, call, 0);
  egw_resume(call, verdict);
}

/* An upstream has it. */
static enum egw_verdict
answer_hash(struct tx *tx, const char *how)
{
  struct egw_buf *buf = egw_buf_new(70);

  egw_explain(tx->call, "failover answers the hash: %s", how);
  if (buf == NULL || egw_buf_printf(buf, "\"%s\"", tx->hash_text) < 0) {
    egw_buf_unref(buf);
    return telling_fault(tx->call, -32603);
  }
  return egw_answer(tx->call, buf);
}

static enum egw_verdict
answer_failure(struct tx *tx)
{
  const struct telling *t = &tx->state->telling;

  if (tx->uncertain &&
      !(telling_has_words(t) && t->rank >= class_info(CLASS_TX_NONCE)->rank)) {
    egw_count(&tx->at, METRIC_TX_UNKNOWN, 1);
    egw_explain(tx->call, "failover found nobody with the hash; an upstream may have it yet");
    return telling_fault(tx->call, -32053);
  }
  return telling_answer(&tx->state->telling, tx->call);
}

/* --- asking for the hash ----------------------------------------------------------------- */

static bool
has_hash(const struct tx *tx, const struct egw_reply *reply)
{
  unsigned char hash[32];

  if (reply->outcome != EGW_OK || reply->is_error ||
      egw_json_kind(reply->body) != EGW_JSON_OBJECT)
    return false;
  return egw_hex_read(egw_json_member(reply->body, "hash"), hash, sizeof(hash)) == 32 &&
         memcmp(hash, tx->hash, sizeof(hash)) == 0;
}

/* Ends with the call, so the call is there. */
static void
on_asked(void *arg, const struct egw_reply *reply)
{
  struct copy *copy = arg;
  struct tx *tx = copy->tx;

  tx->asking--;
  if (tx->call == NULL)
    return;
  if (has_hash(tx, reply)) {
    egw_count(&tx->at, METRIC_TX_RESOLVED, 1);
    finish(tx, answer_hash(tx, "an upstream has it"));
    return;
  }
  proceed(tx, false);
}

static void
ask(struct tx *tx, unsigned index)
{
  char params[72] = "[\"";
  struct egw_subcall what = {
    .method = EGW_LIT("eth_getTransactionByHash"),
    .timeout_ms = ASK_MS,
    .below = true,
    .route = { .only = UINT64_C(1) << index, .once = true },
  };

  memcpy(params + 2, tx->hash_text, 66);
  memcpy(params + 68, "\"]", 3);
  what.params = (struct egw_slice){ params, 70 };
  tx->copies[index] = (struct copy){ tx, index };
  if (egw_subcall(&tx->at, tx->call, &what, on_asked, &tx->copies[index]) < 0)
    return;
  tx->asking++;
  egw_count(&tx->at, METRIC_TX_ASKED, 1);
}

static void
ask_all(struct tx *tx)
{
  unsigned i, n = egw_upstream_count(&tx->at);

  if (tx->asking != 0 || tx->rounds >= ASK_ROUNDS)
    return;
  tx->rounds++;
  egw_explain(tx->call, "failover asks all for the hash");
  for (i = 0; i < n && i < UPSTREAMS_MAX; i++)
    ask(tx, i);
}

/* --- sending ----------------------------------------------------------------------------- */

static bool
same_hash(const struct tx *tx, const struct egw_reply *reply)
{
  unsigned char hash[32];

  return egw_hex_read(reply->body, hash, sizeof(hash)) == 32 &&
         memcmp(hash, tx->hash, 32) == 0;
}

/* The node, or what stands in front of it, did not take the request. */
static bool
is_refusal(const struct egw_reply *reply)
{
  return reply->outcome == EGW_BAD_REPLY &&
         (reply->http_status == 503 ||
          (reply->http_status >= 400 && reply->http_status < 500));
}

static void
note_result(struct tx *tx, const struct egw_reply *reply)
{
  if (same_hash(tx, reply)) {
    egw_explain(tx->call, "failover sent it: %s took it",
                reply->upstream != NULL ? reply->upstream : "one");
    finish(tx, egw_answer_part(tx->call, egw_buf_ref(reply->buf), reply->body, false));
    return;
  }
  egw_count(&tx->at, METRIC_TX_MISMATCH, 1);
  egw_log(EGW_WARN, "failover",
          "%s: refused: its answer is not the transaction's hash hash=%s",
          reply->upstream != NULL ? reply->upstream : "-", tx->hash_text);
  egw_explain(tx->call, "failover refuses the answer: it is not the transaction's hash");
  tx->uncertain = true;
  ask_all(tx);
  proceed(tx, true);
}

/* An upstream's word on the transaction, of one that the client still waits for. */
static void
note_answer(struct tx *tx, unsigned upstream, const struct egw_reply *reply,
            const struct verdict *v)
{
  bool lost = false, more = class_info(v->class)->follows != FOLLOWS_ANSWER;

  switch (v->class) {
  case CLASS_RESULT:
    note_result(tx, reply);
    return;
  case CLASS_TX_KNOWN:
    egw_count(&tx->at, METRIC_TX_RESOLVED, 1);
    finish(tx, answer_hash(tx, "it is known already"));
    return;
  case CLASS_UNREACHABLE:
    tx->sent &= ~(UINT64_C(1) << upstream);
    tx->unsent = true;
    break;
  case CLASS_TX_NONCE:
    ask_all(tx);
    break;
  default:
    lost = reply->outcome != EGW_OK && !is_refusal(reply);
    lost = lost || v->class == CLASS_SERVER || v->class == CLASS_NODE_TIMEOUT;
    break;
  }
  telling_note(&tx->state->telling, reply, v->class);
  if (lost) {
    tx->uncertain = true;
    ask_all(tx);
  }
  proceed(tx, more);
}

static void
on_sent(void *arg, const struct egw_reply *reply)
{
  struct copy *copy = arg;
  struct tx *tx = copy->tx;
  unsigned upstream = copy->upstream;
  struct verdict v = witness_copy(&tx->at, tx->call, tx->info, reply, -1);

  free(copy);
  tx->sending--;
  if (tx->call != NULL)
    note_answer(tx, upstream, reply, &v);
  drop(tx);
}

/* Sends a copy to an upstream that has none, and was not tried in vain just now. */
static bool
send_copy(struct tx *tx, uint64_t never)
{
  unsigned index = choose_upstream(&tx->at, tx->call, tx->state, tx->sent | never, LACK_ALL);
  uint64_t left = failover_left_ms(&tx->at, tx->call);
  struct copy *copy;
  struct egw_subcall what = {
    .method = egw_method(tx->call),
    .params = egw_params(tx->call),
    .timeout_ms = left < UINT32_MAX ? (uint32_t)left + 1 : UINT32_MAX,
    .below = true,
  };

  if (index == EGW_NO_UPSTREAM)
    return false;
  copy = malloc(sizeof(*copy));
  if (copy == NULL)
    return false;
  *copy = (struct copy){ tx, index };
  what.route = (struct egw_route){ .only = UINT64_C(1) << index, .once = true };
  if (egw_subcall(&tx->at, NULL, &what, on_sent, copy) < 0) {
    free(copy);
    return false;
  }
  tx->sent |= UINT64_C(1) << index;
  tx->state->tried |= UINT64_C(1) << index;
  tx->sending++;
  tx->holds++;
  egw_count(&tx->at, METRIC_TX_COPIES, 1);
  return true;
}

/* --- what next --------------------------------------------------------------------------- */

/* The next look, unless the time is up. */
static void
look_in(struct tx *tx, uint64_t ms)
{
  uint64_t left = failover_left_ms(&tx->at, tx->call);

  left = left > MARGIN_MS ? left - MARGIN_MS : 1;
  egw_call_timer(&tx->at, tx->call, ms < left ? ms : left);
}

static uint64_t
patience(const struct tx *tx)
{
  uint64_t ms = failover_left_ms(&tx->at, tx->call) / 3 + 1;

  return ms < PATIENCE_MAX_MS ? ms : PATIENCE_MAX_MS;
}

/* Whether waiting may yet bring something: the hash may spread, an upstream may come back. */
static bool
wait_on(struct tx *tx)
{
  struct mine *mine = tx->at.mine;

  if (failover_left_ms(&tx->at, tx->call) <= 2 * MARGIN_MS)
    return false;
  if (tx->uncertain && tx->rounds < ASK_ROUNDS) {
    look_in(tx, retry_jitter(mine, (uint64_t)ASK_AGAIN_MS << tx->rounds));
    return true;
  }
  if (tx->unsent && tx->unsent_rounds < UNSENT_ROUNDS &&
      !telling_has_words(&tx->state->telling)) {
    tx->unsent_rounds++;
    tx->state->tried = tx->sent;
    look_in(tx, retry_jitter(mine, (uint64_t)ASK_AGAIN_MS << tx->unsent_rounds));
    return true;
  }
  return false;
}

/* After something has ended: the next copy if that is wanted, else the end if nothing is open.
 */
static void
proceed(struct tx *tx, bool more)
{
  if (more && send_copy(tx, tx->state->tried)) {
    look_in(tx, patience(tx));
    return;
  }
  if (tx->sending != 0 || tx->asking != 0 || wait_on(tx))
    return;
  finish(tx, answer_failure(tx));
}

/* The time is up, or it is time to do more. */
enum egw_verdict
rawtx_timer(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;
  struct tx *tx = state->own;
  enum egw_verdict verdict;

  if (tx->sending != 0)
    tx->uncertain = true; /* whoever is silent may have it */
  if (failover_left_ms(at, call) > MARGIN_MS) {
    if (tx->uncertain)
      ask_all(tx);
    send_copy(tx, state->tried);
    if (tx->sending != 0 || tx->asking != 0) {
      look_in(tx, patience(tx));
      return EGW_WAIT;
    }
    if (wait_on(tx))
      return EGW_WAIT;
  }
  verdict = answer_failure(tx);
  tx->call = NULL;
  return verdict;
}

/* --- the beginning ----------------------------------------------------------------------- */

bool
rawtx_start(const struct egw_at *at, struct egw_call *call)
{
  const struct failover *f = at->self;
  struct state *state = at->state;
  unsigned char hash[32];
  struct tx *tx;

  if (!txhash_of_params(egw_params(call), hash))
    return false;
  tx = calloc(1, sizeof(*tx));
  if (tx == NULL)
    return false;
  tx->holds = 1;
  tx->at = *at;
  tx->call = call;
  tx->state = state;
  tx->info = egw_method_info(call);
  memcpy(tx->hash, hash, sizeof(hash));
  egw_hex_print(hash, sizeof(hash), tx->hash_text);
  for (tx->wanted = 0; tx->wanted < f->broadcast && send_copy(tx, 0); tx->wanted++)
    continue;
  if (tx->wanted == 0) {
    free(tx);
    return false;
  }
  state->own = tx;
  state->mode = MODE_TX;
  look_in(tx, patience(tx));
  return true;
}
