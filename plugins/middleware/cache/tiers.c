/* SPDX-License-Identifier: MIT */
/* The tiers below the memory, one after the other. */
#include "tiers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"
#ifdef HAVE_LMDB
#include "disk.h"
#endif
#ifdef HAVE_HIREDIS
#include "share.h"
#endif

struct tiers {
  const struct tiers_options *options;
  unsigned metrics;
  atomic_uint flushes;          /* what was asked for before the last one is not believed */
  pthread_mutex_t lock;
  struct tiers_desk *desks;     /* under the lock: all that there ever were */
#ifdef HAVE_HIREDIS
  struct share_options share;
  struct share_common common;
#endif
};

struct tiers_desk {
  struct tiers *tiers;
  struct tiers_desk *next;
  struct disk_desk *disk;       /* or NULL */
  struct share *share;          /* or NULL */
};

#if defined(HAVE_LMDB) || defined(HAVE_HIREDIS)
static void
count(const struct tiers_desk *desk, const struct egw_at *at, enum tiers_metric id, int64_t n)
{
  if (n != 0)
    egw_count(at, desk->tiers->metrics + id, n);
}
#endif

/* --- what each tier is here -------------------------------------------------------------- */

static void ask_redis(struct tiers_wait *wait, bool later);
static void found(struct tiers_wait *wait, struct egw_buf *value);

#ifdef HAVE_LMDB
static void
on_disk(void *arg, struct egw_buf *value)
{
  struct tiers_wait *wait = arg;
  struct tiers_desk *desk = wait->desk;

  wait->disk = NULL;
  count(desk, &wait->at, value != NULL ? TIERS_DISK_HITS : TIERS_DISK_MISSES, 1);
  if (value == NULL) {
    ask_redis(wait, true);
    return;
  }
  count(desk, &wait->at, TIERS_DISK_HIT_BYTES, (int64_t)egw_buf_slice(value).len);
  egw_explain(wait->call, "cache: from disk");
  found(wait, value);
}

static void
ask_disk(struct tiers_wait *wait)
{
  if (wait->desk->disk != NULL)
    wait->disk = disk_get(wait->desk->disk, wait->key, on_disk, wait);
}

static void
count_disk(struct tiers_desk *desk, const struct egw_at *at)
{
  struct disk_counts c;

  if (desk->disk == NULL)
    return;
  disk_take_counts(desk->disk, &c);
  count(desk, at, TIERS_DISK_STORED, c.stored);
  count(desk, at, TIERS_DISK_DROPPED, c.dropped);
  count(desk, at, TIERS_DISK_EVICTED, c.evicted);
  count(desk, at, TIERS_DISK_ERRORS, c.errors);
  count(desk, at, TIERS_DISK_BYTES, c.bytes);
  count(desk, at, TIERS_DISK_ENTRIES, c.entries);
}
#else
static void
ask_disk(struct tiers_wait *wait)
{
  (void)wait;
}

static void
count_disk(struct tiers_desk *desk, const struct egw_at *at)
{
  (void)desk, (void)at;
}
#endif

#ifdef HAVE_HIREDIS
static void
on_redis(void *arg, enum share_outcome outcome, struct egw_buf *value)
{
  static const enum tiers_metric metric[] = {
    [SHARE_HIT] = TIERS_REDIS_HITS, [SHARE_MISS] = TIERS_REDIS_MISSES,
    [SHARE_BAD] = TIERS_REDIS_ERRORS, [SHARE_LATE] = TIERS_REDIS_TIMEOUTS,
  };
  struct tiers_wait *wait = arg;
  struct tiers_desk *desk = wait->desk;

  wait->redis = NULL;
  count(desk, &wait->at, metric[outcome], 1);
  if (value != NULL) {
    count(desk, &wait->at, TIERS_REDIS_HIT_BYTES, (int64_t)egw_buf_slice(value).len);
    egw_explain(wait->call, "cache: from Redis");
#ifdef HAVE_LMDB
    if (desk->disk != NULL)
      disk_put(desk->disk, wait->key, value);
#endif
  }
  found(wait, value);
}

