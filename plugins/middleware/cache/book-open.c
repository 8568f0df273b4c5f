/* SPDX-License-Identifier: MIT */
/* The book: opening and closing. A file that is not ours, or does not add up, is left as it
 * is. */
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ethrpc-gw/plugin.h>
#include "book-parts.h"

#define FORMAT "ethrpc-gw cache 1"
#define FLAGS (MDB_NOSUBDIR | MDB_NOTLS | MDB_NOMETASYNC)

struct opening {
  const char *folder;
  enum book_status *status;
  char *why;
  size_t why_size;
};

static bool EGW_PRINTF(3, 4)
refuse(struct opening *o, enum book_status status, const char *fmt, ...)
{
  va_list ap;

  *o->status = status;
  va_start(ap, fmt);
  vsnprintf(o->why, o->why_size, fmt, ap);
  va_end(ap);
  return false;
}

static bool
refuse_error(struct opening *o, const char *what, int error)
{
  return refuse(o, BOOK_REFUSED, "%s: %s", what, mdb_strerror(error));
}

static bool
make_path(struct opening *o, const char *name, char path[PATH_MAX])
{
  int n = snprintf(path, PATH_MAX, "%s/%s", o->folder, name);

  return (n > 0 && n < PATH_MAX) || refuse(o, BOOK_REFUSED, "the folder's name is too long");
}

/* --- the lock ---------------------------------------------------------------------------- */

static bool
take_lock(struct book *book, struct opening *o)
{
  char path[PATH_MAX];

  if (!make_path(o, "cache.lock", path))
    return false;
  if (mkdir(o->folder, 0700) < 0 && errno != EEXIST)
    return refuse_error(o, "the folder can't be made", errno);
  book->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (book->lock < 0)
    return refuse_error(o, "cache.lock can't be opened", errno);
  book->locked = flock(book->lock, LOCK_EX | LOCK_NB) == 0;
  if (book->locked)
    return true;
  if (errno == EWOULDBLOCK)
    return refuse(o, BOOK_BUSY, "another process uses the folder");
  return refuse_error(o, "cache.lock can't be locked", errno);
}

/* --- lives that ended early: counted in cache.lock by its length ------------------------ */

void
book_lived(struct book *book)
{
  if (ftruncate(book->lock, 0) < 0)
    egw_log(EGW_DEBUG, "cache", "disk: cache.lock can't be written");
}

static bool
begin_life(struct book *book, struct opening *o)
{
  char path[PATH_MAX], aside[PATH_MAX];
  struct stat st;

  if (fstat(book->lock, &st) < 0 || ftruncate(book->lock, st.st_size + 1) < 0)
    return refuse_error(o, "cache.lock can't be written", errno);
  if (st.st_size < (off_t)BOOK_LIVES)
    return true;
  if (!make_path(o, "cache.mdb", path) || !make_path(o, "cache.mdb.bad", aside))
    return false;
  egw_log(EGW_ERROR, "cache", "disk: the last %u lives ended early: %s is put aside, as "
          "cache.mdb.bad, and a new file begun", BOOK_LIVES, path);
  if (rename(path, aside) < 0 && errno != ENOENT)
    return refuse_error(o, "cache.mdb can't be renamed", errno);
  book_lived(book);
  return true;
}

/* --- the file ---------------------------------------------------------------------------- */

/* LMDB reads by a map, and a map of what is not there ends the process. */
static bool
is_whole(struct book *book)
{
  MDB_envinfo info;
  MDB_stat stat;
  struct stat st;
  int fd;

  if (mdb_env_info(book->env, &info) != 0 || mdb_env_stat(book->env, &stat) != 0 ||
      mdb_env_get_fd(book->env, &fd) != 0 || fstat(fd, &st) < 0)
    return false;
  book->page = stat.ms_psize;
  return (uint64_t)st.st_size / book->page > info.me_last_pgno;
}

static bool
open_file(struct book *book, struct opening *o)
{
  char path[PATH_MAX];
  int error;

  if (!make_path(o, "cache.mdb", path))
    return false;
  error = mdb_env_create(&book->env);
  if (error == 0)
    error = mdb_env_set_mapsize(book->env, book->size);
  if (error == 0)
    error = mdb_env_set_maxdbs(book->env, 4);
  if (error == 0)
    error = mdb_env_set_maxreaders(book->env, 2 * BOOK_READERS + 2);
  if (error == 0)
    error = mdb_env_open(book->env, path, FLAGS, 0600);
  if (error == MDB_INVALID || error == MDB_VERSION_MISMATCH || error == MDB_CORRUPTED)
    return refuse(o, BOOK_REFUSED, "cache.mdb is damaged, or is something else");
  if (error != 0)
    return refuse_error(o, "cache.mdb can't be opened", error);
  return is_whole(book) || refuse(o, BOOK_REFUSED, "cache.mdb is shorter than it says");
}

