/* SPDX-License-Identifier: MIT */
/* A walk: where the client is, what was fetched ahead of it, and how far ahead is right.
 *
 * The places of a walk are counted from 0, where it was recognised; place n is the block (or
 * window) n steps on. Pure but for memory; one thread. */
#ifndef PREFETCH_WALK_H
#define PREFETCH_WALK_H

#include "shape.h"
#include "track.h"

#define WALK_FIRST 2u           /* the window at first */
#define WALK_GAP 8              /* places that a client may skip, out of order */
#define WALK_LATE 16            /* places behind the client that may still be asked for */

enum place_state { PLACE_NONE, PLACE_FLYING, PLACE_READY };

struct place {
  struct walk *walk;
  int64_t n;
  enum place_state state;
  bool used;                    /* a client asked for it */
  uint64_t ticket;              /* FLYING */
  uint64_t since_ms;            /* it flies, or is ready */
  uint64_t bytes;               /* READY */
};

struct ahead;

struct walk {
  struct ahead *owner;
  struct walk *track_next;      /* of its track */
  struct walk *next, *prev;     /* of the worker, by last use */
  struct track *track;          /* NULL: it is over and waits for what flies */
  struct shape shape;           /* its own copy */
  int64_t step;
  uint64_t origin;              /* the number of place 0 */
  int64_t front;                /* the furthest place a client asked for */
  int64_t asked;                /* the furthest place fetched, or found to need none */
  int64_t swept;                /* places up to here are done with */
  unsigned window, window_max;
  unsigned most;                /* fetches of it at once: fewer of what is heavy for a node */
  unsigned early;               /* answers in a row that waited long */
  unsigned flying;
  uint64_t hits;                /* used places */
  uint64_t last_ms, pace_ms;    /* the last call; smoothed time between calls */
  unsigned cap;                 /* of places[], a power of two */
  struct place places[];
};

struct walk *walk_new(const struct shape *shape, const struct egw_method_info *method,
                      int64_t step, unsigned window_max, uint64_t now_ms);
void walk_free(struct walk *walk);

/* The number at place `n`; false: there is no such block. */
bool walk_number(const struct walk *walk, int64_t n, uint64_t *number);

/* The place of a number; false: it is on no place of this walk. */
bool walk_place(const struct walk *walk, uint64_t number, int64_t *n);

/* What is known of place `n`: NULL if it was never fetched. */
struct place *walk_at(struct walk *walk, int64_t n);

/* Where to note that place `n` is being fetched. NULL: no room. */
struct place *walk_take(struct walk *walk, int64_t n);

/* How a client's call was served. */
enum walk_step { STEP_READY, STEP_LATE, STEP_MISSED };

/* The client asked for place `n`, ahead of the front: moves the front and adapts the window.
 * `best_ms`: how long a fetch takes. */
void walk_advance(struct walk *walk, int64_t n, enum walk_step step, uint64_t best_ms,
                  uint64_t now_ms);

/* The next place that is done with, far enough behind the front; NULL: none. */
struct place *walk_sweep(struct walk *walk);

#endif
