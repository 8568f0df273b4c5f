/* SPDX-License-Identifier: MIT */
/* WebSocket: one lws context for each worker, a guest on the worker's loop. It listens on
 * nothing: it is given sockets whose handshake the gate has judged. */
#include "listen/ws.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "listen/facts.h"
#include "listen/proxies.h"

/* --- what lws logs -------------------------------------------------------------------- */

/* Lines may hold what a client sent: the logger escapes them. They end in a newline. */
static void
on_lws_log(int level, const char *line)
{
  size_t len = strlen(line);

  (void)level;
  while (len > 0 && line[len - 1] == '\n')
    len--;
  egw_log(EGW_TRACE, "lws", "%.*s", (int)(len > 512 ? 512 : len), line);
}

static int
log_levels(void)
{
  return egw_log_on(EGW_TRACE) ? LLL_ERR | LLL_WARN | LLL_NOTICE : 0;
}

/* What belongs to no context. */
static void
route_lws_log(void)
{
  lws_set_log_level(log_levels(), on_lws_log);
}

/* --- callbacks ------------------------------------------------------------------------ */

static int
on_writeable(struct ws_session *s)
{
  if (s->state == WS_DEAD)
    return -1;
  if (ws_flush(s, true) != 0) {
    ws_session_closed(s);
    return -1;
  }
  ws_session_run_soon(s);
  return 0;
}

/* The client's close frame. lws answers it, unless it is the answer to ours. */
static int
on_peer_close(struct ws_session *s)
{
  if (s->state == WS_CLOSE_SENT)
    return -1;
  ws_session_left(s);
  return 0;
}

/* The socket is on the loop: from here on WSI_DESTROY will come for it. */
static void
on_adopted(struct lws *wsi)
{
  struct ws_server *server = lws_context_user(lws_get_context(wsi));
  struct ws_session *s = server->adopting;

  server->adopting = NULL;
  if (s == NULL)
    return;
  s->wsi = wsi;
  lws_set_opaque_user_data(wsi, s);
}

static int
on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
  struct ws_session *s = wsi == NULL ? NULL : lws_get_opaque_user_data(wsi);

  (void)user;
  if (reason == LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED)
    on_adopted(wsi);
  if (s == NULL)
    return 0;
  switch (reason) {
  case LWS_CALLBACK_ESTABLISHED:
    ws_session_established(s);
    return 0;
  case LWS_CALLBACK_RECEIVE:
    ws_receive(s, in, len);
    return s->state == WS_DEAD ? -1 : 0;
  case LWS_CALLBACK_RECEIVE_PONG:
    s->heard = egw_now_ms(s->session.worker);
    return 0;
  case LWS_CALLBACK_SERVER_WRITEABLE:
    return on_writeable(s);
  case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
    return on_peer_close(s);
  case LWS_CALLBACK_CLOSED:
  case LWS_CALLBACK_CLOSED_HTTP:
    ws_session_closed(s);
    return 0;
  case LWS_CALLBACK_WSI_DESTROY:
    lws_set_opaque_user_data(wsi, NULL);
    ws_session_free(s);
    return 0;
  case LWS_CALLBACK_HTTP: /* never: the handshake is an upgrade */
    return -1;
  default:
    return 0;
  }
}

/* --- adopting ------------------------------------------------------------------------- */

/* The handshake lws gets to see (RFC 6455 4.1): nothing of the client's but its key, and what
 * came behind its head. */
static struct egw_buf *
canonical_handshake(struct egw_slice key, struct egw_slice rest)
{
  struct egw_buf *buf = egw_buf_new(192 + rest.len);

  if (buf == NULL)
    return NULL;
  if (egw_buf_printf(buf,
                     "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\nSec-WebSocket-Key: %.*s\r\n"
                     "Sec-WebSocket-Version: 13\r\n\r\n",
                     (int)key.len, key.ptr) == 0 &&
      egw_buf_append(buf, rest.ptr, rest.len) == 0)
    return buf;
  egw_buf_unref(buf);
  return NULL;
}

void
ws_adopt(struct ws_server *server, struct listener *listener, int fd, struct peer *peer,
         struct network *network, const struct gate_head *head, struct egw_slice rest)
{
  struct egw_buf *handshake = NULL;
  struct ws_session *s = NULL;
  struct client_facts facts;
  struct egw_slice bytes;
  int one = 1;

