/* SPDX-License-Identifier: MIT */
/* Transport replay: a "node" that answers from a recording, for demonstrations, tests and
 * measurements. URL replay:PATH. Answers have the recorded bytes of result or error under the
 * id that was asked with. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include <ethrpc-gw/transport.h>
#include <ethrpc-gw/version.h>
#include "base/list.h"
#include "replay.h"

#define FIRST_PIECE 16384u
#define NEXT_PIECE 65536u

/* The recordings of an instance, by path: loaded by the first worker, shared by all. */
struct shelf_item {
  struct shelf_item *next;
  struct replay_tape *tape;
  char path[];
};

struct shelf {
  pthread_mutex_t lock;
  struct shelf_item *items;
};

enum replay_missing { MISSING_ERROR, MISSING_NOTFOUND };

struct replay {
  uint64_t service_time; /* ms */
  int missing;           /* enum replay_missing */
  struct shelf *shelf;
};

struct replay_link {
  const struct replay *replay;
  const struct replay_tape *tape;
  struct list waiting;   /* replay_xchg: all that are not done */
};

struct replay_xchg {
  struct list node;
  struct egw_link *link;
  struct egw_xchg *xchg;
  struct egw_timer timer;
  struct egw_slice parts[4]; /* of the reply: up to the id, the id, the member's name, the
                                value; a brace follows */
  size_t at;             /* bytes given so far, over all parts */
  bool *gone;            /* set when the exchange ends while its bytes are being given */
};

static const char *const missing_choices[] = { "error", "notfound", NULL };

static const struct egw_option options[] = {
  { .name = "service_time", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct replay, service_time), .fallback = "0s", .max = 3600000,
    .help = "How long each answer takes" },
  { .name = "missing", .type = EGW_OPT_ENUM, .offset = offsetof(struct replay, missing),
    .fallback = "error", .choices = missing_choices,
    .help = "Answer to what is not recorded: error -32601, or notfound: the result null" },
  EGW_OPTION_END
};

/* --- recordings ------------------------------------------------------------------------- */

static int
replay_configure(void *self, struct egw_conf *section)
{
  struct replay *replay = self;

  replay->shelf = calloc(1, sizeof *replay->shelf);
  if (replay->shelf == NULL)
    return egw_conf_error(section, NULL, "memory is short");
  pthread_mutex_init(&replay->shelf->lock, NULL);
  return 0;
}

static void
replay_unconfigure(void *self)
{
  struct replay *replay = self;
  struct shelf_item *item;

  if (replay->shelf == NULL)
    return;
  while ((item = replay->shelf->items) != NULL) {
    replay->shelf->items = item->next;
    tape_free(item->tape);
    free(item);
  }
  pthread_mutex_destroy(&replay->shelf->lock);
  free(replay->shelf);
  replay->shelf = NULL;
}

/* The shelf's lock is held. */
static struct replay_tape *
shelf_load(struct shelf *shelf, const char *path, char *why, size_t cap)
{
  struct shelf_item *item;
  size_t len = strlen(path) + 1;

  for (item = shelf->items; item != NULL; item = item->next)
    if (strcmp(item->path, path) == 0)
      return item->tape;
  item = malloc(sizeof *item + len);
  if (item == NULL) {
    snprintf(why, cap, "memory is short");
    return NULL;
  }
  item->tape = tape_load(path, why, cap);
  if (item->tape == NULL) {
    free(item);
    return NULL;
  }
  memcpy(item->path, path, len);
  item->next = shelf->items;
  shelf->items = item;
  return item->tape;
}

/* --- links ------------------------------------------------------------------------------ */

static int
replay_open(struct egw_link *link)
{
  struct replay_link *l = egw_link_state(link);
  char why[128] = "";

  l->replay = egw_link_self(link);
  list_init(&l->waiting);
  pthread_mutex_lock(&l->replay->shelf->lock);
  l->tape = shelf_load(l->replay->shelf, egw_link_url(link)->path, why, sizeof why);
  pthread_mutex_unlock(&l->replay->shelf->lock);
  if (l->tape == NULL) {
    egw_log(EGW_ERROR, "replay", "%s: the recording can't be used: %s", egw_link_name(link),
            why);
    return -1;
  }
  if (egw_worker_index(egw_link_worker(link)) == 0)
    egw_log(EGW_INFO, "replay", "%s: %zu exchanges", egw_link_name(link), l->tape->count);
  return 0;
}

/* The exchange is over, here at least. */
static void
leave(struct replay_xchg *x)
{
  list_remove(&x->node);
  egw_timer_stop(egw_link_worker(x->link), &x->timer);
  if (x->gone != NULL)
    *x->gone = true;
  x->gone = NULL;
}

static void
replay_close(struct egw_link *link)
{
  struct replay_link *l = egw_link_state(link);

  while (!list_empty(&l->waiting)) {
    struct replay_xchg *x = container_of(l->waiting.next, struct replay_xchg, node);

    leave(x);
    egw_xchg_done(x->xchg, EGW_ABORTED, "the link is closed");
  }
  egw_link_closed(link);
}

/* --- answers ---------------------------------------------------------------------------- */

