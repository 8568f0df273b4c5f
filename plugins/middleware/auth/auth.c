/* SPDX-License-Identifier: MIT */
/* auth: who may call. A client shows a key or a token with its request (a WebSocket: with the
 * one that opened it), or is known by its user id on a unix socket. Others are refused, or may
 * call what is for everybody.
 *
 * Why a credential was refused is for the log and the metrics: the client gets one answer
 * for all. */
#include "../../common/pattern.h"
#include "auth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/version.h>
#include <openssl/evp.h>
#include "credential.h"
#include "tokens.h"

#define UNAUTHORIZED (-32016)
#define METHOD_NOT_FOUND (-32601)
#define LOG_WINDOW_MS 60000u
#define LOG_LINES 10u            /* about refusals, in a window */

enum metric { METRIC_ALLOWED, METRIC_ANONYMOUS, METRIC_MISSING, METRIC_INVALID, METRIC_EXPIRED,
              METRIC_DENIED, METRIC_VERIFIED };

enum verdict {
  VERDICT_OPEN,
  VERDICT_MISSING,               /* shows nothing, and the method is not for everybody */
  VERDICT_INVALID,
  VERDICT_EXPIRED,
  VERDICT_DENIED                 /* is known, but may not call this method */
};

struct auth_worker {
  struct egw_worker *worker;
  EVP_MD_CTX *hash;
  struct tokens tokens;
  struct jwt jwt;                /* the one at hand */
  uint64_t window_end_ms;
  unsigned lines;                /* in this window */
  uint64_t suppressed;           /* lines not written, since the last one that was */
};

/* A stage above may send a call down again: it is let through once it has been. */
struct auth_call {
  bool passed;
};

/* Who it is. `grant` NULL: nobody we know. */
struct who {
  const struct grant *grant;
  const char *identity;          /* a name that outlives the call, or `text` */
  char text[ISSUER_IDENTITY_MAX];
};

/* --- finding out who it is --------------------------------------------------------------- */

static const struct auth_user *
user_of(const struct auth *self, int64_t uid)
{
  const struct auth_user *any = NULL;

  for (size_t i = 0; i < self->user_count && uid >= 0; i++) {
    if (self->users[i].any)
      any = &self->users[i];
    else if (self->users[i].uid == uid)
      return &self->users[i];
  }
  return any;
}

static void
find_user(const struct auth *self, const struct egw_client *client, struct who *who)
{
  const struct auth_user *user = user_of(self, client->uid);

  if (user == NULL)
    return;
  who->grant = &user->grant;
  who->identity = user->grant.name;
  if (who->identity != NULL)
    return;
  (void)snprintf(who->text, sizeof who->text, "uid:%" PRId64, client->uid);
  who->identity = who->text;
}

/* Asks the issuers, the first time a token comes. */
static enum verdict
verify(const struct egw_at *at, struct egw_slice text, struct token *token, int64_t now)
{
  const struct auth *self = at->self;
  struct auth_worker *mine = at->mine;
  enum verdict verdict = VERDICT_INVALID;

  if (jwt_parse(text, &mine->jwt) < 0)
    return VERDICT_INVALID;
  egw_count(at, METRIC_VERIFIED, 1);
  for (size_t i = 0; i < self->issuer_count; i++) {
    token->issuer = &self->issuers[i];
    switch (issuer_check(token->issuer, &mine->jwt, now, &token->until, token->identity)) {
    case ISSUER_YES: return VERDICT_OPEN;
    case ISSUER_EXPIRED: verdict = VERDICT_EXPIRED; break;
    case ISSUER_NO: break;
    }
  }
  return verdict;
}

static enum verdict
find_token(const struct egw_at *at, struct egw_slice text,
           const unsigned char digest[KEYS_DIGEST], struct who *who)
{
  struct auth_worker *mine = at->mine;
  const struct token *known = tokens_get(&mine->tokens, digest);
  struct token fresh;
  int64_t now = time(NULL);

  if (known == NULL) {
    enum verdict verdict = verify(at, text, &fresh, now);

    if (verdict != VERDICT_OPEN)
      return verdict;
    memcpy(fresh.digest, digest, KEYS_DIGEST);
    tokens_put(&mine->tokens, &fresh, now);
    known = &fresh;
  } else if (now >= known->until) {
    return VERDICT_EXPIRED;
  }
  who->grant = &known->issuer->grant;
  memcpy(who->text, known->identity, sizeof who->text);
  who->identity = who->text;
  return VERDICT_OPEN;
}

