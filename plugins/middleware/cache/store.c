/* SPDX-License-Identifier: MIT */
/* The store: a hash table and two queues for each shard. */
#include "store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SHARDS 16u
#define SMALL_PART 10u        /* the small queue gets one tenth of the bytes */
#define USES_MAX 3u           /* counted uses of an entry */
#define GHOST_SETS 1024u      /* of each shard; a power of two */
#define GHOST_WAYS 4u         /* hashes remembered of each set */
#define ENTRY_OVERHEAD 160u   /* bookkeeping and malloc's share, roughly */
#define FIRST_BUCKETS 1024u

struct entry {
  struct entry *chain;          /* in the bucket */
  struct entry *next, *prev;    /* in its queue; next is younger */
  struct egw_buf *value;
  uint64_t hash;
  uint64_t bytes;
  uint64_t since_ms;
  uint8_t uses;
  bool in_main, pinned;
  size_t key_len;
  char key[];                   /* and behind it the pin */
};

struct queue {
  struct entry *oldest, *youngest;
  uint64_t bytes;
};

struct shard {
  pthread_mutex_t lock;
  struct entry **buckets;
  size_t bucket_count;          /* a power of two */
  uint64_t entries, limit;
  struct queue small, main;
  uint64_t ghosts[GHOST_SETS][GHOST_WAYS]; /* hashes, the youngest first; 0: none */
};

struct store {
  uint64_t seed[2];
  atomic_uint cleared;
  struct shard shards[SHARDS];
};

/* --- keys -------------------------------------------------------------------------------- */

/* A seeded mix of 8 bytes at a time. The seed keeps clients from choosing collisions; a
 * collision costs time, never a wrong value, since keys are compared. */
