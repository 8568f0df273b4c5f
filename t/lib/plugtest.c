/* SPDX-License-Identifier: MIT */
/* The plugin test host: loading, configuring, the order of things. */
#include "plugtest-parts.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>
#include <ethrpc-gw/json.h>

struct plugtest *plugtest_host;

void *
plugtest_must(void *p)
{
  if (p == NULL) {
    fprintf(stderr, "out of memory\n");
    abort();
  }
  return p;
}

char *
plugtest_copy(const char *text)
{
  return plugtest_must(strdup(text));
}

void
plugtest_fault(struct plugtest *host, const char *fmt, ...)
{
  va_list ap;

  host->faults++;
  printf("# broken rule: ");
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  printf("\n");
}

/* --- the log ----------------------------------------------------------------------------- */

bool
egw_log_on(enum egw_level level)
{
  (void)level;
  return true;
}

/* Other threads may log, too. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

void
egw_log(enum egw_level level, const char *area, const char *fmt, ...)
{
  char line[1200];
  struct plugtest *host = plugtest_host;
  bool was = plugtest_pause();
  size_t len;
  va_list ap;

  (void)level;
  va_start(ap, fmt);
  (void)vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  len = strlen(area) + strlen(line) + 3;
  pthread_mutex_lock(&log_lock);
  if (host != NULL) {
    if (host->log_len + len + 1 > host->log_room) {
      host->log_room = 2 * host->log_room + len + 1;
      host->log = plugtest_must(realloc(host->log, host->log_room));
    }
    host->log_len +=
        (size_t)snprintf(host->log + host->log_len, len + 1, "%s: %s\n", area, line);
  }
  pthread_mutex_unlock(&log_lock);
  plugtest_resume(was);
}

bool
plugtest_logged(const struct plugtest *host, const char *text)
{
  return host->log != NULL && strstr(host->log, text) != NULL;
}

/* --- configuration ----------------------------------------------------------------------- */

/* The options as they would stand in a file; other parts of it are of no matter. */
static struct conf *
load_options(const char *name, const char *options)
{
  char path[] = "/tmp/plugtest-XXXXXX";
  int fd = mkstemp(path);
  struct conf *conf;

  if (fd < 0 ||
      dprintf(fd,
              "upstreams = ( { url = \"ipc:/x\"; } ); middleware = ( { use = \"%s\"; "
              "name = \"test\";\n%s\n} );\n",
              name, options) < 0) {
    perror(path);
    exit(1);
  }
  close(fd);
  conf = plugtest_must(conf_load(path));
  unlink(path);
  return conf;
}

/* Only what concerns the stage: warnings about the rest of the file are of no interest. */
static void
keep_messages(struct plugtest *host)
{
  char path[] = "/tmp/plugtest-XXXXXX", line[2000];
  int fd = mkstemp(path);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");
  size_t len = 0;

  if (f == NULL) {
    perror(path);
    exit(1);
  }
  conf_print_errors(host->conf, fd);
  rewind(f);
  host->messages = plugtest_copy("");
  while (fgets(line, sizeof line, f) != NULL) {
    const char *text = strstr(line, ": ");

    text = text == NULL ? line : text + 2;
    if (strstr(text, "has no stage \"methods\"") != NULL)
      continue;
    host->messages = plugtest_must(realloc(host->messages, len + strlen(text) + 1));
    memcpy(host->messages + len, text, strlen(text) + 1);
    len += strlen(text);
  }
  fclose(f);
  unlink(path);
}

static void
configure(struct plugtest *host, const char *options)
{
  const struct egw_plugin *head = host->plugin->head;
  struct egw_conf *section;
  int r = 0;

  host->conf = load_options(head->name, options == NULL ? "" : options);
  if (host->conf->network_count == 1 && host->conf->networks[0].stage_count == 1) {
    section = host->conf->networks[0].stages[0].section;
    host->self = plugtest_must(calloc(1, head->instance_size + 1));
    if (head->options != NULL)
      r = egw_conf_read(section, head->options, host->self);
    if (r == 0 && head->configure != NULL)
      r = head->configure(host->self, section);
    host->configured = true;
    if (r < 0 && conf_errors(host->conf) == 0)
      plugtest_fault(host, "configure() failed without a message");
  }
  conf_check_unknown(host->conf);
  keep_messages(host);
  host->refused = r < 0 || conf_errors(host->conf) > 0;
}

