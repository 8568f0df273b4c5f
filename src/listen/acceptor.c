/* SPDX-License-Identifier: MIT */
/* Accepting: caps before anything else, and descriptors running out without spinning. */
#include "listen/door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "listen/gate.h"
#include "listen/route.h"
#include "listen/tls.h"

#define ACCEPT_TURN 64         /* connections taken in one turn of the loop */
#define PAUSE_MS 100
#define LAST_MAX 1024          /* connections taken when accepting ends */

static void on_acceptable(uv_poll_t *poll, int status, int events);

/* --- refusing at the door ------------------------------------------------------------- */

/* Says 503 and closes. `linger`: such that the client can read it for sure. */
static void
turn_away(struct acceptor *acceptor, int fd, bool linger)
{
  struct refusal_text text = { .status = 503, .admin = acceptor->listener->admin };
  char *waste = acceptor->door->head;

  /* In the clear this would not be understood. */
  if (acceptor->listener->tls != NULL) {
    close(fd);
    return;
  }
  refusal_send(fd, &text);
  if (linger) {
    linger_close(acceptor->door->lw, fd);
    return;
  }
  shutdown(fd, SHUT_WR);
  /* What has come already, so that the close is not a reset. */
  if (recv(fd, waste, sizeof acceptor->door->head, MSG_DONTWAIT) < 0 && errno != EAGAIN)
    egw_log(EGW_TRACE, "listen", "%s: %s", acceptor->listener->name, strerror(errno));
  close(fd);
}

static void
on_pause_over(struct wheel_timer *timer)
{
  struct acceptor *acceptor = container_of(timer, struct acceptor, pause);

  if (acceptor->open)
    uv_poll_start(&acceptor->poll, UV_READABLE, on_acceptable);
}

static void
rest(struct acceptor *acceptor)
{
  uv_poll_stop(&acceptor->poll);
  worker_timer_start(acceptor->door->lw->worker, &acceptor->pause, PAUSE_MS);
}

/* No descriptor is left: the reserve makes room to tell the next client so, since a connection
 * that nobody accepts would wake this loop for ever. false: not even that helped. */
static bool
use_reserve(struct acceptor *acceptor)
{
  struct door *door = acceptor->door;
  int fd;

  metric_add(&door->lw->worker->metrics->refused[REFUSED_DESCRIPTORS], 1);
  if (door->reserve < 0)
    return false;
  close(door->reserve);
  fd = accept4(acceptor->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0)
    turn_away(acceptor, fd, false);
  door->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return fd >= 0 && door->reserve >= 0;
}

/* --- accepting ------------------------------------------------------------------------ */

static void
take_in(struct acceptor *acceptor, int fd, struct peer *peer)
{
  struct door *door = acceptor->door;

  if (fd >= door->fd_high) {
    metric_add(&door->lw->worker->metrics->refused[REFUSED_DESCRIPTORS], 1);
    turn_away(acceptor, fd, false);
    return;
  }
  if (!listen_admit(door->lw, acceptor->listener, peer)) {
    turn_away(acceptor, fd, true);
    return;
  }
  peer_describe(peer);
  if (acceptor->listener->tls != NULL)
    tls_accept(door->tls, acceptor->listener, fd, peer);
  else
    visitor_accept(door, acceptor->listener, fd, peer);
}

/* Whether to go on after accept4() failed. */
static bool
accept_failed(struct acceptor *acceptor)
{
  switch (errno) {
  case EAGAIN:
    return false;
  case EMFILE:
  case ENFILE:
    if (use_reserve(acceptor))
      return true;
    rest(acceptor);
    return false;
  case ENOBUFS:
  case ENOMEM:
    rest(acceptor);
    return false;
  default:
    return true; /* that one connection's trouble: aborted, unreachable */
  }
}

static void
accept_some(struct acceptor *acceptor, int max)
{
  for (int i = 0; i < max && acceptor->open; i++) {
    struct peer peer = { .addr_len = sizeof peer.addr };
    int fd = accept4(acceptor->fd, (struct sockaddr *)&peer.addr, &peer.addr_len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0)
      take_in(acceptor, fd, &peer);
    else if (!accept_failed(acceptor))
      return;
  }
}

static void
on_acceptable(uv_poll_t *poll, int status, int events)
{
  struct acceptor *acceptor = poll->data;

  (void)events;
  if (status < 0)
    egw_log(EGW_ERROR, "listen", "%s: %s", acceptor->listener->name, uv_strerror(status));
  accept_some(acceptor, ACCEPT_TURN);
}

/* --- starting and stopping ------------------------------------------------------------ */

static void
on_acceptor_closed(uv_handle_t *handle)
{
  struct acceptor *acceptor = handle->data;

  door_left(acceptor->door);
}

