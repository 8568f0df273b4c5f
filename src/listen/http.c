/* SPDX-License-Identifier: MIT */
/* libmicrohttpd on the worker's loop; connections from adoption to end. See http.h. */
#include "listen/http.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gateway/gateway.h"

#define TURN_RUNS 8                  /* MHD_run() in one turn of the loop, at most */

/* --- running libmicrohttpd ------------------------------------------------------------ */

static void
on_idle(uv_idle_t *idle)
{
  struct http_server *server = idle->data;

  server->wanted = true;
}

/* Keeps the loop awake while there is work that no socket tells of. */
static void
keep_going(struct http_server *server)
{
  if (server->wanted == server->busy)
    return;
  server->busy = server->wanted;
  if (server->busy)
    uv_idle_start(&server->idle, on_idle);
  else
    uv_idle_stop(&server->idle);
}

/* In a turn libmicrohttpd runs when its sockets stirred, and again when answers came or it says
 * that it has more to do (it takes two runs to answer and to read on), but not for ever: other
 * sockets wait. */
static bool
on_turn(struct worker_hook *hook)
{
  struct http_server *server = container_of(hook, struct http_server, hook);
  MHD_UNSIGNED_LONG_LONG ms;
  int64_t turn = metric_read(&server->worker->metrics->loop_turns);

  if (turn != server->turn) {
    server->turn = turn;
    server->runs = 0;
  }
  if (!server->wanted || server->daemon == NULL)
    return false;
  if (server->runs >= TURN_RUNS) {
    keep_going(server);
    return false;
  }
  server->runs++;
  server->started = 0;
  server->wanted = false;
  MHD_run(server->daemon);
  if (MHD_get_timeout(server->daemon, &ms) == MHD_YES && ms == 0)
    server->wanted = true;
  keep_going(server);
  return true;
}

static void
on_epoll(uv_poll_t *poll, int status, int events)
{
  struct http_server *server = poll->data;

  (void)status;
  (void)events;
  server->wanted = true;
}

void
http_wake(struct http_conn *conn)
{
  conn->server->wanted = true;
  if (!conn->suspended)
    return;
  conn->suspended = false;
  MHD_resume_connection(conn->mhd);
}

/* --- connections ---------------------------------------------------------------------- */

static void
make_idle(struct http_conn *conn)
{
  conn->phase = HTTP_IDLE;
  conn->since = egw_now_ms(conn->server->worker);
  list_remove(&conn->node);
  list_append(&http_port_of(conn)->rested, &conn->node);
  http_sweep_soon(conn);
}

void
http_request_end(struct http_conn *conn)
{
  struct request *request = conn->request;

  conn->request = NULL;
  if (request != NULL)
    request_cancel(request);
  out_free(conn->out);
  conn->out = NULL;
  egw_buf_unref(conn->body);
  conn->body = NULL;
  if (conn->reserved > 0)
    budget_give(&conn->server->worker->gateway->budget, conn->reserved);
  conn->reserved = 0;
  conn->body_len = 0;
  conn->session.facts = NULL; /* libmicrohttpd's memory is used again */
  free(conn->notes.cache);
  free(conn->notes.story);
  conn->notes = (struct answer_notes){ .status = 0 };
  session_queue(&conn->session, 0, conn->queued);
  conn->queued = 0;
  conn->answered = false;
}

static void
on_completed(void *cls, struct MHD_Connection *mhd, void **context,
             enum MHD_RequestTerminationCode code)
{
  struct http_conn *conn = *context;

  (void)cls;
  (void)mhd;
  (void)code;
  if (conn == NULL)
    return;
  http_request_end(conn);
  conn->later = true;
  if (conn->phase == HTTP_CUT || conn->server->stopping)
    return;
  make_idle(conn);
}

static void
conn_free(struct http_conn *conn)
{
  http_request_end(conn);
  session_gone(&conn->session);
  list_remove(&conn->node);
  list_remove(&conn->adopting);
  peer_release(conn->session.listener, &conn->peer);
  conn->server->conns--;
  free(conn);
}

