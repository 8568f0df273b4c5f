/* SPDX-License-Identifier: MIT */
/* The bucket of all clients together, and its fair use.
 *
 * First come, first served would favour whoever asks most often. So each client has a share: a
 * bucket filled with the rate divided by the number of clients that were active lately. What
 * is within its share a client may take as long as there is anything; what is beyond, only
 * while that leaves the common bucket half full. One that wants everything gets what is left
 * over, and the others find the half that they need. */
#ifndef RATELIMIT_TOTAL_H
#define RATELIMIT_TOTAL_H

#include <pthread.h>
#include <stdint.h>
#include "account.h"
#include "rate.h"

struct total {
  struct rate rate;
  pthread_mutex_t lock;
  struct bucket bucket;
  struct account account;        /* of the bucket */
  uint64_t window;               /* number of the current one */
  uint64_t active, active_before; /* clients in this window and in the one before */
};

/* A client's part in it; zeroed at first. */
struct total_share {
  struct bucket bucket;
  uint64_t window;               /* the last one it was active in */
  uint64_t idle_at;              /* ms: from then on it may be forgotten */
};

/* 0 or -1. */
int total_init(struct total *total, const struct rate *rate);
void total_free(struct total *total);

/* Takes `cost` for the client: 0; or nothing, and in how many ms it may try again. *due_us (or
 * NULL) gets what account_due() says. The caller keeps other threads from the share. */
uint64_t total_take(struct total *total, struct total_share *share, unsigned cost,
                    uint64_t now, uint64_t *due_us);

/* What the ledger said; what there is to tell later; that nobody will: account.h. */
void total_told(struct total *total, uint64_t owed_us, uint64_t now);
uint64_t total_more(struct total *total);
void total_give_up(struct total *total);

#endif
