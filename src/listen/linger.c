/* SPDX-License-Identifier: MIT */
/* See linger.h. */
#include "listen/linger.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LINGER_MS 3000
#define LINGER_MAX 256                       /* connections of one worker */
#define LINGER_BYTES ((size_t)64 << 20)      /* read from one before it is cut */
#define LINGER_TURN 16                       /* reads of one connection in one turn */

struct linger_set {
  struct listen_worker *lw;
  struct list departing;
  unsigned handles;
  bool stopping;
  char waste[16384];
};

struct departing {
  struct list node;
  struct linger_set *linger;
  uv_poll_t poll;
  struct wheel_timer timer;
  int fd;
  size_t left;                 /* bytes that are still put up with */
};

struct linger_set *
linger_new(struct listen_worker *lw)
{
  struct linger_set *linger = calloc(1, sizeof *linger);

  if (linger == NULL)
    return NULL;
  linger->lw = lw;
  list_init(&linger->departing);
  return linger;
}

static void
leave_if_done(struct linger_set *linger)
{
  struct listen_worker *lw = linger->lw;

  if (!linger->stopping || linger->handles > 0)
    return;
  lw->linger = NULL;
  free(linger);
  listen_part_closed(lw);
}

static void
on_closed(uv_handle_t *handle)
{
  struct departing *d = handle->data;
  struct linger_set *linger = d->linger;

  free(d);
  linger->handles--;
  leave_if_done(linger);
}

static void
finish(struct departing *d)
{
  worker_timer_stop(d->linger->lw->worker, &d->timer);
  list_remove(&d->node);
  uv_close((uv_handle_t *)&d->poll, on_closed);
  close(d->fd);
}

/* Whether there may be more to read later. */
static bool
drain(struct linger_set *linger, int fd, size_t *left)
{
  for (int i = 0; i < LINGER_TURN; i++) {
    ssize_t n = recv(fd, linger->waste, sizeof linger->waste, MSG_DONTWAIT);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno == EAGAIN;
    if (n == 0 || (size_t)n > *left)
      return false;
    *left -= (size_t)n;
  }
  return true;
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
  struct departing *d = poll->data;

  (void)events;
  if (status < 0 || !drain(d->linger, d->fd, &d->left))
    finish(d);
}

static void
on_timer(struct wheel_timer *timer)
{
  finish(container_of(timer, struct departing, timer));
}

static bool
watch(struct linger_set *linger, int fd, size_t left)
{
  struct departing *d = calloc(1, sizeof *d);
  struct egw_worker *worker = linger->lw->worker;

  if (d == NULL)
    return false;
  d->linger = linger;
  d->fd = fd;
  d->left = left;
  d->poll.data = d;
  d->timer.fn = on_timer;
  if (uv_poll_init(&worker->loop, &d->poll, fd) != 0) {
    free(d);
    return false;
  }
  linger->handles++;
  list_append(&linger->departing, &d->node);
  worker_timer_start(worker, &d->timer, LINGER_MS);
  if (uv_poll_start(&d->poll, UV_READABLE | UV_DISCONNECT, on_poll) != 0)
    finish(d);
  return true;
}

void
linger_close(struct listen_worker *lw, int fd)
{
  struct linger_set *linger = lw->linger;
  size_t left = LINGER_BYTES;

  shutdown(fd, SHUT_WR);
  if (linger != NULL && drain(linger, fd, &left) && !linger->stopping &&
      linger->handles < LINGER_MAX && watch(linger, fd, left))
    return;
  close(fd);
}

void
linger_stop(struct linger_set *linger)
{
  struct list *node, *tmp;

  linger->stopping = true;
  linger->handles++; /* not freed under the walk */
  list_for_each_safe(node, tmp, &linger->departing)
    finish(container_of(node, struct departing, node));
  linger->handles--;
  leave_if_done(linger);
}
