/* SPDX-License-Identifier: MIT */
/* What goes out on a session whose connection is one stream of messages (WebSocket, IPC): the
 * messages in order, how far the one under way has got, and how much is waiting.
 *
 *   stream_add (replies, events) -> wake() -> stream_next / stream_consume / stream_end
 *
 * A message is begun only when it has bytes or is whole, and once begun it is the only one
 * that may be sent until its end. Worker's thread. */
#ifndef LISTEN_STREAM_H
#define LISTEN_STREAM_H

#include "listen/session.h"
#include "rpc/error.h"

struct stream {
  struct session *session;
  void (*wake)(struct stream *stream); /* there is something to send, or a message was cut */
  struct egw_slice mark;               /* literal put behind each message, or missing */
  struct list outs;                    /* struct out, oldest first */
  struct out *current;                 /* begun */
  size_t event_bytes;                  /* of waiting events, part of session->queue_bytes */
};

void stream_init(struct stream *stream, struct session *session,
                 void (*wake)(struct stream *stream), struct egw_slice mark);

/* Takes `out`, which may be open. `event`: not the answer to a request. */
void stream_add(struct stream *stream, struct out *out, bool event);

/* Whether an event of `bytes` finds no room (`limit` 0: it always does): too many bytes of
 * earlier events are waiting, that is the client does not read. */
bool stream_full(const struct stream *stream, size_t bytes, uint64_t limit);

/* The message to send from: the current one, else the first that can be begun; NULL: none.
 * Messages that turn out empty are dropped here. It may be `aborted`. */
struct out *stream_next(struct stream *stream);

/* `n` bytes of `out` were sent; tells its producer. */
void stream_consume(struct stream *stream, struct out *out, size_t n);

/* `out` was sent to its end: frees it. */
void stream_end(struct stream *stream, struct out *out);

/* Nothing is waiting, not even an open message without bytes. */
bool stream_empty(const struct stream *stream);

/* Frees all messages. Their producers must know that the session is gone (session_gone()), or
 * do it by way of this: `changed` is not called again. */
void stream_clear(struct stream *stream);

/* Tells the producers of open messages no more; before session_gone(). */
void stream_detach(struct stream *stream);

/* A limit on the time in which the client takes nothing. `sent`: something was sent just now. */
struct stall {
  uint64_t due;                        /* ms: something must have been taken by then; 0: none */
  int unsent;                          /* bytes in the kernel when that was set */
};
void stall_note(struct stall *stall, const struct stream *stream, int fd, bool sent);

/* Whether the limit is over and nothing was taken, also not of what the kernel holds: it tells
 * us of room only when much of that has gone. Else the limit is moved. */
bool stall_over(struct stall *stall, const struct stream *stream, int fd);

/* A whole message: the gateway's error `fault` with id null. NULL when memory is short. */
struct out *stream_fault(enum rpc_fault fault) EGW_MUST_CHECK;

#endif
