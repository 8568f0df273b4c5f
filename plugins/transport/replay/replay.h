/* SPDX-License-Identifier: MIT */
/* Inside of the replay transport: the recordings (replay-tape.c) and what serves them
 * (replay.c). */
#ifndef PLUGINS_TRANSPORT_REPLAY_H
#define PLUGINS_TRANSPORT_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

/* One recorded exchange; slices of the tape's text. */
struct replay_entry {
  uint64_t hash;                /* of method and params */
  struct egw_slice method;      /* with its quotes */
  struct egw_slice params;      /* raw; "[]" when the request had none */
  struct egw_slice answer;      /* the result, or the error object */
  bool is_error;
};

/* A file in memory, constant once it is loaded. Any thread. */
struct replay_tape {
  char *text;
  size_t len;
  struct replay_entry *entries;
  size_t count, room;
  uint32_t *slots;              /* index + 1 of an entry, 0: free */
  size_t slot_count;            /* a power of two */
};

/* Loads a file. NULL, with a reason that does not have the path in `why` (cap bytes). */
struct replay_tape *tape_load(const char *path, char *why, size_t cap);
void tape_free(struct replay_tape *tape);

/* The exchange for a request, or NULL. White space between the tokens of params makes no
 * difference; a missing slice is as good as []. */
const struct replay_entry *tape_find(const struct replay_tape *tape, struct egw_slice method,
                                     struct egw_slice params);

#endif
