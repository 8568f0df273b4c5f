/* SPDX-License-Identifier: MIT */
/* Middleware: a stage of a network's chain.
 *
 * A stage sees one call at a time, whatever transport it came by and whether it stood alone
 * or in an array. Stages never call each other: a callback returns a verdict and the core
 * takes the step. On its way down a call passes request() of each stage in order, then goes
 * to an upstream; the reply passes reply() of the same stages in reverse order.
 *
 *      request: stage 0 -> stage 1 -> ... -> upstream
 *      reply:   stage 0 <- stage 1 <- ... <- upstream
 *
 * A call has exactly one owner: the core, or the one stage that said EGW_WAIT. The core
 * may take a held call back by cancel() (deadline, client gone, shutdown); after that the
 * stage must forget it. Each stage whose request() ran gets finish() exactly once, last.
 *
 * Everything here is called on the call's worker only.
 */
#ifndef ETHRPC_GW_MIDDLEWARE_H
#define ETHRPC_GW_MIDDLEWARE_H

#include <ethrpc-gw/plugin.h>
#include <ethrpc-gw/head.h>
#include <ethrpc-gw/loop.h>
#include <ethrpc-gw/route.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct egw_call;
struct egw_stage;
struct egw_client;

/* What a callback wants done with the call. */
enum egw_verdict {
  EGW_NEXT,  /* on, in this direction */
  EGW_DONE,  /* the reply is set (egw_answer, egw_refuse, ...): turn round, go up */
  EGW_WAIT,  /* this stage holds the call and will egw_resume() it */
  EGW_AGAIN  /* from reply(), timer() or egw_resume(): send down again from below this stage */
};

/* Kinds of call; a stage sees only those it declares. */
enum {
  EGW_KIND_CALL = 1,         /* an ordinary request with an id */
  EGW_KIND_NOTIFICATION = 2, /* a request without an id: executed, the reply is dropped */
  EGW_KIND_SUBSCRIBE = 4,    /* opens a stream of events for the session */
  EGW_KIND_UNSUBSCRIBE = 8,
  EGW_KIND_SUBCALL = 16      /* started by a stage above, or by a worker */
};
#define EGW_KIND_ALL 31u

enum {
  EGW_STAGE_GUARD = 1 /* a gate keeper: must declare every kind there is, or the configuration
                         is refused */
};

/* How much of a reply a stage must have before its reply() is called. When no stage of a
 * call's chain needs WHOLE, a large reply passes in pieces, in bounded memory. */
enum egw_need {
  EGW_NEED_NONE,  /* reply() is not called with pieces in mind; only code and outcome count */
  EGW_NEED_HEAD,  /* until result or error, and the error's code, are known */
  EGW_NEED_WHOLE  /* the whole value (up to the configured size; larger ones come as HEAD) */
};

/* How an upstream attempt ended. */
enum egw_outcome {
  EGW_OK = 0,       /* a valid reply */
  EGW_NOT_SENT,     /* no byte of the request can have been acted on */
  EGW_MAYBE_SENT,   /* the request may have reached the node */
  EGW_BAD_REPLY,    /* something came back, but not a valid reply */
  EGW_TIMED_OUT,    /* sent, no answer in time */
  EGW_ABORTED       /* given up by this side */
};

/* Classes of methods, from the method table. */
enum egw_class {
  EGW_CLASS_UNKNOWN = 0,
  EGW_CLASS_CONSTANT,     /* the same for ever on one chain */
  EGW_CLASS_BY_HASH,      /* names a block by hash */
  EGW_CLASS_BY_BLOCK,     /* names a block by number or tag */
  EGW_CLASS_BY_TX,        /* names a transaction */
  EGW_CLASS_RANGE,        /* a block range, or a block by hash, in a filter object */
  EGW_CLASS_HEAD,         /* the state of the head or of the node */
  EGW_CLASS_STATEFUL,     /* refers to state kept by one node (filters) */
  EGW_CLASS_SUBSCRIPTION,
  EGW_CLASS_BROADCAST,    /* a signed transaction */
  EGW_CLASS_WRITE         /* changes the node, or uses its keys */
};

