/* SPDX-License-Identifier: MIT */
/* The disk tier: folders, and the desks of the workers at them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "disk-parts.h"

#define READS_MAX 1024u         /* lookups queued */

/* The folders that are open: one process may open a file of LMDB only once. */
static pthread_mutex_t disks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct disk *disks;

/* --- folders ----------------------------------------------------------------------------- */

static void
init_conds(struct disk *disk)
{
  pthread_condattr_t attr;

  /* None of these can fail with these arguments. */
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&disk->read_wake, &attr);
  pthread_cond_init(&disk->write_wake, &attr);
  pthread_cond_init(&disk->returned, &attr);
  pthread_condattr_destroy(&attr);
  pthread_mutex_init(&disk->lock, NULL);
}

static struct disk *
open_disk(const char *folder, uint64_t size)
{
  struct disk *disk = calloc(1, sizeof(*disk));

  if (disk == NULL)
    return NULL;
  disk->folder = strdup(folder);
  if (disk->folder == NULL) {
    free(disk);
    return NULL;
  }
  disk->size = size;
  list_init(&disk->reads);
  list_init(&disk->writes);
  init_conds(disk);
  disk_try_open(disk);
  if (disk->phase != PHASE_OFF)
    disk_start_threads(disk);
  return disk;
}

static void
close_disk(struct disk *disk)
{
  unsigned i;

  pthread_mutex_lock(&disk->lock);
  disk->stopping = true;
  pthread_cond_broadcast(&disk->read_wake);
  pthread_cond_broadcast(&disk->write_wake);
  pthread_mutex_unlock(&disk->lock);
  for (i = 0; i < disk->thread_count; i++)
    pthread_join(disk->threads[i], NULL);
  disk_drop_writes(disk);
  if (disk->book != NULL) {
    book_sync(disk->book);
    book_close(disk->book);
  }
  pthread_mutex_destroy(&disk->lock);
  pthread_cond_destroy(&disk->read_wake);
  pthread_cond_destroy(&disk->write_wake);
  pthread_cond_destroy(&disk->returned);
  free(disk->folder);
  free(disk);
}

static struct disk *
get_disk(const char *name, uint64_t size)
{
  char real[PATH_MAX];
  const char *folder;
  struct disk *disk;

  (void)mkdir(name, 0700); /* or it has no name to compare; book_open() says what is wrong */
  folder = realpath(name, real) != NULL ? real : name;
  pthread_mutex_lock(&disks_lock);
  for (disk = disks; disk != NULL; disk = disk->next)
    if (strcmp(disk->folder, folder) == 0)
      break;
  if (disk == NULL) {
    disk = open_disk(folder, size);
    if (disk != NULL) {
      disk->next = disks;
      disks = disk;
    }
  }
  if (disk != NULL)
    disk->refs++;
  pthread_mutex_unlock(&disks_lock);
  return disk;
}

static void
put_disk(struct disk *disk)
{
  struct disk **at = &disks;

  pthread_mutex_lock(&disks_lock);
  if (--disk->refs == 0) {
    while (*at != disk)
      at = &(*at)->next;
    *at = disk->next;
    close_disk(disk); /* under the lock: who opens it next waits until it is closed */
  }
  pthread_mutex_unlock(&disks_lock);
}

/* --- desks ------------------------------------------------------------------------------- */

struct disk_desk *
disk_desk_open(const char *folder, uint64_t size, struct egw_worker *worker)
{
  struct disk_desk *desk = calloc(1, sizeof(*desk));

  if (desk == NULL)
    return NULL;
  list_init(&desk->done);
  desk->worker = worker;
  desk->disk = get_disk(folder, size);
  if (desk->disk == NULL) {
    free(desk);
    return NULL;
  }
  return desk;
}

void
disk_desk_close(struct disk_desk *desk)
{
  struct disk *disk = desk->disk;
  struct list *node, *tmp;

  pthread_mutex_lock(&disk->lock);
  desk->closed = true;
  list_for_each_safe(node, tmp, &disk->reads) {
    struct disk_read *read = container_of(node, struct disk_read, node);

    if (read->desk != desk)
      continue;
    list_remove(node);
    disk->reads_queued--;
    disk_read_free(read);
  }
  while (desk->busy > 0)
    pthread_cond_wait(&disk->returned, &disk->lock);
  while ((node = list_shift(&desk->done)) != NULL)
    disk_read_free(container_of(node, struct disk_read, node));
  pthread_mutex_unlock(&disk->lock);
  desk->disk = NULL;
  put_disk(disk);
}

void
disk_desk_free(struct disk_desk *desk)
{
  free(desk);
}

struct disk_read *
disk_get(struct disk_desk *desk, struct egw_slice key, disk_fn *fn, void *arg)
{
  struct disk *disk = desk->disk;
  struct disk_read *read = malloc(sizeof(*read) + key.len);
  bool taken;

  if (read == NULL)
    return NULL;
  *read = (struct disk_read){ .desk = desk, .fn = fn, .arg = arg, .key_len = key.len };
  memcpy(read->key, key.ptr, key.len);
  list_init(&read->node);
  pthread_mutex_lock(&disk->lock);
  taken = disk->phase == PHASE_OPEN && !disk->clear && disk->reads_queued < READS_MAX;
  if (taken) {
    list_append(&disk->reads, &read->node);
    disk->reads_queued++;
    pthread_cond_signal(&disk->read_wake);
  }
  pthread_mutex_unlock(&disk->lock);
  if (taken)
    return read;
  free(read);
  return NULL;
}

void
disk_cancel(struct disk_read *read)
{
  read->fn = NULL;
}

void
disk_put(struct disk_desk *desk, struct egw_slice key, struct egw_buf *value)
{
  struct disk *disk = desk->disk;

  pthread_mutex_lock(&disk->lock);
  if (disk->phase == PHASE_OPEN &&
      (!book_fits(disk->size, key.len, egw_buf_slice(value).len) ||
       !disk_queue_write(disk, key, value)))
    disk->counts.dropped++;
  pthread_mutex_unlock(&disk->lock);
}

void
disk_clear(struct disk_desk *desk)
{
  struct disk *disk = desk->disk;

  pthread_mutex_lock(&disk->lock);
  if (disk->phase == PHASE_OPEN) {
    disk->clear = true;
    disk->epoch++;
    disk_drop_writes(disk);
    pthread_cond_signal(&disk->write_wake);
  }
  pthread_mutex_unlock(&disk->lock);
}

void
disk_take_counts(struct disk_desk *desk, struct disk_counts *out)
{
  struct disk *disk = desk->disk;
  struct disk_counts now;

  pthread_mutex_lock(&disk->lock);
  now = *out = disk->counts;
  out->bytes -= disk->bytes_told;
  out->entries -= disk->entries_told;
  disk->bytes_told = now.bytes;
  disk->entries_told = now.entries;
  disk->counts = (struct disk_counts){ .bytes = now.bytes, .entries = now.entries };
  pthread_mutex_unlock(&disk->lock);
}

bool
disk_is_open(struct disk_desk *desk)
{
  bool open;

  pthread_mutex_lock(&desk->disk->lock);
  open = desk->disk->phase == PHASE_OPEN;
  pthread_mutex_unlock(&desk->disk->lock);
  return open;
}
