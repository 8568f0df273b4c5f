/* SPDX-License-Identifier: MIT */
/* The table of clients: hash chains to find one, a heap to find the one that may go. Both are
 * made of numbers of slots, which never move. */
#include "clients.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "account.h"
#include "total.h"

#define SHARDS_MAX 16u
#define SHARD_MIN 64u            /* clients; smaller tables have fewer shards */
#define NONE UINT32_MAX
#define TIDY_MAX 4u              /* idle clients that leave when one comes */

struct client {
  struct client_key key;
  uint32_t next;                 /* in its chain, or in the list of free slots */
  uint32_t place;                /* in the heap */
  uint64_t idle_at;              /* ms: nothing is lost when it is forgotten then */
  struct bucket bucket;
  struct account account;        /* of the bucket */
  struct total_share share;
};

struct shard {
  pthread_mutex_t lock;
  struct client *slots;
  uint32_t *chains, *heap;       /* heap: the first one is idle soonest */
  uint32_t used, free_slots;     /* clients; list of slots that were given back */
  uint32_t fresh;                /* slots from here on were never used */
};

struct clients {
  struct clients_limits limits;
  uint64_t seeds[2];
  struct total total;
  bool total_there;
  uint32_t shard_count, shard_size, chain_count; /* all but shard_size: powers of two */
  uint32_t shards_there;
  struct shard shards[SHARDS_MAX];
};

/* --- life -------------------------------------------------------------------------------- */

static int
shard_init(struct shard *shard, const struct clients *clients)
{
  uint32_t size = clients->shard_size;

  if (pthread_mutex_init(&shard->lock, NULL) != 0)
    return -1;
  shard->free_slots = NONE;
  shard->slots = calloc(size, sizeof *shard->slots);
  shard->heap = calloc(size, sizeof *shard->heap);
  shard->chains = calloc(clients->chain_count, sizeof *shard->chains);
  if (shard->slots != NULL && shard->heap != NULL && shard->chains != NULL) {
    memset(shard->chains, 0xff, clients->chain_count * sizeof *shard->chains);
    return 0;
  }
  free(shard->slots);
  free(shard->heap);
  free(shard->chains);
  (void)pthread_mutex_destroy(&shard->lock);
  return -1;
}

struct clients *
clients_new(const struct clients_limits *limits)
{
  struct clients *c = calloc(1, sizeof *c);

  if (c == NULL)
    return NULL;
  c->limits = *limits;
  c->shard_count = SHARDS_MAX;
  while (c->shard_count > 1 && limits->most / c->shard_count < SHARD_MIN)
    c->shard_count /= 2;
  c->shard_size = (uint32_t)(limits->most / c->shard_count);
  for (c->chain_count = 1; c->chain_count < c->shard_size;)
    c->chain_count *= 2;
  /* without a random seed the table works as well, but clients might know what collides */
  (void)!getrandom(c->seeds, sizeof c->seeds, GRND_NONBLOCK);
  if (limits->total.gain > 0) {
    if (total_init(&c->total, &limits->total) < 0)
      goto failed;
    c->total_there = true;
  }
  for (; c->shards_there < c->shard_count; c->shards_there++)
    if (shard_init(&c->shards[c->shards_there], c) < 0)
      goto failed;
  return c;
failed:
  clients_free(c);
  return NULL;
}

void
clients_free(struct clients *clients)
{
  if (clients == NULL)
    return;
  for (uint32_t i = 0; i < clients->shards_there; i++) {
    struct shard *shard = &clients->shards[i];

    free(shard->slots);
    free(shard->heap);
    free(shard->chains);
    (void)pthread_mutex_destroy(&shard->lock);
  }
  if (clients->total_there)
    total_free(&clients->total);
  free(clients);
}

/* --- the heap ---------------------------------------------------------------------------- */

static uint64_t
heap_key(const struct shard *shard, uint32_t place)
{
  return shard->slots[shard->heap[place]].idle_at;
}

