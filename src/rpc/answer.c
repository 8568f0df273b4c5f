/* SPDX-License-Identifier: MIT */
/* Printing answers. Each ends in exactly one of the members result and error; the id's bytes are
 * the client's own. */
#include "rpc/answer.h"

#include "base/buf.h"

#define TEXT_EACH 128u /* bytes of text around one result, ids of usual length included */

static int
add_head(struct out *out, struct egw_slice id, struct egw_slice member)
{
  struct egw_slice none = EGW_LIT("null");

  if (out_add_copy(out, EGW_LIT("{\"jsonrpc\":\"2.0\",\"id\":")) < 0 ||
      out_add_copy(out, id.ptr != NULL ? id : none) < 0)
    return -1;
  return out_add_copy(out, member);
}

static int
add_fault(struct out *out, struct egw_slice id, enum rpc_fault fault)
{
  const struct rpc_fault_info *info = rpc_fault_info(fault);
  struct egw_buf *buf = egw_buf_new(128);
  struct egw_slice text = { info->message, __builtin_strlen(info->message) };
  int rc = -1;

  if (buf != NULL && rpc_error_print(buf, info->code, text) == 0 &&
      add_head(out, id, EGW_LIT(",\"error\":")) == 0 &&
      out_add_copy(out, egw_buf_slice(buf)) == 0)
    rc = out_add_copy(out, EGW_LIT("}"));
  egw_buf_unref(buf);
  return rc;
}

static int
add_member(struct out *out, const struct member *m, uint64_t max_reply, enum rpc_fault too_large)
{
  struct egw_slice key = m->is_error ? EGW_LIT(",\"error\":") : EGW_LIT(",\"result\":");

  if (m->fault != RPC_FAULT_NONE)
    return add_fault(out, m->id, m->fault);
  if (m->body.len > max_reply)
    return add_fault(out, m->id, too_large);
  if (add_head(out, m->id, key) < 0)
    return -1;
  if (m->body.len <= TEXT_EACH) {
    if (out_add_copy(out, m->body) < 0)
      return -1;
  } else if (out_add(out, egw_buf_ref(m->buf), m->body) < 0) {
    return -1;
  }
  return out_add_copy(out, EGW_LIT("}"));
}

static int
add_batch(struct out *out, const struct member *members, size_t count,
          const struct conf_limits *limits)
{
  bool first = true;
  size_t i;

  for (i = 0; i < count; i++) {
    uint64_t left = limits->max_batch_reply > out->total ? limits->max_batch_reply - out->total : 0;
    uint64_t max = left < limits->max_reply ? left : limits->max_reply;

    if (members[i].silent)
      continue;
    if (out_add_copy(out, first ? EGW_LIT("[") : EGW_LIT(",")) < 0 ||
        add_member(out, &members[i], max, RPC_FAULT_BATCH_REPLY_TOO_LARGE) < 0)
      return -1;
    first = false;
  }
  return out_add_copy(out, EGW_LIT("]"));
}

struct out *
answer_join(const struct member *members, size_t count, bool batch,
            const struct conf_limits *limits)
{
  size_t i, speaking = 0;
  struct out *out;
  int rc;

  for (i = 0; i < count; i++)
    if (!members[i].silent)
      speaking++;
  if (speaking == 0)
    return NULL;
  out = out_new((unsigned)speaking * 2 + 2, speaking * TEXT_EACH * 2);
  if (out == NULL)
    return NULL;
  rc = batch ? add_batch(out, members, count, limits)
             : add_member(out, &members[0], limits->max_reply, RPC_FAULT_REPLY_TOO_LARGE);
  if (rc < 0) {
    out_free(out);
    return NULL;
  }
  return out;
}

int
answer_fail(struct out *out, struct egw_slice id, enum rpc_fault fault)
{
  out_consume(out, out->bytes);
  return add_fault(out, id, fault);
}

struct out *
answer_open(struct egw_slice id)
{
  struct out *out = out_new(8, TEXT_EACH);

  if (out == NULL)
    return NULL;
  out->open = true;
  if (add_head(out, id, EGW_LIT(",\"result\":")) < 0) {
    out_free(out);
    return NULL;
  }
  return out;
}