static void
start_worker(struct plugtest *host)
{
  const struct egw_plugin *head = host->plugin->head;

  host->mine = plugtest_must(calloc(1, head->worker_size + 1));
  if (head->worker_start != NULL &&
      head->worker_start(host->self, host->mine, &host->worker) < 0)
    host->refused = true;
  else
    host->started = true;
}

struct plugtest *
plugtest_new(const char *so, const char *options)
{
  struct plugtest *host = plugtest_must(calloc(1, sizeof *host));
  char why[1000];

  if (plugtest_host != NULL)
    abort();
  plugtest_host = host;
  list_init(&host->calls);
  list_init(&host->queue);
  list_init(&host->timers);
  host->stage.host = host->worker.host = host;
  host->now_ms = 1000000;
  host->mails_end = &host->mails;
  pthread_mutex_init(&host->mail_lock, NULL);
  if (loader_init(&host->loader, "") < 0)
    abort();
  host->plugin = loader_get(&host->loader, EGW_TYPE_MIDDLEWARE, so, why, sizeof why);
  if (host->plugin == NULL) {
    printf("Bail out! %s\n", why);
    exit(1);
  }
  host->metrics = plugtest_must(calloc(host->plugin->metric_count + 1, sizeof *host->metrics));
  configure(host, options);
  if (!host->refused)
    start_worker(host);
  return host;
}

const char *
plugtest_messages(const struct plugtest *host)
{
  return host->messages;
}

bool
plugtest_refused(const struct plugtest *host)
{
  return host->refused;
}

unsigned
plugtest_faults(const struct plugtest *host)
{
  return host->faults;
}

const struct egw_middleware *
plugtest_plugin(const struct plugtest *host)
{
  return &host->plugin->middleware;
}

int64_t
plugtest_metric(const struct plugtest *host, const char *name)
{
  for (unsigned i = 0; i < host->plugin->metric_count; i++)
    if (strcmp(host->plugin->head->metrics[i].name, name) == 0)
      return host->metrics[i];
  return -1;
}

/* --- the end ----------------------------------------------------------------------------- */

static void
stop_calls(struct plugtest *host)
{
  struct list *node;

  list_for_each(node, &host->calls)
    plugtest_call_cancel(container_of(node, struct egw_call, node), EGW_ABORTED, "shutdown");
  plugtest_run(host);
  list_for_each(node, &host->calls)
    if (container_of(node, struct egw_call, node)->phase != PHASE_OVER)
      plugtest_fault(host, "a call has not ended");
}

static void
free_all(struct plugtest *host)
{
  struct list *node, *tmp;

  list_for_each_safe(node, tmp, &host->calls)
    plugtest_call_free(container_of(node, struct egw_call, node));
  for (unsigned i = 0; i < host->reached_count; i++) {
    free(host->reached[i].method);
    free(host->reached[i].params);
  }
  plugtest_drop_mail(host);
  free(host->reached);
  free(host->script);
  free(host->blocks);
  free(host->notice);
  free(host->upstreams);
  free(host->metrics);
  free(host->messages);
  free(host->self);
  free(host->mine);
  free(host->log);
  conf_free(host->conf);
  loader_free(&host->loader);
  pthread_mutex_destroy(&host->mail_lock);
}

unsigned
plugtest_free(struct plugtest *host)
{
  const struct egw_plugin *head = host->plugin->head;
  unsigned faults;

  stop_calls(host);
  if (host->started && head->worker_stop != NULL)
    head->worker_stop(host->self, host->mine, &host->worker);
  if (!list_empty(&host->timers))
    plugtest_fault(host, "a timer is armed after worker_stop()");
  if (host->configured && head->unconfigure != NULL)
    head->unconfigure(host->self);
  faults = host->faults;
  free_all(host);
  plugtest_host = NULL;
  free(host);
  return faults;
}

/* --- calls ------------------------------------------------------------------------------- */

struct plugtest_call *
plugtest_call(struct plugtest *host, const struct plugtest_spec *spec)
{
  return container_of(plugtest_call_new(host, spec), struct plugtest_call, call);
}

const struct plugtest_end *
plugtest_end(const struct plugtest_call *call)
{
  return &call->call.end;
}