static void
ask_redis(struct tiers_wait *wait, bool later)
{
  struct tiers_desk *desk = wait->desk;

  if (desk->share != NULL) {
    wait->redis = share_get(desk->share, wait->key, on_redis, wait);
    if (wait->redis == NULL)
      count(desk, &wait->at, TIERS_REDIS_SKIPPED, 1);
  }
  if (wait->redis == NULL && later)
    found(wait, NULL);
}

static void
count_redis(struct tiers_desk *desk, const struct egw_at *at)
{
  struct share_counts c;

  if (desk->share == NULL)
    return;
  share_take_counts(desk->share, &c);
  count(desk, at, TIERS_REDIS_STORED, c.stored);
  count(desk, at, TIERS_REDIS_DROPPED, c.dropped);
  count(desk, at, TIERS_REDIS_ERRORS, c.errors);
}
#else
static void
ask_redis(struct tiers_wait *wait, bool later)
{
  if (later)
    found(wait, NULL);
}

static void
count_redis(struct tiers_desk *desk, const struct egw_at *at)
{
  (void)desk, (void)at;
}
#endif

void
tiers_count(struct tiers_desk *desk, const struct egw_at *at)
{
  if (desk == NULL)
    return;
  count_disk(desk, at);
  count_redis(desk, at);
}

/* --- lookups ----------------------------------------------------------------------------- */

/* The end of the wait. What was found before history changed is not believed. */
static void
found(struct tiers_wait *wait, struct egw_buf *value)
{
  struct tiers *tiers = wait->desk->tiers;

  if (value != NULL && wait->flushes != atomic_load(&tiers->flushes)) {
    egw_buf_unref(value);
    value = NULL;
  }
  wait->desk = NULL;
  wait->fn(&wait->at, wait->call, value);
}

bool
tiers_look(struct tiers_desk *desk, const struct egw_at *at, struct egw_call *call,
           struct egw_slice key, struct tiers_wait *wait, tiers_fn *fn)
{
  if (desk == NULL)
    return false;
  tiers_count(desk, at);
  *wait = (struct tiers_wait){ .desk = desk, .at = *at, .call = call, .key = key, .fn = fn,
                               .flushes = atomic_load(&desk->tiers->flushes) };
  ask_disk(wait);
  if (wait->disk == NULL)
    ask_redis(wait, false);
  if (wait->disk != NULL || wait->redis != NULL)
    return true;
  wait->desk = NULL;
  return false;
}

void
tiers_cancel(struct tiers_wait *wait)
{
#ifdef HAVE_LMDB
  if (wait->disk != NULL)
    disk_cancel(wait->disk);
#endif
#ifdef HAVE_HIREDIS
  if (wait->redis != NULL)
    share_cancel(wait->redis);
#endif
  wait->disk = wait->redis = NULL;
  wait->desk = NULL;
}

/* --- writes ------------------------------------------------------------------------------ */

void
tiers_keep(struct tiers_desk *desk, const struct egw_at *at, struct egw_slice key,
           struct egw_buf *value)
{
  if (desk == NULL)
    return;
#ifdef HAVE_LMDB
  if (desk->disk != NULL)
    disk_put(desk->disk, key, value);
#endif
#ifdef HAVE_HIREDIS
  if (desk->share != NULL)
    share_put(desk->share, key, egw_buf_slice(value));
#endif
  (void)key, (void)value; /* in a build with neither */
  tiers_count(desk, at);
}

/* The tiers first: who has the new count of flushes then can't get anything old from them, and
 * what is got by who has the old count is not believed. */
void
tiers_flush(struct tiers_desk *desk, const struct egw_at *at, bool same)
{
  if (desk == NULL)
    return;
#ifdef HAVE_LMDB
  if (same && desk->disk != NULL)
    disk_clear(desk->disk);
#endif
#ifdef HAVE_HIREDIS
  if (same && desk->share != NULL)
    share_flush(desk->share);
#endif
  (void)same; /* if not, keys tell the chains apart; and in a build with neither */
  atomic_fetch_add(&desk->tiers->flushes, 1);
  tiers_count(desk, at);
}

