/* SPDX-License-Identifier: MIT */
/* The transport host: loading and options, the worker (loop.h), names, the log. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <ethrpc-gw/json.h>
#include "transport-host-parts.h"

static char refusal[256];

/* Plugins call these too; naming them here makes the linker take them from the library. */
extern const void *const thost_kept[];
const void *const thost_kept[] = {
  (const void *)egw_buf_new,      (const void *)egw_buf_copy,   (const void *)egw_buf_ref,
  (const void *)egw_buf_unref,    (const void *)egw_buf_slice,  (const void *)egw_buf_append,
  (const void *)egw_buf_printf,   (const void *)egw_buf_room,   (const void *)egw_buf_commit,
  (const void *)egw_json_kind,    (const void *)egw_json_member,
  (const void *)egw_json_element, (const void *)egw_json_next,  (const void *)egw_json_string,
  (const void *)egw_json_equals,  (const void *)egw_json_u64,   (const void *)egw_json_quote,
};

void
thost_fault(struct thost *host, const char *fmt, ...)
{
  va_list ap;

  host->faults++;
  printf("# broken rule: ");
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
}

unsigned
thost_faults(const struct thost *host)
{
  return host->faults;
}

/* --- life ---------------------------------------------------------------------------- */

static bool
load(struct thost *host, const char *name)
{
  const char *build = getenv("EGW_BUILD");
  const struct egw_plugin *const *entry;
  char path[1024];

  if (strchr(name, '/') != NULL)
    snprintf(path, sizeof path, "%s", name);
  else
    snprintf(path, sizeof path, "%s/plugins/transport/%s/%s.so",
             build == NULL ? "." : build, name, name);
  host->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (host->handle == NULL) {
    printf("# %s\n", dlerror());
    return false;
  }
  entry = (const struct egw_plugin *const *)dlsym(host->handle, "egw_plugin_entry");
  if (entry == NULL || (*entry)->type != EGW_TYPE_TRANSPORT)
    return false;
  host->transport = (const struct egw_transport *)(const void *)*entry;
  return true;
}

static void
run_posts(uv_async_t *async)
{
  struct egw_worker *w = async->data;
  struct thost_post *p, *next;

  pthread_mutex_lock(&w->lock);
  p = w->posts;
  w->posts = NULL;
  pthread_mutex_unlock(&w->lock);
  for (; p != NULL; p = next) {
    next = p->next;
    p->fn(p->arg);
    free(p);
  }
}

static void
wake(uv_timer_t *timer)
{
  (void)timer;
}

/* It may be there since the timers of this turn ran, and nothing else would end the sleep. */
static void
glance(uv_prepare_t *prepare)
{
  struct egw_worker *w = prepare->data;

  if (w->until != NULL && w->until(w->until_arg))
    uv_stop(&w->loop);
}

/* Of the prepare handles of a loop, the one that was started first runs last. */
static void
start_loop(struct egw_worker *w)
{
  uv_loop_init(&w->loop);
  pthread_mutex_init(&w->lock, NULL);
  uv_async_init(&w->loop, &w->mailbox, run_posts);
  w->mailbox.data = w;
  uv_unref((uv_handle_t *)&w->mailbox);
  uv_timer_init(&w->loop, &w->clock);
  uv_prepare_init(&w->loop, &w->glance);
  w->glance.data = w;
  uv_prepare_start(&w->glance, glance);
  uv_unref((uv_handle_t *)&w->glance);
}

static void
close_loop_handles(struct egw_worker *w)
{
  uv_close((uv_handle_t *)&w->mailbox, NULL);
  uv_close((uv_handle_t *)&w->clock, NULL);
  uv_close((uv_handle_t *)&w->glance, NULL);
}

static bool
start(struct thost *host)
{
  const struct egw_plugin *p = &host->transport->plugin;
  struct egw_conf conf = { "" };

  if (p->configure != NULL && p->configure(host->self, &conf) != 0) {
    snprintf(refusal, sizeof refusal, "%s", conf.error);
    if (p->unconfigure != NULL)
      p->unconfigure(host->self);
    return false;
  }
  if (p->worker_start == NULL || p->worker_start(host->self, host->mine, &host->worker) == 0)
    return true;
  printf("# worker_start failed\n");
  return false;
}

static void
free_host(struct thost *host)
{
  struct thost_alias *a;

  for (size_t i = 0; i < host->option_count; i++)
    free((void *)(uintptr_t)host->lists[i].v);
  for (size_t i = 0; i < host->string_count; i++)
    free(host->strings[i]);
  while ((a = host->aliases) != NULL) {
    host->aliases = a->next;
    free(a->name);
    free(a->addresses);
    free(a);
  }
  free(host->strings);
  free(host->lists);
  free(host->self);
  free(host->mine);
  free(host);
}

