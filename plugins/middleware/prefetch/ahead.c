/* SPDX-License-Identifier: MIT */
/* The life of walks and of what is fetched for them. Fetches are sub-calls of the worker
 * that start below this stage: the cache keeps their answers, and coalesce lets a real call
 * join one that is under way. */
#include "ahead.h"

#include <stdlib.h>
#include <string.h>

#define TICK_MS 250u
#define MUTE_MS 30000u          /* when what is fetched is not kept */
#define LOST_MAX 3u
#define SLOW_TIMES 3u           /* a fetch that takes so many times the best, */
#define SLOW_MS 20u             /* and so much more, shows a node with much to do */
#define SMALL_REPLY 4u          /* null and []: no cache keeps them */
#define DISTRUST_MAX 2u
#define IDLE_PACES 8u
#define IDLE_MAX_MS 60000u

static void on_fetched(void *arg, const struct egw_reply *reply);

/* --- the list of walks ------------------------------------------------------------------ */

static void
list_take(struct ahead *a, struct walk *walk)
{
  *(walk->prev != NULL ? &walk->prev->next : &a->first) = walk->next;
  *(walk->next != NULL ? &walk->next->prev : &a->last) = walk->prev;
  walk->next = walk->prev = NULL;
}

static void
list_put(struct ahead *a, struct walk *walk)
{
  walk->next = a->first;
  *(a->first != NULL ? &a->first->prev : &a->last) = walk;
  a->first = walk;
}

static void
untrack(struct walk *walk)
{
  struct walk **at = &walk->track->walks;

  while (*at != walk)
    at = &(*at)->track_next;
  *at = walk->track_next;
  walk->track = NULL;
}

/* --- places ----------------------------------------------------------------------------- */

/* Done with: it was of use, or not. */
static bool
retire(struct ahead *a, struct place *p)
{
  bool wasted = !p->used;

  if (wasted) {
    egw_count(&a->at, METRIC_WASTED, 1);
    if (p->state == PLACE_READY)
      a->bytes -= p->bytes;
  }
  p->state = PLACE_NONE;
  return wasted;
}

static void
note_use(struct ahead *a, struct place *p)
{
  if (p->used)
    return;
  p->used = true;
  p->walk->hits++;
  egw_count(&a->at, METRIC_USED, 1);
  if (p->state == PLACE_READY)
    a->bytes -= p->bytes;
  else
    egw_count(&a->at, METRIC_LATE, 1);
}

static void
landed(struct ahead *a, struct walk *walk)
{
  walk->flying--;
  a->flying--;
  egw_count(&a->at, METRIC_IN_FLIGHT, -1);
}

/* --- ends ------------------------------------------------------------------------------- */

/* What flies and nobody waits for is given up; a walk with more in the air lives until that is
 * down. */
static void
end_walk(struct ahead *a, struct walk *walk)
{
  struct track *track = walk->track;
  unsigned i;

  list_take(a, walk);
  untrack(walk);
  a->walks--;
  egw_count(&a->at, METRIC_WALKING, -1);
  if (walk->hits > 0)
    track->distrust = 0;
  else if (track->distrust < DISTRUST_MAX)
    track->distrust++;
  for (i = 0; i < walk->cap; i++) {
    struct place *p = &walk->places[i];

    if (p->state == PLACE_FLYING && p->used)
      continue;
    if (p->state == PLACE_FLYING) {
      egw_subcall_cancel(a->at.worker, p->ticket);
      landed(a, walk);
    }
    if (p->state != PLACE_NONE)
      retire(a, p);
  }
  if (walk->flying == 0)
    walk_free(walk);
}

static void
end_walks(struct ahead *a, struct track *track)
{
  while (track->walks != NULL)
    end_walk(a, track->walks);
}

