/* SPDX-License-Identifier: MIT */
/* The disk tier: its threads, and what they take from the queues. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ethrpc-gw/plugin.h>
#include "disk-parts.h"

#define READS_AT_ONCE 32u       /* by one reader */
#define QUEUE_BYTES (32u << 20) /* answers waiting to be written */
#define BATCH_MAX 512u
#define WRITE_OVERHEAD 128u     /* of an answer that waits, roughly */
#define LINGER_MS 100u          /* for a batch to fill */
#define RETRY_MS 5000u          /* while another process has the folder */
#define SYNC_MS 5000u           /* after the last batch */
#define LIFE_MS 60000u          /* who lives so long was not ended by what is in the file */

/* --- reading ----------------------------------------------------------------------------- */

void
disk_read_free(struct disk_read *read)
{
  egw_buf_unref(read->value);
  free(read);
}

static void
on_mail(void *arg)
{
  struct disk_desk *desk = arg;
  struct list done, *node;

  list_init(&done);
  if (desk->closed)
    return;
  pthread_mutex_lock(&desk->disk->lock);
  list_splice(&done, &desk->done);
  desk->posted = false;
  pthread_mutex_unlock(&desk->disk->lock);
  while ((node = list_shift(&done)) != NULL) {
    struct disk_read *read = container_of(node, struct disk_read, node);
    struct egw_buf *value = read->value;

    read->value = NULL;
    if (read->fn != NULL)
      read->fn(read->arg, value);
    else
      egw_buf_unref(value);
    disk_read_free(read);
  }
}

/* Under the lock, so that the desk can't be closed in between. */
static void
hand_back(struct disk *disk, struct disk_read *read)
{
  struct disk_desk *desk = read->desk;

  desk->busy--;
  if (desk->closed) {
    disk_read_free(read);
    pthread_cond_broadcast(&disk->returned);
    return;
  }
  list_append(&desk->done, &read->node);
  if (!desk->posted)
    desk->posted = egw_post(desk->worker, on_mail, desk) == 0;
}

/* A writer's order; the caller has the lock. false: dropped. */
bool
disk_queue_write(struct disk *disk, struct egw_slice key, struct egw_buf *value)
{
  size_t bytes = WRITE_OVERHEAD + key.len + (value == NULL ? 0 : egw_buf_slice(value).len);
  struct disk_write *w;

  if (disk->write_bytes + bytes > QUEUE_BYTES)
    return false;
  w = malloc(sizeof(*w) + key.len);
  if (w == NULL)
    return false;
  w->value = value == NULL ? NULL : egw_buf_ref(value);
  w->key_len = key.len;
  memcpy(w->key, key.ptr, key.len);
  list_append(&disk->writes, &w->node);
  disk->write_bytes += bytes;
  disk->writes_queued++;
  pthread_cond_signal(&disk->write_wake);
  return true;
}

static void
read_some(struct disk *disk, struct book_reader *reader)
{
  struct disk_read *some[READS_AT_ONCE];
  bool damaged[READS_AT_ONCE];
  unsigned n, i, epoch = disk->epoch;

  for (n = 0; n < READS_AT_ONCE && !list_empty(&disk->reads); n++) {
    some[n] = container_of(list_shift(&disk->reads), struct disk_read, node);
    some[n]->desk->busy++;
    disk->reads_queued--;
    if (disk->reads_queued < BOOK_READERS) {
      n++; /* the other reader shall have some too */
      break;
    }
  }
  pthread_mutex_unlock(&disk->lock);
  for (i = 0; i < n; i++)
    some[i]->value = book_get(reader, (struct egw_slice){ some[i]->key, some[i]->key_len },
                              &damaged[i]);
  pthread_mutex_lock(&disk->lock);
  for (i = 0; i < n; i++) {
    struct disk_read *read = some[i];

    if (damaged[i]) {
      disk->counts.errors++;
      disk_queue_write(disk, (struct egw_slice){ read->key, read->key_len }, NULL);
    }
    if (epoch != disk->epoch) {
      egw_buf_unref(read->value);
      read->value = NULL;
    }
    hand_back(disk, read);
  }
}

