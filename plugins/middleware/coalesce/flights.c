/* SPDX-License-Identifier: MIT */
/* The table of flights. */
#include "flights.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SHARDS 16u
#define BUCKETS 256u /* of each shard; chains are short, since only what is in flight is here */

struct shard {
  pthread_mutex_t lock;
  struct flight *buckets[BUCKETS];
};

struct flights {
  struct shard shards[SHARDS];
};

struct flight {
  struct flight *next;
  struct shard *shard;
  unsigned bucket;
  struct follower *first, **end;
  unsigned followers, handed_over;
  size_t method_len, params_len;
  char key[];                   /* method, then params */
};

struct flights *
flights_new(void)
{
  struct flights *flights = calloc(1, sizeof(*flights));
  unsigned i;

  if (flights == NULL)
    return NULL;
  for (i = 0; i < SHARDS; i++)
    if (pthread_mutex_init(&flights->shards[i].lock, NULL) != 0) {
      while (i-- > 0)
        pthread_mutex_destroy(&flights->shards[i].lock);
      free(flights);
      return NULL;
    }
  return flights;
}

void
flights_free(struct flights *flights)
{
  unsigned i;

  if (flights == NULL)
    return;
  for (i = 0; i < SHARDS; i++)
    pthread_mutex_destroy(&flights->shards[i].lock);
  free(flights);
}

/* FNV-1a. Clients can make keys collide, but only among what they have in flight themselves at
 * the moment, which is bounded; keys are always compared in full. */
static uint64_t
hash(uint64_t h, struct egw_slice bytes)
{
  size_t i;

  for (i = 0; i < bytes.len; i++)
    h = (h ^ (unsigned char)bytes.ptr[i]) * UINT64_C(0x100000001b3);
  return h;
}

static bool
same(const struct flight *f, struct egw_slice method, struct egw_slice params)
{
  return f->method_len == method.len && f->params_len == params.len &&
         memcmp(f->key, method.ptr, method.len) == 0 &&
         memcmp(f->key + method.len, params.ptr, params.len) == 0;
}

static struct flight *
make_flight(struct shard *shard, unsigned bucket, struct egw_slice method,
            struct egw_slice params)
{
  struct flight *f = malloc(sizeof(*f) + method.len + params.len);

  if (f == NULL)
    return NULL;
  memset(f, 0, sizeof(*f));
  f->shard = shard;
  f->bucket = bucket;
  f->end = &f->first;
  f->method_len = method.len;
  f->params_len = params.len;
  memcpy(f->key, method.ptr, method.len);
  memcpy(f->key + method.len, params.ptr, params.len);
  return f;
}

static void
add_follower(struct flight *f, struct follower *one)
{
  one->flight = f;
  one->shard = f->shard;
  one->holders = 2;
  *f->end = one;
  f->end = &one->next;
  f->followers++;
}

/* Takes the flight out of the table; its followers are on their own. */
static struct follower *
dissolve(struct flight *f)
{
  struct flight **at = &f->shard->buckets[f->bucket];
  struct follower *all = f->first, *one;

  while (*at != f)
    at = &(*at)->next;
  *at = f->next;
  for (one = all; one != NULL; one = one->next)
    one->flight = NULL;
  return all;
}

enum boarding
flights_board(struct flights *flights, struct egw_slice method, struct egw_slice params,
              unsigned most, const struct boarder *who, struct flight **flight,
              struct follower **follower)
{
  uint64_t h = hash(hash(UINT64_C(0xcbf29ce484222325), method), params);
  struct shard *shard = &flights->shards[h >> 60 & (SHARDS - 1)];
  unsigned bucket = (unsigned)(h >> 32) % BUCKETS;
  struct follower *one = calloc(1, sizeof(*one));
  struct flight *f, *made = make_flight(shard, bucket, method, params);
  enum boarding boarding = BOARD_ALONE;

  if (one == NULL || made == NULL)
    goto out;
  one->worker = who->worker;
  one->ticket = who->ticket;
  one->state = who->state;
  pthread_mutex_lock(&shard->lock);
  for (f = shard->buckets[bucket]; f != NULL && !same(f, method, params); f = f->next)
    continue;
  if (f == NULL) {
    made->next = shard->buckets[bucket];
    shard->buckets[bucket] = made;
    *flight = made;
    made = NULL;
    boarding = BOARD_LEAD;
  } else if (f->followers < most) {
    add_follower(f, one);
    *follower = one;
    one = NULL;
    boarding = BOARD_FOLLOW;
  }
  pthread_mutex_unlock(&shard->lock);
out:
  free(one);
  free(made);
  return boarding;
}

struct follower *
flight_land(struct flight *flight)
{
  struct shard *shard = flight->shard;
  struct follower *all;

  pthread_mutex_lock(&shard->lock);
  all = dissolve(flight);
  pthread_mutex_unlock(&shard->lock);
  free(flight);
  return all;
}

static struct follower *
take_first(struct flight *f)
{
  struct follower *one = f->first;

  f->first = one->next;
  if (f->first == NULL)
    f->end = &f->first;
  f->followers--;
  one->next = NULL;
  one->flight = NULL;
  return one;
}

struct follower *
flight_hand_over(struct flight *flight, unsigned most, struct follower **rest)
{
  struct shard *shard = flight->shard;
  struct follower *heir = NULL;
  bool over = false;

  *rest = NULL;
  pthread_mutex_lock(&shard->lock);
  if (flight->first == NULL || flight->handed_over >= most) {
    *rest = dissolve(flight);
    over = true;
  } else {
    flight->handed_over++;
    heir = take_first(flight);
  }
  pthread_mutex_unlock(&shard->lock);
  if (over)
    free(flight);
  return heir;
}

/* Under the mutex. */
static bool
drop_hold(struct follower *one)
{
  return --one->holders == 0;
}

void
follower_leave(struct follower *follower)
{
  struct shard *shard = follower->shard;
  struct flight *f;
  bool last = false;

  pthread_mutex_lock(&shard->lock);
  f = follower->flight;
  if (f != NULL) {
    struct follower **at = &f->first;

    while (*at != follower)
      at = &(*at)->next;
    *at = follower->next;
    if (f->end == &follower->next)
      f->end = at;
    f->followers--;
    follower->flight = NULL;
    last = drop_hold(follower); /* the flight's */
  }
  pthread_mutex_unlock(&shard->lock);
  if (last)
    free(follower);
}

void
follower_put(struct follower *follower)
{
  struct shard *shard = follower->shard;
  bool last;

  pthread_mutex_lock(&shard->lock);
  last = drop_hold(follower);
  pthread_mutex_unlock(&shard->lock);
  if (last)
    free(follower);
}
