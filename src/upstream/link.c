/* SPDX-License-Identifier: MIT */
/* A worker's link to one upstream: its life, its health, and the probes that bring it back.
 *
 *   UP --- failure to connect, or two failures in a row ---> DOWN
 *   DOWN --- a probe is answered, or the transport connects ---> UP
 *
 * Down means passed over while another upstream is up; it is never excluded when it is the
 * last. Probes are spaced out as long as it stays down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/backoff.h"
#include "gateway/gateway.h"
#include "obs/log.h"
#include "upstream/parts.h"

#define PROBE_FIRST_MS 200u
#define PROBE_MAX_MS 5000u
#define PROBE_TIMEOUT_MS 3000u
#define WELL_MS 30000u        /* up for so long: earlier troubles are forgotten */
#define FAILURES_DOWN 2u
#define BUSY_MS 1000u
#define BUSY_MAX_MS 60000u

const void *
egw_link_self(const struct egw_link *link)
{
  return link->upstream->self;
}

void *
egw_link_mine(const struct egw_link *link)
{
  return link->mine;
}

void *
egw_link_state(const struct egw_link *link)
{
  return link->state;
}

struct egw_worker *
egw_link_worker(const struct egw_link *link)
{
  return link->worker;
}

const char *
egw_link_name(const struct egw_link *link)
{
  return link->upstream->name;
}

const struct egw_url *
egw_link_url(const struct egw_link *link)
{
  return &link->upstream->url;
}

const struct egw_link_limits *
egw_link_limits(const struct egw_link *link)
{
  return &link->limits;
}

/* --- health ------------------------------------------------------------------------------- */

static void
schedule_probe(struct egw_link *link)
{
  uint64_t ms = backoff_ms(link->downs, PROBE_FIRST_MS, PROBE_MAX_MS);

  ms += clock_us() % (ms / 4 + 1); /* so that workers do not probe in step */
  worker_timer_start(link->worker, &link->probe_timer, ms);
}

static void
set_health(struct egw_link *link, enum link_health health, const char *why)
{
  if (link->health == health)
    return;
  link->health = health;
  metric_add(&link->metrics.up, health == LINK_UP ? 1 : -1);
  if (health == LINK_UP) {
    link->up_since_ms = uv_now(&link->worker->loop);
    link->failures = 0;
    worker_timer_stop(link->worker, &link->probe_timer);
    egw_log(EGW_INFO, "upstream", "%s is up worker=%u", link->upstream->name,
            link->worker->index);
    return;
  }
  egw_log(EGW_WARN, "upstream", "%s is down: %s worker=%u", link->upstream->name, why,
          link->worker->index);
  schedule_probe(link);
}

void
link_note_ok(struct egw_link *link)
{
  link->failures = 0;
  if (link->health == LINK_DOWN && !link->transport_down)
    set_health(link, LINK_UP, NULL);
  if (link->downs != 0 && link->health == LINK_UP &&
      uv_now(&link->worker->loop) - link->up_since_ms > WELL_MS)
    link->downs = 0;
}

void
link_note_failure(struct egw_link *link, enum egw_outcome outcome, const char *why)
{
  if (why == NULL)
    why = "failed";
  snprintf(link->last_error, sizeof(link->last_error), "%s", why);
  if (outcome == EGW_ABORTED || link->batch.failing == FAIL_NO_MORE)
    return;
  if (link->batch.failing == FAIL_FIRST)
    link->batch.failing = FAIL_NO_MORE;
  link->failures++;
  if (link->health == LINK_DOWN)
    return;
  if (outcome == EGW_NOT_SENT || link->failures >= FAILURES_DOWN) {
    link->downs++;
    set_health(link, LINK_DOWN, why);
  }
}

void
link_note_busy(struct egw_link *link, uint32_t retry_after_ms)
{
  uint64_t ms = retry_after_ms == 0 ? BUSY_MS : retry_after_ms;
  uint64_t until = uv_now(&link->worker->loop) + (ms < BUSY_MAX_MS ? ms : BUSY_MAX_MS);

  snprintf(link->last_error, sizeof(link->last_error), "busy");
  if (until > link->busy_until_ms)
    link->busy_until_ms = until;
}

static void
on_probe_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct egw_link *link = xchg->link;
  struct rpc_reply reply = { .kind = RPC_REPLY_BAD };

  link->probe = NULL;
  if (outcome == EGW_OK && xchg->reply->state == INBOUND_COMPLETE) {
    inbound_judge(xchg->reply, &reply);
    why = reply.why;
  }
  if (reply.kind == RPC_REPLY_RESULT || reply.kind == RPC_REPLY_ERROR) {
    link_note_ok(link);
    return;
  }
  if (link->closing)
    return;
  link_note_failure(link, outcome == EGW_OK ? EGW_BAD_REPLY : outcome, why);
  if (link->health == LINK_DOWN && !wheel_armed(&link->probe_timer)) {
    link->downs++;
    schedule_probe(link);
  }
}

