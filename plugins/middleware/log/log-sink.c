/* SPDX-License-Identifier: MIT */
/* Writes chunks of lines to the access log's file, in a thread of its own, so that a slow disk
 * holds no worker. The file may be moved away at any time (log rotation), or be a pipe that
 * nobody reads. */
#include "log-sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ethrpc-gw/plugin.h>

#define WAITING_MAX 256u          /* chunks that wait for the writer */
#define STUCK_MS 2000             /* at the end: how long a full pipe is waited for */

struct sink {
  const char *path;
  pthread_mutex_t lock;
  pthread_cond_t more;
  pthread_t thread;
  unsigned users;                 /* workers; the thread runs while there are any */
  bool stopping;
  struct chunk *first, **end;
  unsigned waiting;
  atomic_uint_fast64_t lost;      /* lines not yet counted as lost */
  /* the writer's: */
  int fd;
  dev_t dev;
  ino_t ino;
  bool torn;                      /* the last line in the file is not whole */
  bool failing;                   /* already said so */
  int stuck_ms;                   /* at the end: how long nothing could be written */
};

static int
sink_open(struct sink *sink)
{
  struct stat st;
  int fd = open(sink->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                0640);

  if (fd < 0 || fstat(fd, &st) < 0) {
    int saved = errno;

    if (fd >= 0)
      (void)close(fd);
    errno = saved;
    return -1;
  }
  if (sink->fd >= 0)
    (void)close(sink->fd);
  sink->fd = fd;
  sink->dev = st.st_dev;
  sink->ino = st.st_ino;
  sink->torn = false;
  return 0;
}

/* The file may have been moved away (log rotation). */
static void
sink_follow(struct sink *sink)
{
  struct stat st;

  if (stat(sink->path, &st) == 0 && st.st_dev == sink->dev && st.st_ino == sink->ino)
    return;
  if (sink_open(sink) < 0 && !sink->failing) {
    egw_log(EGW_WARN, "access", "can't reopen the access log: %s", strerror(errno));
    sink->failing = true;
  }
}

static bool
sink_stopping(struct sink *sink)
{
  bool stopping;

  (void)pthread_mutex_lock(&sink->lock);
  stopping = sink->stopping;
  (void)pthread_mutex_unlock(&sink->lock);
  return stopping;
}

/* A pipe may be full: waits, but not for ever once the gateway stops. */
static int
write_some(struct sink *sink, const char *bytes, size_t len, size_t *done)
{
  while (*done < len) {
    ssize_t n = write(sink->fd, bytes + *done, len - *done);
    struct pollfd p = { .fd = sink->fd, .events = POLLOUT };

    if (n > 0) {
      *done += (size_t)n;
      sink->stuck_ms = 0;
    } else if (n < 0 && errno == EAGAIN) {
      if (sink_stopping(sink) && (sink->stuck_ms += 100) > STUCK_MS)
        return -1;
      (void)poll(&p, 1, 100);
    } else if (n < 0 && errno != EINTR) {
      return -1;
    }
  }
  return 0;
}

static void
sink_write(struct sink *sink, const struct chunk *chunk)
{
  size_t done = 0, one = 0;

  sink_follow(sink);
  if (sink->torn && write_some(sink, "\n", 1, &one) == 0)
    sink->torn = false;
  if (!sink->torn && write_some(sink, chunk->bytes, chunk->len, &done) == 0) {
    sink->failing = false;
    return;
  }
  if (!sink->failing)
    egw_log(EGW_WARN, "access", "can't write to the access log: %s", strerror(errno));
  sink->failing = true;
  sink->torn = sink->torn || (done > 0 && chunk->bytes[done - 1] != '\n');
  for (size_t i = 0; i < done; i++)
    one += chunk->bytes[i] == '\n';
  atomic_fetch_add(&sink->lost, chunk->lines > one ? chunk->lines - one : 0);
}

static void *
sink_thread(void *arg)
{
  struct sink *sink = arg;

  (void)pthread_mutex_lock(&sink->lock);
  for (;;) {
    struct chunk *chunk = sink->first;

    if (chunk == NULL && sink->stopping)
      break;
    if (chunk == NULL) {
      (void)pthread_cond_wait(&sink->more, &sink->lock);
      continue;
    }
    sink->first = chunk->next;
    if (sink->first == NULL)
      sink->end = &sink->first;
    sink->waiting--;
    (void)pthread_mutex_unlock(&sink->lock);
    sink_write(sink, chunk);
    free(chunk);
    (void)pthread_mutex_lock(&sink->lock);
  }
  (void)pthread_mutex_unlock(&sink->lock);
  return NULL;
}

void
sink_put(struct sink *sink, struct chunk *chunk)
{
  (void)pthread_mutex_lock(&sink->lock);
  if (sink->waiting < WAITING_MAX) {
    chunk->next = NULL;
    *sink->end = chunk;
    sink->end = &chunk->next;
    sink->waiting++;
    (void)pthread_cond_signal(&sink->more);
    chunk = NULL;
  }
  (void)pthread_mutex_unlock(&sink->lock);
  if (chunk != NULL)
    atomic_fetch_add(&sink->lost, chunk->lines);
  free(chunk);
}

/* Signals are for other threads. 0 or an error number. */
static int
sink_start(struct sink *sink)
{
  sigset_t all, old;
  int error;

  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &old);
  error = pthread_create(&sink->thread, NULL, sink_thread, sink);
  (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
  return error;
}

int
sink_join(struct sink *sink)
{
  int r = 0;

  (void)pthread_mutex_lock(&sink->lock);
  if (sink->users == 0) {
    sink->stopping = false;
    r = sink_open(sink);
    if (r < 0)
      egw_log(EGW_ERROR, "access", "can't open the access log %s: %s", sink->path,
              strerror(errno));
    else if ((r = -sink_start(sink)) < 0)
      egw_log(EGW_ERROR, "access", "can't start the writer of the access log: %s",
              strerror(-r));
  }
  if (r == 0)
    sink->users++;
  (void)pthread_mutex_unlock(&sink->lock);
  return r == 0 ? 0 : -1;
}

void
sink_leave(struct sink *sink)
{
  bool last;

  (void)pthread_mutex_lock(&sink->lock);
  last = --sink->users == 0;
  if (last) {
    sink->stopping = true;
    (void)pthread_cond_signal(&sink->more);
  }
  (void)pthread_mutex_unlock(&sink->lock);
  if (last)
    (void)pthread_join(sink->thread, NULL);
}

struct sink *
sink_new(const char *path)
{
  struct sink *sink = calloc(1, sizeof *sink);

  if (sink == NULL)
    return NULL;
  sink->path = path;
  sink->fd = -1;
  sink->end = &sink->first;
  if (pthread_mutex_init(&sink->lock, NULL) != 0) {
    free(sink);
    return NULL;
  }
  if (pthread_cond_init(&sink->more, NULL) != 0) {
    (void)pthread_mutex_destroy(&sink->lock);
    free(sink);
    return NULL;
  }
  return sink;
}

void
sink_free(struct sink *sink)
{
  if (sink == NULL)
    return;
  if (sink->fd >= 0)
    (void)close(sink->fd);
  (void)pthread_cond_destroy(&sink->more);
  (void)pthread_mutex_destroy(&sink->lock);
  free(sink);
}

uint64_t
sink_lost(struct sink *sink)
{
  if (atomic_load_explicit(&sink->lost, memory_order_relaxed) == 0)
    return 0;
  return atomic_exchange(&sink->lost, 0);
}
