/* SPDX-License-Identifier: MIT */
/* A gateway's core in one thread for unit tests: one worker, one network with stages that record
 * their callbacks, upstreams whose transport does what the test says, and a session that
 * keeps what it was answered. The clock is the worker's wheel, turned by core_advance(). */
#ifndef T_LIB_CORE_H
#define T_LIB_CORE_H

#include "chain/call.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "listen/parts.h"
#include "listen/session.h"
#include "push/hub.h"
#include "upstream/upstream.h"

#define CORE_STAGES 4u
#define CORE_UPSTREAMS 3u
#define CORE_SENT_MAX 2048u
#define CORE_ANSWERS_MAX 64u

/* What a recording stage does next; one-shot entries are used up in order. */
enum act { ACT_NEXT, ACT_ANSWER, ACT_REFUSE, ACT_WAIT, ACT_AGAIN, ACT_SUBCALL };

struct core_stage {
  enum act on_request[8], on_reply[8], on_timer[8];
  unsigned requests, replies, timers;   /* callbacks so far */
  bool timer_on_wait;                   /* ask for a timer of 50 ms when waiting */
  struct egw_call *held;
  bool partial_seen;
};

/* An exchange the fake transport was given. */
struct core_sent {
  struct egw_xchg *xchg;                /* NULL: ended or aborted */
  struct egw_link *link;
  char body[2048];
  bool aborted, fresh;
};

struct core_answer {
  char *text;
  size_t len;
  bool open, aborted;
  struct out *out;                      /* while open */
  void *cookie;
};

struct core {
  struct gateway gateway;
  struct conf conf;
  struct conf_network conf_network;
  struct conf_upstream conf_upstreams[CORE_UPSTREAMS];
  struct conf_listener conf_listener;
  struct listener listener;
  struct network network;
  struct head head;
  struct hub hub;                       /* core_hub() */
  struct egw_worker worker;
  struct listen_worker listen;
  struct session session;
  struct core_stage stages[CORE_STAGES];
  struct core_sent sent[CORE_SENT_MAX];
  unsigned sent_count;
  struct core_answer answers[CORE_ANSWERS_MAX];
  unsigned answer_count;
  char pushed[8][512];
  unsigned push_count;
  char trace[4096];                     /* callbacks in order: "r0 r1 p1 p0 f1 f0 " */
  uint64_t ahead_ms;
  bool multiplex;
  const struct egw_batching *batching;  /* what the stages let calls travel together by, or NULL */
  struct egw_conn *conn;
};

extern struct core core;

/* `need`: what the recording stages ask of replies. Probes are answered by themselves. */
void core_start(unsigned stages, unsigned upstreams, enum egw_need need, bool multiplex);
void core_stop(void);

/* Runs the loop until nothing happens any more. */
void core_turn(void);
/* Lets the virtual clock go on. */
void core_advance(uint64_t ms);

/* After core_start(): the network has a hub, which core_stop() ends. Nothing is told by a tracker. */
struct hub *core_hub(void);

/* A client's message. */
struct request *core_send(const char *text);

/* The fake node answers the n-th exchange with a result (or any text, with %ID% for the id). */
void core_result(unsigned n, const char *result);
void core_text(unsigned n, const char *text);
void core_data(unsigned n, const char *bytes, size_t len);
void core_done(unsigned n, enum egw_outcome outcome);

#endif
