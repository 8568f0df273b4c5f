/* SPDX-License-Identifier: MIT */
/* Transport http: reaches a node by HTTP/1.1 POST requests, through libcurl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ethrpc-gw/version.h>
#include "http.h"

#define IDLE_MAX INT64_C(86400000)

#define FIELD(name) offsetof(struct http, name)

static const struct egw_option options[] = {
  { .name = "max_connections", .type = EGW_OPT_INT, .offset = FIELD(max_connections),
    .fallback = "64", .min = 1, .max = 10000,
    .help = "Requests in flight to the node, of all workers together; more wait in line" },
  { .name = "idle_timeout", .type = EGW_OPT_DURATION, .offset = FIELD(idle_timeout),
    .fallback = "15s", .min = 1000, .max = IDLE_MAX,
    .help = "Age from which an idle connection is not used again; below the node's own" },
  { .name = "stall_timeout", .type = EGW_OPT_DURATION, .offset = FIELD(stall_timeout),
    .fallback = "30s", .min = 1000, .max = IDLE_MAX,
    .help = "Ends an exchange whose reply began and then brought nothing for so long" },
  AUTH_OPTIONS(http, auth),
  { .name = "user_agent", .type = EGW_OPT_STRING, .offset = FIELD(user_agent),
    .fallback = "ethrpc-gw/" EGW_VERSION, .help = "Value of the header User-Agent" },
  { .name = "ca_file", .type = EGW_OPT_STRING, .offset = FIELD(ca_file),
    .help = "PEM file with the authorities to trust instead of the system's" },
  { .name = "insecure_skip_verify", .type = EGW_OPT_BOOL,
    .offset = FIELD(insecure_skip_verify), .fallback = "false",
    .help = "Accept any certificate; for tests only" },
  EGW_OPTION_END
};

/* --- the instance --------------------------------------------------------------------- */

static int
http_configure(void *self, struct egw_conf *section)
{
  struct http *http = self;

  /* libcurl would write TLS keys to the file that it names. */
  if (getenv("SSLKEYLOGFILE") != NULL)
    unsetenv("SSLKEYLOGFILE");
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return egw_conf_error(section, NULL, "libcurl can't be initialised");
  http->curl_ready = true;
  if (http->ca_file != NULL && http->insecure_skip_verify)
    egw_conf_warn(section, "ca_file", "has no effect with insecure_skip_verify");
  if (http->ca_file != NULL && access(http->ca_file, R_OK) != 0)
    return egw_conf_error(section, "ca_file", "can't be read: %s", strerrordesc_np(errno));
  return headers_configure(http, section);
}

static void
http_unconfigure(void *self)
{
  struct http *http = self;

  explicit_bzero(http->auth.jwt_key, sizeof http->auth.jwt_key);
  if (http->curl_ready)
    curl_global_cleanup();
}

static int
http_worker_start(const void *self, void *mine_mem, struct egw_worker *worker)
{
  struct http_mine *mine = mine_mem;

  (void)self;
  mine->hub = hub_new(worker);
  return mine->hub == NULL ? -1 : 0;
}

static void
http_worker_stop(const void *self, void *mine_mem, struct egw_worker *worker)
{
  struct http_mine *mine = mine_mem;

  (void)self;
  (void)worker;
  if (mine->hub != NULL)
    hub_stop(mine->hub);
  mine->hub = NULL;
}

/* --- links ---------------------------------------------------------------------------- */

static char *
make_url(const struct egw_url *url)
{
  bool v6 = strchr(url->host, ':') != NULL;
  char *text = NULL;

  if (asprintf(&text, "%s://%s%s%s:%u%s", url->tls ? "https" : "http", v6 ? "[" : "",
               url->host, v6 ? "]" : "", (unsigned)url->port, url->path) < 0)
    return NULL;
  return text;
}

static CURLU *
parse_url(const char *url)
{
  CURLU *parsed = curl_url();

  if (parsed != NULL
      && curl_url_set(parsed, CURLUPART_URL, url, CURLU_PATH_AS_IS) == CURLUE_OK)
    return parsed;
  curl_url_cleanup(parsed);
  return NULL;
}

