/* SPDX-License-Identifier: MIT */
/* Recognising walks. */
#include "track.h"

#include <string.h>

#define RUN_MAX 12u             /* numbers of a run that are looked at */

struct track *
track_find(struct tracks *tracks, uint64_t key)
{
  unsigned i;

  for (i = 0; i < TRACKS; i++)
    if (tracks->keys[i] == key)
      return &tracks->all[i];
  return NULL;
}

struct track *
track_oldest(struct tracks *tracks)
{
  unsigned i, oldest = 0;

  /* One that has a walk goes only when all have. */
  for (i = 0; i < TRACKS; i++) {
    bool walks = tracks->all[i].walks != NULL, best = tracks->all[oldest].walks != NULL;

    if (tracks->keys[i] == 0)
      return &tracks->all[i];
    if (walks != best ? best : tracks->used[i] < tracks->used[oldest])
      oldest = i;
  }
  return &tracks->all[oldest];
}

void
track_begin(struct tracks *tracks, struct track *track, uint64_t key, uint64_t unit)
{
  size_t i = (size_t)(track - tracks->all);

  memset(track, 0, sizeof(*track));
  track->unit = unit;
  tracks->keys[i] = key;
  tracks->used[i] = ++tracks->clock;
}

void
track_note(struct tracks *tracks, struct track *track, uint64_t number)
{
  unsigned i;

  tracks->used[track - tracks->all] = ++tracks->clock;
  for (i = 0; i < TRACK_SEEN; i++)
    if (track->order[i] != 0 && track->seen[i] == number) {
      track->order[i] = 0; /* asked again: it counts as asked now */
      break;
    }
  track->at = (track->at + 1) % TRACK_SEEN;
  track->seen[track->at] = number;
  track->order[track->at] = tracks->clock;
}

static uint64_t
order_of(const struct track *track, uint64_t number)
{
  unsigned i;

  for (i = 0; i < TRACK_SEEN; i++)
    if (track->order[i] != 0 && track->seen[i] == number)
      return track->order[i];
  return 0;
}

bool
track_has(const struct track *track, uint64_t number)
{
  return order_of(track, number) != 0;
}

/* When the numbers around the last one, next to each other, came: from the lowest up. */
static unsigned
collect_run(const struct track *track, uint64_t orders[RUN_MAX])
{
  uint64_t low = track->seen[track->at], order;
  unsigned n = 0, below = 0;

  while (below < RUN_MAX / 2 && low >= track->unit &&
         order_of(track, low - track->unit) != 0) {
    low -= track->unit;
    below++;
  }
  while (n < RUN_MAX && (order = order_of(track, low + n * track->unit)) != 0)
    orders[n++] = order;
  return n;
}

/* A run of neighbours. Calls made side by side overtake each other, so their order need not be
 * perfect, but clear: most pairs must agree. */
static int64_t
find_run(const struct track *track, unsigned steps)
{
  uint64_t orders[RUN_MAX];
  unsigned n = collect_run(track, orders), i, j, up = 0, down = 0;

  if (n < steps + 1)
    return 0;
  for (i = 0; i < n; i++)
    for (j = i + 1; j < n; j++) {
      up += orders[i] < orders[j];
      down += orders[i] > orders[j];
    }
  if (3 * up >= 7 * down)
    return (int64_t)track->unit;
  if (3 * down >= 7 * up)
    return -(int64_t)track->unit;
  return 0;
}

/* Any other step must show itself in the last calls, one after the other, and once more
 * than a run's: the interleaved runs of several workers look like it for a moment. */
static int64_t
find_constant(const struct track *track, unsigned steps)
{
  uint64_t last = track->seen[track->at];
  int64_t step = 0;
  unsigned i;

  for (i = 1; i <= steps + 1; i++) {
    unsigned at = (track->at + TRACK_SEEN - i) % TRACK_SEEN;
    int64_t d = (int64_t)(last - track->seen[at]);

    if (track->order[at] == 0 || d == 0 || d > STEP_MAX || d < -STEP_MAX ||
        (i > 1 && d != step))
      return 0;
    step = d;
    last = track->seen[at];
  }
  return step;
}

int64_t
track_walk(const struct track *track, unsigned steps)
{
  int64_t step;

  if (steps > RUN_MAX / 2)
    steps = RUN_MAX / 2;
  step = find_run(track, steps);
  return step != 0 ? step : find_constant(track, steps);
}