/* Announced from within MHD_add_connection(), or (libmicrohttpd 1.0) when it runs next. The
 * newest one of that number. */
static struct http_conn *
find_fd(struct http_server *server, int fd)
{
  struct list *node;

  for (node = server->adopting.prev; node != &server->adopting; node = node->prev) {
    struct http_conn *conn = container_of(node, struct http_conn, adopting);

    if (conn->fd == fd)
      return conn;
  }
  return NULL;
}

/* The descriptor is still open when libmicrohttpd says that the connection is closed; a second
 * one keeps the socket for the gentle close. */
static void
on_connection(void *cls, struct MHD_Connection *mhd, void **context,
              enum MHD_ConnectionNotificationCode code)
{
  struct http_server *server = cls;
  const union MHD_ConnectionInfo *info;
  struct http_conn *conn;
  int fd;

  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    conn = info == NULL ? NULL : find_fd(server, info->connect_fd);
    if (conn != NULL) {
      list_remove(&conn->adopting);
      conn->mhd = mhd;
    }
    *context = conn;
    return;
  }
  conn = *context;
  if (conn == NULL)
    return;
  *context = NULL;
  if (conn->linger && !server->stopping) {
    fd = fcntl(conn->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0)
      linger_close(server->lw, fd);
  }
  conn_free(conn);
}

void
http_cut(struct http_conn *conn)
{
  http_request_end(conn);
  conn->phase = HTTP_CUT;
  shutdown(conn->fd, SHUT_RDWR);
  http_wake(conn);
}

/* libmicrohttpd copies the address and expects an IP one. */
static struct sockaddr_in
any_address(void)
{
  return (struct sockaddr_in){ .sin_family = AF_INET };
}

void
http_adopt(struct http_server *server, struct listener *listener, int fd, struct peer *peer)
{
  struct http_conn *conn = server->stopping ? NULL : calloc(1, sizeof *conn);
  struct sockaddr_in unnamed = any_address();
  bool local = peer->addr.ss_family == AF_UNIX;

  if (conn == NULL) {
    peer_release(listener, peer);
    close(fd);
    return;
  }
  session_init(&conn->session, &http_session_ops, CLIENT_HTTP, server->worker, listener,
               gateway_network(server->worker->gateway, "/", 1));
  snprintf(conn->session.peer, sizeof conn->session.peer, "%s", peer->text);
  conn->server = server;
  conn->peer = *peer;
  peer->counted = false;
  conn->fd = fd;
  list_init(&conn->node);
  list_init(&conn->adopting);
  list_append(&server->adopting, &conn->adopting);
  server->conns++;
  server->wanted = true;
  make_idle(conn);
  if (MHD_add_connection(server->daemon, fd,
                         local ? (const struct sockaddr *)(const void *)&unnamed
                               : (const struct sockaddr *)&peer->addr,
                         local ? sizeof unnamed : peer->addr_len) == MHD_YES)
    return;
  /* The descriptor was closed; a connection that had been announced was freed then. */
  if (find_fd(server, fd) != NULL)
    conn_free(conn);
}

/* --- starting ------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) __attribute__((format(printf, 2, 0))) static void
on_log(void *cls, const char *fmt, va_list ap)
{
  char text[512];
  size_t len;

  (void)cls;
  if (!egw_log_on(EGW_DEBUG))
    return;
  vsnprintf(text, sizeof text, fmt, ap);
  len = strlen(text);
  if (len > 0 && text[len - 1] == '\n')
    text[len - 1] = '\0';
  egw_log(EGW_DEBUG, "http", "%s", text);
}

static void
on_panic(void *cls, const char *file, unsigned line, const char *reason)
{
  (void)cls;
  egw_log(EGW_ERROR, "http", "libmicrohttpd %s:%u: %s", file, line, reason);
  abort();
}

/* Targets are used as they came; what is decoded is decoded once, by whoever needs it. */
static size_t
keep_escaped(void *cls, struct MHD_Connection *mhd, char *text)
{
  (void)cls;
  (void)mhd;
  return strlen(text);
}

