/* SPDX-License-Identifier: MIT */
/* What a client shows to be let in: the fields of its HTTP request. */
#ifndef AUTH_CREDENTIAL_H
#define AUTH_CREDENTIAL_H

#include <ethrpc-gw/buf.h>

#define CREDENTIAL_MAX 8192u /* bytes of one; longer ones are bad */

enum credential_kind {
  CREDENTIAL_NONE,
  CREDENTIAL_BAD,    /* something that is none: another scheme, not base64, empty */
  CREDENTIAL_KEY,
  CREDENTIAL_BEARER  /* a key, or a token */
};

struct credential {
  enum credential_kind kind;
  struct egw_slice text;         /* of KEY and BEARER: in the field itself, or in `decoded` */
  unsigned char decoded[1024];   /* of Basic (RFC 7617) */
};

/* The first of these that is there decides: the field Authorization ("Bearer KEY", or
 * "Basic" with the key as the password), the field X-Api-Key, the segment of the path. */
void credential_read(struct credential *out, struct egw_slice authorization,
                     struct egw_slice api_key, struct egw_slice path_key);

/* Leaves no copy of the secret. */
void credential_forget(struct credential *credential);

#endif
