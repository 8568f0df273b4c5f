/* SPDX-License-Identifier: MIT */
/* The transport host: links, exchanges and connections (transport.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include "transport-host-parts.h"

/* --- links --------------------------------------------------------------------------- */

static char *
cut(const char *from, const char *end)
{
  return must(strndup(from, (size_t)(end - from)));
}

/* scheme://[user[:password]@]host[:port]/path, or scheme:path. No decoding. */
static void
split_url(const char *text, struct egw_url *url)
{
  const char *p = strchr(text, ':'), *end, *at, *colon;

  url->scheme = cut(text, p);
  url->tls = strcmp(url->scheme, "https") == 0 || strcmp(url->scheme, "wss") == 0;
  url->port = url->tls ? 443 : 80;
  p++;
  if (strncmp(p, "//", 2) != 0) {
    url->path = must(strdup(p));
    url->host = must(strdup(""));
    url->user = must(strdup(""));
    url->password = must(strdup(""));
    return;
  }
  p += 2;
  end = p + strcspn(p, "/");
  at = memchr(p, '@', (size_t)(end - p));
  colon = at == NULL ? NULL : memchr(p, ':', (size_t)(at - p));
  url->user = at == NULL ? must(strdup("")) : cut(p, colon == NULL ? at : colon);
  url->password = colon == NULL ? must(strdup("")) : cut(colon + 1, at);
  if (at != NULL)
    p = at + 1;
  url->path = must(strdup(*end == 0 ? "/" : end));
  colon = memrchr(p, ':', (size_t)(end - p));
  if (*p == '[') {
    const char *close = memchr(p, ']', (size_t)(end - p));

    url->host = cut(p + 1, close);
    colon = close[1] == ':' ? close + 1 : NULL;
  } else {
    url->host = cut(p, colon == NULL ? end : colon);
  }
  if (colon != NULL)
    url->port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

static void
free_link(struct egw_link *link)
{
  list_remove(&link->node);
  free((void *)(uintptr_t)link->url.scheme);
  free((void *)(uintptr_t)link->url.user);
  free((void *)(uintptr_t)link->url.password);
  free((void *)(uintptr_t)link->url.host);
  free((void *)(uintptr_t)link->url.path);
  free(link->pushed);
  free(link->state);
  free(link);
}

struct egw_link *
thost_open(struct thost *host, const char *url, const struct egw_link_limits *limits)
{
  static const struct egw_link_limits usual = { .connect_timeout_ms = 2000,
                                                .max_reply = 64 << 20 };
  struct egw_link *link = must(calloc(1, sizeof *link));

  link->host = host;
  link->state = must(calloc(1, host->transport->link_size + 1));
  link->limits = limits == NULL ? usual : *limits;
  list_init(&link->xchgs);
  list_init(&link->conns);
  list_append(&host->links, &link->node);
  split_url(url, &link->url);
  if (host->transport->open(link) == 0)
    return link;
  free_link(link);
  return NULL;
}

static bool
is_closed(void *arg)
{
  return ((struct egw_link *)arg)->closed;
}

void
thost_close(struct egw_link *link)
{
  struct thost *host = link->host;

  link->closing = true;
  host->transport->close(link);
  if (!thost_run(host, is_closed, link, 5000))
    thost_fault(host, "egw_link_closed() was not called within 5 s");
  free_link(link);
}

const void *
egw_link_self(const struct egw_link *link)
{
  return link->host->self;
}

void *
egw_link_mine(const struct egw_link *link)
{
  return link->host->mine;
}

void *
egw_link_state(const struct egw_link *link)
{
  return link->state;
}

struct egw_worker *
egw_link_worker(const struct egw_link *link)
{
  return &link->host->worker;
}

const char *
egw_link_name(const struct egw_link *link)
{
  (void)link;
  return "node";
}

const struct egw_url *
egw_link_url(const struct egw_link *link)
{
  return &link->url;
}

const struct egw_link_limits *
egw_link_limits(const struct egw_link *link)
{
  return &link->limits;
}

void
egw_link_set(struct egw_link *link, enum egw_link_state state, const char *why)
{
  if (link->closed)
    thost_fault(link->host, "egw_link_set() after egw_link_closed()");
  link->up = state == EGW_LINK_UP;
  if (link->up)
    link->ups++;
  else
    link->downs++;
  snprintf(link->why, sizeof link->why, "%s", why == NULL ? "" : why);
}

void
egw_link_closed(struct egw_link *link)
{
  if (!link->closing || link->closed)
    thost_fault(link->host, "egw_link_closed() without close(), or twice");
  if (!list_empty(&link->xchgs) || !list_empty(&link->conns))
    thost_fault(link->host, "egw_link_closed() with exchanges or connections left");
  link->closed = true;
}

bool
thost_link_up(const struct egw_link *link)
{
  return link->up;
}

const char *
thost_link_why(const struct egw_link *link)
{
  return link->why;
}

unsigned
thost_link_ups(const struct egw_link *link)
{
  return link->ups;
}

unsigned
thost_link_downs(const struct egw_link *link)
{
  return link->downs;
}

unsigned
thost_link_conns_ever(const struct egw_link *link)
{
  return link->conns_ever;
}

unsigned
thost_link_conns(const struct egw_link *link)
{
  unsigned n = 0;
  struct list *i;

  list_for_each (i, &link->conns)
    n++;
  return n;
}

const char *
thost_pushed(const struct egw_link *link)
{
  return link->pushed == NULL ? "" : link->pushed;
}

/* --- exchanges ----------------------------------------------------------------------- */

void
thost_submit_raw(struct egw_link *link, struct thost_call *call, const char *body, size_t len)
{
  struct egw_xchg *x = must(calloc(1, sizeof *x));

  x->link = link;
  x->call = call;
  x->state = must(calloc(1, link->host->transport->xchg_size + 1));
  x->body = must(egw_buf_copy((struct egw_slice){ body, len }));
  call->xchg = x;
  list_append(&link->xchgs, &x->node);
  link->host->transport->submit(link, x);
}

void
thost_submit(struct egw_link *link, struct thost_call *call, const char *method,
             const char *params)
{
  char *text;
  int n;

  call->id = ++link->host->next_id;
  n = asprintf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":%s}",
               (unsigned long long)call->id, method, params);
  if (n < 0)
    abort();
  thost_submit_raw(link, call, text, (size_t)n);
  free(text);
}

