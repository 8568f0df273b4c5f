/* SPDX-License-Identifier: MIT */
/* Answers of the admin listener. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <string.h>
#include "admin/admin.h"
#include "admin/status.h"
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "obs/metrics.h"
#include "upstream/upstream.h"

#define HEADS_WAIT_US UINT64_C(3000000)

static int
answer(struct admin_answer *out, int status, const char *type, struct egw_buf *body)
{
  out->status = status;
  out->content_type = type;
  out->body = body;
  return body == NULL ? -1 : 0;
}

static int
answer_text(struct admin_answer *out, int status, const char *text)
{
  struct egw_slice bytes = { text, strlen(text) };

  return answer(out, status, "text/plain; charset=utf-8", egw_buf_copy(bytes));
}

static int
answer_health(struct gateway *gateway, struct admin_answer *out)
{
  (void)gateway;
  return answer_text(out, 200, "ok\n");
}

/* Whether the worker can use any upstream. */
static bool
worker_has_upstream(const struct gateway *gateway, const struct egw_worker *worker)
{
  size_t i;

  for (i = 0; i < gateway->upstream_count && worker->links != NULL; i++)
    if (worker->links[i] != NULL && metric_read(&worker->links[i]->metrics.up) > 0)
      return true;
  return false;
}

/* Any worker may get the next client, so each must have an upstream. */
static bool
all_have_upstreams(const struct gateway *gateway)
{
  unsigned i;

  if (!atomic_load_explicit(&gateway->started, memory_order_acquire))
    return false;
  for (i = 0; i < gateway->worker_count; i++)
    if (!worker_has_upstream(gateway, &gateway->workers[i]))
      return false;
  return true;
}

/* Whether the heads that are followed are known, so that a first client is not told of different heights
 * by different nodes. Not waited for longer than nodes need that know no heads. */
static bool
heads_are_known(const struct gateway *gateway)
{
  size_t i;

  if (clock_us() - gateway->started_us > HEADS_WAIT_US)
    return true;
  for (i = 0; i < gateway->network_count; i++) {
    struct head *head = gateway->networks[i].head;
    struct egw_head now;

    if (head == NULL || !head_is_tracked(head))
      continue;
    head_peek(head, &now);
    if (!now.known)
      return false;
  }
  return true;
}

static int
answer_ready(struct gateway *gateway, struct admin_answer *out)
{
  enum gateway_state state =
      (enum gateway_state)atomic_load_explicit(&gateway->state, memory_order_relaxed);

  if (state == GATEWAY_STARTING)
    return answer_text(out, 503, "starting\n");
  if (state != GATEWAY_READY)
    return answer_text(out, 503, "shutting down\n");
  if (!all_have_upstreams(gateway))
    return answer_text(out, 503, "no upstream can be used\n");
  if (!heads_are_known(gateway))
    return answer_text(out, 503, "the newest block is not known yet\n");
  return answer_text(out, 200, "ok\n");
}

static int
answer_metrics(struct gateway *gateway, struct admin_answer *out)
{
  struct egw_buf *body = egw_buf_new(16384);

  if (body != NULL && metrics_print(gateway, body) != 0) {
    egw_buf_unref(body);
    body = NULL;
  }
  return answer(out, 200, "text/plain; version=0.0.4; charset=utf-8", body);
}

static int
answer_status(struct gateway *gateway, struct admin_answer *out)
{
  struct egw_buf *body = egw_buf_new(4096);

  if (body != NULL && status_print(gateway, body) != 0) {
    egw_buf_unref(body);
    body = NULL;
  }
  return answer(out, 200, "application/json", body);
}

static const struct page {
  const char *path;
  int (*answer)(struct gateway *gateway, struct admin_answer *out);
} pages[] = {
  { "/health", answer_health },
  { "/ready", answer_ready },
  { "/metrics", answer_metrics },
  { "/status", answer_status },
};

int
admin_answer(struct gateway *gateway, const char *method, const char *path,
             struct admin_answer *out)
{
  size_t i;

  for (i = 0; i < sizeof pages / sizeof pages[0]; i++) {
    if (strcmp(path, pages[i].path) != 0)
      continue;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
      return answer_text(out, 405, "only GET and HEAD are allowed here\n");
    return pages[i].answer(gateway, out);
  }
  return answer_text(out, 404, "there are /health, /ready, /metrics and /status\n");
}
