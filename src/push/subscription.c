/* SPDX-License-Identifier: MIT */
/* The life of a subscription. */
#include "push/subscription.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/backoff.h"
#include "base/buf.h"
#include "chain/call.h"
#include "listen/session.h"
#include "push/local.h"
#include "push/push.h"
#include "push/resume.h"
#include "upstream/parts.h"

#define RENEW_FIRST_MS 20u
#define RENEW_MAX_MS 2000u
#define RENEW_TIMEOUT_MS 5000u
#define UNSUBSCRIBE_TIMEOUT_MS 5000u
#define UPSTREAM_ID_MAX 256u
#define METHOD_MAX 256u
#define ORPHAN_TIMEOUT_MS 30000u

int
subscription_make_id(char *out)
{
  static const char hex[] = "0123456789abcdef";
  unsigned char r[16];
  unsigned i;

  if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
    return -1;
  r[0] |= 0x10; /* clients read it as a quantity: no leading zero */
  out[0] = '0';
  out[1] = 'x';
  for (i = 0; i < sizeof(r); i++) {
    out[2 + 2 * i] = hex[r[i] >> 4];
    out[3 + 2 * i] = hex[r[i] & 15];
  }
  out[SUBSCRIPTION_ID_LEN] = '\0';
  return 0;
}

static void
on_retry(struct wheel_timer *timer)
{
  subscription_renew(container_of(timer, struct subscription, retry));
}

static struct subscription *
make(struct egw_worker *worker, struct session *session, struct network *network,
     struct egw_slice method, struct egw_slice params)
{
  struct subscription *sub = calloc(1, sizeof(*sub));

  if (sub == NULL)
    return NULL;
  list_init(&sub->session_node);
  list_init(&sub->conn_node);
  list_init(&sub->held);
  list_init(&sub->hub_node);
  sub->session = session;
  sub->worker = worker;
  sub->network = network;
  sub->retry.fn = on_retry;
  sub->method = egw_buf_copy(method);
  sub->params = egw_buf_copy(params);
  if (sub->method == NULL || sub->params == NULL || subscription_make_id(sub->id) < 0) {
    subscription_free(sub, false);
    return NULL;
  }
  return sub;
}

struct subscription *
subscription_new(struct session *session, struct network *network, struct egw_slice method,
                 struct egw_slice params)
{
  return make(session->worker, session, network, method, params);
}

struct subscription *
subscription_feed_new(struct egw_worker *worker, struct network *network, struct egw_slice method,
                      struct egw_slice params,
                      void (*event)(struct subscription *, struct egw_slice),
                      void (*lost)(struct subscription *), void *arg)
{
  struct subscription *sub = make(worker, NULL, network, method, params);

  if (sub == NULL)
    return NULL;
  sub->event = event;
  sub->lost = lost;
  sub->arg = arg;
  return sub;
}

void
subscription_detach(struct subscription *sub)
{
  if (sub->conn != NULL)
    strmap_take(&sub->conn->by_subscription, egw_buf_slice(sub->upstream_id));
  list_remove(&sub->conn_node);
  sub->conn = NULL;
  egw_buf_unref(sub->upstream_id);
  sub->upstream_id = NULL;
}

void
subscription_free(struct subscription *sub, bool tell)
{
  struct list *node;

  if (tell && sub->conn != NULL) {
    struct egw_buf *quoted = egw_buf_new(64);

    if (quoted != NULL && egw_json_quote(quoted, egw_buf_slice(sub->upstream_id)) == 0)
      upstream_unsubscribe(sub->conn, egw_buf_slice(sub->method), egw_buf_slice(quoted));
    egw_buf_unref(quoted);
  }
  subscription_detach(sub);
  resume_stop(sub);
  local_forget(sub);
  if (sub->opening != NULL)
    sub->opening->push = NULL;
  if (sub->renewing != NULL) {
    sub->renewing->push = NULL;
    sub->renewing->sub->done = NULL; /* it ends later, when `sub` is gone */
    call_cancel(sub->renewing, RPC_FAULT_CANCELLED);
  }
  worker_timer_stop(sub->worker, &sub->retry);
  while ((node = list_shift(&sub->held)) != NULL)
    out_free(container_of(node, struct out, node));
  list_remove(&sub->session_node);
  egw_buf_unref(sub->method);
  egw_buf_unref(sub->params);
  free(sub);
}