static int
hash(const struct auth *self, struct auth_worker *mine, struct egw_slice text,
     unsigned char digest[KEYS_DIGEST])
{
  return EVP_DigestInit_ex2(mine->hash, self->sha256, NULL) == 1 &&
         EVP_DigestUpdate(mine->hash, text.ptr, text.len) == 1 &&
         EVP_DigestFinal_ex(mine->hash, digest, NULL) == 1 ? 0 : -1;
}

static enum verdict
find_credential(const struct egw_at *at, const struct credential *credential, struct who *who)
{
  const struct auth *self = at->self;
  unsigned char digest[KEYS_DIGEST];

  if (credential->kind == CREDENTIAL_BAD || hash(self, at->mine, credential->text, digest) < 0)
    return VERDICT_INVALID;
  who->grant = keys_find(self->keys, digest);
  if (who->grant != NULL) {
    who->identity = who->grant->name;
    return VERDICT_OPEN;
  }
  if (self->issuer_count == 0 || credential->kind != CREDENTIAL_BEARER ||
      !jwt_looks_like(credential->text))
    return VERDICT_INVALID;
  return find_token(at, credential->text, digest, who);
}

/* Who shows something that is no good is refused, even what is for everybody: it would not
 * notice that its key is wrong. */
static enum verdict
identify(const struct egw_at *at, const struct egw_call *call, const struct egw_client *client,
         struct who *who)
{
  struct credential credential;
  enum verdict verdict = VERDICT_OPEN;

  credential_read(&credential, egw_header(call, "authorization"),
                  egw_header(call, "x-api-key"), client->path_key);
  if (credential.kind == CREDENTIAL_NONE)
    find_user(at->self, client, who);
  else
    verdict = find_credential(at, &credential, who);
  credential_forget(&credential);
  return verdict;
}

static enum verdict
judge(const struct egw_at *at, const struct egw_call *call, const struct egw_client *client,
      struct who *who)
{
  const struct auth *self = at->self;
  enum verdict verdict = identify(at, call, client, who);

  if (verdict != VERDICT_OPEN)
    return verdict;
  if (who->grant == NULL)
    return pattern_listed(&self->anonymous, egw_method(call)) ? VERDICT_OPEN : VERDICT_MISSING;
  if (who->grant->expires != GRANT_FOR_EVER && time(NULL) >= who->grant->expires)
    return VERDICT_EXPIRED;
  return grant_allows(who->grant, egw_method(call)) ? VERDICT_OPEN : VERDICT_DENIED;
}

/* --- refusing ---------------------------------------------------------------------------- */

static const struct {
  const char *label;
  enum metric metric;
} verdicts[] = {
  [VERDICT_OPEN] = { "open", METRIC_ALLOWED },
  [VERDICT_MISSING] = { "missing", METRIC_MISSING },
  [VERDICT_INVALID] = { "invalid", METRIC_INVALID },
  [VERDICT_EXPIRED] = { "expired", METRIC_EXPIRED },
  [VERDICT_DENIED] = { "denied", METRIC_DENIED },
};

/* Strangers must not fill the log. */
static void
log_refused(struct auth_worker *mine, const struct egw_call *call,
            const struct egw_client *client, const struct who *who, enum verdict verdict)
{
  uint64_t now = egw_now_ms(mine->worker);
  struct egw_slice method = egw_method(call);

  if (now >= mine->window_end_ms) {
    mine->window_end_ms = now + LOG_WINDOW_MS;
    mine->lines = 0;
  }
  if (mine->lines >= LOG_LINES) {
    mine->suppressed++;
    return;
  }
  mine->lines++;
  egw_log(EGW_WARN, "auth",
          "refused why=%s client=%s method=%.*s peer=%s listener=%s suppressed=%" PRIu64,
          verdicts[verdict].label, who->grant == NULL ? "-" : who->identity,
          (int)(method.len > GRANT_METHOD_MAX ? GRANT_METHOD_MAX : method.len), method.ptr,
          client->peer, client->listener == NULL ? "-" : client->listener, mine->suppressed);
  mine->suppressed = 0;
}

static bool
is_plain(struct egw_slice name)
{
  for (size_t i = 0; i < name.len; i++) {
    char c = name.ptr[i];

    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
        c != '_')
      return false;
  }
  return name.len > 0 && name.len <= GRANT_METHOD_MAX;
}

