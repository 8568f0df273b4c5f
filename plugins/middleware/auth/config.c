/* SPDX-License-Identifier: MIT */
/* The configuration of auth. */
#include "auth.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define KEY_MIN 16u              /* characters of a key that is written out */
#define ISSUERS_MAX 16u          /* each may cost a signature for a bad token */
#define DATE_FORM "is no date: \"2027-01-31\" or \"2027-01-31T12:00:00Z\", in UTC"

/* --- grants ------------------------------------------------------------------------------ */

static int
check_patterns(struct egw_conf *section, const char *key, const struct egw_strings *list)
{
  int r = 0;

  for (size_t i = 0; i < list->n; i++)
    if (!grant_pattern_valid(list->v[i]))
      r = egw_conf_error(section, key,
                         "\"%s\" is neither a method, nor the beginning of one and a \"*\"",
                         list->v[i]);
  return r;
}

static int
check_grant(struct egw_conf *section, struct grant *grant, const char *expires)
{
  int r = check_patterns(section, "methods", &grant->allow) |
          check_patterns(section, "deny", &grant->deny);

  if (!grant_name_valid(grant->name))
    r = egw_conf_error(section, "name", "must be 1 to 64 letters, digits and \"._-@\"");
  grant->expires = GRANT_FOR_EVER;
  if (expires != NULL && grant_read_date(expires, &grant->expires) < 0)
    r = egw_conf_error(section, "expires", DATE_FORM);
  return r;
}

/* --- keys and users ---------------------------------------------------------------------- */

struct client {
  const char *key, *uid, *expires;
  struct grant grant;
};

static const struct egw_option client_options[] = {
  { .name = "name", .type = EGW_OPT_STRING, .flags = EGW_OPTION_REQUIRED,
    .offset = offsetof(struct client, grant.name), .help = "What the client is called" },
  { .name = "key", .type = EGW_OPT_SECRET, .offset = offsetof(struct client, key),
    .help = "Its key, as \"sha256:\" and the hash in hex, or written out" },
  { .name = "uid", .type = EGW_OPT_STRING, .offset = offsetof(struct client, uid),
    .help = "The user, by name or number, that it is on unix sockets" },
  { .name = "methods", .type = EGW_OPT_LIST, .offset = offsetof(struct client, grant.allow),
    .help = "Methods it may call; none: all" },
  { .name = "deny", .type = EGW_OPT_LIST, .offset = offsetof(struct client, grant.deny),
    .help = "Methods it may not call" },
  { .name = "expires", .type = EGW_OPT_STRING, .offset = offsetof(struct client, expires),
    .help = "Date from which on it is refused" },
  EGW_OPTION_END
};

/* What credential.c takes from a field or a path. */
static bool
can_be_sent(const char *key)
{
  while (*key > ' ' && *key <= '~')
    key++;
  return *key == '\0';
}

static int
digest_of(struct egw_conf *section, const char *key, unsigned char digest[KEYS_DIGEST])
{
  if (strncmp(key, "sha256:", 7) == 0)
    return keys_read_hex(key + 7, strlen(key + 7), digest) == 0
             ? 0 : egw_conf_error(section, "key", "has no 64 hex digits behind \"sha256:\"");
  if (strlen(key) < KEY_MIN)
    return egw_conf_error(section, "key", "is too short: 16 characters or more, chosen by "
                                          "chance");
  if (!can_be_sent(key))
    return egw_conf_error(section, "key", "has spaces, or characters other than ASCII's");
  if (EVP_Digest(key, strlen(key), digest, NULL, EVP_sha256(), NULL) != 1)
    return egw_conf_error(section, "key", "can't be hashed");
  return 0;
}

static int
add_key(struct auth *self, struct egw_conf *section, const struct client *client)
{
  unsigned char digest[KEYS_DIGEST];

  if (digest_of(section, client->key, digest) < 0)
    return -1;
  switch (keys_add(self->keys, digest, &client->grant)) {
  case KEYS_ADDED: return 0;
  case KEYS_TWICE: return egw_conf_error(section, "key", "is there already");
  case KEYS_TOO_MANY: return egw_conf_error(section, "key", "is one too many: 16384 at most");
  case KEYS_NO_MEMORY: break;
  }
  return egw_conf_error(section, NULL, "out of memory");
}

/* A name, or a number. 0 or -1. */
static int
find_uid(const char *text, int64_t *uid)
{
  const struct passwd *user;
  char *end;

  if (text[0] >= '0' && text[0] <= '9') {
    *uid = strtoll(text, &end, 10);
    return *end == '\0' && *uid <= UINT32_MAX ? 0 : -1;
  }
  user = getpwnam(text);
  if (user == NULL)
    return -1;
  *uid = user->pw_uid;
  return 0;
}

