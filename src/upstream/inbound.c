/* SPDX-License-Identifier: MIT */
/* The bytes of one upstream message: kept until the value is complete and checked, or, for a
 * long result whose id is known to be right, passed on in pieces while the scan goes on. */
#include <string.h>
#include "base/buf.h"
#include "gateway/gateway.h"
#include "upstream/upstream.h"

#define RESERVE_FROM (64u * 1024)   /* smaller messages are not worth an atomic each */
#define RESERVE_STEP (256u * 1024)
#define FIRST_ROOM (32u * 1024)     /* capacity for a message that did not come in one piece */
#define PIN_FREELY (64u * 1024)     /* buffers of arrays that parts of any size may hold, */
#define PIN_SHARE 8u                /* and how small a part of larger ones may be */

void
inbound_begin(struct inbound *in)
{
  rpc_reply_begin(&in->parser);
  in->buf = NULL;
  in->begin = 0;
  in->state = INBOUND_COLLECT;
  in->seen = 0;
  in->fault = RPC_FAULT_NONE;
  in->why = NULL;
}

void
inbound_end(struct inbound *in, struct gateway *gateway)
{
  egw_buf_unref(in->buf);
  in->buf = NULL;
  if (in->reserved != 0)
    budget_give(&gateway->budget, in->reserved);
  in->reserved = 0;
}

static enum inbound_state
fail(struct inbound *in, enum rpc_fault fault, const char *why)
{
  in->fault = fault;
  in->why = why;
  egw_buf_unref(in->buf);
  in->buf = NULL;
  return in->state = fault == RPC_FAULT_BAD_REPLY ? INBOUND_BAD : INBOUND_DISCARD;
}

/* Whether `more` bytes may be kept: within the reply's limit and the gateway's budget. */
static bool
may_keep(struct inbound *in, struct egw_link *link, size_t more)
{
  struct gateway *gateway = link->worker->gateway;
  size_t total = (in->buf != NULL ? in->buf->len : 0) + more;

  if (total > link->limits.max_reply) {
    in->fault = RPC_FAULT_REPLY_TOO_LARGE;
    return false;
  }
  if (total < RESERVE_FROM || total <= in->reserved)
    return true;
  if (!budget_take(&gateway->budget, total - in->reserved + RESERVE_STEP)) {
    in->fault = RPC_FAULT_OVERLOADED;
    return false;
  }
  in->reserved = total + RESERVE_STEP;
  return true;
}

/* --- collecting -------------------------------------------------------------------------- */

/* The first piece often is the whole message: it is scanned where it lies and copied once, at
 * its true size. */
static enum inbound_state
collect_first(struct inbound *in, struct egw_link *link, const char *bytes, size_t len,
              size_t *used)
{
  enum scan_status status = rpc_reply_feed(&in->parser, bytes, len, 0, used);

  in->seen += *used;
  if (status == SCAN_BAD)
    return fail(in, RPC_FAULT_BAD_REPLY, "not valid JSON");
  if (!may_keep(in, link, *used))
    return fail(in, in->fault, "reply over the limit");
  in->buf = egw_buf_new(status == SCAN_DONE ? *used : *used * 2 + FIRST_ROOM);
  if (in->buf == NULL || egw_buf_append(in->buf, bytes, *used) < 0)
    return fail(in, RPC_FAULT_OVERLOADED, "out of memory");
  return in->state = status == SCAN_DONE ? INBOUND_COMPLETE : INBOUND_COLLECT;
}

static enum inbound_state
collect_more(struct inbound *in, struct egw_link *link, const char *bytes, size_t len,
             size_t *used)
{
  enum scan_status status = rpc_reply_feed(&in->parser, bytes, len, 0, used);

  in->seen += *used;
  if (status == SCAN_BAD)
    return fail(in, RPC_FAULT_BAD_REPLY, "not valid JSON");
  if (!may_keep(in, link, *used))
    return fail(in, in->fault, "reply over the limit");
  if (egw_buf_append(in->buf, bytes, *used) < 0)
    return fail(in, RPC_FAULT_OVERLOADED, "out of memory");
  return in->state = status == SCAN_DONE ? INBOUND_COMPLETE : INBOUND_COLLECT;
}

/* Whether the message is long enough, and known well enough, to be passed on in pieces. */
static bool
worth_streaming(const struct inbound *in, const struct egw_xchg *xchg)
{
  uint64_t id;

  if (xchg == NULL || xchg->call == NULL || !xchg->call->can_stream || in->buf == NULL)
    return false;
  if (in->buf->len <= xchg->call->network->conf->stream_threshold)
    return false;
  return in->parser.result_began && in->parser.result.to == 0 && in->parser.error.to == 0 &&
         !in->parser.duplicate && rpc_reply_early_id(&in->parser, NULL, &id) && id == xchg->id;
}

/* --- streaming ------------------------------------------------------------------------- */

static void
on_tell(struct worker_job *job)
{
  struct out *out = container_of(job, struct egw_xchg, tell)->out;

  if (out != NULL && out->changed != NULL)
    out->changed(out, out->changed_arg);
}

