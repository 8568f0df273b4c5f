/* SPDX-License-Identifier: MIT */
/* libcurl's multi handle on the worker's loop.
 *
 * libcurl says which sockets it waits for and when it wants to run (the two callbacks below);
 * the loop tells it what happened by curl_multi_socket_action(). What libcurl wants at once is
 * done in the prepare phase, just before the loop would sleep, so that a submitted request
 * goes out in the same turn; the timer is the fallback, since the worker may submit after our
 * prepare callback ran.
 *
 * A socket that libcurl loses interest in stays watched: most are wanted again soon, and each
 * change costs a system call. If it has news while idle (the node closed it), watching ends.
 * This holds for connections that have brought an answer, since libcurl closes those by
 * hub_close_socket(), never behind our back. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http.h"

#define UNACKED_MS 10000u /* sent bytes that nobody acknowledges for so long: it is dead */

static void on_timer(uv_timer_t *timer);

/* --- running libcurl ------------------------------------------------------------------ */

/* Tells the pool what ended. */
static void
hub_harvest(struct http_hub *hub)
{
  struct CURLMsg *msg;
  int left;

  while ((msg = curl_multi_info_read(hub->multi, &left)) != NULL) {
    char *job = NULL;

    if (msg->msg != CURLMSG_DONE)
      continue;
    curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &job);
    pool_ended((struct http_job *)(void *)job, msg->data.result);
  }
}

/* Exchanges that were submitted within a callback. */
static void
hub_pump(struct http_hub *hub)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &hub->links) {
    struct http_link *l = container_of(node, struct http_link, node);

    if (l->pump_wanted) {
      l->pump_wanted = false;
      pool_pump(l);
    }
  }
}

static void
hub_run(struct http_hub *hub, curl_socket_t fd, int events)
{
  int running;

  hub->busy = true;
  curl_multi_socket_action(hub->multi, fd, events, &running);
  hub->busy = false;
  hub_harvest(hub);
  hub_pump(hub);
}

/* Does what could not be done within libcurl's callbacks. */
static void
hub_catch_up(struct http_hub *hub)
{
  struct list todo, *node;

  list_init(&todo);
  list_splice(&todo, &hub->later);
  while ((node = list_shift(&todo)) != NULL)
    pool_catch_up(container_of(node, struct http_job, later));
}

void
hub_wake(struct http_hub *hub)
{
  hub->woken = hub->due = true;
  uv_timer_start(&hub->timer, on_timer, 0, 0);
}

void
hub_later(struct http_hub *hub, struct http_job *job)
{
  list_remove(&job->later);
  list_append(&hub->later, &job->later);
  hub_wake(hub);
}

/* --- time ----------------------------------------------------------------------------- */

static void
on_timer(uv_timer_t *timer)
{
  struct http_hub *hub = timer->data;

  hub->woken = hub->due = false;
  hub_catch_up(hub);
  hub_run(hub, CURL_SOCKET_TIMEOUT, 0);
}

static void
on_prepare(uv_prepare_t *prepare)
{
  struct http_hub *hub = prepare->data;

  if (!hub->due)
    return;
  uv_timer_stop(&hub->timer);
  on_timer(&hub->timer);
}

static int
want_timer(CURLM *multi, long ms, void *arg)
{
  struct http_hub *hub = arg;

  (void)multi;
  /* Running for our own sake makes libcurl tell its time anew, so none is lost. */
  if (hub->woken)
    ms = 0;
  if (ms < 0) {
    uv_timer_stop(&hub->timer);
    hub->due = false;
    return 0;
  }
  hub->due = ms == 0;
  uv_timer_start(&hub->timer, on_timer, (uint64_t)ms, 0);
  return 0;
}

/* --- sockets -------------------------------------------------------------------------- */

static struct http_sock *
sock_find(const struct http_hub *hub, int fd)
{
  return fd >= 0 && (size_t)fd < hub->sock_room ? hub->socks[fd] : NULL;
}

static void
sock_freed(uv_handle_t *handle)
{
  free(handle->data);
}

static void
sock_drop(struct http_sock *s)
{
  s->hub->socks[s->fd] = NULL;
  uv_poll_stop(&s->poll);
  uv_close((uv_handle_t *)&s->poll, sock_freed);
}

static bool
make_room(struct http_hub *hub, int fd)
{
  size_t room = (size_t)fd + 64;
  struct http_sock **grown;

  if ((size_t)fd < hub->sock_room)
    return true;
  grown = realloc(hub->socks, room * sizeof(struct http_sock *));
  if (grown == NULL)
    return false;
  for (size_t i = hub->sock_room; i < room; i++)
    grown[i] = NULL;
  hub->socks = grown;
  hub->sock_room = room;
  return true;
}

static struct http_sock *
sock_new(struct http_hub *hub, int fd)
{
  struct http_sock *s;

  if (fd < 0 || !make_room(hub, fd))
    return NULL;
  s = calloc(1, sizeof *s);
  if (s == NULL)
    return NULL;
  if (uv_poll_init(egw_worker_uv(hub->worker), &s->poll, fd) != 0) {
    free(s);
    return NULL;
  }
  s->hub = hub;
  s->fd = fd;
  s->poll.data = s;
  hub->socks[fd] = s;
  return s;
}

