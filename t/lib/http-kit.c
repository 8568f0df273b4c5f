/* SPDX-License-Identifier: MIT */
/* The worker of http-kit.h and the stand-in behind the listeners. */
#include "http-kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "admin/admin.h"
#include "listen/parts.h"
#include "push/push.h"
#include "rpc/request.h"

sem_t kit_gate;
atomic_int kit_started, kit_cancelled, kit_websockets, kit_gated;

/* --- requests ------------------------------------------------------------------------- */

struct request {
  struct list node;
  struct session *session;
  void *cookie;
  char text[64];
  struct egw_buf *body;
  struct worker_job job;
  struct wheel_timer timer;
  struct out *out;            /* open */
  long left;                  /* pieces to come */
};

static void
forget(struct request *r)
{
  list_remove(&r->node);
  list_remove(&r->job.node);
  worker_timer_stop(r->session->worker, &r->timer);
  egw_buf_unref(r->body);
  free(r);
}

static struct out *
need(struct out *out, int rc)
{
  if (out == NULL || rc != 0)
    abort();
  return out;
}

static struct egw_buf *
filled(size_t len, char c)
{
  struct egw_buf *buf = egw_buf_new(len);
  char *room = buf == NULL ? NULL : egw_buf_room(buf, len);

  if (room == NULL)
    abort();
  memset(room, c, len);
  egw_buf_commit(buf, len);
  return buf;
}

/* The answer of those that are whole. */
static struct out *
whole_answer(struct request *r)
{
  struct out *out = out_new(2, 0);
  struct egw_buf *buf;
  long n = strchr(r->text, ' ') == NULL ? 0 : atol(strchr(r->text, ' '));

  if (strncmp(r->text, "big", 3) == 0) {
    buf = filled((size_t)n, 'b');
    return need(out, out_add(out, buf, egw_buf_slice(buf)));
  }
  if (strncmp(r->text, "many", 4) == 0) {
    for (long i = 0; i < n; i++) {
      buf = egw_buf_copy(EGW_LIT("piece;"));
      need(out, buf == NULL ? -1 : out_add(out, buf, egw_buf_slice(buf)));
    }
    return out;
  }
  return need(out, out_add(out, egw_buf_ref(r->body), egw_buf_slice(r->body)));
}

static void
end_stream(struct request *r, bool aborted)
{
  struct out *out = r->out;

  out->drained = NULL;
  out->aborted = aborted;
  out->open = false;
  forget(r);
  if (out->changed != NULL)
    out->changed(out, out->changed_arg);
}

/* One more piece, or the end. */
static void
next_piece(struct request *r, size_t len)
{
  struct out *out = r->out;
  struct egw_buf *buf;

  if (r->left-- == 0) {
    end_stream(r, false);
    return;
  }
  buf = filled(len, 's');
  need(out, out_add(out, buf, egw_buf_slice(buf)));
  if (out->changed != NULL)
    out->changed(out, out->changed_arg);
}

static void
on_drained(struct out *out, void *arg)
{
  if (out->bytes == 0)
    next_piece(arg, 10000);
}

static void
on_drip(struct wheel_timer *timer)
{
  struct request *r = container_of(timer, struct request, timer);
  bool last = r->left == 0;

  next_piece(r, 5);
  if (!last)
    worker_timer_start(r->session->worker, timer, 5);
}

static void
on_break(struct wheel_timer *timer)
{
  end_stream(container_of(timer, struct request, timer), true);
}

static void
start_stream(struct request *r)
{
  struct egw_worker *worker = r->session->worker;

  r->out = out_new(2, 0);
  need(r->out, 0);
  r->left = strchr(r->text, ' ') == NULL ? 1 : atol(strchr(r->text, ' '));
  r->out->open = true;
  r->out->arg = r;
  if (strncmp(r->text, "stream", 6) == 0)
    r->out->drained = on_drained;
  if (strncmp(r->text, "late", 4) != 0)
    next_piece(r, strncmp(r->text, "stream", 6) == 0 ? 10000 : 5);
  r->timer.fn = strncmp(r->text, "break", 5) == 0 ? on_break : on_drip;
  r->session->ops->reply(r->session, r->cookie, r->out);
  if (strncmp(r->text, "stream", 6) != 0)
    worker_timer_start(worker, &r->timer, strncmp(r->text, "late", 4) == 0 ? 150 : 20);
}

