/* SPDX-License-Identifier: MIT */
/* Notices: see notice.h and struct egw_notice. */
#include "push/notice.h"

#include <string.h>
#include "base/buf.h"
#include "listen/listen.h"
#include "listen/session.h"
#include "push/subscription.h"
#include "rpc/request.h"

/* What the host keeps in a notice: the text that a stage has put in, or NULL. */
void
egw_notice_replace(struct egw_notice *notice, struct egw_buf *result)
{
  egw_buf_unref(notice->host[0]);
  notice->host[0] = result;
  notice->result = egw_buf_slice(result);
}

static struct egw_slice
kind_of(const struct subscription *sub)
{
  static const struct egw_slice kinds[HUB_KINDS] = {
    [HUB_HEADS] = { "newHeads", 8 },
    [HUB_LOGS] = { "logs", 4 },
    [HUB_PENDING] = { "newPendingTransactions", 22 },
    [HUB_PENDING_FULL] = { "newPendingTransactions", 22 },
    [HUB_SYNCING] = { "syncing", 7 },
  };

  return sub->served ? kinds[sub->hub_kind] : egw_buf_slice(sub->method);
}

bool
notice_pass(struct subscription *sub, struct egw_buf **buf, struct egw_slice *result)
{
  const struct network *network = sub->network;
  struct egw_client client;
  struct egw_notice notice = {
    .kind = kind_of(sub),
    .subscription = { sub->id, SUBSCRIPTION_ID_LEN },
    .result = *result,
    .network = network->name,
    .client = &client,
  };
  unsigned i;

  session_client(sub->session, &client);
  for (i = network->stage_count; i-- > 0;) {
    struct egw_stage *stage = &network->stages[i];
    struct egw_at at = { .self = stage->self, .mine = sub->worker->stages[stage->index].mine,
                         .stage = stage, .worker = sub->worker };

    if (stage->mw->notice == NULL || stage->mw->notice(&at, &notice) == EGW_NOTICE_PASS)
      continue;
    egw_buf_unref(notice.host[0]);
    return false;
  }
  *buf = notice.host[0];
  *result = notice.result;
  return true;
}