const char *
thost_refusal(void)
{
  return refusal;
}

struct thost *
thost_new(const char *name, const char *const *options)
{
  struct thost *host = must(calloc(1, sizeof *host));

  refusal[0] = 0;
  list_init(&host->links);
  if (!load(host, name)) {
    free(host);
    return NULL;
  }
  host->self = must(calloc(1, host->transport->plugin.instance_size + 1));
  host->mine = must(calloc(1, host->transport->plugin.worker_size + 1));
  start_loop(&host->worker);
  if (thost_set_options(host, options) && start(host))
    return host;
  close_loop_handles(&host->worker);
  uv_run(&host->worker.loop, UV_RUN_DEFAULT);
  uv_loop_close(&host->worker.loop);
  free_host(host);
  return NULL;
}

static void
name_handle(uv_handle_t *handle, void *arg)
{
  thost_fault(arg, "a %s handle was left on the loop", uv_handle_type_name(handle->type));
}

unsigned
thost_free(struct thost *host)
{
  const struct egw_plugin *p = &host->transport->plugin;
  unsigned faults;

  while (!list_empty(&host->links))
    thost_close(container_of(host->links.next, struct egw_link, node));
  if (p->worker_stop != NULL)
    p->worker_stop(host->self, host->mine, &host->worker);
  for (int i = 0; i < 50; i++)
    thost_turn(host, 1);
  close_loop_handles(&host->worker);
  thost_turn(host, 0);
  uv_run(&host->worker.loop, UV_RUN_NOWAIT);
  if (uv_loop_close(&host->worker.loop) != 0)
    uv_walk(&host->worker.loop, name_handle, host);
  if (p->unconfigure != NULL)
    p->unconfigure(host->self);
  faults = host->faults;
  pthread_mutex_destroy(&host->worker.lock);
#if !defined(__SANITIZE_ADDRESS__)
  dlclose(host->handle);
#endif
  free_host(host);
  return faults;
}

struct uv_loop_s *
thost_uv(struct thost *host)
{
  return &host->worker.loop;
}

void
thost_turn(struct thost *host, unsigned ms)
{
  struct egw_worker *w = &host->worker;

  if (ms == 0 || uv_is_closing((uv_handle_t *)&w->clock)) {
    uv_run(&w->loop, UV_RUN_NOWAIT);
    return;
  }
  uv_update_time(&w->loop);
  /* Repeated: it may be due before the loop looks for how long it may wait. */
  uv_timer_start(&w->clock, wake, ms, ms);
  uv_run(&w->loop, UV_RUN_ONCE);
  uv_timer_stop(&w->clock);
}

bool
thost_run(struct thost *host, bool (*until)(void *arg), void *arg, unsigned ms)
{
  uint64_t end = uv_hrtime() + (uint64_t)ms * 1000000, now = uv_hrtime();
  bool there;

  host->worker.until = until;
  host->worker.until_arg = arg;
  while (!(there = until(arg)) && now < end) {
    thost_turn(host, (unsigned)((end - now) / 1000000) + 1);
    now = uv_hrtime();
  }
  host->worker.until = NULL;
  return there;
}

/* --- loop.h -------------------------------------------------------------------------- */

uint64_t
egw_now_ms(const struct egw_worker *worker)
{
  return uv_now(&worker->loop);
}

unsigned
egw_worker_index(const struct egw_worker *worker)
{
  (void)worker;
  return 0;
}

unsigned
egw_worker_count(const struct egw_worker *worker)
{
  (void)worker;
  return 1;
}

struct uv_loop_s *
egw_worker_uv(struct egw_worker *worker)
{
  return &worker->loop;
}

int
egw_post(struct egw_worker *worker, void (*fn)(void *arg), void *arg)
{
  struct thost_post *p = must(calloc(1, sizeof *p)), **end;

  p->fn = fn;
  p->arg = arg;
  pthread_mutex_lock(&worker->lock);
  for (end = &worker->posts; *end != NULL; end = &(*end)->next)
    ;
  *end = p;
  pthread_mutex_unlock(&worker->lock);
  uv_async_send(&worker->mailbox);
  return 0;
}

/* host[0] of an egw_timer: its uv_timer_t, while armed. */
static void
free_handle(uv_handle_t *handle)
{
  free(handle);
}

static void
fire_timer(uv_timer_t *handle)
{
  struct egw_timer *timer = handle->data;

  timer->host[0] = NULL;
  uv_close((uv_handle_t *)handle, free_handle);
  timer->fn(timer);
}

