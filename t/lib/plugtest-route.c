/* SPDX-License-Identifier: MIT */
/* The plugin test host: the head, the upstreams, and what a call says about itself. */
#include "plugtest-parts.h"

#include <stdarg.h>
#include <ethrpc-gw/eth.h>

/* Plugins find these in the program, which takes from its library only what it names. */
void (*const plugtest_keccak)(struct egw_slice, unsigned char *) = egw_keccak256;
long (*const plugtest_hex)(struct egw_slice, unsigned char *, size_t) = egw_hex_read;

/* --- the head ---------------------------------------------------------------------------- */

void
plugtest_head(struct plugtest *host, const struct egw_head *head, const struct egw_block *blocks,
              size_t count)
{
  const struct egw_middleware *m = plugtest_plugin(host);
  struct egw_at at = { .self = host->self, .mine = host->mine, .stage = &host->stage,
                       .worker = &host->worker };

  free(host->blocks);
  host->blocks = plugtest_must(calloc(count + 1, sizeof *blocks));
  if (count > 0)
    memcpy(host->blocks, blocks, count * sizeof *blocks);
  host->block_count = count;
  host->head = *head;
  host->head.version = ++host->head_version;
  if (m->head == NULL)
    return;
  plugtest_enter(host);
  m->head(&at, &host->head);
  plugtest_leave(host);
}

const struct egw_head *
egw_head(const struct egw_at *at)
{
  return &at->worker->host->head;
}

bool
egw_head_hash(const struct egw_head *head, uint64_t number, unsigned char hash[32])
{
  const struct plugtest *host = container_of(head, struct plugtest, head);
  size_t i;

  for (i = 0; head->known && i < host->block_count; i++)
    if (host->blocks[i].number == number) {
      memcpy(hash, host->blocks[i].hash, 32);
      return true;
    }
  return false;
}

/* --- upstreams --------------------------------------------------------------------------- */

static const struct egw_upstream_info one_node = { .name = "node", .up = true };
static unsigned default_count = 1;

void
plugtest_default_upstreams(unsigned count)
{
  default_count = count;
}

void
plugtest_upstreams(struct plugtest *host, const struct egw_upstream_info *infos, unsigned count)
{
  free(host->upstreams);
  host->upstreams = plugtest_must(calloc(count + 1, sizeof *infos));
  memcpy(host->upstreams, infos, count * sizeof *infos);
  host->upstream_count = count;
}

unsigned
egw_upstream_count(const struct egw_at *at)
{
  const struct plugtest *host = at->worker->host;

  return host->upstreams == NULL ? default_count : host->upstream_count;
}

bool
egw_upstream(const struct egw_at *at, unsigned index, struct egw_upstream_info *out)
{
  const struct plugtest *host = at->worker->host;

  memset(out, 0, sizeof *out);
  if (index >= egw_upstream_count(at))
    return false;
  *out = host->upstreams == NULL ? one_node : host->upstreams[index];
  return true;
}

void
egw_upstream_lacks(const struct egw_at *at, unsigned index, uint64_t block)
{
  struct plugtest *host = at->worker->host;

  if (index >= egw_upstream_count(at))
    plugtest_fault(host, "egw_upstream_lacks() of upstream %u, which there is not", index);
  else if (host->lacks[index] < block + 1)
    host->lacks[index] = block + 1;
}

uint64_t
plugtest_lacks(const struct plugtest *host, unsigned index)
{
  return host->lacks[index];
}

void
egw_route(struct egw_call *call, const struct egw_route *route)
{
  call->route = *route;
}

void
egw_routed(const struct egw_call *call, struct egw_route *out)
{
  *out = call->route;
}

void
egw_may_batch(struct egw_call *call, const struct egw_batching *limits)
{
  call->batching = limits;
}

struct egw_route
plugtest_reached_route(const struct plugtest *host, unsigned index)
{
  return index < host->reached_count ? host->reached[index].route : (struct egw_route){ 0 };
}

bool
plugtest_reached_batch(const struct plugtest *host, unsigned index, struct egw_batching *out)
{
  if (index >= host->reached_count || host->reached[index].batching == NULL)
    return false;
  *out = *host->reached[index].batching;
  return true;
}

/* --- what a call says about itself ------------------------------------------------------- */

