/* SPDX-License-Identifier: MIT */
/* The configuration: ethrpc-gw.conf (libconfig) or the command line into typed, immutable
 * structs. Unknown keys, wrong types and values out of range are errors "file:line: ...", all
 * of them collected. Sizes and durations are strings with a unit, since libconfig 1.5 turns
 * large integers into small ones silently; a bare integer is refused for those.
 *
 * conf_load()/conf_from_args() -> the caller loads plugins and reads their sections by
 * egw_conf_read() -> conf_check_unknown() -> conf_free() at the end of the generation.
 * Main thread only. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <ethrpc-gw/plugin.h>

/* Limits of a listener; defaults in conf.c. */
struct conf_limits {
  uint64_t max_connections;         /* of this listener, all workers together */
  uint64_t max_connections_per_client;
  uint64_t max_request;             /* bytes of one message */
  int64_t max_batch_items;
  uint64_t max_batch_reply;         /* bytes of one batch's answer */
  uint64_t max_reply;               /* bytes of one answer to a client */
  uint64_t max_queue;               /* bytes of output waiting in one session */
  int64_t max_in_flight;            /* calls in flight of one session */
  int64_t max_subscriptions;        /* of one session */
  uint64_t head_timeout, body_timeout, handshake_timeout, idle_timeout, write_timeout;
  uint64_t ping_interval;           /* WebSocket; 0: none */
};

/* Who may have a call's story. */
enum conf_explain { EXPLAIN_LOCAL, EXPLAIN_ALL, EXPLAIN_NONE };

struct conf_listener {
  const char *name;                 /* default: "address:port" or the path; "admin" */
  const char *address;              /* IP literal; NULL for a unix socket */
  int64_t port;                     /* 0: chosen by the kernel (printed at start) */
  const char *path;                 /* unix socket */
  const char *mode;                 /* unix socket: octal text, default "0600" */
  const char *group;                /* unix socket: group name or NULL */
  struct egw_strings uids; /* unix socket: allowed peers, by name or number; empty: own
                              uid and root, "*": all the mode lets in */
  const char *tls_certificate, *tls_key;
  struct egw_strings hosts;         /* further allowed Host names; "*": any */
  struct egw_strings origins;       /* allowed Origins; "*": any */
  bool http, websocket;             /* what is served on a TCP listener */
  bool key_in_path;                 /* the path may end in a client's key */
  struct egw_strings trusted_proxies; /* addresses and networks */
  int explain;                      /* enum conf_explain */
  struct conf_limits limits;
};

struct conf_upstream {
  const char *name;
  const char *ws;                   /* secret; read only: it becomes an upstream of its own */
  const char *url;                  /* secret; NULL after an error */
  int64_t tier;                     /* lower ones first */
  uint64_t connect_timeout, timeout; /* ms; timeout: one attempt, 0: the network's */
  uint64_t max_reply;
  int64_t max_batch;                /* calls of an array sent there; 0, 1: no arrays */
  uint64_t max_batch_bytes;         /* and its bytes */
  struct egw_conf *section;         /* for the transport's own options */
};

struct conf_stage {
  const char *use;                  /* plugin; NULL after an error */
  const char *name;                 /* instance; default: the plugin's name */
  struct egw_conf *section;
};

/* Who keeps subscriptions and filters. */
enum conf_push { PUSH_SERVED, PUSH_PASSED };

struct conf_network {
  const char *name;
  int64_t chain_id;                 /* 0: not given */
  uint64_t timeout;                 /* ms: a call's deadline */
  uint64_t attempt_timeout;         /* ms: one upstream attempt */
  uint64_t stream_threshold;        /* replies longer than this are streamed */
  int subscriptions;                /* enum conf_push */
  int64_t max_subscriptions;        /* served subscriptions and filters of all clients together */
  uint64_t poll_interval;           /* ms: how often a node that does not push is asked for its head */
  struct conf_upstream *upstreams;
  size_t upstream_count;
  struct conf_stage *stages;
  size_t stage_count;
};

struct conf {
  int64_t workers;                  /* 0: one for each processor, at most 8 */
  const char *log_file;             /* NULL: stderr */
  int log_level, log_format;        /* enum egw_level, enum log_format */
  const char *plugin_path;          /* directories joined by ':'; NULL: built-in */
  uint64_t memory;                  /* byte budget of buffers */
  uint64_t drain_timeout;           /* ms */
  struct conf_listener *listeners;
  size_t listener_count;
  bool has_admin;
  struct conf_listener admin;
  struct conf_network *networks;
  size_t network_count;
  struct conf_file *file; /* private: libconfig's tree, the error list, the strings */
};

/* Number of errors collected so far. */
size_t conf_errors(const struct conf *conf);

/* Prints errors and warnings in order of their lines: call it even when there is no error. */
void conf_print_errors(const struct conf *conf, int fd);

/* Reads and checks a file. Always returns a conf to ask for errors (NULL: no memory). */
struct conf *conf_load(const char *path);

/* From --upstream and --listen arguments ("127.0.0.1:8645", "[::1]:8645", ":8645", "8645",
 * "/run/x.ipc", "unix:/run/x.ipc"); no listen argument: 127.0.0.1:8645. The chain is the
 * default one (methods). Upstream URLs without names get url_default_name(), made unique. */
struct conf *conf_from_args(const char *const *upstreams, size_t upstream_count,
                            const char *const *listens, size_t listen_count,
                            const char *admin);

/* Reports every key of the file that nobody has read. Call it after all plugins configured. */
void conf_check_unknown(struct conf *conf);

/* Reports an error without a line ("file: ..."). */
void conf_error(struct conf *conf, const char *fmt, ...) EGW_PRINTF(2, 3);

/* Prints the configuration in effect (defaults filled in, options of plugins included; of
 * upstream URLs the scheme and "***", secrets as "***" or left out) in the file's own syntax,
 * such that it parses again. `options_of` gives the option table of a plugin by kind
 * ("middleware", "transport") and name or scheme; NULL: unknown. */
int conf_dump(const struct conf *conf, int fd,
              const struct egw_option *(*options_of)(void *arg, const char *kind,
                                                     const char *name),
              void *arg);

void conf_free(struct conf *conf);

/* The parsers of option texts, also for the command line. 0, or -1. */
int conf_parse_size(const char *text, uint64_t *bytes);
int conf_parse_duration(const char *text, uint64_t *ms);
int conf_parse_ratio(const char *text, double *out);

/* Secrets that conf_read() met (EGW_OPT_SECRET, upstream URLs' user info, path and query) are
 * registered by log_secret(). */

/* The core's own option tables, for the manual test: name of the section and its table. */
struct conf_table {
  const char *section;
  const struct egw_option *options;
};
const struct conf_table *conf_tables(size_t *count);

#endif
