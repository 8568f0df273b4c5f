/* SPDX-License-Identifier: MIT */
/* A host for one middleware plugin, for tests: the plugin is loaded and configured as the
 * gateway does it, and gets calls on one worker with a virtual clock. Above it is the test
 * (the client), below it a script of replies (the node).
 *
 *   struct plugtest *host = plugtest_new("cache.so", "memory = \"1MiB\";");
 *   struct plugtest_reply below[] = { { .result = "\"0x1\"", .delay_ms = 5 } };
 *   plugtest_script(host, below, 1);
 *   struct plugtest_call *call = plugtest_call(host, &(struct plugtest_spec){
 *     .method = "eth_chainId" });
 *   plugtest_advance(host, 10);
 *   plugtest_end(call)->body ...
 *   plugtest_free(host);
 *
 * Nothing here sleeps: time passes in plugtest_advance() only. Rules of middleware.h that the
 * plugin breaks (a call resumed twice, DONE without a reply, a timer while the call is not
 * held...) are printed as TAP comments and counted in plugtest_faults().
 *
 * The plugin finds the functions of the host in the test program, which must be linked with
 * --export-dynamic. One thread, except egw_post(). */
#ifndef T_LIB_PLUGTEST_H
#define T_LIB_PLUGTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ethrpc-gw/middleware.h>

struct plugtest;
struct plugtest_call;

/* --- the host ---------------------------------------------------------------------------- */

/* Loads the plugin (its path) and configures an instance by `options`: what would stand in its
 * group of the configuration ("" or NULL: nothing). Always returns a host; see
 * plugtest_refused(). A plugin that can't be loaded ends the test program. */
struct plugtest *plugtest_new(const char *so, const char *options);

/* The messages about the configuration ("" : none), one a line, without file and line. */
const char *plugtest_messages(const struct plugtest *host);

/* Whether the configuration was refused; such a host can only be freed. */
bool plugtest_refused(const struct plugtest *host);

/* Ends what is in flight (as the gateway's shutdown does), the worker and the instance.
 * Returns the number of broken rules, calls that never ended included. */
unsigned plugtest_free(struct plugtest *host);

/* Broken rules so far. */
unsigned plugtest_faults(const struct plugtest *host);

/* The plugin's descriptor. */
const struct egw_middleware *plugtest_plugin(const struct plugtest *host);

/* The value of a metric of the plugin's table, by name; -1: there is none. */
int64_t plugtest_metric(const struct plugtest *host, const char *name);

/* Whether a line with `text` was logged. */
bool plugtest_logged(const struct plugtest *host, const char *text);

/* --- the node ---------------------------------------------------------------------------- */

/* One reply of the script. Zero is a result of null, at once. */
struct plugtest_reply {
  const char *method;       /* only for this method; NULL: any */
  uint64_t delay_ms;
  bool never;               /* no reply comes */
  enum egw_outcome outcome; /* not EGW_OK: a fault */
  bool is_error;
  int64_t code;
  const char *message;      /* plain text of an error */
  const char *data;         /* raw JSON, or NULL */
  const char *result;       /* raw JSON; NULL: null */
  size_t big;               /* instead: a string of so many bytes */
  bool partial;             /* only the head of it is seen by the stage */
  const char *upstream;     /* NULL: "node" */
  bool cached;              /* as from a stage below: no upstream is named */
  uint32_t upstream_index;
  unsigned only_upstream;   /* 1 + index: for calls whose route says only that one; 0: any */
  const char *why;          /* of a fault */
  int http_status;
  uint32_t retry_after_ms;
};

/* What the node answers, in this order; the last one stays for all that comes later. Copied
 * (the strings are not). */
void plugtest_script(struct plugtest *host, const struct plugtest_reply *replies,
                     size_t count);

/* Calls that reached the node so far, and the method and params of call `index`. */
unsigned plugtest_reached(const struct plugtest *host);
const char *plugtest_reached_method(const struct plugtest *host, unsigned index);
const char *plugtest_reached_params(const struct plugtest *host, unsigned index);

/* With what wishes call `index` reached it; whether it may travel with others, and how. */
struct egw_route plugtest_reached_route(const struct plugtest *host, unsigned index);
bool plugtest_reached_batch(const struct plugtest *host, unsigned index, struct egw_batching *out);

/* --- the head and the upstreams ---------------------------------------------------------- */

/* The head changes (its version by itself): the plugin's head() is called. `blocks`: the canonical
 * hashes that are known, in any order. Without it: nothing is known. */
void plugtest_head(struct plugtest *host, const struct egw_head *head,
                   const struct egw_block *blocks, size_t count);

/* The upstreams of the network. Without it: one, called "node", that is up. */
void plugtest_upstreams(struct plugtest *host, const struct egw_upstream_info *infos,
                        unsigned count);

