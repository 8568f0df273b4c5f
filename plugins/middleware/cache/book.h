/* SPDX-License-Identifier: MIT */
/* The book: answers on disk, in one file of LMDB ("cache.mdb" in a folder).
 *
 * Nothing is read when it is opened but LMDB's own head. LMDB writes new pages beside the
 * old ones and turns to them by one small write at the end, so whoever dies in between, at
 * any moment, leaves the state before or the state after. Pages are flushed before that
 * write (MDB_NOMETASYNC leaves out only the flush behind it): after a loss of power the
 * last batch may be missing, nothing else. Each answer is a record (record.h), checked when
 * it is read: should the disk give back other bytes than were written, that is a miss.
 *
 * The file is at most as large as its map. What was written first leaves first, when more
 * than seven eighths are in use; the rest is room for the batch and for LMDB's own
 * housekeeping.
 *
 * One process at a time: a lock on "cache.lock". One writer, BOOK_READERS readers; each
 * reader is one thread's. */
#ifndef CACHE_BOOK_H
#define CACHE_BOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#define BOOK_READERS 2u

struct book;
struct book_reader;

enum book_status {
  BOOK_OPEN,
  BOOK_BUSY,                    /* another process has it */
  BOOK_REFUSED                  /* not ours, damaged, or the system's error */
};

/* One answer to be written, or (value missing) to be taken out. */
struct book_entry {
  struct egw_slice key, value;
};

struct book_result {
  unsigned stored, dropped, evicted;
};

/* Opens the book in `folder`, which is made if its parent is there. NULL: *status and `why`
 * (a line without secrets) say why. */
struct book *book_open(const char *folder, uint64_t size, enum book_status *status,
                       char *why, size_t why_size) EGW_MUST_CHECK;

/* This process did not end for what is in the file: it has lived for a while. book_close()
 * says so, too. LMDB believes its own pages, and a damaged one may end the process each time
 * it is met: after BOOK_LIVES lives in a row that ended early the file is put aside as
 * "cache.mdb.bad" and a new one is begun. */
#define BOOK_LIVES 8u
void book_lived(struct book *book);

/* All readers must be gone. */
void book_close(struct book *book);

/* NULL: memory is short. */
struct book_reader *book_reader_new(struct book *book);
void book_reader_free(struct book_reader *reader);

/* A new buffer with the value, or NULL. *damaged: what is there is not what was written.
 * May wait for the disk. */
struct egw_buf *book_get(struct book_reader *reader, struct egw_slice key, bool *damaged);

/* Writes a batch: all of it or nothing is there afterwards. An entry that is there already
 * stays. -1: the file can't be written. The writer's thread. */
int book_write(struct book *book, const struct book_entry *entries, unsigned count,
               struct book_result *result);

/* Takes everything out. -1: the file can't be written. The writer's thread. */
int book_clear(struct book *book);

/* Flushes what the system may still hold back. */
void book_sync(struct book *book);

/* Bytes of pages in use, and entries, after the last batch. The writer's thread. */
void book_size(const struct book *book, uint64_t *bytes, uint64_t *entries);

/* Whether an entry of so many bytes is ever kept. */
bool book_fits(uint64_t size, size_t key_len, size_t value_len);

#endif
