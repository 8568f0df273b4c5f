/* SPDX-License-Identifier: MIT */
/* The client: when it connects, what is in flight, and when it gives a connection up. */
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <ethrpc-gw/plugin.h>
#include "base/list.h"
#include "parts.h"

#define CONNECT_MS 2000u        /* resolving and connecting */
#define GREETING_MS 1000u       /* AUTH and SELECT */
#define DELAY_MIN_MS 100u
#define DELAY_MAX_MS 5000u
#define LATE_MAX 5u             /* in a row: the connection is given up */
#define STALL_FACTOR 10u        /* times the time limit: likewise, for a single one */
#define STALL_MIN_MS 200u
#define PROVEN 32u              /* answers in time, after which a connection counts as good */

enum state {
  STATE_WAITING,                /* for the next attempt */
  STATE_RESOLVING,
  STATE_CONNECTING,
  STATE_GREETING,               /* AUTH, SELECT, PING */
  STATE_READY
};

struct redis_ask {
  struct list node;             /* in client->asks, in the order of sending */
  redis_fn *fn;                 /* NULL: nobody waits */
  void *arg;
  uint64_t due_ms;
  bool overdue;                 /* fn was told */
};

struct redis_client {
  struct redis_options options;
  struct egw_worker *worker;
  enum state state;
  struct redis_conn *conn;      /* CONNECTING and on */
  struct egw_resolve *resolve;  /* RESOLVING */
  struct egw_timer step;        /* the next attempt, or the limit of connecting */
  struct egw_timer expiry;      /* the first ask that is due */
  struct list asks;
  unsigned in_flight, late, good;
  unsigned turn;                /* which address is next */
  uint64_t delay_ms, random;
  const char *why;
  const char *refused;          /* GREETING: why it does not let us in, or NULL */
  bool ready;                   /* options.ready is to be told */
  bool told;                    /* the log has that it is not usable */
};

static void on_step(struct egw_timer *timer);
static void on_expiry(struct egw_timer *timer);

/* --- asks -------------------------------------------------------------------------------- */

static void
finish(struct redis_ask *ask, const struct redis_answer *answer)
{
  redis_fn *fn = ask->fn;

  ask->fn = NULL;
  if (fn != NULL)
    fn(ask->arg, answer);
}

static void
fail_all(struct redis_client *c)
{
  const struct redis_answer failed = { .kind = REDIS_FAILED };
  struct list all, *node;

  list_init(&all);
  list_splice(&all, &c->asks);
  c->in_flight = 0;
  while ((node = list_shift(&all)) != NULL) {
    struct redis_ask *ask = container_of(node, struct redis_ask, node);

    finish(ask, &failed);
    free(ask);
  }
}

static struct redis_ask *
first_ask(const struct redis_client *c)
{
  return list_empty(&c->asks) ? NULL : container_of(c->asks.next, struct redis_ask, node);
}

static uint64_t
stall_ms(const struct redis_client *c)
{
  uint64_t ms = c->options.timeout_ms * STALL_FACTOR;

  return ms < STALL_MIN_MS ? STALL_MIN_MS : ms;
}

/* Asks are due in the order of sending. */
static void
arm_expiry(struct redis_client *c)
{
  uint64_t now = egw_now_ms(c->worker), due = UINT64_MAX;
  struct list *node;

  list_for_each(node, &c->asks) {
    struct redis_ask *ask = container_of(node, struct redis_ask, node);

    if (!ask->overdue) {
      due = ask->due_ms < due ? ask->due_ms : due;
      break;
    }
    if (due == UINT64_MAX)
      due = ask->due_ms + stall_ms(c);
  }
  if (due == UINT64_MAX)
    egw_timer_stop(c->worker, &c->expiry);
  else
    egw_timer_start(c->worker, &c->expiry, due > now ? due - now : 0);
}

static struct redis_ask *
send_ask(struct redis_client *c, const struct egw_slice *args, unsigned n, uint64_t limit_ms,
         redis_fn *fn, void *arg)
{
  struct redis_ask *ask = calloc(1, sizeof(*ask));
  bool first = list_empty(&c->asks);

  if (ask == NULL || redis_conn_send(c->conn, args, n) < 0) {
    free(ask);
    return NULL;
  }
  ask->fn = fn;
  ask->arg = arg;
  ask->due_ms = egw_now_ms(c->worker) + limit_ms;
  list_append(&c->asks, &ask->node);
  c->in_flight++;
  if (first)
    arm_expiry(c);
  return ask;
}

/* --- connecting -------------------------------------------------------------------------- */

