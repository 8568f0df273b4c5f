/* SPDX-License-Identifier: MIT */
/* The libwebsockets context of a worker: a guest on the worker's loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ws.h"

#define HUB_PATIENCE_MS 1000u   /* for connections to end by themselves when stopping */
#define HUB_KEEP 65536u         /* scratch that is kept between messages */

/* --- the log ---------------------------------------------------------------------------- */

static void
hub_log(int level, const char *line)
{
  (void)level;
  egw_log(EGW_TRACE, "lws", "%.*s", (int)strcspn(line, "\n"), line);
}

static int
log_levels(void)
{
  return egw_log_on(EGW_TRACE) ? LLL_ERR | LLL_WARN | LLL_NOTICE : 0;
}

void
hub_route_log(void)
{
  lws_set_log_level(log_levels(), hub_log);
}

/* --- life ------------------------------------------------------------------------------- */

/* All zero: pings and time-outs are ours. */
static const lws_retry_bo_t no_idle_policy;

struct ws_hub *
hub_new(struct egw_worker *worker)
{
  struct ws_hub *hub = calloc(1, sizeof *hub);
  struct lws_context_creation_info info;
  void *loops[1];

  if (hub == NULL)
    return NULL;
  hub->worker = worker;
  hub->loop = loops[0] = egw_worker_uv(worker);
  memset(&info, 0, sizeof info);
  info.port = CONTEXT_PORT_NO_LISTEN;
  info.options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS
                 | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME;
  info.foreign_loops = loops;
  info.pcontext = &hub->context;
  info.user = hub;
  info.uid = (__typeof__(info.uid))-1;
  info.gid = (__typeof__(info.gid))-1;
  info.pt_serv_buf_size = WS_READ;
  info.max_http_header_data = 16384;
  info.fd_limit_per_thread = 256;
  info.retry_and_idle_policy = &no_idle_policy;
  lws_own_log_init(&hub->log, log_levels(), hub_log);
  lws_own_log_use(&hub->log, &info);
  hub->context = lws_create_context(&info);
  if (hub->context == NULL) {
    egw_log(EGW_ERROR, "ws",
            "libwebsockets can't run on libuv (Debian: package libwebsockets-evlib-uv)");
    free(hub);
    return NULL;
  }
  return hub;
}

static void
hub_free(struct ws_hub *hub)
{
  struct ws_site *site;

  while ((site = hub->sites) != NULL) {
    hub->sites = site->next;
    tls_free(site->tls);
    free(site->host);
    free(site);
  }
  free(hub->out);
  free(hub);
}

static void
hub_watch_closed(uv_handle_t *watch)
{
  hub_free(watch->data);
}

struct hub_search {
  const void *data;
  bool found;
};

static void
hub_look_at(uv_handle_t *handle, void *arg)
{
  struct hub_search *search = arg;

  if (handle->data == search->data)
    search->found = true;
}

/* libwebsockets leaves a foreign loop in stages and does not say when it is through. First our
 * connections end, since destroying a context with some that are being made is not safe in
 * 4.1. Then it closes its handles. 4.1 must be asked a second time, but only when its idle
 * handle and its timer, which are marked by the context, are gone; later versions may be asked
 * at any time and have freed the context (and set hub->context to NULL) when they can. */
static void
hub_watched(uv_timer_t *watch)
{
  struct ws_hub *hub = watch->data;
  struct hub_search search = { hub->context, false };

  if (hub->context == NULL) {
    uv_close((uv_handle_t *)watch, hub_watch_closed);
    return;
  }
  if (!hub->doomed) {
    if (hub->live > 0 && uv_now(hub->loop) - hub->stop_ms < HUB_PATIENCE_MS)
      return;
    hub->doomed = true;
    lws_context_destroy(hub->context);
    return;
  }
  uv_walk(hub->loop, hub_look_at, &search);
  if (!search.found)
    lws_context_destroy(hub->context);
}

void
hub_stop(struct ws_hub *hub)
{
  hub->stop_ms = uv_now(hub->loop);
  uv_timer_init(hub->loop, &hub->watch);
  hub->watch.data = hub;
  uv_timer_start(&hub->watch, hub_watched, 0, 1);
}

void
hub_poke(struct ws_hub *hub)
{
  lws_cancel_service(hub->context);
}

/* --- sites ------------------------------------------------------------------------------ */

static const struct lws_protocols protocols[] = {
  { .name = "egw", .callback = conn_event, .rx_buffer_size = WS_READ,
    .tx_packet_size = 1u << 28 },
  { .name = NULL }
};

static struct lws_vhost *
hub_vhost(struct ws_hub *hub, const struct ws_site *site)
{
  struct lws_context_creation_info info;

  memset(&info, 0, sizeof info);
  info.port = CONTEXT_PORT_NO_LISTEN;
  info.protocols = protocols;
  info.vhost_name = "ws";
  info.http_proxy_address = ":0"; /* none; without it the environment would name one */
  info.timeout_secs = 60;         /* ours are shorter */
  lws_own_log_use(&hub->log, &info);
  info.connect_timeout_secs = 3600;
  if (site->tls != NULL) {
    info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.provided_client_ssl_ctx = site->tls;
  }
  return lws_create_vhost(hub->context, &info);
}

struct ws_site *
hub_site(struct ws_hub *hub, const struct ws *ws, struct egw_link *link)
{
  const struct egw_url *url = egw_link_url(link);
  struct ws_site *site = calloc(1, sizeof *site);

  if (site == NULL)
    return NULL;
  site->hub = hub;
  site->insecure = ws->insecure_skip_verify;
  site->host = strdup(url->host);
  if (site->host != NULL && url->tls)
    site->tls = tls_new(site, ws);
  if (site->host != NULL && (!url->tls || site->tls != NULL))
    site->vhost = hub_vhost(hub, site);
  site->next = hub->sites;
  hub->sites = site;
  if (site->vhost != NULL)
    return site;
  egw_log(EGW_ERROR, "ws", "%s: %s", egw_link_name(link),
          url->tls && site->tls == NULL ? "TLS can't be set up" : "memory is short");
  return NULL;
}

/* --- scratch ---------------------------------------------------------------------------- */

unsigned char *
hub_out(struct ws_hub *hub, size_t len)
{
  size_t need = len + LWS_PRE; /* a buffer's length leaves that much room below SIZE_MAX */

  if (need > hub->out_room || (hub->out_room > HUB_KEEP && need <= HUB_KEEP)) {
    free(hub->out);
    hub->out_room = need > HUB_KEEP ? need : HUB_KEEP;
    hub->out = malloc(hub->out_room);
    if (hub->out == NULL)
      hub->out_room = 0;
  }
  return hub->out == NULL ? NULL : hub->out + LWS_PRE;
}
