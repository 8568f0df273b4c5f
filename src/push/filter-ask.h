/* SPDX-License-Identifier: MIT */
/* One question about filters, on its way from a call's worker to the owner of the filters and back. */
#ifndef PUSH_FILTER_ASK_H
#define PUSH_FILTER_ASK_H

#include "push/hub.h"
#include "push/subscription.h"

enum filter_what { FILTER_NEW, FILTER_CHANGES, FILTER_LOGS, FILTER_UNINSTALL };

struct filter_ask {
  struct list node;                /* hub->asks while it is in the mail, or idle */
  struct egw_worker *worker;       /* the call's */
  struct hub *hub;
  uint64_t ticket;                 /* the call's */
  enum filter_what what;
  enum hub_kind kind;              /* NEW */
  struct log_filter *filter;       /* NEW, LOGS: taken by the filter */
  struct egw_buf *object;          /* NEW and the answer of LOGS: the filter object */
  char id[SUBSCRIPTION_ID_LEN + 1];
  struct egw_buf *result;          /* the answer, or */
  int code;                        /* an error */
  const char *message;
};

/* Frees those that no mailbox delivered before the workers ended. Main thread, after join. */
void filter_asks_free(struct hub *hub);

/* On the owner: fills in the answer. */
void filters_answer(struct hub *hub, struct filter_ask *ask);
void filter_ask_fail(struct filter_ask *ask, int code, const char *message);
void filter_ask_text(struct filter_ask *ask, const char *text);

#endif
