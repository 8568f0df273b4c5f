/* SPDX-License-Identifier: MIT */
/* Example 3: waiting. Holds each call for a while, and counts. Nothing blocks meanwhile: the
 * stage says EGW_WAIT, and the core comes back by timer() or takes the call away by cancel().
 *
 *   middleware = ( { use = "example3-async"; delay = "250ms"; } );                       */
#include <ethrpc-gw/middleware.h>

struct delay {
  uint64_t ms;
};

enum { DELAYED, CANCELLED };

static const struct egw_option options[] = {
  { .name = "delay", .type = EGW_OPT_DURATION, .offset = offsetof(struct delay, ms),
    .fallback = "100ms", .min = 1, .max = 60000, .help = "How long each call is held" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [DELAYED] = { .name = "delayed", .kind = EGW_METRIC_COUNTER,
                .help = "Calls held to the end" },
  [CANCELLED] = { .name = "cancelled", .kind = EGW_METRIC_COUNTER,
                  .help = "Calls taken away while they were held" },
  EGW_METRIC_TABLE_END
};

static enum egw_verdict
delay_request(const struct egw_at *at, struct egw_call *call)
{
  const struct delay *self = at->self;

  egw_call_timer(at, call, self->ms);
  return EGW_WAIT; /* from here on the call is ours */
}

static enum egw_verdict
delay_timer(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  egw_count(at, DELAYED, 1);
  return EGW_NEXT; /* and now it is the core's again, as if request() had said so */
}

/* The client left, or the deadline passed: the call is no longer ours, and must not be
 * resumed. */
static void
delay_cancel(const struct egw_at *at, struct egw_call *call)
{
  egw_call_timer(at, call, 0);
  egw_count(at, CANCELLED, 1);
}

static const struct egw_middleware delay = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "example3-async",
              .version = "1.0", .summary = "Holds each call for a while", .options = options,
              .metrics = metrics, .instance_size = sizeof(struct delay) },
  .kinds = EGW_KIND_CALL | EGW_KIND_NOTIFICATION,
  .request = delay_request,
  .timer = delay_timer,
  .cancel = delay_cancel,
};

EGW_REGISTER(delay)
