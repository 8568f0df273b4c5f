/* SPDX-License-Identifier: MIT */
/* Example 6: events. Subscribers to logs do not hear of contracts that are muted, and a member of
 * the logs of all others is taken out:
 *
 *   middleware = ( { use = "example6-notice"; mute = ( "0x..." ); without = "data"; } );
 *
 * It sees what clients subscribe to; calls such as eth_getLogs pass untouched.              */
#include <string.h>
#include <strings.h>
#include <ethrpc-gw/json.h>
#include <ethrpc-gw/middleware.h>

struct mute {
  struct egw_strings addresses;
  const char *without;
};

enum { MUTED, SHORTENED };

static const struct egw_option options[] = {
  { .name = "mute", .type = EGW_OPT_LIST, .offset = offsetof(struct mute, addresses),
    .help = "Addresses of contracts whose logs are not told" },
  { .name = "without", .type = EGW_OPT_STRING, .offset = offsetof(struct mute, without),
    .help = "A member of the other logs that is left out" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [MUTED] = { .name = "muted", .kind = EGW_METRIC_COUNTER, .help = "Events not told" },
  [SHORTENED] = { .name = "shortened", .kind = EGW_METRIC_COUNTER,
                  .help = "Events told without the member" },
  EGW_METRIC_TABLE_END
};

static bool
is_muted(const struct mute *self, struct egw_slice address)
{
  for (size_t i = 0; i < self->addresses.n; i++) {
    size_t len = strlen(self->addresses.v[i]);

    /* Raw JSON, in its quotes. */
    if (address.len == len + 2 && strncasecmp(address.ptr + 1, self->addresses.v[i], len) == 0)
      return true;
  }
  return false;
}

/* A copy of the object without one member; NULL: no memory. */
static struct egw_buf *
copy_without(struct egw_slice object, const char *name)
{
  struct egw_buf *out = egw_buf_new(object.len + 2);
  size_t cursor = 0, len = strlen(name);
  struct egw_slice key, value;
  const char *before = "{";
  bool good = out != NULL;

  while (good && egw_json_next(object, &cursor, &key, &value)) {
    if (key.len == len + 2 && memcmp(key.ptr + 1, name, len) == 0)
      continue;
    good = egw_buf_append(out, before, 1) == 0 && egw_buf_append(out, key.ptr, key.len) == 0
           && egw_buf_append(out, ":", 1) == 0
           && egw_buf_append(out, value.ptr, value.len) == 0;
    before = ",";
  }
  if (good && egw_buf_append(out, *before == '{' ? "{}" : "}", *before == '{' ? 2 : 1) == 0)
    return out;
  egw_buf_unref(out);
  return NULL;
}

/* Runs for each client and event, on the client's worker. */
static enum egw_notice_verdict
mute_notice(const struct egw_at *at, struct egw_notice *notice)
{
  const struct mute *self = at->self;
  struct egw_buf *shorter;

  if (notice->kind.len != 4 || memcmp(notice->kind.ptr, "logs", 4) != 0)
    return EGW_NOTICE_PASS;
  if (is_muted(self, egw_json_member(notice->result, "address"))) {
    egw_count(at, MUTED, 1);
    return EGW_NOTICE_DROP;
  }
  if (self->without == NULL || egw_json_member(notice->result, self->without).ptr == NULL)
    return EGW_NOTICE_PASS;
  shorter = copy_without(notice->result, self->without);
  if (shorter == NULL)
    return EGW_NOTICE_DROP; /* better nothing than what is not to be told */
  egw_count(at, SHORTENED, 1);
  egw_notice_replace(notice, shorter); /* takes it */
  return EGW_NOTICE_PASS;
}

/* Calls are no concern of it. */
static enum egw_verdict
mute_request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
  return EGW_NEXT;
}

static bool
mute_wants(const void *self, const struct egw_method_info *method)
{
  (void)self;
  (void)method;
  return false;
}

static const struct egw_middleware mute = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "example6-notice",
              .version = "1.0", .summary = "Keeps logs of some contracts from subscribers",
              .options = options, .metrics = metrics, .instance_size = sizeof(struct mute) },
  .kinds = EGW_KIND_CALL,
  .request = mute_request,
  .wants = mute_wants,
  .notice = mute_notice,
};

EGW_REGISTER(mute)