static void *
run_reader(void *arg)
{
  struct disk *disk = arg;
  struct book_reader *reader = NULL;

  pthread_mutex_lock(&disk->lock);
  while (!disk->stopping) {
    if (list_empty(&disk->reads)) {
      pthread_cond_wait(&disk->read_wake, &disk->lock);
      continue;
    }
    /* Lookups are queued only while the book is open. */
    if (reader == NULL)
      reader = book_reader_new(disk->book);
    if (reader != NULL) {
      read_some(disk, reader);
    } else {
      struct disk_read *read = container_of(list_shift(&disk->reads), struct disk_read, node);

      disk->reads_queued--;
      read->desk->busy++;
      hand_back(disk, read);
    }
  }
  pthread_mutex_unlock(&disk->lock);
  book_reader_free(reader);
  return NULL;
}

/* --- writing ----------------------------------------------------------------------------- */

static uint64_t
now_ms(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct timespec
in_ms(unsigned ms)
{
  struct timespec until;

  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += (long)(ms % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  return until;
}

static void
wait_ms(struct disk *disk, unsigned ms)
{
  struct timespec until = in_ms(ms);

  pthread_cond_timedwait(&disk->write_wake, &disk->lock, &until);
}

/* Each answer that comes wakes it. */
static void
linger(struct disk *disk)
{
  struct timespec until = in_ms(LINGER_MS);

  while (!disk->stopping && !disk->clear && disk->write_bytes < BATCH_BYTES / 2 &&
         disk->writes_queued < BATCH_MAX)
    if (pthread_cond_timedwait(&disk->write_wake, &disk->lock, &until) != 0)
      break;
}

static size_t
write_size(const struct disk_write *w)
{
  return WRITE_OVERHEAD + w->key_len + (w->value == NULL ? 0 : egw_buf_slice(w->value).len);
}

static void
drop_write(struct disk *disk, struct disk_write *w)
{
  disk->write_bytes -= write_size(w);
  egw_buf_unref(w->value);
  free(w);
}

void
disk_drop_writes(struct disk *disk)
{
  struct list *node;

  while ((node = list_shift(&disk->writes)) != NULL) {
    disk->writes_queued--;
    drop_write(disk, container_of(node, struct disk_write, node));
  }
}

static void
note_opening(struct disk *disk, struct book *book, enum book_status status, const char *why)
{
  enum phase before = disk->phase;
  uint64_t bytes, entries;

  if (book != NULL) {
    disk->book = book;
    disk->phase = PHASE_OPEN;
    disk->opened_ms = now_ms();
    book_size(book, &bytes, &entries);
    disk->counts.bytes = (int64_t)bytes;
    disk->counts.entries = (int64_t)entries;
    disk->told = false;
    egw_log(EGW_INFO, "cache", "disk: %s is open, %llu answers", disk->folder,
            (unsigned long long)entries);
    return;
  }
  disk->phase = status == BOOK_BUSY ? PHASE_BUSY : PHASE_OFF;
  if (before == disk->phase && disk->told)
    return;
  disk->told = true;
  disk->counts.errors++;
  egw_log(EGW_ERROR, "cache", "disk: %s is not used: %s%s", disk->folder, why,
          status == BOOK_BUSY ? "; tried again until it is free" : "");
}

void
disk_try_open(struct disk *disk)
{
  enum book_status status;
  char why[160];
  struct book *book = book_open(disk->folder, disk->size, &status, why, sizeof why);

  pthread_mutex_lock(&disk->lock);
  note_opening(disk, book, status, why);
  pthread_mutex_unlock(&disk->lock);
}

static unsigned
take_batch(struct disk *disk, struct disk_write *batch[BATCH_MAX])
{
  size_t bytes = 0, most = disk->size / 16 < BATCH_BYTES ? disk->size / 16 : BATCH_BYTES;
  unsigned n = 0;

  while (n < BATCH_MAX && bytes < most && !list_empty(&disk->writes)) {
    struct disk_write *w = container_of(list_shift(&disk->writes), struct disk_write, node);

    bytes += write_size(w);
    batch[n++] = w;
  }
  disk->writes_queued -= n;
  return n;
}

/* A failure is logged when it begins. */
static void
note_result(struct disk *disk, bool fine, const struct book_result *result)
{
  uint64_t bytes, entries;

  disk->counts.stored += result->stored;
  disk->counts.dropped += result->dropped;
  disk->counts.evicted += result->evicted;
  book_size(disk->book, &bytes, &entries);
  disk->counts.bytes = (int64_t)bytes;
  disk->counts.entries = (int64_t)entries;
  disk->unsynced = true;
  if (!fine) {
    disk->counts.errors++;
    if (!disk->told)
      egw_log(EGW_ERROR, "cache", "disk: %s can't be written; is there room?", disk->folder);
  }
  disk->told = !fine;
}

static void
write_some(struct disk *disk)
{
  struct disk_write *batch[BATCH_MAX];
  struct book_entry entries[BATCH_MAX];
  struct book_result result = { 0 };
  unsigned n = take_batch(disk, batch), i;
  bool fine;

  pthread_mutex_unlock(&disk->lock);
  for (i = 0; i < n; i++) {
    entries[i].key = (struct egw_slice){ batch[i]->key, batch[i]->key_len };
    entries[i].value = batch[i]->value == NULL ? (struct egw_slice){ NULL, 0 }
                                               : egw_buf_slice(batch[i]->value);
  }
  fine = book_write(disk->book, entries, n, &result) == 0;
  pthread_mutex_lock(&disk->lock);
  for (i = 0; i < n; i++)
    drop_write(disk, batch[i]);
  note_result(disk, fine, &result);
}

static void
clear_all(struct disk *disk)
{
  struct book_result none = { 0 };
  bool fine;

  pthread_mutex_unlock(&disk->lock);
  fine = book_clear(disk->book) == 0;
  pthread_mutex_lock(&disk->lock);
  disk->clear = false;
  note_result(disk, fine, &none);
}

/* Nothing is to be written: waits for something. */
static void
rest(struct disk *disk)
{
  if (disk->phase == PHASE_BUSY) {
    wait_ms(disk, RETRY_MS);
    if (disk->stopping)
      return;
    pthread_mutex_unlock(&disk->lock);
    disk_try_open(disk);
    pthread_mutex_lock(&disk->lock);
  } else if (disk->unsynced) {
    wait_ms(disk, SYNC_MS);
    if (!list_empty(&disk->writes) || disk->clear)
      return;
    disk->unsynced = false;
    pthread_mutex_unlock(&disk->lock);
    book_sync(disk->book);
    pthread_mutex_lock(&disk->lock);
  } else if (disk->phase == PHASE_OPEN && !disk->lived) {
    disk->lived = now_ms() >= disk->opened_ms + LIFE_MS;
    if (disk->lived)
      book_lived(disk->book);
    else
      wait_ms(disk, LIFE_MS / 4);
  } else {
    pthread_cond_wait(&disk->write_wake, &disk->lock);
  }
}

static void *
run_writer(void *arg)
{
  struct disk *disk = arg;

  pthread_mutex_lock(&disk->lock);
  while (!disk->stopping || !list_empty(&disk->writes) || disk->clear) {
    if (disk->clear) {
      clear_all(disk);
    } else if (list_empty(&disk->writes)) {
      rest(disk);
    } else {
      linger(disk);
      if (!disk->clear)
        write_some(disk);
    }
  }
  pthread_mutex_unlock(&disk->lock);
  return NULL;
}

/* --- threads ----------------------------------------------------------------------------- */

/* No signal is for these threads. */
void
disk_start_threads(struct disk *disk)
{
  sigset_t all, old;
  unsigned i;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  for (i = 0; i < BOOK_READERS + 1; i++) {
    if (pthread_create(&disk->threads[i], NULL, i == 0 ? run_writer : run_reader, disk) != 0)
      break;
    disk->thread_count++;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (i < 2) { /* one to write, one to read */
    disk->phase = PHASE_OFF;
    egw_log(EGW_ERROR, "cache", "disk: no threads can be started");
  }
}
