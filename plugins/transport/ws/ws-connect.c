/* SPDX-License-Identifier: MIT */
/* One connection: from the name to the end of the handshake, and its own end. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "ws.h"

static const struct egw_url *
conn_url(const struct ws_conn *c)
{
  return egw_link_url(c->link->link);
}

static struct ws_conn *
conn_of(const struct lws *wsi)
{
  return lws_get_opaque_user_data(wsi);
}

/* --- ending ----------------------------------------------------------------------------- */

/* Cuts the tie to the wsi, which is left for lws to destroy. */
static struct lws *
conn_cut(struct ws_conn *c)
{
  struct lws *wsi = c->wsi;

  if (wsi != NULL)
    lws_set_opaque_user_data(wsi, NULL);
  c->wsi = NULL;
  return wsi;
}

static void
conn_free(struct ws_conn *c)
{
  conn_cut(c);
  if (c->resolve != NULL)
    egw_resolve_cancel(c->resolve);
  egw_timer_stop(c->hub->worker, &c->timer);
  free(c);
}

static void
conn_end(struct ws_conn *c, const char *why)
{
  pool_gone(&c->member, why);
  conn_free(c);
}

/* Closes a wsi that nobody is tied to any more, at once; outside of its callbacks. */
static void
conn_close_wsi(struct ws_hub *hub, struct lws *wsi)
{
  lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
  hub_poke(hub);
}

void
conn_kill(struct ws_conn *c, const char *why)
{
  struct ws_hub *hub = c->hub;
  struct lws *wsi = conn_cut(c);

  conn_end(c, why);
  if (wsi == NULL)
    return;
  shutdown(lws_get_socket_fd(wsi), SHUT_RDWR); /* what lws still has to write is of no use */
  conn_close_wsi(hub, wsi);
}

/* Says goodbye, if the socket takes it at once, and closes. lws would wait for the answer,
 * which at the end of the program nobody wants. */
static void
conn_say_goodbye(struct ws_hub *hub, struct lws *wsi)
{
  struct lws_pollfd writable = { .fd = lws_get_socket_fd(wsi), .events = LWS_POLLOUT,
                                 .revents = LWS_POLLOUT };

  lws_close_reason(wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
  lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC); /* only begins the end */
  if (hub->dropping != NULL)
    lws_service_fd(hub->context, &writable);
}

void
conn_drop(struct pool_member *member)
{
  struct ws_conn *c = container_of(member, struct ws_conn, member);
  bool open = c->state == WS_OPEN;
  struct ws_hub *hub = c->hub;
  struct lws *wsi = conn_cut(c);

  conn_free(c);
  if (wsi == NULL)
    return;
  hub->dropping = wsi;
  if (open && !lws_partial_buffered(wsi) && !lws_send_pipe_choked(wsi))
    conn_say_goodbye(hub, wsi);
  if (hub->dropping != NULL)
    conn_close_wsi(hub, wsi);
  hub->dropping = NULL;
}

/* --- one address after another ---------------------------------------------------------- */

static const char *
conn_literal(const struct egw_address *address, char *out, size_t cap)
{
  const struct sockaddr *sa = (const struct sockaddr *)(const void *)address->bytes;
  int rc = getnameinfo(sa, address->len, out, (socklen_t)cap, NULL, 0, NI_NUMERICHOST);

  return rc == 0 ? out : NULL;
}

/* The Host header: without the port where it is the scheme's own (RFC 9112 section 3.2). */
static void
conn_host(const struct egw_url *url, char *out, size_t cap)
{
  const char *open = strchr(url->host, ':') != NULL ? "[" : "", *close = *open ? "]" : "";

  if (url->port == (url->tls ? 443 : 80))
    snprintf(out, cap, "%s%s%s", open, url->host, close);
  else
    snprintf(out, cap, "%s%s%s:%u", open, url->host, close, (unsigned)url->port);
}

static int
conn_try(struct ws_conn *c, const struct egw_address *address)
{
  const struct egw_url *url = conn_url(c);
  struct lws_client_connect_info info;
  char literal[NI_MAXHOST], host[WS_NAME_MAX + 16];
  struct lws *wsi;

  memset(&info, 0, sizeof info);
  conn_host(url, host, sizeof host);
  info.context = c->hub->context;
  info.vhost = c->link->site->vhost;
  info.address = conn_literal(address, literal, sizeof literal);
  info.port = url->port;
  info.path = url->path;
  info.host = host;
  info.ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT;
  if (url->tls) /* ws-tls.c judges the certificate, its name included */
    info.ssl_connection |= LCCSCF_USE_SSL | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK;
  info.ietf_version_or_minus_one = -1;
  info.alpn = "http/1.1";
  info.opaque_user_data = c;
  if (info.address == NULL)
    return -1;
  c->state = WS_CONNECTING;
  c->connecting = true;
  wsi = lws_client_connect_via_info(&info);
  c->connecting = false;
  hub_poke(c->hub);
  if (wsi != NULL) {
    c->hub->live++;
    c->wsi = wsi;
    return 0;
  }
  conn_cut(c); /* it may be known, and not destroyed yet */
  return -1;
}