static struct MHD_Daemon *
start_daemon(struct http_server *server)
{
  unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO |
                   MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;

  MHD_set_panic_func(on_panic, NULL);
  return MHD_start_daemon(flags, 0, NULL, NULL, http_on_request, server,
                          MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
                          MHD_OPTION_CONNECTION_LIMIT, (unsigned)INT32_MAX,
                          MHD_OPTION_CONNECTION_TIMEOUT, 0u,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_POOL,
                          MHD_OPTION_STRICT_FOR_CLIENT, 1,
                          MHD_OPTION_URI_LOG_CALLBACK, http_on_target, server,
                          MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,
                          MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
                          MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_END);
}

static int
poll_daemon(struct http_server *server)
{
  const union MHD_DaemonInfo *info =
      MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  uv_loop_t *loop = &server->worker->loop;

  if (info == NULL || uv_poll_init(loop, &server->poll, info->epoll_fd) != 0)
    return -1;
  server->poll.data = server;
  server->handles++;
  if (uv_idle_init(loop, &server->idle) != 0)
    return -1;
  server->idle.data = server;
  server->handles++;
  return uv_poll_start(&server->poll, UV_READABLE, on_epoll) == 0 ? 0 : -1;
}

/* The first version whose parser refuses bare LF, folded lines and NUL bytes was 0.9.77. */
static bool
has_strict_parser(void)
{
  unsigned major = 0, minor = 0, micro = 0;

  if (sscanf(MHD_get_version(), "%u.%u.%u", &major, &minor, &micro) != 3)
    return false;
  return major > 0 || minor > 9 || (minor == 9 && micro >= 77);
}

int
http_start(struct listen_worker *lw)
{
  struct http_server *server = calloc(1, sizeof *server);
  size_t n = lw->listeners->n == 0 ? 1 : lw->listeners->n;

  if (server == NULL)
    return -1;
  server->lw = lw;
  server->worker = lw->worker;
  server->hook.fn = on_turn;
  server->strict_parser = has_strict_parser();
  list_init(&server->active);
  list_init(&server->adopting);
  http_sweep_init(server);
  server->ports = calloc(n, sizeof *server->ports);
  server->daemon = server->ports == NULL ? NULL : start_daemon(server);
  if (server->daemon == NULL) {
    egw_log(EGW_ERROR, "http", "libmicrohttpd could not be started");
    free(server->ports);
    free(server);
    return -1;
  }
  for (size_t i = 0; i < n; i++) {
    list_init(&server->ports[i].rested);
    list_init(&server->ports[i].idle);
  }
  worker_hook_add(server->worker, &server->hook);
  lw->http = server;
  return poll_daemon(server);
}

/* --- stopping ------------------------------------------------------------------------- */

void
http_drain(struct http_server *server)
{
  server->draining = true;
  http_sweep_idle(server);
}

static void
on_handle_closed(uv_handle_t *handle)
{
  struct http_server *server = handle->data;
  struct listen_worker *lw = server->lw;

  if (--server->handles > 0)
    return;
  free(server->ports);
  free(server);
  lw->http = NULL;
  listen_part_closed(lw);
}

/* Nothing may be suspended when the daemon stops: it would abort the process. */
static void
cut_all(struct http_server *server)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &server->active)
    http_cut(container_of(node, struct http_conn, node));
}

void
http_stop(struct http_server *server)
{
  unsigned handles = server->handles;

  server->draining = server->stopping = true;
  worker_hook_remove(&server->hook);
  worker_timer_stop(server->worker, &server->sweep);
  cut_all(server);
  if (handles > 0)
    uv_close((uv_handle_t *)&server->poll, on_handle_closed);
  if (handles > 1)
    uv_close((uv_handle_t *)&server->idle, on_handle_closed);
  MHD_stop_daemon(server->daemon);
  server->daemon = NULL;
  while (!list_empty(&server->adopting))
    conn_free(container_of(server->adopting.next, struct http_conn, adopting));
  if (handles > 0)
    return;
  server->handles = 1;
  server->poll.data = server;
  on_handle_closed((uv_handle_t *)&server->poll);
}
