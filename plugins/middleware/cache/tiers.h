/* SPDX-License-Identifier: MIT */
/* The tiers below the memory: disk (disk.h), then Redis (share.h). Only what can't change
 * any more is kept there. A hit in a lower one fills those above it.
 *
 * A tier that is not configured, not built in, switched off or in trouble is a miss. */
#ifndef CACHE_TIERS_H
#define CACHE_TIERS_H

#include <ethrpc-gw/middleware.h>

struct tiers;                   /* of the instance */
struct tiers_desk;              /* of a worker */

struct tiers_options {
  const char *disk;
  uint64_t disk_size;
  const char *redis, *redis_prefix, *redis_secret;
  uint64_t redis_timeout, redis_ttl;
};

/* Rows of the option table for `instance`.`member`. */
#define TIERS_OPTIONS(instance, member) \
  { .name = "disk", .type = EGW_OPT_STRING, .offset = offsetof(struct instance, member.disk), \
    .help = "folder of the answers kept on disk; without it there are none" }, \
  { .name = "disk_size", .type = EGW_OPT_SIZE, \
    .offset = offsetof(struct instance, member.disk_size), .fallback = "10GiB", \
    .min = 64 << 20, .max = INT64_C(1) << 44, .help = "bytes of the file on disk" }, \
  { .name = "redis", .type = EGW_OPT_SECRET, \
    .offset = offsetof(struct instance, member.redis), \
    .help = "a Redis server shared by several gateways: " \
            "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or unix:PATH" }, \
  { .name = "redis_timeout", .type = EGW_OPT_DURATION, \
    .offset = offsetof(struct instance, member.redis_timeout), .fallback = "20ms", \
    .min = 1, .max = 10000, .help = "longest time that a call waits for Redis" }, \
  { .name = "redis_ttl", .type = EGW_OPT_DURATION, \
    .offset = offsetof(struct instance, member.redis_ttl), .fallback = "0", \
    .min = 0, .max = INT64_C(1) << 40, \
    .help = "how long Redis keeps an answer; 0: until it needs the room" }, \
  { .name = "redis_prefix", .type = EGW_OPT_STRING, \
    .offset = offsetof(struct instance, member.redis_prefix), .fallback = "ethrpc-gw:", \
    .help = "what the names of keys in Redis begin with" }, \
  { .name = "redis_secret", .type = EGW_OPT_SECRET, \
    .offset = offsetof(struct instance, member.redis_secret), \
    .help = "known to the gateways that share a Redis server: what others put there is " \
            "not believed" }

/* Rows of the metric table, from index `base` on. */
enum tiers_metric {
  TIERS_DISK_HITS, TIERS_DISK_MISSES, TIERS_DISK_HIT_BYTES, TIERS_DISK_STORED,
  TIERS_DISK_DROPPED, TIERS_DISK_EVICTED, TIERS_DISK_ERRORS, TIERS_DISK_BYTES,
  TIERS_DISK_ENTRIES,
  TIERS_REDIS_HITS, TIERS_REDIS_MISSES, TIERS_REDIS_HIT_BYTES, TIERS_REDIS_SKIPPED,
  TIERS_REDIS_TIMEOUTS, TIERS_REDIS_STORED, TIERS_REDIS_DROPPED, TIERS_REDIS_ERRORS,
  TIERS_METRIC_COUNT
};
#define TIERS_COUNTER(base, id, text, words) \
  [(base) + (id)] = { .name = (text), .kind = EGW_METRIC_COUNTER, .help = (words) }
#define TIERS_GAUGE(base, id, text, words) \
  [(base) + (id)] = { .name = (text), .kind = EGW_METRIC_GAUGE, .help = (words) }
