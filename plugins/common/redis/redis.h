/* SPDX-License-Identifier: MIT */
/* A connection to a Redis or Valkey server (RESP2), on a worker's loop. Compiled into each
 * plugin that has use for it; nothing in here knows what the commands are for.
 *
 * The server is not trusted: it may be slow, dead, or lie. hiredis reads and writes the
 * protocol; the connection is libuv's. Its own asynchronous layer is not used: it ends the
 * process by assert() when a server sends what nobody asked for, takes replies of any size
 * into memory, and has one limit of time for everything.
 *
 * Commands are pipelined. A command that is not answered in time fails, and until its reply
 * is there no others are taken, since they would wait behind it: redis_ask() says NULL at
 * once. So a server that stalls costs those that were in flight then, and nobody else.
 * After five of them in a row, or when one is overdue by far, the connection is given up.
 * It is made again after 100 ms, twice as long after each failure up to 5 s, and is taken
 * for usable once a PING on it was answered in time.
 *
 * Worker's thread only. */
#ifndef COMMON_REDIS_H
#define COMMON_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ethrpc-gw/loop.h>

/* Where a server is. */
struct redis_address {
  char *host;                   /* NULL: a unix socket */
  char *path;                   /* of the unix socket */
  char *user, *password;        /* or NULL; the password is a secret */
  uint16_t port;
  uint32_t db;
};

/* Reads "redis://[[user]:password@]host[:port][/db]" or "unix:/path" into *out (made by
 * malloc(); free it also after a failure). NULL, or a constant reason that quotes nothing
 * of the text. Addresses that are not of this machine or of a private network are refused:
 * there is no TLS. Names are looked at when they are resolved. */
const char *redis_address_read(const char *text, struct redis_address *out) EGW_MUST_CHECK;
void redis_address_free(struct redis_address *address);

struct redis_options {
  const struct redis_address *address; /* borrowed for the client's life */
  const char *area;             /* of log lines: a literal */
  const char *what;             /* how they call this connection: a literal ("redis") */
  uint64_t timeout_ms;          /* of a command */
  size_t max_reply;             /* bytes of a reply; a longer one ends the connection */
  unsigned max_in_flight;       /* commands not yet answered */
  size_t max_unsent;            /* bytes waiting to be written */
  void (*ready)(void *arg);     /* it became usable; or NULL */
  void *ready_arg;
};

enum redis_kind {
  REDIS_FAILED,                 /* no answer: too late, or the connection is gone */
  REDIS_NIL,
  REDIS_INTEGER,
  REDIS_STRING,
  REDIS_STATUS,                 /* "OK" */
  REDIS_ERROR,                  /* "ERR ..." */
  REDIS_ARRAY
};

/* Borrowed: valid during the callback. */
struct redis_answer {
  enum redis_kind kind;
  int64_t integer;
  struct egw_slice text;        /* STRING, STATUS, ERROR */
  struct egw_buf *buf;          /* holds `text`: egw_buf_ref() it to keep the bytes */
  struct redis_answer *items;   /* ARRAY: at most 64 */
  size_t count;
};

typedef void redis_fn(void *arg, const struct redis_answer *answer);

struct redis_client;
struct redis_ask;

/* A client, which begins to connect. NULL: memory is short, or the worker has no libuv
 * loop. The options are copied. */
struct redis_client *redis_client_new(const struct redis_options *options,
                                      struct egw_worker *worker);

/* Ends it: commands in flight fail by their fn first. Not from within a fn. */
void redis_client_free(struct redis_client *client);

/* Whether a command would be taken now. */
bool redis_client_usable(const struct redis_client *client);

/* Why not, for people: "connecting", "not answered in time". */
const char *redis_client_why(const struct redis_client *client);

/* Sends a command of `n` arguments (copied). fn (or NULL) is called once, never from within
 * this call. NULL: it was not taken and fn is not called. The handle is valid until fn is
 * called. */
struct redis_ask *redis_ask(struct redis_client *client, const struct egw_slice *args,
                            unsigned n, redis_fn *fn, void *arg);

/* fn is not called; what the server does can't be undone. */
void redis_cancel(struct redis_ask *ask);

#endif
