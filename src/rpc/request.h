/* SPDX-License-Identifier: MIT */
/* A request: one message of a client, single or array, from its text to its answer. It is split
 * into calls before the chain and joined after it, in the order of the array, so that a stage
 * sees one call at a time. The session's side of it (request_start, request_cancel) is in
 * listen/session.h; this is the chain's side. All on the session's worker.
 *
 *   request_start -> calls run -> request_call_over for each -> ops->reply -> freed
 */
#ifndef RPC_REQUEST_H
#define RPC_REQUEST_H

#include <ethrpc-gw/middleware.h>
#include "base/out.h"
#include "obs/metrics.h"

struct egw_call;
struct request;
struct session;

/* A call of the request has ended: its reply is taken over. The request may be gone after it. */
void request_call_over(struct request *request, struct egw_call *call);

/* Starts calls of the session that wait, as far as its limits let them run. */
void request_start_waiting(struct session *session);

/* A call that was never started is given up. */
void request_not_started(struct egw_call *call);

/* The call's reply comes in pieces: makes the open answer and hands it to the session. NULL when
 * memory is short. */
struct out *request_stream(struct request *request, struct egw_call *call);

/* The stream of the call is cut: the session's answer is aborted. */
void request_stream_cut(struct request *request, struct egw_call *call);

/* Where a call came from; sub-calls and the gateway's own say "internal" (or their parent's). */
void request_client(const struct egw_call *call, struct egw_client *out);
/* A header of its request that is kept (egw_header()), or missing. */
struct egw_slice request_header(const struct egw_call *call, const char *name);
enum client_kind request_client_kind(const struct egw_call *call);

/* The session a call came from, or NULL. */
struct session *request_session(const struct egw_call *call);

#endif