/* Where the block reference of a method is and of what kind. */
enum egw_block_kind {
  EGW_BLOCK_NONE = 0,
  EGW_BLOCK_NUMBER,  /* a number or tag */
  EGW_BLOCK_ID,      /* a number, tag, hash, or object of EIP-1898 */
  EGW_BLOCK_HASH,
  EGW_BLOCK_FILTER,  /* a filter object with fromBlock/toBlock or blockHash */
  EGW_BLOCK_TX_HASH
};

/* Facts about a method; static, from the method table. */
struct egw_method_info {
  const char *name;
  enum egw_class method_class;
  enum egw_block_kind block_kind;
  int8_t block_param;      /* index of the parameter with the block reference, -1: none */
  bool idempotent;         /* may be sent twice, to any upstream */
  bool changes_node;       /* administrative, signing, or dev-node control */
  uint8_t cost;            /* 1: trivial .. 100: heavy (traces) */
};

/* "Where am I": made by the host for each callback. */
struct egw_at {
  const void *self;          /* this instance; const once workers run */
  void *mine;                /* this instance on this worker */
  void *state;               /* this instance in this call: call_size bytes, zeroed */
  struct egw_stage *stage;
  struct egw_worker *worker;
};

/* What came back from below. Borrowed: valid during reply(), and until the call ends for
 * the stage that holds it. */
struct egw_reply {
  enum egw_outcome outcome;   /* EGW_OK, or why there is no valid reply */
  bool is_error;              /* outcome OK: an error object instead of a result */
  bool partial;               /* only the head is here; the rest passes in pieces */
  int64_t code;               /* is_error: the error's code */
  struct egw_slice body;      /* raw bytes of the result value or of the error object */
  struct egw_slice message;   /* is_error: raw JSON string (with quotes), or missing */
  struct egw_slice data;      /* is_error: raw JSON value, or missing */
  const char *upstream;       /* configured name of the upstream that answered, or NULL */
  const char *why;            /* outcome not OK: reason, for logs only */
  int http_status;            /* of the last attempt, 0: none */
  uint32_t retry_after_ms;    /* 0: none given */
  struct egw_buf *buf;        /* holds `body`; egw_buf_ref() it to keep the bytes. NULL when
                                 outcome is not OK */
  uint32_t upstream_index;    /* of `upstream` (route.h); EGW_NO_UPSTREAM when that is NULL */
};

/* An event of a subscription on its way to one client. Borrowed, valid during notice(). */
struct egw_notice {
  struct egw_slice kind;        /* plain text: "newHeads", "logs", "newPendingTransactions", or the method
                                   of a subscription that is passed through to a node */
  struct egw_slice subscription; /* the client's id, plain text */
  struct egw_slice result;      /* raw JSON */
  const char *network;
  const struct egw_client *client;
  void *host[4];                /* the host's; do not touch */
};

/* What becomes of an event. */
enum egw_notice_verdict {
  EGW_NOTICE_PASS,
  EGW_NOTICE_DROP               /* this client does not get it */
};

struct egw_middleware {
  struct egw_plugin plugin;
  size_t call_size;           /* per-call state */
  uint32_t kinds;             /* EGW_KIND_* this stage wants to see */
  uint32_t flags;             /* EGW_STAGE_* */
  enum egw_need need;
  enum egw_verdict (*request)(const struct egw_at *, struct egw_call *);
  enum egw_verdict (*reply)(const struct egw_at *, struct egw_call *, const struct egw_reply *);
  enum egw_verdict (*timer)(const struct egw_at *, struct egw_call *);
  /* The call this stage holds is taken back: undo timers and lists, do not resume it. */
  void (*cancel)(const struct egw_at *, struct egw_call *);
  /* Last callback for a call whose request() ran, in reverse order of the stages. */
  void (*finish)(const struct egw_at *, struct egw_call *);
  /* At load: whether this stage has something to say on `method` (NULL: methods that are not
   * in the table). Missing: on all. */
  bool (*wants)(const void *self, const struct egw_method_info *method);
  /* The head of the network has changed (head.h); on every worker. at->state is NULL. Several
   * changes in short order may come as one. */
  void (*head)(const struct egw_at *, const struct egw_head *);
  /* An event passes on its way to one client, from the lowest stage up; at->state is NULL. It may be
   * dropped, or replaced by egw_notice_replace(). Runs once for each client and event: be quick. */
  enum egw_notice_verdict (*notice)(const struct egw_at *, struct egw_notice *);
};