static void
heap_swap(struct shard *shard, uint32_t a, uint32_t b)
{
  uint32_t slot = shard->heap[a];

  shard->heap[a] = shard->heap[b];
  shard->heap[b] = slot;
  shard->slots[shard->heap[a]].place = a;
  shard->slots[shard->heap[b]].place = b;
}

static void
heap_up(struct shard *shard, uint32_t place)
{
  while (place > 0 && heap_key(shard, place) < heap_key(shard, (place - 1) / 2)) {
    heap_swap(shard, place, (place - 1) / 2);
    place = (place - 1) / 2;
  }
}

static void
heap_down(struct shard *shard, uint32_t place)
{
  for (;;) {
    uint32_t least = place, below = 2 * place + 1;

    if (below < shard->used && heap_key(shard, below) < heap_key(shard, least))
      least = below;
    if (below + 1 < shard->used && heap_key(shard, below + 1) < heap_key(shard, least))
      least = below + 1;
    if (least == place)
      return;
    heap_swap(shard, place, least);
    place = least;
  }
}

/* --- coming and going -------------------------------------------------------------------- */

/* Mixes all bits into all others, with a secret: clients choose their addresses. */
static uint64_t
hash(const struct clients *clients, struct client_key key)
{
  uint64_t h = (key.value ^ clients->seeds[0]) + key.kind;

  h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
  h = (h ^ h >> 32) ^ clients->seeds[1];
  h = (h ^ h >> 29) * UINT64_C(0xd6e8feb86659fd93);
  return h ^ h >> 32;
}

static uint32_t *
chain_of(const struct clients *clients, struct shard *shard, uint64_t h)
{
  return &shard->chains[h & (clients->chain_count - 1)];
}

static uint32_t
find(const struct shard *shard, uint32_t first, struct client_key key)
{
  uint32_t slot = first;

  while (slot != NONE && (shard->slots[slot].key.value != key.value ||
                          shard->slots[slot].key.kind != key.kind))
    slot = shard->slots[slot].next;
  return slot;
}

/* The first one of the heap leaves. */
static void
remove_first(const struct clients *clients, struct shard *shard)
{
  uint32_t slot = shard->heap[0];
  struct client *client = &shard->slots[slot];
  uint32_t *at = chain_of(clients, shard, hash(clients, client->key));

  while (*at != slot)
    at = &shard->slots[*at].next;
  *at = client->next;
  heap_swap(shard, 0, shard->used - 1);
  shard->used--;
  heap_down(shard, 0);
  client->next = shard->free_slots;
  shard->free_slots = slot;
}

static void
make_room(const struct clients *clients, struct shard *shard, uint64_t now,
          struct clients_taken *taken)
{
  for (unsigned i = 0; i < TIDY_MAX && shard->used > 0 && heap_key(shard, 0) <= now; i++) {
    remove_first(clients, shard);
    taken->added--;
  }
  if (shard->used < clients->shard_size)
    return;
  remove_first(clients, shard);
  taken->added--;
  taken->evicted++;
}

/* There is room. The heap is put in order when the call has been charged. */
static uint32_t
add(struct shard *shard, uint32_t *chain, struct client_key key, uint64_t now)
{
  uint32_t slot = shard->free_slots != NONE ? shard->free_slots : shard->fresh++;
  struct client *client = &shard->slots[slot];

  if (slot == shard->free_slots)
    shard->free_slots = client->next;
  *client = (struct client){ .key = key, .next = *chain, .place = shard->used,
                             .idle_at = now, .bucket = { .at = now },
                             .share = { .bucket = { .at = now } } };
  *chain = slot;
  shard->heap[shard->used++] = slot;
  return slot;
}

/* --- calls ------------------------------------------------------------------------------- */

static struct shard *
shard_of(struct clients *clients, uint64_t h)
{
  return &clients->shards[h >> 32 & (clients->shard_count - 1)];
}

