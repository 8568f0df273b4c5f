/* SPDX-License-Identifier: MIT */
/* The inside of the disk tier. Included by disk*.c only. */
#ifndef CACHE_DISK_PARTS_H
#define CACHE_DISK_PARTS_H

#include <pthread.h>
#include "base/list.h"
#include "book.h"
#include "disk.h"

#define BATCH_BYTES (8u << 20)  /* of answers written at once */

struct disk_read {
  struct list node;             /* disk->reads, then desk->done */
  struct disk_desk *desk;
  disk_fn *fn;                  /* the worker's; NULL: cancelled */
  void *arg;
  struct egw_buf *value;
  size_t key_len;
  char key[];
};

struct disk_write {
  struct list node;             /* disk->writes */
  struct egw_buf *value;        /* NULL: is to be taken out */
  size_t key_len;
  char key[];
};

enum phase { PHASE_BUSY, PHASE_OPEN, PHASE_OFF };

/* All but the first line is under `lock`. */
struct disk {
  char *folder;
  uint64_t size;
  struct disk *next;            /* under disks_lock, as is refs */
  unsigned refs;
  pthread_mutex_t lock;
  pthread_cond_t read_wake, write_wake, returned;
  struct list reads, writes;
  unsigned reads_queued, writes_queued;
  size_t write_bytes;
  enum phase phase;
  struct book *book;            /* PHASE_OPEN; set once */
  bool stopping, clear, unsynced, told;
  bool lived;                   /* book_lived() was told */
  uint64_t opened_ms;
  unsigned epoch;               /* one more with each clear */
  pthread_t threads[BOOK_READERS + 1];
  unsigned thread_count;
  struct disk_counts counts;
  int64_t bytes_told, entries_told;
};

struct disk_desk {
  struct disk *disk;            /* NULL: closed */
  struct egw_worker *worker;
  struct list done;             /* disk_read */
  unsigned busy;                /* in a reader's hands */
  bool posted, closed;
};

/* --- disk-queue.c: the threads and their queues ------------------------------------------ */

/* The caller has the lock, but for the last two. */

void disk_read_free(struct disk_read *read);

/* An order to the writer; key and value are borrowed, without a value it is to be taken
 * out. false: there is no place for it. */
bool disk_queue_write(struct disk *disk, struct egw_slice key, struct egw_buf *value);

/* Forgets what is queued to be written. */
void disk_drop_writes(struct disk *disk);

/* Opens the book, or says why not. Without the lock: nobody else looks at the book before
 * it is there. */
void disk_try_open(struct disk *disk);

/* Starts the threads; they end when disk->stopping. */
void disk_start_threads(struct disk *disk);

#endif
