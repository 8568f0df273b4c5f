/* SPDX-License-Identifier: MIT */
/* Log filters: see match.h. All alternatives of a filter stand in one array, sorted by where they
 * belong: the address first, then the positions of topics. */
#include "push/match.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

#define ADDRESS_LEN 20u
#define TOPIC_LEN 32u
#define PLACES (1u + LOG_TOPICS)   /* the address and four topics */

struct alternative {
  unsigned char bytes[TOPIC_LEN];
  uint16_t bits[3];                /* in a bloom */
};

struct log_filter {
  unsigned first[PLACES + 1];      /* place p has alternatives first[p] to first[p + 1]; none: any */
  unsigned topics;                 /* a log must have so many */
  unsigned count, room;
  struct alternative *v;
};

/* The three bits of an item: the low 11 bits of the first three pairs of bytes of its hash. */
static void
bloom_bits(const unsigned char *bytes, size_t len, uint16_t bits[3])
{
  unsigned char hash[32];
  unsigned i;

  egw_keccak256((struct egw_slice){ (const char *)bytes, len }, hash);
  for (i = 0; i < 3; i++)
    bits[i] = (uint16_t)((hash[2 * i] << 8 | hash[2 * i + 1]) & 2047);
}

static int
add(struct log_filter *f, struct egw_slice text, size_t len, const char **why)
{
  struct alternative *a;

  if (f->count >= FILTER_ALTERNATIVES_MAX) {
    *why = "too many addresses or topics";
    return -1;
  }
  if (f->count == f->room) {
    unsigned room = f->room == 0 ? 4 : f->room * 2;
    struct alternative *v = realloc(f->v, room * sizeof(*v));

    if (v == NULL) {
      *why = "out of memory";
      return -1;
    }
    f->v = v;
    f->room = room;
  }
  a = &f->v[f->count];
  memset(a, 0, sizeof(*a));
  if (egw_hex_read(text, a->bytes, len) != (long)len) {
    *why = len == ADDRESS_LEN ? "invalid address" : "invalid topic";
    return -1;
  }
  bloom_bits(a->bytes, len, a->bits);
  f->count++;
  return 0;
}

/* One place: a string, a list of alternatives, or null. A list with null in it, or an empty one, matches
 * anything. */
static int
read_place(struct log_filter *f, unsigned place, struct egw_slice value, const char **why)
{
  size_t len = place == 0 ? ADDRESS_LEN : TOPIC_LEN, cursor = 0;
  struct egw_slice one;
  int rc = 0;

  f->first[place] = f->count;
  switch (egw_json_kind(value)) {
  case EGW_JSON_NONE:
  case EGW_JSON_NULL:
    break;
  case EGW_JSON_STRING:
    rc = add(f, value, len, why);
    break;
  case EGW_JSON_ARRAY:
    while (rc == 0 && egw_json_next(value, &cursor, NULL, &one)) {
      if (egw_json_kind(one) == EGW_JSON_NULL) {
        f->count = f->first[place];
        break;
      }
      rc = add(f, one, len, why);
    }
    break;
  default:
    *why = place == 0 ? "invalid address" : "invalid topic";
    rc = -1;
  }
  f->first[place + 1] = f->count;
  return rc;
}

static int
read_filter(struct log_filter *f, struct egw_slice object, const char **why)
{
  struct egw_slice topics = egw_json_member(object, "topics"), topic;
  enum egw_json_kind kind = egw_json_kind(topics);
  size_t cursor = 0;
  unsigned place = 1;

  if (kind != EGW_JSON_NONE && kind != EGW_JSON_NULL && kind != EGW_JSON_ARRAY) {
    *why = "invalid topics";
    return -1;
  }
  if (read_place(f, 0, egw_json_member(object, "address"), why) < 0)
    return -1;
  while (kind == EGW_JSON_ARRAY && egw_json_next(topics, &cursor, NULL, &topic)) {
    if (place >= PLACES) {
      *why = "more than four topics";
      return -1;
    }
    if (read_place(f, place++, topic, why) < 0)
      return -1;
    f->topics++;
  }
  for (; place < PLACES; place++)
    f->first[place + 1] = f->count;
  return 0;
}

struct log_filter *
log_filter_new(struct egw_slice object, const char **why)
{
  enum egw_json_kind kind = egw_json_kind(object);
  struct log_filter *f = calloc(1, sizeof(*f));

  *why = "out of memory";
  if (f == NULL)
    return NULL;
  if (kind == EGW_JSON_NONE || kind == EGW_JSON_NULL)
    return f;
  *why = "invalid filter";
  if (kind != EGW_JSON_OBJECT || read_filter(f, object, why) < 0) {
    log_filter_free(f);
    return NULL;
  }
  return f;
}

void
log_filter_free(struct log_filter *f)
{
  if (f != NULL)
    free(f->v);
  free(f);
}

static bool
place_matches(const struct log_filter *f, unsigned place, const unsigned char *bytes, size_t len)
{
  unsigned i;

  if (f->first[place] == f->first[place + 1])
    return true;
  for (i = f->first[place]; i < f->first[place + 1]; i++)
    if (memcmp(f->v[i].bytes, bytes, len) == 0)
      return true;
  return false;
}

bool
log_filter_matches(const struct log_filter *f, const struct log_entry *log)
{
  unsigned i;

  if (log->topic_count < f->topics || !place_matches(f, 0, log->address, ADDRESS_LEN))
    return false;
  for (i = 0; i < f->topics; i++)
    if (!place_matches(f, 1 + i, log->topics[i], TOPIC_LEN))
      return false;
  return true;
}

static bool
in_bloom(const struct alternative *a, const unsigned char bloom[256])
{
  unsigned i;

  for (i = 0; i < 3; i++)
    if ((bloom[255 - a->bits[i] / 8] >> (a->bits[i] % 8) & 1) == 0)
      return false;
  return true;
}

bool
log_filter_bloom(const struct log_filter *f, const unsigned char bloom[256])
{
  unsigned place, i;

  for (place = 0; place < PLACES; place++) {
    bool any = f->first[place] == f->first[place + 1];

    for (i = f->first[place]; i < f->first[place + 1] && !any; i++)
      any = in_bloom(&f->v[i], bloom);
    if (!any)
      return false;
  }
  return true;
}

bool
bloom_read(struct egw_slice header, unsigned char bloom[256])
{
  return egw_hex_read(egw_json_member(header, "logsBloom"), bloom, 256) == 256;
}
