/* SPDX-License-Identifier: MIT */
/* The output of WebSocket and IPC sessions. See stream.h. */
#include "listen/stream.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include "listen/listen.h"
#include "worker/worker.h"

void
stream_init(struct stream *stream, struct session *session,
            void (*wake)(struct stream *stream), struct egw_slice mark)
{
  stream->session = session;
  stream->wake = wake;
  stream->mark = mark;
  list_init(&stream->outs);
  stream->current = NULL;
  stream->event_bytes = 0;
}

/* `changed` belongs to the consumer of an open message; of a closed one nobody calls it, and
 * then `changed_arg` tells events from replies. */
static bool
stream_is_event(const struct out *out)
{
  return out->changed == NULL && out->changed_arg != NULL;
}

/* The message has all its bytes: nobody will call `changed` again. */
static void
stream_whole(struct stream *stream, struct out *out)
{
  out->changed = NULL;
  out->changed_arg = NULL;
  if (!out->aborted && out_add_static(out, stream->mark) != 0)
    out->aborted = true;
}

/* The producer added to, closed or aborted an open message. How much it added shows only in
 * the sum, and the list is short. */
static void
stream_changed(struct out *out, void *arg)
{
  struct stream *stream = arg;
  struct list *node;
  size_t bytes = 0;

  if (!out->open || out->aborted)
    stream_whole(stream, out);
  list_for_each(node, &stream->outs)
    bytes += container_of(node, struct out, node)->bytes;
  session_queue(stream->session, bytes, stream->session->queue_bytes);
  stream->wake(stream);
}

void
stream_add(struct stream *stream, struct out *out, bool event)
{
  if (out->open && !out->aborted) {
    out->changed = stream_changed;
    out->changed_arg = stream;
  } else {
    stream_whole(stream, out);
    out->changed_arg = event ? stream : NULL;
    if (event)
      stream->event_bytes += out->bytes;
  }
  list_append(&stream->outs, &out->node);
  session_queue(stream->session, out->bytes, 0);
  stream->wake(stream);
}

bool
stream_full(const struct stream *stream, size_t bytes, uint64_t limit)
{
  return limit > 0 && stream->event_bytes > 0 &&
         (stream->event_bytes > limit || bytes > limit - stream->event_bytes);
}

struct out *
stream_next(struct stream *stream)
{
  struct list *node, *tmp;

  struct out *current = stream->current;

  if (current != NULL)
    return current->aborted || current->bytes > 0 || !current->open ? current : NULL;
  list_for_each_safe(node, tmp, &stream->outs) {
    struct out *out = container_of(node, struct out, node);

    if (out->aborted || out->bytes > 0)
      return out;
    if (!out->open)
      stream_end(stream, out);
  }
  return NULL;
}

void
stream_consume(struct stream *stream, struct out *out, size_t n)
{
  stream->current = out;
  if (stream_is_event(out))
    stream->event_bytes -= n;
  session_queue(stream->session, 0, n);
  out_consume(out, n);
  if (out->open && n > 0 && out->drained != NULL)
    out->drained(out, out->arg);
}

void
stream_end(struct stream *stream, struct out *out)
{
  if (stream_is_event(out))
    stream->event_bytes -= out->bytes;
  session_queue(stream->session, 0, out->bytes);
  if (stream->current == out)
    stream->current = NULL;
  list_remove(&out->node);
  out_free(out);
}

bool
stream_empty(const struct stream *stream)
{
  return list_empty(&stream->outs);
}

void
stream_detach(struct stream *stream)
{
  struct list *node;

  list_for_each(node, &stream->outs) {
    struct out *out = container_of(node, struct out, node);

    if (out->changed != NULL) {
      out->changed = NULL;
      out->changed_arg = NULL;
    }
  }
}

void
stream_clear(struct stream *stream)
{
  while (!list_empty(&stream->outs))
    stream_end(stream, container_of(stream->outs.next, struct out, node));
}

/* Bytes the client's side has not taken; the same for TCP and unix sockets. */
static int
unsent_bytes(int fd)
{
  int bytes = 0;

  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

static void
stall_restart(struct stall *stall, const struct stream *stream, int fd)
{
  stall->due = egw_now_ms(stream->session->worker) +
               stream->session->listener->conf->limits.write_timeout;
  stall->unsent = unsent_bytes(fd);
}

void
stall_note(struct stall *stall, const struct stream *stream, int fd, bool sent)
{
  if (stream->session->queue_bytes == 0)
    stall->due = 0;
  else if (sent || stall->due == 0)
    stall_restart(stall, stream, fd);
}

bool
stall_over(struct stall *stall, const struct stream *stream, int fd)
{
  if (stall->due == 0 || egw_now_ms(stream->session->worker) < stall->due)
    return false;
  if (unsent_bytes(fd) == stall->unsent)
    return true;
  stall_restart(stall, stream, fd);
  return false;
}

struct out *
stream_fault(enum rpc_fault fault)
{
  const struct rpc_fault_info *info = rpc_fault_info(fault);
  struct egw_slice message = { info->message, strlen(info->message) };
  struct egw_buf *error = egw_buf_new(96);
  struct out *out = out_new(3, 0);

  if (error == NULL || out == NULL || rpc_error_print(error, info->code, message) != 0)
    goto fail;
  if (out_add_static(out, EGW_LIT("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":")) != 0)
    goto fail;
  if (out_add(out, egw_buf_ref(error), egw_buf_slice(error)) != 0 ||
      out_add_static(out, EGW_LIT("}")) != 0)
    goto fail;
  egw_buf_unref(error);
  return out;
fail:
  egw_buf_unref(error);
  out_free(out);
  return NULL;
}