int
subscription_attach(struct subscription *sub, struct egw_conn *conn, struct egw_slice upstream_id)
{
  char text[UPSTREAM_ID_MAX];
  long n = egw_json_string(upstream_id, text, sizeof(text));

  if (n <= 0)
    return -1;
  sub->upstream_id = egw_buf_copy((struct egw_slice){ text, (size_t)n });
  if (sub->upstream_id == NULL)
    return -1;
  if (strmap_put(&conn->by_subscription, egw_buf_slice(sub->upstream_id), sub) < 0) {
    egw_buf_unref(sub->upstream_id);
    sub->upstream_id = NULL;
    return -1;
  }
  sub->conn = conn;
  list_append(&conn->subscriptions, &sub->conn_node);
  sub->retries = 0;
  return 0;
}

/* --- making it again ------------------------------------------------------------------------- */

static void
retry_later(struct subscription *sub)
{
  worker_timer_start(sub->worker, &sub->retry,
                     backoff_ms(sub->retries++, RENEW_FIRST_MS, RENEW_MAX_MS));
}

/* The renewing call has ended; on success push_subscribed() has attached it already. */
static void
on_renewed(void *arg, const struct egw_reply *reply)
{
  struct egw_call **slot = arg;
  struct subscription *sub = container_of(slot, struct subscription, renewing);

  (void)reply;
  sub->renewing = NULL;
  if (sub->conn == NULL)
    retry_later(sub);
}

void
subscription_renew(struct subscription *sub)
{
  if (sub->renewing != NULL || sub->conn != NULL)
    return;
  sub->renewing = call_new_internal(sub->worker, sub->network, egw_buf_slice(sub->method),
                                    egw_buf_slice(sub->params), RENEW_TIMEOUT_MS, on_renewed,
                                    &sub->renewing);
  if (sub->renewing == NULL) {
    retry_later(sub);
    return;
  }
  sub->renewing->push = sub;
}

/* --- ending it upstream ------------------------------------------------------------------------ */

struct farewell {
  struct egw_xchg *xchg;
};

static void
on_unsubscribed(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct farewell *f = xchg->owner;

  (void)outcome;
  (void)why;
  free(f);
}

/* eth_subscribe -> eth_unsubscribe; others get the suffix _unsubscribe. */
static int
unsubscribe_method(struct egw_slice method, struct egw_buf *out)
{
  static const char tail[] = "_subscribe";
  size_t n = sizeof(tail) - 1;
  size_t keep = method.len;

  if (keep >= n && memcmp(method.ptr + keep - n, tail, n) == 0)
    keep -= n;
  if (egw_buf_append(out, method.ptr, keep) < 0)
    return -1;
  return egw_buf_append(out, "_unsubscribe", 12);
}

void
upstream_unsubscribe(struct egw_conn *conn, struct egw_slice method, struct egw_slice id)
{
  struct farewell *f = calloc(1, sizeof(*f));
  struct egw_buf *name = egw_buf_new(method.len + 16);
  struct egw_buf *params = egw_buf_new(id.len + 8);
  struct xchg_request what = { .done = on_unsubscribed, .wants = conn, .owner = f,
                               .timeout_ms = UNSUBSCRIBE_TIMEOUT_MS };

  if (f == NULL || name == NULL || params == NULL || unsubscribe_method(method, name) < 0 ||
      egw_buf_printf(params, "[%.*s]", (int)id.len, id.ptr) < 0)
    goto fail;
  what.method = egw_buf_slice(name);
  what.params = egw_buf_slice(params);
  if (xchg_start(conn->link, &what, &f->xchg) < 0)
    goto fail;
  egw_buf_unref(name);
  egw_buf_unref(params);
  return;
fail:
  egw_log(EGW_WARN, "push", "%s: a subscription could not be ended", conn->link->upstream->name);
  free(f);
  egw_buf_unref(name);
  egw_buf_unref(params);
}

/* --- what nobody waits for any more -------------------------------------------------------------- */

static void
on_orphan(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct egw_slice method = egw_json_member(egw_buf_slice(xchg->body), "method");
  struct rpc_reply reply;
  char name[METHOD_MAX];
  long n = egw_json_string(method, name, sizeof(name));

  (void)why;
  if (outcome != EGW_OK || xchg->reply->state != INBOUND_COMPLETE || n < 0)
    return;
  inbound_judge(xchg->reply, &reply);
  if (reply.kind == RPC_REPLY_RESULT && egw_json_kind(reply.body) == EGW_JSON_STRING)
    upstream_unsubscribe(xchg->conn, (struct egw_slice){ name, (size_t)n }, reply.body);
}

bool
push_orphaned(struct egw_xchg *xchg)
{
  if (!xchg->subscribing || !xchg->sent || xchg->conn == NULL)
    return false;
  xchg->call = NULL;
  xchg->owner = NULL;
  xchg->done = on_orphan;
  worker_timer_start(xchg->link->worker, &xchg->timeout, ORPHAN_TIMEOUT_MS);
  return true;
}