/* So many upstreams have the hosts that are not told of any, from now on: for plugtest_generic(). */
void plugtest_default_upstreams(unsigned count);

/* The highest block whose state upstream `index` was said to lack (egw_upstream_lacks()) plus 1; 0:
 * none. */
uint64_t plugtest_lacks(const struct plugtest *host, unsigned index);

/* --- calls ------------------------------------------------------------------------------- */

/* A client's call. Zero or NULL: the default in brackets. */
struct plugtest_spec {
  const char *method;       /* ["eth_chainId"] */
  size_t method_len;        /* when it holds NUL bytes [strlen] */
  const char *params;       /* ["[]"] */
  const char *id;           /* ["1"] */
  uint32_t kind;            /* [EGW_KIND_CALL] */
  const char *transport;    /* ["http"] */
  const char *peer;         /* ["127.0.0.1"] */
  const char *listener;     /* ["127.0.0.1:8645"] */
  bool remote;              /* [a local client] */
  uint64_t session;         /* [1] */
  const char *network;      /* ["test"] */
  uint64_t timeout_ms;      /* [30000] */
  const char *authorization, *api_key; /* headers [none] */
  const char *path_key;     /* [none] */
  int64_t uid;              /* 1 + the peer's uid [none] */
  bool explain;             /* the client wants the story [no] */
  const char *identity;     /* who it is, as a stage above found [none] */
};

/* How a call ended. Valid as long as the host. */
struct plugtest_end {
  bool over;                /* false: it is still in flight; the rest is not filled in */
  bool cancelled;
  bool timed_out;
  bool skipped;             /* the stage does not see this kind, or does not want the method */
  enum egw_outcome outcome;
  bool is_error, partial;
  int64_t code;
  const char *message;      /* decoded; "" when there is none */
  const char *body;         /* raw result or error object, NUL-terminated */
  size_t body_len;
  const char *upstream;     /* "" : the stage answered by itself */
  unsigned sent;            /* times it went below */
  int http_status;          /* as the stage set it, or 0 */
  const char *cache_status; /* or NULL */
  const char *story;        /* egw_explained() */
  const char *identity;     /* as it was given, or the stage set it; "": none */
  uint64_t took_ms;
};

/* Starts a call; nothing runs before plugtest_run(). Valid as long as the host. */
struct plugtest_call *plugtest_call(struct plugtest *host, const struct plugtest_spec *spec);

/* Starts one, runs it until nothing happens without time passing, gives its end. */
const struct plugtest_end *plugtest_ask(struct plugtest *host,
                                        const struct plugtest_spec *spec);

const struct plugtest_end *plugtest_end(const struct plugtest_call *call);

/* Whether the stage holds the call (EGW_WAIT), or the node has it. */
bool plugtest_held(const struct plugtest_call *call);
bool plugtest_below(const struct plugtest_call *call);

/* The client is gone. */
void plugtest_cancel(struct plugtest_call *call);

/* Frees a call that is over: for tests of very many. */
void plugtest_forget(struct plugtest_call *call);

/* Calls in flight. */
unsigned plugtest_live(const struct plugtest *host);

/* --- events ------------------------------------------------------------------------------ */

/* Shows an event to the plugin's notice(), on its way to a client like that of `spec` (its transport,
 * peer, listener, session, network). NULL: it was dropped; else its result, valid until the next. */
const char *plugtest_notice(struct plugtest *host, const char *kind, const char *result,
                            const struct plugtest_spec *spec);

/* --- time -------------------------------------------------------------------------------- */

/* Does what can be done without time passing. */
void plugtest_run(struct plugtest *host);

/* Lets time pass: timers, replies and deadlines in their order. */
void plugtest_advance(struct plugtest *host, uint64_t ms);

/* Waits (really) until another thread has used egw_post() and runs what it posted; false after
 * `most_ms`. */
bool plugtest_wait_post(struct plugtest *host, unsigned most_ms);

/* --- memory ------------------------------------------------------------------------------ */

/* The `n`th allocation of the plugin's callbacks from now on fails (egw_alloc(), and malloc()
 * and its kin unless this is a sanitizer's build); 0: none. */
void plugtest_fail_alloc(struct plugtest *host, unsigned n);

/* Whether that allocation has been asked for. */
bool plugtest_alloc_failed(const struct plugtest *host);

/* Blocks of malloc() in use by the program now; 0 in a sanitizer's build, which looks for
 * leaks by itself. */
long plugtest_blocks(void);

/* --- scenarios that every plugin must stand ---------------------------------------------- */

/* Runs them: results, errors and faults pass; the client leaves at each point; the deadline;
 * shutdown; big replies; many calls at once; the n-th allocation fails; no leaks. `spec` is a
 * call that the stage does something with. report() is called with each outcome. */
void plugtest_generic(const char *so, const char *options, const struct plugtest_spec *spec,
                      void (*report)(bool pass, const char *what));

#endif
