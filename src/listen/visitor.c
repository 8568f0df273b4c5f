/* SPDX-License-Identifier: MIT */
/* A visitor: an accepted connection whose first request head is awaited. The head is looked at
 * and left in the socket, so that the HTTP server reads the same bytes from there; only for a
 * WebSocket it is taken out, since that server gets one of our making. */
#include "listen/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RETRY_MS 20 /* see wait_for_more() */

struct visitor {
  struct list node;
  struct door *door;
  struct listener *listener;
  struct peer peer;
  int fd;
  size_t seen;                 /* bytes of an incomplete head */
  bool polled, low_water;
  uv_poll_t poll;
  struct wheel_timer deadline, retry;
};

static void
on_closed(uv_handle_t *handle)
{
  struct visitor *v = handle->data;
  struct door *door = v->door;

  free(v);
  door_left(door);
}

/* Takes the visitor off the loop and frees it (now or soon); the socket is left alone. */
static void
forget(struct visitor *v)
{
  struct egw_worker *worker = v->door->lw->worker;

  list_remove(&v->node);
  worker_timer_stop(worker, &v->deadline);
  worker_timer_stop(worker, &v->retry);
  if (v->polled)
    uv_close((uv_handle_t *)&v->poll, on_closed);
  else
    free(v);
}

/* Whoever gets the socket expects to hear of each byte. */
static void
set_low_water(struct visitor *v, int bytes)
{
  if (setsockopt(v->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0)
    v->low_water = bytes > 1;
}

static void
drop(struct visitor *v)
{
  int fd = v->fd;

  peer_release(v->listener, &v->peer);
  forget(v);
  close(fd);
}

static void
refuse(struct visitor *v, const struct gate_head *head)
{
  struct listen_worker *lw = v->door->lw;
  struct refusal_text text = door_refusal(v->listener, head);
  int fd = v->fd;

  metric_add(&lw->worker->metrics->refused[head->refusal], 1);
  refusal_send(fd, &text);
  peer_release(v->listener, &v->peer);
  if (v->low_water)
    set_low_water(v, 1);
  /* One descriptor can't be polled by two handles. */
  forget(v);
  linger_close(lw, fd);
}

static void
hand_over(struct visitor *v, enum gate_kind kind, struct gate_head *head)
{
  struct listen_worker *lw = v->door->lw;
  struct egw_slice rest = { NULL, 0 };
  struct network *network = NULL;
  struct listener *listener;
  struct peer peer;
  int fd;

  if (v->low_water)
    set_low_water(v, 1);
  if (kind == GATE_WEBSOCKET) {
    network = door_network(v->door, v->listener, head);
    if (network == NULL) {
      refuse(v, head);
      return;
    }
    /* The bytes are in the socket: they were just seen there. */
    if (recv(v->fd, v->door->head, head->length, MSG_DONTWAIT) != (ssize_t)head->length) {
      drop(v);
      return;
    }
  }
  listener = v->listener;
  peer = v->peer;
  fd = v->fd;
  /* One descriptor can't be polled by two handles. */
  forget(v);
  if (kind == GATE_WEBSOCKET)
    ws_adopt(lw->ws, listener, fd, &peer, network, head, rest);
  else
    http_adopt(lw->http, listener, fd, &peer);
}

static void look(struct visitor *v);

static void
on_readable(uv_poll_t *poll, int status, int events)
{
  (void)status;
  (void)events;
  look(poll->data);
}

static void
on_retry(struct wheel_timer *timer)
{
  look(container_of(timer, struct visitor, retry));
}

static bool
poll_start(struct visitor *v)
{
  if (v->polled)
    return true;
  if (uv_poll_init(&v->door->lw->worker->loop, &v->poll, v->fd) != 0)
    return false;
  v->poll.data = v;
  v->polled = true;
  v->door->handles++;
  return uv_poll_start(&v->poll, UV_READABLE, on_readable) == 0;
}

/* A socket that holds half a head is readable all the time. For TCP the kernel can be asked to
 * speak up only when there is more; a unix socket is looked at again after a moment. */
static void
wait_for_more(struct visitor *v, size_t seen)
{
  v->seen = seen;
  if (!poll_start(v)) {
    drop(v);
    return;
  }
  if (seen == 0)
    return;
  if (v->peer.addr.ss_family != AF_UNIX) {
    set_low_water(v, (int)seen + 1);
    return;
  }
  uv_poll_stop(&v->poll);
  worker_timer_start(v->door->lw->worker, &v->retry, RETRY_MS);
}

/* Reads what has come so far, without taking it. */
static void
look(struct visitor *v)
{
  struct gate_head head;
  enum gate_kind kind;
  ssize_t n;

  do
    n = recv(v->fd, v->door->head, sizeof v->door->head, MSG_PEEK | MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) {
    wait_for_more(v, 0);
    return;
  }
  /* The end, an error, or (woken with nothing new) an end behind half a head. */
  if (n <= 0 || ((size_t)n == v->seen && v->low_water)) {
    drop(v);
    return;
  }
  kind = gate_check(v->listener, v->door->head, (size_t)n, &head);
  if (kind == GATE_MORE)
    wait_for_more(v, (size_t)n);
  else if (kind == GATE_REFUSED)
    refuse(v, &head);
  else
    hand_over(v, kind, &head);
}

static void
on_deadline(struct wheel_timer *timer)
{
  struct visitor *v = container_of(timer, struct visitor, deadline);
  struct gate_head head = { .status = 408, .refusal = REFUSED_TIMEOUT,
                            .why = "the request head took too long" };

  if (v->seen > 0) {
    refuse(v, &head);
    return;
  }
  metric_add(&v->door->lw->worker->metrics->refused[REFUSED_TIMEOUT], 1);
  drop(v);
}

void
visitor_accept(struct door *door, struct listener *listener, int fd, struct peer *peer)
{
  struct visitor *v = calloc(1, sizeof *v);

  if (v == NULL) {
    peer_release(listener, peer);
    close(fd);
    return;
  }
  v->door = door;
  v->listener = listener;
  v->peer = *peer;
  v->fd = fd;
  v->deadline.fn = on_deadline;
  v->retry.fn = on_retry;
  list_append(&door->visitors, &v->node);
  if (listener->conf->limits.head_timeout > 0)
    worker_timer_start(door->lw->worker, &v->deadline, listener->conf->limits.head_timeout);
  look(v);
}

void
visitors_end(struct door *door, bool waiting)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &door->visitors) {
    struct visitor *v = container_of(node, struct visitor, node);

    if (!waiting || v->seen == 0)
      drop(v);
  }
}