int
egw_set_params(struct egw_call *call, struct egw_slice params)
{
  char *copy = egw_alloc(call, params.len + 1);

  if (copy == NULL)
    return -1;
  memcpy(copy, params.ptr, params.len);
  copy[params.len] = '\0';
  call->params = copy; /* the old ones stay too: both live as long as the call */
  return 0;
}

int
egw_set_identity(struct egw_call *call, const char *name)
{
  size_t n = strlen(name) + 1;
  char *copy = egw_alloc(call, n);

  if (copy == NULL)
    return -1;
  memcpy(copy, name, n);
  call->identity = copy;
  return 0;
}

struct egw_slice
egw_header(const struct egw_call *call, const char *name)
{
  const char *value = NULL;

  if (strcmp(name, "authorization") == 0)
    value = call->spec_authorization;
  else if (strcmp(name, "x-api-key") == 0)
    value = call->spec_api_key;
  else if (strcmp(name, "user-agent") == 0)
    value = "plugtest/1";
  else
    plugtest_fault(call->host, "egw_header(\"%s\"), which is not kept", name);
  return value == NULL ? (struct egw_slice){ NULL, 0 }
                       : (struct egw_slice){ value, strlen(value) };
}

void
egw_http_status(struct egw_call *call, int status)
{
  call->http_status = status;
}

bool
egw_explains(const struct egw_call *call)
{
  while (call->parent != NULL)
    call = call->parent;
  return call->explained;
}

void
egw_explain_on(struct egw_call *call)
{
  call->explained = true;
}

void
egw_explain(struct egw_call *call, const char *fmt, ...)
{
  va_list args;
  size_t len;

  while (call->parent != NULL)
    call = call->parent;
  if (!call->explained)
    return;
  len = strlen(call->story);
  if (len != 0 && len + 2 < sizeof call->story) {
    memcpy(call->story + len, "; ", 3);
    len += 2;
  }
  va_start(args, fmt);
  (void)vsnprintf(call->story + len, sizeof call->story - len, fmt, args);
  va_end(args);
}

const char *
egw_explained(const struct egw_call *call)
{
  while (call->parent != NULL)
    call = call->parent;
  return call->story;
}

void
egw_set_cache_status(struct egw_call *call, const char *status)
{
  call->cache_status = status;
  if (status != NULL)
    egw_explain(call, "cache: %s", status);
}

const char *
egw_cache_status(const struct egw_call *call)
{
  return call->cache_status;
}

void
egw_subcall_cancel(struct egw_worker *worker, uint64_t ticket)
{
  struct egw_call *call = egw_find(worker, ticket);

  if (call == NULL || call->kind != EGW_KIND_SUBCALL)
    return;
  call->done = NULL;
  plugtest_call_cancel(call, EGW_ABORTED, "cancelled");
}

/* --- events ------------------------------------------------------------------------------ */

void
egw_notice_replace(struct egw_notice *notice, struct egw_buf *result)
{
  egw_buf_unref(notice->host[0]);
  notice->host[0] = result;
  notice->result = egw_buf_slice(result);
}

static const char *
or_this(const char *text, const char *fallback)
{
  return text == NULL ? fallback : text;
}

const char *
plugtest_notice(struct plugtest *host, const char *kind, const char *result,
                const struct plugtest_spec *spec)
{
  const struct egw_middleware *m = plugtest_plugin(host);
  struct egw_at at = { .self = host->self, .mine = host->mine, .stage = &host->stage,
                       .worker = &host->worker };
  struct egw_client client = {
    .transport = or_this(spec->transport, "ws"),
    .peer = or_this(spec->peer, "127.0.0.1"),
    .listener = or_this(spec->listener, "127.0.0.1:8645"),
    .local = !spec->remote,
    .session = spec->session == 0 ? 1 : spec->session,
    .uid = spec->uid - 1,
  };
  struct egw_notice notice = {
    .kind = { kind, strlen(kind) },
    .subscription = { "0x1", 3 },
    .result = { result, strlen(result) },
    .network = or_this(spec->network, "test"),
    .client = &client,
  };
  enum egw_notice_verdict verdict = EGW_NOTICE_PASS;

  if (m->notice != NULL) {
    plugtest_enter(host);
    verdict = m->notice(&at, &notice);
    plugtest_leave(host);
  }
  free(host->notice);
  host->notice = plugtest_must(calloc(1, notice.result.len + 1));
  memcpy(host->notice, notice.result.ptr, notice.result.len);
  egw_buf_unref(notice.host[0]);
  return verdict == EGW_NOTICE_PASS ? host->notice : NULL;
}
