/* SPDX-License-Identifier: MIT */
/* What the files of upstream/ share among themselves. */
#ifndef UPSTREAM_PARTS_H
#define UPSTREAM_PARTS_H

#include "upstream/upstream.h"

#define STREAM_HIGH (1024u * 1024) /* unsent bytes of a stream at which its upstream is paused */
#define STREAM_LOW (256u * 1024)   /* and at which it goes on */

/* Ends an exchange whose transport already knows. */
void xchg_complete(struct egw_xchg *xchg, enum egw_outcome outcome, const char *why);

/* After bytes of its reply were fed: 1 when the transport must pause. */
int xchg_after_feed(struct egw_xchg *xchg);

/* The exchange leaves its connection; the rest of a reply that is coming in is discarded. */
void conn_forget(struct egw_xchg *xchg);

/* A subscribing exchange bound to the connection has ended. */
void conn_subscribing_over(struct egw_conn *conn);

/* A job: the transport of a paused connection reads on. */
void conn_resume(struct worker_job *job);

/* EGW_T_* flags an upstream must have for the call. */
uint32_t call_caps(const struct egw_call *call);

/* Fills in call->dispatch.want. */
void want_of(struct egw_call *call);

/* The upstream has no state (logs, receipts) at `block` and below. Any thread. */
void upstream_lacks(struct upstream *upstream, uint64_t block);

/* The call's reply, just set, and the head of the network: learns from it, corrects a height. false:
 * another upstream may know better. */
bool heed_reply(struct egw_call *call, struct upstream *upstream);

/* The head of a long reply is here and held: to the chain. */
void dispatch_head(struct egw_xchg *xchg);

#endif
