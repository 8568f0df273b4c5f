/* SPDX-License-Identifier: MIT */
/* The cache on disk: records and the book. Killed at any moment, damaged, foreign, full. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ethrpc-gw/plugin.h>
#include "../lib/tap.h"
#include "../../plugins/middleware/cache/book.h"
#include "../../plugins/middleware/cache/record.h"

#define SIZE (64u << 20)

static char folder[] = "/tmp/egw-book-XXXXXX";
static char why[200];
static enum book_status status;

static char *
path(const char *name)
{
  static char out[PATH_MAX];

  snprintf(out, sizeof out, "%s/%s", folder, name);
  return out;
}

static void
clean(void)
{
  static const char *const names[] = { "cache.mdb", "cache.mdb-lock", "cache.lock" };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    unlink(path(names[i]));
}

static struct book *
open_book(void)
{
  struct book *book = book_open(folder, SIZE, &status, why, sizeof why);

  if (book == NULL)
    printf("# %s\n", why);
  return book;
}

/* --- entries: key and value are functions of a number
 * ----------------------------------------- */

static char key_room[300], value_room[400000];

static struct egw_slice
key_of(unsigned long n)
{
  int len = snprintf(key_room, sizeof key_room, "%0*lu-key", (int)(10 + n % 200), n);

  return (struct egw_slice){ key_room, (size_t)len };
}

static struct egw_slice
value_of(unsigned long n)
{
  size_t len = n % 37 == 0 ? 1000 + n * 7919 % 300000 : 20 + n * 31 % 3000;

  memset(value_room, 'a' + (int)(n % 26), len);
  memcpy(value_room, &n, sizeof n);
  return (struct egw_slice){ value_room, len };
}

static bool
write_one(struct book *book, unsigned long n)
{
  struct book_entry e = { key_of(n), value_of(n) };
  struct book_result result = { 0 };

  return book_write(book, &e, 1, &result) == 0 && result.stored == 1;
}

enum found { ABSENT, RIGHT, WRONG, DAMAGED };

static enum found
find(struct book_reader *reader, unsigned long n)
{
  bool damaged;
  struct egw_buf *got = book_get(reader, key_of(n), &damaged);
  struct egw_slice want = value_of(n), have;
  enum found found;

  if (got == NULL)
    return damaged ? DAMAGED : ABSENT;
  have = egw_buf_slice(got);
  found = have.len == want.len && memcmp(have.ptr, want.ptr, want.len) == 0 ? RIGHT : WRONG;
  egw_buf_unref(got);
  return found;
}

/* --- records
 * ---------------------------------------------------------------------------------- */

static void
test_records(void)
{
  struct record_codec *plain = record_codec_new(NULL), *keyed = record_codec_new("secret");
  struct egw_slice key = EGW_LIT("network and question"), value = EGW_LIT("{\"a\":1}");
  struct egw_slice whole, got;
  size_t len = record_size(key.len, value.len);
  char record[256], changed[256];
  unsigned bad = 0;

  ok(plain != NULL && keyed != NULL && len < sizeof record, "codecs");
  ok(record_write(plain, record, key, value) == 0, "written");
  whole = (struct egw_slice){ record, len };
  ok(record_read(plain, whole, key, &got) && got.len == value.len &&
         memcmp(got.ptr, value.ptr, got.len) == 0, "read");
  ok(!record_read(plain, whole, EGW_LIT("network and questioN"), &got), "not for another key");
  ok(!record_read(plain, whole, EGW_LIT("network and"), &got), "nor for a part of it");
  ok(!record_read(keyed, whole, key, &got),
     "nor where there is a secret");
  for (size_t i = 0; i < len * 8; i++) {
    memcpy(changed, record, len);
    changed[i / 8] = (char)(changed[i / 8] ^ 1 << i % 8);
    bad += record_read(plain, (struct egw_slice){ changed, len }, key, &got);
  }
  is_int(bad, 0, "no bit can change (%zu were tried)", len * 8);
  for (size_t i = 0; i < len; i++)
    bad += record_read(plain, (struct egw_slice){ record, i }, key, &got);
  memcpy(changed, record, len);
  changed[len] = ' ';
  bad += record_read(plain, (struct egw_slice){ changed, len + 1 }, key, &got);
  is_int(bad, 0, "nor the length");
  ok(record_write(keyed, record, key, value) == 0 &&
         record_read(keyed, (struct egw_slice){ record, len }, key, &got) &&
         !record_read(plain, (struct egw_slice){ record, len }, key, &got), "with a secret");
  is_int(record_size(1, SIZE_MAX - 8), 0, "a length that can't be");
  record_codec_free(plain);
  record_codec_free(keyed);
}

