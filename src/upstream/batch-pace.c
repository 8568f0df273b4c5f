/* SPDX-License-Identifier: MIT */
/* How large arrays should be: by comparing arrays with single calls sent beside them. */
#include "upstream/batch.h"

/* A call may wait so much longer in an array than it would take alone. Sending a dozen calls
 * by themselves takes about as long, on this side. */
#define EXTRA_US 500
#define START 2u            /* calls of the first arrays */
#define GROWTH 2u           /* by one comparison */
#define UNLIMITED 100000u   /* the configured limits decide */
#define CROWD 3u            /* one by itself and an array */
#define REST 16u            /* crowds between comparisons, when the size is settled */
#define PROBE_MS 1000u      /* arrays were no use: looks again after this, */
#define PROBE_MAX_MS 60000u /* and after ever longer times, up to this */
#define UNIT 16             /* of the averages */

void
pace_init(struct batch_pace *pace)
{
  *pace = (struct batch_pace){ .size = START };
}

uint32_t
pace_size(struct batch_pace *pace, unsigned count, uint64_t now_ms, bool *compare)
{
  *compare = false;
  if (pace->size == 1) {
    if (count < CROWD || now_ms < pace->probe_ms)
      return 1;
    pace->probe_ms = now_ms + pace->wait_ms;
    *compare = true;
    return START;
  }
  if (count < CROWD)
    return pace->others != 0 ? pace->size : 1; /* none before something is known */
  if (pace->rest == 0)
    *compare = true;
  else
    pace->rest--;
  return pace->size;
}

static int64_t
average(int64_t old, int64_t sample)
{
  return old + (sample * UNIT - old) / 4;
}

void
pace_result(struct batch_pace *pace, unsigned n, int64_t lone_us, int64_t array_us,
            uint64_t now_ms)
{
  uint32_t was = pace->size, most = n * GROWTH > was ? n * GROWTH : was;
  int64_t fits;

  pace->others = pace->others == 0 ? (int64_t)(n - 1) * UNIT : average(pace->others, n - 1);
  pace->extra_us = average(pace->extra_us, array_us - lone_us);
  fits = pace->extra_us <= 0 ? UNLIMITED : 1 + EXTRA_US * pace->others / pace->extra_us;
  pace->size = fits < most ? (uint32_t)fits : most;
  pace->rest = pace->size > was ? 0 : REST;
  if (pace->size > 1) {
    pace->wait_ms = 0;
    return;
  }
  pace->wait_ms = pace->wait_ms == 0 ? PROBE_MS : pace->wait_ms * 2;
  if (pace->wait_ms > PROBE_MAX_MS)
    pace->wait_ms = PROBE_MAX_MS;
  pace->probe_ms = now_ms + pace->wait_ms;
}