/* An error is passed on as "ready": libcurl then reads or writes, sees what is wrong, and may
 * send the request anew on another connection; CURL_CSELECT_ERR would end the transfer. */
static void
on_socket(uv_poll_t *poll, int status, int events)
{
  struct http_sock *s = poll->data;
  int flags = 0;

  if (status < 0)
    s->watched = 0; /* libuv stopped watching */
  if (s->want == 0) {
    uv_poll_stop(&s->poll);
    s->watched = 0;
    return;
  }
  if (status < 0 || (events & UV_READABLE) != 0)
    flags |= CURL_CSELECT_IN;
  if (status < 0 || (events & UV_WRITABLE) != 0)
    flags |= CURL_CSELECT_OUT;
  hub_run(s->hub, s->fd, flags);
}

static int
sock_watch(struct http_sock *s, int events)
{
  if (s->watched == events)
    return 0;
  if (uv_poll_start(&s->poll, events, on_socket) != 0)
    return -1;
  s->watched = events;
  return 0;
}

/* Whether the transfer's connection is one that libcurl closes by hub_close_socket(). While it
 * connects, libcurl 7.88 closes its socket without that, and we hear of it only afterwards:
 * libuv would abort over the closed descriptor. */
static bool
has_answered(CURL *easy)
{
  long status = 0;

  return curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status != 0;
}

static int
want_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
  struct http_hub *hub = arg;
  struct http_sock *s = sock_find(hub, fd);
  int events = 0;

  (void)unused;
  if (what == CURL_POLL_REMOVE || what == CURL_POLL_NONE) {
    if (s != NULL)
      s->want = 0;
    if (s != NULL && !has_answered(easy))
      sock_drop(s);
    return 0;
  }
  if (s == NULL)
    s = sock_new(hub, fd);
  if (s == NULL)
    return -1;
  s->want = what;
  if (what != CURL_POLL_OUT)
    events |= UV_READABLE;
  if (what != CURL_POLL_IN)
    events |= UV_WRITABLE;
  return sock_watch(s, events);
}

/* A connecting socket was closed behind our back, and a new one got its number before libcurl
 * told us. It may not tell us at all, since for it the number means the same as before. */
static void
sock_renew(struct http_hub *hub, int fd)
{
  struct http_sock *s = sock_find(hub, fd);
  int events;

  if (s == NULL)
    return;
  events = s->watched;
  uv_poll_stop(&s->poll);
  s->watched = 0;
  if (s->want == 0 || events == 0 || sock_watch(s, events) != 0)
    sock_drop(s);
}

curl_socket_t
hub_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
  unsigned unacked = UNACKED_MS;
  int fd;

  (void)purpose;
  fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
              address->protocol);
  if (fd < 0)
    return CURL_SOCKET_BAD;
  sock_renew(arg, fd);
  /* Fails on sockets that are not TCP: no harm. */
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof unacked);
  return fd;
}

int
hub_close_socket(void *arg, curl_socket_t fd)
{
  struct http_sock *s = sock_find(arg, fd);

  if (s != NULL)
    sock_drop(s);
  return close(fd);
}

/* --- life ----------------------------------------------------------------------------- */

static void
hub_free(struct http_hub *hub)
{
  free(hub->socks);
  free(hub);
}

static void
handle_closed(uv_handle_t *handle)
{
  struct http_hub *hub = handle->data;

  if (--hub->handles == 0)
    hub_free(hub);
}

static void
set_up_multi(struct http_hub *hub)
{
  curl_multi_setopt(hub->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
  curl_multi_setopt(hub->multi, CURLMOPT_SOCKETDATA, hub);
  curl_multi_setopt(hub->multi, CURLMOPT_TIMERFUNCTION, want_timer);
  curl_multi_setopt(hub->multi, CURLMOPT_TIMERDATA, hub);
  curl_multi_setopt(hub->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
  curl_share_setopt(hub->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

struct http_hub *
hub_new(struct egw_worker *worker)
{
  struct http_hub *hub = calloc(1, sizeof *hub);

  if (hub == NULL)
    return NULL;
  hub->worker = worker;
  list_init(&hub->later);
  list_init(&hub->links);
  hub->multi = curl_multi_init();
  hub->share = curl_share_init();
  if (hub->multi == NULL || hub->share == NULL) {
    egw_log(EGW_ERROR, "http", "libcurl has no memory");
    curl_multi_cleanup(hub->multi);
    curl_share_cleanup(hub->share);
    free(hub);
    return NULL;
  }
  set_up_multi(hub);
  uv_timer_init(egw_worker_uv(worker), &hub->timer);
  uv_prepare_init(egw_worker_uv(worker), &hub->prepare);
  hub->timer.data = hub->prepare.data = hub;
  hub->handles = 2;
  uv_prepare_start(&hub->prepare, on_prepare);
  return hub;
}

void
hub_stop(struct http_hub *hub)
{
  curl_multi_cleanup(hub->multi);
  curl_share_cleanup(hub->share);
  for (size_t i = 0; i < hub->sock_room; i++)
    if (hub->socks[i] != NULL)
      sock_drop(hub->socks[i]);
  uv_timer_stop(&hub->timer);
  uv_close((uv_handle_t *)&hub->timer, handle_closed);
  uv_close((uv_handle_t *)&hub->prepare, handle_closed);
}
