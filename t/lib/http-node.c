/* SPDX-License-Identifier: MIT */
/* See http-node.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "http-node.h"

enum ending { KEEP, FIN, RST, IDLE50 };

struct hconn {
  struct list node;
  struct hnode *owner;
  uv_tcp_t tcp;
  uv_timer_t idle;
  char *in;
  size_t len, room;
  enum ending ending;
  unsigned handles;
};

struct hwrite {
  uv_write_t req;
  struct hconn *conn;
  char *bytes;
};

/* --- connections ---------------------------------------------------------------------- */

static void
on_handle_closed(uv_handle_t *handle)
{
  struct hconn *c = handle->data;

  if (--c->handles > 0)
    return;
  free(c->in);
  free(c);
}

static void
end_conn(struct hconn *c, bool reset)
{
  if (uv_is_closing((uv_handle_t *)&c->tcp))
    return;
  c->owner->open--;
  list_remove(&c->node);
  uv_close((uv_handle_t *)&c->idle, on_handle_closed);
  if (!reset || uv_tcp_close_reset(&c->tcp, on_handle_closed) != 0)
    uv_close((uv_handle_t *)&c->tcp, on_handle_closed);
}

static void
on_idle(uv_timer_t *timer)
{
  end_conn(timer->data, false);
}

static void
on_written(uv_write_t *req, int status)
{
  struct hwrite *w = (struct hwrite *)req;
  struct hconn *c = w->conn;

  free(w->bytes);
  free(w);
  if (status != 0 || uv_is_closing((uv_handle_t *)&c->tcp))
    return;
  if (c->ending == FIN || c->ending == RST)
    end_conn(c, c->ending == RST);
  else if (c->ending == IDLE50)
    uv_timer_start(&c->idle, on_idle, 50, 0);
}

/* Takes `bytes`. */
static void
send_bytes(struct hconn *c, char *bytes, size_t len)
{
  struct hwrite *w = calloc(1, sizeof *w);
  uv_buf_t buf = uv_buf_init(bytes, (unsigned)len);

  if (w == NULL || bytes == NULL)
    abort();
  w->conn = c;
  w->bytes = bytes;
  uv_write(&w->req, (uv_stream_t *)&c->tcp, &buf, 1, on_written);
}

__attribute__((format(printf, 2, 3))) static void
send_text(struct hconn *c, const char *fmt, ...)
{
  char *text = NULL;
  va_list ap;
  int n;

  va_start(ap, fmt);
  n = vasprintf(&text, fmt, ap);
  va_end(ap);
  if (n < 0)
    abort();
  send_bytes(c, text, (size_t)n);
}

/* --- answers -------------------------------------------------------------------------- */

/* The text behind "id": of the request. */
static int
id_of(const struct hnode *n, char *out, size_t cap)
{
  const char *at = n->body_len == 0 ? NULL : strstr(n->body, "\"id\":");
  size_t len;

  if (at == NULL)
    return snprintf(out, cap, "null");
  at += 5;
  len = strcspn(at, ",}");
  return snprintf(out, cap, "%.*s", (int)len, at);
}

static void
send_json(struct hconn *c, const char *status, const char *headers, const char *json,
          int extra)
{
  send_text(c,
            "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
            "%s",
            status, headers, (int)strlen(json) + extra, json);
}

static void
send_chunked(struct hconn *c, const char *json, bool cut)
{
  size_t n = strlen(json), room = n * 8 + 256, at;
  char *out = malloc(room);

  if (out == NULL)
    abort();
  at = (size_t)snprintf(out, room, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(out + at, room - at, "1\r\n%c\r\n", json[i]);
  if (!cut)
    at += (size_t)snprintf(out + at, room - at, "0\r\n\r\n");
  send_bytes(c, out, at);
}

static void
send_big(struct hconn *c, const char *id, size_t n)
{
  char *out = malloc(n + 512);
  int at;

  if (out == NULL)
    abort();
  at = snprintf(out, 512, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                n + strlen(id) + 36);
  at += snprintf(out + at, 256, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"", id);
  memset(out + at, 'a', n);
  at += (int)n;
  at += snprintf(out + at, 16, "\"}\n");
  send_bytes(c, out, (size_t)at);
}

static void
send_later(struct hconn *c, const char *when)
{
  char headers[1024], date[64];
  time_t t = time(NULL) + 90;
  struct tm tm;

  gmtime_r(&t, &tm);
  strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
  snprintf(headers, sizeof headers, "Retry-After: %s\r\n",
           strcmp(when, "date") == 0 ? date : when);
  send_json(c, "429 Too Many Requests", headers, "Too many connections.", 0);
}

static bool
is(const char *path, const char *name, enum ending ending, struct hconn *c)
{
  if (strcmp(path, name) != 0)
    return false;
  c->ending = ending;
  return true;
}

static bool
begins(const char *path, const char *name, const char **rest)
{
  *rest = path + strlen(name);
  return strncmp(path, name, strlen(name)) == 0;
}

static bool
answer_broken(struct hconn *c, const char *path, const char *json)
{
  if (is(path, "/drop", FIN, c) || is(path, "/droprst", RST, c))
    end_conn(c, c->ending == RST);
  else if (is(path, "/short", FIN, c) || is(path, "/shortrst", RST, c))
    send_json(c, "200 OK", "", json, 10);
  else if (is(path, "/chunkcut", FIN, c))
    send_chunked(c, json, true);
  else if (is(path, "/garbage", FIN, c))
    send_text(c, "HELLO\r\nWORLD\r\n\r\n");
  else if (is(path, "/stall", KEEP, c))
    send_json(c, "200 OK", "", "{\"jsonrpc\":", 100);
  else
    return is(path, "/silent", KEEP, c);
  return true;
}

static void
answer(struct hconn *c, const char *path)
{
  char id[64], json[256], headers[1024];
  const char *rest;

  id_of(c->owner, id, sizeof id);
  snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":\"0x1\"}", id);
  c->ending = KEEP;
  if (answer_broken(c, path, json))
    return;
  if (is(path, "/ok", KEEP, c) || is(path, "/close", FIN, c) || is(path, "/reset", RST, c)
      || is(path, "/idle50", IDLE50, c))
    send_json(c, "200 OK", "", json, 0);
  else if (is(path, "/chunked", KEEP, c))
    send_chunked(c, json, false);
  else if (is(path, "/delimited", FIN, c))
    send_text(c, "HTTP/1.0 200 OK\r\n\r\n%s", json);
  else if (is(path, "/html", KEEP, c))
    send_json(c, "200 OK", "", "<html>down</html>", 0);
  else if (begins(path, "/big/", &rest))
    send_big(c, id, (size_t)strtoul(rest, NULL, 10));
  else if (begins(path, "/later/", &rest))
    send_later(c, rest);
  else if (begins(path, "/moved", &rest)) {
    snprintf(headers, sizeof headers, "Location: http://127.0.0.1:%u%s\r\n", c->owner->port,
             rest);
    send_json(c, "302 Found", headers, "moved", 0);
  } else if (begins(path, "/status/", &rest)) {
    snprintf(json, sizeof json,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":3,\"message\":\"m\"}}", id);
    send_json(c, rest, "", json, 0);
  } else {
    send_json(c, "404 Not Found", "", "no such path", 0);
  }
}

