/* SPDX-License-Identifier: MIT */
/* Trials: an upstream that is avoided gets a copy of a call now and then, to see how it does.
 * The client's call does not wait for it, so that nobody pays for a node that is still sick.
 */
#include "failover.h"

#include <stdlib.h>

#define TRIAL_MS 3000u

struct trial {
  struct egw_at at;
  const struct egw_method_info *info;
  uint64_t began_ms;
};

static void
on_trial(void *arg, const struct egw_reply *reply)
{
  struct trial *trial = arg;

  if (reply->outcome != EGW_ABORTED)
    witness_copy(&trial->at, NULL, trial->info, reply,
                 (int64_t)(egw_now_ms(trial->at.worker) - trial->began_ms));
  free(trial);
}

void
trial_start(const struct egw_at *at, struct egw_call *call, unsigned upstream)
{
  struct trial *trial = malloc(sizeof(*trial));
  struct egw_subcall what = {
    .method = egw_method(call),
    .params = egw_params(call),
    .timeout_ms = TRIAL_MS,
    .below = true,
    .route = { .only = UINT64_C(1) << upstream, .once = true },
  };

  if (trial == NULL)
    return;
  *trial = (struct trial){ *at, egw_method_info(call), egw_now_ms(at->worker) };
  if (egw_subcall(at, NULL, &what, on_trial, trial) < 0)
    free(trial);
}