static void
acceptor_close(struct acceptor *acceptor)
{
  struct listener *listener = acceptor->listener;
  unsigned mine;

  if (!acceptor->open)
    return;
  acceptor->open = false;
  worker_timer_stop(acceptor->door->lw->worker, &acceptor->pause);
  uv_close((uv_handle_t *)&acceptor->poll, on_acceptor_closed);
  /* This worker's own socket, and its own entry alone: others close theirs at the same time.
   * From now on connecting is refused at once, not left waiting. */
  mine = listener->fd_count > 1 ? acceptor->door->lw->worker->index : 0;
  if (listener->fds[mine] == acceptor->fd) {
    close(acceptor->fd);
    listener->fds[mine] = -1;
  }
}

static int
acceptor_open(struct door *door, struct listener *listener, int fd)
{
  struct acceptor *acceptor = &door->acceptors[door->acceptor_count++];

  acceptor->door = door;
  acceptor->listener = listener;
  acceptor->fd = fd;
  acceptor->poll.data = acceptor;
  acceptor->pause.fn = on_pause_over;
  if (uv_poll_init(&door->lw->worker->loop, &acceptor->poll, fd) != 0)
    return -1;
  acceptor->open = true;
  door->handles++;
  return uv_poll_start(&acceptor->poll, UV_READABLE, on_acceptable) == 0 ? 0 : -1;
}

/* This worker's sockets. Unix ones belong to ipc.c, unless they are the admin listener's,
 * which worker 0 serves alone. */
static int
open_acceptors(struct door *door)
{
  struct listeners *listeners = door->lw->listeners;
  unsigned index = door->lw->worker->index;

  door->acceptors = calloc(listeners->n == 0 ? 1 : listeners->n, sizeof *door->acceptors);
  if (door->acceptors == NULL)
    return -1;
  for (size_t i = 0; i < listeners->n; i++) {
    struct listener *listener = &listeners->v[i];

    if (listener->admin ? index != 0 : listener->conf->path != NULL)
      continue;
    if (!listener->admin && index >= listener->fd_count)
      continue;
    if (acceptor_open(door, listener, listener->fds[listener->admin ? 0 : index]) != 0)
      return -1;
  }
  return 0;
}

/* A sixteenth of the descriptors is kept for upstreams and what else the gateway itself
 * opens. */
static int
find_fd_high(void)
{
  struct rlimit limit;
  rlim_t keep;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1 << 30)
    return 1 << 30;
  keep = limit.rlim_cur / 16 < 16 ? 16 : limit.rlim_cur / 16;
  return limit.rlim_cur > 2 * keep ? (int)(limit.rlim_cur - keep) : (int)keep;
}

int
door_start(struct listen_worker *lw)
{
  struct door *door = calloc(1, sizeof *door);

  if (door == NULL)
    return -1;
  door->lw = lw;
  list_init(&door->visitors);
  door->fd_high = find_fd_high();
  door->tls = tls_door_new(lw);
  if (door->tls == NULL) {
    free(door);
    return -1;
  }
  door->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
  door->handles = 1;
  lw->door = door;
  return open_acceptors(door);
}

void
door_drain(struct door *door)
{
  /* Those who have connected before are served; then the socket goes. */
  for (unsigned i = 0; i < door->acceptor_count; i++) {
    accept_some(&door->acceptors[i], LAST_MAX);
    acceptor_close(&door->acceptors[i]);
  }
  visitors_end(door, true);
  tls_door_drain(door->tls);
}

unsigned
door_pending(const struct door *door)
{
  return door == NULL || door->tls == NULL ? 0 : tls_door_flushing(door->tls);
}

void
door_left(struct door *door)
{
  struct listen_worker *lw = door->lw;

  if (--door->handles > 0 || !door->stopping)
    return;
  if (door->reserve >= 0)
    close(door->reserve);
  free(door->acceptors);
  free(door);
  lw->door = NULL;
  listen_part_closed(lw);
}

static void
on_tls_gone(struct listen_worker *lw)
{
  lw->door->tls = NULL;
  door_left(lw->door);
}

void
door_stop(struct door *door)
{
  door->stopping = true;
  for (unsigned i = 0; i < door->acceptor_count; i++)
    acceptor_close(&door->acceptors[i]);
  visitors_end(door, false);
  tls_door_stop(door->tls, on_tls_gone);
}

/* --- what the gate said --------------------------------------------------------------- */

struct network *
door_network(struct door *door, const struct listener *listener, struct gate_head *head)
{
  struct network *network = route_head(door->lw->worker->gateway, listener, head);

  if (network == NULL)
    gate_refuse(head, 404, REFUSED_HEAD, "no network by that name");
  return network;
}

struct refusal_text
door_refusal(const struct listener *listener, const struct gate_head *head)
{
  bool allowed = head->origin.ptr != NULL && gate_origin_allowed(listener, head->origin);

  return (struct refusal_text){
    .status = head->status,
    .why = head->why,
    .origin = allowed ? head->origin : (struct egw_slice){ NULL, 0 },
    .no_body = head->method.len == 4 && memcmp(head->method.ptr, "HEAD", 4) == 0,
    .admin = listener->admin,
  };
}