/* The exchange's memory goes at once, so that a sanitizer sees a transport that keeps it. */
static void
free_xchg(struct egw_xchg *x)
{
  x->call->xchg = NULL;
  list_remove(&x->node);
  egw_buf_unref(x->body);
  memset(x->state, 0xa5, x->link->host->transport->xchg_size);
  free(x->state);
  free(x);
}

void
thost_abort(struct thost_call *call)
{
  struct egw_link *link = call->xchg->link;

  link->host->transport->abort(link, call->xchg);
  call->aborted = true;
  free_xchg(call->xchg);
}

void
thost_more(struct thost_call *call)
{
  struct egw_link *link = call->xchg->link;

  call->paused = false;
  call->since_pause = 0;
  link->host->transport->more(link, call->xchg, NULL);
}

void
thost_call_free(struct thost_call *call)
{
  free(call->data);
  call->data = NULL;
}

static bool
is_done(void *arg)
{
  return ((struct thost_call *)arg)->done;
}

bool
thost_wait(struct thost *host, struct thost_call *call, unsigned ms)
{
  return thost_run(host, is_done, call, ms);
}

void *
egw_xchg_state(const struct egw_xchg *xchg)
{
  return xchg->state;
}

struct egw_buf *
egw_xchg_body(const struct egw_xchg *xchg)
{
  return xchg->body;
}

uint32_t
egw_xchg_time_left(const struct egw_xchg *xchg)
{
  return xchg->call->time_left_ms == 0 ? 10000 : xchg->call->time_left_ms;
}

