/* SPDX-License-Identifier: MIT */
/* Cutting a byte stream into JSON values: they stand back to back, with or without white space
 * between them, and may arrive split at any byte. Each byte is scanned once. Pure: no sockets.
 *
 *   frame_init -> (frame_feed -> frame_next ... FRAME_MORE) ... -> frame_finish -> frame_free
 *
 * After a broken value there is no telling where the next one begins. It is looked for at the
 * first of: the end of the broken value by its brackets; a line that begins with { or [; or,
 * if no bracket was open, the end of the line or the next bracket. What lies before is
 * skipped.
 *
 * One thread. */
#ifndef LISTEN_IPC_FRAME_H
#define LISTEN_IPC_FRAME_H

#include "base/budget.h"
#include "rpc/scan.h"

enum frame_found {
  FRAME_MORE,       /* all bytes were looked at and the unfinished rest kept: feed again */
  FRAME_VALUE,      /* a whole value */
  FRAME_BROKEN,     /* the value is not JSON (said once for each) */
  FRAME_OVERLOADED, /* the budget has no room for the value; it is skipped (said once) */
  FRAME_TOO_LARGE,  /* the value is longer than the limit; nothing more will be found */
  FRAME_LOST,       /* no value was found behind a broken one within the limit; nothing more */
  FRAME_NO_MEMORY   /* nothing more will be found */
};

enum frame_mode { FRAME_BETWEEN, FRAME_INSIDE, FRAME_DROPPING, FRAME_SKIPPING, FRAME_DEAD };

struct frame {
  enum frame_mode mode;
  unsigned max_depth;
  uint64_t limit;              /* bytes of one value */
  struct budget *budget;       /* or NULL */
  enum frame_found failed;     /* to be said next; FRAME_MORE: nothing */
  struct scan scan;
  unsigned bom;                /* bytes of a byte order mark seen before the value */
  uint64_t length;             /* of the value so far, or of what is skipped */
  /* the bytes at hand: the caller's, or `held` */
  const char *bytes;
  size_t len, at, from;        /* looked at up to `at`; the value begins at `from` */
  struct egw_buf *held;
  size_t reserved;             /* from the budget, for `held` */
  /* skipping: */
  size_t depth;
  bool in_string, escaped, line_began;
};

void frame_init(struct frame *frame, unsigned max_depth, uint64_t limit,
                struct budget *budget);
void frame_free(struct frame *frame);

/* The next bytes of the stream, borrowed until frame_next() says FRAME_MORE or frame_keep() is
 * called. Only after FRAME_MORE. */
void frame_feed(struct frame *frame, const char *bytes, size_t len);

/* Finds the next thing. FRAME_VALUE: *text is its bytes, a reference of the caller's. */
enum frame_found frame_next(struct frame *frame, struct egw_buf **text);

/* The caller stops asking for now and its bytes will go away: keeps what was not looked at. It
 * goes on with frame_next(), which also tells if that failed. */
void frame_keep(struct frame *frame);

/* No more bytes will come (after FRAME_MORE): FRAME_VALUE for a number that ends here,
 * FRAME_BROKEN for an incomplete value, else FRAME_MORE. */
enum frame_found frame_finish(struct frame *frame, struct egw_buf **text);

/* A value has begun and not ended (or a broken one is being skipped). */
static inline bool
frame_unfinished(const struct frame *frame)
{
  return frame->mode != FRAME_BETWEEN || frame->bom > 0;
}

#endif