/* --- the book
 * --------------------------------------------------------------------------------- */

static void
test_simple(void)
{
  struct book_result result = { 0 };
  struct book *book = open_book(), *second;
  struct book_reader *reader;
  uint64_t bytes, entries;
  struct stat st;

  ok(book != NULL, "opened");
  reader = book_reader_new(book);
  is_int(find(reader, 1), ABSENT, "nothing there");
  ok(write_one(book, 1) && write_one(book, 37), "written");
  ok(find(reader, 1) == RIGHT && find(reader, 37) == RIGHT, "found");
  is_int(find(reader, 2), ABSENT, "another is not");
  ok(book_write(book, &(struct book_entry){ key_of(1), EGW_LIT("other") }, 1, &result) == 0 &&
         result.stored == 0 && find(reader, 1) == RIGHT, "what is there stays");
  book_size(book, &bytes, &entries);
  ok(entries == 2 && bytes > 1000 && bytes < SIZE, "its size");
  second = book_open(folder, SIZE, &status, why, sizeof why);
  ok(second == NULL && status == BOOK_BUSY, "nobody else opens it: %s", why);
  ok(stat(path("cache.mdb"), &st) == 0 && (st.st_mode & 077) == 0, "it is its owner's");
  book_reader_free(reader);
  book_close(book);

  book = open_book();
  reader = book_reader_new(book);
  book_size(book, &bytes, &entries);
  ok(entries == 2 && find(reader, 1) == RIGHT && find(reader, 37) == RIGHT, "opened again");
  ok(book_write(book, &(struct book_entry){ key_of(1), { NULL, 0 } }, 1, &result) == 0 &&
         find(reader, 1) == ABSENT && find(reader, 37) == RIGHT, "one is taken out");
  ok(write_one(book, 1) && find(reader, 1) == RIGHT, "and put back");
  ok(book_clear(book) == 0 && find(reader, 1) == ABSENT && find(reader, 37) == ABSENT &&
         write_one(book, 5) && find(reader, 5) == RIGHT, "everything is taken out");
  book_reader_free(reader);
  book_close(book);
  clean();
}

/* What LMDB would do with two keys of one digest: the index has the one's number for the
 * other. */
static void
test_collision(void)
{
  unsigned char one[32], two[32];
  struct book *book = open_book();
  struct book_reader *reader;
  struct book_result result = { 0 };
  MDB_env *env = NULL;
  MDB_txn *txn;
  MDB_dbi index;
  MDB_val k1 = { 16, one }, k2 = { 16, two }, v;
  bool fine;

  write_one(book, 1);
  write_one(book, 2);
  book_close(book);
  fine = record_digest(key_of(1), one) == 0 && record_digest(key_of(2), two) == 0 &&
         mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 4) == 0 &&
         mdb_env_open(env, path("cache.mdb"), MDB_NOSUBDIR, 0600) == 0 &&
         mdb_txn_begin(env, NULL, 0, &txn) == 0 &&
         mdb_dbi_open(txn, "index", 0, &index) == 0 &&
         mdb_get(txn, index, &k2, &v) == 0 && mdb_put(txn, index, &k1, &v, 0) == 0 &&
         mdb_txn_commit(txn) == 0;
  if (env != NULL)
    mdb_env_close(env);
  ok(fine, "two keys lead to one entry");
  book = open_book();
  reader = book_reader_new(book);
  ok(find(reader, 1) == DAMAGED && find(reader, 2) == RIGHT, "only its own finds it");
  ok(book_write(book, &(struct book_entry){ key_of(1), { NULL, 0 } }, 1, &result) == 0 &&
         write_one(book, 1) && find(reader, 1) == RIGHT,
     "it can be taken out and written anew");
  book_reader_free(reader);
  book_close(book);
  clean();
}

