/* SPDX-License-Identifier: MIT */
/* log: the access log, one line a call, to the gateway's log or to a file of its own.
 *
 * Lines are made when a call ends. For a file, each worker gathers them in a chunk that goes
 * to the instance's writer thread when it is full or some time has passed, so that a slow disk
 * holds nobody; when too much is waiting, lines are lost and counted. What clients sent is
 * escaped: a call is always one line. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>
#include "log-sink.h"

#define LINE_ROOM 10240u          /* no line is longer */
#define STORY_MOST 3072u          /* bytes of a story; twice as many when each is escaped */
#define FLUSH_MS 200u

enum format { FORMAT_TEXT, FORMAT_JSON };
enum only { ONLY_ALL, ONLY_ERRORS, ONLY_SLOW };
enum metric { METRIC_LINES, METRIC_LOST };
enum ending { ENDED_CANCELLED, ENDED_RESULT, ENDED_ERROR, ENDED_FAULT };

struct access_log {
  const char *file;
  int format, only;               /* enum format, enum only */
  uint64_t slow;                  /* ms */
  bool explain;
  struct sink *sink;              /* NULL: the gateway's log */
};

struct log_worker {
  struct egw_worker *worker;
  struct sink *sink;
  struct chunk *chunk;
  struct egw_timer timer;
};

struct log_call {
  enum ending ending;
  bool partial;                   /* `bytes` is only the beginning */
  int64_t code;
  uint64_t bytes;
  char upstream[64];
  char why[64];
};

/* --- a worker's chunk -------------------------------------------------------------------- */

static void
worker_flush(struct log_worker *w)
{
  egw_timer_stop(w->worker, &w->timer);
  if (w->chunk == NULL || w->chunk->len == 0)
    return;
  sink_put(w->sink, w->chunk);
  w->chunk = NULL;
}

static void
worker_timer(struct egw_timer *timer)
{
  worker_flush(timer->arg);
}

/* 1: the line is on its way; 0: it is lost. */
static int
worker_put(struct log_worker *w, const char *line, size_t len)
{
  if (w->chunk != NULL && CHUNK_SIZE - w->chunk->len < len)
    worker_flush(w);
  if (w->chunk == NULL) {
    w->chunk = malloc(sizeof *w->chunk);
    if (w->chunk == NULL)
      return 0;
    w->chunk->len = 0;
    w->chunk->lines = 0;
    egw_timer_start(w->worker, &w->timer, FLUSH_MS);
  }
  memcpy(w->chunk->bytes + w->chunk->len, line, len);
  w->chunk->len += len;
  w->chunk->lines++;
  return 1;
}

/* --- lines ------------------------------------------------------------------------------- */

struct line {
  bool json;
  size_t len;
  char text[LINE_ROOM];
};

EGW_PRINTF(2, 3) static void
put(struct line *l, const char *fmt, ...)
{
  va_list ap;
  int n;

  va_start(ap, fmt);
  n = vsnprintf(l->text + l->len, LINE_ROOM - l->len, fmt, ap);
  va_end(ap);
  if (n > 0)
    l->len = (size_t)n < LINE_ROOM - l->len ? l->len + (size_t)n : LINE_ROOM - 1;
}

static void
put_char(struct line *l, char c)
{
  if (l->len < LINE_ROOM - 1)
    l->text[l->len++] = c;
}

static void
put_escaped(struct line *l, struct egw_slice s)
{
  put_char(l, '"');
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.ptr[i];

    if (c == '"' || c == '\\')
      put_char(l, '\\');
    if (c >= 0x20 && c < 0x7f)
      put_char(l, (char)c);
    else if (l->json)
      put(l, c < 0x20 ? "\\u%04x" : "\\ufffd", c);
    else
      put(l, "\\x%02x", c);
  }
  put_char(l, '"');
}

static bool
is_plain(struct egw_slice s)
{
  for (size_t i = 0; i < s.len; i++)
    if (s.ptr[i] <= 0x20 || s.ptr[i] >= 0x7f || s.ptr[i] == '"' || s.ptr[i] == '\\' ||
        s.ptr[i] == '=')
      return false;
  return s.len > 0;
}

/* key=value or "key":"value"; long values are cut. */
static void
put_text(struct line *l, const char *key, struct egw_slice value, size_t most)
{
  if (value.len > most)
    value.len = most;
  put(l, l->json ? ",\"%s\":" : " %s=", key);
  if (!l->json && is_plain(value))
    put(l, "%.*s", (int)value.len, value.ptr);
  else
    put_escaped(l, value);
}