/* --- facts about a call; borrowed, valid as long as the call ------------------------- */

struct egw_slice egw_method(const struct egw_call *call);      /* decoded name */
struct egw_slice egw_params(const struct egw_call *call);      /* raw JSON; "[]" when missing */
struct egw_slice egw_client_id(const struct egw_call *call);   /* raw bytes, or missing */
const struct egw_method_info *egw_method_info(const struct egw_call *call); /* NULL: unknown */
uint32_t egw_kind(const struct egw_call *call);                /* one of EGW_KIND_* */
const char *egw_network(const struct egw_call *call);          /* configured name */
uint64_t egw_deadline_ms(const struct egw_call *call);         /* on the clock of egw_now_ms */
uint64_t egw_started_us(const struct egw_call *call);          /* monotonic, when it came in */
uint64_t egw_call_number(const struct egw_call *call);         /* unique in this process */

/* Where the call came from. `transport` is "http", "ws", "ipc" or "internal"; `peer` is the
 * address as text ("127.0.0.1", "uid 1000"), behind a trusted proxy the one it forwards for;
 * `listener` the listener's configured name. A sub-call has its parent's client. */
struct egw_client {
  const char *transport, *peer, *listener;
  bool local;          /* a unix socket, or a listener bound to a loopback address; not what a
                          trusted proxy forwards */
  uint64_t session;    /* unique number of the session */
  const char *identity; /* who it is, as a stage above found (egw_set_identity); or NULL */
  int64_t uid;         /* of the peer of a unix socket; -1: none */
  struct egw_slice path_key; /* part of the request's path behind the network's name, on a listener
                          that takes keys there; or missing. A secret. */
};
void egw_client(const struct egw_call *call, struct egw_client *out);

/* A header of the HTTP request, or of the one that opened the WebSocket, by its name in lower
 * case: "authorization", "x-api-key" or "user-agent" (others are not kept). Missing: it was not
 * sent, was sent twice, or this is IPC. May be a secret. */
struct egw_slice egw_header(const struct egw_call *call, const char *name);

/* Says who the client is, for the stages below: a name for logs, metrics and limits. Copied. 0, or
 * -1 when memory is short. */
int egw_set_identity(struct egw_call *call, const char *name) EGW_MUST_CHECK;

/* --- what a stage may do ------------------------------------------------------------- */

/* Zeroed memory that dies with the call; NULL when memory is short. */
void *egw_alloc(struct egw_call *call, size_t size) EGW_MUST_CHECK;

/* Sets the reply: `result` (taken) holds one raw JSON value. Returns EGW_DONE. */
enum egw_verdict egw_answer(struct egw_call *call, struct egw_buf *result);

/* Sets an error as the reply. `message` is plain text, escaped by the host; keep braces out
 * of it. Returns EGW_DONE. */
enum egw_verdict egw_refuse(struct egw_call *call, int code, const char *message);

/* Sets an error object (taken, raw JSON) as the reply, verbatim. Returns EGW_DONE. */
enum egw_verdict egw_answer_error(struct egw_call *call, struct egw_buf *error);

/* Sets `part` of `buf` (taken), a raw JSON value, as the reply: a result, or an error object if
 * `is_error`. For replies that came from elsewhere (another call, a cache): nothing is copied.
 * Returns EGW_DONE. */