static struct egw_slice
copied(struct egw_slice s)
{
  char *copy = malloc(s.len);

  if (copy == NULL)
    abort();
  memcpy(copy, s.ptr, s.len);
  return (struct egw_slice){ copy, s.len };
}

/* Writes `count` entries from `n` on; how many bytes they have. */
static unsigned long
write_many(struct book *book, unsigned long n, unsigned count, struct book_result *result)
{
  struct book_entry e[64] = { 0 };
  unsigned long bytes = 0;

  for (unsigned i = 0; i < count; i++) {
    e[i] = (struct book_entry){ copied(key_of(n + i)), copied(value_of(n + i)) };
    bytes += e[i].value.len;
  }
  if (book_write(book, e, count, result) < 0)
    result->dropped += 1000000;
  for (unsigned i = 0; i < count; i++) {
    free((char *)(uintptr_t)e[i].key.ptr);
    free((char *)(uintptr_t)e[i].value.ptr);
  }
  return bytes;
}

static void
test_bound(void)
{
  struct book *book = open_book();
  struct book_reader *reader = book_reader_new(book);
  struct book_result result = { 0 };
  unsigned long n = 1, bytes = 0, gaps = 0;
  unsigned wrong = 0, there = 0;
  uint64_t used, entries;
  struct stat st;

  for (; bytes < 3ul * SIZE; n += 32)
    bytes += write_many(book, n, 32, &result);
  ok(result.dropped * 100 <= n, "three times as much as there is room for: %u of %lu dropped",
     result.dropped, n);
  book_size(book, &used, &entries);
  if (stat(path("cache.mdb"), &st) < 0)
    abort();
  ok(st.st_size <= (off_t)SIZE, "the file is bounded: %ld", (long)st.st_size);
  ok(used <= SIZE / 8 * 7 && used > SIZE / 2, "and used: %lu", (unsigned long)used);
  while (--n > 0 && there < entries) {
    enum found f = find(reader, n);

    there += f == RIGHT;
    gaps += f == ABSENT;
    wrong += f == WRONG || f == DAMAGED;
  }
  ok(there == entries && wrong == 0 && gaps <= result.dropped,
     "the newest are there, all of them right (%u)", there);
  is_int(find(reader, 1), ABSENT, "the oldest is not");
  is_int(result.stored - result.evicted, entries, "what was stored and evicted adds up");
  book_reader_free(reader);
  book_close(book);
  clean();
}

/* A whole map in one batch, which can't be. */
static void
test_full(void)
{
  static struct book_entry entries[60];
  static char keys[60][16];
  char *big = calloc(1, 2u << 20);
  struct book *book = open_book();
  struct book_result result = { 0 };

  for (int i = 0; i < 60; i++) {
    snprintf(keys[i], sizeof keys[i], "big %d", i);
    entries[i] = (struct book_entry){ { keys[i], strlen(keys[i]) }, { big, 2u << 20 } };
  }
  ok(book_write(book, entries, 60, &result) == 0, "a batch larger than the file");
  ok(result.stored > 0 && result.stored + result.dropped == 60, "%u stored, %u dropped",
     result.stored, result.dropped);
  ok(write_one(book, 3), "and it goes on");
  ok(book_fits(SIZE, 10, SIZE / 40) && !book_fits(SIZE, 10, SIZE / 30), "what fits");
  book_close(book);
  free(big);
  clean();
}