static void
put_string(struct line *l, const char *key, const char *value)
{
  if (value != NULL && value[0] != '\0')
    put_text(l, key, (struct egw_slice){ value, strlen(value) }, 128);
}

static void
put_number(struct line *l, const char *key, int64_t value)
{
  put(l, l->json ? ",\"%s\":%" PRId64 : " %s=%" PRId64, key, value);
}

static void
put_time(struct line *l)
{
  struct timespec now;
  struct tm tm;
  char text[32];

  (void)clock_gettime(CLOCK_REALTIME, &now);
  (void)gmtime_r(&now.tv_sec, &tm);
  (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
  put(l, l->json ? "{\"time\":\"%s.%03ldZ\"" : "%s.%03ldZ", text, now.tv_nsec / 1000000);
}

static const char *
kind_name(uint32_t kind)
{
  switch (kind) {
  case EGW_KIND_NOTIFICATION: return "notification";
  case EGW_KIND_SUBSCRIBE: return "subscribe";
  case EGW_KIND_UNSUBSCRIBE: return "unsubscribe";
  case EGW_KIND_SUBCALL: return "subcall";
  default: return "call";
  }
}

static uint64_t
took_us(const struct egw_call *call)
{
  struct timespec now;
  uint64_t us, began = egw_started_us(call);

  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
  return us > began ? us - began : 0;
}

static void
make_line(struct line *l, const struct egw_call *call, const struct log_call *c, uint64_t us)
{
  static const char *const endings[] = { "cancelled", "result", "error", "fault" };
  struct egw_client client;
  struct egw_slice id = egw_client_id(call);

  egw_client(call, &client);
  put_text(l, "method", egw_method(call), 128);
  put_string(l, "end", endings[c->ending]);
  if (c->ending == ENDED_ERROR)
    put_number(l, "code", c->code);
  put_number(l, "us", (int64_t)us);
  put_number(l, "bytes", (int64_t)c->bytes);
  if (c->partial)
    put(l, l->json ? ",\"streamed\":true" : " streamed=true");
  put_string(l, "upstream", c->upstream);
  put_string(l, "cache", egw_cache_status(call));
  put_string(l, "why", c->why);
  put_string(l, "network", egw_network(call));
  put_string(l, "kind", kind_name(egw_kind(call)));
  if (id.ptr != NULL)
    put_text(l, "id", id, 64);
  put_string(l, "transport", client.transport);
  put_string(l, "peer", client.peer);
  put_string(l, "listener", client.listener);
  put_number(l, "session", (int64_t)client.session);
  put_string(l, "identity", client.identity);
}

/* A sub-call's steps are in the story of its parent. */
static bool
has_story(const struct access_log *self, const struct egw_call *call)
{
  return self->explain && egw_kind(call) != EGW_KIND_SUBCALL;
}

static void
put_story(struct line *l, const struct egw_call *call)
{
  const char *story = egw_explained(call);

  if (story[0] != '\0')
    put_text(l, "explain", (struct egw_slice){ story, strlen(story) }, STORY_MOST);
}

/* --- callbacks --------------------------------------------------------------------------- */

static enum egw_verdict
log_request(const struct egw_at *at, struct egw_call *call)
{
  /* Which calls are written shows at their end, when it is too late for a story. */
  if (has_story(at->self, call))
    egw_explain_on(call);
  return EGW_NEXT;
}

static void
copy_text(char *out, size_t cap, const char *text)
{
  (void)snprintf(out, cap, "%s", text == NULL ? "" : text);
}

static enum egw_verdict
log_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct log_call *c = at->state;

  (void)call;
  c->ending = reply->outcome != EGW_OK ? ENDED_FAULT
              : reply->is_error        ? ENDED_ERROR
                                       : ENDED_RESULT;
  c->code = reply->code;
  c->bytes = reply->body.len;
  c->partial = reply->partial;
  copy_text(c->upstream, sizeof c->upstream, reply->upstream);
  copy_text(c->why, sizeof c->why, reply->outcome != EGW_OK ? reply->why : NULL);
  return EGW_NEXT;
}

static bool
is_wanted(const struct access_log *self, const struct log_call *c, uint64_t us)
{
  if (self->only == ONLY_ALL || (self->slow > 0 && us / 1000 >= self->slow))
    return true;
  return self->only == ONLY_ERRORS && c->ending != ENDED_RESULT;
}

