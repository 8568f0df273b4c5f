/* SPDX-License-Identifier: MIT */
/* See listen-kit.h. */
#include "listen-kit.h"

#include "tap.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <libwebsockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/buf.h"

#define PIECE 10000u

/* Later versions of lws forget one descriptor when a context ends, which is at the exit of the
 * program. */
#define LWS_KEEPS (LWS_LIBRARY_VERSION_NUMBER >= 4002000 ? 1u : 0u)

struct kit kit;
unsigned kit_pongs;
static unsigned descriptors_before;

/* --- requests ------------------------------------------------------------------------- */

/* A request of a session that has not been answered, or whose answer is still open. */
struct held {
  struct list node;
  struct session *session;
  void *cookie;
  struct egw_buf *text;
  struct worker_job job;
  bool later;
  /* streaming: */
  struct out *out;
  size_t left;
  bool breaks;
};

struct request *__wrap_request_start(struct session *session, struct network *network,
                                     struct egw_buf *text, void *cookie);
void __wrap_request_cancel_all(struct session *session);

static void
held_free(struct held *h)
{
  list_remove(&h->node);
  list_remove(&h->job.node);
  egw_buf_unref(h->text);
  free(h);
}

static struct egw_buf *
filler(size_t len)
{
  struct egw_buf *buf = egw_buf_new(len);

  memset(egw_buf_room(buf, len), 'x', len);
  egw_buf_commit(buf, len);
  return buf;
}

static void
add(struct out *out, struct egw_buf *buf)
{
  if (out_add(out, buf, egw_buf_slice(buf)) != 0)
    abort();
}

static void
add_text(struct out *out, const char *text)
{
  if (out_add_copy(out, (struct egw_slice){ text, strlen(text) }) != 0)
    abort();
}

/* One piece for each room that the session makes. */
static void
on_drained(struct out *out, void *arg)
{
  struct held *h = arg;
  size_t len = h->left < PIECE ? h->left : PIECE;

  if (out->bytes > 4 * PIECE || h->session == NULL)
    return;
  if (len > 0)
    add(out, filler(len));
  h->left -= len;
  if (h->left > 0)
    worker_run_soon(&kit.worker, &h->job);
  else {
    out->drained = NULL;
    out->open = false;
    out->aborted = h->breaks;
    if (!h->breaks)
      add_text(out, "\"}");
  }
  if (out->changed != NULL)
    out->changed(out, out->changed_arg);
  if (h->left == 0)
    held_free(h);
}

static void
answer(struct held *h)
{
  struct egw_slice text = egw_buf_slice(h->text);
  struct out *out = out_new(4, 64);
  char copy[64] = "";
  const char *word;

  memcpy(copy, text.ptr, text.len < 63 ? text.len : 63);
  add_text(out, "{\"result\":");
  if ((word = strstr(copy, "big ")) != NULL) {
    add_text(out, "\"");
    add(out, filler(strtoul(word + 4, NULL, 10)));
    add_text(out, "\"}");
  } else if ((word = strstr(copy, "stream ")) != NULL ||
             (word = strstr(copy, "cut ")) != NULL) {
    add_text(out, "\"");
    h->left = strtoul(strchr(word, ' '), NULL, 10);
    h->breaks = word[0] == 'c';
    h->out = out;
    out->open = true;
    out->drained = on_drained;
    out->arg = h;
    h->session->ops->reply(h->session, h->cookie, out);
    worker_run_soon(&kit.worker, &h->job);
    return;
  } else if (strstr(copy, "none") != NULL) {
    out_free(out);
    out = NULL;
  } else {
    add(out, egw_buf_ref(h->text));
    add_text(out, "}");
  }
  h->session->calls_in_flight--;
  h->session->ops->reply(h->session, h->cookie, out);
  session_sent(h->session);
  held_free(h);
}

static void
on_job(struct worker_job *job)
{
  struct held *h = container_of(job, struct held, job);

  if (h->out != NULL)
    on_drained(h->out, h);
  else
    answer(h);
}

struct request *
__wrap_request_start(struct session *session, struct network *network, struct egw_buf *text,
                     void *cookie)
{
  struct held *h = calloc(1, sizeof(*h));
  struct egw_slice s = egw_buf_slice(text);

  (void)network;
  h->session = session;
  h->cookie = cookie;
  h->text = text;
  h->job.fn = on_job;
  list_init(&h->job.node);
  h->later = s.len >= 5 && memmem(s.ptr, s.len, "later", 5) != NULL;
  list_append(&kit.held, &h->node);
  session->calls_in_flight++;
  atomic_fetch_add(&kit.requests, 1);
  if (!h->later)
    worker_run_soon(&kit.worker, &h->job);
  return (struct request *)(void *)h;
}

