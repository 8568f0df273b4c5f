/* SPDX-License-Identifier: MIT */
/* The bucket of all clients together. */
#include "total.h"

#define WINDOW_MS 10000u
/* A share is a small part of the rate: its units are so much smaller. The rate's burst is one
 * second's worth, or one call, below 2^44. */
#define FINER 65536u

int
total_init(struct total *total, const struct rate *rate)
{
  total->rate = *rate;
  return pthread_mutex_init(&total->lock, NULL) == 0 ? 0 : -1;
}

void
total_free(struct total *total)
{
  (void)pthread_mutex_destroy(&total->lock);
}

/* Counts the client as active. Numbers begin with 1, so that a new share is in none. */
static void
note_active(struct total *total, struct total_share *share, uint64_t now)
{
  uint64_t window = now / WINDOW_MS + 1;

  if (window > total->window) {
    total->active_before = window == total->window + 1 ? total->active : 0;
    total->active = 0;
    total->window = window;
  }
  if (share->window != total->window) {
    share->window = total->window;
    total->active++;
  }
}

/* What one client may have. There is always room for one more than one. */
static struct rate
share_rate(const struct total *total)
{
  uint64_t n = total->active > total->active_before ? total->active : total->active_before;
  struct rate rate = { .price = total->rate.price * FINER };

  if (n < 2)
    n = 2;
  rate.gain = total->rate.gain * FINER / n;
  if (rate.gain == 0)
    rate.gain = 1;
  rate.cap = total->rate.cap * FINER / n;
  return rate;
}

/* What it takes beyond its share is not held against it later. */
static void
charge_share(struct bucket *bucket, const struct rate *rate, uint64_t price)
{
  uint64_t most = rate->cap > price ? rate->cap : price;

  bucket->debt += price;
  if (bucket->debt > most)
    bucket->debt = most;
}

uint64_t
total_take(struct total *total, struct total_share *share, unsigned cost, uint64_t now,
           uint64_t *due_us)
{
  uint64_t price = total->rate.price * cost, limit = total->rate.cap, wait;
  struct rate own;

  (void)pthread_mutex_lock(&total->lock);
  note_active(total, share, now);
  own = share_rate(total);
  bucket_settle(&total->bucket, &total->rate, now);
  bucket_settle(&share->bucket, &own, now);
  if (bucket_wait(&share->bucket, &own, own.price * cost, own.cap) > 0)
    limit /= 2;
  wait = bucket_wait(&total->bucket, &total->rate, price, limit);
  if (wait == 0) {
    total->bucket.debt += price;
    account_take(&total->account, &total->bucket, price, due_us != NULL);
    if (due_us != NULL)
      *due_us = account_due(&total->account, &total->rate);
    charge_share(&share->bucket, &own, own.price * cost);
  }
  share->idle_at = bucket_full_at(&share->bucket, &own);
  if (share->idle_at < share->window * WINDOW_MS)
    share->idle_at = share->window * WINDOW_MS;
  (void)pthread_mutex_unlock(&total->lock);
  return wait;
}

void
total_told(struct total *total, uint64_t owed_us, uint64_t now)
{
  (void)pthread_mutex_lock(&total->lock);
  account_told(&total->account, &total->bucket, &total->rate, owed_us, now);
  (void)pthread_mutex_unlock(&total->lock);
}

uint64_t
total_more(struct total *total)
{
  uint64_t us;

  (void)pthread_mutex_lock(&total->lock);
  us = account_more(&total->account, &total->rate);
  (void)pthread_mutex_unlock(&total->lock);
  return us;
}

void
total_give_up(struct total *total)
{
  (void)pthread_mutex_lock(&total->lock);
  account_give_up(&total->account);
  (void)pthread_mutex_unlock(&total->lock);
}