bool
egw_xchg_fresh(const struct egw_xchg *xchg)
{
  return xchg->call->fresh;
}

bool
egw_xchg_idempotent(const struct egw_xchg *xchg)
{
  return xchg->call->idempotent;
}

struct egw_conn *
egw_xchg_wants(const struct egw_xchg *xchg)
{
  return xchg->call->wants;
}

struct egw_conn *
thost_call_conn(const struct thost_call *call)
{
  return call->xchg == NULL ? NULL : call->xchg->conn;
}

static void
keep_bytes(char **data, size_t *len, size_t *room, const char *bytes, size_t n)
{
  if (*len + n + 1 > *room) {
    *room = (*len + n + 1) * 2;
    *data = must(realloc(*data, *room));
  }
  memcpy(*data + *len, bytes, n);
  *len += n;
  (*data)[*len] = 0;
}

int
egw_xchg_data(struct egw_xchg *xchg, const char *bytes, size_t len)
{
  struct thost_call *call = xchg->call;

  if (call->done || xchg->conn != NULL)
    thost_fault(xchg->link->host, "egw_xchg_data() of an exchange that ended or is bound");
  if (call->paused)
    thost_fault(xchg->link->host, "egw_xchg_data() while paused");
  if (call->discard)
    call->len += len;
  else
    keep_bytes(&call->data, &call->len, &call->room, bytes, len);
  if (call->refuse_at != 0 && call->len >= call->refuse_at)
    return -1;
  call->since_pause += len;
  if (call->pause_every != 0 && call->since_pause >= call->pause_every) {
    call->paused = true;
    return 1;
  }
  return 0;
}

void
egw_xchg_http(struct egw_xchg *xchg, int status, uint32_t retry_after_ms)
{
  xchg->call->status = status;
  xchg->call->retry_after_ms = retry_after_ms;
}

void
egw_xchg_done(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why)
{
  struct thost_call *call = xchg->call;

  if (call->done)
    thost_fault(xchg->link->host, "egw_xchg_done() twice");
  if (call->paused && outcome == EGW_OK)
    thost_fault(xchg->link->host, "egw_xchg_done(EGW_OK) while paused");
  call->done = true;
  call->outcome = outcome;
  snprintf(call->why, sizeof call->why, "%s", why == NULL ? "" : why);
  free_xchg(xchg);
}

/* --- connections --------------------------------------------------------------------- */

struct egw_conn *
egw_conn_new(struct egw_link *link)
{
  struct egw_conn *conn = must(calloc(1, sizeof *conn));

  link->conns_ever++;
  conn->link = link;
  conn->state = must(calloc(1, link->host->transport->conn_size + 1));
  list_append(&link->conns, &conn->node);
  return conn;
}

void *
egw_conn_state(const struct egw_conn *conn)
{
  return conn->state;
}

struct egw_link *
egw_conn_link(const struct egw_conn *conn)
{
  return conn->link;
}

void
egw_xchg_bind(struct egw_xchg *xchg, struct egw_conn *conn)
{
  if (xchg->conn != NULL)
    thost_fault(xchg->link->host, "egw_xchg_bind() twice");
  xchg->conn = conn;
  xchg->call->bound = true;
}

void
egw_xchg_sent(struct egw_xchg *xchg)
{
  if (xchg->conn == NULL)
    thost_fault(xchg->link->host, "egw_xchg_sent() before egw_xchg_bind()");
  xchg->call->sent = true;
}

unsigned
egw_conn_in_flight(const struct egw_conn *conn)
{
  unsigned n = 0;
  struct list *i;

  list_for_each (i, &conn->link->xchgs)
    n += container_of(i, struct egw_xchg, node)->conn == conn;
  return n;
}

