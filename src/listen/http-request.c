/* SPDX-License-Identifier: MIT */
/* A request from its head to request_start(). The head is judged again here, since
 * libmicrohttpd reads the later requests of a connection by itself: what it lets pass (both
 * kinds of length, a header twice, NUL bytes, bare line feeds, folded lines) is found before
 * anything is done. */
#include "listen/http.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>
#include "base/budget.h"
#include "gateway/gateway.h"
#include "listen/facts.h"
#include "listen/gate.h"
#include "listen/proxies.h"
#include "listen/route.h"

#define BODY_FREE ((size_t)16 << 10)     /* bytes of a body that are not reserved */
#define BODY_STEP ((size_t)64 << 10)     /* reserved at a time */
#define TOGETHER_MAX 128                 /* requests of one MHD_run() whose calls run after it */
#define GAP_MAX 256                      /* white space around a header value */

enum MHD_Result
http_refuse(struct http_conn *conn, int status, enum refusal refusal, const char *why)
{
  struct refusal_text text = { .status = status, .why = why, .origin = conn->origin,
                               .no_body = conn->no_body,
                               .admin = conn->session.listener->admin };

  metric_add(&conn->server->worker->metrics->refused[refusal], 1);
  refusal_send(conn->fd, &text);
  conn->linger = true;
  conn->phase = HTTP_CUT;
  return MHD_NO;
}

/* --- the target ----------------------------------------------------------------------- */

/* libmicrohttpd takes the query apart in place, so that this is the one chance to see the
 * target as it came. */
void *
http_on_target(void *cls, const char *uri, struct MHD_Connection *mhd)
{
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  struct http_conn *conn = info->socket_context;
  struct http_server *server = cls;
  const char *p;

  conn->bad_target = uri == NULL;
  conn->target = uri == NULL ? "" : uri;
  conn->target_len = SIZE_MAX;
  for (p = conn->target; *p != '\0'; p++) {
    if (*p <= 0x20 || *p >= 0x7f || *p == '#')
      conn->bad_target = true;
    if (*p == '?' && conn->target_len == SIZE_MAX)
      conn->target_len = (size_t)(p - conn->target);
  }
  conn->target_end = p;
  if (conn->target_len == SIZE_MAX)
    conn->target_len = (size_t)(p - conn->target);
  conn->phase = HTTP_HEAD;
  conn->since = egw_now_ms(server->worker);
  conn->looked = 0;
  list_remove(&conn->node);
  list_append(&server->active, &conn->node);
  http_sweep_soon(conn);
  return conn;
}

/* --- the head ------------------------------------------------------------------------- */

/* How the fields lie in the memory they were read into. Where libmicrohttpd lets bytes
 * disappear (NUL in a value, a bare line feed, a folded line) they are not one behind the
 * other any more. */
struct filling {
  struct gate_head *head;
  bool too_many, out_of_line;
  const char *end;             /* of what was seen so far */
};

/* Whether from..to holds nothing but line ends (as libmicrohttpd leaves them) and white space,
 * and at least `least` bytes. Only asked of bytes that were read in one piece. */
static bool
is_gap(const char *from, const char *to, size_t least)
{
  uintptr_t a = (uintptr_t)from, b = (uintptr_t)to;

  if (b < a || b - a < least || b - a > GAP_MAX)
    return false;
  for (; from < to; from++)
    if (*from != '\0' && *from != ' ' && *from != '\t' && *from != '\r' && *from != '\n' &&
        *from != ':')
      return false;
  return true;
}

static enum MHD_Result
on_header(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_len,
          const char *value, size_t value_len)
{
  struct filling *filling = cls;
  struct gate_head *head = filling->head;

  (void)kind;
  if (head->header_count == GATE_HEADERS_MAX) {
    filling->too_many = true;
    return MHD_NO;
  }
  if (value == NULL)
    value = key + key_len;
  if (filling->end != NULL &&
      (!is_gap(filling->end, key, 2) || !is_gap(key + key_len, value, value_len > 0)))
    filling->out_of_line = true;
  if (filling->end != NULL)
    filling->end = filling->out_of_line ? NULL : value + value_len;
  head->headers[head->header_count++] = (struct gate_header){
    { key, key_len },
    gate_trim((struct egw_slice){ key, key_len }, (struct egw_slice){ value, value_len }),
  };
  return MHD_YES;
}

/* The request line: one space each, and nothing between the last field and the end. */
static bool
is_in_line(struct http_conn *conn, const struct filling *filling)
{
  const struct gate_head *head = filling->head;
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

  return !filling->out_of_line && filling->end != NULL &&
         head->method.ptr + head->method.len + 1 == conn->target &&
         conn->target_end + 1 == head->version.ptr && info != NULL &&
         is_gap(filling->end, head->method.ptr + info->header_size, 4);
}

