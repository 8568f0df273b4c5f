/* SPDX-License-Identifier: MIT */
/* A node for tests: sockets, threads, requests. See test-node.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <ethrpc-gw/json.h>
#include "test-node-parts.h"

/* --- bytes ------------------------------------------------------------------------------ */

bool
peer_read(struct node_peer *p, void *bytes, size_t len)
{
  char *at = bytes;

  while (len > 0) {
    ssize_t n = p->ssl != NULL ? SSL_read(p->ssl, at, len > 65536 ? 65536 : (int)len)
                               : recv(p->fd, at, len, 0);

    if (n <= 0)
      return false;
    at += n;
    len -= (size_t)n;
  }
  return true;
}

bool
peer_write(struct node_peer *p, const void *bytes, size_t len)
{
  const char *at = bytes;

  while (len > 0) {
    ssize_t n = p->ssl != NULL ? SSL_write(p->ssl, at, len > 65536 ? 65536 : (int)len)
                               : send(p->fd, at, len, MSG_NOSIGNAL);

    if (n <= 0)
      return false;
    at += n;
    len -= (size_t)n;
  }
  return true;
}

/* One message in pieces of `piece` bytes (0: whole). */
static bool
peer_send(struct node_peer *p, const char *text, size_t len, size_t piece)
{
  if (p->ws)
    return ws_send(p, text, len, piece);
  while (len > 0) {
    size_t n = piece == 0 || piece > len ? len : piece;

    if (!peer_write(p, text, n))
      return false;
    text += n;
    len -= n;
  }
  return peer_write(p, "\n", 1);
}

static bool
peer_line(struct node_peer *p)
{
  char c = 0;

  p->len = 0;
  while (peer_read(p, &c, 1) && c != '\n') {
    if (p->len + 2 > p->room)
      p->text = realloc(p->text, p->room = p->room * 2 + 4096);
    p->text[p->len++] = c;
  }
  if (p->text != NULL)
    p->text[p->len] = 0;
  return c == '\n';
}

/* --- what the methods do ---------------------------------------------------------------- */

static unsigned long long
number_at(struct egw_slice params, size_t index)
{
  uint64_t n = 0;

  if (egw_json_u64(egw_json_element(params, index), &n) != 0)
    return 0;
  return n;
}

static bool
answer(struct node_peer *p, unsigned long long id, struct egw_slice result, size_t piece)
{
  char *text;
  int n = asprintf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":%.*s}", id,
                   (int)result.len, result.ptr);
  bool sent = n > 0 && peer_send(p, text, (size_t)n, piece);

  free(text);
  return sent;
}

static bool
answer_big(struct node_peer *p, unsigned long long id, size_t size, size_t piece)
{
  char *result = malloc(size + 2);
  bool sent;

  memset(result, 'x', size + 2);
  result[0] = result[size + 1] = '"';
  sent = answer(p, id, (struct egw_slice){ result, size + 2 }, piece);
  free(result);
  return sent;
}

static bool
release_late(struct node_peer *p)
{
  bool sent = true;

  while (p->late_count > 0 && sent)
    sent = answer(p, p->late[--p->late_count], EGW_LIT("\"late\""), 0);
  return sent;
}

static bool
push(struct node_peer *p, unsigned long long n)
{
  char text[64];

  for (unsigned long long i = 1; i <= n; i++) {
    int len = snprintf(text, sizeof text, "{\"method\":\"event\",\"params\":%llu}", i);

    if (!peer_send(p, text, (size_t)len, 0))
      return false;
  }
  return true;
}

/* Nothing is read; ends when the connection is shut down by node_kill(). */
static bool
freeze(struct node_peer *p)
{
  while (!p->killed && !p->node->stopping)
    poll(NULL, 0, 5);
  return false;
}

static bool
before_answer(struct node_peer *p, struct egw_slice method, struct egw_slice params,
              unsigned long long id)
{
  static const char noise[] = "not json";

  if (egw_json_equals(method, "push"))
    return push(p, number_at(params, 0));
  if (egw_json_equals(method, "noise"))
    return peer_send(p, noise, sizeof noise - 1, 0);
  if (egw_json_equals(method, "empty"))
    return peer_send(p, "", 0, 0);
  if (egw_json_equals(method, "release"))
    return release_late(p);
  if (egw_json_equals(method, "early"))
    return answer(p, id + 1, EGW_LIT("\"early\""), 0);
  return true;
}

