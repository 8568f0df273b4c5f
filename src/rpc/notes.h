/* SPDX-License-Identifier: MIT */
/* What goes with an answer beside its bytes, for clients that asked: what the cache did, and the
 * stories of the calls. Pure; any thread. */
#ifndef RPC_NOTES_H
#define RPC_NOTES_H

#include "rpc/answer.h"

#define NOTES_CACHE_MAX 64u    /* members that are told of */
#define NOTES_STORY_MAX 4096u  /* bytes */

/* Of one member. */
struct call_note {
  const char *cache;           /* "hit", ... or NULL: no cache was there */
  const char *story;           /* or NULL */
};

/* One word for each member that is answered, in order, joined by ", ": its cache status or "none";
 * at most NOTES_CACHE_MAX, then "...". malloc'ed; NULL: nothing is answered, or no memory. */
char *notes_cache(const struct member *members, const struct call_note *notes, size_t count);

/* Their stories in order, as far as there is room: alone as it is, in arrays each with the number
 * of the member in front ("#0 ... | #1 ..."), then "...". The same. */
char *notes_story(const struct member *members, const struct call_note *notes, size_t count);

#endif
