/* SPDX-License-Identifier: MIT */
/* Messages in. lws hands over the payload of data frames in pieces as they arrive; a message
 * is put together from them and grows with what has come, never with what was announced. Text
 * and binary are the same here: invalid UTF-8 is the scanner's to refuse (with an error the
 * client can tell from a lost connection), and lws would judge the payload of pongs too. */
#include "listen/ws.h"

#include "gateway/gateway.h"

#define RATE_MIN 1024u         /* bytes a second by which an unfinished message must grow */

static const struct conf_limits *
limits_of(const struct ws_session *s)
{
  return &s->session.listener->conf->limits;
}

void
ws_receive_drop(struct ws_session *s)
{
  egw_buf_unref(s->text);
  s->text = NULL;
  budget_give(&s->session.worker->gateway->budget, s->reserved);
  s->reserved = 0;
}

static void
answer_fault(struct ws_session *s, enum rpc_fault fault)
{
  struct out *out = stream_fault(fault);

  if (out == NULL)
    ws_session_kill(s);
  else
    stream_add(&s->stream, out, false);
}

/* The message can't be taken: what is still to come of it is dropped. */
static void
refuse(struct ws_session *s, enum rpc_fault fault)
{
  ws_receive_drop(s);
  s->refused = true;
  if (fault == RPC_FAULT_OVERLOADED)
    metric_add(&s->session.worker->metrics->refused[REFUSED_OVERLOAD], 1);
  answer_fault(s, fault);
}

static void
start_request(struct ws_session *s, struct egw_buf *text)
{
  s->pending++;
  if (request_start(&s->session, NULL, text, NULL) == NULL) {
    s->pending--;
    answer_fault(s, RPC_FAULT_INTERNAL);
  }
}

static void
keep_piece(struct ws_session *s, const char *bytes, size_t len)
{
  if (!budget_take(&s->session.worker->gateway->budget, len)) {
    refuse(s, RPC_FAULT_OVERLOADED);
    return;
  }
  s->reserved += len;
  if (s->text == NULL)
    s->text = egw_buf_new(len);
  if (s->text == NULL || egw_buf_append(s->text, bytes, len) != 0)
    refuse(s, RPC_FAULT_INTERNAL);
}

/* The message is complete with these bytes. */
static void
finish(struct ws_session *s, const char *bytes, size_t len)
{
  struct egw_buf *text = NULL;

  s->in_message = false;
  s->message_due = 0;
  if (s->refused)
    return;
  if (s->text == NULL) {
    text = egw_buf_copy((struct egw_slice){ bytes, len });
  } else if (egw_buf_append(s->text, bytes, len) == 0) {
    text = s->text;
    s->text = NULL;
  }
  ws_receive_drop(s); /* gives the reservation back */
  if (text == NULL)
    answer_fault(s, RPC_FAULT_INTERNAL);
  else
    start_request(s, text);
}

/* The message's length so far with what was announced for the frame under way. */
static bool
too_large(struct ws_session *s)
{
  uint64_t limit = limits_of(s)->max_request, left = lws_remaining_packet_payload(s->wsi);

  return s->seen > limit || left > limit - s->seen;
}

/* Whether the unfinished message has grown too slowly; see when to look next. */
bool
ws_receive_late(struct ws_session *s, uint64_t now)
{
  if (s->message_due == 0 || now < s->message_due)
    return false;
  s->message_due = now + 1000;
  return s->seen < (now - s->began) / 1000 * RATE_MIN;
}

void
ws_receive(struct ws_session *s, const char *bytes, size_t len)
{
  uint64_t now = egw_now_ms(s->session.worker);

  s->heard = now;
  metric_add(&s->session.worker->metrics->bytes_in[CLIENT_WS], (int64_t)len);
  if (s->state != WS_OPEN || s->code != 0)
    return;
  if (!s->in_message) {
    s->in_message = true;
    s->refused = false;
    s->seen = 0;
    s->began = now;
    s->message_due = now + limits_of(s)->body_timeout;
  }
  s->seen += len;
  if (too_large(s)) {
    metric_add(&s->session.worker->metrics->refused[REFUSED_SIZE], 1);
    ws_receive_drop(s);
    ws_session_close(s, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, "message too large", true);
    return;
  }
  if (lws_is_final_fragment(s->wsi) != 0)
    finish(s, bytes, len);
  else if (!s->refused && len > 0)
    keep_piece(s, bytes, len);
  if (s->state == WS_OPEN && !session_may_read(&s->session))
    ws_session_read(s, false);
  if (s->in_message)
    ws_session_arm(s);
}