static void
log_finish(const struct egw_at *at, struct egw_call *call)
{
  const struct access_log *self = at->self;
  struct log_worker *w = at->mine;
  const struct log_call *c = at->state;
  uint64_t us = took_us(call), lost = 0;
  struct line l = { .json = self->format == FORMAT_JSON };

  if (!is_wanted(self, c, us))
    return;
  egw_count(at, METRIC_LINES, 1);
  if (self->sink == NULL) {
    make_line(&l, call, c, us);
    if (has_story(self, call))
      put_story(&l, call);
    egw_log(EGW_INFO, "access", "%s", l.text + 1);
    return;
  }
  put_time(&l);
  make_line(&l, call, c, us);
  if (has_story(self, call))
    put_story(&l, call);
  if (l.len > LINE_ROOM - 3)
    l.len = LINE_ROOM - 3;
  put(&l, l.json ? "}\n" : "\n");
  if (worker_put(w, l.text, l.len) == 0)
    lost = 1;
  lost += sink_lost(self->sink);
  if (lost > 0)
    egw_count(at, METRIC_LOST, (int64_t)lost);
}

static int
log_worker_start(const void *mine, void *worker_state, struct egw_worker *worker)
{
  const struct access_log *self = mine;
  struct log_worker *w = worker_state;

  w->worker = worker;
  w->timer.fn = worker_timer;
  w->timer.arg = w;
  if (self->sink == NULL)
    return 0;
  if (sink_join(self->sink) < 0)
    return -1;
  w->sink = self->sink;
  return 0;
}

static void
log_worker_stop(const void *mine, void *worker_state, struct egw_worker *worker)
{
  struct log_worker *w = worker_state;

  (void)mine;
  (void)worker;
  if (w->sink == NULL)
    return;
  worker_flush(w);
  free(w->chunk);
  w->chunk = NULL;
  sink_leave(w->sink);
}

static int
log_configure(void *mine, struct egw_conf *section)
{
  struct access_log *self = mine;
  int r = 0;

  if (self->file != NULL && self->file[0] != '/')
    r = egw_conf_error(section, "file", "must be an absolute path");
  if (self->file == NULL && self->format == FORMAT_JSON)
    r = egw_conf_error(section, "format", "is for a file only; the gateway's log has its own");
  if (self->only == ONLY_SLOW && self->slow == 0)
    r = egw_conf_error(section, "only", "is \"slow\": slow must say from what time on");
  if (r == 0 && self->file != NULL) {
    self->sink = sink_new(self->file);
    if (self->sink == NULL)
      r = egw_conf_error(section, NULL, "out of memory");
  }
  return r;
}

static void
log_unconfigure(void *mine)
{
  struct access_log *self = mine;

  sink_free(self->sink);
  self->sink = NULL;
}

/* --- the descriptor ---------------------------------------------------------------------- */

static const char *const format_words[] = { "text", "json", NULL };
static const char *const only_words[] = { "all", "errors", "slow", NULL };

static const struct egw_option options[] = {
  { .name = "file",
    .type = EGW_OPT_STRING,
    .offset = offsetof(struct access_log, file),
    .help = "File the lines are appended to; default: the gateway's log" },
  { .name = "format",
    .type = EGW_OPT_ENUM,
    .offset = offsetof(struct access_log, format),
    .fallback = "text",
    .choices = format_words,
    .help = "Form of a line in the file" },
  { .name = "only",
    .type = EGW_OPT_ENUM,
    .offset = offsetof(struct access_log, only),
    .fallback = "all",
    .choices = only_words,
    .help = "Which calls are logged" },
  { .name = "slow",
    .type = EGW_OPT_DURATION,
    .offset = offsetof(struct access_log, slow),
    .fallback = "0",
    .help = "Calls that took so long are logged whatever only says; 0: none" },
  { .name = "explain",
    .type = EGW_OPT_BOOL,
    .offset = offsetof(struct access_log, explain),
    .fallback = "false",
    .help = "Each line has the story of its call" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_LINES] = { .name = "lines", .kind = EGW_METRIC_COUNTER, .help = "Lines made" },
  [METRIC_LOST] = { .name = "lost", .kind = EGW_METRIC_COUNTER,
                    .help = "Lines lost because the file could not take them" },
  EGW_METRIC_TABLE_END
};

static const struct egw_middleware access_log = {
  .plugin = {
    EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
    .name = "log",
    .version = EGW_VERSION,
    .summary = "Access log: one line for each call",
    .options = options,
    .metrics = metrics,
    .instance_size = sizeof(struct access_log),
    .worker_size = sizeof(struct log_worker),
    .configure = log_configure,
    .unconfigure = log_unconfigure,
    .worker_start = log_worker_start,
    .worker_stop = log_worker_stop,
  },
  .call_size = sizeof(struct log_call),
  .kinds = EGW_KIND_ALL,
  .need = EGW_NEED_NONE,
  .request = log_request,
  .reply = log_reply,
  .finish = log_finish,
};

EGW_REGISTER(access_log)