/* --- the tables -------------------------------------------------------------------------- */

static int
open_tables(struct book *book, MDB_txn *txn, bool fresh)
{
  unsigned create = fresh ? MDB_CREATE : 0;
  char name[] = "format", format[] = FORMAT;
  MDB_val k = { sizeof name - 1, name }, v = { sizeof format - 1, format }, found;
  MDB_dbi info;
  int error = mdb_dbi_open(txn, "info", create, &info);

  if (error == 0)
    error = mdb_dbi_open(txn, "index", create, &book->index);
  if (error == 0)
    error = mdb_dbi_open(txn, "entries", create | MDB_INTEGERKEY, &book->entries);
  if (error == 0 && fresh)
    error = mdb_put(txn, info, &k, &v, 0);
  if (error == 0)
    error = mdb_get(txn, info, &k, &found);
  if (error == 0 &&
      (found.mv_size != v.mv_size || memcmp(found.mv_data, format, v.mv_size) != 0))
    error = MDB_VERSION_MISMATCH;
  return error;
}

/* Where the numbers go on, and whether both tables are as long. */
static int
look(struct book *book, MDB_txn *txn)
{
  MDB_cursor *cursor;
  MDB_stat index, entries;
  MDB_val k, v;
  int error = mdb_cursor_open(txn, book->entries, &cursor);

  if (error != 0)
    return error;
  error = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
  if (error == 0 && k.mv_size == sizeof book->next) {
    memcpy(&book->next, k.mv_data, sizeof book->next);
    book->next++;
  } else if (error == 0) {
    error = MDB_CORRUPTED;
  } else if (error == MDB_NOTFOUND) {
    error = 0;
  }
  mdb_cursor_close(cursor);
  if (error == 0)
    error = mdb_stat(txn, book->index, &index);
  if (error == 0)
    error = mdb_stat(txn, book->entries, &entries);
  if (error == 0 && index.ms_entries != entries.ms_entries)
    error = MDB_CORRUPTED;
  if (error == 0) {
    book->count = entries.ms_entries;
    book->bytes = book_used(book, txn);
  }
  return error;
}

static bool
open_book(struct book *book, struct opening *o)
{
  MDB_txn *txn = NULL;
  MDB_stat stat;
  int error = mdb_env_stat(book->env, &stat);

  if (error == 0)
    error = mdb_txn_begin(book->env, NULL, 0, &txn);
  if (error == 0)
    error = open_tables(book, txn, stat.ms_entries == 0);
  if (error == 0)
    error = look(book, txn);
  if (error == 0) {
    error = mdb_txn_commit(txn);
    txn = NULL;
  }
  if (txn != NULL)
    mdb_txn_abort(txn);
  if (error == MDB_NOTFOUND || error == MDB_VERSION_MISMATCH || error == MDB_INCOMPATIBLE)
    return refuse(o, BOOK_REFUSED, "cache.mdb is something else, or of another version");
  if (error == MDB_CORRUPTED || error == MDB_PAGE_NOTFOUND)
    return refuse(o, BOOK_REFUSED, "cache.mdb is damaged");
  return error == 0 || refuse_error(o, "cache.mdb can't be read", error);
}

struct book *
book_open(const char *folder, uint64_t size, enum book_status *status, char *why,
          size_t why_size)
{
  struct opening o = { folder, status, why, why_size };
  struct book *book = calloc(1, sizeof(*book));

  *status = BOOK_REFUSED;
  snprintf(why, why_size, "memory is short");
  if (book == NULL)
    return NULL;
  book->lock = -1;
  book->next = 1;
  book->size = size - size % 65536; /* a multiple of any page's size */
  book->limit = book->size / 8 * 7;
  book->codec = record_codec_new(NULL);
  if (book->codec == NULL || !take_lock(book, &o) || !begin_life(book, &o) ||
      !open_file(book, &o) || !open_book(book, &o)) {
    book_close(book);
    return NULL;
  }
  *status = BOOK_OPEN;
  return book;
}

void
book_close(struct book *book)
{
  if (book->env != NULL)
    mdb_env_close(book->env);
  record_codec_free(book->codec);
  if (book->locked)
    book_lived(book);
  if (book->lock >= 0)
    close(book->lock);
  free(book);
}
