/* SPDX-License-Identifier: MIT */
/* Subscriptions that the gateway serves by itself, on one worker: newHeads, logs and
 * newPendingTransactions, from the hub's events. Worker's thread, except local_post(). */
#ifndef PUSH_LOCAL_H
#define PUSH_LOCAL_H

#include <stdbool.h>
#include "push/hub.h"

struct subscription;

/* Per-worker memory. Main thread: before the thread, after join. */
int local_init(struct egw_worker *worker) EGW_MUST_CHECK;
void local_free(struct egw_worker *worker);

/* Gives an event (a reference is taken) to the worker, if anyone there wants such. Any thread. */
void local_post(struct egw_worker *worker, struct hub_event *event);

/* Something can't be told to those who want such events: their sessions are ended, so that no hole goes
 * unnoticed. Owner. */
void local_broken(struct hub *hub, enum hub_kind kind, const char *why);

/* A call that subscribes (push_takes): takes it if it is of a kind that is served here. It may wait
 * until the head is known. */
bool local_takes(struct egw_call *call);

/* The call is taken back while it waits. */
void local_cancel(struct egw_call *call);

/* Holds the call until the head of its network is known and has been looked at anew, then calls
 * `then`. false: there is no node to ask; the call has its error. */
bool local_wait_head(struct egw_call *call, void (*then)(struct egw_call *call));

/* The head of the network is known now. */
void local_head_known(struct egw_worker *worker, const struct network *network);

/* A subscription ends: takes it off the lists. */
void local_forget(struct subscription *sub);

#endif