static bool
read_head(struct http_conn *conn, const char *method, const char *version,
          struct gate_head *head)
{
  struct filling filling = { .head = head };
  bool check = conn->later && !conn->server->strict_parser;

  head->method = (struct egw_slice){ method, strlen(method) };
  head->target = (struct egw_slice){ conn->target, conn->target_len };
  head->version = (struct egw_slice){ version, strlen(version) };
  head->header_count = 0;
  if (check)
    filling.end = version + head->version.len;
  MHD_get_connection_values_n(conn->mhd, MHD_HEADER_KIND, on_header, &filling);
  if (filling.too_many)
    return gate_refuse(head, 431, REFUSED_HEAD, "too many headers");
  if (conn->bad_target)
    return gate_refuse(head, 400, REFUSED_HEAD, "bad request target");
  if (check && !is_in_line(conn, &filling))
    return gate_refuse(head, 400, REFUSED_HEAD, "bad line in the request head");
  return gate_check_headers(conn->session.listener, head);
}

/* --- what is asked for ---------------------------------------------------------------- */

/* RFC 9110 8.3.1: type "/" subtype, then parameters, which do not matter. */
static bool
is_json_type(struct egw_slice type)
{
  static const char *const names[] = { "application/json", "application/json-rpc",
                                       "application/jsonrequest" };
  size_t len = 0;

  while (len < type.len && type.ptr[len] != ';')
    len++;
  while (len > 0 && (type.ptr[len - 1] == ' ' || type.ptr[len - 1] == '\t'))
    len--;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == len && strncasecmp(names[i], type.ptr, len) == 0)
      return true;
  return false;
}

/* A content type other than JSON could be sent by a page of any site without asking first. */
static enum MHD_Result
begin_call(struct http_conn *conn, const struct gate_head *head)
{
  const struct conf_limits *limits = &conn->session.listener->conf->limits;

  if (conn->network == NULL)
    return http_refuse(conn, 404, REFUSED_HEAD, "no network by that name");
  if (head->content_type.ptr == NULL || !is_json_type(head->content_type))
    return http_refuse(conn, 415, REFUSED_CONTENT_TYPE, "a JSON Content-Type is needed");
  if (head->content_encoding.ptr != NULL)
    return http_refuse(conn, 415, REFUSED_CONTENT_TYPE, "no Content-Encoding is supported");
  if (limits->max_request > 0 && head->body_length > limits->max_request)
    return http_refuse(conn, 413, REFUSED_SIZE, "request too large");
  conn->task = HTTP_CALL;
  conn->announced = (size_t)head->body_length;
  return MHD_YES;
}

/* What the client wants to have with its answer. */
static void
note_wishes(struct http_conn *conn, const struct gate_head *head)
{
  struct egw_slice explain = head->fields[FIELD_EXPLAIN];
  int allowed = conn->session.listener->conf->explain;
  bool local = conn->session.local && !conn->facts.forwarded;

  conn->notes.want_cache = head->fields[FIELD_CACHE].ptr != NULL;
  conn->notes.want_story = explain.len == 1 && explain.ptr[0] == '1' &&
                           (allowed == EXPLAIN_ALL || (allowed == EXPLAIN_LOCAL && local));
}

static enum MHD_Result
begin(struct http_conn *conn, const char *method, const char *version)
{
  struct listener *listener = conn->session.listener;
  struct gate_head head;

  conn->no_body = strcmp(method, "HEAD") == 0;
  conn->origin = (struct egw_slice){ NULL, 0 };
  if (!read_head(conn, method, version, &head)) {
    if (head.origin.ptr != NULL && gate_origin_allowed(listener, head.origin))
      conn->origin = head.origin;
    return http_refuse(conn, head.status, head.refusal, head.why);
  }
  conn->origin = head.origin;
  conn->phase = HTTP_BODY;
  conn->path = gate_path(head.target);
  if (listener->admin) {
    conn->task = HTTP_ADMIN;
    return MHD_YES;
  }
  conn->network = route_head(conn->server->worker->gateway, listener, &head);
  facts_read(&conn->facts, &head);
  proxies_ask(listener->proxies, &conn->peer.addr, &head, &conn->facts);
  note_wishes(conn, &head);
  if (method[0] == 'P')
    return begin_call(conn, &head);
  conn->task = method[0] == 'O' ? HTTP_PREFLIGHT : HTTP_HELLO;
  if (conn->task == HTTP_HELLO && conn->network == NULL)
    return http_refuse(conn, 404, REFUSED_HEAD, "no network by that name");
  return MHD_YES;
}

