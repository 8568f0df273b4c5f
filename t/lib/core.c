/* SPDX-License-Identifier: MIT */
/* The core in one thread for unit tests; see core.h. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "push/local.h"

struct core core;

/* --- recording stages ------------------------------------------------------------------------ */

static unsigned
stage_number(const struct egw_at *at)
{
  return at->stage->index;
}

static void
note(char what, unsigned n)
{
  size_t len = strlen(core.trace);

  snprintf(core.trace + len, sizeof(core.trace) - len, "%c%u ", what, n);
}

static void
on_sub(void *arg, const struct egw_reply *reply)
{
  struct core_stage *s = arg;
  struct egw_call *call = s->held;

  note(reply->outcome == EGW_OK && !reply->is_error ? 's' : 'S', (unsigned)(s - core.stages));
  s->held = NULL;
  egw_resume(call, egw_answer(call, egw_buf_copy(EGW_LIT("\"sub\""))));
}

static enum egw_verdict
act(const struct egw_at *at, struct egw_call *call, enum act what)
{
  struct core_stage *s = &core.stages[stage_number(at)];
  struct egw_subcall sub = { .method = EGW_LIT("eth_sub"), .params = EGW_LIT("[7]") };

  switch (what) {
  case ACT_NEXT: return EGW_NEXT;
  case ACT_ANSWER: return egw_answer(call, egw_buf_copy(EGW_LIT("\"stage\"")));
  case ACT_REFUSE: return egw_refuse(call, -32099, "refused by a stage");
  case ACT_AGAIN: return EGW_AGAIN;
  case ACT_SUBCALL:
    s->held = call;
    return egw_subcall(at, call, &sub, on_sub, s) == 0 ? EGW_WAIT : EGW_NEXT;
  case ACT_WAIT:
    s->held = call;
    if (s->timer_on_wait)
      egw_call_timer(at, call, 50);
    return EGW_WAIT;
  }
  return EGW_NEXT;
}

static enum egw_verdict
rec_request(const struct egw_at *at, struct egw_call *call)
{
  struct core_stage *s = &core.stages[stage_number(at)];

  note('r', stage_number(at));
  *(unsigned *)at->state += 1;
  if (core.batching != NULL)
    egw_may_batch(call, core.batching);
  return act(at, call, s->on_request[s->requests++ % 8]);
}

static enum egw_verdict
rec_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct core_stage *s = &core.stages[stage_number(at)];

  note(reply->outcome == EGW_OK ? 'p' : 'P', stage_number(at));
  s->partial_seen |= reply->partial;
  return act(at, call, s->on_reply[s->replies++ % 8]);
}

static enum egw_verdict
rec_timer(const struct egw_at *at, struct egw_call *call)
{
  struct core_stage *s = &core.stages[stage_number(at)];

  note('t', stage_number(at));
  s->held = NULL;
  return act(at, call, s->on_timer[s->timers++ % 8]);
}

static void
rec_cancel(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  note('c', stage_number(at));
  core.stages[stage_number(at)].held = NULL;
}

static void
rec_finish(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  note('f', stage_number(at));
}

static struct plugin rec_plugin = {
  .middleware = {
    .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "rec" },
    .call_size = sizeof(unsigned),
    .kinds = EGW_KIND_ALL,
    .request = rec_request,
    .reply = rec_reply,
    .timer = rec_timer,
    .cancel = rec_cancel,
    .finish = rec_finish,
  },
};

/* --- the fake transport ---------------------------------------------------------------------- */

static int
fake_open(struct egw_link *link)
{
  (void)link;
  return 0;
}

static void
fake_close(struct egw_link *link)
{
  if (core.conn != NULL)
    egw_conn_lost(core.conn, "closed");
  core.conn = NULL;
  egw_link_closed(link);
}

static void
fake_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  struct core_sent *s = &core.sent[core.sent_count++ % CORE_SENT_MAX];
  struct egw_slice body = egw_buf_slice(egw_xchg_body(xchg));

  memset(s, 0, sizeof(*s));
  s->xchg = xchg;
  s->link = link;
  s->fresh = egw_xchg_fresh(xchg);
  snprintf(s->body, sizeof(s->body), "%.*s", (int)(body.len < 2000 ? body.len : 2000), body.ptr);
  if (core.multiplex) {
    if (core.conn == NULL)
      core.conn = egw_conn_new(link);
    egw_xchg_bind(xchg, core.conn);
    egw_xchg_sent(xchg);
  }
}

static void
fake_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  unsigned i;

  (void)link;
  for (i = 0; i < core.sent_count && i < CORE_SENT_MAX; i++)
    if (core.sent[i].xchg == xchg) {
      core.sent[i].xchg = NULL;
      core.sent[i].aborted = true;
    }
}