  if (server->context != NULL && !server->stopping)
    handshake = canonical_handshake(head->ws_key, rest);
  facts_read(&facts, head);
  proxies_ask(listener->proxies, &peer->addr, head, &facts);
  if (handshake != NULL)
    s = ws_session_new(server, listener, peer, network, &facts);
  if (s == NULL) {
    egw_buf_unref(handshake);
    close(fd);
    peer_release(listener, peer);
    return;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* not on the pair behind TLS */
  bytes = egw_buf_slice(handshake);
  server->adopting = s;
  lws_adopt_socket_vhost_readbuf(server->vhost, fd, bytes.ptr, bytes.len);
  if (server->adopting != NULL) { /* it never got on the loop; lws has closed it */
    server->adopting = NULL;
    ws_session_free(s);
  }
  egw_buf_unref(handshake);
}

/* --- life ----------------------------------------------------------------------------- */

static const struct lws_protocols protocols[] = {
  { .name = "egw", .callback = on_lws, .rx_buffer_size = WS_READ, .tx_packet_size = WS_CHUNK },
  { .name = NULL }
};

/* All zero: pings and timeouts are ours. */
static const lws_retry_bo_t no_idle_policy;

static int
make_context(struct ws_server *server)
{
  static pthread_once_t routed = PTHREAD_ONCE_INIT;
  void *loops[1] = { &server->lw->worker->loop };
  struct lws_context_creation_info info;

  pthread_once(&routed, route_lws_log);
  memset(&info, 0, sizeof(info));
  info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
  info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                 LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME;
  info.foreign_loops = loops;
  info.pcontext = &server->context;
  info.user = server;
  info.uid = (__typeof__(info.uid))-1; /* an int in some versions */
  info.gid = (__typeof__(info.gid))-1;
  info.pt_serv_buf_size = WS_READ;
  info.retry_and_idle_policy = &no_idle_policy;
  lws_own_log_init(&server->log, log_levels(), on_lws_log);
  lws_own_log_use(&server->log, &info);
  server->context = lws_create_context(&info);
  if (server->context == NULL) {
    egw_log(EGW_ERROR, "ws",
            "libwebsockets can't run on libuv (Debian: package libwebsockets-evlib-uv)");
    return -1;
  }
  info.protocols = protocols;
  info.vhost_name = "localhost";
  server->vhost = lws_create_vhost(server->context, &info);
  if (server->vhost == NULL) {
    egw_log(EGW_ERROR, "ws", "libwebsockets could not make its server");
    return -1;
  }
  return 0;
}

static bool
is_wanted(const struct listen_worker *lw)
{
  size_t i;

  for (i = 0; i < lw->listeners->n; i++) {
    const struct listener *listener = &lw->listeners->v[i];

    if (!listener->admin && listener->conf->path == NULL && listener->conf->websocket)
      return true;
  }
  return false;
}

static void
on_gone(struct worker_job *job)
{
  struct ws_server *server = container_of(job, struct ws_server, gone);
  struct listen_worker *lw = server->lw;

  lw->ws = NULL;
  free(server->chunk);
  free(server);
  listen_part_closed(lw);
}

int
ws_start(struct listen_worker *lw)
{
  struct ws_server *server = calloc(1, sizeof(*server));

  if (server == NULL)
    return -1;
  server->lw = lw;
  server->gone.fn = on_gone;
  list_init(&server->gone.node);
  list_init(&server->sessions);
  lw->ws = server; /* from here on ws_stop() cleans up */
  if (!is_wanted(lw))
    return 0;
  server->chunk = malloc(LWS_PRE + WS_CHUNK);
  if (server->chunk == NULL || uv_prepare_init(&lw->worker->loop, &server->watch) != 0)
    return -1;
  server->watch.data = server;
  server->watching = true;
  return make_context(server);
}

void
ws_drain(struct ws_server *server)
{
  struct list *node;

  server->draining = true;
  list_for_each(node, &server->sessions)
    ws_session_drain(container_of(node, struct ws_session, node));
}

/* --- stopping: lws leaves a foreign loop in stages, and does not say when it is done --- */

struct search {
  const void *data;
  bool found;
};

static void
look_at(uv_handle_t *handle, void *arg)
{
  struct search *search = arg;

  if (handle->data == search->data)
    search->found = true;
}

static void
on_watch_closed(uv_handle_t *handle)
{
  struct ws_server *server = handle->data;

  worker_run_soon(server->lw->worker, &server->gone);
}

/* lws 4.1 must be asked to free the rest only after its timer and its idle handle (marked by
 * the context) are closed. Later ones may be asked at any time and do what can be done. */
static void
on_watch(uv_prepare_t *watch)
{
  struct ws_server *server = watch->data;
  struct search search = { server->context, false };

  if (server->context != NULL) {
    uv_walk(watch->loop, look_at, &search);
    if (!search.found)
      lws_context_destroy(server->context);
  }
  if (server->context == NULL)
    uv_close((uv_handle_t *)watch, on_watch_closed);
}

void
ws_stop(struct ws_server *server)
{
  if (server->stopping)
    return;
  server->stopping = true;
  if (server->context != NULL)
    lws_context_destroy(server->context);
  if (server->watching)
    uv_prepare_start(&server->watch, on_watch);
  else
    worker_run_soon(server->lw->worker, &server->gone);
}
