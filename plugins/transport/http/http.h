/* SPDX-License-Identifier: MIT */
/* Inside of the http transport: what its files share.
 *
 *   http.c          descriptor, options, links, the callbacks of the transport
 *   http-pool.c     a link's queue and its easy handles: from submit() to done
 *   http-easy.c     one easy handle: settings, the write callback, how an exchange ended
 *   http-loop.c     libcurl's multi handle on the worker's loop
 *   http-names.c    the addresses of a link's host
 *   http-headers.c  the request's headers, tokens included
 *
 * Per worker and instance there is one hub (a multi handle), per link a queue and a pool of
 * easy handles. An exchange waits in the queue until the link has an address and a free place,
 * then it gets a job: an easy handle with what it needs. Nothing is added to or removed from
 * the multi handle within libcurl's callbacks: pool_catch_up() does that afterwards. */
#ifndef PLUGINS_TRANSPORT_HTTP_H
#define PLUGINS_TRANSPORT_HTTP_H

#include <curl/curl.h>
#include <uv.h>
#include <ethrpc-gw/transport.h>
#include "../common/auth.h"
#include "base/list.h"

/* An instance: the options of one upstream. Constant once workers run. */
struct http {
  int64_t max_connections;
  uint64_t idle_timeout, stall_timeout; /* ms */
  const char *ca_file;
  bool insecure_skip_verify;
  const char *user_agent;
  struct auth auth;
  bool curl_ready;
};

/* A list of strings for libcurl, which keeps pointers to it. Counted; one worker. */
struct http_list {
  unsigned refs;
  struct curl_slist *items;
};

/* A socket of libcurl's that the loop watches. It stays watched while its connection is idle,
 * to spare the system calls; closing the socket ends it. */
struct http_sock {
  uv_poll_t poll;
  struct http_hub *hub;
  int fd;
  int want;                      /* CURL_POLL_*: what libcurl asked for; 0: idle */
  int watched;                   /* UV_READABLE | UV_WRITABLE: what the loop watches */
};

/* One multi handle on the loop. It outlives worker_stop() until its handles are closed. */
struct http_hub {
  CURLM *multi;
  CURLSH *share;                 /* TLS sessions */
  struct egw_worker *worker;
  uv_timer_t timer;
  uv_prepare_t prepare;
  unsigned handles;              /* of the two that are not closed yet */
  struct http_sock **socks;      /* by descriptor */
  size_t sock_room;
  bool busy;                     /* libcurl may be in one of our callbacks */
  bool due;                      /* libcurl wants to run now */
  bool woken;                    /* we want it to */
  struct list later;             /* jobs that wait for pool_catch_up() */
  struct list links;
};

/* The instance on a worker. */
struct http_mine {
  struct http_hub *hub;
};

enum http_names_state {
  NAMES_NONE,                    /* nothing known */
  NAMES_LITERAL,                 /* the host is an address */
  NAMES_KNOWN
};

struct http_names {
  enum http_names_state state;
  struct egw_resolve *query;     /* being asked, or NULL */
  uint64_t asked_ms;             /* when the last answer came */
  bool failed;                   /* and it was none */
  struct http_list *list;        /* for CURLOPT_RESOLVE; NULL unless KNOWN */
};

struct http_link {
  struct list node;              /* in hub->links */
  struct egw_link *link;
  const struct http *http;
  struct http_hub *hub;
  char *url;                     /* secret */
  CURLU *parsed;                 /* the same, taken apart once and not for each request;
                                    NULL: it can't be */
  struct http_names names;
  struct http_list *headers;     /* secret */
  uint64_t jwt_made_ms;
  struct list waiting;           /* http_xchg */
  struct list running, idle;     /* http_job */
  unsigned running_count, idle_count, cap;
  struct egw_timer stall_timer;
  bool stall_armed, pump_wanted;
};

enum http_job_state {
  JOB_IDLE,                      /* in link->idle */
  JOB_RUNNING,                   /* in link->running, its easy handle in the multi */
  JOB_DOOMED                     /* given up within a callback, to be taken out */
};

