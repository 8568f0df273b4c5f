/* SPDX-License-Identifier: MIT */
/* Warming the cache with new blocks. */
#include "warm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "ahead.h"

static const char *const names[] = { "block", "full", "receipts", "logs" };

unsigned
warm_bit(const char *name)
{
  unsigned i;

  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(name, names[i]) == 0)
      return 1u << i;
  return 0;
}

static void
on_warmed(void *arg, const struct egw_reply *reply)
{
  struct warm *w = arg;

  if (reply->outcome != EGW_OK || reply->is_error)
    return;
  egw_count(&w->at, METRIC_WARMED, 1);
  egw_count(&w->at, METRIC_BYTES, (int64_t)reply->body.len);
}

static void
ask(struct warm *w, const char *method, const char *params)
{
  struct egw_subcall what = { .method = { method, strlen(method) },
                              .params = { params, strlen(params) }, .below = true };

  if (egw_subcall(&w->at, NULL, &what, on_warmed, w) < 0)
    egw_log(EGW_WARN, "prefetch", "out of memory: a new block is not fetched");
}

static void
warm_block(struct warm *w, const struct egw_block *block, unsigned what)
{
  char params[120], hash[65];
  unsigned i;

  for (i = 0; i < 32; i++)
    snprintf(hash + 2 * i, 3, "%02x", block->hash[i]);
  if ((what & WARM_BLOCK) != 0) {
    snprintf(params, sizeof(params), "[\"0x%" PRIx64 "\",false]", block->number);
    ask(w, "eth_getBlockByNumber", params);
  }
  if ((what & WARM_FULL) != 0) {
    snprintf(params, sizeof(params), "[\"0x%" PRIx64 "\",true]", block->number);
    ask(w, "eth_getBlockByNumber", params);
  }
  if ((what & WARM_RECEIPTS) != 0) {
    snprintf(params, sizeof(params), "[\"0x%" PRIx64 "\"]", block->number);
    ask(w, "eth_getBlockReceipts", params);
  }
  if ((what & WARM_LOGS) != 0) {
    snprintf(params, sizeof(params), "[{\"blockHash\":\"0x%s\"}]", hash);
    ask(w, "eth_getLogs", params);
  }
}

static bool
is_done(const struct warm *w, const struct egw_block *block)
{
  unsigned i;

  for (i = 0; i < w->count; i++)
    if (w->done[i].number == block->number &&
        memcmp(w->done[i].hash, block->hash, sizeof(block->hash)) == 0)
      return true;
  return false;
}

static void
note_done(struct warm *w, const struct egw_block *block)
{
  w->done[w->at_block] = *block;
  w->at_block = (w->at_block + 1) % WARM_MEMORY;
  if (w->count < WARM_MEMORY)
    w->count++;
}

/* Several heads may come as one: those between are warmed as well, down to the last that
 * was, or where the chain forked off. The first head ever stands alone. */
void
warm_head(struct warm *w, const struct egw_at *at, const struct egw_head *head, unsigned what)
{
  struct egw_block fresh[WARM_BLOCKS];
  unsigned n = 0, most = w->count == 0 ? 1 : WARM_BLOCKS;

  w->at = *at;
  w->at.state = NULL;
  if (!head->known || !head->live)
    return;
  for (fresh[0] = head->tip; n < most && !is_done(w, &fresh[n]);) {
    uint64_t number = fresh[n].number;

    if (++n == most || number == 0)
      break;
    fresh[n].number = number - 1;
    if (!egw_head_hash(head, number - 1, fresh[n].hash))
      break;
  }
  while (n-- > 0) {
    note_done(w, &fresh[n]);
    warm_block(w, &fresh[n], what);
  }
}
