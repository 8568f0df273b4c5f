/* SPDX-License-Identifier: MIT */
/* The disk tier: its desks, queues and threads, on a real worker. */
#include <limits.h>
#include <sys/file.h>
#include <fcntl.h>
#include <unistd.h>
#include <ethrpc-gw/plugin.h>
#include "../lib/tap.h"
#include "../lib/worker-kit.h"
#include "../../plugins/middleware/cache/disk.h"

#define SIZE (64u << 20)
#define MANY 3000u

static char folder[] = "/tmp/egw-disk-XXXXXX";
static struct disk_desk *desk;
static unsigned asked, answered, found, wrong;
static int64_t stored, dropped, errors, entries;

static char *
path(const char *name)
{
  static char out[PATH_MAX];

  snprintf(out, sizeof out, "%s/%s", folder, name);
  return out;
}

static struct egw_slice
key_of(unsigned long n)
{
  static char room[64];
  int len = snprintf(room, sizeof room, "key of %lu", n);

  return (struct egw_slice){ room, (size_t)len };
}

static void
take(void *arg, struct egw_buf *value)
{
  unsigned long n = (uintptr_t)arg;
  char want[64];

  answered++;
  if (value == NULL)
    return;
  found++;
  snprintf(want, sizeof want, "\"value of %lu\"", n);
  if (egw_buf_slice(value).len != strlen(want) ||
      memcmp(egw_buf_slice(value).ptr, want, strlen(want)) != 0)
    wrong++;
  egw_buf_unref(value);
}

static struct disk_read *
get(unsigned long n)
{
  struct disk_read *read = disk_get(desk, key_of(n), take, (void *)(uintptr_t)n);

  asked += read != NULL;
  return read;
}

static void
put(unsigned long n)
{
  struct egw_buf *value = egw_buf_new(64);

  if (value == NULL || egw_buf_printf(value, "\"value of %lu\"", n) < 0)
    abort();
  disk_put(desk, key_of(n), value);
  egw_buf_unref(value);
}

static void
count(void)
{
  struct disk_counts c;

  disk_take_counts(desk, &c);
  stored += c.stored;
  dropped += c.dropped;
  errors += c.errors;
  entries += c.entries;
}

static bool all_answered(void) { return answered == asked; }
static bool some_stored(void) { count(); return stored > 0; }
static bool many_stored(void) { count(); return stored + dropped >= MANY; }
static bool none_left(void) { count(); return entries == 0; }
static bool is_open(void) { return disk_is_open(desk); }

/* Looks `n` up; whether it was found. */
static bool
look(unsigned long n)
{
  asked = answered = found = 0;
  return get(n) != NULL && kit_until(all_answered, 5000) && found == 1;
}

static void
begin(void)
{
  desk = disk_desk_open(folder, SIZE, &kit_worker);
  stored = dropped = errors = entries = 0;
  asked = answered = found = wrong = 0;
}

static void
end(void)
{
  disk_desk_close(desk);
  kit_pass(1); /* mail that is still under way */
  disk_desk_free(desk);
}

static void
test_simple(void)
{
  begin();
  ok(disk_is_open(desk), "open at once");
  ok(!look(1), "nothing there");
  put(1);
  ok(kit_until(some_stored, 5000) && entries == 1, "an answer is written by and by");
  ok(look(1) && wrong == 0, "and found");
  put(2);
  end();
  begin();
  count();
  is_int(entries, 2, "what was queued at the end is there after it");
  ok(look(2) && look(1), "both are found");
  end();
}

