/* SPDX-License-Identifier: MIT */
/* The store: keys to values, bounded by bytes, shared by all workers.
 *
 * Sharded; each shard has a mutex that is held for one lookup or insertion. Values are counted
 * buffers: a hit is a reference, nothing is copied. Eviction is S3-FIFO (Yang et al., SOSP 2023):
 * new entries pass a small queue, and only those asked for again there move on to the main one, so
 * that a client that walks through the chain once does not flush what others use; a list of
 * the hashes of those thrown out lets one that comes back go straight to the main queue.
 *
 * Any thread. */
#ifndef CACHE_STORE_H
#define CACHE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

struct store;

struct store_key {
  struct egw_slice method, params;
};

/* At most `limit` bytes of keys, values and bookkeeping. NULL: no memory. */
struct store *store_new(uint64_t limit) EGW_MUST_CHECK;
void store_free(struct store *store);

/* A reference to the value, or NULL. Keys are compared in full. */
struct egw_buf *store_get(struct store *store, const struct store_key *key);

/* Keeps `value` (the reference is taken) under a copy of the key, if nothing is there yet. *evicted
 * gets how many entries had to go. false: it does not fit, or memory is short. */
bool store_put(struct store *store, const struct store_key *key, struct egw_buf *value,
               unsigned *evicted);

/* Throws everything out. */
void store_clear(struct store *store);

/* Bytes and entries now. */
void store_size(struct store *store, uint64_t *bytes, uint64_t *entries);

#endif
