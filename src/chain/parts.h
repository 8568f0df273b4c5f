/* SPDX-License-Identifier: MIT */
/* What the files of chain/ share among themselves. */
#ifndef CHAIN_PARTS_H
#define CHAIN_PARTS_H

#include "chain/call.h"

enum chain_callback { CHAIN_REQUEST, CHAIN_REPLY, CHAIN_TIMER };

/* The timer a stage may have in a call. */
struct call_timer {
  struct wheel_timer timer;
  struct egw_call *call;
  unsigned pos;
};

void chain_at(const struct egw_call *call, unsigned pos, struct egw_at *at);
void chain_timer_fired(struct egw_call *call, unsigned pos);
void call_stop_timers(struct egw_call *call);

/* Steps of the core's own in a call's story: the stage at call->pos has set the reply; the call is
 * over. */
void story_turned(struct egw_call *call);
void story_over(struct egw_call *call);

/* Sub-calls: the end of one (frees it), and the early end of a parent's. */
void subcall_over(struct egw_call *call);
void call_cancel_children(struct egw_call *call);

#endif
