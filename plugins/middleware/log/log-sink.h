/* SPDX-License-Identifier: MIT */
/* The file of the access log and the thread that writes it. */
#ifndef PLUGINS_LOG_SINK_H
#define PLUGINS_LOG_SINK_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_SIZE 65536u

/* Whole lines on their way to the file. */
struct chunk {
  struct chunk *next;
  size_t len;
  unsigned lines;
  char bytes[CHUNK_SIZE];
};

struct sink;

/* A sink for the file `path`, which must live as long; nothing is opened yet. NULL when memory
 * is short. */
struct sink *sink_new(const char *path);
void sink_free(struct sink *sink);

/* A worker begins to use it: the first one opens the file and starts the writer. 0, or -1
 * after logging why. */
int sink_join(struct sink *sink);
/* A worker ends: the last one waits until the writer has written what it was given. */
void sink_leave(struct sink *sink);

/* Hands a chunk over (taken), or loses it when too much is waiting. Any thread. */
void sink_put(struct sink *sink, struct chunk *chunk);

/* Lines lost since it was asked last. Any thread. */
uint64_t sink_lost(struct sink *sink);

#endif