enum egw_verdict egw_answer_part(struct egw_call *call, struct egw_buf *buf, struct egw_slice part,
                                 bool is_error);

/* Replaces the params for the stages below and the upstream (raw JSON, copied). On the way up
 * egw_params() still gives these; set the old ones again for an EGW_AGAIN that should have them.
 * 0, or -1 when memory is short. */
int egw_set_params(struct egw_call *call, struct egw_slice params) EGW_MUST_CHECK;

/* The status line of the HTTP answer, where the call stands alone in its request (no array): 401,
 * 403, 429, 503 with refusals. Other transports and arrays have none. Without it: 200. */
void egw_http_status(struct egw_call *call, int status);

/* In notice(): puts `result` (taken, raw JSON) in the place of the event's. */
void egw_notice_replace(struct egw_notice *notice, struct egw_buf *result);

/* --- telling what happened ------------------------------------------------------------- */

/* Explaining a call: its story, one step after the other, for the client that asked for it by the
 * request header "X-Ethrpc-Gw-Explain: 1" and may have it, and for the access log. egw_explain()
 * adds a step ("coalesce: joined call 17", the host adds the time) and costs nothing when nobody
 * asked; names of upstreams are allowed, their URLs are not. egw_explain_on() asks for it.
 * egw_explained() is the story so far ("" when nobody asked), valid until the next step. */
bool egw_explains(const struct egw_call *call);
void egw_explain_on(struct egw_call *call);
void egw_explain(struct egw_call *call, const char *fmt, ...) EGW_PRINTF(2, 3);
const char *egw_explained(const struct egw_call *call);

/* What a cache did: "hit", "miss" or "bypass" (a literal; kept by reference), for the client that
 * sent the header "X-Ethrpc-Gw-Cache" with its request, and for logs. NULL: no cache was there. */
void egw_set_cache_status(struct egw_call *call, const char *status);
const char *egw_cache_status(const struct egw_call *call);

/* Takes up a call this stage holds: as if the callback that said EGW_WAIT had returned
 * `verdict` (not EGW_WAIT). The step is taken later, never from within this call. */
void egw_resume(struct egw_call *call, enum egw_verdict verdict);

/* A handle that outlives the call; egw_find() gives NULL once it ended. */
uint64_t egw_ticket(const struct egw_call *call);
struct egw_call *egw_find(struct egw_worker *worker, uint64_t ticket);

/* One timer for each stage and call: timer() is called after `ms`; 0 stops it. The stage
 * must hold the call (EGW_WAIT) when it fires. */
void egw_call_timer(const struct egw_at *at, struct egw_call *call, uint64_t ms);

/* Starts another call below this stage (`parent` given: it lives no longer than the parent,
 * and its deadline is no later), or from the top of the instance's chain for the worker
 * itself (`parent` NULL). done() is called once, never from within this call; not at all when
 * the parent ended or was cancelled first. Method and params are copied. 0, or -1 when memory
 * is short (done is not called). */
typedef void egw_sub_fn(void *arg, const struct egw_reply *reply);
struct egw_subcall {
  struct egw_slice method; /* plain text */
  struct egw_slice params; /* raw JSON array or object */
  uint32_t timeout_ms;     /* 0: the parent's deadline, or the network's default */
  bool below;              /* without a parent: starts below this stage, not at the top */
  struct egw_route route;  /* its wishes */
  uint64_t *ticket;        /* gets its ticket, for egw_subcall_cancel(); or NULL */
};
int egw_subcall(const struct egw_at *at, struct egw_call *parent, const struct egw_subcall *what,
                egw_sub_fn *done, void *arg);

/* Gives a sub-call up; done() is not called. Nothing happens if it is over. */
void egw_subcall_cancel(struct egw_worker *worker, uint64_t ticket);

/* Adds to metric `id` of this plugin's table, on this worker. */
void egw_count(const struct egw_at *at, unsigned id, int64_t n);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
