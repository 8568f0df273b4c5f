/* SPDX-License-Identifier: MIT */
/* One connection to a Redis server: a libuv stream and hiredis' reader. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <hiredis/hiredis.h>
#include "parts.h"

#define READ_BYTES 65536u
#define ARGS_MAX 16u

struct redis_conn {
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  } uv;
  uv_connect_t connect;
  struct redis_client *client;  /* NULL: closed, waiting for the end of its handle */
  redisReader *reader;
  struct redis_expected expected;
  size_t max_reply;
  char bytes[READ_BYTES];
};

struct sending {
  uv_write_t req;
  char *command;
};

/* --- ending ------------------------------------------------------------------------------ */

static void
on_closed(uv_handle_t *handle)
{
  struct redis_conn *c = handle->data;

  redisReaderFree(c->reader);
  free(c);
}

void
redis_conn_close(struct redis_conn *c)
{
  c->client = NULL;
  uv_close(&c->uv.handle, on_closed);
}

static void
lose(struct redis_conn *c, const char *why)
{
  if (c->client != NULL)
    redis_client_lost(c->client, why);
}

/* --- reading ----------------------------------------------------------------------------- */

static void
on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
  struct redis_conn *c = handle->data;

  (void)suggested;
  *buf = uv_buf_init(c->bytes, sizeof(c->bytes));
}

/* Each reply goes to the client, which may close the connection at it. */
static void
take_replies(struct redis_conn *c)
{
  void *reply;

  while (c->client != NULL) {
    reply = NULL;
    if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
      lose(c, c->expected.replies == 0 ? "it sends what nobody asked for"
                                       : "it does not speak the protocol");
      return;
    }
    if (reply == NULL)
      return;
    c->expected.replies--;
    redis_client_replied(c->client, reply);
    redis_answer_free(reply);
  }
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
  struct redis_conn *c = stream->data;

  if (n == 0 || c->client == NULL)
    return;
  if (n < 0) {
    lose(c, n == UV_EOF ? "it closed the connection" : "the connection broke");
    return;
  }
  /* What the reader holds is one reply that is not complete. */
  if (c->reader->len - c->reader->pos + (size_t)n > c->max_reply + READ_BYTES) {
    lose(c, "its reply is too long");
    return;
  }
  if (redisReaderFeed(c->reader, buf->base, (size_t)n) != REDIS_OK) {
    lose(c, "memory is short");
    return;
  }
  take_replies(c);
}

/* --- connecting -------------------------------------------------------------------------- */

static void
on_connected(uv_connect_t *req, int status)
{
  struct redis_conn *c = req->handle->data;

  if (c->client == NULL)
    return;
  if (status != 0) {
    lose(c, status == UV_ECONNREFUSED ? "nobody listens there"
            : status == UV_ENOENT     ? "there is no such socket"
            : status == UV_EACCES     ? "permission denied"
                                      : "it can't be reached");
    return;
  }
  if (uv_read_start(&c->uv.stream, on_room, on_read) != 0) {
    lose(c, "the connection broke");
    return;
  }
  redis_client_opened(c->client);
}

/* 0, or an error of libuv; then the handle must be closed, unless *begun is still false. */
static int
begin(struct redis_conn *c, uv_loop_t *loop, const struct sockaddr *sa, const char *path,
      bool *begun)
{
  int error = sa != NULL ? uv_tcp_init(loop, &c->uv.tcp) : uv_pipe_init(loop, &c->uv.pipe, 0);

  if (error != 0)
    return error;
  *begun = true;
  c->uv.handle.data = c;
  if (sa == NULL) {
    uv_pipe_connect(&c->connect, &c->uv.pipe, path, on_connected);
    return 0;
  }
  (void)uv_tcp_nodelay(&c->uv.tcp, 1);
  return uv_tcp_connect(&c->connect, &c->uv.tcp, sa, on_connected);
}

struct redis_conn *
redis_conn_open(struct redis_client *client, struct uv_loop_s *loop, const struct sockaddr *sa,
                const char *path, size_t max_reply, const char **why)
{
  struct redis_conn *c = calloc(1, sizeof(*c));
  bool begun = false;

  *why = "memory is short";
  if (c == NULL)
    return NULL;
  c->max_reply = max_reply;
  c->reader = redis_reader_new(&c->expected);
  if (c->reader != NULL && begin(c, loop, sa, path, &begun) == 0) {
    c->client = client;
    return c;
  }
  if (begun) {
    *why = "it can't be reached";
    redis_conn_close(c);
    return NULL;
  }
  if (c->reader != NULL)
    redisReaderFree(c->reader);
  free(c);
  return NULL;
}

/* --- writing ----------------------------------------------------------------------------- */

static void
on_written(uv_write_t *req, int status)
{
  struct sending *s = req->data;
  struct redis_conn *c = req->handle->data;

  redisFreeCommand(s->command);
  free(s);
  if (status < 0)
    lose(c, "the connection broke");
}

int
redis_conn_send(struct redis_conn *c, const struct egw_slice *args, unsigned n)
{
  const char *argv[ARGS_MAX];
  size_t lens[ARGS_MAX];
  struct sending *s;
  uv_buf_t buf;
  long long len;
  unsigned i;

  if (n > ARGS_MAX)
    return -1;
  for (i = 0; i < n; i++) {
    argv[i] = args[i].ptr == NULL ? "" : args[i].ptr;
    lens[i] = args[i].len;
  }
  s = calloc(1, sizeof(*s));
  if (s == NULL)
    return -1;
  len = redisFormatCommandArgv(&s->command, (int)n, argv, lens);
  if (len < 0) {
    free(s);
    return -1;
  }
  s->req.data = s;
  buf = (uv_buf_t){ .base = s->command, .len = (size_t)len };
  if (uv_write(&s->req, &c->uv.stream, &buf, 1, on_written) != 0) {
    redisFreeCommand(s->command);
    free(s);
    return -1;
  }
  c->expected.replies++;
  return 0;
}

size_t
redis_conn_unsent(const struct redis_conn *c)
{
  return uv_stream_get_write_queue_size(&c->uv.stream);
}
