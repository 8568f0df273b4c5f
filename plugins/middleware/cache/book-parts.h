/* SPDX-License-Identifier: MIT */
/* The inside of the book. Included by book*.c only. */
#ifndef CACHE_BOOK_PARTS_H
#define CACHE_BOOK_PARTS_H

#include <errno.h>
#include <lmdb.h>
#include "book.h"
#include "record.h"

#define BOOK_KEY 16u            /* bytes of the digest: the whole key is compared anyway */

struct book {
  MDB_env *env;
  MDB_dbi entries, index;
  struct record_codec *codec;
  int lock;                     /* descriptor of cache.lock, -1: not open */
  bool locked;
  unsigned page;                /* bytes */
  uint64_t size, limit;         /* of the file; of pages in use */
  uint64_t next;                /* sequence number of the next entry */
  uint64_t bytes, count;        /* in use, as of the last batch */
};

/* --- book.c: bytes of pages in use ------------------------------------------------------- */

uint64_t book_used(struct book *book, MDB_txn *txn);

#endif