void
__wrap_request_cancel_all(struct session *session)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &kit.held) {
    struct held *h = container_of(node, struct held, node);

    if (h->session != session)
      continue;
    atomic_fetch_add(&kit.cancelled, 1);
    held_free(h);
  }
}

/* --- the worker ----------------------------------------------------------------------- */

struct errand {
  void (*fn)(void *arg);
  void *arg;
  atomic_bool done;
};

static void
run_errand(void *arg)
{
  struct errand *e = arg;

  e->fn(e->arg);
  atomic_store(&e->done, true);
}

void
kit_call(void (*fn)(void *arg), void *arg)
{
  struct errand e = { .fn = fn, .arg = arg };

  atomic_init(&e.done, false);
  if (egw_post(&kit.worker, run_errand, &e) != 0)
    abort();
  while (!atomic_load(&e.done))
    poll(NULL, 0, 1);
}

static void
do_release(void *arg)
{
  struct list *node, *tmp;

  (void)arg;
  list_for_each_safe(node, tmp, &kit.held) {
    struct held *h = container_of(node, struct held, node);

    if (h->later)
      answer(h);
  }
}

void
kit_release(void)
{
  kit_call(do_release, NULL);
}

static void
do_push(void *arg)
{
  size_t bytes = *(size_t *)arg;
  struct list *node;

  list_for_each(node, &kit.held) {
    struct held *h = container_of(node, struct held, node);
    struct out *out = out_new(1, 0);

    add(out, filler(bytes));
    h->session->ops->push(h->session, out);
  }
}

void
kit_push(size_t bytes)
{
  kit_call(do_push, &bytes);
}

static void
do_drain(void *arg)
{
  struct listen_worker *lw = kit.worker.listen;

  (void)arg;
  lw->draining = true;
  ws_drain(lw->ws);
  ipc_drain(lw->ipc);
}

void
kit_drain(void)
{
  kit_call(do_drain, NULL);
}

static void
do_sessions(void *arg)
{
  *(unsigned *)arg = kit.worker.listen->sessions;
}

unsigned
kit_sessions(void)
{
  unsigned n = 0;

  kit_call(do_sessions, &n);
  return n;
}

int64_t
kit_refused(enum refusal refusal)
{
  return metric_read(&kit.worker.metrics->refused[refusal]);
}

static void
on_stopped(struct egw_worker *worker)
{
  worker_close(worker);
}

static void
do_stop(void *arg)
{
  struct listen_worker *lw = kit.worker.listen;

  (void)arg;
  lw->parts_open = 2;
  lw->stopped = on_stopped;
  ws_stop(lw->ws);
  ipc_stop(lw->ipc);
}

static void *
run_worker(void *arg)
{
  (void)arg;
  worker_loop(&kit.worker);
  return NULL;
}

struct conf_limits *
kit_limits(void)
{
  struct conf_limits *limits = &kit.conf[KIT_WS].limits;

  if (limits->max_request == 0)
    *limits = (struct conf_limits){
      .max_request = 1 << 20,
      .max_queue = 1 << 20,
      .max_in_flight = 64,
      .body_timeout = 10000,
      .handshake_timeout = 10000,
      .write_timeout = 10000,
    };
  return limits;
}

static struct egw_strings uids;

void
kit_uids(const char *const *v, size_t n)
{
  uids = (struct egw_strings){ v, n };
}

static void
open_unix(struct listener *listener)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

  strcpy(kit.dir, "/tmp/egw-listen-XXXXXX");
  if (mkdtemp(kit.dir) == NULL)
    abort();
  snprintf(kit.path, sizeof(kit.path), "%s/x.ipc", kit.dir);
  snprintf(un.sun_path, sizeof(un.sun_path), "%s", kit.path);
  if (bind(fd, (struct sockaddr *)&un, sizeof(un)) != 0 || listen(fd, 64) != 0)
    abort();
  listener->fds = malloc(sizeof(int));
  listener->fds[0] = fd;
  listener->fd_count = 1;
}

static void
open_tcp(void)
{
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

  kit.accept_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(kit.accept_fd, (struct sockaddr *)&in, sizeof(in)) != 0 ||
      listen(kit.accept_fd, 64) != 0)
    abort();
}

static void
start_parts(void)
{
  struct listen_worker *lw = calloc(1, sizeof(*lw));

  lw->worker = &kit.worker;
  lw->listeners = &kit.all;
  kit.worker.listen = lw;
  if (ws_start(lw) != 0 || ipc_start(lw) != 0)
    abort();
}

