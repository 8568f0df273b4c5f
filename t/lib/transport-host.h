/* SPDX-License-Identifier: MIT */
/* A host for one transport plugin, for tests: loads the shared object, gives it a plain libuv
 * loop as its worker, links and exchanges, and remembers what it reports. It implements the
 * functions of transport.h, loop.h and plugin.h that transports call, so a test program must
 * export its symbols. Everything runs on the test's one thread, inside thost_run() and
 * thost_wait(). A broken rule of the contract (done twice, data after done, a link closed with
 * calls open...) is counted in thost_faults() and printed as a TAP comment.
 *
 *   struct thost *host = thost_new("http", options);       "name", "value", ..., NULL
 *   struct egw_link *link = thost_open(host, "http://127.0.0.1:1234/", NULL);
 *   struct thost_call call = { .idempotent = true };
 *   thost_submit(link, &call, "eth_chainId", "[]");
 *   thost_wait(host, &call, 5000);
 *   thost_call_free(&call);
 *   thost_free(host);
 */
#ifndef T_LIB_TRANSPORT_HOST_H
#define T_LIB_TRANSPORT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ethrpc-gw/transport.h>

struct thost;

/* One call of a test: one exchange. Zeroed by the test, which may set the first group before
 * thost_submit(). It must stay where it is until it is done or aborted. */
struct thost_call {
  bool fresh, idempotent;
  uint32_t time_left_ms;       /* 0: 10 s */
  size_t pause_every;          /* the reader is full after so many bytes, until thost_more() */
  size_t refuse_at;            /* the reply is of no use from this byte on */
  bool discard;                /* count the bytes only */
  struct egw_conn *wants;      /* must go out there */

  uint64_t id;                 /* the id in its envelope */
  struct egw_xchg *xchg;       /* NULL before thost_submit() and once it ended */
  bool done, aborted, paused, bound, sent;
  enum egw_outcome outcome;
  char why[160];               /* "" when none was given */
  int status;                  /* of egw_xchg_http(), 0: not called */
  uint32_t retry_after_ms;
  char *data;                  /* the reply (MULTIPLEX: its whole message), NUL-terminated */
  size_t len, room;
  size_t since_pause;
};

/* Makes a host with the plugin NAME (from $EGW_BUILD or the current directory's
 * plugins/transport/NAME/NAME.so, or NAME itself if it has a '/') configured by `options`:
 * pairs of name and value, ended by NULL; a list is given by repeating the name. NULL options:
 * none. NULL, with a TAP comment, when it can't be loaded or is refused by configure(); the
 * reason of the latter is in thost_refusal(). */
struct thost *thost_new(const char *name, const char *const *options);
const char *thost_refusal(void);

/* Closes the links, stops the worker, unloads. Returns the number of broken rules, handles
 * left open on the loop included. */
unsigned thost_free(struct thost *host);

unsigned thost_faults(const struct thost *host);

/* The loop, as uv_loop_t. */
struct uv_loop_s *thost_uv(struct thost *host);

/* The name `host` has these addresses (IP literals joined by spaces; "" : none, it does not
 * exist). Other names are resolved as usual. */
void thost_name(struct thost *host, const char *name, const char *addresses);
/* How often a transport asked egw_resolve(). */
unsigned thost_resolved(const struct thost *host);

/* Whether the log has a line with `text` at any level, and all of the log. */
bool thost_logged(const struct thost *host, const char *text);

/* Opens a link. Limits NULL: connect_timeout_ms 2000, max_reply 64 MiB. NULL when open()
 * failed. URLs: scheme://[user[:password]@]host[:port]/path, or scheme:path. */
struct egw_link *thost_open(struct thost *host, const char *url,
                            const struct egw_link_limits *limits);
/* Ends a link and waits for egw_link_closed(). */
void thost_close(struct egw_link *link);

bool thost_link_up(const struct egw_link *link);          /* the last egw_link_set() */
const char *thost_link_why(const struct egw_link *link);
unsigned thost_link_downs(const struct egw_link *link);   /* how often it was said to be down */
unsigned thost_link_ups(const struct egw_link *link);     /* how often it came up */
unsigned thost_link_conns(const struct egw_link *link);   /* connections there are now */
unsigned thost_link_conns_ever(const struct egw_link *link);
/* The connection a call is bound to, or NULL. */
struct egw_conn *thost_call_conn(const struct thost_call *call);

/* Messages that answer no call (pushes), in order, joined by newlines. */
const char *thost_pushed(const struct egw_link *link);

/* MULTIPLEX: egw_conn_data() says that a reader is full when the next bytes come on the
 * connection the call is bound to. thost_hold(link, false) lets go. */
void thost_hold_one(struct thost_call *call);

/* MULTIPLEX: while held, egw_conn_data() says that a reader is full. Letting go: more(). */
void thost_hold(struct egw_link *link, bool hold);

/* Makes the envelope, sets the call's `id` and submits. thost_submit_raw() sends `body` as it
 * is; the test sets `id` if the reply is to be matched. */
void thost_submit(struct egw_link *link, struct thost_call *call, const char *method,
                  const char *params);
void thost_submit_raw(struct egw_link *link, struct thost_call *call, const char *body,
                      size_t len);
void thost_abort(struct thost_call *call);
/* The reader has room again. */
void thost_more(struct thost_call *call);
void thost_call_free(struct thost_call *call);

/* Runs the loop until `until(arg)` is true (checked after every turn) or `ms` have passed. */
bool thost_run(struct thost *host, bool (*until)(void *arg), void *arg, unsigned ms);
/* Runs the loop until the call is done. Whether it is. */
bool thost_wait(struct thost *host, struct thost_call *call, unsigned ms);
/* One turn of the loop, waiting at most `ms` for something to happen. */
void thost_turn(struct thost *host, unsigned ms);

#endif
