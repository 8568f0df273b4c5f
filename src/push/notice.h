/* SPDX-License-Identifier: MIT */
/* Events on their way past the stages. Worker's thread. */
#ifndef PUSH_NOTICE_H
#define PUSH_NOTICE_H

#include <stdbool.h>
#include <ethrpc-gw/buf.h>

struct subscription;

/* Shows the event to the network's stages, from the lowest up. false: one of them drops it. *result may
 * become another text, then in *buf, which the caller owns. */
bool notice_pass(struct subscription *sub, struct egw_buf **buf, struct egw_slice *result);

#endif
