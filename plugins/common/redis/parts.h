/* SPDX-License-Identifier: MIT */
/* The inside of the Redis client: connection and replies. Included by its own files only. */
#ifndef COMMON_REDIS_PARTS_H
#define COMMON_REDIS_PARTS_H

#include <hiredis/read.h>
#include "redis.h"

struct uv_loop_s;
struct sockaddr;

/* --- address.c: is it on this machine, or in a private network? -------------------------- */

bool redis_address_near(const struct sockaddr *sa);

/* --- answer.c: replies as the reader makes them ------------------------------------------ */

/* What the reader is told by its privdata: replies that are still to come. One more is an
 * error, instead of what hiredis would make of it. */
struct redis_expected {
  unsigned replies;
};

/* A reader; its privdata is `expected`. NULL: memory is short. */
redisReader *redis_reader_new(struct redis_expected *expected);
void redis_answer_free(struct redis_answer *answer);

/* --- conn.c: one connection -------------------------------------------------------------- */

struct redis_conn;

/* Starts to connect, to `sa` or, when that is NULL, to the unix socket `path`. NULL: it
 * failed at once, *why says why. Reports to the client by redis_client_opened(),
 * _replied(), _lost(), none of them from within these functions. */
struct redis_conn *redis_conn_open(struct redis_client *client, struct uv_loop_s *loop,
                                   const struct sockaddr *sa, const char *path,
                                   size_t max_reply, const char **why);

/* Sends a command; one more reply is expected. -1: memory is short. */
int redis_conn_send(struct redis_conn *conn, const struct egw_slice *args, unsigned n);

/* Bytes not yet written. */
size_t redis_conn_unsent(const struct redis_conn *conn);

/* Ends it; it frees itself later, and the client hears nothing more. */
void redis_conn_close(struct redis_conn *conn);

/* --- client.c: what connections report --------------------------------------------------- */

void redis_client_opened(struct redis_client *client);
void redis_client_replied(struct redis_client *client, const struct redis_answer *answer);
/* The client closes it. */
void redis_client_lost(struct redis_client *client, const char *why);

#endif
