/* SPDX-License-Identifier: MIT */
/* Flights: identical calls that are under way together. The first caller leads; those who come
 * while it is under way follow. One table for all workers of an instance: sharded, each shard
 * under a mutex that is held for a few instructions and never during a call into the host.
 *
 * A follower's record is held by its call and, while it is in a flight or in the mail, by that:
 * two counts, changed under the shard's mutex. */
#ifndef COALESCE_FLIGHTS_H
#define COALESCE_FLIGHTS_H

#include <stdbool.h>
#include <ethrpc-gw/middleware.h>

struct flight;

/* What a follower is told. */
enum news {
  NEWS_ANSWER,   /* here is the answer */
  NEWS_LEAD,     /* the leader is gone: you lead now */
  NEWS_GO        /* go by yourself */
};

struct follower {
  struct follower *next;        /* in the flight, in order of arrival */
  struct flight *flight;        /* NULL once it was taken off */
  struct shard *shard;
  unsigned holders;             /* 1 or 2, under the shard's mutex */
  struct egw_worker *worker;
  uint64_t ticket;
  void *state;                  /* of its call: valid while the ticket finds the call */
  /* the mail: */
  enum news news;
  struct flight *inherits;      /* NEWS_LEAD: the flight it is to lead */
  struct egw_buf *buf;          /* NEWS_ANSWER: a reference; `part` lies in it */
  struct egw_slice part;
  bool is_error;
};

struct flights *flights_new(void);
void flights_free(struct flights *flights);

enum boarding { BOARD_LEAD, BOARD_FOLLOW, BOARD_ALONE };

/* Joins the flight of this method and params, or begins it. LEAD: *flight. FOLLOW: *follower, which
 * the caller gives back by follower_put(). ALONE: `most` follow already, or memory is short. */
struct boarder {
  struct egw_worker *worker;
  uint64_t ticket;
  void *state;
};
enum boarding flights_board(struct flights *flights, struct egw_slice method,
                            struct egw_slice params, unsigned most, const struct boarder *who,
                            struct flight **flight, struct follower **follower);

/* The leader's end. Ends the flight and returns its followers, each to be told the news. */
struct follower *flight_land(struct flight *flight);

/* The leader is gone without an answer: returns the follower who leads now (the flight goes on), or
 * NULL when nobody followed: the flight is over. After `most` times *rest gets all followers
 * instead, to go by themselves. */
struct follower *flight_hand_over(struct flight *flight, unsigned most, struct follower **rest);

/* The follower's call has ended or been cancelled: takes it off its flight. */
void follower_leave(struct follower *follower);

/* Gives back one hold. */
void follower_put(struct follower *follower);

#endif
