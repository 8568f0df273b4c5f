/* SPDX-License-Identifier: MIT */
/* An instance of the middleware `auth`: who may call. */
#ifndef AUTH_H
#define AUTH_H

#include <ethrpc-gw/plugin.h>
#include "issuer.h"
#include "keyfile.h"
#include "keys.h"

/* Somebody at the other end of a unix socket. */
struct auth_user {
  bool any;                      /* whoever it is */
  int64_t uid;
  struct grant grant;            /* its name may be NULL: "uid:N" */
};

struct auth {
  struct egw_strings anonymous, uids;
  const char *keys_file;
  int64_t token_cache;
  bool http_status;
  struct keys *keys;
  struct keyfile *file;          /* of keys_file */
  struct auth_user *users;
  size_t user_count;
  struct issuer *issuers;
  size_t issuer_count;
  struct evp_md_st *sha256;
};

/* Reads what is more than single options. 0 or -1. */
int auth_configure(void *mine, struct egw_conf *section);
void auth_unconfigure(void *mine);

extern const struct egw_option auth_options[];

#endif
