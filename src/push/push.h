/* SPDX-License-Identifier: MIT */
/* Subscriptions, passed through: each eth_subscribe of a client opens one at an upstream; events
 * come back under an id of the gateway's own. When the upstream's connection is lost the
 * subscription is made again elsewhere under the same client id.
 *
 * A subscription belongs to its session and, while it is open, to one connection. All on the
 * session's worker. */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include <stdbool.h>
#include <ethrpc-gw/buf.h>

struct egw_call;
struct egw_conn;
struct egw_xchg;
struct network;
struct request;
struct rpc_reply;
struct session;
struct subscription;

/* Whether the gateway serves subscriptions and filters of the network by itself. */
bool network_serves_push(const struct network *network);

/* A new subscription for the session of `call`, in the session's list; its events are held until the
 * call is answered. NULL: no memory. */
struct subscription *push_make(struct egw_call *call, struct session *session);

/* Whether the session may have one more. */
bool push_has_room(const struct session *session);

/* Sends an event to the subscription's client: `result` lies in `buf`. May end the session, and the
 * subscription with it. */
void push_deliver(struct subscription *sub, struct egw_buf *buf, struct egw_slice result);

/* The same past events that are held back; false: the session has ended within, and the subscription
 * is gone. */
bool push_tell(struct subscription *sub, struct egw_buf *buf, struct egw_slice result);

/* At the bottom of the chain: whether push/ answers the call by itself (unsubscribe, subscribe on a
 * session that can't take events). */
bool push_takes(struct egw_call *call);
void push_cancel(struct egw_call *call);

/* An upstream answered a subscribing call with a result: makes the subscription and puts the
 * client's id in the place of the upstream's (call_set_result). false: the result is not an id. */
bool push_subscribed(struct egw_call *call, struct egw_xchg *xchg, const struct rpc_reply *reply);

/* The call has ended; if it made a subscription and did not succeed, that ends too. */
void push_call_over(struct egw_call *call);

/* The answer to the client's message was handed to the session: events of the subscriptions it
 * made may follow. */
void push_answered(struct session *session, const struct request *request);

/* Whether `call` wants a stream of events. */
bool push_subscribes(const struct egw_call *call);

/* A message without id from an upstream; `buf` holds `params`. */
void push_event(struct egw_conn *conn, struct egw_buf *buf, struct egw_slice method,
                struct egw_slice params);

/* Nobody waits any more for the exchange. true: it may still open a stream, and now goes on by itself until
 * that is known and ended. */
bool push_orphaned(struct egw_xchg *xchg);

/* No subscribing exchange is in flight on the connection any more: events kept for
 * subscriptions that were not known yet are dropped. */
void push_early_drop(struct egw_conn *conn);

/* The connection is gone: its subscriptions are made again elsewhere. */
void push_conn_lost(struct egw_conn *conn);

/* The session is gone: its subscriptions end, at the upstream too. */
void push_session_gone(struct session *session);

#endif