static void
fake_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  (void)link;
  (void)xchg;
  (void)conn;
  note('m', 0);
}

static struct plugin fake_plugin = {
  .transport = {
    .plugin = { EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT), .name = "fake" },
    .schemes = "fake",
    .open = fake_open,
    .close = fake_close,
    .submit = fake_submit,
    .abort = fake_abort,
    .more = fake_more,
  },
};

/* --- the fake session ------------------------------------------------------------------------- */

static void
drain_out(struct core_answer *a, struct out *out)
{
  struct iovec iov[16];
  unsigned i, n;

  while ((n = out_peek(out, iov, 16)) != 0) {
    size_t took = 0;

    for (i = 0; i < n; i++) {
      a->text = realloc(a->text, a->len + iov[i].iov_len + 1);
      memcpy(a->text + a->len, iov[i].iov_base, iov[i].iov_len);
      a->len += iov[i].iov_len;
      took += iov[i].iov_len;
    }
    out_consume(out, took);
  }
  if (a->text != NULL)
    a->text[a->len] = '\0';
}

static void
on_changed(struct out *out, void *arg)
{
  struct core_answer *a = arg;

  drain_out(a, out);
  a->open = out->open;
  a->aborted = out->aborted;
  if (!out->open) {
    a->out = NULL;
    out_free(out);
  } else if (out->drained != NULL) {
    out->drained(out, out->arg);
  }
}

static void
session_reply(struct session *session, void *cookie, struct out *out)
{
  struct core_answer *a = &core.answers[core.answer_count++ % CORE_ANSWERS_MAX];

  (void)session;
  memset(a, 0, sizeof(*a));
  a->cookie = cookie;
  if (out == NULL)
    return;
  if (out->open) {
    a->open = true;
    a->out = out;
    out->changed = on_changed;
    out->changed_arg = a;
    drain_out(a, out);
    return;
  }
  drain_out(a, out);
  out_free(out);
}

static void
session_push(struct session *session, struct out *out)
{
  struct core_answer a = { 0 };

  (void)session;
  drain_out(&a, out);
  snprintf(core.pushed[core.push_count++ % 8], sizeof(core.pushed[0]), "%s", a.text);
  free(a.text);
  out_free(out);
}

static void
session_ready(struct session *session)
{
  (void)session;
}

static void
session_close(struct session *session, bool now, int code, const char *reason)
{
  (void)session;
  (void)now;
  (void)code;
  (void)reason;
}

static const struct session_ops ops = { session_reply, session_push, session_ready,
                                        session_close };

/* --- life -------------------------------------------------------------------------------------- */

static void
make_conf(unsigned upstreams)
{
  static const char *const names[CORE_UPSTREAMS] = { "a", "b", "c" };
  unsigned i;

  core.conf_network = (struct conf_network){ .name = "test", .timeout = 1000,
                                             .stream_threshold = 1024,
                                              .poll_interval = 1000,
                                              .max_subscriptions = 100000 };
  for (i = 0; i < upstreams; i++)
    core.conf_upstreams[i] = (struct conf_upstream){ .name = names[i], .connect_timeout = 100,
                                                     .max_reply = 1 << 20 };
  core.conf_listener.limits = (struct conf_limits){
    .max_batch_items = 1000, .max_batch_reply = 1 << 20, .max_reply = 1 << 20,
    .max_queue = 1 << 20, .max_in_flight = 4096, .max_subscriptions = 4,
  };
  core.gateway.conf = &core.conf;
}

static void
make_network(unsigned stages, unsigned upstreams)
{
  unsigned i;

  core.network.conf = &core.conf_network;
  core.network.name = "test";
  core.network.gateway = &core.gateway;
  core.network.stages = calloc(stages + 1, sizeof(*core.network.stages));
  core.network.stage_count = stages;
  for (i = 0; i < stages; i++)
    core.network.stages[i] = (struct egw_stage){ .plugin = &rec_plugin,
      .mw = &rec_plugin.middleware, .name = "rec", .network = &core.network, .index = i };
  core.network.upstreams = calloc(upstreams + 1, sizeof(*core.network.upstreams));
  core.network.upstream_count = upstreams;
  core.gateway.networks = &core.network;
  core.gateway.network_count = 1;
  core.network.head = &core.head;
  if (head_init(&core.head) < 0)
    abort();
  core.gateway.upstreams = calloc(upstreams + 1, sizeof(*core.gateway.upstreams));
  core.gateway.upstream_count = upstreams;
  for (i = 0; i < upstreams; i++) {
    core.gateway.upstreams[i] = (struct upstream){ .conf = &core.conf_upstreams[i],
      .name = core.conf_upstreams[i].name, .network = &core.network, .plugin = &fake_plugin,
      .transport = &fake_plugin.transport, .index = i, .position = i };
    core.network.upstreams[i] = &core.gateway.upstreams[i];
  }
}

