/* SPDX-License-Identifier: MIT */
/* The status document. Made by cJSON, since it is small and rarely asked for. What belongs to
 * other workers is read from metric cells only; texts of links come from worker 0, whose
 * thread this is. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <cjson/cJSON.h>
#include <libconfig.h>
#include <libwebsockets.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <string.h>
#include "admin/status.h"
#include "chain/chain.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "obs/families.h"
#include "obs/print.h"
#include "upstream/upstream.h"
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The document in the making; `failed` once memory was short. */
struct doc {
  struct gateway *gateway;
  bool failed;
};

static cJSON *
doc_keep(struct doc *doc, cJSON *item)
{
  doc->failed = doc->failed || item == NULL;
  return item;
}

static cJSON *
add_object(struct doc *doc, cJSON *to, const char *key)
{
  return doc_keep(doc, cJSON_AddObjectToObject(to, key));
}

static cJSON *
add_array(struct doc *doc, cJSON *to, const char *key)
{
  return doc_keep(doc, cJSON_AddArrayToObject(to, key));
}

/* A new object at the end of `array`. */
static cJSON *
add_element(struct doc *doc, cJSON *array)
{
  cJSON *item = doc_keep(doc, cJSON_CreateObject());

  if (item != NULL && !cJSON_AddItemToArray(array, item)) {
    cJSON_Delete(item);
    item = NULL;
    doc->failed = true;
  }
  return item;
}

static void
add_number(struct doc *doc, cJSON *to, const char *key, double value)
{
  (void)doc_keep(doc, cJSON_AddNumberToObject(to, key, value));
}

static void
add_bool(struct doc *doc, cJSON *to, const char *key, bool value)
{
  (void)doc_keep(doc, cJSON_AddBoolToObject(to, key, value));
}

/* Quoted by the core, since cJSON lets invalid UTF-8 through. NULL text: null. */
static void
add_text(struct doc *doc, cJSON *to, const char *key, const char *text)
{
  struct egw_buf *quoted;

  if (text == NULL) {
    (void)doc_keep(doc, cJSON_AddNullToObject(to, key));
    return;
  }
  quoted = egw_buf_new(strlen(text) + 8);
  if (quoted != NULL &&
      egw_json_quote(quoted, (struct egw_slice){ text, strlen(text) }) == 0 &&
      egw_buf_append(quoted, "", 1) == 0)
    (void)doc_keep(doc, cJSON_AddRawToObject(to, key, egw_buf_slice(quoted).ptr));
  else
    doc->failed = true;
  egw_buf_unref(quoted);
}

static const char *
state_name(const struct gateway *gateway)
{
  switch ((enum gateway_state)atomic_load_explicit(&gateway->state, memory_order_relaxed)) {
  case GATEWAY_STARTING: return "starting";
  case GATEWAY_READY: return "ready";
  case GATEWAY_DRAINING: return "draining";
  case GATEWAY_STOPPED: return "stopped";
  }
  return "unknown";
}

static void
put_libraries(struct doc *doc, cJSON *root)
{
  cJSON *to = add_object(doc, root, "libraries");

  add_text(doc, to, "libuv", uv_version_string());
  add_text(doc, to, "libmicrohttpd", MHD_get_version());
  add_text(doc, to, "libwebsockets", lws_get_library_version());
  add_text(doc, to, "libconfig",
           TEXT(LIBCONFIG_VER_MAJOR) "." TEXT(LIBCONFIG_VER_MINOR));
  add_text(doc, to, "cjson", cJSON_Version());
  add_text(doc, to, "openssl", OpenSSL_version(OPENSSL_VERSION));
}

static void
put_workers(struct doc *doc, cJSON *root)
{
  cJSON *array = add_array(doc, root, "workers");
  unsigned i;

  for (i = 0; i < doc->gateway->worker_count; i++) {
    const struct metrics *metrics = doc->gateway->workers[i].metrics;
    cJSON *to = add_element(doc, array);

    if (to == NULL || metrics == NULL)
      return;
    add_number(doc, to, "index", i);
    add_number(doc, to, "calls_in_flight", (double)metric_read(&metrics->calls_in_flight));
    add_number(doc, to, "subscriptions", (double)metric_read(&metrics->subscriptions));
    add_number(doc, to, "loop_stalls", (double)metric_read(&metrics->loop_stalls));
  }
}