static void
tell(struct egw_xchg *xchg)
{
  xchg->tell.fn = on_tell;
  worker_run_soon(xchg->link->worker, &xchg->tell);
}

/* The part of the last `n` bytes fed that belongs to the result. */
static size_t
result_part(const struct inbound *in, size_t n)
{
  uint64_t from = in->seen - n;
  uint64_t to = in->parser.result.to;

  if (to == 0 || to >= in->seen)
    return n;
  return to > from ? (size_t)(to - from) : 0;
}

static enum inbound_state
stream_piece(struct inbound *in, struct egw_xchg *xchg, const char *bytes, size_t len,
             size_t *used)
{
  enum scan_status status = rpc_reply_feed(&in->parser, bytes, len, 0, used);
  struct egw_buf *copy;
  size_t n;

  in->seen += *used;
  if (status == SCAN_BAD)
    return fail(in, RPC_FAULT_BAD_REPLY, "not valid JSON");
  n = result_part(in, *used);
  if (n != 0 && in->state == INBOUND_STREAM && xchg != NULL && xchg->out != NULL) {
    copy = egw_buf_copy((struct egw_slice){ bytes, n });
    if (copy == NULL || out_add(xchg->out, copy, egw_buf_slice(copy)) < 0)
      return fail(in, RPC_FAULT_BAD_REPLY, "out of memory");
    tell(xchg);
  }
  if (status == SCAN_DONE)
    in->state = INBOUND_COMPLETE;
  return in->state;
}

void
inbound_stream(struct inbound *in, struct egw_xchg *xchg)
{
  struct egw_buf *buf = in->buf;
  size_t from = (size_t)in->parser.result_begin;

  in->buf = NULL;
  if (in->reserved != 0)
    budget_give(&xchg->link->worker->gateway->budget, in->reserved);
  in->reserved = 0;
  if (xchg->out == NULL) {
    egw_buf_unref(buf);
    in->state = INBOUND_DISCARD;
    return;
  }
  in->state = INBOUND_STREAM;
  if (out_add(xchg->out, buf, buf_from(buf, from)) < 0) {
    fail(in, RPC_FAULT_BAD_REPLY, "out of memory");
    return;
  }
  tell(xchg);
}

enum inbound_state
inbound_feed(struct inbound *in, struct egw_link *link, struct egw_xchg *xchg,
             const char *bytes,
             size_t len, size_t *used)
{
  *used = 0;
  switch (in->state) {
  case INBOUND_COLLECT:
    if ((in->buf == NULL ? collect_first : collect_more)(in, link, bytes, len, used) ==
            INBOUND_COLLECT &&
        worth_streaming(in, xchg))
      in->state = INBOUND_HELD;
    break;
  case INBOUND_STREAM:
  case INBOUND_DISCARD:
    stream_piece(in, xchg, bytes, len, used);
    break;
  case INBOUND_HELD:
  case INBOUND_COMPLETE:
  case INBOUND_BAD:
    break;
  }
  return in->state;
}

/* --- parts of an array --------------------------------------------------------------- */

/* Who reads slowly what is small must not keep much more in memory. */
static bool
pins_too_much(const struct egw_buf *whole, size_t len)
{
  return whole->cap > PIN_FREELY && whole->cap / PIN_SHARE > len;
}

bool
inbound_take(struct inbound *in, struct egw_buf *whole, struct rpc_span part)
{
  struct egw_slice bytes = { whole->data + part.from, (size_t)(part.to - part.from) };
  bool copy = pins_too_much(whole, bytes.len);
  size_t used;

  inbound_begin(in);
  in->buf = copy ? egw_buf_copy(bytes) : egw_buf_ref(whole);
  if (in->buf == NULL)
    return false;
  in->begin = copy ? 0 : (size_t)part.from;
  in->seen = bytes.len;
  in->state = rpc_reply_feed(&in->parser, in->buf->data + in->begin, bytes.len, 0,
                             &used) == SCAN_DONE
                  ? INBOUND_COMPLETE
                  : INBOUND_BAD;
  return true;
}

/* --- judging ------------------------------------------------------------------------------ */

/* Some nodes answer a single call with an array of one. */
static bool
unwrap(const struct inbound *in, struct rpc_reply *reply)
{
  struct egw_slice text = egw_buf_slice(in->buf), only;
  struct rpc_reply_parser parser;
  size_t used;

  only = egw_json_element(text, 0);
  if (only.ptr == NULL || egw_json_element(text, 1).ptr != NULL)
    return false;
  rpc_reply_begin(&parser);
  if (rpc_reply_feed(&parser, only.ptr, only.len, 0, &used) != SCAN_DONE)
    return false;
  rpc_reply_finish(&parser, only.ptr, reply);
  return true;
}

void
inbound_judge(struct inbound *in, struct rpc_reply *reply)
{
  if (in->buf != NULL && in->begin == 0 && in->parser.scan.top == EGW_JSON_ARRAY &&
      unwrap(in, reply))
    return;
  rpc_reply_finish(&in->parser, in->buf != NULL ? in->buf->data + in->begin : NULL, reply);
}