/* After what it owes has changed. */
static void
put_in_order(struct shard *shard, uint32_t slot, const struct rate *each)
{
  struct client *client = &shard->slots[slot];
  uint64_t idle_at = each->gain > 0 ? bucket_full_at(&client->bucket, each) : 0;

  client->idle_at = idle_at > client->share.idle_at ? idle_at : client->share.idle_at;
  heap_up(shard, client->place);
  heap_down(shard, client->place);
}

/* Takes from both buckets or from none. */
static void
charge(struct clients *clients, struct client *client, const struct clients_call *call,
       struct clients_taken *taken)
{
  const struct rate *each = call->each;
  uint64_t price = each->price * call->cost;

  if (each->gain > 0) {
    bucket_settle(&client->bucket, each, call->now);
    taken->wait_ms = bucket_wait(&client->bucket, each, price, each->cap);
  }
  if (taken->wait_ms == 0 && clients->total_there)
    taken->wait_ms = total_take(&clients->total, &client->share, call->cost, call->now,
                                call->share ? &taken->total_due_us : NULL);
  if (taken->wait_ms > 0 || each->gain == 0)
    return;
  client->bucket.debt += price;
  account_take(&client->account, &client->bucket, price, call->share);
  if (call->share)
    taken->due_us = account_due(&client->account, each);
}

struct clients_taken
clients_take(struct clients *clients, const struct clients_call *call)
{
  struct clients_taken taken = { 0 };
  uint64_t h = hash(clients, call->who);
  struct shard *shard = shard_of(clients, h);
  uint32_t *chain = chain_of(clients, shard, h), slot;

  if (call->each->gain == 0 && !clients->total_there)
    return taken;
  (void)pthread_mutex_lock(&shard->lock);
  slot = find(shard, *chain, call->who);
  if (slot == NONE) {
    make_room(clients, shard, call->now, &taken);
    slot = add(shard, chain, call->who, call->now);
    taken.added++;
  }
  charge(clients, &shard->slots[slot], call, &taken);
  put_in_order(shard, slot, call->each);
  (void)pthread_mutex_unlock(&shard->lock);
  return taken;
}

/* --- the ledger -------------------------------------------------------------------------- */

/* What to do with a client's account. */
enum about { ABOUT_TOLD, ABOUT_MORE, ABOUT_GIVE_UP };

/* Nothing happens to one who was forgotten meanwhile. */
static uint64_t
settle(struct clients *clients, const struct clients_call *call, enum about about,
       uint64_t owed_us)
{
  uint64_t h = hash(clients, call->who), left = 0;
  struct shard *shard = shard_of(clients, h);
  struct client *client;
  uint32_t slot;

  (void)pthread_mutex_lock(&shard->lock);
  slot = find(shard, *chain_of(clients, shard, h), call->who);
  if (slot != NONE) {
    client = &shard->slots[slot];
    if (about == ABOUT_TOLD)
      account_told(&client->account, &client->bucket, call->each, owed_us, call->now);
    else if (about == ABOUT_MORE)
      left = account_more(&client->account, call->each);
    else
      account_give_up(&client->account);
    put_in_order(shard, slot, call->each);
  }
  (void)pthread_mutex_unlock(&shard->lock);
  return left;
}

void
clients_told(struct clients *clients, const struct clients_call *call, bool total,
             uint64_t owed_us)
{
  if (total)
    total_told(&clients->total, owed_us, call->now);
  else
    (void)settle(clients, call, ABOUT_TOLD, owed_us);
}

uint64_t
clients_more(struct clients *clients, const struct clients_call *call, bool total)
{
  return total ? total_more(&clients->total) : settle(clients, call, ABOUT_MORE, 0);
}

void
clients_give_up(struct clients *clients, const struct clients_call *call, bool total)
{
  if (total)
    total_give_up(&clients->total);
  else
    (void)settle(clients, call, ABOUT_GIVE_UP, 0);
}

const struct rate *
clients_total_rate(const struct clients *clients)
{
  return &clients->total.rate;
}