static void
on_tick(struct egw_timer *timer)
{
  struct ahead *a = timer->arg;
  uint64_t now = egw_now_ms(a->at.worker);
  struct walk *walk, *next;

  for (walk = a->first; walk != NULL; walk = next) {
    uint64_t idle = IDLE_PACES * walk->pace_ms;

    next = walk->next;
    if (idle > IDLE_MAX_MS)
      idle = IDLE_MAX_MS;
    if (idle < a->limits->idle_ms)
      idle = a->limits->idle_ms;
    if (now - walk->last_ms >= idle)
      end_walk(a, walk);
  }
  if (a->first != NULL)
    egw_timer_start(a->at.worker, timer, TICK_MS);
}

/* --- holding back ----------------------------------------------------------------------- */

unsigned
ahead_room(const struct egw_at *at, unsigned allowed, unsigned busy, unsigned flying)
{
  unsigned i, n = egw_upstream_count(at), others = 0;
  struct egw_upstream_info info;
  bool usable = false;

  for (i = 0; i < n; i++)
    if (egw_upstream(at, i, &info)) {
      others += info.in_flight;
      usable |= info.up && !info.busy;
    }
  others = others > flying ? others - flying : 0;
  if (!usable || others >= busy)
    return 0;
  allowed = (unsigned)((uint64_t)allowed * (busy - others) / busy);
  return allowed == 0 ? 1 : allowed;
}

/* The node's time: its best is forgotten slowly. When it takes much longer than that, it
 * has more to do than it can: half as many at once; otherwise one more. */
static void
note_time(struct ahead *a, struct track *track, uint64_t took_ms)
{
  uint64_t now = egw_now_ms(a->at.worker);

  took_ms += took_ms == 0; /* 0 is "not known" */
  if (took_ms < track->best_ms || track->best_ms == 0)
    track->best_ms = took_ms;
  else
    track->best_ms += (took_ms - track->best_ms + 255) / 256;
  if (took_ms <= SLOW_TIMES * track->best_ms + SLOW_MS) {
    a->allowed += a->allowed < a->limits->in_flight;
    return;
  }
  if (now - a->slowed_ms < took_ms)
    return; /* those sent before the last time say the same again */
  a->slowed_ms = now;
  a->allowed = a->allowed / 2 > 1 ? a->allowed / 2 : 1;
}

static bool
may_fetch(struct ahead *a, const struct walk *walk)
{
  const struct ahead_limits *l = a->limits;
  uint64_t average = walk->track->average;
  unsigned room = ahead_room(&a->at, a->allowed, l->busy, a->flying);
  unsigned share = room / (a->walks > 0 ? a->walks : 1);

  if (share < WALK_FIRST)
    share = WALK_FIRST;
  if (a->flying >= room || walk->flying >= share || walk->flying >= walk->most)
    return false;
  return a->bytes + (a->flying + 1) * average <= l->max_bytes;
}

/* --- fetching --------------------------------------------------------------------------- */

static int
fetch(struct ahead *a, struct walk *walk, int64_t n, uint64_t number)
{
  struct place *p = walk_take(walk, n);
  struct egw_buf *params;
  struct egw_subcall what = { .method = walk->shape.method, .below = true };
  int r = -1;

  if (p == NULL)
    return -1;
  params = egw_buf_new(walk->shape.params.len + 40);
  if (params != NULL && shape_print(&walk->shape, number, params) == 0) {
    what.params = egw_buf_slice(params);
    what.ticket = &p->ticket;
    r = egw_subcall(&a->at, NULL, &what, on_fetched, p);
  }
  egw_buf_unref(params);
  if (r < 0)
    return -1;
  p->state = PLACE_FLYING;
  p->since_ms = egw_now_ms(a->at.worker);
  walk->flying++;
  a->flying++;
  egw_count(&a->at, METRIC_FETCHED, 1);
  egw_count(&a->at, METRIC_IN_FLIGHT, 1);
  return 0;
}

/* Whether another walk of the track has it, or a client has just asked for it. */
static bool
is_known(struct track *track, uint64_t number)
{
  struct walk *walk;
  int64_t n;

  for (walk = track->walks; walk != NULL; walk = walk->track_next)
    if (walk_place(walk, number, &n) && walk_at(walk, n) != NULL)
      return true;
  return track_has(track, number);
}

