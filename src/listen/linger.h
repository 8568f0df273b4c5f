/* SPDX-License-Identifier: MIT */
/* Refusals, and closing a connection such that its client can read the last answer: closing a
 * socket that holds unread bytes makes the kernel send a reset, which can overtake the answer.
 * So the sending side is shut and what still comes in is read for a while, within bounds. */
#ifndef LISTEN_LINGER_H
#define LISTEN_LINGER_H

#include "listen/parts.h"

/* A refusal in HTTP. */
struct refusal_text {
  int status;
  const char *why;             /* constant text */
  struct egw_slice origin;     /* allowed Origin to name in the CORS headers, or missing */
  bool no_body;                /* the answer to a HEAD */
  bool admin;                  /* which methods the 405 names */
};

#define REFUSAL_MAX 1024

/* Prints the whole response, with "Connection: close" and a JSON-RPC error as its body.
 * Returns its length (0 when an origin is too long for `cap`). */
size_t refusal_print(const struct refusal_text *text, char *out, size_t cap);

/* Prints and sends it, as far as the socket takes it at once. */
void refusal_send(int fd, const struct refusal_text *text);

struct linger_set;

/* NULL when memory is short. */
struct linger_set *linger_new(struct listen_worker *lw) EGW_MUST_CHECK;

/* Takes the descriptor: shuts its sending side, reads what still comes, closes it. */
void linger_close(struct listen_worker *lw, int fd);

/* Closes all at once; ends in listen_part_closed(). */
void linger_stop(struct linger_set *linger);

#endif