struct http_job {
  struct list node;              /* in link->idle or link->running */
  struct list later;             /* in hub->later */
  enum http_job_state state;
  struct http_link *owner;
  CURL *easy;
  struct egw_xchg *xchg;         /* NULL: idle or given up */
  struct egw_buf *body;
  struct http_list *headers, *names; /* what the easy handle points to */
  uint64_t heard_ms;             /* last piece of the reply, 0: none yet */
  size_t skip;                   /* bytes that libcurl will give again after a pause */
  bool paused, resume, refused, told, fresh, retried;
};

/* An exchange's state. */
struct http_xchg {
  struct list node;              /* in link->waiting, while it has no job */
  struct egw_xchg *xchg;
  struct http_job *job;
};

/* --- http-loop.c ---------------------------------------------------------------------- */

/* NULL, with the reason logged. */
struct http_hub *hub_new(struct egw_worker *worker);
/* The links are gone. Frees itself when the loop has closed its handles. */
void hub_stop(struct http_hub *hub);
/* Leaves a job to pool_catch_up(), outside of libcurl's callbacks, before the loop sleeps. */
void hub_later(struct http_hub *hub, struct http_job *job);
/* Goes round before the loop sleeps, whether libcurl wants it or not. */
void hub_wake(struct http_hub *hub);
/* For CURLOPT_OPENSOCKETFUNCTION and CURLOPT_CLOSESOCKETFUNCTION; `arg` is the hub. */
curl_socket_t hub_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address);
int hub_close_socket(void *arg, curl_socket_t fd);

/* --- http-pool.c ---------------------------------------------------------------------- */

/* Starts what waits, as far as there are places and addresses. */
void pool_pump(struct http_link *l);
/* Ends everything that waits, with the reason. */
void pool_fail_waiting(struct http_link *l, enum egw_outcome outcome, const char *why);
/* libcurl is done with the job. */
void pool_ended(struct http_job *job, CURLcode code);
/* The core took the exchange back. */
void pool_abort(struct http_job *job);
/* Takes a doomed job out of the multi handle, or resumes a paused one. */
void pool_catch_up(struct http_job *job);
/* Ends all exchanges (EGW_ABORTED) and frees the easy handles. */
void pool_close(struct http_link *l);

/* --- http-easy.c ---------------------------------------------------------------------- */

/* A job with an easy handle of its own that has the link's settings, or NULL. */
struct http_job *easy_new(struct http_link *l);
void easy_free(struct http_job *job);
/* Sets what differs between exchanges. 0, or -1 when memory is short. */
int easy_prepare(struct http_job *job, struct egw_xchg *xchg);
/* Drops what belongs to the exchange. */
void easy_clear(struct http_job *job);
/* Tells the core status and Retry-After, once. */
void easy_tell(struct http_job *job);
/* Whether the exchange may be sent anew: a kept connection proved dead before any answer. */
bool easy_may_retry(const struct http_job *job, CURLcode code);
/* How the exchange ended, and a reason without any part of the URL. */
enum egw_outcome easy_outcome(const struct http_job *job, CURLcode code, const char **why);

/* --- http-names.c --------------------------------------------------------------------- */

int names_open(struct http_link *l);
/* Whether exchanges can start; if not, a query is under way that ends in pool_pump() or
 * pool_fail_waiting(). */
bool names_ready(struct http_link *l);
void names_close(struct http_link *l);

/* --- http-headers.c ------------------------------------------------------------------- */

/* Checks the options; main thread. 0 or -1. */
int headers_configure(struct http *http, struct egw_conf *section);
/* Makes the headers of the link, or makes them anew when the token is old. 0 or -1. */
int headers_refresh(struct http_link *l);

struct http_list *http_list_new(void);
/* Appends a copy. 0 or -1. */
int http_list_add(struct http_list *list, const char *text);
struct http_list *http_list_ref(struct http_list *list);
void http_list_unref(struct http_list *list);

#endif
