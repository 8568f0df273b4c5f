/* SPDX-License-Identifier: MIT */
/* The book: reading and writing. Opening is in book-open.c.
 *
 * Two tables: "entries" has the records by sequence number, the oldest first, so that
 * writing and taking out touch its two ends only; "index" has the sequence number by the
 * digest of a key. A batch writes a new copy of each page that it touches, which is why
 * both are kept small. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "book-parts.h"

#define STEP 64u                /* entries taken out at once when the map is full */
#define STEPS_MAX 16u
#define SLICE 16u               /* entries written at once then */

/* --- reading ----------------------------------------------------------------------------- */

struct book_reader {
  struct book *book;
  MDB_txn *txn;                 /* reset between reads; NULL: none yet */
};

struct book_reader *
book_reader_new(struct book *book)
{
  struct book_reader *reader = calloc(1, sizeof(*reader));

  if (reader != NULL)
    reader->book = book;
  return reader;
}

void
book_reader_free(struct book_reader *reader)
{
  if (reader == NULL)
    return;
  if (reader->txn != NULL)
    mdb_txn_abort(reader->txn);
  free(reader);
}

static bool
begin_read(struct book_reader *r)
{
  if (r->txn != NULL)
    return mdb_txn_renew(r->txn) == 0;
  return mdb_txn_begin(r->book->env, NULL, MDB_RDONLY, &r->txn) == 0;
}

/* A damaged record is still found, but not believed. */
static struct egw_buf *
read_value(struct book *book, MDB_txn *txn, struct egw_slice key, bool *damaged)
{
  unsigned char digest[RECORD_DIGEST];
  MDB_val k = { BOOK_KEY, digest }, n, v;
  struct egw_slice value;
  int error;

  if (record_digest(key, digest) < 0)
    return NULL;
  error = mdb_get(txn, book->index, &k, &n);
  if (error == MDB_NOTFOUND)
    return NULL;
  if (error == 0)
    error = mdb_get(txn, book->entries, &n, &v);
  *damaged = error != 0 || v.mv_size < BOOK_KEY ||
             !record_read(book->codec,
                          (struct egw_slice){ (const char *)v.mv_data + BOOK_KEY,
                                              v.mv_size - BOOK_KEY },
                          key, &value);
  return *damaged ? NULL : egw_buf_keep(value);
}

struct egw_buf *
book_get(struct book_reader *reader, struct egw_slice key, bool *damaged)
{
  struct egw_buf *value;

  *damaged = false;
  if (!begin_read(reader))
    return NULL;
  value = read_value(reader->book, reader->txn, key, damaged);
  mdb_txn_reset(reader->txn);
  return value;
}

/* --- room -------------------------------------------------------------------------------- */

static uint64_t
pages_of(MDB_txn *txn, MDB_dbi table)
{
  MDB_stat s;

  if (mdb_stat(txn, table, &s) != 0)
    return 0;
  return s.ms_branch_pages + s.ms_leaf_pages + s.ms_overflow_pages;
}

static uint64_t
entries_of(struct book *book, MDB_txn *txn)
{
  MDB_stat s;

  return mdb_stat(txn, book->entries, &s) == 0 ? s.ms_entries : 0;
}

uint64_t
book_used(struct book *book, MDB_txn *txn)
{
  return (pages_of(txn, book->entries) + pages_of(txn, book->index)) * book->page;
}

/* Bytes that an entry takes, in whole pages where it gets pages of its own. */
static uint64_t
cost(const struct book *book, uint64_t record)
{
  return record < book->page / 2 ? record + 128 : (record / book->page + 2) * book->page;
}

/* Neither table has it afterwards, whatever they had before. */
static int
take_out(struct book *book, MDB_txn *txn, void *digest, uint64_t sequence)
{
  MDB_val k = { BOOK_KEY, digest }, n = { sizeof sequence, &sequence };
  int error = mdb_del(txn, book->index, &k, NULL);

  if (error == 0 || error == MDB_NOTFOUND)
    error = mdb_del(txn, book->entries, &n, NULL);
  return error == MDB_NOTFOUND ? 0 : error;
}

static int
take_oldest(struct book *book, MDB_txn *txn)
{
  unsigned char digest[BOOK_KEY];
  uint64_t sequence = 0;
  MDB_cursor *cursor;
  MDB_val k, v;
  int error = mdb_cursor_open(txn, book->entries, &cursor);

  if (error != 0)
    return error;
  error = mdb_cursor_get(cursor, &k, &v, MDB_FIRST);
  if (error == 0 && (k.mv_size != sizeof sequence || v.mv_size < sizeof digest))
    error = MDB_CORRUPTED;
  if (error == 0) {
    memcpy(&sequence, k.mv_data, sizeof sequence);
    memcpy(digest, v.mv_data, sizeof digest);
  }
  mdb_cursor_close(cursor);
  return error != 0 ? error : take_out(book, txn, digest, sequence);
}

/* Takes the oldest entries out until no more than `limit` bytes are in use, at most `most`. */
static int
make_room(struct book *book, MDB_txn *txn, uint64_t limit, unsigned most, unsigned *evicted)
{
  int error = 0;

  while (most-- > 0 && book_used(book, txn) > limit) {
    error = take_oldest(book, txn);
    if (error != 0)
      break;
    ++*evicted;
  }
  return error == MDB_NOTFOUND ? 0 : error;
}

bool
book_fits(uint64_t size, size_t key_len, size_t value_len)
{
  size_t record = record_size(key_len, value_len);

  return record != 0 && record <= size / 32;
}