static void
schedule(struct redis_client *c)
{
  uint64_t ms = c->delay_ms;

  /* A quarter more or less, so that workers and gateways do not march in step. */
  c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
  ms = ms - ms / 4 + (c->random >> 33) % (ms / 2 + 1);
  c->delay_ms = c->delay_ms >= DELAY_MAX_MS / 2 ? DELAY_MAX_MS : c->delay_ms * 2;
  egw_timer_start(c->worker, &c->step, ms);
}

/* The first worker speaks for all, once until it is good again. */
static void
tell(struct redis_client *c, const char *why)
{
  if (!c->told)
    egw_log(egw_worker_index(c->worker) == 0 ? EGW_WARN : EGW_DEBUG, c->options.area,
            "%s: not usable: %s", c->options.what, why);
  c->told = true;
}

void
redis_client_lost(struct redis_client *c, const char *why)
{
  if (c->resolve != NULL)
    egw_resolve_cancel(c->resolve);
  c->resolve = NULL;
  if (c->conn != NULL)
    redis_conn_close(c->conn);
  c->conn = NULL;
  c->state = STATE_WAITING;
  c->why = why;
  tell(c, why);
  egw_timer_stop(c->worker, &c->expiry);
  schedule(c);
  fail_all(c);
}

static void
open_conn(struct redis_client *c, const struct sockaddr *sa)
{
  const char *why;

  c->state = STATE_CONNECTING;
  c->conn = redis_conn_open(c, egw_worker_uv(c->worker), sa, c->options.address->path,
                            c->options.max_reply, &why);
  if (c->conn == NULL)
    redis_client_lost(c, why);
}

static void
on_resolved(void *arg, const struct egw_address *addresses, size_t count, const char *why)
{
  struct redis_client *c = arg;
  struct sockaddr_storage sa = { 0 };
  const struct egw_address *one;

  c->resolve = NULL;
  if (count == 0) {
    redis_client_lost(c, why);
    return;
  }
  one = &addresses[c->turn++ % count];
  memcpy(&sa, one->bytes, one->len);
  if (!redis_address_near((const struct sockaddr *)&sa)) {
    redis_client_lost(c, "its address is neither this machine's nor private");
    return;
  }
  open_conn(c, (const struct sockaddr *)&sa);
}

static void
connect_now(struct redis_client *c)
{
  const struct redis_address *a = c->options.address;

  c->late = c->good = 0;
  c->refused = NULL;
  c->why = "connecting";
  egw_timer_start(c->worker, &c->step, CONNECT_MS);
  if (a->path != NULL) {
    open_conn(c, NULL);
    return;
  }
  c->state = STATE_RESOLVING;
  c->resolve = egw_resolve(c->worker, a->host, a->port, on_resolved, c);
  if (c->resolve == NULL)
    redis_client_lost(c, "memory is short");
}

static void
on_step(struct egw_timer *timer)
{
  struct redis_client *c = timer->arg;

  if (c->state == STATE_WAITING)
    connect_now(c);
  else if (c->state != STATE_READY)
    redis_client_lost(c, "it can't be reached in time");
}

/* --- greeting ---------------------------------------------------------------------------- */

static void
on_pong(void *arg, const struct redis_answer *answer)
{
  struct redis_client *c = arg;

  if (answer->kind == REDIS_FAILED)
    return; /* the connection is given up, or soon is */
  if (answer->kind == REDIS_ERROR) {
    c->refused = "it answers with errors (it loads its data, or wants a password)";
    return;
  }
  c->state = STATE_READY;
  c->why = "";
  egw_timer_stop(c->worker, &c->step);
  if (c->told)
    egw_log(egw_worker_index(c->worker) == 0 ? EGW_INFO : EGW_DEBUG, c->options.area,
            "%s: usable", c->options.what);
  c->told = false;
  c->ready = true;
}

/* AUTH or SELECT. A refused password is not tried again soon. */
static void
on_let_in(void *arg, const struct redis_answer *answer)
{
  struct redis_client *c = arg;

  if (answer->kind == REDIS_ERROR) {
    c->refused = "it refuses the password or the database";
    c->delay_ms = DELAY_MAX_MS;
  }
}

static int
send_auth(struct redis_client *c)
{
  const struct redis_address *a = c->options.address;
  struct egw_slice args[3] = { EGW_LIT("AUTH") };
  unsigned n = 1;

  if (a->password == NULL)
    return 0;
  if (a->user != NULL)
    args[n++] = (struct egw_slice){ a->user, strlen(a->user) };
  args[n++] = (struct egw_slice){ a->password, strlen(a->password) };
  return send_ask(c, args, n, GREETING_MS, on_let_in, c) == NULL ? -1 : 0;
}

