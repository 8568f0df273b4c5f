/* SPDX-License-Identifier: MIT */
/* A call: one JSON-RPC request in flight, its life and its one owner.
 *
 *   call_new -> chain_start -> DOWN -> BELOW -> UP -> (STREAMING) -> OVER
 *                               |________________^   a stage answers by itself
 *                               ^________________|   EGW_AGAIN
 *
 * All on the call's worker. A call lives in its request's arena (or its own, for sub-calls)
 * and ends with call_over() in chain.c, exactly once. */
#ifndef CHAIN_CALL_H
#define CHAIN_CALL_H

#include <ethrpc-gw/middleware.h>
#include "base/arena.h"
#include "base/list.h"
#include "base/out.h"
#include "base/wheel.h"
#include "chain/chain.h"
#include "rpc/error.h"
#include "worker/worker.h"

struct egw_xchg;
struct request;

enum call_phase { CALL_NEW, CALL_DOWN, CALL_BELOW, CALL_UP, CALL_STREAMING, CALL_OVER };

enum call_owner {
  OWNER_CORE,      /* running, or on the run queue */
  OWNER_STAGE,     /* a stage said EGW_WAIT */
  OWNER_BELOW      /* an upstream exchange, push/, or a stream */
};

/* Which block an upstream must have for the call; see upstream/want.c. */
struct want {
  bool has_block;               /* it must have `block`; */
  bool at_tip;                  /* that is the newest one there is; */
  bool latest;                  /* and the call said "latest"; */
  bool known;                   /* the block is known to exist */
  bool hash;                    /* it is named by its hash */
  bool state;                   /* its state (or logs, receipts) from `lowest` on is needed */
  uint64_t block, lowest;
};

/* Attempts at upstreams; see upstream/dispatch.c. */
struct dispatch {
  struct egw_xchg *xchg;        /* under way, or NULL */
  uint64_t tried;               /* bits of the network's upstreams */
  unsigned attempts;
  bool fresh;                   /* the next attempt must not reuse a connection */
  bool fallback;                /* call->reply is one that another node may know better */
  struct want want;
  struct egw_link *last;        /* of the last attempt */
  uint64_t began_ms;
  enum egw_outcome stream_outcome;
};

/* What a call that no client made is for. */
struct call_sub {
  struct egw_call *call;
  egw_sub_fn *done;             /* NULL: who waited for it is gone */
  void *arg;
  struct egw_call *parent;      /* or NULL */
  struct list sibling;          /* in parent->children */
};

struct egw_call {
  struct worker_job job;
  struct list live;             /* worker->live_calls */
  enum egw_verdict verdict;     /* of the queued step */
  enum call_phase phase;
  enum call_owner owner;
  bool cancelled;               /* no stage may hold or resend it any more */
  bool running;                 /* a callback of this call is on the stack */
  bool ticketed;                /* in worker->calls */
  bool can_stream;              /* the reply may go out in pieces */
  struct egw_worker *worker;
  struct network *network;
  const struct chain *chain;
  unsigned pos;                 /* stage that is or was called last */
  uint64_t ran;                 /* stages whose request() ran */
  char *states;
  struct call_timer *timers;    /* one for each stage, made when the first is needed */

  struct arena *arena;
  struct egw_slice id, method, params;
  const struct egw_method_info *info;
  unsigned method_index;
  uint32_t kind;

  struct request *request;      /* client calls */
  enum client_kind kind_of_client;
  size_t index;                 /* in the request */
  struct list waiting;          /* session->calls_waiting, while CALL_NEW */
  struct call_sub *sub;         /* sub-calls */
  struct arena own_arena;       /* sub-calls */
  struct list children;

  struct egw_reply reply;
  struct egw_buf *reply_buf;    /* the reference behind reply.buf */
  enum rpc_fault fault;         /* the reply is one of the gateway's own errors */

  struct wheel_timer deadline;
  uint64_t deadline_ms;
  uint64_t started_us;
  uint64_t number;

  struct egw_route route;       /* what stages wish of the next attempts */
  const struct egw_batching *batching; /* it may travel with others, or NULL */
  const char *identity;         /* who the client is, as a stage found; or NULL */
  const char *cache_status;     /* a literal, or NULL */
  int http_status;              /* of the answer; 0: 200 */
  bool explained;               /* somebody wants the story */
  char *story;                  /* in the arena; see story.c */
  size_t story_len, story_cap;

  struct dispatch dispatch;
  struct out *stream;           /* CALL_STREAMING */
  void *push;                   /* push/: the subscription being made */
  struct list push_node;        /* push/: waits for the head of the network, */
  void (*push_then)(struct egw_call *call); /* and what then */
  bool push_past;               /* ...and its window is to be filled */
  uint64_t push_look;           /* the head must have been looked at since: see head_look() */
};

/* A new client call in `arena`; `method` and `params` must live as long as it. NULL: no memory. */
struct egw_call *call_new(struct egw_worker *worker, struct network *network, struct arena *arena,
                          struct egw_slice method, struct egw_slice params, uint32_t kind)
    EGW_MUST_CHECK;

/* Sends it on its way, from the run queue. */
void chain_start(struct egw_call *call);
/* The same from position `pos` of its chain on. */
void chain_start_at(struct egw_call *call, unsigned pos);

/* A call that was sent on its way and waits for its first step takes it now, within the caller: as
 * far as it comes without waiting, maybe to its end. */
void chain_now(struct egw_call *call);

/* From below: the reply is set (call_set_*); goes up. */
void chain_reply(struct egw_call *call);

/* From below: the stream's end. `outcome` EGW_OK, or why the stream was cut. */
void chain_stream_over(struct egw_call *call, enum egw_outcome outcome);

/* Ends the call early: takes it back from whoever holds it; the stages above see `fault`. */
void call_cancel(struct egw_call *call, enum rpc_fault fault);

/* Setting the reply. Buffers are taken. */
void call_set_result(struct egw_call *call, struct egw_buf *buf, struct egw_slice result);
void call_set_error(struct egw_call *call, struct egw_buf *buf, struct egw_slice error, int64_t code,
                    struct egw_slice message, struct egw_slice data);
void call_set_fault(struct egw_call *call, enum rpc_fault fault, enum egw_outcome outcome,
                    const char *why);
void call_clear_reply(struct egw_call *call);

/* A call of the gateway's own below all stages (probes of push/): straight to dispatch. */
struct egw_call *call_new_internal(struct egw_worker *worker, struct network *network,
                                   struct egw_slice method, struct egw_slice params,
                                   uint32_t timeout_ms, egw_sub_fn *done, void *arg);

/* Ends every call of the worker (shutdown). */
void calls_cancel_all(struct egw_worker *worker, enum rpc_fault fault);

#endif
