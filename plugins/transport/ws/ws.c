/* SPDX-License-Identifier: MIT */
/* Transport ws: JSON-RPC over WebSocket, one text message a request, by libwebsockets. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/version.h>
#include "ws.h"

static const struct egw_option options[] = {
  POOL_OPTIONS(ws, pool),
  { .name = "ping_interval", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct ws, ping_interval), .fallback = "10s", .min = 0, .max = 86400000,
    .help = "A ping is sent when nothing came for so long; 0: never" },
  { .name = "pong_timeout", .type = EGW_OPT_DURATION,
    .offset = offsetof(struct ws, pong_timeout), .fallback = "5s", .min = 1, .max = 86400000,
    .help = "The connection is given up when nothing comes for so long after a ping" },
  AUTH_OPTIONS(ws, auth),
  { .name = "ca_file", .type = EGW_OPT_STRING, .offset = offsetof(struct ws, ca_file),
    .help = "PEM file with the authorities to trust instead of the system's" },
  { .name = "insecure_skip_verify", .type = EGW_OPT_BOOL,
    .offset = offsetof(struct ws, insecure_skip_verify), .fallback = "false",
    .help = "Accept any certificate; for tests only" },
  EGW_OPTION_END
};

/* --- the instance ----------------------------------------------------------------------- */

static int
ws_configure(void *self, struct egw_conf *section)
{
  static const char *const reserved[] = {
    "Host", "Connection", "Upgrade", "Content-Length", "Transfer-Encoding", "TE", "Trailer",
    "Expect", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol",
    "Sec-WebSocket-Extensions", NULL
  };
  struct ws *ws = self;
  int status = auth_configure(&ws->auth, section, reserved);
  char why[128];

  hub_route_log();
  if (ws->ca_file != NULL && tls_check_file(ws->ca_file, why, sizeof why) != 0)
    status = egw_conf_error(section, "ca_file", "%s", why);
  if (ws->ca_file != NULL && ws->insecure_skip_verify)
    egw_conf_warn(section, "ca_file", "has no effect with insecure_skip_verify");
  return status;
}

static void
ws_unconfigure(void *self)
{
  struct ws *ws = self;

  explicit_bzero(ws->auth.jwt_key, sizeof ws->auth.jwt_key);
}

static int
ws_worker_start(const void *self, void *mine_memory, struct egw_worker *worker)
{
  struct ws_mine *mine = mine_memory;

  (void)self;
  mine->hub = hub_new(worker);
  return mine->hub == NULL ? -1 : 0;
}

static void
ws_worker_stop(const void *self, void *mine_memory, struct egw_worker *worker)
{
  struct ws_mine *mine = mine_memory;

  (void)self;
  (void)worker;
  if (mine->hub != NULL)
    hub_stop(mine->hub);
  mine->hub = NULL;
}

/* --- links ------------------------------------------------------------------------------ */

static const struct pool_ops pool_ops = {
  .area = "ws",
  .connect = conn_start,
  .flush = io_flush,
  .resume = io_resume,
  .drop = conn_drop,
};

static bool
ws_is_loopback(const char *host)
{
  return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0
         || strcmp(host, "::1") == 0;
}

/* Once, not for each worker. */
static void
ws_warn_of_risks(const struct ws *ws, const struct egw_link *link)
{
  const struct egw_url *url = egw_link_url(link);

  if (egw_worker_index(egw_link_worker(link)) != 0)
    return;
  if (url->tls && ws->insecure_skip_verify)
    egw_log(EGW_WARN, "ws", "%s: insecure_skip_verify: its certificate is not checked",
            egw_link_name(link));
  if (!url->tls && auth_is_secret(&ws->auth, url) && !ws_is_loopback(url->host))
    egw_log(EGW_WARN, "ws", "%s: credentials are sent without TLS", egw_link_name(link));
}

static int
ws_open(struct egw_link *link)
{
  const struct ws *ws = egw_link_self(link);
  const struct ws_mine *mine = egw_link_mine(link);
  struct ws_link *l = egw_link_state(link);
  const struct egw_url *url = egw_link_url(link);

  if (strlen(url->host) > WS_NAME_MAX || strlen(url->path) > WS_PATH_MAX) {
    egw_log(EGW_ERROR, "ws", "%s: host name or path too long (at most %u and %u bytes)",
            egw_link_name(link), WS_NAME_MAX, WS_PATH_MAX);
    return -1;
  }
  l->link = link;
  l->site = hub_site(mine->hub, ws, link);
  if (l->site == NULL)
    return -1;
  ws_warn_of_risks(ws, link);
  pool_init(&l->pool, link, &pool_ops, &ws->pool);
  return 0;
}

static void
ws_close(struct egw_link *link)
{
  struct ws_link *l = egw_link_state(link);

  pool_close(&l->pool);
  egw_link_closed(link);
}

static void
ws_submit(struct egw_link *link, struct egw_xchg *xchg)
{
  struct ws_link *l = egw_link_state(link);

  pool_submit(&l->pool, xchg);
}

static void
ws_abort(struct egw_link *link, struct egw_xchg *xchg)
{
  struct ws_link *l = egw_link_state(link);

  pool_abort(&l->pool, xchg);
}

static void
ws_more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  struct ws_link *l = egw_link_state(link);

  (void)xchg;
  pool_more(&l->pool, conn);
}

static const struct egw_transport ws = {
  .plugin = { EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT),
              .name = "ws", .version = EGW_VERSION,
              .summary = "JSON-RPC over WebSocket",
              .options = options, .instance_size = sizeof (struct ws),
              .worker_size = sizeof (struct ws_mine), .configure = ws_configure,
              .unconfigure = ws_unconfigure, .worker_start = ws_worker_start,
              .worker_stop = ws_worker_stop },
  .schemes = "ws wss",
  .caps = EGW_T_MULTIPLEX | EGW_T_PUSH,
  .link_size = sizeof (struct ws_link),
  .xchg_size = sizeof (struct pool_wait),
  .conn_size = POOL_CONN_SIZE,
  .open = ws_open,
  .close = ws_close,
  .submit = ws_submit,
  .abort = ws_abort,
  .more = ws_more,
};

EGW_REGISTER(ws)