void
core_start(unsigned stages, unsigned upstreams, enum egw_need need, bool multiplex)
{
  unsigned i;

  memset(&core, 0, sizeof(core));
  core.multiplex = multiplex;
  rec_plugin.middleware.need = need;
  rec_plugin.head = &rec_plugin.middleware.plugin;
  fake_plugin.head = &fake_plugin.transport.plugin;
  fake_plugin.transport.caps = multiplex ? EGW_T_MULTIPLEX | EGW_T_PUSH : EGW_T_BATCH;
  make_conf(upstreams);
  make_network(stages, upstreams);
  core.listener.conf = &core.conf_listener;
  core.gateway.workers = &core.worker;
  core.gateway.worker_count = 1;
  if (network_make_chains(&core.network) < 0 ||
      worker_init(&core.worker, &core.gateway, 0, 1) < 0 ||
      head_worker_init(&core.worker) < 0 || stages_start(&core.worker) < 0 ||
      links_open(&core.worker) < 0)
    abort();
  core.worker.state = WORKER_RUNNING;
  core.worker.listen = &core.listen;
  session_init(&core.session, &ops, CLIENT_WS, &core.worker, &core.listener, &core.network);
  for (i = 0; i < upstreams; i++)
    core_result(i, "\"0x1\""); /* the links' first probes */
  core_turn();
  core.sent_count = 0;
}

struct hub *
core_hub(void)
{
  core.head.owner = &core.worker;
  atomic_store(&core.head.wanted, true); /* as if the tracker ran */
  if (hub_init(&core.hub, &core.network) < 0 || local_init(&core.worker) < 0 ||
      hub_start(&core.hub) < 0)
    abort();
  core.network.hub = &core.hub;
  return &core.hub;
}

void
core_turn(void)
{
  unsigned i;

  for (i = 0; i < 20; i++)
    uv_run(&core.worker.loop, UV_RUN_NOWAIT);
}

void
core_advance(uint64_t ms)
{
  core_turn();
  core.ahead_ms += ms;
  wheel_run(&core.worker.wheel, uv_now(&core.worker.loop) + core.ahead_ms);
  core_turn();
}

void
core_stop(void)
{
  unsigned i;

  if (core.session.state != SESSION_GONE)
    session_gone(&core.session);
  calls_cancel_all(&core.worker, RPC_FAULT_SHUTDOWN);
  hub_stop(&core.hub);
  core_turn();
  links_close(&core.worker);
  core_turn();
  links_stop(&core.worker);
  stages_stop(&core.worker);
  worker_close(&core.worker);
  worker_loop(&core.worker);
  links_free(&core.worker);
  stages_free(&core.worker);
  head_worker_free(&core.worker);
  local_free(&core.worker);
  hub_free(&core.hub);
  head_free(&core.head);
  worker_free(&core.worker);
  network_free_chains(&core.network);
  free(core.network.stages);
  free(core.network.upstreams);
  free(core.gateway.upstreams);
  for (i = 0; i < CORE_ANSWERS_MAX; i++) {
    if (core.answers[i].out != NULL)
      out_free(core.answers[i].out);
    free(core.answers[i].text);
  }
}

/* --- doing things -------------------------------------------------------------------------------- */

struct request *
core_send(const char *text)
{
  struct egw_buf *buf = egw_buf_copy((struct egw_slice){ text, strlen(text) });
  struct request *request = request_start(&core.session, NULL, buf, NULL);

  core_turn();
  return request;
}

void
core_data(unsigned n, const char *bytes, size_t len)
{
  struct core_sent *s = &core.sent[n];

  if (core.multiplex)
    (void)egw_conn_data(core.conn, bytes, len, EGW_CONN_STREAM);
  else if (s->xchg != NULL)
    (void)egw_xchg_data(s->xchg, bytes, len);
}

void
core_done(unsigned n, enum egw_outcome outcome)
{
  struct egw_xchg *xchg = core.sent[n].xchg;

  core.sent[n].xchg = NULL;
  if (xchg != NULL && !core.multiplex)
    egw_xchg_done(xchg, outcome, "scripted");
  core_turn();
}

void
core_text(unsigned n, const char *text)
{
  char line[8192];
  const char *at = strstr(text, "%ID%");

  if (at != NULL && core.sent[n].xchg != NULL)
    snprintf(line, sizeof(line), "%.*s%llu%s\n", (int)(at - text), text,
             (unsigned long long)core.sent[n].xchg->id, at + 4);
  else
    snprintf(line, sizeof(line), "%s\n", text);
  core_data(n, line, strlen(line));
  core_done(n, EGW_OK);
}

void
core_result(unsigned n, const char *result)
{
  char text[8000];

  snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%%ID%%,\"result\":%s}", result);
  core_text(n, text);
}