/* --- life -------------------------------------------------------------------------------- */

static int
configure_disk(struct egw_conf *section, const struct tiers_options *options)
{
  if (options->disk == NULL)
    return 0;
#ifdef HAVE_LMDB
  if (options->disk[0] == '/')
    return 0;
  return egw_conf_error(section, "disk", "must be an absolute path");
#else
  return egw_conf_error(section, "disk", "built without LMDB");
#endif
}

static int
configure_redis(struct egw_conf *section, struct tiers *tiers, uint64_t max_value)
{
  const struct tiers_options *o = tiers->options;

#ifdef HAVE_HIREDIS
  struct share_options *s = &tiers->share;
  const char *why;

  if (o->redis == NULL)
    return 0;
  if (strlen(o->redis_prefix) > 100)
    return egw_conf_error(section, "redis_prefix", "is longer than 100 bytes");
  why = redis_address_read(o->redis, &s->address);
  if (why != NULL)
    return egw_conf_error(section, "redis", "%s", why);
  s->prefix = o->redis_prefix;
  s->timeout_ms = o->redis_timeout;
  s->ttl_ms = o->redis_ttl;
  s->max_value = max_value < (64u << 20) ? (size_t)max_value : 64u << 20;
  s->common = &tiers->common;
  s->codec = record_codec_new(o->redis_secret);
  return s->codec != NULL ? 0 : egw_conf_error(section, NULL, "out of memory");
#else
  (void)max_value;
  return o->redis == NULL ? 0 : egw_conf_error(section, "redis", "built without hiredis");
#endif
}

int
tiers_configure(struct egw_conf *section, const struct tiers_options *options,
                uint64_t max_value, unsigned metrics, struct tiers **out)
{
  struct tiers *tiers;

  *out = NULL;
  if (options->disk == NULL && options->redis == NULL)
    return 0;
  tiers = calloc(1, sizeof(*tiers));
  if (tiers == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  tiers->options = options;
  tiers->metrics = metrics;
  pthread_mutex_init(&tiers->lock, NULL); /* can't fail without attributes */
  *out = tiers;
  return configure_disk(section, options) < 0 ||
                 configure_redis(section, tiers, max_value) < 0
             ? -1
             : 0;
}

void
tiers_free(struct tiers *tiers)
{
  struct tiers_desk *desk;

  if (tiers == NULL)
    return;
  while ((desk = tiers->desks) != NULL) {
    tiers->desks = desk->next;
#ifdef HAVE_LMDB
    disk_desk_free(desk->disk);
#endif
    free(desk);
  }
#ifdef HAVE_HIREDIS
  record_codec_free(tiers->share.codec);
  redis_address_free(&tiers->share.address);
#endif
  pthread_mutex_destroy(&tiers->lock);
  free(tiers);
}

struct tiers_desk *
tiers_start(struct tiers *tiers, struct egw_worker *worker)
{
  struct tiers_desk *desk;

  if (tiers == NULL)
    return NULL;
  desk = calloc(1, sizeof(*desk));
  if (desk == NULL) {
    egw_log(EGW_ERROR, "cache", "memory is short: one worker is without disk and Redis");
    return NULL;
  }
  desk->tiers = tiers;
#ifdef HAVE_LMDB
  if (tiers->options->disk != NULL)
    desk->disk = disk_desk_open(tiers->options->disk, tiers->options->disk_size, worker);
#endif
#ifdef HAVE_HIREDIS
  if (tiers->options->redis != NULL)
    desk->share = share_new(&tiers->share, worker);
#endif
  (void)worker;
  pthread_mutex_lock(&tiers->lock);
  desk->next = tiers->desks;
  tiers->desks = desk;
  pthread_mutex_unlock(&tiers->lock);
  return desk;
}

void
tiers_stop(struct tiers_desk *desk)
{
  if (desk == NULL)
    return;
#ifdef HAVE_LMDB
  if (desk->disk != NULL)
    disk_desk_close(desk->disk);
#endif
#ifdef HAVE_HIREDIS
  share_free(desk->share);
  desk->share = NULL;
#endif
}
