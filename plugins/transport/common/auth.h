/* SPDX-License-Identifier: MIT */
/* How a transport shows who it is in the head of an HTTP request: Basic (user and password of
 * the URL), Bearer, or a JWT as nodes want it on their authenticated port; further headers.
 * All of it is secret. */
#ifndef COMMON_AUTH_H
#define COMMON_AUTH_H

#include <ethrpc-gw/transport.h>

#define AUTH_JWT_BYTES 32

/* What the configuration says; embedded in the instance. */
struct auth {
  struct egw_strings headers; /* "Name: value" */
  const char *bearer, *jwt_secret;
  unsigned char jwt_key[AUTH_JWT_BYTES];
  bool has_jwt;
};

/* Rows of the option table for `instance`.`member`. */
#define AUTH_OPTIONS(instance, member)                                                      \
  { .name = "headers", .type = EGW_OPT_LIST,                                                \
    .offset = offsetof(struct instance, member.headers), .flags = EGW_OPTION_SECRET,        \
    .help = "Further request headers, each as \"Name: value\"" },                           \
  { .name = "bearer", .type = EGW_OPT_SECRET,                                               \
    .offset = offsetof(struct instance, member.bearer),                                     \
    .help = "Token for the header Authorization: Bearer" },                                 \
  { .name = "jwt_secret", .type = EGW_OPT_SECRET,                                           \
    .offset = offsetof(struct instance, member.jwt_secret),                                 \
    .help = "32 bytes in hex: signs the tokens that nodes ask for on an authenticated port" }

/* Checks the options; main thread. `reserved`: header names that the transport sets itself,
 * ended by NULL. 0, or -1 after reporting each mistake. */
int auth_configure(struct auth *auth, struct egw_conf *section, const char *const *reserved);

/* Appends the header lines, each ended by CRLF, to `out`. 0, or -1 when memory is short. */
int auth_print(const struct auth *auth, const struct egw_url *url,
               struct egw_buf *out) EGW_MUST_CHECK;

/* Whether there is something that a connection without TLS would give away. */
bool auth_is_secret(const struct auth *auth, const struct egw_url *url);

#endif