void
kit_start(void)
{
  struct conf_limits limits = *kit_limits();
  int i;

  descriptors_before = kit_descriptors();
  memset(&kit, 0, sizeof(kit));
  list_init(&kit.held);
  kit.network.name = "main";
  kit.gateway.networks = &kit.network;
  kit.gateway.network_count = 1;
  kit.all = (struct listeners){ kit.listeners, 2 };
  for (i = 0; i < 2; i++) {
    kit.conf[i].limits = limits;
    kit.listeners[i].conf = &kit.conf[i];
    kit.listeners[i].local = true;
    snprintf(kit.listeners[i].name, sizeof(kit.listeners[i].name), i == KIT_WS ? "ws" : "ipc");
    kit.listeners[i].clients = client_counts_new();
  }
  kit.conf[KIT_WS].websocket = true;
  kit.conf[KIT_IPC].path = "x.ipc";
  kit.conf[KIT_IPC].uids = uids;
  open_unix(&kit.listeners[KIT_IPC]);
  open_tcp();
  if (worker_init(&kit.worker, &kit.gateway, 0, 1) != 0)
    abort();
  start_parts();
  if (pthread_create(&kit.thread, NULL, run_worker, NULL) != 0)
    abort();
}

/* What must be even at the end; NULL: it is. */
static const char *
uneven(void)
{
  const struct metrics *m = kit.worker.metrics;
  int64_t open = 0;
  int i;

  for (i = 0; i < CLIENT_KINDS; i++)
    open += metric_read(&m->sessions_opened[i]) - metric_read(&m->sessions_closed[i]);
  if (open != 0)
    return "a session was not closed";
  if (metric_read(&m->queue_bytes) != 0)
    return "bytes are counted as queued";
  if (kit.gateway.budget.used != 0)
    return "the budget is not even";
  if (atomic_load(&kit.listeners[KIT_WS].connections) != 0 ||
      atomic_load(&kit.listeners[KIT_IPC].connections) != 0)
    return "a place was not given back";
  return list_empty(&kit.held) ? NULL : "a request is left";
}

const char *
kit_stop(unsigned clients)
{
  struct errand e = { .fn = do_stop };
  const char *why;
  unsigned left;
  int i;

  if (egw_post(&kit.worker, run_errand, &e) != 0)
    abort();
  pthread_join(kit.thread, NULL);
  why = uneven();
  worker_free(&kit.worker);
  close(kit.accept_fd);
  close(kit.listeners[KIT_IPC].fds[0]);
  free(kit.listeners[KIT_IPC].fds);
  for (i = 0; i < 2; i++)
    client_counts_free(kit.listeners[i].clients);
  unlink(kit.path);
  rmdir(kit.dir);
  memset(&kit.conf, 0, sizeof(kit.conf));
  left = kit_descriptors() - clients - descriptors_before;
  if (why == NULL && left > LWS_KEEPS)
    why = "a descriptor is left";
  return why;
}

unsigned
kit_descriptors(void)
{
  DIR *dir = opendir("/proc/self/fd");
  unsigned n = 0;

  while (readdir(dir) != NULL)
    n++;
  closedir(dir);
  return n;
}

/* --- clients -------------------------------------------------------------------------- */

static bool
await(int fd, short events)
{
  struct pollfd p = { .fd = fd, .events = events };

  return poll(&p, 1, KIT_WAIT) == 1;
}

void
kit_send(int fd, const void *bytes, size_t len)
{
  const char *at = bytes;

  while (len > 0) {
    ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

    if (n <= 0)
      return;
    at += n;
    len -= (size_t)n;
  }
}

long
kit_read(int fd, void *bytes, size_t len)
{
  ssize_t n;

  if (!await(fd, POLLIN))
    return -1;
  n = recv(fd, bytes, len, 0);
  return n < 0 ? -2 : n;
}

bool
kit_read_all(int fd, void *bytes, size_t len)
{
  char *at = bytes;

  while (len > 0) {
    long n = kit_read(fd, at, len);

    if (n <= 0)
      return false;
    at += n;
    len -= (size_t)n;
  }
  return true;
}

bool
kit_read_line(int fd, char *line, size_t size)
{
  size_t n = 0;

  while (n < size - 1) {
    if (!kit_read_all(fd, line + n, 1))
      return false;
    if (line[n] == '\n') {
      line[n] = '\0';
      return true;
    }
    n++;
  }
  return false;
}

struct adoption {
  int fd;
  struct egw_slice rest;
};