static void
answer(struct request *r)
{
  static const char *const streams[] = { "stream", "drip", "break", "late" };
  struct session *session = r->session;
  void *cookie = r->cookie;
  struct out *out;

  for (size_t i = 0; i < 4; i++)
    if (strncmp(r->text, streams[i], strlen(streams[i])) == 0) {
      start_stream(r);
      return;
    }
  if (strncmp(r->text, "shut", 4) == 0) {
    session->ops->close(session, true, 0, "shut");
    return;
  }
  if (strncmp(r->text, "gate", 4) == 0) {
    atomic_fetch_add(&kit_gated, 1);
    while (sem_wait(&kit_gate) != 0)
      ;
  }
  out = strncmp(r->text, "none", 4) == 0 ? NULL : whole_answer(r);
  forget(r);
  session->ops->reply(session, cookie, out);
}

static void
on_job(struct worker_job *job)
{
  answer(container_of(job, struct request, job));
}

static void
on_slow(struct wheel_timer *timer)
{
  answer(container_of(timer, struct request, timer));
}

struct request *
request_start(struct session *session, struct network *network, struct egw_buf *text,
              void *cookie)
{
  struct request *r = calloc(1, sizeof *r);
  struct egw_slice bytes = egw_buf_slice(text);

  (void)network;
  if (r == NULL)
    abort();
  atomic_fetch_add(&kit_started, 1);
  r->session = session;
  r->cookie = cookie;
  r->body = text;
  memcpy(r->text, bytes.ptr, bytes.len < sizeof r->text ? bytes.len : sizeof r->text - 1);
  r->job.fn = on_job;
  r->timer.fn = on_slow;
  list_init(&r->job.node);
  list_append(&session->requests, &r->node);
  if (strncmp(r->text, "slow", 4) == 0)
    worker_timer_start(session->worker, &r->timer, (uint64_t)atol(r->text + 4));
  else if (strncmp(r->text, "hold", 4) != 0)
    worker_run_soon(session->worker, &r->job);
  return r;
}

void
request_run(struct request *request)
{
  if (list_empty(&request->job.node))
    return;
  list_remove(&request->job.node);
  answer(request);
}

void
request_cancel(struct request *request)
{
  atomic_fetch_add(&kit_cancelled, 1);
  forget(request);
}

void
request_cancel_all(struct session *session)
{
  struct list *node;

  while ((node = list_shift(&session->requests)) != NULL)
    request_cancel(container_of(node, struct request, node));
}

void
request_start_waiting(struct session *session)
{
  (void)session;
}

/* --- what else the listeners ask for -------------------------------------------------- */

void
push_session_gone(struct session *session)
{
  (void)session;
}

struct network *
gateway_network(struct gateway *gateway, const char *path, size_t len)
{
  if ((len == 1 && path[0] == '/') || (len == 5 && memcmp(path, "/main", 5) == 0))
    return (struct network *)(void *)gateway; /* never looked into */
  return NULL;
}

int
admin_answer(struct gateway *gateway, const char *method, const char *path,
             struct admin_answer *out)
{
  (void)gateway;
  out->status = strcmp(path, "/health") == 0 ? 200 : 404;
  out->content_type = "text/plain";
  out->body = egw_buf_new(0);
  return out->body == NULL ? -1 : egw_buf_printf(out->body, "%s %s", method, path);
}

int
ws_start(struct listen_worker *lw)
{
  lw->ws = NULL;
  return 0;
}

void
ws_adopt(struct ws_server *ws, struct listener *listener, int fd, struct peer *peer,
         struct network *network, const struct gate_head *head, struct egw_slice rest)
{
  static const char text[] = "HTTP/1.1 101 stand-in\r\nContent-Length: 0\r\n\r\n";

  (void)ws;
  (void)network;
  (void)head;
  (void)rest;
  atomic_fetch_add(&kit_websockets, 1);
  if (send(fd, text, sizeof text - 1, MSG_NOSIGNAL) < 0)
    abort();
  peer_release(listener, peer);
  peer->counted = false;
  close(fd);
}

void
ws_drain(struct ws_server *ws)
{
  (void)ws;
}

