/* SPDX-License-Identifier: MIT */
/* The only cross-thread queue: messages in order of posting, woken by uv_async. */
#include "worker/mailbox.h"

#include <stdlib.h>
#include "worker/worker.h"

struct mail {
  struct mail *next;
  void (*fn)(void *arg);
  void *arg;
};

static struct mail *
take_all(struct egw_worker *worker)
{
  struct mail *first;

  pthread_mutex_lock(&worker->mailbox_lock);
  first = worker->mail_first;
  worker->mail_first = NULL;
  worker->mail_end = &worker->mail_first;
  pthread_mutex_unlock(&worker->mailbox_lock);
  return first;
}

static void
on_async(uv_async_t *async)
{
  struct mail *mail = take_all(async->data);

  while (mail != NULL) {
    struct mail *next = mail->next;

    mail->fn(mail->arg);
    free(mail);
    mail = next;
  }
}

int
mailbox_init(struct egw_worker *worker)
{
  worker->mail_end = &worker->mail_first;
  if (pthread_mutex_init(&worker->mailbox_lock, NULL) != 0)
    return -1;
  worker->mailbox_async.data = worker;
  return uv_async_init(&worker->loop, &worker->mailbox_async, on_async) == 0 ? 0 : -1;
}

void
mailbox_close(struct egw_worker *worker)
{
  pthread_mutex_lock(&worker->mailbox_lock);
  worker->mailbox_closed = true;
  pthread_mutex_unlock(&worker->mailbox_lock);
  if (!uv_is_closing((uv_handle_t *)&worker->mailbox_async))
    uv_close((uv_handle_t *)&worker->mailbox_async, NULL);
}

void
mailbox_free(struct egw_worker *worker)
{
  struct mail *mail = take_all(worker);

  while (mail != NULL) {
    struct mail *next = mail->next;

    free(mail);
    mail = next;
  }
  pthread_mutex_destroy(&worker->mailbox_lock);
}

int
egw_post(struct egw_worker *worker, void (*fn)(void *arg), void *arg)
{
  struct mail *mail = malloc(sizeof(*mail));
  bool closed;

  if (mail == NULL)
    return -1;
  *mail = (struct mail){ .fn = fn, .arg = arg };
  pthread_mutex_lock(&worker->mailbox_lock);
  closed = worker->mailbox_closed;
  if (!closed) {
    *worker->mail_end = mail;
    worker->mail_end = &mail->next;
    /* Under the lock, so that the handle can't be closed in between. */
    uv_async_send(&worker->mailbox_async);
  }
  pthread_mutex_unlock(&worker->mailbox_lock);
  if (closed)
    free(mail);
  return closed ? -1 : 0;
}