/* Whether the chain has the block (the window) at `number`, as far as is known. */
static bool
is_there(const struct ahead *a, const struct walk *walk, uint64_t number)
{
  const struct egw_head *head = egw_head(&a->at);

  if (!head->known) /* down from a block that is there there are others */
    return walk->step < 0;
  return walk->shape.unit - 1 <= head->tip.number &&
         number <= head->tip.number - (walk->shape.unit - 1);
}

static void
fill(struct ahead *a, struct walk *walk)
{
  uint64_t number;

  if (walk->track->too_big || walk->track->muted_until > egw_now_ms(a->at.worker))
    return;
  while (walk->asked < walk->front + (int64_t)walk->window) {
    int64_t n = walk->asked + 1;

    if (!walk_number(walk, n, &number) || !is_there(a, walk, number))
      return;
    if (!is_known(walk->track, number)) {
      if (!may_fetch(a, walk)) {
        egw_count(&a->at, METRIC_HELD, 1);
        return;
      }
      if (fetch(a, walk, n, number) < 0)
        return;
    }
    walk->asked = n;
  }
}

/* The size of a reply tells whether more of the kind can be kept. */
static void
note_size(struct ahead *a, struct track *track, uint64_t bytes, bool partial)
{
  track->average = track->average == 0 ? bytes : (7 * track->average + bytes) / 8;
  track->too_big = partial || bytes > a->limits->max_reply;
}

static void
on_fetched(void *arg, const struct egw_reply *reply)
{
  struct place *p = arg;
  struct walk *walk = p->walk;
  struct ahead *a = walk->owner;
  struct track *track = walk->track;
  uint64_t now = egw_now_ms(a->at.worker);
  bool good = reply->outcome == EGW_OK && !reply->is_error;

  landed(a, walk);
  if (good)
    egw_count(&a->at, METRIC_BYTES, (int64_t)reply->body.len);
  if (track == NULL) { /* the walk is over; a client had joined */
    p->state = PLACE_NONE;
    if (walk->flying == 0)
      walk_free(walk);
    return;
  }
  if (reply->upstream != NULL)
    note_time(a, track, now - p->since_ms);
  if (!good) { /* the client will see for itself */
    retire(a, p);
    walk->window = walk->window / 2 > 1 ? walk->window / 2 : 1;
    return;
  }
  note_size(a, track, reply->body.len, reply->partial);
  p->state = PLACE_READY;
  p->since_ms = now;
  p->bytes = reply->body.len;
  if (!p->used)
    a->bytes += p->bytes;
  fill(a, walk);
}

/* --- recognising ------------------------------------------------------------------------ */

static struct place *
find_place(struct track *track, uint64_t number)
{
  struct walk *walk;
  int64_t n;

  for (walk = track->walks; walk != NULL; walk = walk->track_next) {
    struct place *p = walk_place(walk, number, &n) ? walk_at(walk, n) : NULL;

    if (p != NULL)
      return p;
  }
  return NULL;
}

/* The walk that goes on with `number`: a little further than before, or a little late. */
static struct walk *
find_walk(struct track *track, uint64_t number, int64_t *n)
{
  struct walk *walk, *best = NULL;
  int64_t at, nearest = 0;

  for (walk = track->walks; walk != NULL; walk = walk->track_next) {
    int64_t far;

    if (!walk_place(walk, number, &at))
      continue;
    far = at - walk->front;
    if (far > WALK_GAP || far < -WALK_LATE)
      continue;
    far = far <= 0 ? WALK_GAP - far : far; /* going on is better than being late */
    if (best != NULL && far >= nearest)
      continue;
    best = walk;
    nearest = far;
    *n = at;
  }
  return best;
}

static void
begin_walk(struct ahead *a, struct track *track, struct egw_call *call,
           const struct shape *shape, int64_t step)
{
  uint64_t now = egw_now_ms(a->at.worker);
  struct walk *walk = walk_new(shape, egw_method_info(call), step, a->limits->window, now);

  if (walk == NULL)
    return;
  if (a->walks >= a->limits->max_walks)
    end_walk(a, a->last);
  walk->owner = a;
  walk->track = track;
  walk->track_next = track->walks;
  track->walks = walk;
  list_put(a, walk);
  if (a->walks++ == 0)
    egw_timer_start(a->at.worker, &a->timer, TICK_MS);
  egw_count(&a->at, METRIC_WALKS, 1);
  egw_count(&a->at, METRIC_WALKING, 1);
  egw_explain(call, "prefetch: a walk by %lld blocks", (long long)step);
  fill(a, walk);
}