void
ws_stop(struct ws_server *ws)
{
  (void)ws;
}

int
ipc_start(struct listen_worker *lw)
{
  lw->ipc = NULL;
  return 0;
}

void
ipc_drain(struct ipc_server *ipc)
{
  (void)ipc;
}

void
ipc_stop(struct ipc_server *ipc)
{
  (void)ipc;
}

/* --- the kit -------------------------------------------------------------------------- */

void
kit_init(struct kit *kit)
{
  memset(kit, 0, sizeof *kit);
  sem_init(&kit_gate, 0, 0);
  for (int i = 0; i < 2; i++)
    kit->listeners[i] = (struct conf_listener){
      .address = "127.0.0.1",
      .http = true,
      .websocket = true,
      .limits = { .max_connections = 1000, .max_connections_per_client = 1000,
                  .max_request = 1 << 20, .head_timeout = 5000, .body_timeout = 5000,
                  .handshake_timeout = 5000, .idle_timeout = 10000, .write_timeout = 10000 },
    };
  kit->conf.listeners = kit->listeners;
  kit->conf.listener_count = 1;
}

static void *
run(void *arg)
{
  struct kit *kit = arg;

  worker_loop(&kit->worker);
  return NULL;
}

void
kit_start(struct kit *kit)
{
  signal(SIGPIPE, SIG_IGN); /* as the gateway does */
  if (listen_open(&kit->gateway.listeners, &kit->conf, 1) != 0 ||
      worker_init(&kit->worker, &kit->gateway, 0, 1) != 0 ||
      listen_worker_start(&kit->worker, &kit->gateway.listeners) != 0 ||
      pthread_create(&kit->thread, NULL, run, kit) != 0) {
    printf("Bail out! the worker did not start\n");
    exit(1);
  }
}

uint16_t
kit_port(const struct kit *kit)
{
  return kit->gateway.listeners.v[0].port;
}

int64_t
kit_refused(const struct kit *kit, enum refusal why)
{
  return metric_read(&kit->worker.metrics->refused[why]);
}

struct question {
  struct kit *kit;
  const struct conf_limits *limits;
  unsigned sessions;
  atomic_int done;
};

static void
on_ask(void *arg)
{
  struct question *q = arg;

  q->sessions = listen_worker_sessions(&q->kit->worker);
  atomic_store(&q->done, 1);
}

static void
ask(struct kit *kit, void (*fn)(void *arg), struct question *q)
{
  q->kit = kit;
  if (egw_post(&kit->worker, fn, q) != 0 || !kit_wait(&q->done, 1)) {
    printf("Bail out! the worker does not answer\n");
    exit(1);
  }
}

unsigned
kit_sessions(struct kit *kit)
{
  struct question q = { .sessions = 0 };

  ask(kit, on_ask, &q);
  return q.sessions;
}

static void
on_limit(void *arg)
{
  struct question *q = arg;

  q->kit->listeners[0].limits = *q->limits;
  atomic_store(&q->done, 1);
}

void
kit_limit(struct kit *kit, const struct conf_limits *limits)
{
  struct question q = { .limits = limits };

  ask(kit, on_limit, &q);
}

static void
on_drain(void *arg)
{
  struct question *q = arg;

  listen_worker_drain(&q->kit->worker);
  atomic_store(&q->done, 1);
}

void
kit_drain(struct kit *kit)
{
  struct question q = { .sessions = 0 };

  ask(kit, on_drain, &q);
}

static void
on_stop(void *arg)
{
  struct question *q = arg;
  struct egw_worker *worker = &q->kit->worker;

  atomic_store(&q->done, 1);
  listen_worker_stop(worker, worker_close);
}

void
kit_stop(struct kit *kit)
{
  struct question q = { .sessions = 0 };

  ask(kit, on_stop, &q);
  pthread_join(kit->thread, NULL);
  worker_free(&kit->worker);
  listen_close(&kit->gateway.listeners);
}

bool
kit_wait(const atomic_int *counter, int value)
{
  const struct timespec pause = { .tv_nsec = 1000000 };

  for (int i = 0; i < KIT_WAIT && atomic_load(counter) < value; i++)
    nanosleep(&pause, NULL);
  return atomic_load(counter) >= value;
}