/* --- damage
 * ----------------------------------------------------------------------------------- */

static void
put_file(const char *bytes, size_t len)
{
  int fd = open(path("cache.mdb"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

  if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
    abort();
  close(fd);
}

static void
refused(const char *what)
{
  struct book *book = book_open(folder, SIZE, &status, why, sizeof why);

  ok(book == NULL && status == BOOK_REFUSED, "%s: %s", what, why);
  if (book != NULL)
    book_close(book);
}

/* Changes each copy of `n`'s value in the file. */
static unsigned
damage(unsigned long n)
{
  int fd = open(path("cache.mdb"), O_RDWR);
  struct egw_slice value = value_of(n);
  struct stat st;
  unsigned count = 0;
  char *bytes, *at;

  if (fd < 0 || fstat(fd, &st) < 0 || (bytes = malloc((size_t)st.st_size)) == NULL ||
      pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
    abort();
  for (at = bytes;; at++, count++) {
    at = memmem(at, (size_t)(bytes + st.st_size - at), value.ptr, value.len);
    if (at == NULL)
      break;
    if (pwrite(fd, "!", 1, at - bytes + (off_t)value.len / 2) != 1)
      abort();
  }
  close(fd);
  free(bytes);
  return count;
}

static void
put_foreign(void)
{
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi table;

  if (mdb_env_create(&env) != 0 || mdb_env_set_maxdbs(env, 4) != 0 ||
      mdb_env_open(env, path("cache.mdb"), MDB_NOSUBDIR, 0600) != 0 ||
      mdb_txn_begin(env, NULL, 0, &txn) != 0 ||
      mdb_dbi_open(txn, "somebody's", MDB_CREATE, &table) != 0 || mdb_txn_commit(txn) != 0)
    abort();
  mdb_env_close(env);
}

static void
test_damage(void)
{
  struct book *book = open_book();
  struct book_reader *reader;

  for (unsigned long n = 30; n < 60; n++)
    write_one(book, n);
  book_close(book);
  ok(damage(37) > 0 && damage(41) > 0, "a long and a short value are damaged");
  book = open_book();
  reader = book_reader_new(book);
  ok(find(reader, 37) == DAMAGED && find(reader, 41) == DAMAGED, "neither is given");
  ok(find(reader, 38) == RIGHT && find(reader, 59) == RIGHT, "others are");
  book_reader_free(reader);
  book_close(book);

  ok(truncate(path("cache.mdb"), 40960) == 0, "the file is cut");
  refused("a file that was cut");
  put_file("not a database, but quite long, though shorter than a page of one\n", 60);
  refused("a short text");
  memset(value_room, 'x', sizeof value_room);
  put_file(value_room, 100000);
  refused("a long text");
  clean();
  put_foreign();
  refused("another program's database");
  clean();
  put_file("", 0);
  book = open_book();
  ok(book != NULL, "an empty file is a new one");
  if (book != NULL)
    book_close(book);
  clean();
  ok(book_open("/proc/none/at/all", SIZE, &status, why, sizeof why) == NULL &&
         status == BOOK_REFUSED, "a folder that can't be: %s", why);
}

/* --- death
 * ------------------------------------------------------------------------------------ */

/* Writes on and on, and says what it has written. */
static void
write_for_ever(int pipe_end, unsigned long n)
{
  struct book *book = book_open(folder, SIZE, &status, why, sizeof why);
  struct book_result result = { 0 };

  if (book == NULL)
    _exit(9);
  for (;; n++) {
    if (book_write(book, &(struct book_entry){ key_of(n), value_of(n) }, 1, &result) < 0)
      _exit(8);
    if (write(pipe_end, &n, sizeof n) != (ssize_t)sizeof n)
      _exit(7);
  }
}

/* One life of a writer, ended after `most` entries and a while. The last entry that was
 * done. */
static unsigned long
one_life(unsigned long from, unsigned most)
{
  unsigned long n, last = from - 1;
  int ends[2], how;
  pid_t child;

  if (pipe(ends) < 0 || (child = fork()) < 0)
    abort();
  if (child == 0) {
    close(ends[0]);
    write_for_ever(ends[1], from);
  }
  close(ends[1]);
  for (unsigned i = 0; i < most && read(ends[0], &n, sizeof n) == (ssize_t)sizeof n; i++)
    last = n;
  for (volatile unsigned spin = 0; spin < most * 997u % 60000u; spin++)
    ;
  kill(child, SIGKILL);
  while (read(ends[0], &n, sizeof n) == (ssize_t)sizeof n)
    last = n;
  close(ends[0]);
  if (waitpid(child, &how, 0) != child || !WIFSIGNALED(how))
    printf("# the child ended by itself: %d\n", how);
  return last;
}

static void
test_death(void)
{
  unsigned lives = 40, bad = 0, lost = 0, seen = 0;
  unsigned long last = 0;

  for (unsigned i = 0; i < lives; i++) {
    struct book *book;
    struct book_reader *reader;

    last = one_life(last + 1, 5 + i * 7 % 60);
    book = open_book();
    if (book == NULL) {
      bad++;
      break;
    }
    reader = book_reader_new(book);
    for (unsigned long n = last > 300 ? last - 300 : 1; n <= last + 1; n++) {
      enum found f = find(reader, n);

      bad += f == WRONG || f == DAMAGED;
      lost += f == ABSENT && n <= last;
      seen += f == RIGHT;
    }
    if (find(reader, last + 1) == RIGHT) /* written, and killed before it could say so */
      last++;
    book_reader_free(reader);
    book_close(book);
  }
  ok(bad == 0 && seen > lives, "killed %u times while writing: whatever is there is right",
     lives);
  is_int(lost, 0, "and nothing that was done is missing (%lu entries)", last);
  clean();
}

/* Opens the book and dies. */
static void
die_early(unsigned times)
{
  for (unsigned i = 0; i < times; i++) {
    pid_t child = fork();
    int how;

    if (child == 0) {
      if (open_book() == NULL)
        _exit(9);
      kill(getpid(), SIGKILL);
    }
    if (waitpid(child, &how, 0) != child || !WIFSIGNALED(how))
      printf("# the child ended by itself: %d\n", how);
  }
}

/* What ends the process each time must not do so for ever. */
static void
test_lives(void)
{
  struct book *book = open_book();
  struct book_reader *reader;

  write_one(book, 1);
  book_close(book);
  die_early(BOOK_LIVES - 1);
  book = open_book();
  reader = book_reader_new(book);
  is_int(find(reader, 1), RIGHT, "after some early ends everything is there");
  book_reader_free(reader);
  book_close(book);
  die_early(BOOK_LIVES - 1);
  book = open_book();
  ok(book != NULL && access(path("cache.mdb.bad"), F_OK) < 0,
     "the one that ended well counts");
  book_close(book);
  die_early(BOOK_LIVES);
  book = open_book();
  reader = book_reader_new(book);
  ok(find(reader, 1) == ABSENT && access(path("cache.mdb.bad"), F_OK) == 0,
     "after too many in a row the file is put aside");
  ok(write_one(book, 1) && find(reader, 1) == RIGHT, "and a new one is begun");
  book_reader_free(reader);
  book_close(book);
  unlink(path("cache.mdb.bad"));
  clean();
}

int
main(void)
{
  if (mkdtemp(folder) == NULL)
    return 1;
  test_records();
  test_simple();
  test_collision();
  test_bound();
  test_full();
  test_damage();
  test_death();
  test_lives();
  rmdir(folder);
  return done_testing();
}