/* --- requests ------------------------------------------------------------------------- */

/* Takes one complete request off the front; false: there is none yet. */
static bool
take_request(struct hconn *c)
{
  struct hnode *n = c->owner;
  char *end = c->len == 0 ? NULL : memmem(c->in, c->len, "\r\n\r\n", 4), *length, path[512];
  size_t head, body = 0;

  if (end == NULL)
    return false;
  head = (size_t)(end + 4 - c->in);
  if (head >= sizeof n->head)
    abort();
  memcpy(n->head, c->in, head);
  n->head[head] = 0;
  length = strcasestr(n->head, "content-length:");
  if (length != NULL)
    body = strtoul(length + 15, NULL, 10);
  if (c->len < head + body)
    return false;
  free(n->body);
  n->body = strndup(c->in + head, body);
  n->body_len = body;
  memmove(c->in, c->in + head + body, c->len - head - body);
  c->len -= head + body;
  n->requests++;
  if (sscanf(n->head, "%*s %511s", path) != 1)
    abort();
  answer(c, path);
  return true;
}

static void
on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
  struct hconn *c = handle->data;

  if (c->room - c->len < suggested) {
    c->room = c->len + suggested;
    c->in = realloc(c->in, c->room);
    if (c->in == NULL)
      abort();
  }
  *buf = uv_buf_init(c->in + c->len, (unsigned)(c->room - c->len));
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
  struct hconn *c = stream->data;

  (void)buf;
  if (n < 0) {
    end_conn(c, false);
    return;
  }
  uv_timer_stop(&c->idle);
  c->len += (size_t)n;
  while (!uv_is_closing((uv_handle_t *)&c->tcp) && take_request(c))
    ;
}

static void
on_connection(uv_stream_t *listener, int status)
{
  struct hnode *n = listener->data;
  struct hconn *c;

  if (status != 0)
    return;
  c = calloc(1, sizeof *c);
  if (c == NULL)
    abort();
  c->owner = n;
  c->handles = 2;
  uv_tcp_init(n->loop, &c->tcp);
  uv_timer_init(n->loop, &c->idle);
  c->tcp.data = c->idle.data = c;
  list_append(&n->conns, &c->node);
  n->accepted++;
  n->open++;
  if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0)
    abort();
  uv_tcp_nodelay(&c->tcp, 1);
  uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read);
}

/* --- life ----------------------------------------------------------------------------- */

int
hnode_start(struct hnode *n, uv_loop_t *loop, unsigned port)
{
  struct sockaddr_in address;
  int len = sizeof address;

  if (n->conns.next == NULL)
    list_init(&n->conns);
  n->loop = loop;
  n->listener.data = n;
  uv_ip4_addr("127.0.0.1", (int)port, &address);
  uv_tcp_init(loop, &n->listener);
  n->listening = true;
  if (uv_tcp_bind(&n->listener, (struct sockaddr *)&address, 0) != 0
      || uv_listen((uv_stream_t *)&n->listener, 128, on_connection) != 0)
    return -1;
  uv_tcp_getsockname(&n->listener, (struct sockaddr *)&address, &len);
  n->port = ntohs(address.sin_port);
  return 0;
}

void
hnode_end_all(struct hnode *n, bool reset)
{
  struct list *i, *tmp;

  list_for_each_safe(i, tmp, &n->conns)
    end_conn(container_of(i, struct hconn, node), reset);
}

void
hnode_stop(struct hnode *n)
{
  hnode_end_all(n, false);
  if (n->listening)
    uv_close((uv_handle_t *)&n->listener, NULL);
  n->listening = false;
  free(n->body);
  n->body = NULL;
  n->body_len = 0;
}