/* Each of the addresses that are left gets the same share of the time that is left. */
static void
conn_next(struct ws_conn *c)
{
  uint64_t now = egw_now_ms(c->hub->worker);
  uint64_t left = c->give_up_ms > now ? c->give_up_ms - now : 0;

  while (c->address_next < c->address_count && left > 0) {
    size_t i = c->address_next++;

    if (conn_try(c, &c->addresses[i]) == 0) {
      egw_timer_start(c->hub->worker, &c->timer, left / (c->address_count - i));
      return;
    }
  }
  conn_end(c, c->why);
}

/* The attempt with one address failed. The next is not tried from here, which is a callback of
 * the wsi that failed. */
static void
conn_failed(struct ws_conn *c, const char *why)
{
  c->why = why;
  if (c->connecting)
    return;
  conn_cut(c);
  c->state = WS_NEXT;
  egw_timer_start(c->hub->worker, &c->timer, 0);
}

static void
conn_timed_out(struct ws_conn *c)
{
  struct lws *wsi = conn_cut(c);

  c->why = "connecting took too long";
  if (wsi != NULL)
    conn_close_wsi(c->hub, wsi);
  conn_next(c);
}

static void
conn_timer(struct egw_timer *timer)
{
  struct ws_conn *c = timer->arg;

  switch (c->state) {
  case WS_RESOLVING:
    conn_end(c, "looking up its name took too long");
    break;
  case WS_NEXT:
    conn_next(c);
    break;
  case WS_CONNECTING:
    conn_timed_out(c);
    break;
  case WS_OPEN:
    io_tick(c);
    break;
  }
}

static void
conn_resolved(void *arg, const struct egw_address *addresses, size_t count, const char *why)
{
  struct ws_conn *c = arg;

  (void)why;
  c->resolve = NULL;
  c->address_count = count > WS_ADDRESSES ? WS_ADDRESSES : count;
  memcpy(c->addresses, addresses, c->address_count * sizeof *addresses);
  if (count == 0)
    conn_end(c, "its name has no address");
  else
    conn_next(c);
}

struct pool_member *
conn_start(struct egw_link *link, const char **why)
{
  struct ws_link *l = egw_link_state(link);
  struct ws_conn *c = calloc(1, sizeof *c);
  uint32_t limit = egw_link_limits(link)->connect_timeout_ms;

  *why = "memory is short";
  if (c == NULL)
    return NULL;
  c->link = l;
  c->hub = l->site->hub;
  c->why = "cannot connect";
  c->timer.fn = conn_timer;
  c->timer.arg = c;
  c->give_up_ms = egw_now_ms(c->hub->worker) + limit;
  c->resolve = egw_resolve(c->hub->worker, conn_url(c)->host, conn_url(c)->port, conn_resolved,
                           c);
  if (c->resolve == NULL) {
    free(c);
    return NULL;
  }
  pool_member_init(&l->pool, &c->member);
  egw_timer_start(c->hub->worker, &c->timer, limit);
  return &c->member;
}

/* --- the handshake ---------------------------------------------------------------------- */

/* Appends our headers where lws says: *in is the end of the text, `room` bytes follow. */
static int
conn_headers(struct ws_conn *c, void *in, size_t room)
{
  const struct ws *ws = egw_link_self(c->link->link);
  unsigned char **end = in;
  struct egw_buf *text = egw_buf_new(512);
  struct egw_slice s;
  int rc = -1;

  if (text != NULL && auth_print(&ws->auth, conn_url(c), text) == 0) {
    s = egw_buf_slice(text);
    if (s.len < room) {
      memcpy(*end, s.ptr, s.len);
      *end += s.len;
      rc = 0;
    }
  }
  if (rc != 0)
    c->why = "its headers are too long";
  egw_buf_unref(text);
  return rc;
}

static const char *
conn_status(unsigned status)
{
  switch (status) {
  case 401: return "the handshake was answered with 401 Unauthorized";
  case 403: return "the handshake was answered with 403 Forbidden";
  case 404: return "the handshake was answered with 404 Not Found";
  case 429: return "the handshake was answered with 429 Too Many Requests";
  default: break;
  }
  if (status >= 300 && status < 400)
    return "the handshake was answered with a redirect, which is not followed";
  if (status >= 500)
    return "the handshake was answered with a server error (5xx)";
  return "the handshake was not answered with 101";
}

