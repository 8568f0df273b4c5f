/* SPDX-License-Identifier: MIT */
/* Tracks: the numbers that one client asked for by calls that are otherwise the same, and
 * whether they are those of a walk. A track may have several walks at once: clients have
 * workers that walk ranges of their own, and calls made side by side come in any order.
 * Pure; one thread. */
#ifndef PREFETCH_TRACK_H
#define PREFETCH_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#define TRACKS 256u             /* of each worker; the one unused for longest goes */
#define TRACK_SEEN 32u          /* numbers remembered */
#define STEP_MAX (INT64_C(1) << 32)

struct walk;

struct track {
  uint64_t seen[TRACK_SEEN];    /* ring of numbers */
  uint64_t order[TRACK_SEEN];   /* and when each came, 0: none */
  unsigned at;
  uint64_t unit;                /* of its calls' shape */
  struct walk *walks;           /* list by track_next */
  unsigned distrust;            /* walks that were nothing, in a row: more steps are wanted */
  unsigned lost;                /* answers fetched ahead that were not kept, in a row */
  uint64_t muted_until;         /* ms: nothing is fetched ahead */
  uint64_t average;             /* bytes of a reply */
  uint64_t best_ms;             /* the time of a fetch when little is going on */
  bool too_big;                 /* the last reply seen was longer than is kept */
};

/* What is searched stands close together. */
struct tracks {
  uint64_t keys[TRACKS];        /* of client and shape; 0: unused */
  uint64_t used[TRACKS];        /* order of its last use */
  struct track all[TRACKS];
  uint64_t clock;
};

/* The track by its key. NULL: there is none yet. */
struct track *track_find(struct tracks *tracks, uint64_t key);

/* Which one a new track would take the place of: the caller ends its walks, then calls
 * track_begin(). */
struct track *track_oldest(struct tracks *tracks);
void track_begin(struct tracks *tracks, struct track *track, uint64_t key, uint64_t unit);

/* Notes a number. */
void track_note(struct tracks *tracks, struct track *track, uint64_t number);
bool track_has(const struct track *track, uint64_t number);

/* Whether the number noted last makes a walk of at least `steps` steps with others: its signed
 * step, or 0. */
int64_t track_walk(const struct track *track, unsigned steps);

#endif