static int
send_select(struct redis_client *c)
{
  struct egw_slice args[2] = { EGW_LIT("SELECT") };
  char db[12];

  if (c->options.address->db == 0)
    return 0;
  args[1].len = (size_t)snprintf(db, sizeof db, "%u", (unsigned)c->options.address->db);
  args[1].ptr = db;
  return send_ask(c, args, 2, GREETING_MS, on_let_in, c) == NULL ? -1 : 0;
}

/* Once it let us in, a PING measures how quick it is. */
static void
greet(struct redis_client *c)
{
  struct egw_slice ping = EGW_LIT("PING");

  if (c->refused != NULL)
    redis_client_lost(c, c->refused);
  else if (list_empty(&c->asks) &&
           send_ask(c, &ping, 1, c->options.timeout_ms, on_pong, c) == NULL)
    redis_client_lost(c, "memory is short");
}

void
redis_client_opened(struct redis_client *c)
{
  c->state = STATE_GREETING;
  if (send_auth(c) < 0 || send_select(c) < 0)
    c->refused = "memory is short";
  greet(c);
}

/* --- replies and time -------------------------------------------------------------------- */

void
redis_client_replied(struct redis_client *c, const struct redis_answer *answer)
{
  struct list *node = list_shift(&c->asks);
  struct redis_ask *ask;

  if (node == NULL) { /* the reader lets none through that is not expected */
    redis_client_lost(c, "it sends what nobody asked for");
    return;
  }
  ask = container_of(node, struct redis_ask, node);
  c->in_flight--;
  if (!ask->overdue) {
    c->late = 0;
    if (c->state == STATE_READY && ++c->good == PROVEN)
      c->delay_ms = DELAY_MIN_MS;
  }
  finish(ask, answer);
  free(ask);
  arm_expiry(c);
  if (c->state == STATE_GREETING)
    greet(c);
  if (c->ready && c->options.ready != NULL) {
    c->ready = false;
    c->options.ready(c->options.ready_arg);
  }
}

static void
on_expiry(struct egw_timer *timer)
{
  const struct redis_answer failed = { .kind = REDIS_FAILED };
  struct redis_client *c = timer->arg;
  uint64_t now = egw_now_ms(c->worker);
  struct redis_ask *ask;
  struct list *node;

  list_for_each(node, &c->asks) {
    ask = container_of(node, struct redis_ask, node);
    if (ask->overdue)
      continue;
    if (ask->due_ms > now)
      break;
    ask->overdue = true;
    c->late++;
    finish(ask, &failed);
  }
  ask = first_ask(c);
  if (ask != NULL && ask->overdue &&
      (c->late >= LATE_MAX || c->state != STATE_READY || now >= ask->due_ms + stall_ms(c)))
    redis_client_lost(c, "it does not answer in time");
  else
    arm_expiry(c);
}

/* --- the face ---------------------------------------------------------------------------- */

bool
redis_client_usable(const struct redis_client *c)
{
  const struct redis_ask *first = first_ask(c);

  return c->state == STATE_READY && c->in_flight < c->options.max_in_flight &&
         (first == NULL || !first->overdue) &&
         redis_conn_unsent(c->conn) <= c->options.max_unsent;
}

const char *
redis_client_why(const struct redis_client *c)
{
  return c->why;
}

struct redis_ask *
redis_ask(struct redis_client *c, const struct egw_slice *args, unsigned n, redis_fn *fn,
          void *arg)
{
  return redis_client_usable(c) ? send_ask(c, args, n, c->options.timeout_ms, fn, arg) : NULL;
}

void
redis_cancel(struct redis_ask *ask)
{
  ask->fn = NULL;
}

struct redis_client *
redis_client_new(const struct redis_options *options, struct egw_worker *worker)
{
  struct redis_client *c;

  if (egw_worker_uv(worker) == NULL)
    return NULL;
  c = calloc(1, sizeof(*c));
  if (c == NULL)
    return NULL;
  c->options = *options;
  c->worker = worker;
  c->delay_ms = DELAY_MIN_MS;
  list_init(&c->asks);
  c->step.fn = on_step;
  c->step.arg = c;
  c->expiry.fn = on_expiry;
  c->expiry.arg = c;
  c->why = "connecting";
  if (getrandom(&c->random, sizeof c->random, 0) != (ssize_t)sizeof c->random)
    c->random = (uint64_t)(uintptr_t)c;
  egw_timer_start(worker, &c->step, 0); /* it may report at once */
  return c;
}

void
redis_client_free(struct redis_client *c)
{
  if (c == NULL)
    return;
  if (c->resolve != NULL)
    egw_resolve_cancel(c->resolve);
  if (c->conn != NULL)
    redis_conn_close(c->conn);
  c->conn = NULL;
  c->state = STATE_WAITING;
  egw_timer_stop(c->worker, &c->step);
  egw_timer_stop(c->worker, &c->expiry);
  fail_all(c);
  free(c);
}
