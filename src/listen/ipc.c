/* SPDX-License-Identifier: MIT */
/* IPC: unix sockets, accepted on every worker. Who may come in is decided by the socket's mode
 * and by the peer's uid. */
#include "listen/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "gateway/gateway.h"

#define ACCEPT_TURN 8   /* connections taken in one turn; the other workers want some too */
#define PAUSE_MS 100    /* out of descriptors: accepting rests this long */

/* --- peers ---------------------------------------------------------------------------- */

static bool
uid_allowed(const struct ipc_door *door, uid_t uid)
{
  size_t i;

  for (i = 0; i < door->uid_count; i++)
    if (door->uids[i] == uid)
      return true;
  return door->uids == NULL;
}

static bool
uid_parse(const char *word, uid_t *uid)
{
  struct passwd passwd, *found = NULL;
  unsigned long n;
  char text[4096], *end;

  errno = 0;
  n = strtoul(word, &end, 10);
  if (word[0] >= '0' && word[0] <= '9' && *end == '\0' && errno == 0 && n < (uid_t)-1) {
    *uid = (uid_t)n;
    return true;
  }
  if (getpwnam_r(word, &passwd, text, sizeof(text), &found) != 0 || found == NULL)
    return false;
  *uid = found->pw_uid;
  return true;
}

/* The configured uids, or our own and root. */
static int
read_uids(struct ipc_door *door)
{
  const struct egw_strings *words = &door->listener->conf->uids;
  size_t i;

  for (i = 0; i < words->n; i++)
    if (strcmp(words->v[i], "*") == 0)
      return 0;
  door->uids = calloc(words->n + 2, sizeof(*door->uids));
  if (door->uids == NULL)
    return -1;
  if (words->n == 0) {
    door->uids[0] = geteuid();
    door->uid_count = 2; /* the other one is 0 already: root */
  }
  for (i = 0; i < words->n; i++) {
    if (!uid_parse(words->v[i], &door->uids[i])) {
      egw_log(EGW_ERROR, "ipc", "%s: no such user: %s", door->listener->name, words->v[i]);
      return -1;
    }
    door->uid_count++;
  }
  return 0;
}

/* Who it is, and whether it may come in. */
static bool
admit(struct ipc_door *door, int fd, struct peer *peer)
{
  struct listen_worker *lw = door->server->lw;
  struct ucred who;
  socklen_t len = sizeof(who);

  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
    return false;
  snprintf(peer->text, sizeof(peer->text), "uid %lu", (unsigned long)who.uid);
  peer->has_uid = true;
  peer->uid = who.uid;
  if (!uid_allowed(door, who.uid)) {
    metric_add(&lw->worker->metrics->refused[REFUSED_PEER], 1);
    egw_log(EGW_INFO, "ipc", "%s: refused uid %lu, pid %ld", door->listener->name,
            (unsigned long)who.uid, (long)who.pid);
    return false;
  }
  egw_log(EGW_DEBUG, "ipc", "%s: connection of uid %lu, pid %ld", door->listener->name,
          (unsigned long)who.uid, (long)who.pid);
  return listen_admit(lw, door->listener, peer);
}

/* --- accepting ------------------------------------------------------------------------ */

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void
on_pause_over(struct wheel_timer *timer)
{
  struct ipc_door *door = container_of(timer, struct ipc_door, pause);

  uv_poll_start(&door->poll, UV_READABLE, on_acceptable);
}

/* Out of descriptors (or memory): a connection that waits would wake the loop for ever. */
static void
pause_door(struct ipc_door *door)
{
  struct egw_worker *worker = door->server->lw->worker;

  metric_add(&worker->metrics->refused[REFUSED_DESCRIPTORS], 1);
  uv_poll_stop(&door->poll);
  worker_timer_start(worker, &door->pause, PAUSE_MS);
}