/* False: the connection is to be closed. */
static bool
serve_one(struct node_peer *p)
{
  struct egw_slice m = { p->text, p->len };
  struct egw_slice method = egw_json_member(m, "method");
  struct egw_slice params = egw_json_member(m, "params");
  uint64_t id = 0;

  p->node->requests++;
  (void)egw_json_u64(egw_json_member(m, "id"), &id);
  if (egw_json_equals(method, "drop"))
    return false;
  if (egw_json_equals(method, "mute"))
    return true;
  if (egw_json_equals(method, "freeze"))
    return freeze(p);
  if (egw_json_equals(method, "late")) {
    p->late[p->late_count++] = id;
    return true;
  }
  if (egw_json_equals(method, "big"))
    return answer_big(p, id, (size_t)number_at(params, 0), (size_t)number_at(params, 1));
  if (egw_json_equals(method, "dribble"))
    return answer(p, id, params, 1);
  return before_answer(p, method, params, id) && answer(p, id, params, 0);
}

static void
serve(struct node_peer *p)
{
  struct node *node = p->node;

  if (p->mode == NODE_SILENT) {
    freeze(p);
    return;
  }
  if (p->ws && !ws_accept(p))
    return;
  node->established++;
  while ((p->ws ? ws_receive(p) : peer_line(p)) && serve_one(p))
    ;
}

/* --- threads ---------------------------------------------------------------------------- */

static void *
peer_thread(void *arg)
{
  struct node_peer *p = arg;
  struct node *node = p->node;

  if (node->tls != NULL) {
    p->ssl = SSL_new(node->tls);
    SSL_set_fd(p->ssl, p->fd);
  }
  if (p->ssl == NULL || p->mode == NODE_SILENT || SSL_accept(p->ssl) == 1)
    serve(p);
  if (p->ssl != NULL)
    SSL_free(p->ssl);
  pthread_mutex_lock(&node->lock);
  close(p->fd);
  p->fd = -1;
  node->live--;
  pthread_mutex_unlock(&node->lock);
  free(p->text);
  p->text = NULL;
  return NULL;
}

static void
start_peer(struct node *node, int fd)
{
  struct node_peer *p = calloc(1, sizeof *p);

  p->node = node;
  p->fd = fd;
  p->mode = node->mode;
  p->ws = node->path[0] == 0;
  node->live++;
  pthread_mutex_lock(&node->lock);
  p->next = node->peers;
  node->peers = p;
  pthread_create(&p->thread, NULL, peer_thread, p);
  pthread_mutex_unlock(&node->lock);
}

/* Joins the threads whose connection has ended, or all. */
static void
reap(struct node *node, bool all)
{
  struct node_peer *done = NULL, **at, *p;

  pthread_mutex_lock(&node->lock);
  for (at = &node->peers; (p = *at) != NULL;) {
    if (!all && p->fd >= 0) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    p->next = done;
    done = p;
  }
  pthread_mutex_unlock(&node->lock);
  while ((p = done) != NULL) {
    done = p->next;
    pthread_join(p->thread, NULL);
    free(p);
  }
}

static void *
accept_thread(void *arg)
{
  struct node *node = arg;
  struct linger hard = { 1, 0 };
  int fd;

  while ((fd = accept4(node->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
    node->accepted++;
    if (node->mode == NODE_RESET) {
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      close(fd);
    } else {
      start_peer(node, fd);
    }
    reap(node, false);
  }
  return NULL;
}

/* --- life ------------------------------------------------------------------------------- */

static int
listen_unix(struct node *node)
{
  struct sockaddr_un sa = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  memcpy(sa.sun_path, node->path, sizeof node->path);
  unlink(node->path);
  if (bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 && listen(fd, 64) == 0)
    return fd;
  close(fd);
  return -1;
}

static int
listen_tcp(struct node *node)
{
  struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)node->port) };
  socklen_t len = sizeof sa;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

  sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&sa, sizeof sa) == 0 && listen(fd, 64) == 0
      && getsockname(fd, (struct sockaddr *)&sa, &len) == 0) {
    node->port = ntohs(sa.sin_port);
    return fd;
  }
  close(fd);
  return -1;
}

struct node *
node_new(const char *path, unsigned port, void *tls)
{
  struct node *node = calloc(1, sizeof *node);

  node->port = port;
  node->tls = tls;
  pthread_mutex_init(&node->lock, NULL);
  if (path != NULL)
    snprintf(node->path, sizeof node->path, "%s", path);
  node->listener = path != NULL ? listen_unix(node) : listen_tcp(node);
  if (node->listener < 0) {
    free(node);
    return NULL;
  }
  pthread_create(&node->thread, NULL, accept_thread, node);
  return node;
}

void
node_kill(struct node *node)
{
  pthread_mutex_lock(&node->lock);
  for (struct node_peer *p = node->peers; p != NULL; p = p->next) {
    p->killed = true;
    if (p->fd >= 0)
      shutdown(p->fd, SHUT_RDWR);
  }
  pthread_mutex_unlock(&node->lock);
}

void
node_free(struct node *node)
{
  node->stopping = true;
  shutdown(node->listener, SHUT_RDWR);
  pthread_join(node->thread, NULL);
  close(node->listener);
  if (node->path[0] != 0)
    unlink(node->path);
  node_kill(node);
  reap(node, true);
  pthread_mutex_destroy(&node->lock);
  free(node);
}