/* --- writing ----------------------------------------------------------------------------- */

static int
put(struct book *book, MDB_txn *txn, const struct book_entry *e, void *digest)
{
  uint64_t sequence = book->next;
  MDB_val k = { BOOK_KEY, digest }, n = { sizeof sequence, &sequence }, v = { 0, NULL };
  int error = mdb_put(txn, book->index, &k, &n, MDB_NOOVERWRITE);

  if (error != 0)
    return error;
  n = (MDB_val){ sizeof sequence, &sequence };
  v.mv_size = BOOK_KEY + record_size(e->key.len, e->value.len);
  error = mdb_put(txn, book->entries, &n, &v, MDB_APPEND | MDB_RESERVE);
  if (error != 0)
    return error;
  memcpy(v.mv_data, digest, BOOK_KEY);
  if (record_write(book->codec, (char *)v.mv_data + BOOK_KEY, e->key, e->value) < 0)
    return ENOMEM;
  book->next++;
  return 0;
}

/* A damaged entry, or one that is no longer true. */
static int
remove_one(struct book *book, MDB_txn *txn, void *digest)
{
  MDB_val k = { BOOK_KEY, digest }, n;
  uint64_t sequence = 0;
  int error = mdb_get(txn, book->index, &k, &n);

  if (error != 0)
    return error == MDB_NOTFOUND ? 0 : error;
  if (n.mv_size == sizeof sequence)
    memcpy(&sequence, n.mv_data, sizeof sequence);
  return take_out(book, txn, digest, sequence);
}

static int
write_one(struct book *book, MDB_txn *txn, const struct book_entry *e,
          struct book_result *result)
{
  unsigned char digest[RECORD_DIGEST];
  int error;

  if (record_digest(e->key, digest) < 0)
    return ENOMEM;
  if (e->value.ptr == NULL)
    return remove_one(book, txn, digest);
  error = put(book, txn, e, digest);
  if (error == MDB_KEYEXIST)
    return 0;
  if (error == 0)
    result->stored++;
  return error;
}

static int
write_all(struct book *book, MDB_txn *txn, const struct book_entry *entries, unsigned count,
          struct book_result *done)
{
  uint64_t need = 0;
  unsigned i;
  int error;

  for (i = 0; i < count; i++)
    need += cost(book, record_size(entries[i].key.len, entries[i].value.len));
  error = make_room(book, txn, book->limit > need ? book->limit - need : 0, UINT_MAX,
                    &done->evicted);
  for (i = 0; i < count && error == 0; i++)
    error = write_one(book, txn, &entries[i], done);
  return error;
}

/* One attempt: writes entries, or, without any, takes the STEP oldest out. What it did is
 * in *result only if it succeeds. */
static int
attempt(struct book *book, const struct book_entry *entries, unsigned count,
        struct book_result *result)
{
  struct book_result done = { 0 };
  uint64_t next = book->next, bytes, n;
  MDB_txn *txn;
  int error = mdb_txn_begin(book->env, NULL, 0, &txn);

  if (error != 0)
    return error;
  if (count > 0)
    error = write_all(book, txn, entries, count, &done);
  else
    error = make_room(book, txn, 0, STEP, &done.evicted);
  bytes = book_used(book, txn);
  n = entries_of(book, txn);
  if (error == 0)
    error = mdb_txn_commit(txn);
  else
    mdb_txn_abort(txn);
  if (error != 0) {
    book->next = next;
    return error;
  }
  book->bytes = bytes;
  book->count = n;
  result->stored += done.stored;
  result->evicted += done.evicted;
  return 0;
}

/* Few entries, with the map full: pages that were freed a moment ago can't be used again
 * yet, or the free ones do not lie together. */
static int
press(struct book *book, const struct book_entry *entries, unsigned count,
      struct book_result *result)
{
  unsigned steps = 0;
  int error = attempt(book, entries, count, result);

  while (error == MDB_MAP_FULL && steps++ < STEPS_MAX) {
    error = attempt(book, NULL, 0, result);
    if (error == 0)
      error = attempt(book, entries, count, result);
  }
  return error;
}

int
book_write(struct book *book, const struct book_entry *entries, unsigned count,
           struct book_result *result)
{
  int error = attempt(book, entries, count, result);
  unsigned at, n;

  if (error != MDB_MAP_FULL) {
    if (error != 0)
      result->dropped += count;
    return error == 0 ? 0 : -1;
  }
  for (at = 0; at < count; at += n) {
    n = count - at < SLICE ? count - at : SLICE;
    error = press(book, entries + at, n, result);
    if (error != 0)
      result->dropped += n;
    if (error != 0 && error != MDB_MAP_FULL)
      return -1;
  }
  return 0;
}

int
book_clear(struct book *book)
{
  MDB_txn *txn;
  int error = mdb_txn_begin(book->env, NULL, 0, &txn);

  if (error != 0)
    return -1;
  error = mdb_drop(txn, book->entries, 0);
  if (error == 0)
    error = mdb_drop(txn, book->index, 0);
  if (error != 0) {
    mdb_txn_abort(txn);
    return -1;
  }
  if (mdb_txn_commit(txn) != 0)
    return -1;
  book->bytes = book->count = 0;
  return 0;
}

void
book_sync(struct book *book)
{
  (void)mdb_env_sync(book->env, 1);
}

void
book_size(const struct book *book, uint64_t *bytes, uint64_t *entries)
{
  *bytes = book->bytes;
  *entries = book->count;
}