#define TIERS_METRICS(b) \
  TIERS_COUNTER(b, TIERS_DISK_HITS, "disk_hits", "calls answered from disk"), \
  TIERS_COUNTER(b, TIERS_DISK_MISSES, "disk_misses", "calls looked for on disk in vain"), \
  TIERS_COUNTER(b, TIERS_DISK_HIT_BYTES, "disk_hit_bytes", "bytes of results from disk"), \
  TIERS_COUNTER(b, TIERS_DISK_STORED, "disk_stored", "answers written to disk"), \
  TIERS_COUNTER(b, TIERS_DISK_DROPPED, "disk_dropped", \
                "answers not written to disk: too many at once, too long, or no room"), \
  TIERS_COUNTER(b, TIERS_DISK_EVICTED, "disk_evicted", \
                "answers taken off the disk for room"), \
  TIERS_COUNTER(b, TIERS_DISK_ERRORS, "disk_errors", \
                "failures of the disk, and damaged answers"), \
  TIERS_GAUGE(b, TIERS_DISK_BYTES, "disk_bytes", "bytes in use in the file on disk"), \
  TIERS_GAUGE(b, TIERS_DISK_ENTRIES, "disk_entries", "answers on disk"), \
  TIERS_COUNTER(b, TIERS_REDIS_HITS, "redis_hits", "calls answered from Redis"), \
  TIERS_COUNTER(b, TIERS_REDIS_MISSES, "redis_misses", "calls looked for in Redis in vain"), \
  TIERS_COUNTER(b, TIERS_REDIS_HIT_BYTES, "redis_hit_bytes", "bytes of results from Redis"), \
  TIERS_COUNTER(b, TIERS_REDIS_SKIPPED, "redis_skipped", \
                "calls for which Redis was not asked: not connected, too slow, or too " \
                "many at once"), \
  TIERS_COUNTER(b, TIERS_REDIS_TIMEOUTS, "redis_timeouts", \
                "lookups that Redis did not answer in time"), \
  TIERS_COUNTER(b, TIERS_REDIS_STORED, "redis_stored", "answers put into Redis"), \
  TIERS_COUNTER(b, TIERS_REDIS_DROPPED, "redis_dropped", \
                "answers not put into Redis: not connected, too slow, or too many at " \
                "once"), \
  TIERS_COUNTER(b, TIERS_REDIS_ERRORS, "redis_errors", \
                "errors of Redis, and answers from it that were not right")

/* Main thread, in configure() and unconfigure(). `options` is borrowed. -1: an error was
 * reported. *out is NULL when there are no tiers. */
int tiers_configure(struct egw_conf *section, const struct tiers_options *options,
                    uint64_t max_value, unsigned metrics, struct tiers **out);
void tiers_free(struct tiers *tiers);

/* Worker start and stop. NULL: there are no tiers, or memory is short (logged). Desks are
 * freed by tiers_free(). */
struct tiers_desk *tiers_start(struct tiers *tiers, struct egw_worker *worker);
void tiers_stop(struct tiers_desk *desk);

/* The value (taken), or NULL: it is nowhere. The call is held: resume it. */
typedef void tiers_fn(const struct egw_at *at, struct egw_call *call, struct egw_buf *value);

/* A call that waits here: part of its state, zeroed. */
struct tiers_wait {
  struct tiers_desk *desk;      /* NULL: it does not wait */
  struct egw_at at;
  struct egw_call *call;
  struct egw_slice key;         /* valid as long as the call */
  tiers_fn *fn;
  void *disk, *redis;           /* lookups in flight */
  unsigned flushes;
};

/* Looks `key` up. true: wait (EGW_WAIT), fn is called later unless tiers_cancel() is.
 * false: there is nothing to wait for, it is a miss. desk NULL: false. */
bool tiers_look(struct tiers_desk *desk, const struct egw_at *at, struct egw_call *call,
                struct egw_slice key, struct tiers_wait *wait, tiers_fn *fn);
void tiers_cancel(struct tiers_wait *wait);

/* A lasting answer: written later, or dropped. key and value are borrowed. desk NULL:
 * nothing. */
void tiers_keep(struct tiers_desk *desk, const struct egw_at *at, struct egw_slice key,
                struct egw_buf *value);

/* History changed: nothing of what is there now is found from now on. `same`: under the
 * same identity, so that keys don't tell the old from the new. */
void tiers_flush(struct tiers_desk *desk, const struct egw_at *at, bool same);

/* Brings the metrics up to date, which they are with each lookup, too. desk NULL: nothing. */
void tiers_count(struct tiers_desk *desk, const struct egw_at *at);

#endif
