/* SPDX-License-Identifier: MIT */
/* Answers over HTTP: status 200 whatever the call's outcome is, unless a stage asked for another
 * one; a JSON body of known length where it is whole, chunks where it is still coming. */
#include "listen/http.h"

#include <stdlib.h>
#include <string.h>
#include "admin/admin.h"
#include "gateway/gateway.h"

#define CACHE "X-Ethrpc-Gw-Cache"
#define EXPLAIN "X-Ethrpc-Gw-Explain"
#define NOTES_MARGIN 768u           /* the other headers of an answer, and slack */
#define NOTES_FIELD 72u             /* what a header of a request takes beside its text */
#define FLAT_MAX ((size_t)32 << 10) /* of answers in several pieces that are copied together */
#define IOV_MAX_PIECES 64u          /* libmicrohttpd keeps the list in the connection's pool */
#define BLOCK ((size_t)64 << 10)    /* of answers that are neither */

/* --- headers -------------------------------------------------------------------------- */

static bool
add(struct MHD_Response *response, const char *name, const char *value)
{
  return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* RFC 9110 12.5.5, fetch standard 3.2: only for origins of the list. */
static bool
add_cors(struct http_conn *conn, struct MHD_Response *response)
{
  char origin[256];

  if (conn->origin.ptr == NULL)
    return true;
  if (conn->origin.len >= sizeof origin)
    return false;
  memcpy(origin, conn->origin.ptr, conn->origin.len);
  origin[conn->origin.len] = '\0';
  return add(response, "Access-Control-Allow-Origin", origin) &&
         add(response, "Vary", "Origin") &&
         ((conn->notes.cache == NULL && conn->notes.story == NULL) ||
          add(response, "Access-Control-Expose-Headers", CACHE ", " EXPLAIN));
}

/* Bytes of notes that can go with the answer. libmicrohttpd composes its head in what the
 * request has left of the connection's pool, up to half of which holds bytes of requests that
 * follow; where that is not enough it closes the connection. */
static size_t
room_for_notes(struct http_conn *conn)
{
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  int fields = MHD_get_connection_values(conn->mhd, MHD_HEADER_KIND, NULL, NULL);
  size_t head = info == NULL ? HTTP_POOL : info->header_size;
  size_t used = NOTES_MARGIN + (size_t)(fields < 0 ? 0 : fields) * NOTES_FIELD;
  size_t left = head < HTTP_POOL / 2 ? HTTP_POOL / 2 : head < HTTP_POOL ? HTTP_POOL - head : 0;

  return left > used ? left - used : 0;
}

/* Cuts what does not fit: the story, then all. */
static void
fit_notes(struct http_conn *conn)
{
  struct answer_notes *notes = &conn->notes;
  size_t room = room_for_notes(conn), len = notes->cache == NULL ? 0 : strlen(notes->cache);

  if (len > room) {
    free(notes->cache);
    notes->cache = NULL;
    len = 0;
  }
  room -= len;
  if (notes->story == NULL || strlen(notes->story) <= room)
    return;
  if (room > 3) {
    memcpy(notes->story + room - 3, "...", 4);
    return;
  }
  free(notes->story);
  notes->story = NULL;
}

static bool
add_notes(struct http_conn *conn, struct MHD_Response *response)
{
  const struct answer_notes *notes = &conn->notes;

  if (notes->cache != NULL || notes->story != NULL)
    fit_notes(conn);
  return (notes->cache == NULL || add(response, CACHE, notes->cache)) &&
         (notes->story == NULL || add(response, EXPLAIN, notes->story));
}

static bool
add_headers(struct http_conn *conn, struct MHD_Response *response, const char *type)
{
  if (type != NULL && !add(response, "Content-Type", type))
    return false;
  if (conn->server->draining && !add(response, "Connection", "close"))
    return false;
  return add_notes(conn, response) && add_cors(conn, response);
}

/* Takes the response. MHD_NO, on which the connection is closed, when memory is short. */
static enum MHD_Result
queue(struct http_conn *conn, int status, const char *type, struct MHD_Response *response)
{
  enum MHD_Result rc = MHD_NO;

  if (response != NULL && add_headers(conn, response, type))
    rc = MHD_queue_response(conn->mhd, (unsigned)status, response);
  if (response != NULL)
    MHD_destroy_response(response);
  conn->phase = rc == MHD_YES ? HTTP_REPLYING : HTTP_CUT;
  conn->since = egw_now_ms(conn->server->worker);
  conn->looked = 0;
  return rc;
}

/* --- whole answers -------------------------------------------------------------------- */

static void
free_out(void *cls)
{
  out_free(cls);
}

/* Copies the oldest bytes and drops them. */
static size_t
move_bytes(struct out *out, char *to, size_t max)
{
  struct iovec iov[16];
  size_t done = 0;

  while (done < max && out->bytes > 0) {
    unsigned n = out_peek(out, iov, 16);
    size_t before = done;

    for (unsigned i = 0; i < n && done < max; i++) {
      size_t len = iov[i].iov_len < max - done ? iov[i].iov_len : max - done;

      memcpy(to + done, iov[i].iov_base, len);
      done += len;
    }
    out_consume(out, done - before);
  }
  return done;
}

/* One piece of memory and one system call for head and body. */
static struct MHD_Response *
make_flat(struct out *out)
{
  size_t len = out->bytes;
  char *copy = malloc(len);
  struct MHD_Response *response = NULL;

  if (copy != NULL) {
    move_bytes(out, copy, len);
    response = MHD_create_response_from_buffer(len, copy, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
      free(copy);
  }
  out_free(out);
  return response;
}

static struct MHD_Response *
make_vector(struct out *out)
{
  struct iovec iov[IOV_MAX_PIECES];
  struct MHD_IoVec vector[IOV_MAX_PIECES];
  unsigned n = out_peek(out, iov, IOV_MAX_PIECES);
  struct MHD_Response *response;

  for (unsigned i = 0; i < n; i++)
    vector[i] = (struct MHD_IoVec){ iov[i].iov_base, iov[i].iov_len };
  if (n == 1)
    response = MHD_create_response_from_buffer_with_free_callback_cls(
        vector[0].iov_len, (void *)(uintptr_t)vector[0].iov_base, free_out, out);
  else
    response = MHD_create_response_from_iovec(vector, n, free_out, out);
  if (response == NULL)
    out_free(out);
  return response;
}

static ssize_t
read_whole(void *cls, uint64_t pos, char *to, size_t max)
{
  size_t n = move_bytes(cls, to, max);

  (void)pos;
  return n == 0 ? MHD_CONTENT_READER_END_WITH_ERROR : (ssize_t)n;
}

static struct MHD_Response *
make_blocks(struct out *out)
{
  struct MHD_Response *response =
      MHD_create_response_from_callback(out->bytes, BLOCK, read_whole, out, free_out);

  if (response == NULL)
    out_free(out);
  return response;
}

/* Takes `out`. */
static struct MHD_Response *
make_whole(struct out *out)
{
  if (out->count > 1 && out->bytes <= FLAT_MAX)
    return make_flat(out);
  if (out->count >= 1 && out->count <= IOV_MAX_PIECES)
    return make_vector(out);
  return make_blocks(out);
}

static struct MHD_Response *
make_empty(void)
{
  return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
}

/* --- answers in pieces ---------------------------------------------------------------- */

/* The client must not take a part for the whole: without the last chunk, and with a reset
 * where the end of the connection would be the end of the body (HTTP/1.0). */
static ssize_t
break_off(struct http_conn *conn)
{
  struct linger hard = { .l_onoff = 1, .l_linger = 0 };

  setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  /* libmicrohttpd 0.9.75 closes a connection whose reader failed only when the next event
   * comes. */
  shutdown(conn->fd, SHUT_RD);
  conn->server->wanted = true;
  return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t
read_pieces(void *cls, uint64_t pos, char *to, size_t max)
{
  struct http_conn *conn = cls;
  struct out *out = conn->out;
  size_t n;

  (void)pos;
  if (out == NULL || out->aborted)
    return break_off(conn);
  n = move_bytes(out, to, max);
  if (n > 0) {
    metric_add(&conn->server->worker->metrics->bytes_out[CLIENT_HTTP], (int64_t)n);
    if (out->open && out->drained != NULL)
      out->drained(out, out->arg);
    return (ssize_t)n;
  }
  if (!out->open)
    return MHD_CONTENT_READER_END_OF_STREAM;
  conn->suspended = true;
  MHD_suspend_connection(conn->mhd);
  return 0;
}

static void
on_changed(struct out *out, void *arg)
{
  struct http_conn *conn = arg;

  if (!out->open || out->aborted)
    conn->request = NULL;
  http_wake(conn);
}

/* --- the session's side --------------------------------------------------------------- */

static void
on_reply(struct session *session, void *cookie, struct out *out)
{
  struct http_conn *conn = cookie;

  conn->answered = true;
  conn->out = out;
  if (out != NULL && out->open) {
    out->changed = on_changed;
    out->changed_arg = conn;
  } else {
    conn->request = NULL;
  }
  if (out != NULL && !out->open) {
    conn->queued = out->bytes;
    session_queue(session, conn->queued, 0);
    metric_add(&session->worker->metrics->bytes_out[CLIENT_HTTP], (int64_t)conn->queued);
  }
  http_wake(conn);
}

static void
on_close(struct session *session, bool now, int ws_code, const char *reason)
{
  struct http_conn *conn = container_of(session, struct http_conn, session);

  (void)now;
  (void)ws_code;
  (void)reason;
  http_cut(conn);
}

const struct session_ops http_session_ops = { .reply = on_reply, .close = on_close };

/* RFC 9110 15.5.2: 401 says how to authenticate. */
static enum MHD_Result
queue_answer(struct http_conn *conn, struct MHD_Response *response)
{
  int status = conn->notes.status == 0 ? 200 : conn->notes.status;

  if (status == 401 && response != NULL && !add(response, "WWW-Authenticate", "Bearer")) {
    MHD_destroy_response(response);
    response = NULL;
  }
  return queue(conn, status, "application/json", response);
}

enum MHD_Result
http_reply(struct http_conn *conn)
{
  struct out *out = conn->out;

  if (out == NULL)
    return queue(conn, 204, NULL, make_empty());
  if (out->aborted)
    return http_refuse(conn, 500, REFUSED_OVERLOAD, "internal error");
  if (out->open)
    return queue_answer(conn, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384,
                                                                read_pieces, conn, NULL));
  conn->out = NULL;
  if (out->bytes == 0) {
    out_free(out);
    return queue_answer(conn, make_empty());
  }
  return queue_answer(conn, make_whole(out));
}

/* --- answers without a call ----------------------------------------------------------- */

enum MHD_Result
http_reply_hello(struct http_conn *conn)
{
  static char text[] = "{\"service\":\"ethrpc-gw\",\"usage\":\"send JSON-RPC 2.0 by POST or "
                       "WebSocket\"}\n";

  return queue(conn, 200, "application/json",
               MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT));
}

/* Fetch standard 3.2.3, CORS preflight. Without an Origin it is an ordinary OPTIONS
 * (RFC 9110 9.3.7). */
enum MHD_Result
http_reply_preflight(struct http_conn *conn)
{
  struct MHD_Response *response = make_empty();
  bool added;

  if (response == NULL)
    return queue(conn, 204, NULL, NULL);
  added = add(response, "Allow", "GET, HEAD, POST, OPTIONS");
  if (added && conn->origin.ptr != NULL) {
    added = add(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS") &&
            add(response, "Access-Control-Allow-Headers",
                "content-type, authorization, x-requested-with, x-api-key, "
                "x-ethrpc-gw-cache, x-ethrpc-gw-explain") &&
            add(response, "Access-Control-Max-Age", "600");
    /* A page of the public web that reaches for the local network asks for this one. */
    if (added && MHD_lookup_connection_value(conn->mhd, MHD_HEADER_KIND,
                                             "Access-Control-Request-Private-Network") != NULL)
      added = add(response, "Access-Control-Allow-Private-Network", "true");
  }
  if (!added) {
    MHD_destroy_response(response);
    response = NULL;
  }
  return queue(conn, 204, NULL, response);
}

static void
free_buf(void *cls)
{
  egw_buf_unref(cls);
}

enum MHD_Result
http_reply_admin(struct http_conn *conn, const char *method)
{
  struct admin_answer answer = { .status = 500 };
  struct MHD_Response *response;
  struct egw_slice body;
  char path[256];

  if (conn->path.len >= sizeof path)
    return http_refuse(conn, 404, REFUSED_HEAD, "no such page");
  memcpy(path, conn->path.ptr, conn->path.len);
  path[conn->path.len] = '\0';
  if (admin_answer(conn->server->worker->gateway, method, path, &answer) != 0)
    return http_refuse(conn, 500, REFUSED_OVERLOAD, "out of memory");
  if (answer.body == NULL)
    return queue(conn, answer.status, answer.content_type, make_empty());
  body = egw_buf_slice(answer.body);
  response = MHD_create_response_from_buffer_with_free_callback_cls(
      body.len, (void *)(uintptr_t)body.ptr, free_buf, answer.body);
  if (response == NULL)
    egw_buf_unref(answer.body);
  return queue(conn, answer.status, answer.content_type, response);
}
