/* SPDX-License-Identifier: MIT */
/* The parts of bench/load:
 *
 *   load.c           options, and what is reported
 *   load-request.c   what is asked: bytes ready for the wire, in turn or by Zipf rank
 *   load-reply.c     where replies end, and what little is looked at in them
 *   load-conn.c      connections: dialled, written, read, dialled again when lost
 *   load-run.c       when what is asked: closed and open loop
 *   load-hist.c      latencies, in bounded memory
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_LEN 16u          /* digits of an id that is put in */
#define PIPELINE_MAX 1000u  /* what the last three of them tell: its place among a connection's */
#define CODES_MAX 32u

enum kind { HTTP, WS, IPC };

struct options {
  enum kind kind;
  const char *where;        /* a port or a path */
  const char *body, *file, *template_text;
  const char *target;       /* HTTP: what is asked for */
  double zipf;              /* 0: in turn */
  bool distinct, fixed, old_form;
  double rate;              /* calls a second; 0: closed loop */
  unsigned long connections, pipeline, calls;
  double seconds, warmup, drain;
  uint64_t seed;
};

extern struct options options;

/* --- load.c --------------------------------------------------------------------------------- */

_Noreturn void die(const char *what);
_Noreturn void fail(const char *what);
uint64_t now_ns(void);
uint64_t random_next(uint64_t *state);
double random_unit(uint64_t *state);    /* in (0, 1] */

/* --- load-hist.c ---------------------------------------------------------------------------- */

void hist_add(uint64_t ns);
uint64_t hist_count(void);
double hist_us(double share);           /* the latency that this share of the calls stays below */
double hist_max_us(void);
void hist_clear(void);

/* --- load-request.c ------------------------------------------------------------------------- */

void requests_open(void);
/* Whether ids are put in: then replies can be told from each other. */
bool requests_have_ids(void);
/* The next request on the wire, good until the next call. */
const char *request_next(uint64_t id, size_t *len);

/* --- load-reply.c --------------------------------------------------------------------------- */

#define FIRST_MAX 256u
#define LAST_MAX 96u
#define HEAD_MAX 4096u

enum body { BODY_LENGTH, BODY_CHUNKED, BODY_TO_END };

struct reply {
  bool started, last;       /* in its bytes; WS: no further frame of it */
  bool closes, bad;         /* HTTP: the connection ends with it; not understood */
  bool trailer;             /* chunked: the last chunk is through */
  enum body body;
  int status, opcode;
  uint64_t left, bytes;
  char head[HEAD_MAX];      /* of HTTP or of a frame or chunk, as far as it is here */
  size_t head_len;
  char first[FIRST_MAX + 1], tail[LAST_MAX + 1];
  size_t first_len, tail_len;
};

void reply_begin(struct reply *reply);
/* Takes bytes of `data` up to the end of the reply; *whole tells whether it came. */
size_t reply_take(struct reply *reply, const char *data, size_t len, bool *whole);
/* How many of the bytes that come next nobody needs to see; that they are gone. */
size_t reply_skippable(const struct reply *reply);
void reply_skip(struct reply *reply, size_t n);
/* The number behind "id":, or 0. */
uint64_t reply_id(struct reply *reply);
/* Whether it is an error, and its code. */
bool reply_error(struct reply *reply, long *code);

/* --- load-conn.c ---------------------------------------------------------------------------- */

enum state { LOST, CONNECTING, UPGRADING, READY };

struct slot {
  uint64_t due, id;         /* id 0: free */
};

struct conn {
  int fd;
  enum state state;
  bool asked_out;
  struct slot *slots;       /* options.pipeline of them */
  unsigned int busy;
  char *out;                /* what could not be sent yet */
  size_t out_len, out_at, out_cap;
  struct reply reply;
  uint64_t retry_at;
  struct conn *next, *prev; /* in the list of the free, or of the lost */
};

void conns_open(void);
/* Waits at most so long for events, and serves them. */
void conns_serve(uint64_t wait_ns);
/* A connection that has room for one more call; NULL when none has. */
struct conn *conn_free(void);
void conn_ask(struct conn *conn, uint64_t due);
unsigned long conns_ready(void);
/* fn(due) for each call that is asked and not answered. */
void conns_each_asked(void (*fn)(uint64_t due));

/* --- load-run.c ----------------------------------------------------------------------------- */

struct counts {
  uint64_t calls, in_time, bytes;   /* answered; of them before the end */
  uint64_t transport_errors;        /* calls whose connection was lost, or that none understands */
  uint64_t lost, refused;           /* connections that ended; that were not to be had */
  uint64_t strays;                  /* replies with an id that nobody waits for */
  uint64_t unsent, unanswered;      /* at the end */
  struct { long code; uint64_t count; } errors[CODES_MAX], statuses[CODES_MAX];
  uint64_t window_ns;
  double busy;                      /* share of the time that this program used a processor */
};

extern struct counts counts;

void run(void);
/* Asks what is due, on connections that are free. */
void run_ask(void);
/* Called by connections. */
void run_answered(uint64_t due, uint64_t now, struct reply *reply);
void run_failed(uint64_t due);
void run_event(uint64_t *counter);  /* counts it unless it is warm-up */

#endif
