/* SPDX-License-Identifier: MIT */
/* The plugin test host: the node below the stage, which answers by a script. */
#include "plugtest-parts.h"

#include <ethrpc-gw/json.h>

#define HEAD_BYTES 4096u /* of a reply of which only the head is seen */

static const struct plugtest_reply null_reply = { 0 };

void
plugtest_script(struct plugtest *host, const struct plugtest_reply *replies, size_t count)
{
  free(host->script);
  host->script = plugtest_must(calloc(count + 1, sizeof *replies));
  memcpy(host->script, replies, count * sizeof *replies);
  host->script_count = count;
  host->script_next = 0;
}

static const struct plugtest_reply *
next_reply(struct plugtest *host, const char *method, uint64_t only)
{
  for (size_t i = host->script_next; i < host->script_count; i++) {
    const struct plugtest_reply *r = &host->script[i];

    if (r->method != NULL && strcmp(r->method, method) != 0)
      continue;
    if (r->only_upstream != 0 && only != UINT64_C(1) << (r->only_upstream - 1))
      continue;
    if (r->method == NULL && r->only_upstream == 0 && i == host->script_next && i + 1 < host->script_count)
      host->script_next++;
    return r;
  }
  return &null_reply;
}

void
plugtest_go_below(struct egw_call *call)
{
  struct plugtest *host = call->host;
  struct reached *r;

  plugtest_clear_reply(call);
  if (host->reached_count == host->reached_room) {
    host->reached_room = host->reached_room * 2 + 64;
    host->reached = plugtest_must(realloc(host->reached, host->reached_room * sizeof *r));
  }
  r = &host->reached[host->reached_count++];
  r->method = plugtest_copy(call->method);
  r->params = plugtest_copy(call->params);
  r->route = call->route;
  r->batching = call->batching;
  call->end.sent++;
  call->phase = PHASE_BELOW;
  call->next_reply = *next_reply(host, call->method, call->route.only);
  call->pending = &call->next_reply;
  call->reply_due = host->now_ms + call->pending->delay_ms;
}

unsigned
plugtest_reached(const struct plugtest *host)
{
  return host->reached_count;
}

const char *
plugtest_reached_method(const struct plugtest *host, unsigned index)
{
  return index < host->reached_count ? host->reached[index].method : "";
}

const char *
plugtest_reached_params(const struct plugtest *host, unsigned index)
{
  return index < host->reached_count ? host->reached[index].params : "";
}

static void
print_body(struct egw_buf *buf, const struct plugtest_reply *r)
{
  bool good = true;

  if (r->is_error) {
    const char *message = r->message == NULL ? "an error" : r->message;

    good = egw_buf_printf(buf, "{\"code\":%lld,\"message\":", (long long)r->code) == 0 &&
           egw_json_quote(buf, (struct egw_slice){ message, strlen(message) }) == 0 &&
           (r->data == NULL || egw_buf_printf(buf, ",\"data\":%s", r->data) == 0) &&
           egw_buf_append(buf, "}", 1) == 0;
  } else if (r->big > 0) {
    char *room = egw_buf_room(buf, r->big + 2);

    if (room == NULL)
      abort();
    memset(room, 'x', r->big + 2);
    room[0] = room[r->big + 1] = '"';
    egw_buf_commit(buf, r->big + 2);
  } else {
    const char *result = r->result == NULL ? "null" : r->result;

    good = egw_buf_append(buf, result, strlen(result)) == 0;
  }
  if (!good)
    abort();
}

void
plugtest_make_reply(struct egw_call *call)
{
  const struct plugtest_reply *r = call->pending;
  struct egw_reply *out = &call->reply;

  plugtest_clear_reply(call);
  call->pending = NULL;
  call->reply_set = true;
  out->outcome = r->outcome;
  out->upstream = r->cached ? NULL : r->upstream == NULL ? "node" : r->upstream;
  out->upstream_index = r->only_upstream != 0 ? r->only_upstream - 1 : r->upstream_index;
  out->http_status = r->http_status;
  out->retry_after_ms = r->retry_after_ms;
  if (r->outcome != EGW_OK) {
    out->is_error = true;
    out->code = -32603;
    out->why = r->why == NULL ? "scripted" : r->why;
    return;
  }
  call->reply_buf = plugtest_must(egw_buf_new(0));
  print_body(call->reply_buf, r);
  out->buf = call->reply_buf;
  out->body = egw_buf_slice(call->reply_buf);
  out->is_error = r->is_error;
  out->code = r->is_error ? r->code : 0;
  if (r->is_error) {
    out->message = egw_json_member(out->body, "message");
    out->data = egw_json_member(out->body, "data");
  }
  out->partial = r->partial && !r->is_error;
  if (out->partial && out->body.len > HEAD_BYTES)
    out->body.len = HEAD_BYTES;
}