static void
go_on(struct ahead *a, struct walk *walk, int64_t n, const struct place *place)
{
  uint64_t now = egw_now_ms(a->at.worker);
  enum walk_step step = place == NULL                   ? STEP_MISSED
                        : place->state == PLACE_FLYING ? STEP_LATE
                                                       : STEP_READY;
  struct place *p;
  bool wasted = false;

  list_take(a, walk);
  list_put(a, walk);
  if (n <= walk->front) {
    walk->last_ms = now;
    return;
  }
  walk_advance(walk, n, step, walk->track->best_ms, now);
  while ((p = walk_sweep(walk)) != NULL)
    wasted |= retire(a, p);
  if (wasted)
    walk->window = walk->window / 2 > 1 ? walk->window / 2 : 1;
  fill(a, walk);
}

static struct track *
take_track(struct ahead *a, uint64_t key, uint64_t unit)
{
  struct track *track = track_find(&a->tracks, key);

  if (track == NULL) {
    track = track_oldest(&a->tracks);
    end_walks(a, track);
    track_begin(&a->tracks, track, key, unit);
  }
  return track;
}

void
ahead_request(struct ahead *a, const struct egw_at *at, struct egw_call *call,
              const struct shape *shape, uint64_t client, struct ahead_call *state)
{
  struct track *track;
  struct place *place;
  struct walk *walk;
  int64_t n, step;

  if (!a->started) {
    a->at = *at;
    a->at.state = NULL;
    a->started = true;
  }
  state->key = shape_hash(shape, client);
  state->key += state->key == 0;
  track = take_track(a, state->key, shape->unit);
  place = find_place(track, shape->number);
  if (place != NULL) {
    state->ready = place->state == PLACE_READY;
    note_use(a, place);
    egw_explain(call, "prefetch: %s", state->ready ? "fetched before" : "being fetched");
  }
  walk = find_walk(track, shape->number, &n);
  track_note(&a->tracks, track, shape->number);
  if (walk != NULL) {
    go_on(a, walk, n, place);
    return;
  }
  step = track_walk(track, a->limits->after + track->distrust);
  if (step != 0 && track->muted_until <= egw_now_ms(at->worker))
    begin_walk(a, track, call, shape, step);
}

/* Whether what was fetched is kept below shows when the client asks for it: it must not
 * come from a node again. */
static void
note_kept(struct ahead *a, struct track *track, const struct egw_reply *reply)
{
  if (reply->upstream == NULL) {
    track->lost = 0;
    return;
  }
  if (reply->body.len <= SMALL_REPLY || ++track->lost < LOST_MAX)
    return;
  track->lost = 0;
  track->muted_until = egw_now_ms(a->at.worker) + MUTE_MS;
  end_walks(a, track);
}

void
ahead_reply(struct ahead *a, const struct ahead_call *state, const struct egw_reply *reply)
{
  struct track *track;

  if (state->key == 0 || reply->outcome != EGW_OK || reply->is_error)
    return;
  track = track_find(&a->tracks, state->key);
  if (track == NULL)
    return;
  note_size(a, track, reply->body.len, reply->partial);
  if (state->ready)
    note_kept(a, track, reply);
}

/* --- life ------------------------------------------------------------------------------- */

void
ahead_start(struct ahead *a, const struct ahead_limits *limits)
{
  a->limits = limits;
  a->allowed = limits->in_flight;
  a->timer.fn = on_tick;
  a->timer.arg = a;
}

void
ahead_stop(struct ahead *a, struct egw_worker *worker)
{
  egw_timer_stop(worker, &a->timer);
  while (a->first != NULL)
    end_walk(a, a->first);
}