static const struct auth_user *
user_with(const struct auth *self, bool any, int64_t uid)
{
  for (size_t i = 0; i < self->user_count; i++)
    if (self->users[i].any == any && (any || self->users[i].uid == uid))
      return &self->users[i];
  return NULL;
}

static int
add_user(struct auth *self, struct egw_conf *section, const char *key, const char *text,
         const struct grant *grant)
{
  struct auth_user user = { .any = strcmp(text, "*") == 0, .uid = -1, .grant = *grant };

  if (!user.any && find_uid(text, &user.uid) < 0)
    return egw_conf_error(section, key,
                          "\"%s\" is neither a user of this machine nor a number", text);
  if (user_with(self, user.any, user.uid) != NULL)
    return egw_conf_error(section, key, "\"%s\" is there already", text);
  self->users[self->user_count++] = user;
  return 0;
}

static int
read_client(struct auth *self, struct egw_conf *section)
{
  struct client client = { .grant = { .expires = GRANT_FOR_EVER } };
  int r;

  if (egw_conf_read(section, client_options, &client) < 0)
    return -1;
  r = check_grant(section, &client.grant, client.expires);
  if (client.key == NULL && client.uid == NULL)
    return egw_conf_error(section, NULL, "has neither a key nor a uid");
  if (client.key != NULL)
    r |= add_key(self, section, &client);
  if (client.uid != NULL)
    r |= add_user(self, section, "uid", client.uid, &client.grant);
  return r;
}