static uint64_t
mix(uint64_t h, uint64_t v)
{
  __extension__ unsigned __int128 p =
      (unsigned __int128)(h ^ v) * UINT64_C(0x9e3779b97f4a7c15);

  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t
hash_bytes_seeded(uint64_t h, struct egw_slice bytes)
{
  size_t i = 0;
  uint64_t v;

  for (; bytes.len - i >= 8; i += 8) {
    memcpy(&v, bytes.ptr + i, 8);
    h = mix(h, v);
  }
  v = 0;
  memcpy(&v, bytes.ptr + i, bytes.len - i);
  return mix(mix(h, v), bytes.len);
}

static uint64_t
hash_key(const struct store *store, struct egw_slice key)
{
  uint64_t h = mix(hash_bytes_seeded(store->seed[0], key), store->seed[1]);

  return h == 0 ? 1 : h; /* 0 means "none" among the ghosts */
}

static bool
is_key(const struct entry *e, struct egw_slice key)
{
  return e->key_len == key.len && memcmp(e->key, key.ptr, key.len) == 0;
}

static bool
is_pinned_to(const struct entry *e, const struct store_pin *pin)
{
  return e->pinned && memcmp(e->key + e->key_len, pin, sizeof(*pin)) == 0;
}

/* --- queues ------------------------------------------------------------------------------ */

static void
queue_add(struct queue *q, struct entry *e)
{
  e->next = NULL;
  e->prev = q->youngest;
  if (q->youngest != NULL)
    q->youngest->next = e;
  else
    q->oldest = e;
  q->youngest = e;
  q->bytes += e->bytes;
}

static void
queue_remove(struct queue *q, struct entry *e)
{
  if (e->prev != NULL)
    e->prev->next = e->next;
  else
    q->oldest = e->next;
  if (e->next != NULL)
    e->next->prev = e->prev;
  else
    q->youngest = e->prev;
  q->bytes -= e->bytes;
  e->next = e->prev = NULL;
}

static struct entry *
queue_take_oldest(struct queue *q)
{
  struct entry *e = q->oldest;

  queue_remove(q, e);
  return e;
}

static struct entry **
bucket_of(struct shard *s, uint64_t hash)
{
  return &s->buckets[(hash >> 8) & (s->bucket_count - 1)];
}

/* Takes the entry out of the table and frees it; it is in no queue. */
static void
drop(struct shard *s, struct entry *e, struct store_change *change)
{
  struct entry **at = bucket_of(s, e->hash);

  while (*at != e)
    at = &(*at)->chain;
  *at = e->chain;
  s->entries--;
  change->entries--;
  change->bytes -= (int64_t)e->bytes;
  egw_buf_unref(e->value);
  free(e);
}

/* The same for one that is in its queue. */
static void
take_out(struct shard *s, struct entry *e, struct store_change *change)
{
  queue_remove(e->in_main ? &s->main : &s->small, e);
  drop(s, e, change);
}

/* --- eviction: S3-FIFO ------------------------------------------------------------------- */

/* Hashes spread evenly over the sets, so that the oldest of a set is about as old as the oldest
 * of all would be. */
static uint64_t *
ghosts_of(struct shard *s, uint64_t hash)
{
  return s->ghosts[hash >> 40 & (GHOST_SETS - 1)];
}

static void
remember_ghost(struct shard *s, uint64_t hash)
{
  uint64_t *set = ghosts_of(s, hash);

  memmove(set + 1, set, (GHOST_WAYS - 1) * sizeof(*set));
  set[0] = hash;
}

static bool
was_ghost(struct shard *s, uint64_t hash)
{
  uint64_t *set = ghosts_of(s, hash);
  unsigned i;

  for (i = 0; i < GHOST_WAYS; i++)
    if (set[i] == hash) {
      set[i] = 0;
      return true;
    }
  return false;
}

/* What a step of eviction needs. */
struct eviction {
  uint64_t now_ms;
  struct store_change *change;
};

static void
evict(struct shard *s, struct entry *e, const struct eviction *ev)
{
  ev->change->evicted++;
  if (ev->now_ms > e->since_ms) /* the clocks of two workers differ a little */
    ev->change->evicted_ms += ev->now_ms - e->since_ms;
  drop(s, e, ev->change);
}

static void
evict_small(struct shard *s, const struct eviction *ev)
{
  struct entry *e = queue_take_oldest(&s->small);

  if (e->uses > 0) {
    e->uses = 0;
    e->in_main = true;
    queue_add(&s->main, e);
    return;
  }
  remember_ghost(s, e->hash);
  evict(s, e, ev);
}

static void
evict_main(struct shard *s, const struct eviction *ev)
{
  struct entry *e = queue_take_oldest(&s->main);

  if (e->uses > 0) {
    e->uses--;
    queue_add(&s->main, e);
    return;
  }
  evict(s, e, ev);
}

/* Every step drops an entry, moves one to the main queue, or lowers a count: it ends. */
static void
make_room(struct shard *s, uint64_t bytes, const struct eviction *ev)
{
  while (s->small.bytes + s->main.bytes + bytes > s->limit) {
    if (s->small.oldest != NULL &&
        (s->small.bytes > s->limit / SMALL_PART || s->main.oldest == NULL))
      evict_small(s, ev);
    else
      evict_main(s, ev);
  }
}

/* --- the table --------------------------------------------------------------------------- */

static void
grow(struct shard *s)
{
  size_t n = s->bucket_count * 2, i;
  struct entry **buckets;

  if (s->entries < s->bucket_count)
    return;
  buckets = calloc(n, sizeof(struct entry *));
  if (buckets == NULL)
    return; /* longer chains then */
  for (i = 0; i < s->bucket_count; i++) {
    struct entry *e = s->buckets[i], *next;

    for (; e != NULL; e = next) {
      struct entry **at = &buckets[(e->hash >> 8) & (n - 1)];

      next = e->chain;
      e->chain = *at;
      *at = e;
    }
  }
  free(s->buckets);
  s->buckets = buckets;
  s->bucket_count = n;
}

static struct entry *
find(struct shard *s, uint64_t hash, struct egw_slice key)
{
  struct entry *e = *bucket_of(s, hash);

  while (e != NULL && (e->hash != hash || !is_key(e, key)))
    e = e->chain;
  return e;
}

bool
store_get(struct store *store, struct egw_slice key, struct store_found *out)
{
  uint64_t hash = hash_key(store, key);
  struct shard *s = &store->shards[hash & (SHARDS - 1)];
  struct entry *e;

  pthread_mutex_lock(&s->lock);
  e = find(s, hash, key);
  if (e != NULL) {
    if (e->uses < USES_MAX)
      e->uses++;
    out->value = egw_buf_ref(e->value);
    out->pinned = e->pinned;
    if (e->pinned)
      memcpy(&out->pin, e->key + e->key_len, sizeof(out->pin));
  }
  pthread_mutex_unlock(&s->lock);
  return e != NULL;
}

static uint64_t
entry_bytes(size_t key_len, size_t len, bool pinned)
{
  return (uint64_t)ENTRY_OVERHEAD + key_len + (pinned ? sizeof(struct store_pin) : 0) + len;
}

/* All shards have the same limit. */
bool
store_fits(const struct store *store, struct egw_slice key, size_t len, bool pinned)
{
  return entry_bytes(key.len, len, pinned) <= store->shards[0].limit / 2;
}

static struct entry *
make_entry(struct egw_slice key, struct egw_buf *value, const struct store_pin *pin,
           uint64_t hash)
{
  size_t pin_len = pin == NULL ? 0 : sizeof(*pin);
  struct entry *e = malloc(sizeof(*e) + key.len + pin_len);

  if (e == NULL)
    return NULL;
  *e = (struct entry){ .value = value, .hash = hash, .key_len = key.len,
                       .pinned = pin != NULL };
  e->bytes = entry_bytes(key.len, egw_buf_slice(value).len, pin != NULL);
  memcpy(e->key, key.ptr, key.len);
  if (pin != NULL)
    memcpy(e->key + key.len, pin, pin_len);
  return e;
}

/* Puts an entry in, unless one is there that stays. */
static bool
put_entry(struct shard *s, struct egw_slice key, struct entry *e, const struct store_pin *pin,
          const struct eviction *ev)
{
  struct entry *old = find(s, e->hash, key);

  if (old != NULL && (!old->pinned || (pin != NULL && is_pinned_to(old, pin))))
    return false;
  if (old != NULL)
    take_out(s, old, ev->change);
  make_room(s, e->bytes, ev);
  grow(s);
  e->chain = *bucket_of(s, e->hash);
  *bucket_of(s, e->hash) = e;
  s->entries++;
  ev->change->entries++;
  ev->change->bytes += (int64_t)e->bytes;
  e->in_main = was_ghost(s, e->hash);
  queue_add(e->in_main ? &s->main : &s->small, e);
  return true;
}

unsigned
store_cleared(const struct store *store)
{
  return atomic_load_explicit(&store->cleared, memory_order_acquire);
}

bool
store_put(struct store *store, struct egw_slice key, struct egw_buf *value,
          const struct store_terms *terms, struct store_change *change)
{
  uint64_t hash = hash_key(store, key);
  struct shard *s = &store->shards[hash & (SHARDS - 1)];
  bool fits = store_fits(store, key, egw_buf_slice(value).len, terms->pin != NULL), put = false;
  struct entry *e = fits ? make_entry(key, value, terms->pin, hash) : NULL;
  struct eviction ev = { terms->now_ms, change };

  if (e != NULL) {
    e->since_ms = terms->now_ms;
    /* Who clears counts first and comes to each shard then: an old answer is either kept out
     * here or thrown out there. */
    pthread_mutex_lock(&s->lock);
    put = store_cleared(store) == terms->cleared && put_entry(s, key, e, terms->pin, &ev);
    pthread_mutex_unlock(&s->lock);
  }
  if (!put) {
    free(e);
    egw_buf_unref(value);
  }
  return put;
}

bool
store_unpin(struct store *store, struct egw_slice key, const struct store_pin *pin)
{
  uint64_t hash = hash_key(store, key);
  struct shard *s = &store->shards[hash & (SHARDS - 1)];
  struct entry *e;
  bool was;

  pthread_mutex_lock(&s->lock);
  e = find(s, hash, key);
  was = e != NULL && is_pinned_to(e, pin);
  if (was)
    e->pinned = false;
  pthread_mutex_unlock(&s->lock);
  return was;
}

bool
store_drop(struct store *store, struct egw_slice key, const struct store_pin *pin,
           struct store_change *change)
{
  uint64_t hash = hash_key(store, key);
  struct shard *s = &store->shards[hash & (SHARDS - 1)];
  struct entry *e;
  bool was;

  pthread_mutex_lock(&s->lock);
  e = find(s, hash, key);
  was = e != NULL && is_pinned_to(e, pin);
  if (was)
    take_out(s, e, change);
  pthread_mutex_unlock(&s->lock);
  return was;
}

/* --- life -------------------------------------------------------------------------------- */

static void
clear_shard(struct shard *s, struct store_change *change)
{
  while (s->small.oldest != NULL)
    drop(s, queue_take_oldest(&s->small), change);
  while (s->main.oldest != NULL)
    drop(s, queue_take_oldest(&s->main), change);
  memset(s->ghosts, 0, sizeof(s->ghosts));
}

void
store_clear(struct store *store, struct store_change *change)
{
  unsigned i;

  atomic_fetch_add_explicit(&store->cleared, 1, memory_order_acq_rel);
  for (i = 0; i < SHARDS; i++) {
    pthread_mutex_lock(&store->shards[i].lock);
    clear_shard(&store->shards[i], change);
    pthread_mutex_unlock(&store->shards[i].lock);
  }
}

void
store_free(struct store *store)
{
  struct store_change change = { 0 };
  unsigned i;

  if (store == NULL)
    return;
  for (i = 0; i < SHARDS; i++) {
    clear_shard(&store->shards[i], &change);
    free(store->shards[i].buckets);
    pthread_mutex_destroy(&store->shards[i].lock);
  }
  free(store);
}

struct store *
store_new(uint64_t limit)
{
  struct store *store = calloc(1, sizeof(*store));
  unsigned i;

  if (store == NULL)
    return NULL;
  for (i = 0; i < SHARDS; i++) {
    struct shard *s = &store->shards[i];

    pthread_mutex_init(&s->lock, NULL); /* can't fail without attributes */
    s->limit = limit / SHARDS;
    s->bucket_count = FIRST_BUCKETS;
    s->buckets = calloc(FIRST_BUCKETS, sizeof(struct entry *));
    if (s->buckets == NULL) {
      store_free(store);
      return NULL;
    }
  }
  if (getrandom(store->seed, sizeof(store->seed), 0) != (ssize_t)sizeof(store->seed)) {
    store_free(store);
    return NULL;
  }
  return store;
}
