/* SPDX-License-Identifier: MIT */
/* The inside of the plugin test host. Included by t/lib/plugtest*.c only. */
#ifndef T_LIB_PLUGTEST_PARTS_H
#define T_LIB_PLUGTEST_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugtest.h"
#include "base/list.h"
#include "conf/conf.h"
#include "plugin/loader.h"

struct egw_stage {
  struct plugtest *host;
};

struct egw_worker {
  struct plugtest *host;
};

enum phase {
  PHASE_NEW,       /* waits for its first step */
  PHASE_HELD_DOWN, /* the stage said WAIT in request() */
  PHASE_BELOW,     /* the script has it */
  PHASE_HELD_UP,   /* the stage said WAIT in reply() */
  PHASE_QUEUED,    /* a step is queued */
  PHASE_OVER
};

enum step { STEP_NONE, STEP_BEGIN, STEP_VERDICT, STEP_REPLY, STEP_DONE_SUB };

struct piece {
  struct piece *next;
  max_align_t bytes[];
};

struct egw_call {
  struct list node;            /* host->calls: all that ever were */
  struct list queued;          /* host->queue */
  struct plugtest *host;
  enum phase phase;
  enum step step;
  enum egw_verdict verdict;    /* of the queued step */
  bool up;                     /* the step belongs to reply() */
  bool ran, skipped, cancelled, timed_out, running, ticketed;
  char *method, *own_params, *id, *transport, *peer, *listener, *network;
  char *params;                /* own_params, or what egw_set_params() made */
  size_t method_len;
  uint32_t kind;
  bool local;
  uint64_t session, number, started_ms, deadline, timer_due, reply_due;
  struct plugtest_reply next_reply;      /* the script's; another script may follow meanwhile */
  const struct plugtest_reply *pending;  /* it, or NULL; at reply_due */
  void *state;
  struct piece *pieces;        /* egw_alloc() */
  struct egw_reply reply;
  struct egw_buf *reply_buf;
  bool reply_set;
  struct plugtest_end end;
  struct egw_route route;
  const struct egw_batching *batching;
  const char *identity, *cache_status;
  char *spec_authorization, *spec_api_key, *spec_path_key, *spec_identity;
  int64_t uid;
  int http_status;
  bool explained;
  char story[4096];
  /* sub-calls */
  struct egw_call *parent;
  bool is_sub;
  bool from_top;
  egw_sub_fn *done;
  void *arg;
};

struct plugtest_call {
  struct egw_call call;
};

struct mail {
  struct mail *next;
  void (*fn)(void *arg);
  void *arg;
};

struct reached {
  char *method, *params;
  struct egw_route route;
  const struct egw_batching *batching;
};

struct plugtest {
  struct loader loader;
  const struct plugin *plugin;
  struct conf *conf;
  char *messages;
  bool refused, configured, started;
  void *self, *mine;
  int64_t *metrics;
  struct egw_stage stage;
  struct egw_worker worker;
  unsigned faults;
  uint64_t now_ms;
  struct list calls, queue, timers;
  uint64_t next_number;
  struct plugtest_reply *script;
  size_t script_count, script_next;
  struct reached *reached;
  unsigned reached_count, reached_room;
  struct egw_head head;
  uint64_t head_version;
  struct egw_block *blocks;
  size_t block_count;
  char *notice;                          /* what plugtest_notice() gave */
  struct egw_upstream_info *upstreams;   /* NULL: one, "node" */
  unsigned upstream_count;
  uint64_t lacks[64];
  char *log;
  size_t log_len, log_room;
  pthread_mutex_t mail_lock;
  struct mail *mails, **mails_end;
  atomic_uint posted;
  unsigned fail_after;         /* allocations until one fails; 0: none */
  bool failed_one;
};

/* The host of this program; there is one at a time. */
extern struct plugtest *plugtest_host;

void plugtest_fault(struct plugtest *host, const char *fmt, ...) EGW_PRINTF(2, 3);
void *plugtest_must(void *p);
char *plugtest_copy(const char *text);

/* Around the plugin's callbacks: allocations in between may be made to fail. */
void plugtest_enter(struct plugtest *host);
void plugtest_leave(struct plugtest *host);
/* Around what the host does for itself within them. */
bool plugtest_pause(void);
void plugtest_resume(bool was);

/* Whether this allocation is the one that fails. */
bool plugtest_fails_now(void);

/* --- plugtest-call.c --------------------------------------------------------------------- */

struct egw_call *plugtest_call_new(struct plugtest *host, const struct plugtest_spec *spec);
void plugtest_call_free(struct egw_call *call);
void plugtest_enqueue(struct egw_call *call, enum step step);
void plugtest_step(struct egw_call *call);
void plugtest_call_cancel(struct egw_call *call, enum egw_outcome outcome, const char *why);
void plugtest_clear_reply(struct egw_call *call);
void plugtest_at(struct egw_call *call, struct egw_at *at);
/* The verdict of timer(), or of a held call that was resumed. */
void plugtest_take(struct egw_call *call, enum egw_verdict verdict, bool up);

/* --- plugtest-node.c --------------------------------------------------------------------- */

/* The call goes to the node: finds its reply in the script. */
void plugtest_go_below(struct egw_call *call);
/* Fills in call->reply from the script. */
void plugtest_make_reply(struct egw_call *call);

/* --- plugtest-loop.c --------------------------------------------------------------------- */

/* When the next armed timer of the worker is due; UINT64_MAX: none. Fires the first due one.
 */
uint64_t plugtest_timer_due(const struct plugtest *host);
bool plugtest_timer_fire(struct plugtest *host);
bool plugtest_read_mail(struct plugtest *host);
void plugtest_drop_mail(struct plugtest *host);

#endif
