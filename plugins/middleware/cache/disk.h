/* SPDX-License-Identifier: MIT */
/* The disk tier: the book (book.h), with threads of its own, so that no loop ever waits for
 * a disk.
 *
 * Lookups go to BOOK_READERS threads by a bounded queue; what has no place there is a miss.
 * Writes are batched by one more thread, some time after the answer was given; what has no
 * place there is dropped. They are threads of this tier's, not libuv's: those look up names
 * too, which a disk that hangs must not stop.
 *
 * A folder is opened once in a process, whoever names it: workers, several networks, and
 * later generations of the configuration share it. While another process has it, it is
 * tried again every few seconds. If it is refused it stays off. */
#ifndef CACHE_DISK_H
#define CACHE_DISK_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/loop.h>

struct disk_desk;
struct disk_read;

/* What has happened since the last time it was asked for. */
struct disk_counts {
  int64_t stored, dropped, evicted, errors;
  int64_t bytes, entries;       /* changes */
};

/* Gets the value (taken; NULL: it is not there). On the worker. */
typedef void disk_fn(void *arg, struct egw_buf *value);

/* The desk of a worker at a folder, which is opened by the first one. NULL: memory is
 * short. */
struct disk_desk *disk_desk_open(const char *folder, uint64_t size, struct egw_worker *worker);

/* On the worker: lookups in flight are forgotten. The last one of a folder writes what is
 * queued and closes it. */
void disk_desk_close(struct disk_desk *desk);

/* After the worker's end: mail to it may be under way until then. NULL is allowed. */
void disk_desk_free(struct disk_desk *desk);

/* Looks `key` (copied) up. fn is called once, never from within this call. NULL: a miss at
 * once, fn is not called. The handle is valid until then. */
struct disk_read *disk_get(struct disk_desk *desk, struct egw_slice key, disk_fn *fn,
                           void *arg);

/* fn is not called. */
void disk_cancel(struct disk_read *read);

/* Queues an answer to be written; key is copied, value borrowed. What is dropped is
 * counted. */
void disk_put(struct disk_desk *desk, struct egw_slice key, struct egw_buf *value);

/* Takes everything out, soon; nothing of what is there now is found from now on. */
void disk_clear(struct disk_desk *desk);

/* Any worker. */
void disk_take_counts(struct disk_desk *desk, struct disk_counts *out);

/* Whether the folder is open. */
bool disk_is_open(struct disk_desk *desk);

#endif