static int
read_clients(struct auth *self, struct egw_conf *section)
{
  size_t n = egw_conf_count(section, "keys");
  int r = 0;

  self->users = calloc(n + self->uids.n + 1, sizeof *self->users);
  if (self->users == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  for (size_t i = 0; i < n; i++) {
    struct egw_conf *element = egw_conf_element(section, "keys", i);

    if (element == NULL || read_client(self, element) < 0)
      r = -1;
  }
  for (size_t i = 0; i < self->uids.n; i++)
    r |= add_user(self, section, "uids", self->uids.v[i],
                  &(struct grant){ .expires = GRANT_FOR_EVER });
  return r;
}

static int
read_file(struct auth *self, struct egw_conf *section)
{
  char why[KEYFILE_WHY];

  if (self->keys_file == NULL)
    return 0;
  self->file = keyfile_read(self->keys_file, self->keys, why);
  return self->file != NULL ? 0 : egw_conf_error(section, "keys_file", "%s", why);
}

/* --- issuers ----------------------------------------------------------------------------- */

static const char *const encodings[] = { "text", "hex", "base64", NULL };

static const struct egw_option issuer_options[] = {
  { .name = "name", .type = EGW_OPT_STRING, .offset = offsetof(struct issuer, grant.name),
    .fallback = "jwt", .help = "What comes before the subject in the names of clients" },
  { .name = "secret", .type = EGW_OPT_SECRET, .offset = offsetof(struct issuer, secret),
    .help = "The secret of HS256" },
  { .name = "secret_encoding", .type = EGW_OPT_ENUM, .fallback = "text",
    .offset = offsetof(struct issuer, encoding), .choices = encodings,
    .help = "How the secret is written" },
  { .name = "public_key", .type = EGW_OPT_STRING,
    .offset = offsetof(struct issuer, public_key),
    .help = "PEM file with the public key: RSA for RS256, P-256 for ES256" },
  { .name = "kid", .type = EGW_OPT_STRING, .offset = offsetof(struct issuer, kid),
    .help = "Only tokens that name this key" },
  { .name = "issuer", .type = EGW_OPT_STRING, .offset = offsetof(struct issuer, issuer),
    .help = "Only tokens with this \"iss\"" },
  { .name = "audience", .type = EGW_OPT_STRING, .offset = offsetof(struct issuer, audience),
    .help = "Only tokens with this in \"aud\"" },
  { .name = "leeway", .type = EGW_OPT_DURATION, .offset = offsetof(struct issuer, leeway_ms),
    .fallback = "30s", .min = 0, .max = 600000, .help = "By how much clocks may differ" },
  { .name = "max_age", .type = EGW_OPT_DURATION, .offset = offsetof(struct issuer, max_age_ms),
    .fallback = "0", .min = 0, .max = INT64_C(315360000000),
    .help = "Only tokens whose \"iat\" is no older; 0: any that has an \"exp\"" },
  { .name = "methods", .type = EGW_OPT_LIST, .offset = offsetof(struct issuer, grant.allow),
    .help = "Methods that clients with its tokens may call; none: all" },
  { .name = "deny", .type = EGW_OPT_LIST, .offset = offsetof(struct issuer, grant.deny),
    .help = "Methods they may not call" },
  EGW_OPTION_END
};

static int
read_issuer(struct auth *self, struct egw_conf *section)
{
  struct issuer *issuer = &self->issuers[self->issuer_count];
  const char *why, *about;
  int r;

  if (egw_conf_read(section, issuer_options, issuer) < 0)
    return -1;
  r = check_grant(section, &issuer->grant, NULL);
  self->issuer_count++;
  why = issuer_open(issuer, &about);
  return why == NULL ? r : egw_conf_error(section, about, "%s", why);
}

static int
read_issuers(struct auth *self, struct egw_conf *section)
{
  size_t n = egw_conf_count(section, "jwt");
  int r = 0;

  if (n == 0)
    return 0;
  if (n > ISSUERS_MAX)
    return egw_conf_error(section, "jwt", "has too many issuers: 16 at most");
  self->issuers = calloc(n, sizeof *self->issuers);
  if (self->issuers == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  for (size_t i = 0; i < n; i++) {
    struct egw_conf *element = egw_conf_element(section, "jwt", i);

    if (element == NULL || read_issuer(self, element) < 0)
      r = -1;
  }
  return r;
}

/* --- all of it --------------------------------------------------------------------------- */

int
auth_configure(void *mine, struct egw_conf *section)
{
  struct auth *self = mine;
  int r;

  self->keys = keys_new();
  self->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
  if (self->keys == NULL || self->sha256 == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  r = check_patterns(section, "anonymous", &self->anonymous) | read_file(self, section) |
      read_clients(self, section) | read_issuers(self, section);
  if (r == 0 && keys_count(self->keys) == 0 && self->user_count == 0 &&
      self->issuer_count == 0 && self->anonymous.n == 0)
    return egw_conf_error(section, NULL,
                          "nobody could be let in: there are no keys, no jwt, no uids and "
                          "nothing for anonymous clients");
  return r;
}

void
auth_unconfigure(void *mine)
{
  struct auth *self = mine;

  for (size_t i = 0; i < self->issuer_count; i++)
    issuer_close(&self->issuers[i]);
  free(self->issuers);
  free(self->users);
  keys_free(self->keys);
  keyfile_free(self->file);
  EVP_MD_free(self->sha256);
  self->issuers = NULL;
  self->users = NULL;
  self->keys = NULL;
  self->file = NULL;
  self->sha256 = NULL;
  self->issuer_count = self->user_count = 0;
}

const struct egw_option auth_options[] = {
  { .name = "keys", .type = EGW_OPT_SECTION, .flags = EGW_OPTION_RELOAD,
    .help = "Clients: ( { name = NAME; key = \"sha256:HEX\"; methods = (...); } )" },
  { .name = "keys_file", .type = EGW_OPT_STRING, .offset = offsetof(struct auth, keys_file),
    .flags = EGW_OPTION_RELOAD,
    .help = "More of them, one a line: NAME sha256:HEX [expires=DATE] [METHOD | !METHOD]..." },
  { .name = "jwt", .type = EGW_OPT_SECTION, .flags = EGW_OPTION_RELOAD,
    .help = "Issuers of tokens: ( { secret = \"file:PATH\"; } ) or "
            "( { public_key = PATH; } )" },
  { .name = "uids", .type = EGW_OPT_LIST, .offset = offsetof(struct auth, uids),
    .flags = EGW_OPTION_RELOAD,
    .help = "Users, by name or number, that may call all methods on unix sockets; \"*\": "
            "all" },
  { .name = "anonymous", .type = EGW_OPT_LIST, .offset = offsetof(struct auth, anonymous),
    .flags = EGW_OPTION_RELOAD, .help = "Methods for clients that show no key" },
  { .name = "http_status", .type = EGW_OPT_BOOL, .offset = offsetof(struct auth, http_status),
    .fallback = "true", .flags = EGW_OPTION_RELOAD,
    .help = "Refusals over HTTP have the status 401 or 403 instead of 200" },
  { .name = "token_cache", .type = EGW_OPT_INT, .offset = offsetof(struct auth, token_cache),
    .fallback = "1024", .min = 0, .max = 1048576,
    .help = "Verified tokens that each worker remembers" },
  EGW_OPTION_END
};
