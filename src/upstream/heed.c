/* SPDX-License-Identifier: MIT */
/* What a reply tells about the head of the network, and what the head tells about a reply: a node
 * that lags answers null for a block that exists, or an older block as the latest one. */
#include <string.h>
#include "base/buf.h"
#include "head/head.h"
#include "upstream/parts.h"

static bool
is(const struct egw_call *call, const char *name)
{
  return call->info != NULL && strcmp(call->info->name, name) == 0;
}

/* --- eth_blockNumber ----------------------------------------------------------------------------- */

/* Never below what was said before, and not absurdly above it. */
static void
correct_height(struct egw_call *call, struct upstream *upstream, const struct head_snapshot *head)
{
  uint64_t most = head_newest(call->network->head, head), n;
  struct egw_buf *buf;

  if (call->reply.is_error || egw_json_u64(call->reply.body, &n) < 0)
    return;
  if (n >= most && n <= head->pub.tip.number + HEAD_BELIEVED) {
    head_saw(call->worker, upstream, n);
    return;
  }
  buf = egw_buf_new(24);
  if (buf == NULL || egw_buf_printf(buf, "\"0x%llx\"", (unsigned long long)most) < 0) {
    egw_buf_unref(buf);
    return;
  }
  egw_explain(call, "%s said block %llu, the head is at %llu", upstream->name,
              (unsigned long long)n, (unsigned long long)most);
  call_set_result(call, buf, egw_buf_slice(buf));
}

/* --- other evidence --------------------------------------------------------------------------------- */

/* The block a result names; false: none. */
static bool
block_of(const struct egw_call *call, uint64_t *number)
{
  struct egw_slice body = call->reply.body;

  if (call->reply.is_error || call->info == NULL || egw_json_kind(body) != EGW_JSON_OBJECT)
    return false;
  if (call->info->method_class == EGW_CLASS_BY_TX)
    return egw_json_u64(egw_json_member(body, "blockNumber"), number) == 0;
  /* Not of "pending": that one does not exist yet. */
  if (call->dispatch.want.latest && is(call, "eth_getBlockByNumber"))
    return egw_json_u64(egw_json_member(body, "number"), number) == 0;
  return false;
}

/* --- replies that another node may know better -------------------------------------------------------- */

static bool
has_text(struct egw_slice message, const char *const *texts)
{
  for (; *texts != NULL; texts++)
    if (memmem(message.ptr, message.len, *texts, strlen(*texts)) != NULL)
      return true;
  return false;
}

static bool
says_missing(struct egw_slice message)
{
  static const char *const texts[] = { "header not found", "unknown block", "block not found",
                                       "could not find block", "Block not found",
                                       "header for hash not found", "Unknown block", NULL };

  return has_text(message, texts);
}

/* The node has the block, but no state of so long ago. */
static bool
says_pruned(struct egw_slice message)
{
  static const char *const texts[] = { "missing trie node", "state is not available",
                                       "state not available", "historical state", "state histories",
                                       "pruned", NULL };

  return has_text(message, texts);
}

/* What a contract says is an answer, whatever its words. */
static bool
is_revert(const struct egw_reply *r)
{
  static const char *const texts[] = { "revert", NULL };

  return r->code == 3 || r->data.ptr != NULL || has_text(r->message, texts);
}

/* null can be the truth: an index that is too high, a transaction that nobody knows. */
static bool
null_is_wrong(const struct egw_call *call)
{
  return is(call, "eth_getBlockByNumber") || is(call, "eth_getBlockByHash") ||
         is(call, "eth_getBlockReceipts") || is(call, "eth_getHeaderByNumber") ||
         is(call, "eth_getHeaderByHash") || call->dispatch.attempts < 2;
}

static bool
is_missing(const struct egw_call *call, struct upstream *upstream)
{
  const struct egw_reply *r = &call->reply;

  if (r->is_error && r->message.ptr != NULL && !is_revert(r) && call->dispatch.want.state &&
      says_pruned(r->message)) {
    if (call->dispatch.want.has_block && !call->dispatch.want.at_tip)
      upstream_lacks(upstream, call->dispatch.want.lowest);
    return true;
  }
  if (!call->dispatch.want.known && !call->dispatch.want.hash)
    return false;
  if (r->is_error)
    return r->message.ptr != NULL && !is_revert(r) && says_missing(r->message);
  return egw_json_kind(r->body) == EGW_JSON_NULL && null_is_wrong(call);
}

/* --- what may change the chain ------------------------------------------------------------- */

/* A node that is told so may move its chain back. */
static bool
is_command(struct egw_slice name)
{
  static const char *const spaces[] = { "anvil_", "evm_", "hardhat_", "ganache_", "tenderly_",
                                        "dev_", "debug_setHead", "engine_forkchoice" };
  size_t i, n;

  for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
    n = strlen(spaces[i]);
    if (name.len >= n && memcmp(name.ptr, spaces[i], n) == 0)
      return true;
  }
  return false;
}

/* A method that is not known here may be another way to send a transaction. Most are not: they
 * read what is particular to their chain, and the nodes are not looked at anew for each. */
static bool
may_send(struct egw_slice name)
{
  return memmem(name.ptr, name.len, "send", 4) != NULL ||
         memmem(name.ptr, name.len, "Send", 4) != NULL ||
         memmem(name.ptr, name.len, "submit", 6) != NULL;
}

static void
heed_method(const struct egw_call *call)
{
  bool command = is_command(call->method);
  bool touches = call->info == NULL ? may_send(call->method)
                                    : call->info->method_class == EGW_CLASS_WRITE ||
                                          call->info->method_class == EGW_CLASS_BROADCAST;

  if (command || touches)
    head_touch(call->network, command);
}

bool
heed_reply(struct egw_call *call, struct upstream *upstream)
{
  const struct head_snapshot *head;
  uint64_t n;

  if (call->network->head == NULL || !head_is_tracked(call->network->head))
    return true;
  heed_method(call);
  head = head_now(call->worker, call->network);
  if (!head->pub.known || head_commanded(call->network->head, head))
    return true;
  if (is(call, "eth_blockNumber")) {
    correct_height(call, upstream, head);
    return true;
  }
  if (block_of(call, &n)) {
    if (call->dispatch.want.latest && call->info->method_class == EGW_CLASS_BY_BLOCK &&
        n < call->dispatch.want.block)
      return false;
    head_saw(call->worker, upstream, n);
    return true;
  }
  return !is_missing(call, upstream);
}
