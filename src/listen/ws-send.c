/* SPDX-License-Identifier: MIT */
/* Frames out. They are composed here and given to lws as raw bytes, since lws sends one frame
 * in one system call: many small answers of a turn leave together this way. A server's frames
 * are not masked (RFC 6455 5.1), so a frame is its head and the bytes as they are. Each chunk
 * holds whole frames only: lws puts its pongs between chunks. What is long or alone goes to the
 * socket from where it is, without a copy, while lws has nothing to send; lws gets what the
 * socket doesn't take of a frame. */
#include "listen/ws.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_HEAD_MAX 10u
#define FRAME_WORTH 4096u      /* don't begin a fragment with less room than this */
#define DIRECT_MIN 16384u      /* so much of a message is not copied */
#define DIRECT_PIECES 64u

enum { OP_CONTINUATION = 0, OP_TEXT = 1, OP_CLOSE = 8, OP_PING = 9, FIN = 0x80 };

static const struct conf_limits *
limits_of(const struct ws_session *s)
{
  return &s->session.listener->conf->limits;
}

/* Writes the head of a frame of `len` bytes (RFC 6455 5.2) so that it ends at `end`. Its
 * length. */
static size_t
put_head(unsigned char *end, unsigned char first, size_t len)
{
  size_t extra = len < 126 ? 0 : len < 65536 ? 2 : 8, i;

  for (i = 0; i < extra; i++)
    end[-1 - (ptrdiff_t)i] = (unsigned char)(len >> 8 * i);
  end[-1 - (ptrdiff_t)extra] = (unsigned char)(extra == 0 ? len : extra == 2 ? 126 : 127);
  end[-2 - (ptrdiff_t)extra] = first;
  return 2 + extra;
}

static size_t
head_size(size_t len)
{
  return len < 126 ? 2 : len < 65536 ? 4 : 10;
}

/* Copies `len` bytes of the message. */
static void
copy_out(struct ws_session *s, struct out *out, unsigned char *to, size_t len)
{
  while (len > 0) {
    struct iovec iov[16];
    unsigned n = out_peek(out, iov, 16), i;
    size_t done = 0;

    for (i = 0; i < n && done < len; i++) {
      size_t part = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

      memcpy(to + done, iov[i].iov_base, part);
      done += part;
    }
    to += done;
    len -= done;
    stream_consume(&s->stream, out, done);
  }
}

/* One frame of `out`, at most `room` bytes with its head. 0: not worth it. */
static size_t
put_frame(struct ws_session *s, struct out *out, unsigned char *at, size_t room)
{
  bool whole = !out->open && out->bytes <= room - FRAME_HEAD_MAX;
  size_t len = out->bytes <= room - FRAME_HEAD_MAX ? out->bytes : room - FRAME_HEAD_MAX;
  size_t head = head_size(len);
  unsigned char first = s->begun ? OP_CONTINUATION : OP_TEXT;

  if (!whole && len < out->bytes && room < FRAME_WORTH)
    return 0;
  put_head(at + head, whole ? first | FIN : first, len);
  s->begun = !whole;
  if (len == 0)
    stream_consume(&s->stream, out, 0);
  copy_out(s, out, at + head, len);
  if (whole)
    stream_end(&s->stream, out);
  return head + len;
}

size_t
ws_fill(struct ws_session *s, unsigned char *chunk, size_t size)
{
  size_t used = 0, some;

  while (size - used > FRAME_HEAD_MAX) {
    struct out *out = stream_next(&s->stream);

    if (out == NULL)
      break;
    if (out->aborted) { /* never to be whole: 5.4 has no way to take back what was sent */
      ws_session_close(s, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, "the answer broke off", true);
      break;
    }
    some = put_frame(s, out, chunk + used, size - used);
    if (some == 0)
      break;
    used += some;
  }
  return used;
}

/* Gives the first `len` bytes of the chunk to lws, which takes all. */
static int
give(struct ws_session *s, size_t len)
{
  if (lws_write(s->wsi, s->server->chunk + LWS_PRE, len, LWS_WRITE_RAW) < 0)
    return -1;
  metric_add(&s->session.worker->metrics->bytes_out[CLIENT_WS], (int64_t)len);
  return 0;
}

/* A control frame: a payload of at most 125 bytes (5.5). */
static int
send_control(struct ws_session *s, unsigned char op, const void *bytes, size_t len)
{
  unsigned char *frame = s->server->chunk + LWS_PRE;

  frame[0] = FIN | op;
  frame[1] = (unsigned char)len;
  memcpy(frame + 2, bytes, len);
  return give(s, len + 2);
}

static int
send_ping(struct ws_session *s)
{
  s->ping_wanted = false;
  return send_control(s, OP_PING, "ping", 4); /* lws tells nobody of pongs without payload */
}