static struct egw_xchg *
find_xchg(struct egw_conn *conn, struct egw_slice message)
{
  struct egw_slice id = egw_json_member(message, "id");
  struct list *i;
  uint64_t n;

  if (id.ptr == NULL || egw_json_u64(id, &n) != 0)
    return NULL;
  list_for_each (i, &conn->link->xchgs) {
    struct egw_xchg *x = container_of(i, struct egw_xchg, node);

    if (x->conn == conn && x->call->id == n)
      return x;
  }
  return NULL;
}

static void
end_message(struct egw_conn *conn)
{
  struct egw_link *link = conn->link;
  struct egw_xchg *x = find_xchg(conn, (struct egw_slice){ conn->part, conn->part_len });
  size_t room = link->pushed_len;

  if (x != NULL) {
    keep_bytes(&x->call->data, &x->call->len, &x->call->room, conn->part, conn->part_len);
    egw_xchg_done(x, EGW_OK, NULL);
  } else {
    keep_bytes(&link->pushed, &link->pushed_len, &room, conn->part, conn->part_len);
    keep_bytes(&link->pushed, &link->pushed_len, &room, "\n", 1);
  }
  conn->part_len = 0;
}

/* Finds the ends of JSON objects and arrays. */
static int
split_stream(struct egw_conn *conn, const char *bytes, size_t len)
{
  for (size_t i = 0; i < len; i++) {
    char c = bytes[i];

    if (conn->depth == 0 && strchr(" \t\r\n", c) != NULL)
      continue;
    if (conn->depth == 0 && c != '{' && c != '[')
      return -1;
    keep_bytes(&conn->part, &conn->part_len, &conn->part_room, &c, 1);
    if (conn->in_string) {
      if (conn->escaped)
        conn->escaped = false;
      else if (c == '\\')
        conn->escaped = true;
      else if (c == '"')
        conn->in_string = false;
    } else if (c == '"') {
      conn->in_string = true;
    } else if (c == '{' || c == '[') {
      conn->depth++;
    } else if ((c == '}' || c == ']') && --conn->depth == 0) {
      end_message(conn);
    }
  }
  return 0;
}

int
egw_conn_data(struct egw_conn *conn, const char *bytes, size_t len, unsigned flags)
{
  if (conn->full)
    thost_fault(conn->link->host, "egw_conn_data() while a reader is full");
  if (flags & EGW_CONN_STREAM) {
    if (split_stream(conn, bytes, len) != 0)
      return -1;
  } else {
    if (((flags & EGW_CONN_FIRST) != 0) != (conn->depth == 0))
      thost_fault(conn->link->host, "EGW_CONN_FIRST is wrong");
    keep_bytes(&conn->part, &conn->part_len, &conn->part_room, bytes, len);
    conn->depth = (flags & EGW_CONN_LAST) != 0 ? 0 : 1;
    if (conn->depth == 0)
      end_message(conn);
  }
  conn->full = conn->link->hold || conn->hold;
  conn->hold = false;
  return conn->full ? 1 : 0;
}

void
egw_conn_lost(struct egw_conn *conn, const char *why)
{
  struct egw_link *link = conn->link;
  struct list *i, *tmp;

  list_for_each_safe (i, tmp, &link->xchgs) {
    struct egw_xchg *x = container_of(i, struct egw_xchg, node);

    if (x->conn == conn)
      egw_xchg_done(x, x->call->sent ? EGW_MAYBE_SENT : EGW_NOT_SENT, why);
  }
  list_remove(&conn->node);
  memset(conn->state, 0xa5, link->host->transport->conn_size);
  free(conn->state);
  free(conn->part);
  free(conn);
}

void
thost_hold_one(struct thost_call *call)
{
  call->xchg->conn->hold = true;
}

void
thost_hold(struct egw_link *link, bool hold)
{
  struct list *i, *tmp;

  link->hold = hold;
  list_for_each_safe (i, tmp, &link->conns) {
    struct egw_conn *conn = container_of(i, struct egw_conn, node);

    if (hold || !conn->full)
      continue;
    conn->full = false;
    link->host->transport->more(link, NULL, conn);
  }
}
