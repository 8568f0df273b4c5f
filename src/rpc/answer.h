/* SPDX-License-Identifier: MIT */
/* Answers: replies of calls with the client's ids around them, single or joined in an array.
 * Results are referenced, not copied. */
#ifndef RPC_ANSWER_H
#define RPC_ANSWER_H

#include <stdbool.h>
#include "base/out.h"
#include "conf/conf.h"
#include "rpc/error.h"

struct egw_call;

/* One member of a client's message. */
struct member {
  struct egw_call *call;         /* under way, or NULL */
  struct egw_slice id;           /* raw; missing: none */
  struct egw_slice body;         /* raw result or error object */
  struct egw_buf *buf;           /* holds body */
  enum rpc_fault fault;          /* an error of the gateway's own instead of body */
  bool is_error;
  bool silent;                   /* a notification: no answer */
};

/* The answer for all members (their buffers are referenced anew). NULL: there is nothing to say,
 * or no memory is left to say it. */
struct out *answer_join(const struct member *members, size_t count, bool batch,
                        const struct conf_limits *limits);

/* Turns an open answer of which nothing was consumed yet into an error. 0, or -1 (no memory). */
int answer_fail(struct out *out, struct egw_slice id, enum rpc_fault fault) EGW_MUST_CHECK;

/* The open answer of a result that comes in pieces: everything before the result. */
struct out *answer_open(struct egw_slice id);

#endif