const struct plugtest_end *
plugtest_ask(struct plugtest *host, const struct plugtest_spec *spec)
{
  struct plugtest_call *call = plugtest_call(host, spec);

  plugtest_run(host);
  return plugtest_end(call);
}

bool
plugtest_held(const struct plugtest_call *call)
{
  return call->call.phase == PHASE_HELD_DOWN || call->call.phase == PHASE_HELD_UP;
}

bool
plugtest_below(const struct plugtest_call *call)
{
  return call->call.phase == PHASE_BELOW;
}

void
plugtest_cancel(struct plugtest_call *call)
{
  plugtest_call_cancel(&call->call, EGW_ABORTED, "the client left");
  plugtest_run(call->call.host);
}

void
plugtest_forget(struct plugtest_call *call)
{
  if (!call->call.end.over || call->call.done != NULL)
    abort();
  plugtest_call_free(&call->call);
}

unsigned
plugtest_live(const struct plugtest *host)
{
  struct list *node;
  unsigned n = 0;

  list_for_each(node, &host->calls)
    n += container_of(node, struct egw_call, node)->phase != PHASE_OVER;
  return n;
}

/* --- time -------------------------------------------------------------------------------- */

static void
fire_call_timer(struct egw_call *call)
{
  bool up = call->phase == PHASE_HELD_UP;
  struct egw_at at;
  enum egw_verdict verdict;

  call->timer_due = 0;
  if (!up && call->phase != PHASE_HELD_DOWN) {
    plugtest_fault(call->host, "a call's timer fired while the stage does not hold the call");
    return;
  }
  if (plugtest_plugin(call->host)->timer == NULL) {
    plugtest_fault(call->host, "a call's timer without a callback timer()");
    return;
  }
  plugtest_at(call, &at);
  call->running = true;
  plugtest_enter(call->host);
  verdict = plugtest_plugin(call->host)->timer(&at, call);
  plugtest_leave(call->host);
  call->running = false;
  call->step = STEP_VERDICT;
  plugtest_take(call, verdict, up);
}

/* One thing of this call that is due now. */
static bool
call_due(struct egw_call *call)
{
  uint64_t now = call->host->now_ms;

  if (call->phase == PHASE_OVER || call->phase == PHASE_NEW)
    return false;
  if (call->phase == PHASE_BELOW && call->pending != NULL && !call->pending->never &&
      call->reply_due <= now) {
    plugtest_enqueue(call, STEP_REPLY);
    return true;
  }
  if (call->timer_due != 0 && call->timer_due <= now) {
    fire_call_timer(call);
    return true;
  }
  if (call->deadline <= now && !call->cancelled) {
    plugtest_call_cancel(call, EGW_TIMED_OUT, "the deadline passed");
    return true;
  }
  return false;
}

static bool
one_step(struct plugtest *host)
{
  struct list *node = list_shift(&host->queue);

  if (node != NULL) {
    plugtest_step(container_of(node, struct egw_call, queued));
    return true;
  }
  if (plugtest_read_mail(host) || plugtest_timer_fire(host))
    return true;
  list_for_each(node, &host->calls)
    if (call_due(container_of(node, struct egw_call, node)))
      return true;
  return false;
}

void
plugtest_run(struct plugtest *host)
{
  for (unsigned i = 0; one_step(host); i++)
    if (i > 10000000) {
      plugtest_fault(host, "the plugin never rests");
      return;
    }
}

/* When something is due next. */
static uint64_t
next_due(const struct plugtest *host)
{
  uint64_t due = plugtest_timer_due(host);
  struct list *node;

  list_for_each(node, &host->calls) {
    const struct egw_call *call = container_of(node, struct egw_call, node);

    if (call->phase == PHASE_OVER)
      continue;
    if (call->timer_due != 0 && call->timer_due < due)
      due = call->timer_due;
    if (call->deadline < due)
      due = call->deadline;
    if (call->pending != NULL && !call->pending->never && call->reply_due < due)
      due = call->reply_due;
  }
  return due;
}

void
plugtest_advance(struct plugtest *host, uint64_t ms)
{
  uint64_t end = host->now_ms + ms, due;

  plugtest_run(host);
  while ((due = next_due(host)) <= end) {
    if (due > host->now_ms)
      host->now_ms = due;
    plugtest_run(host);
  }
  host->now_ms = end;
}