/* --- the body ------------------------------------------------------------------------- */

/* Memory follows the bytes that have really come. */
static bool
reserve(struct http_conn *conn, size_t len)
{
  size_t step = len - conn->reserved > BODY_STEP ? len - conn->reserved : BODY_STEP;

  if (len <= BODY_FREE || len <= conn->reserved)
    return true;
  if (!budget_take(&conn->server->worker->gateway->budget, step))
    return false;
  conn->reserved += step;
  return true;
}

static enum MHD_Result
take_body(struct http_conn *conn, const char *bytes, size_t *len)
{
  const struct conf_limits *limits = &conn->session.listener->conf->limits;

  if (conn->task != HTTP_CALL)
    return http_refuse(conn, 400, REFUSED_HEAD, "a body where none belongs");
  if (limits->max_request > 0 && *len > limits->max_request - conn->body_len)
    return http_refuse(conn, 413, REFUSED_SIZE, "request too large");
  if (!reserve(conn, conn->body_len + *len))
    return http_refuse(conn, 503, REFUSED_OVERLOAD, "overloaded");
  if (conn->body == NULL)
    conn->body = egw_buf_new(conn->announced > *len && conn->announced <= BODY_FREE
                                 ? conn->announced
                                 : *len);
  if (conn->body == NULL || egw_buf_append(conn->body, bytes, *len) != 0)
    return http_refuse(conn, 503, REFUSED_OVERLOAD, "overloaded");
  conn->body_len += *len;
  *len = 0;
  return MHD_YES;
}

/* Requests that are read together and answered together cost the least, as long as what belongs
 * to them stays in the processor's caches in between; those beyond that are answered one by
 * one. */
static enum MHD_Result
run_at_once(struct http_conn *conn)
{
  request_run(conn->request);
  if (conn->phase != HTTP_RUNNING)
    return MHD_NO;
  return conn->answered ? http_reply(conn) : MHD_YES;
}

static enum MHD_Result
start_call(struct http_conn *conn)
{
  struct egw_buf *body = conn->body == NULL ? egw_buf_new(0) : conn->body;
  struct metrics *metrics = conn->server->worker->metrics;

  conn->body = NULL;
  if (body == NULL)
    return http_refuse(conn, 500, REFUSED_OVERLOAD, "out of memory");
  metric_add(&metrics->bytes_in[CLIENT_HTTP], (int64_t)conn->body_len);
  conn->phase = HTTP_RUNNING;
  conn->since = egw_now_ms(conn->server->worker);
  conn->session.network = conn->network;
  conn->session.facts = &conn->facts;
  conn->session.notes = &conn->notes;
  conn->request = request_start(&conn->session, conn->network, body, conn);
  if (conn->request == NULL)
    return http_refuse(conn, 500, REFUSED_OVERLOAD, "out of memory");
  return ++conn->server->started > TOGETHER_MAX ? run_at_once(conn) : MHD_YES;
}

/* The request is complete. */
static enum MHD_Result
run(struct http_conn *conn, const char *method)
{
  switch (conn->task) {
  case HTTP_HELLO:
    return http_reply_hello(conn);
  case HTTP_PREFLIGHT:
    return http_reply_preflight(conn);
  case HTTP_ADMIN:
    return http_reply_admin(conn, method);
  case HTTP_CALL:
    break;
  }
  return start_call(conn);
}

/* libmicrohttpd asks again until there is an answer or it is told to wait. Waiting costs it
 * (and being woken costs) several system calls, which answers that are made later in the same
 * turn are spared by the one round of grace. */
static enum MHD_Result
answer_or_wait(struct http_conn *conn)
{
  if (conn->answered)
    return http_reply(conn);
  conn->suspended = true;
  MHD_suspend_connection(conn->mhd);
  return MHD_YES;
}

enum MHD_Result
http_on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                const char *version, const char *upload, size_t *upload_len, void **context)
{
  struct http_conn *conn = *context;

  (void)cls;
  (void)mhd;
  (void)url;
  if (conn == NULL)
    return MHD_NO;
  switch (conn->phase) {
  case HTTP_HEAD:
    return begin(conn, method, version);
  case HTTP_BODY:
    return *upload_len > 0 ? take_body(conn, upload, upload_len) : run(conn, method);
  case HTTP_RUNNING:
    return answer_or_wait(conn);
  case HTTP_REPLYING:
    return MHD_YES;
  case HTTP_IDLE:
  case HTTP_CUT:
    break;
  }
  return MHD_NO;
}
