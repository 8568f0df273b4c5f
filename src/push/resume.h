/* SPDX-License-Identifier: MIT */
/* Resuming: a subscription to heads or logs begins with what its client has missed. What happens
 * meanwhile is held back until that is told. Worker's thread.
 *
 *   eth_subscribe ["newHeads", {"resumeFrom": R}]
 *   eth_subscribe ["logs", {filter}, {"resumeFrom": R}]
 *
 * R: number or hash of the last block the client has had, canonical and no more than the window of
 * the head back. */
#ifndef PUSH_RESUME_H
#define PUSH_RESUME_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

struct egw_call;
struct head_snapshot;
struct hub_event;
struct log_set;
struct subscription;

/* Whether the call's params have an R at all. */
bool resume_asked(const struct egw_call *call);

/* Reads R of the call's params. true: there is one, *from gets the number of the first
 * block missed; or *why says why that can't be (a literal). */
bool resume_wanted(const struct egw_call *call, const struct head_snapshot *head, uint64_t *from,
                   const char **why);

/* Begins to tell the blocks from `from` up to the snapshot's tip, which is that of the
 * moment when the subscription was made. 0, or -1: no memory. */
int resume_start(struct subscription *sub, const struct head_snapshot *head, uint64_t from)
    EGW_MUST_CHECK;

/* The chain takes another branch while the past is told: what is not told yet of the old
 * one never will be. */
void resume_turn(struct subscription *sub, const struct hub_event *event);

/* The logs told as past of a block that is taken away now; NULL: none were. A reference. */
struct log_set *resume_removed(const struct subscription *sub, const struct hub_event *event);

/* Whether the past is being told. */
bool resume_busy(const struct subscription *sub);

/* An event comes while the past is being told: holds it back. false: there is no room. */
bool resume_hold(struct subscription *sub, struct egw_buf *buf, struct egw_slice result);

/* The subscription ends. */
void resume_stop(struct subscription *sub);

#endif