/* Why a wsi did not come to be. What lws says may name addresses: it only hints. */
static const char *
conn_reason(struct ws_conn *c, struct lws *wsi, const char *hint, size_t len)
{
  unsigned status = lws_http_client_http_response(wsi);
  struct ws_site *site = c->link->site;
  char text[64];

  snprintf(text, sizeof text, "%.*s", hint == NULL ? 0 : (int)(len > 63 ? 63 : len),
           hint == NULL ? "" : hint);
  if (site->tls_fault != NULL)
    return site->tls_fault;
  if (status != 0 && status != 101)
    return conn_status(status);
  if (strncmp(text, "HS:", 3) == 0)
    return "the answer to the handshake is not that of a WebSocket server";
  if (strstr(text, "tls") != NULL || strstr(text, "SSL") != NULL)
    return "the TLS handshake failed";
  if (strstr(text, "before") != NULL)
    return "the node closed the connection during the handshake";
  return "cannot connect";
}

/* Any way in which lws says that a wsi of ours has ended. */
static void
conn_ended(struct ws_conn *c, struct lws *wsi, const char *hint, size_t len)
{
  c->hub->failing = true;
  if (c->state != WS_OPEN) {
    const char *why = conn_reason(c, wsi, hint, len);

    c->link->site->tls_fault = NULL;
    conn_failed(c, why);
    return;
  }
  conn_end(c, c->why != NULL ? c->why : "the node closed the connection");
}

/* --- what lws 4.1 forgets --------------------------------------------------------------- */

struct conn_search {
  const struct lws *wsi;
  uv_handle_t *found;
};

static void
conn_look_at(uv_handle_t *handle, void *arg)
{
  struct conn_search *search = arg;

  if (handle->type == UV_POLL && handle->data == search->wsi && !uv_is_closing(handle))
    search->found = handle;
}

static void
conn_free_watcher(uv_handle_t *handle)
{
  free(handle);
}

/* When connect() fails, lws 4.1 closes the socket and frees the wsi, but not its watcher,
 * which would stay on the loop for ever. It is found by its wsi, of whose end this is the last
 * moment, and before any descriptor of the same number can be on the loop. */
static void
conn_sweep(struct ws_hub *hub, const struct lws *wsi)
{
  struct conn_search search = { wsi, NULL };

  hub->failing = false;
  uv_walk(hub->loop, conn_look_at, &search);
  if (search.found != NULL)
    uv_close(search.found, conn_free_watcher);
}

static void
conn_destroyed(struct ws_hub *hub, struct ws_conn *c, struct lws *wsi)
{
  bool connecting = c != NULL && c->connecting;

  if (hub->dropping == wsi)
    hub->dropping = NULL;
  if (c != NULL)
    conn_ended(c, wsi, NULL, 0);
  if (connecting)
    c->wsi = NULL;
  else if (hub->live > 0)
    hub->live--;
  if (hub->failing)
    conn_sweep(hub, wsi);
}

/* --- events ----------------------------------------------------------------------------- */

/* Events on a wsi that is tied to a connection. */
static int
conn_take(struct ws_conn *c, struct lws *wsi, enum lws_callback_reasons reason, void *in,
          size_t len)
{
  switch (reason) {
  case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
    return conn_headers(c, in, len);
  case LWS_CALLBACK_CLIENT_ESTABLISHED:
    c->why = NULL;
    return io_open(c);
  case LWS_CALLBACK_CLIENT_RECEIVE:
    return io_read(c, in, len);
  case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
    io_pong(c);
    return 0;
  case LWS_CALLBACK_CLIENT_WRITEABLE:
    return io_write(c);
  case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
    conn_ended(c, wsi, in, len);
    return 0;
  case LWS_CALLBACK_CLIENT_CLOSED:
  case LWS_CALLBACK_CLOSED_CLIENT_HTTP:
    conn_ended(c, wsi, NULL, 0);
    return 0;
  default:
    return 0;
  }
}

int
conn_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
  struct ws_conn *c;

  (void)user;
  switch (reason) {
  case LWS_CALLBACK_WSI_DESTROY:
    conn_destroyed(lws_context_user(lws_get_context(wsi)), conn_of(wsi), wsi);
    return 0;
  case LWS_CALLBACK_WSI_CREATE:
  case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
  case LWS_CALLBACK_CLIENT_ESTABLISHED:
  case LWS_CALLBACK_CLIENT_RECEIVE:
  case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
  case LWS_CALLBACK_CLIENT_WRITEABLE:
  case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
  case LWS_CALLBACK_CLIENT_CLOSED:
  case LWS_CALLBACK_CLOSED_CLIENT_HTTP:
    c = conn_of(wsi);
    break;
  default:
    return 0; /* on no wsi at all, or of no interest */
  }
  if (c == NULL) /* cut off: only to be closed */
    return reason == LWS_CALLBACK_CLIENT_WRITEABLE || reason == LWS_CALLBACK_CLIENT_RECEIVE
               || reason == LWS_CALLBACK_CLIENT_ESTABLISHED
               || reason == LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER
             ? -1 : 0;
  c->wsi = wsi;
  return conn_take(c, wsi, reason, in, len);
}