/* In the words of go-ethereum, as the middleware `methods` has them. */
static enum egw_verdict
deny(struct egw_call *call)
{
  struct egw_slice name = egw_method(call);
  char text[64 + GRANT_METHOD_MAX];

  if (is_plain(name))
    (void)snprintf(text, sizeof text, "the method %.*s does not exist/is not available",
                   (int)name.len, name.ptr);
  else
    (void)snprintf(text, sizeof text, "the method does not exist/is not available");
  return egw_refuse(call, METHOD_NOT_FOUND, text);
}

static enum egw_verdict
refuse(const struct auth *self, struct egw_call *call, enum verdict verdict)
{
  egw_explain(call, "auth: refused, %s", verdicts[verdict].label);
  if (self->http_status)
    egw_http_status(call, verdict == VERDICT_DENIED ? 403 : 401);
  if (verdict == VERDICT_DENIED)
    return deny(call);
  return egw_refuse(call, UNAUTHORIZED, "unauthorized: no valid key or token came with it");
}

/* --- callbacks --------------------------------------------------------------------------- */

static enum egw_verdict
auth_request(const struct egw_at *at, struct egw_call *call)
{
  struct auth_call *state = at->state;
  struct who who = { .grant = NULL };
  struct egw_client client;
  enum verdict verdict;

  egw_client(call, &client);
  if (state->passed || strcmp(client.transport, "internal") == 0)
    return EGW_NEXT;
  verdict = judge(at, call, &client, &who);
  if (verdict == VERDICT_OPEN && who.grant == NULL) {
    egw_count(at, METRIC_ANONYMOUS, 1);
    egw_explain(call, "auth: anonymous");
  } else {
    egw_count(at, verdicts[verdict].metric, 1);
  }
  if (verdict != VERDICT_OPEN) {
    log_refused(at->mine, call, &client, &who, verdict);
    return refuse(at->self, call, verdict);
  }
  if (who.grant != NULL) {
    if (egw_set_identity(call, who.identity) < 0)
      return egw_refuse(call, -32603, "Internal error");
    egw_explain(call, "auth: %s", who.identity);
  }
  state->passed = true;
  return EGW_NEXT;
}

static int
auth_worker_start(const void *instance, void *memory, struct egw_worker *worker)
{
  const struct auth *self = instance;
  struct auth_worker *mine = memory;

  mine->worker = worker;
  mine->hash = EVP_MD_CTX_new();
  if (mine->hash == NULL ||
      tokens_init(&mine->tokens,
                  self->issuer_count > 0 ? (size_t)self->token_cache : 0) < 0) {
    EVP_MD_CTX_free(mine->hash);
    mine->hash = NULL;
    egw_log(EGW_ERROR, "auth", "out of memory");
    return -1;
  }
  return 0;
}

static void
auth_worker_stop(const void *instance, void *memory, struct egw_worker *worker)
{
  struct auth_worker *mine = memory;

  (void)instance;
  (void)worker;
  EVP_MD_CTX_free(mine->hash);
  mine->hash = NULL;
  tokens_free(&mine->tokens);
}

static const struct egw_metric metrics[] = {
  [METRIC_ALLOWED] = { .name = "allowed", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls of clients that are known and may make them" },
  [METRIC_ANONYMOUS] = { .name = "anonymous", .kind = EGW_METRIC_COUNTER,
                         .help = "Calls for everybody, of clients that showed nothing" },
  [METRIC_MISSING] = { .name = "missing", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls refused: no key or token" },
  [METRIC_INVALID] = { .name = "invalid", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls refused: a wrong key or token" },
  [METRIC_EXPIRED] = { .name = "expired", .kind = EGW_METRIC_COUNTER,
                       .help = "Calls refused: a key or token that is over" },
  [METRIC_DENIED] = { .name = "denied", .kind = EGW_METRIC_COUNTER,
                      .help = "Calls refused: a method that the client may not call" },
  [METRIC_VERIFIED] = { .name = "verified", .kind = EGW_METRIC_COUNTER,
                        .help = "Tokens taken to their issuers' keys, good or not" },
  EGW_METRIC_TABLE_END
};

static const struct egw_middleware auth = {
  .plugin = {
    EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
    .name = "auth",
    .version = EGW_VERSION,
    .summary = "Lets clients call that show a key or a token, or are known users",
    .options = auth_options,
    .metrics = metrics,
    .instance_size = sizeof(struct auth),
    .worker_size = sizeof(struct auth_worker),
    .configure = auth_configure,
    .unconfigure = auth_unconfigure,
    .worker_start = auth_worker_start,
    .worker_stop = auth_worker_stop,
  },
  .call_size = sizeof(struct auth_call),
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD,
  .need = EGW_NEED_NONE,
  .request = auth_request,
};

EGW_REGISTER(auth)