/* Copies the reply from byte `at` on, as far as it fits. */
static size_t
copy_reply(const struct replay_xchg *x, size_t at, char *out, size_t cap)
{
  size_t n = 0;

  for (int i = 0; i < 5 && n < cap; i++) {
    struct egw_slice part = i < 4 ? x->parts[i] : EGW_LIT("}");
    size_t len;

    if (at >= part.len) {
      at -= part.len;
      continue;
    }
    len = part.len - at < cap - n ? part.len - at : cap - n;
    memcpy(out + n, part.ptr + at, len);
    n += len;
    at = 0;
  }
  return n;
}

/* The next piece: long values are given where they lie. */
static struct egw_slice
next_piece(const struct replay_xchg *x, char *room)
{
  size_t before = x->parts[0].len + x->parts[1].len + x->parts[2].len;
  size_t end = before + x->parts[3].len;
  struct egw_slice piece = { room, 0 };

  if (x->at <= before || x->at >= end) {
    piece.len = copy_reply(x, x->at, room, FIRST_PIECE);
    return piece;
  }
  piece.ptr = x->parts[3].ptr + (x->at - before);
  piece.len = end - x->at < NEXT_PIECE ? end - x->at : NEXT_PIECE;
  return piece;
}

/* Gives the reply until it is complete, the reader is full, or the exchange is gone. */
static void
give(struct replay_xchg *x)
{
  char room[FIRST_PIECE];
  bool gone = false;
  int full = 0;

  x->gone = &gone;
  while (full == 0) {
    struct egw_slice piece = next_piece(x, room);

    if (piece.len == 0)
      break;
    x->at += piece.len;
    full = egw_xchg_data(x->xchg, piece.ptr, piece.len);
    if (gone)
      return;
    if (full == 0)
      egw_timer_stop(egw_link_worker(x->link), &x->timer); /* of a more() for nothing */
  }
  x->gone = NULL;
  if (full == 1)
    return;
  leave(x);
  egw_xchg_done(x->xchg, full == 0 ? EGW_OK : EGW_BAD_REPLY,
                full == 0 ? NULL : "the reply was refused");
}

static void
on_service_time(struct egw_timer *timer)
{
  give(timer->arg);
}

/* Finds the answer to the request and lays out the reply. */
static void
compose(struct replay_xchg *x, const struct replay_link *l)
{
  struct egw_slice body = egw_buf_slice(egw_xchg_body(x->xchg)), key, value;
  struct egw_slice method = { NULL, 0 }, params = { NULL, 0 }, id = EGW_LIT("null");
  const struct replay_entry *e;
  size_t cursor = 0;

  while (egw_json_next(body, &cursor, &key, &value)) {
    if (egw_json_equals(key, "method"))
      method = value;
    else if (egw_json_equals(key, "params"))
      params = value;
    else if (egw_json_equals(key, "id"))
      id = value;
  }
  e = method.ptr == NULL ? NULL : tape_find(l->tape, method, params);
  x->parts[0] = EGW_LIT("{\"jsonrpc\":\"2.0\",\"id\":");
  x->parts[1] = id;
  if (e != NULL) {
    x->parts[2] = e->is_error ? EGW_LIT(",\"error\":") : EGW_LIT(",\"result\":");
    x->parts[3] = e->answer;
  } else if (l->replay->missing == MISSING_NOTFOUND) {
    x->parts[2] = EGW_LIT(",\"result\":");
    x->parts[3] = EGW_LIT("null");
  } else {
    x->parts[2] = EGW_LIT(",\"error\":");
    x->parts[3] = EGW_LIT("{\"code\":-32601,\"message\":\"not recorded\"}");
  }
}

static void
replay_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  struct replay_link *l = egw_link_state(link);
  struct replay_xchg *x = egw_xchg_state(xchg);

  x->link = link;
  x->xchg = xchg;
  x->at = 0;
  x->gone = NULL;
  list_append(&l->waiting, &x->node);
  compose(x, l);
  if (l->replay->service_time == 0) {
    give(x);
    return;
  }
  x->timer.fn = on_service_time;
  x->timer.arg = x;
  egw_timer_start(egw_link_worker(link), &x->timer, l->replay->service_time);
}

static void
replay_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  (void)link;
  leave(egw_xchg_state(xchg));
}

static void
replay_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  struct replay_xchg *x = egw_xchg_state(xchg);

  (void)link;
  (void)conn;
  x->timer.fn = on_service_time;
  x->timer.arg = x;
  egw_timer_start(egw_link_worker(x->link), &x->timer, 0);
}

static const struct egw_transport replay_transport = {
  .plugin = {
    EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT),
    .name = "replay",
    .version = EGW_VERSION,
    .summary = "Answers from a recording instead of a node",
    .options = options,
    .instance_size = sizeof(struct replay),
    .configure = replay_configure,
    .unconfigure = replay_unconfigure,
  },
  .schemes = "replay",
  .link_size = sizeof(struct replay_link),
  .xchg_size = sizeof(struct replay_xchg),
  .open = replay_open,
  .close = replay_close,
  .submit = replay_submit,
  .abort = replay_abort,
  .more = replay_more,
};

EGW_REGISTER(replay_transport)
