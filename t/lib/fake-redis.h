/* SPDX-License-Identifier: MIT */
/* A Redis server made of a function, on the test's own libuv loop (that of a real worker):
 * it may be slow, lie, or say nothing. Included once by a test program; everything is
 * static. */
#ifndef T_LIB_FAKE_REDIS_H
#define T_LIB_FAKE_REDIS_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <hiredis/hiredis.h>
#include "tap.h"
#include "worker-kit.h"

struct fake_conn;

/* A command came: answer by fake_say(), or not. */
typedef void fake_fn(struct fake_conn *conn, const redisReply *command);

struct fake_redis {
  uv_tcp_t listener;
  fake_fn *fn;
  int port;
  unsigned conns, commands;     /* ever */
  struct fake_conn *last, *all;
};

struct fake_conn {
  uv_tcp_t tcp;
  struct fake_redis *server;
  redisReader *reader;
  char bytes[65536];
  bool gone;
  struct fake_conn *next;       /* of all that are open */
};

static struct fake_redis fake;

static void
fake_free(uv_handle_t *handle)
{
  struct fake_conn *c = handle->data;

  redisReaderFree(c->reader);
  free(c);
}

static void
fake_close(struct fake_conn *c)
{
  struct fake_conn **at;

  if (c->gone)
    return;
  c->gone = true;
  if (fake.last == c)
    fake.last = NULL;
  for (at = &fake.all; *at != c; at = &(*at)->next)
    ;
  *at = c->next;
  uv_close((uv_handle_t *)&c->tcp, fake_free);
}

static void
fake_written(uv_write_t *req, int status)
{
  (void)status;
  free(req->data);
  free(req);
}

static void
fake_say_bytes(struct fake_conn *c, const void *bytes, size_t len)
{
  uv_write_t *req = calloc(1, sizeof *req);
  char *copy = malloc(len + 1);

  if (req == NULL || copy == NULL)
    abort();
  memcpy(copy, bytes, len);
  req->data = copy;
  if (uv_write(req, (uv_stream_t *)&c->tcp, &(uv_buf_t){ .base = copy, .len = len }, 1,
               fake_written) != 0)
    abort();
}

static inline void
fake_say(struct fake_conn *c, const char *text)
{
  fake_say_bytes(c, text, strlen(text));
}

static inline void
fake_say_bulk(struct fake_conn *c, const void *bytes, size_t len)
{
  char head[32];

  fake_say_bytes(c, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", len));
  fake_say_bytes(c, bytes, len);
  fake_say(c, "\r\n");
}

static inline bool
fake_is(const redisReply *command, const char *name)
{
  return command->elements > 0 && strcmp(command->element[0]->str, name) == 0;
}

static void
fake_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
  struct fake_conn *c = handle->data;

  (void)suggested;
  *buf = uv_buf_init(c->bytes, sizeof c->bytes);
}

static void
fake_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
  struct fake_conn *c = stream->data;
  void *command;

  if (n < 0) {
    fake_close(c);
    return;
  }
  redisReaderFeed(c->reader, buf->base, (size_t)n);
  while (!c->gone && redisReaderGetReply(c->reader, &command) == REDIS_OK && command != NULL) {
    c->server->commands++;
    c->server->fn(c, command);
    freeReplyObject(command);
  }
}

static void
fake_accept(uv_stream_t *listener, int status)
{
  struct fake_conn *c = calloc(1, sizeof *c);

  (void)status;
  if (c == NULL)
    abort();
  c->server = &fake;
  c->reader = redisReaderCreate();
  uv_tcp_init(listener->loop, &c->tcp);
  c->tcp.data = c;
  if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0)
    abort();
  fake.conns++;
  fake.last = c;
  c->next = fake.all;
  fake.all = c;
  uv_read_start((uv_stream_t *)&c->tcp, fake_room, fake_read);
}

static inline void
fake_listen(void)
{
  struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)fake.port) };
  int len = sizeof sa;

  sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  uv_tcp_init(&kit_worker.loop, &fake.listener);
  if (uv_tcp_bind(&fake.listener, (struct sockaddr *)&sa, 0) != 0 ||
      uv_listen((uv_stream_t *)&fake.listener, 16, fake_accept) != 0 ||
      uv_tcp_getsockname(&fake.listener, (struct sockaddr *)&sa, &len) != 0)
    abort();
  fake.port = ntohs(sa.sin_port);
}

static inline void
fake_start(fake_fn *fn)
{
  memset(&fake, 0, sizeof fake);
  fake.fn = fn;
  fake_listen();
}

/* Nobody listens there any more; what is connected is closed. */
static inline void
fake_stop(void)
{
  while (fake.all != NULL)
    fake_close(fake.all);
  if (!uv_is_closing((uv_handle_t *)&fake.listener))
    uv_close((uv_handle_t *)&fake.listener, NULL);
}

/* After fake_stop(), and turns of the loop: at the same port. */
static inline void
fake_restart(void)
{
  fake_listen();
}

#endif