void
egw_timer_start(struct egw_worker *worker, struct egw_timer *timer, uint64_t ms)
{
  uv_timer_t *handle = timer->host[0];

  if (handle == NULL) {
    timer->host[0] = handle = must(malloc(sizeof *handle));
    uv_timer_init(&worker->loop, handle);
    handle->data = timer;
  }
  uv_timer_start(handle, fire_timer, ms, 0);
}

void
egw_timer_stop(struct egw_worker *worker, struct egw_timer *timer)
{
  (void)worker;
  if (timer->host[0] == NULL)
    return;
  uv_close(timer->host[0], free_handle);
  timer->host[0] = NULL;
}

/* --- names --------------------------------------------------------------------------- */

struct egw_resolve {
  uv_getaddrinfo_t req;
  uv_timer_t soon;               /* for names of the test's own */
  struct thost *host;
  struct thost_alias *alias;
  uint16_t port;
  egw_resolve_fn *fn;            /* NULL: cancelled */
  void *arg;
};

static struct egw_address
address_of(const char *literal, uint16_t port)
{
  struct egw_address a = { .len = 0 };
  struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

  if (inet_pton(AF_INET, literal, &in.sin_addr) == 1) {
    a.len = sizeof in;
    memcpy(a.bytes, &in, sizeof in);
  } else if (inet_pton(AF_INET6, literal, &in6.sin6_addr) == 1) {
    a.len = sizeof in6;
    memcpy(a.bytes, &in6, sizeof in6);
  }
  return a;
}

static void
free_resolve(uv_handle_t *handle)
{
  free(handle->data);
}

static void
answer_alias(uv_timer_t *timer)
{
  struct egw_resolve *r = timer->data;
  struct egw_address found[8];
  char list[256], *save = NULL, *p;
  size_t n = 0;

  snprintf(list, sizeof list, "%s", r->alias->addresses);
  for (p = strtok_r(list, " ", &save); p != NULL && n < 8; p = strtok_r(NULL, " ", &save))
    found[n++] = address_of(p, r->port);
  if (r->fn != NULL)
    r->fn(r->arg, found, n, n == 0 ? "no such name" : NULL);
  uv_close((uv_handle_t *)timer, free_resolve);
}

static void
answer_lookup(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
  struct egw_resolve *r = req->data;
  struct egw_address found[8];
  size_t n = 0;

  for (struct addrinfo *i = list; i != NULL && n < 8; i = i->ai_next)
    if (i->ai_addrlen <= sizeof found[n].bytes) {
      memcpy(found[n].bytes, i->ai_addr, i->ai_addrlen);
      found[n++].len = i->ai_addrlen;
    }
  if (r->fn != NULL)
    r->fn(r->arg, found, n, n == 0 ? uv_strerror(status) : NULL);
  uv_freeaddrinfo(list);
  free(r);
}

struct egw_resolve *
egw_resolve(struct egw_worker *worker, const char *name, uint16_t port, egw_resolve_fn *fn,
            void *arg)
{
  struct thost *host = (struct thost *)(void *)worker;
  struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  struct egw_resolve *r = must(calloc(1, sizeof *r));
  char service[8];

  host->resolved++;
  r->host = host;
  r->port = port;
  r->fn = fn;
  r->arg = arg;
  for (r->alias = host->aliases; r->alias != NULL; r->alias = r->alias->next)
    if (strcmp(r->alias->name, name) == 0)
      break;
  if (r->alias != NULL) {
    uv_timer_init(&worker->loop, &r->soon);
    r->soon.data = r;
    uv_timer_start(&r->soon, answer_alias, 0, 0);
    return r;
  }
  r->req.data = r;
  snprintf(service, sizeof service, "%u", (unsigned)port);
  if (uv_getaddrinfo(&worker->loop, &r->req, answer_lookup, name, service, &hints) != 0)
    abort();
  return r;
}

void
egw_resolve_cancel(struct egw_resolve *handle)
{
  handle->fn = NULL;
}

void
thost_name(struct thost *host, const char *name, const char *addresses)
{
  struct thost_alias *a;

  for (a = host->aliases; a != NULL && strcmp(a->name, name) != 0; a = a->next)
    ;
  if (a == NULL) {
    a = must(calloc(1, sizeof *a));
    a->name = must(strdup(name));
    a->next = host->aliases;
    host->aliases = a;
  }
  free(a->addresses);
  a->addresses = must(strdup(addresses));
}

unsigned
thost_resolved(const struct thost *host)
{
  return host->resolved;
}