static int
send_close(struct ws_session *s)
{
  unsigned char payload[2 + sizeof(s->reason)];
  size_t len = strlen(s->reason);

  payload[0] = (unsigned char)(s->code >> 8);
  payload[1] = (unsigned char)s->code;
  memcpy(payload + 2, s->reason, len);
  s->state = WS_CLOSE_SENT;
  s->end_due = egw_now_ms(s->session.worker) + limits_of(s)->write_timeout;
  return send_control(s, OP_CLOSE, payload, 2 + len);
}

/* Gives lws what is behind the first `sent` bytes of a frame. */
static int
give_rest(struct ws_session *s, const struct iovec *iov, unsigned count, size_t sent)
{
  unsigned char *to = s->server->chunk + LWS_PRE;
  size_t len = 0;
  unsigned i;

  for (i = 0; i < count; i++) {
    size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;

    memcpy(to + len, (const char *)iov[i].iov_base + skip, iov[i].iov_len - skip);
    len += iov[i].iov_len - skip;
    sent -= skip;
  }
  return give(s, len);
}

/* At most `most` bytes of the message; their sum. `*count`: how many pieces they are. */
static size_t
peek_most(const struct out *out, struct iovec *iov, unsigned *count, size_t most)
{
  unsigned n = out_peek(out, iov, *count), i;
  size_t len = 0;

  for (i = 0; i < n && len < most; i++) {
    if (iov[i].iov_len > most - len)
      iov[i].iov_len = most - len;
    len += iov[i].iov_len;
  }
  *count = i;
  return len;
}

/* One frame of `out`, past lws. Bytes; 0: the socket takes nothing now; -1. */
static long
send_direct(struct ws_session *s, struct out *out)
{
  struct iovec iov[1 + DIRECT_PIECES];
  unsigned char head[FRAME_HEAD_MAX];
  unsigned count = DIRECT_PIECES;
  size_t len = peek_most(out, iov + 1, &count, WS_CHUNK - FRAME_HEAD_MAX);
  bool whole = !out->open && len == out->bytes;
  unsigned char first = s->begun ? OP_CONTINUATION : OP_TEXT;
  struct msghdr msg = { .msg_iov = iov, .msg_iovlen = count + 1 };
  ssize_t n;

  iov[0].iov_base = head;
  iov[0].iov_len = put_head(head + head_size(len), whole ? first | FIN : first, len);
  n = sendmsg(lws_get_socket_fd(s->wsi), &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0)
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  metric_add(&s->session.worker->metrics->bytes_out[CLIENT_WS], (int64_t)n);
  if ((size_t)n < iov[0].iov_len + len && give_rest(s, iov, count + 1, (size_t)n) != 0)
    return -1;
  s->begun = !whole;
  stream_consume(&s->stream, out, len);
  if (whole)
    stream_end(&s->stream, out);
  return (long)(iov[0].iov_len + len);
}

static bool
goes_direct(const struct ws_session *s, const struct out *out)
{
  bool alone = out->node.next == &s->stream.outs && out->node.prev == &s->stream.outs;

  return !out->aborted && (alone || out->bytes >= DIRECT_MIN);
}

/* Whole frames by way of the chunk. Bytes; 0: there are none worth it, or the socket takes nothing
 * (lws would keep a copy; asking takes a system call); -1. */
static long
send_chunk(struct ws_session *s, bool writeable)
{
  size_t len;

  if (!writeable && lws_send_pipe_choked(s->wsi))
    return 0;
  len = ws_fill(s, s->server->chunk + LWS_PRE, WS_CHUNK);
  return len > 0 && give(s, len) != 0 ? -1 : (long)len;
}

/* Bytes sent, or -1. */
static long
flush_stream(struct ws_session *s, bool writeable)
{
  long total = 0, some;
  unsigned round;

  for (round = 0; round < WS_ROUNDS; round++) {
    struct out *out = stream_next(&s->stream);

    if (out == NULL || lws_partial_buffered(s->wsi))
      break;
    some = goes_direct(s, out) ? send_direct(s, out) : send_chunk(s, writeable);
    writeable = false;
    if (some < 0)
      return -1;
    if (some == 0)
      break;
    total += some;
  }
  return total;
}

int
ws_flush(struct ws_session *s, bool writeable)
{
  long sent = 0;

  if (s->state == WS_CLOSING && (writeable || !lws_send_pipe_choked(s->wsi)))
    return send_close(s);
  if (s->state == WS_OPEN && s->ping_wanted && (writeable || !lws_send_pipe_choked(s->wsi))) {
    writeable = false;
    if (send_ping(s) != 0)
      return -1;
  }
  if (s->state == WS_OPEN && s->session.queue_bytes + (size_t)!stream_empty(&s->stream) > 0)
    sent = flush_stream(s, writeable);
  if (sent < 0)
    return -1;
  stall_note(&s->stall, &s->stream, lws_get_socket_fd(s->wsi), sent > 0);
  /* Not when bytes wait behind an answer that goes on later: that would be asked again at once. */
  if (s->state == WS_CLOSING || s->ping_wanted ||
      (s->state == WS_OPEN && stream_next(&s->stream) != NULL))
    lws_callback_on_writable(s->wsi);
  if (sent > 0)
    session_sent(&s->session);
  return 0;
}