/* False: no more for now. */
static bool
accept_one(struct ipc_door *door)
{
  struct peer peer = { .addr.ss_family = AF_UNIX, .addr_len = sizeof(sa_family_t) };
  int fd = accept4(door->listener->fds[0], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      pause_door(door);
    return errno == EINTR || errno == ECONNABORTED;
  }
  if (admit(door, fd, &peer))
    ipc_session_open(door->server, door->listener, fd, &peer);
  else
    close(fd);
  return true;
}

static void
on_acceptable(uv_poll_t *poll, int status, int events)
{
  struct ipc_door *door = poll->data;
  unsigned i;

  (void)events;
  if (status < 0) {
    egw_log(EGW_ERROR, "ipc", "%s: %s", door->listener->name, uv_strerror(status));
    pause_door(door);
    return;
  }
  for (i = 0; i < ACCEPT_TURN && accept_one(door); i++)
    ;
}

/* --- life ----------------------------------------------------------------------------- */

static void
free_door(struct ipc_door *door)
{
  free(door->uids);
  free(door);
}

static int
open_door(struct ipc_server *server, struct listener *listener)
{
  struct ipc_door *door = calloc(1, sizeof(*door));

  if (door == NULL)
    return -1;
  door->server = server;
  door->listener = listener;
  door->pause.fn = on_pause_over;
  list_init(&door->pause.node);
  door->poll.data = door;
  if (read_uids(door) != 0 ||
      uv_poll_init(&server->lw->worker->loop, &door->poll, listener->fds[0]) != 0) {
    free_door(door);
    return -1;
  }
  list_append(&server->doors, &door->node);
  server->handles++;
  return uv_poll_start(&door->poll, UV_READABLE, on_acceptable) == 0 ? 0 : -1;
}

static void
on_gone(struct worker_job *job)
{
  struct ipc_server *server = container_of(job, struct ipc_server, gone);
  struct listen_worker *lw = server->lw;

  lw->ipc = NULL;
  free(server);
  listen_part_closed(lw);
}

int
ipc_start(struct listen_worker *lw)
{
  struct ipc_server *server = malloc(sizeof(*server));
  size_t i;

  if (server == NULL)
    return -1;
  memset(server, 0, offsetof(struct ipc_server, read_buffer));
  server->lw = lw;
  server->gone.fn = on_gone;
  list_init(&server->gone.node);
  list_init(&server->doors);
  list_init(&server->sessions);
  lw->ipc = server; /* from here on ipc_stop() cleans up */
  for (i = 0; i < lw->listeners->n; i++) {
    struct listener *listener = &lw->listeners->v[i];

    if (!listener->admin && listener->conf->path != NULL && open_door(server, listener) != 0)
      return -1;
  }
  return 0;
}

void
ipc_handle_gone(struct ipc_server *server)
{
  if (--server->handles == 0 && server->stopping)
    worker_run_soon(server->lw->worker, &server->gone);
}

static void
on_door_closed(uv_handle_t *handle)
{
  struct ipc_door *door = handle->data;
  struct ipc_server *server = door->server;

  free_door(door);
  ipc_handle_gone(server);
}

static void
close_doors(struct ipc_server *server)
{
  struct list *node;

  while ((node = list_shift(&server->doors)) != NULL) {
    struct ipc_door *door = container_of(node, struct ipc_door, node);

    worker_timer_stop(server->lw->worker, &door->pause);
    uv_close((uv_handle_t *)&door->poll, on_door_closed);
  }
}

void
ipc_drain(struct ipc_server *server)
{
  struct list *node, *tmp;

  close_doors(server);
  list_for_each_safe(node, tmp, &server->sessions)
    ipc_session_drain(container_of(node, struct ipc_session, node));
}

void
ipc_stop(struct ipc_server *server)
{
  if (server->stopping)
    return;
  server->stopping = true;
  server->handles++;
  close_doors(server);
  while (!list_empty(&server->sessions))
    ipc_session_cut(container_of(server->sessions.next, struct ipc_session, node));
  ipc_handle_gone(server);
}