static void
put_listeners(struct doc *doc, cJSON *root)
{
  cJSON *array = add_array(doc, root, "listeners");
  size_t i;

  for (i = 0; i < doc->gateway->listeners.n; i++) {
    struct listener *listener = &doc->gateway->listeners.v[i];
    cJSON *to = add_element(doc, array);

    if (to == NULL)
      return;
    add_text(doc, to, "name", listener->name);
    add_bool(doc, to, "admin", listener->admin);
    if (listener->conf->path != NULL) {
      add_text(doc, to, "path", listener->conf->path);
    } else {
      add_text(doc, to, "address", listener->conf->address);
      add_number(doc, to, "port", listener->port);
      add_bool(doc, to, "tls", listener->tls != NULL);
    }
    add_number(doc, to, "connections",
               atomic_load_explicit(&listener->connections, memory_order_relaxed));
  }
}

static int64_t
attempts(const struct gateway *gateway, const struct upstream *upstream, bool good)
{
  int64_t n = 0;
  size_t i;

  for (i = 0; i <= EGW_ABORTED; i++)
    if ((i == EGW_OK) == good)
      n += link_sum(gateway, upstream,
                    offsetof(struct link_metrics, outcomes) + i * sizeof(metric_cell));
  return n;
}

static void
put_upstream(struct doc *doc, cJSON *array, const struct upstream *upstream)
{
  const struct gateway *gateway = doc->gateway;
  struct egw_link *const *links = gateway->worker_count > 0 ? gateway->workers[0].links : NULL;
  const struct egw_link *link = links != NULL ? links[upstream->index] : NULL;
  int64_t up = link_sum(gateway, upstream, offsetof(struct link_metrics, up));
  cJSON *to = add_element(doc, array);
  uint64_t head;

  if (to == NULL)
    return;
  add_text(doc, to, "name", upstream->name);
  add_text(doc, to, "transport", upstream->plugin->head->name);
  add_number(doc, to, "tier", (double)upstream->conf->tier);
  if (upstream_head(upstream, &head))
    add_number(doc, to, "head", (double)head);
  add_text(doc, to, "state",
           atomic_load_explicit(&upstream->stranger, memory_order_relaxed) ? "other chain" :
           up == 0 ? "down" : up < (int64_t)gateway->worker_count ? "partly up" : "up");
  add_number(doc, to, "in_flight",
             (double)link_sum(gateway, upstream, offsetof(struct link_metrics, in_flight)));
  add_number(doc, to, "replies", (double)attempts(gateway, upstream, true));
  add_number(doc, to, "failures", (double)attempts(gateway, upstream, false));
  add_text(doc, to, "last_error",
           link != NULL && link->last_error[0] != '\0' ? link->last_error : NULL);
}

static void
put_stages(struct doc *doc, cJSON *to, const struct network *network)
{
  cJSON *array = add_array(doc, to, "middleware");
  unsigned i;

  for (i = 0; i < network->stage_count; i++) {
    cJSON *stage = add_element(doc, array);

    if (stage == NULL)
      return;
    add_text(doc, stage, "use", network->stages[i].plugin->head->name);
    add_text(doc, stage, "name", network->stages[i].name);
  }
}

static void
put_block(struct doc *doc, cJSON *to, const char *key, const struct egw_block *block)
{
  cJSON *item = add_object(doc, to, key);
  char text[2 * sizeof(block->hash) + 3];

  egw_hex_print(block->hash, sizeof(block->hash), text);
  add_number(doc, item, "number", (double)block->number);
  add_text(doc, item, "hash", text);
}

