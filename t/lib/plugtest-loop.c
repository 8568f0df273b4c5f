/* SPDX-License-Identifier: MIT */
/* The plugin test host: the functions of loop.h, on a virtual clock. */
#include "plugtest-parts.h"

#include <arpa/inet.h>
#include <poll.h>
#include <time.h>

uint64_t
egw_now_ms(const struct egw_worker *worker)
{
  return worker->host->now_ms;
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

/* There is no libuv here. */
struct uv_loop_s *
egw_worker_uv(struct egw_worker *worker)
{
  (void)worker;
  return NULL;
}

/* --- mail -------------------------------------------------------------------------------- */

int
egw_post(struct egw_worker *worker, void (*fn)(void *arg), void *arg)
{
  struct plugtest *host = worker->host;
  struct mail *mail = malloc(sizeof *mail);

  if (mail == NULL)
    return -1;
  *mail = (struct mail){ .fn = fn, .arg = arg };
  pthread_mutex_lock(&host->mail_lock);
  *host->mails_end = mail;
  host->mails_end = &mail->next;
  pthread_mutex_unlock(&host->mail_lock);
  atomic_fetch_add(&host->posted, 1);
  return 0;
}

static struct mail *
take_mail(struct plugtest *host)
{
  struct mail *mail;

  pthread_mutex_lock(&host->mail_lock);
  mail = host->mails;
  if (mail != NULL) {
    host->mails = mail->next;
    if (host->mails == NULL)
      host->mails_end = &host->mails;
  }
  pthread_mutex_unlock(&host->mail_lock);
  return mail;
}

bool
plugtest_read_mail(struct plugtest *host)
{
  struct mail *mail = take_mail(host);

  if (mail == NULL)
    return false;
  plugtest_enter(host);
  mail->fn(mail->arg);
  plugtest_leave(host);
  free(mail);
  return true;
}

void
plugtest_drop_mail(struct plugtest *host)
{
  struct mail *mail;

  while ((mail = take_mail(host)) != NULL)
    free(mail);
}

bool
plugtest_wait_post(struct plugtest *host, unsigned most_ms)
{
  for (unsigned waited = 0; waited < most_ms; waited += 5) {
    if (atomic_exchange(&host->posted, 0) != 0) {
      plugtest_run(host);
      return true;
    }
    (void)poll(NULL, 0, 5);
  }
  return false;
}

/* --- timers: host[0] and host[1] link the armed ones, host[2] says when ------------------ */

struct armed {
  void (*fn)(struct egw_timer *timer);
  void *arg;
  struct list node;
  uint64_t due;
};

_Static_assert(sizeof(struct armed) <= sizeof(struct egw_timer),
               "no room in struct egw_timer");

static struct armed *
armed_of(struct egw_timer *timer)
{
  return (struct armed *)(void *)timer;
}

void
egw_timer_start(struct egw_worker *worker, struct egw_timer *timer, uint64_t ms)
{
  struct armed *a = armed_of(timer);

  if (timer->fn == NULL)
    plugtest_fault(worker->host, "egw_timer_start() of a timer without fn");
  if (a->node.next != NULL)
    list_remove(&a->node);
  a->due = worker->host->now_ms + ms;
  list_append(&worker->host->timers, &a->node);
}

void
egw_timer_stop(struct egw_worker *worker, struct egw_timer *timer)
{
  struct armed *a = armed_of(timer);

  (void)worker;
  if (a->node.next != NULL)
    list_remove(&a->node);
}

static struct armed *
first_armed(const struct plugtest *host)
{
  struct armed *best = NULL;
  struct list *node;

  list_for_each(node, &host->timers) {
    struct armed *a = container_of(node, struct armed, node);

    if (best == NULL || a->due < best->due)
      best = a;
  }
  return best;
}

uint64_t
plugtest_timer_due(const struct plugtest *host)
{
  const struct armed *a = first_armed(host);

  return a == NULL ? UINT64_MAX : a->due;
}

bool
plugtest_timer_fire(struct plugtest *host)
{
  struct armed *a = first_armed(host);

  if (a == NULL || a->due > host->now_ms)
    return false;
  list_remove(&a->node);
  plugtest_enter(host);
  a->fn((struct egw_timer *)(void *)a);
  plugtest_leave(host);
  return true;
}

/* --- names ------------------------------------------------------------------------------- */

struct egw_resolve {
  struct egw_timer timer;
  struct egw_worker *worker;
  egw_resolve_fn *fn;
  void *arg;
  struct egw_address address;
  bool found;
};

static void
resolved(struct egw_timer *timer)
{
  struct egw_resolve *r = timer->arg;

  if (r->found)
    r->fn(r->arg, &r->address, 1, NULL);
  else
    r->fn(r->arg, NULL, 0, "unknown host");
  free(r);
}

/* IP literals only; other names are unknown. */
struct egw_resolve *
egw_resolve(struct egw_worker *worker, const char *host, uint16_t port, egw_resolve_fn *fn,
            void *arg)
{
  struct egw_resolve *r = calloc(1, sizeof *r);
  struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

  if (r == NULL)
    return NULL;
  r->worker = worker;
  r->fn = fn;
  r->arg = arg;
  r->timer.fn = resolved;
  r->timer.arg = r;
  if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
    memcpy(r->address.bytes, &v4, sizeof v4);
    r->address.len = sizeof v4;
    r->found = true;
  } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
    memcpy(r->address.bytes, &v6, sizeof v6);
    r->address.len = sizeof v6;
    r->found = true;
  }
  egw_timer_start(worker, &r->timer, 0);
  return r;
}

void
egw_resolve_cancel(struct egw_resolve *handle)
{
  egw_timer_stop(handle->worker, &handle->timer);
  free(handle);
}