static void
test_many(void)
{
  struct egw_buf *huge = egw_buf_new(SIZE / 16);
  char *room = huge == NULL ? NULL : egw_buf_room(huge, SIZE / 16);

  if (room == NULL)
    abort();
  memset(room, 'x', SIZE / 16);
  egw_buf_commit(huge, SIZE / 16);
  begin();
  for (unsigned long n = 10; n < 10 + MANY; n++)
    put(n);
  ok(kit_until(many_stored, 20000) && dropped == 0, "many are written: %ld", (long)stored);
  disk_put(desk, key_of(5), huge);
  count();
  is_int(dropped, 1, "one that is too long is not");
  asked = answered = found = 0;
  for (unsigned long n = 10; n < 10 + MANY; n++)
    get(n);
  ok(asked >= 1024 && asked <= MANY, "%u of %u lookups are taken", asked, MANY);
  ok(kit_until(all_answered, 20000) && found == asked && wrong == 0, "and all of them right");
  egw_buf_unref(huge);
  end();
}

/* Nobody hears of lookups that were given up, or whose worker ended. */
static void
test_leaving(void)
{
  struct disk_read *read;

  begin();
  asked = answered = 0;
  read = get(10);
  if (read != NULL)
    disk_cancel(read);
  get(11);
  asked--;
  ok(kit_until(all_answered, 5000), "the one that was not given up is answered");
  kit_pass(20);
  is_int(answered, 1, "the other is not");
  for (unsigned long n = 10; n < 900; n++)
    get(n);
  answered = 0;
  end();
  kit_pass(20);
  is_int(answered, 0, "nor those in flight at the end");
}

static void
test_clear(void)
{
  begin();
  count();
  ok(entries > 0 && look(10), "something is there");
  asked = answered = found = 0;
  get(10);
  disk_clear(desk);
  ok(get(11) == NULL, "from now on nothing is looked up");
  kit_until(all_answered, 5000);
  put(20000);
  ok(kit_until(some_stored, 5000), "what is put after it is written");
  ok(!look(10) && !look(11) && look(20000), "what was there before is gone");
  count();
  is_int(entries, 1, "one answer");
  disk_clear(desk);
  ok(kit_until(none_left, 5000), "and that goes, too");
  end();
}

/* Two desks at one folder are one book; other folders by the same name too. */
static void
test_sharing(void)
{
  char other[PATH_MAX];
  struct disk_desk *first;

  begin();
  first = desk;
  snprintf(other, sizeof other, "%s/../%s/", folder, strrchr(folder, '/') + 1);
  desk = disk_desk_open(other, SIZE, &kit_worker);
  ok(disk_is_open(desk), "the same folder by another name");
  put(1);
  ok(kit_until(some_stored, 5000), "written at one desk");
  end();
  desk = first;
  ok(look(1), "found at the other");
  end();
}

static void
test_busy(void)
{
  int fd = open(path("cache.lock"), O_RDWR | O_CLOEXEC);

  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
    abort();
  begin();
  ok(!disk_is_open(desk) && get(1) == NULL,
     "another process has the folder: nothing is looked up");
  put(7);
  count();
  ok(errors == 1 && dropped == 0, "it counts as an error once");
  close(fd);
  ok(kit_until(is_open, 15000), "when that is gone, it is opened");
  ok(look(1) && !look(7), "and used");
  end();
}

static void
test_refused(void)
{
  FILE *file = fopen(path("cache.mdb"), "w");

  if (file == NULL || fputs("something else", file) < 0 || fclose(file) != 0)
    abort();
  begin();
  count();
  ok(!disk_is_open(desk) && errors == 1, "a file that is something else is not used");
  ok(get(1) == NULL, "nor looked into");
  put(1);
  disk_clear(desk);
  end();
  file = fopen(path("cache.mdb"), "r");
  ok(file != NULL && fgetc(file) == 's', "and left as it is");
  if (file != NULL)
    fclose(file);
}

int
main(void)
{
  if (mkdtemp(folder) == NULL)
    return 1;
  kit_start();
  test_simple();
  test_many();
  test_leaving();
  test_clear();
  test_sharing();
  test_busy();
  test_refused();
  unlink(path("cache.mdb"));
  unlink(path("cache.mdb-lock"));
  unlink(path("cache.lock"));
  rmdir(folder);
  ok(kit_end(), "no handle is left");
  return done_testing();
}