static void
send_probe(struct egw_link *link)
{
  struct xchg_request what = {
    .method = EGW_LIT("eth_chainId"),
    .params = EGW_LIT("[]"),
    .done = on_probe_done,
    .timeout_ms = PROBE_TIMEOUT_MS,
    .fresh = true,
    .idempotent = true,
  };

  if (link->probe != NULL || link->closing)
    return;
  metric_add(&link->metrics.probes, 1);
  if (xchg_start(link, &what, &link->probe) < 0)
    schedule_probe(link);
}

static void
on_probe_timer(struct wheel_timer *timer)
{
  send_probe(container_of(timer, struct egw_link, probe_timer));
}

void
egw_link_set(struct egw_link *link, enum egw_link_state state, const char *why)
{
  if (link->closing)
    return;
  link->transport_down = state == EGW_LINK_DOWN;
  if (state == EGW_LINK_UP) {
    set_health(link, LINK_UP, NULL);
    return;
  }
  if (why != NULL)
    snprintf(link->last_error, sizeof(link->last_error), "%s", why);
  set_health(link, LINK_DOWN, why != NULL ? why : "not connected");
}

/* --- life ---------------------------------------------------------------------------------- */

void
egw_link_closed(struct egw_link *link)
{
  link->closed = true;
}

static struct egw_link *
make_link(struct egw_worker *worker, struct upstream *upstream)
{
  size_t at = (sizeof(struct egw_link) + 15) / 16 * 16;
  struct egw_link *link = calloc(1, at + upstream->transport->link_size);

  if (link == NULL)
    return NULL;
  link->state = (char *)link + at;
  link->mine = worker->transports[upstream->index];
  link->upstream = upstream;
  link->worker = worker;
  link->limits.connect_timeout_ms = (uint32_t)upstream->conf->connect_timeout;
  link->limits.max_reply = upstream->conf->max_reply;
  link->health = LINK_UP; /* until something shows otherwise */
  metric_add(&link->metrics.up, 1);
  link->up_since_ms = uv_now(&worker->loop);
  link->probe_timer.fn = on_probe_timer;
  list_init(&link->xchgs);
  list_init(&link->conns);
  batch_open(link);
  return link;
}

static int
start_transport(struct egw_worker *worker, struct upstream *upstream)
{
  const struct egw_plugin *head = upstream->plugin->head;
  void *mine = calloc(1, head->worker_size == 0 ? 1 : head->worker_size);

  worker->transports[upstream->index] = mine;
  if (mine == NULL)
    return -1;
  if (head->worker_start != NULL && head->worker_start(upstream->self, mine, worker) < 0) {
    egw_log(EGW_ERROR, "upstream", "%s: its transport could not start", upstream->name);
    return -1;
  }
  return 0;
}

int
links_open(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  size_t i, n = gateway->upstream_count;

  worker->links = calloc(n + 1, sizeof(*worker->links));
  worker->transports = calloc(n + 1, sizeof(*worker->transports));
  if (worker->links == NULL || worker->transports == NULL)
    return -1;
  for (i = 0; i < n; i++) {
    struct upstream *upstream = &gateway->upstreams[i];
    struct egw_link *link;

    if (start_transport(worker, upstream) < 0)
      return -1;
    link = make_link(worker, upstream);
    if (link == NULL)
      return -1;
    worker->links[i] = link;
    worker->link_count++;
    if (upstream->transport->open(link) < 0) {
      egw_log(EGW_ERROR, "upstream", "%s could not be opened", upstream->name);
      link->closed = true;
      return -1;
    }
    send_probe(link);
  }
  return 0;
}

void
links_close(struct egw_worker *worker)
{
  unsigned i;

  for (i = 0; i < worker->link_count; i++) {
    struct egw_link *link = worker->links[i];

    if (link->closing || link->closed)
      continue;
    link->closing = true;
    worker_timer_stop(worker, &link->probe_timer);
    if (link->probe != NULL) {
      xchg_abort(link->probe);
      link->probe = NULL;
    }
    batch_close(link);
    link->upstream->transport->close(link);
  }
}

bool
links_closed(const struct egw_worker *worker)
{
  unsigned i;

  for (i = 0; i < worker->link_count; i++)
    if (!worker->links[i]->closed)
      return false;
  return true;
}

void
links_stop(struct egw_worker *worker)
{
  struct gateway *gateway = worker->gateway;
  size_t i;

  for (i = 0; i < gateway->upstream_count && worker->transports != NULL; i++) {
    const struct upstream *upstream = &gateway->upstreams[i];
    const struct egw_plugin *head = upstream->plugin->head;

    if (worker->transports[i] != NULL && head->worker_stop != NULL)
      head->worker_stop(upstream->self, worker->transports[i], worker);
  }
}

void
links_free(struct egw_worker *worker)
{
  size_t i;

  for (i = 0; i < worker->link_count; i++) {
    u64map_free(&worker->links[i]->by_id);
    free(worker->links[i]);
  }
  for (i = 0; i < worker->gateway->upstream_count && worker->transports != NULL; i++)
    free(worker->transports[i]);
  free(worker->links);
  free(worker->transports);
  worker->links = NULL;
  worker->transports = NULL;
  worker->link_count = 0;
}