static bool
is_loopback(const char *host)
{
  return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0
         || strcmp(host, "::1") == 0;
}

/* Once, not for each worker. */
static void
warn_of_risks(const struct http_link *l)
{
  const struct egw_url *url = egw_link_url(l->link);

  if (egw_worker_index(l->hub->worker) != 0)
    return;
  if (url->tls && l->http->insecure_skip_verify)
    egw_log(EGW_WARN, "http", "%s: insecure_skip_verify: its certificate is not checked",
            egw_link_name(l->link));
  if (!url->tls && auth_is_secret(&l->http->auth, url) && !is_loopback(url->host))
    egw_log(EGW_WARN, "http", "%s: credentials are sent over plain http",
            egw_link_name(l->link));
}

/* This worker's share of the upstream's places. */
static unsigned
share_of(const struct http *http, const struct egw_worker *worker)
{
  unsigned all = (unsigned)http->max_connections, workers = egw_worker_count(worker);
  unsigned share = all / workers + (egw_worker_index(worker) < all % workers ? 1 : 0);

  return share == 0 ? 1 : share;
}

static void
free_link(struct http_link *l)
{
  pool_close(l);
  names_close(l);
  http_list_unref(l->headers);
  l->headers = NULL;
  if (l->url != NULL)
    explicit_bzero(l->url, strlen(l->url));
  free(l->url);
  l->url = NULL;
  curl_url_cleanup(l->parsed);
  l->parsed = NULL;
  list_remove(&l->node);
}

static int
http_open(struct egw_link *link)
{
  struct http_link *l = egw_link_state(link);
  struct http_mine *mine = egw_link_mine(link);

  l->link = link;
  l->http = egw_link_self(link);
  l->hub = mine->hub;
  l->cap = share_of(l->http, l->hub->worker);
  list_init(&l->waiting);
  list_init(&l->running);
  list_init(&l->idle);
  list_append(&l->hub->links, &l->node);
  l->url = make_url(egw_link_url(link));
  if (l->url == NULL || headers_refresh(l) != 0 || names_open(l) != 0) {
    egw_log(EGW_ERROR, "http", "%s: memory is short", egw_link_name(link));
    free_link(l);
    return -1;
  }
  l->parsed = parse_url(l->url);
  curl_multi_setopt(l->hub->multi, CURLMOPT_MAXCONNECTS, (long)l->cap);
  warn_of_risks(l);
  return 0;
}

static void
http_close(struct egw_link *link)
{
  free_link(egw_link_state(link));
  egw_link_closed(link);
}

/* --- exchanges ------------------------------------------------------------------------ */

static void
http_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  struct http_link *l = egw_link_state(link);
  struct http_xchg *x = egw_xchg_state(xchg);

  x->xchg = xchg;
  x->job = NULL;
  list_append(&l->waiting, &x->node);
  if (l->hub->busy)
    l->pump_wanted = true;
  else
    pool_pump(l);
}

static void
http_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  struct http_xchg *x = egw_xchg_state(xchg);

  (void)link;
  if (x->job != NULL)
    pool_abort(x->job);
  else
    list_remove(&x->node);
}

static void
http_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  struct http_link *l = egw_link_state(link);
  struct http_xchg *x = egw_xchg_state(xchg);

  (void)conn;
  if (x->job == NULL)
    return;
  x->job->resume = true;
  hub_later(l->hub, x->job);
}

static const struct egw_transport http_transport = {
  .plugin = {
    EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT),
    .name = "http",
    .version = EGW_VERSION,
    .summary = "Reaches nodes by HTTP and HTTPS",
    .options = options,
    .instance_size = sizeof(struct http),
    .worker_size = sizeof(struct http_mine),
    .configure = http_configure,
    .unconfigure = http_unconfigure,
    .worker_start = http_worker_start,
    .worker_stop = http_worker_stop,
  },
  .schemes = "http https",
  .caps = EGW_T_BATCH,
  .link_size = sizeof(struct http_link),
  .xchg_size = sizeof(struct http_xchg),
  .open = http_open,
  .close = http_close,
  .submit = http_submit,
  .abort = http_abort,
  .more = http_more,
};

EGW_REGISTER(http_transport)
