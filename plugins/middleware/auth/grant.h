/* SPDX-License-Identifier: MIT */
/* What one client, or all who show tokens of one issuer, may do. */
#ifndef AUTH_GRANT_H
#define AUTH_GRANT_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/plugin.h>

#define GRANT_NAME_MAX 64u
#define GRANT_METHOD_MAX 128u
#define GRANT_FOR_EVER INT64_MAX

struct grant {
  const char *name;              /* of the client */
  struct egw_strings allow;      /* methods: names, and beginnings of names with '*' behind;
                                    empty: all */
  struct egw_strings deny;       /* not these */
  int64_t expires;               /* seconds since 1970: from then on it is over */
};

/* Whether the grant names the method. */
bool grant_allows(const struct grant *grant, struct egw_slice method);

/* A method's name, the beginning of one and '*', or "*". */
bool grant_pattern_valid(const char *pattern);

/* Letters, digits and "._-@", 1 to 64: it stands in logs, and a ':' comes before a token's
 * subject only. */
bool grant_name_valid(const char *name);

/* Reads "2027-01-31" or "2027-01-31T12:00:00Z". 0 or -1. */
int grant_read_date(const char *text, int64_t *seconds);

#endif