static void
do_adopt(void *arg)
{
  struct adoption *a = arg;
  struct listener *listener = &kit.listeners[KIT_WS];
  struct gate_head head = { .ws_key = EGW_LIT("dGhlIHNhbXBsZSBub25jZQ==") };
  struct peer peer = { .addr.ss_family = AF_UNSPEC, .text = "127.0.0.1" };

  if (listen_admit(kit.worker.listen, listener, &peer))
    ws_adopt(kit.worker.listen->ws, listener, a->fd, &peer, &kit.network, &head, a->rest);
}

/* The answer to the handshake, and that its key is right (RFC 6455 1.3). */
static bool
read_handshake(int fd)
{
  char line[256];
  bool first = true, accepted = false;

  while (kit_read_line(fd, line, sizeof(line))) {
    if (first && strncmp(line, "HTTP/1.1 101 ", 13) != 0)
      return false;
    first = false;
    if (strcmp(line, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r") == 0)
      accepted = true;
    if (strcmp(line, "\r") == 0)
      return accepted;
  }
  return false;
}

int
kit_connect_with(const char *rest, size_t len)
{
  struct sockaddr_in in;
  socklen_t size = sizeof(in);
  struct adoption a = { .rest = { rest, len } };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  getsockname(kit.accept_fd, (struct sockaddr *)&in, &size);
  if (connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0)
    return -1;
  a.fd = accept4(kit.accept_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  kit_call(do_adopt, &a);
  if (read_handshake(fd))
    return fd;
  close(fd);
  return -1;
}

int
kit_connect(int which)
{
  struct sockaddr_un un = { .sun_family = AF_UNIX };
  int fd;

  if (which == KIT_WS)
    return kit_connect_with(NULL, 0);
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(un.sun_path, sizeof(un.sun_path), "%s", kit.path);
  if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
    return fd;
  close(fd);
  return -1;
}

bool
kit_eventually(bool (*fn)(void *arg), void *arg)
{
  unsigned tries;

  for (tries = 0; tries < KIT_WAIT / 5; tries++) {
    if (fn(arg))
      return true;
    poll(NULL, 0, 5);
  }
  return false;
}

/* --- frames --------------------------------------------------------------------------- */

void
kit_frame_send(int fd, unsigned op, bool fin, const void *bytes, size_t len)
{
  static const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
  unsigned char *frame = malloc(len + 14), *at = frame;
  size_t i, extra = len < 126 ? 0 : len < 65536 ? 2 : 8;

  *at++ = (unsigned char)(op | (fin ? 0x80 : 0));
  *at++ = (unsigned char)(0x80 | (extra == 0 ? len : extra == 2 ? 126 : 127));
  for (i = extra; i > 0; i--)
    *at++ = (unsigned char)(len >> 8 * (i - 1));
  memcpy(at, mask, 4);
  at += 4;
  for (i = 0; i < len; i++)
    *at++ = (unsigned char)(((const unsigned char *)bytes)[i] ^ mask[i & 3]);
  kit_send(fd, frame, (size_t)(at - frame));
  free(frame);
}

bool
kit_frame_read(int fd, struct kit_frame *frame)
{
  static char *payload;
  unsigned char head[10];
  size_t i, extra;

  memset(frame, 0, sizeof(*frame));
  if (!kit_read_all(fd, head, 2) || (head[1] & 0x80) != 0)
    return false;
  frame->op = head[0] & 15;
  frame->fin = (head[0] & 0x80) != 0;
  frame->len = head[1];
  extra = head[1] == 126 ? 2 : head[1] == 127 ? 8 : 0;
  if (extra > 0) {
    if (!kit_read_all(fd, head + 2, extra))
      return false;
    for (frame->len = 0, i = 0; i < extra; i++)
      frame->len = frame->len << 8 | head[2 + i];
  }
  free(payload);
  payload = malloc(frame->len + 1);
  payload[frame->len] = '\0';
  frame->payload = payload;
  return kit_read_all(fd, payload, frame->len);
}

bool
kit_message_read(int fd, struct kit_frame *message)
{
  static char *whole;
  size_t len = 0;
  struct kit_frame f;

  free(whole);
  whole = malloc(1);
  for (bool begun = false;;) {
    if (!kit_frame_read(fd, &f))
      return false;
    if (f.op == 10) {
      kit_pongs++;
      continue;
    }
    if (f.op == 9) {
      kit_frame_send(fd, 10, true, f.payload, f.len);
      continue;
    }
    if (f.op == 8 || f.op != (begun ? 0u : 1u)) {
      *message = f;
      return f.op == 8;
    }
    begun = true;
    whole = realloc(whole, len + f.len + 1);
    memcpy(whole + len, f.payload, f.len + 1);
    len += f.len;
    if (f.fin) {
      *message = (struct kit_frame){ 1, true, len, whole };
      return true;
    }
  }
}
