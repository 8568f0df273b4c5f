/* SPDX-License-Identifier: MIT */
/* Example 4: sub-calls. Adds a method of its own, example_blockWithReceipts [BLOCK], which
 * gives {"block":...,"receipts":...}: two calls made at the same time, joined. They pass the
 * stages below this one, so a cache there serves them, too.
 *
 * A gate keeper in front of it must let the name pass:
 *
 *   middleware = ( { use = "methods"; allow = ( "example_*" ); },
 *                  { use = "example4-subcall"; } );                                      */
#include <string.h>
#include <ethrpc-gw/json.h>
#include <ethrpc-gw/middleware.h>

/* One of the two. The bytes are the reply's: we hold a reference, and copy nothing. */
struct half {
  struct egw_call *call;
  struct egw_buf *buf;
  struct egw_slice body;
};

/* The state of this stage in a call: zeroed by the host, gone with the call. */
struct join {
  struct half block, receipts;
  int waiting;
  bool failed;
};

/* Both are here, or one has failed: sets the reply. */
static enum egw_verdict
join_answer(struct egw_call *call, const struct join *join)
{
  struct egw_buf *out;

  if (join->failed)
    return EGW_DONE; /* the reply is set already */
  out = egw_buf_new(join->block.body.len + join->receipts.body.len + 32);
  if (out != NULL && egw_buf_append(out, "{\"block\":", 9) == 0
      && egw_buf_append(out, join->block.body.ptr, join->block.body.len) == 0
      && egw_buf_append(out, ",\"receipts\":", 12) == 0
      && egw_buf_append(out, join->receipts.body.ptr, join->receipts.body.len) == 0
      && egw_buf_append(out, "}", 1) == 0)
    return egw_answer(call, out); /* takes `out` */
  egw_buf_unref(out);
  return egw_refuse(call, -32603, "out of memory");
}

static void
join_fail(struct egw_call *call, struct join *join, const struct egw_reply *reply)
{
  struct egw_buf *error = NULL;

  if (join->failed)
    return; /* the other one failed first */
  join->failed = true;
  if (reply->outcome == EGW_OK && reply->is_error && !reply->partial)
    error = egw_buf_copy(reply->body);
  if (error != NULL)
    egw_answer_error(call, error); /* the node's own error, verbatim; takes it */
  else
    egw_refuse(call, -32603, "the block could not be fetched");
}

/* A sub-call's reply. It can't come after the call ended: the core drops it then. */
static void
join_done(struct half *half, struct join *join, const struct egw_reply *reply)
{
  if (reply->outcome != EGW_OK || reply->is_error || reply->partial) {
    join_fail(half->call, join, reply);
  } else {
    half->buf = egw_buf_ref(reply->buf);
    half->body = reply->body;
  }
  if (--join->waiting == 0)
    egw_resume(half->call, join_answer(half->call, join));
}

static void
join_block_done(void *arg, const struct egw_reply *reply)
{
  struct join *join = arg;

  join_done(&join->block, join, reply);
}

static void
join_receipts_done(void *arg, const struct egw_reply *reply)
{
  struct join *join = arg;

  join_done(&join->receipts, join, reply);
}

/* Starts both; returns how many could be started. */
static int
join_start(const struct egw_at *at, struct egw_call *call, struct egw_slice block)
{
  struct join *join = at->state;
  struct egw_subcall what = { .method = EGW_LIT("eth_getBlockByNumber") };
  struct egw_buf *params = egw_buf_new(block.len + 16);
  int rc = -1;

  join->block.call = join->receipts.call = call;
  if (params != NULL && egw_buf_append(params, "[", 1) == 0
      && egw_buf_append(params, block.ptr, block.len) == 0
      && egw_buf_append(params, ",true]", 6) == 0) {
    what.params = egw_buf_slice(params);
    rc = egw_subcall(at, call, &what, join_block_done, join);
  }
  egw_buf_unref(params);
  if (rc != 0)
    return 0;
  what.method = (struct egw_slice){ "eth_getBlockReceipts", 20 };
  what.params = egw_params(call);
  return egw_subcall(at, call, &what, join_receipts_done, join) == 0 ? 2 : 1;
}

static enum egw_verdict
join_request(const struct egw_at *at, struct egw_call *call)
{
  static const char name[] = "example_blockWithReceipts";
  struct join *join = at->state;
  enum egw_verdict verdict;
  struct egw_slice method = egw_method(call), params = egw_params(call), block;

  if (method.len != sizeof name - 1 || memcmp(method.ptr, name, method.len) != 0)
    return EGW_NEXT;
  block = egw_json_element(params, 0);
  if (egw_json_kind(params) != EGW_JSON_ARRAY || egw_json_kind(block) != EGW_JSON_STRING
      || egw_json_element(params, 1).ptr != NULL)
    return egw_refuse(call, -32602, "one parameter is needed: a block number or tag");
  join->waiting = join_start(at, call, block);
  if (join->waiting == 2)
    return EGW_WAIT;
  join->failed = true;
  verdict = egw_refuse(call, -32603, "out of memory");
  return join->waiting == 0 ? verdict : EGW_WAIT; /* the one that runs resumes the call */
}

/* Nothing to undo: the sub-calls end with the call. */
static void
join_cancel(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
}

static void
join_finish(const struct egw_at *at, struct egw_call *call)
{
  struct join *join = at->state;

  (void)call;
  egw_buf_unref(join->block.buf);
  egw_buf_unref(join->receipts.buf);
}

/* Methods of the table pass without a look; ours is in none. */
static bool
join_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  return method == NULL;
}

static const struct egw_middleware join = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "example4-subcall",
              .version = "1.0", .summary = "Answers example_blockWithReceipts" },
  .call_size = sizeof(struct join),
  .kinds = EGW_KIND_CALL | EGW_KIND_SUBCALL,
  .need = EGW_NEED_NONE,
  .request = join_request,
  .cancel = join_cancel,
  .finish = join_finish,
  .wants = join_wants,
};

EGW_REGISTER(join)