/* null while nothing is known: the head is followed where it is needed only. */
static void
put_head(struct doc *doc, cJSON *to, const struct network *network)
{
  struct egw_head head;
  cJSON *item;

  head_peek(network->head, &head);
  if (!head.known) {
    add_text(doc, to, "head", NULL);
    return;
  }
  item = add_object(doc, to, "head");
  add_bool(doc, item, "live", head.live);
  add_bool(doc, item, "pushed", head.pushed);
  put_block(doc, item, "tip", &head.tip);
  if (head.has_safe)
    put_block(doc, item, "safe", &head.safe);
  if (head.has_finalized)
    put_block(doc, item, "finalized", &head.finalized);
  add_number(doc, item, "block_seconds", (double)head.block_ms / 1000.0);
  add_number(doc, item, "reorgs", (double)head.reorgs);
}

static void
put_networks(struct doc *doc, cJSON *root)
{
  cJSON *array = add_array(doc, root, "networks");
  size_t i;
  unsigned u;

  for (i = 0; i < doc->gateway->network_count; i++) {
    const struct network *network = &doc->gateway->networks[i];
    cJSON *to = add_element(doc, array), *upstreams;

    if (to == NULL)
      return;
    add_text(doc, to, "name", network->name);
    if (network->conf->chain_id != 0)
      add_number(doc, to, "chain_id", (double)network->conf->chain_id);
    if (network->head != NULL)
      put_head(doc, to, network);
    upstreams = add_array(doc, to, "upstreams");
    for (u = 0; u < network->upstream_count; u++)
      put_upstream(doc, upstreams, network->upstreams[u]);
    put_stages(doc, to, network);
  }
}

static void
put_sessions(struct doc *doc, cJSON *root)
{
  static const char *const names[] = { [CLIENT_HTTP] = "http", [CLIENT_WS] = "ws",
                                       [CLIENT_IPC] = "ipc" };
  cJSON *to = add_object(doc, root, "sessions");
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t at = i * sizeof(metric_cell);
    int64_t open = workers_sum(doc->gateway, offsetof(struct metrics, sessions_opened) + at) -
                   workers_sum(doc->gateway, offsetof(struct metrics, sessions_closed) + at);

    add_number(doc, to, names[i], (double)open);
  }
}

static void
put_resources(struct doc *doc, cJSON *root)
{
  struct gateway *gateway = doc->gateway;
  size_t used = atomic_load_explicit(&gateway->budget.used, memory_order_relaxed);
  cJSON *memory = add_object(doc, root, "memory"), *fds;
  struct process_facts facts;

  process_facts(&facts);
  add_number(doc, memory, "resident_bytes", (double)facts.resident_bytes);
  add_number(doc, memory, "buffer_bytes", (double)used);
  add_number(doc, memory, "buffer_limit_bytes", (double)gateway->budget.limit);
  add_number(doc, memory, "queue_bytes",
             (double)workers_sum(gateway, offsetof(struct metrics, queue_bytes)));
  fds = add_object(doc, root, "descriptors");
  add_number(doc, fds, "open", (double)facts.open_fds);
  add_number(doc, fds, "limit", (double)facts.max_fds);
}

int
status_print(struct gateway *gateway, struct egw_buf *out)
{
  struct doc doc = { gateway, false };
  cJSON *root = doc_keep(&doc, cJSON_CreateObject());
  char *text = NULL;
  int result = -1;

  add_text(&doc, root, "version", PACKAGE_VERSION);
  add_text(&doc, root, "state", state_name(gateway));
  add_number(&doc, root, "uptime_seconds", (double)(clock_us() - gateway->started_us) / 1e6);
  put_libraries(&doc, root);
  put_workers(&doc, root);
  put_listeners(&doc, root);
  put_networks(&doc, root);
  put_sessions(&doc, root);
  put_resources(&doc, root);
  if (!doc.failed && (text = cJSON_PrintUnformatted(root)) != NULL)
    result = egw_buf_printf(out, "%s\n", text);
  cJSON_free(text);
  cJSON_Delete(root);
  return result;
}
