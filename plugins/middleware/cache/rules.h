/* SPDX-License-Identifier: MIT */
/* Which answers may be kept for ever: those that can't change any more. Pure; any thread. */
#ifndef CACHE_RULES_H
#define CACHE_RULES_H

#include <ethrpc-gw/middleware.h>

enum keep {
  KEEP_NO,            /* it may change, or nobody knows */
  KEEP_RESULT,        /* params name something immutable: any result but null and [] */
  KEEP_IF_FINAL       /* the result must name a block that is final */
};

/* Whether the method ever has answers to keep. */
bool rules_want(const struct egw_method_info *method);

/* Judges a call by its method and params. `finalized`: number of a block that is final, with
 * `known` false if there is none. */
enum keep rules_params(const struct egw_method_info *method, struct egw_slice params, bool known,
                       uint64_t finalized);

/* Judges a result, given what rules_params() said when the answer came. */
bool rules_result(enum keep keep, struct egw_slice result, bool known, uint64_t finalized);

/* Whether a block is the one that was asked for, where that can be seen at once: an upstream that
 * answers something else is not believed for ever. */
bool rules_matches(const struct egw_method_info *method, struct egw_slice params,
                   struct egw_slice result);

#endif
