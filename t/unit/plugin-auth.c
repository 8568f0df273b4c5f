/* SPDX-License-Identifier: MIT */
/* The middleware `auth` on the plugin host: who gets in by which way, as whom, and what it
 * may call; what the others are told; what the log says; the wall clock is the test's. */
#include "auth-kit.h"

#include <sys/stat.h>
#include "../lib/plugtest.h"

#define ALICE "alice-key-0123456789"
#define BOB "bob-key-0123456789abc"
#define CAROL "carol-key-0123456789"
#define UNAUTHORIZED "unauthorized: no valid key or token came with it"

static char so[1000];
static time_t wall = 1800000000;

/* In place of the C library's, for the plugin too. */
time_t
time(time_t *out)
{
  if (out != NULL)
    *out = wall;
  return wall;
}

static struct plugtest *
host_with(const char *options)
{
  struct plugtest *host = plugtest_new(so, options);

  if (!plugtest_refused(host))
    return host;
  printf("Bail out! %s\n", plugtest_messages(host));
  exit(1);
}

static void
done(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static const char *
keys(void)
{
  static char text[1000];

  snprintf(text, sizeof text,
           "keys = ( { name = \"alice\"; key = \"sha256:%s\"; },"
           "  { name = \"bob\"; key = \"" BOB "\"; methods = ( \"eth_*\", \"net_version\" );"
           "    deny = ( \"eth_getLogs\", \"eth_send*\" ); },"
           "  { name = \"carol\"; key = \"" CAROL "\";"
           "    expires = \"2027-01-15T08:00:10Z\"; } );",
           hex_of_sha256(ALICE));
  return text;
}

static const char *
field(const char *scheme, const char *text)
{
  static char fields[4][20000];
  static unsigned next;
  char *out = fields[next++ % 4];

  snprintf(out, sizeof fields[0], "%s %s", scheme, text);
  return out;
}

/* Both ways to be refused, and the way in. */
static void
refused(struct plugtest *host, const struct plugtest_spec *spec, const char *what)
{
  const struct plugtest_end *e = plugtest_ask(host, spec);

  ok(e->over && e->is_error && e->code == -32016 && e->sent == 0 && e->http_status == 401 &&
       strcmp(e->message, UNAUTHORIZED) == 0 && e->identity[0] == '\0',
     "%s: refused (%lld, %s, status %d)", what, (long long)e->code, e->message,
     e->http_status);
}

static void
denied(struct plugtest *host, const struct plugtest_spec *spec, const char *what)
{
  const struct plugtest_end *e = plugtest_ask(host, spec);

  ok(e->over && e->is_error && e->code == -32601 && e->sent == 0 && e->http_status == 403 &&
       strstr(e->message, "does not exist/is not available") != NULL,
     "%s: denied (%lld, %s, status %d)", what, (long long)e->code, e->message, e->http_status);
}

static void
let_in(struct plugtest *host, const struct plugtest_spec *spec, const char *identity,
       const char *what)
{
  const struct plugtest_end *e = plugtest_ask(host, spec);

  ok(e->over && !e->is_error && e->sent == 1 && e->http_status == 0 &&
       strcmp(e->identity, identity) == 0,
     "%s: let in as \"%s\" (%lld %s)", what, e->identity, (long long)e->code, e->message);
}

#define SPEC(...) (&(struct plugtest_spec){ __VA_ARGS__ })

/* --- ways to show a key ------------------------------------------------------------------ */

static void
test_ways(void)
{
  struct plugtest *host = host_with(keys());
  char encoded[100];

  EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)"any:" ALICE,
                  (int)strlen("any:" ALICE));
  let_in(host, SPEC(.authorization = "Bearer " ALICE), "alice", "bearer");
  let_in(host, SPEC(.authorization = "bearer " BOB, .transport = "ws"), "bob",
         "in a handshake");
  let_in(host, SPEC(.authorization = field("Basic", encoded)), "alice", "as a password");
  let_in(host, SPEC(.api_key = BOB), "bob", "X-Api-Key");
  let_in(host, SPEC(.path_key = ALICE), "alice", "in the path");
  let_in(host, SPEC(.authorization = "Bearer " ALICE, .api_key = BOB), "alice",
         "the first of two");
  refused(host, SPEC(.authorization = "Bearer " ALICE "x", .api_key = BOB), "not the second");
  refused(host, SPEC(.method = "eth_chainId"), "nothing");
  refused(host, SPEC(.authorization = "Bearer " ALICE "x"), "a key and more");
  refused(host, SPEC(.authorization = ALICE), "no scheme");
  refused(host, SPEC(.authorization = "Bearer"), "no key");
  refused(host, SPEC(.authorization = field("Bearer", hex_of_sha256(ALICE))), "the hash");
  refused(host, SPEC(.api_key = ""), "an empty one");
  refused(host, SPEC(.transport = "ipc", .uid = 1), "a user nobody knows");
  is_int(plugtest_metric(host, "allowed"), 6, "allowed calls are counted");
  is_int(plugtest_metric(host, "missing"), 2, "those without a key");
  is_int(plugtest_metric(host, "invalid"), 6, "those with a wrong one");
  done(host);
}

static void
test_methods(void)
{
  static const char *const allowed[] = { "eth_call", "net_version", "eth_" };
  static const char *const not[] = { "eth_getLogs", "eth_sendRawTransaction", "debug_x",
                                     "net_versions", "eth", "ETH_call", "eth-\"{}\"" };
  struct plugtest *host = host_with(keys());
  const struct plugtest_end *e;

  for (size_t i = 0; i < COUNT(allowed); i++)
    let_in(host, SPEC(.api_key = BOB, .method = allowed[i]), "bob", allowed[i]);
  for (size_t i = 0; i < COUNT(not); i++)
    if (strcmp(not[i], "eth-\"{}\"") != 0)
      denied(host, SPEC(.api_key = BOB, .method = not[i]), not[i]);
  let_in(host, SPEC(.api_key = ALICE, .method = "debug_x"), "alice", "another client");
  e = plugtest_ask(host, SPEC(.api_key = BOB, .method = "x\"{"));
  ok(e->code == -32601 && strchr(e->message, '{') == NULL, "a strange name is not repeated");
  is_int(plugtest_metric(host, "denied"), COUNT(not), "denied calls are counted");
  done(host);
}

static void
test_expiry(void)
{
  struct plugtest *host = host_with(keys());

  let_in(host, SPEC(.api_key = CAROL), "carol", "before its end");
  wall += 10;
  refused(host, SPEC(.api_key = CAROL), "at its end");
  is_int(plugtest_metric(host, "expired"), 1, "counted");
  let_in(host, SPEC(.api_key = ALICE), "alice", "others stay");
  wall -= 10;
  done(host);
}

static void
test_anonymous(void)
{
  struct plugtest *host = host_with("anonymous = ( \"eth_chainId\", \"net_*\" );"
                                    "keys = ( { name = \"alice\"; key = \"" ALICE "\"; } );");

  let_in(host, SPEC(.method = "eth_chainId"), "", "anonymous");
  let_in(host, SPEC(.method = "net_version", .transport = "ipc", .uid = 1), "",
         "over IPC too");
  refused(host, SPEC(.method = "eth_call"), "what is not for everybody");
  refused(host, SPEC(.method = "eth_chainId", .api_key = "wrong"), "with a wrong key");
  let_in(host, SPEC(.method = "eth_call", .api_key = ALICE), "alice", "with a right one");
  is_int(plugtest_metric(host, "anonymous"), 2, "anonymous calls are counted");
  is_int(plugtest_metric(host, "allowed"), 1, "and not as allowed");
  done(host);
}

static void
test_users(void)
{
  struct plugtest *host = host_with("uids = ( \"1000\", \"root\" ); keys = ("
                                    "{ name = \"dan\"; uid = \"1001\"; key = \"" ALICE "\";"
                                    "  methods = ( \"eth_*\" ); } );");

  let_in(host, SPEC(.transport = "ipc", .uid = 1001), "uid:1000", "a number");
  let_in(host, SPEC(.transport = "ipc", .uid = 1), "uid:0", "a name");
  let_in(host, SPEC(.transport = "ipc", .uid = 1002), "dan", "with a name of its own");
  denied(host, SPEC(.transport = "ipc", .uid = 1002, .method = "debug_x"), "its methods");
  let_in(host, SPEC(.api_key = ALICE), "dan", "the same by its key");
  refused(host, SPEC(.transport = "ipc", .uid = 1003), "another user");
  refused(host, SPEC(.api_key = "wrong", .uid = 1001), "a wrong key of a user");
  refused(host, SPEC(.transport = "http"), "no user");
  done(host);
  host = host_with("uids = ( \"*\" ); keys = ( { name = \"dan\"; uid = \"0\"; } );");
  let_in(host, SPEC(.transport = "ipc", .uid = 4242), "uid:4241", "any user");
  let_in(host, SPEC(.transport = "ipc", .uid = 1), "dan", "but who is named is itself");
  refused(host, SPEC(.transport = "http"), "not over TCP");
  done(host);
}

static void
test_file(void)
{
  char path[200], options[300];
  const char *tmp = getenv("TMPDIR");
  struct plugtest *host;
  FILE *file;

  snprintf(path, sizeof path, "%s/egw-auth-%ld.keys", tmp == NULL ? "/tmp" : tmp,
           (long)getpid());
  file = fopen(path, "we");
  fprintf(file, "# clients\nalice sha256:%s\n", hex_of_sha256(ALICE));
  fprintf(file, "alice sha256:%s eth_call\n", hex_of_sha256(BOB));
  fclose(file);
  snprintf(options, sizeof options, "keys_file = \"%s\";", path);
  host = host_with(options);
  let_in(host, SPEC(.api_key = ALICE), "alice", "a key of a file");
  let_in(host, SPEC(.api_key = BOB, .method = "eth_call"), "alice",
         "another of the same client");
  denied(host, SPEC(.api_key = BOB), "which has its own methods");
  done(host);
  file = fopen(path, "ae");
  fputs("bob\n", file);
  fclose(file);
  host = plugtest_new(so, options);
  ok(plugtest_refused(host) &&
       strstr(plugtest_messages(host), "keys_file: line 4: no") != NULL,
     "a bad line is refused: %s", plugtest_messages(host));
  plugtest_free(host);
  ok(chmod(path, 0622) == 0, "if others may write it");
  host = plugtest_new(so, options);
  ok(plugtest_refused(host) && strstr(plugtest_messages(host), "may write it") != NULL,
     "it is refused: %s", plugtest_messages(host));
  plugtest_free(host);
  unlink(path);
}

/* --- tokens ------------------------------------------------------------------------------ */

#define HS "{\"alg\":\"HS256\"}"

static void
test_secret_tokens(void)
{
  struct plugtest *host = host_with("jwt = ( { secret = \"" SECRET "\"; } );");
  const char *hs = token_of(NULL, SECRET, HS, "{\"sub\":\"ann\",\"exp\":1800000100}");

  let_in(host, SPEC(.authorization = field("Bearer", hs), .method = "debug_x"), "jwt:ann",
         "HS256");
  let_in(host, SPEC(.authorization = field("Bearer", hs)), "jwt:ann", "once more");
  is_int(plugtest_metric(host, "verified"), 1, "which was verified once");
  refused(host, SPEC(.api_key = hs), "a token is no key");
  refused(host, SPEC(.path_key = hs), "nor a part of the path");
  wall += 129;
  let_in(host, SPEC(.authorization = field("Bearer", hs)), "jwt:ann", "within the leeway");
  wall += 1;
  refused(host, SPEC(.authorization = field("Bearer", hs)),
          "a token that was good, and is over");
  is_int(plugtest_metric(host, "expired"), 1, "counted as such");
  wall -= 130;
  refused(host, SPEC(.authorization = "Bearer eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAxMDB9."),
          "no signature");
  refused(host, SPEC(.authorization = field("Bearer",
            token_of(NULL, "another secret as long as a hash..", HS, "{\"exp\":1800000100}"))),
          "another secret");
  ok(!plugtest_logged(host, "eyJ"), "no token is logged");
  done(host);
}

static void
test_public_tokens(void)
{
  EVP_PKEY *rsa = EVP_RSA_gen(2048), *ec = EVP_EC_gen("P-256");
  const char *rsa_path = public_file(rsa, "p-rsa"), *ec_path = public_file(ec, "p-ec");
  struct plugtest *host;
  char options[1000];

  snprintf(options, sizeof options,
           "%s jwt = ( { name = \"rs\"; public_key = \"file:%s\"; audience = \"gw\";"
           "  methods = ( \"eth_*\" ); deny = ( \"eth_getLogs\" ); },"
           "  { name = \"es\"; public_key = \"%s\"; issuer = \"https://id.example\"; } );",
           keys(), rsa_path, ec_path);
  host = host_with(options);
  let_in(host, SPEC(.authorization = field("Bearer",
           token_of(rsa, NULL, "{\"alg\":\"RS256\"}",
                    "{\"exp\":1800000100,\"aud\":[\"gw\"],\"sub\":\"b\"}"))),
         "rs:b", "RS256");
  denied(host, SPEC(.method = "eth_getLogs", .authorization = field("Bearer",
           token_of(rsa, NULL, "{\"alg\":\"RS256\"}", "{\"exp\":1800000100,\"aud\":\"gw\"}"))),
         "its issuer's methods");
  let_in(host, SPEC(.authorization = field("Bearer",
           token_of(ec, NULL, "{\"alg\":\"ES256\"}",
                    "{\"exp\":1800000100,\"iss\":\"https://id.example\"}"))),
         "es", "ES256");
  refused(host, SPEC(.authorization = field("Bearer",
            token_of(ec, NULL, "{\"alg\":\"ES256\"}", "{\"exp\":1800000100,\"iss\":\"x\"}"))),
          "another issuer");
  let_in(host, SPEC(.authorization = "Bearer " ALICE), "alice", "keys are keys still");
  done(host);
  unlink(rsa_path);
  unlink(ec_path);
  EVP_PKEY_free(rsa);
  EVP_PKEY_free(ec);
}

/* Tokens that are not kept are verified each time. */
static void
test_token_cache(void)
{
  static const char *const caches[] = { "", "token_cache = 0;", "token_cache = 4;" };
  static const unsigned verified[] = { 50, 100, 100 };

  for (size_t i = 0; i < COUNT(caches); i++) {
    char options[200];
    struct plugtest *host;

    snprintf(options, sizeof options, "jwt = ( { secret = \"" SECRET "\"; } ); %s", caches[i]);
    host = host_with(options);
    for (unsigned n = 0; n < 100; n++) {
      char payload[100], name[20];

      snprintf(name, sizeof name, "jwt:%u", n % 50);
      snprintf(payload, sizeof payload, "{\"sub\":\"%u\",\"exp\":1800000100}", n % 50);
      let_in(host, SPEC(.authorization = field("Bearer", token_of(NULL, SECRET, HS, payload))),
             name, "a token of many");
    }
    is_int(plugtest_metric(host, "verified"), verified[i], "verified with \"%s\"", caches[i]);
    done(host);
  }
}

/* --- telling ----------------------------------------------------------------------------- */

static void
test_http_status(void)
{
  struct plugtest *host = host_with("http_status = false; keys = ( { name = \"bob\";"
                                    "key = \"" BOB "\"; methods = ( \"eth_*\" ); } );");
  const struct plugtest_end *e = plugtest_ask(host, SPEC(.api_key = "x"));

  ok(e->code == -32016 && e->http_status == 0, "without http_status: no 401");
  e = plugtest_ask(host, SPEC(.api_key = BOB, .method = "debug_x"));
  ok(e->code == -32601 && e->http_status == 0, "and no 403");
  done(host);
}

static void
test_log(void)
{
  struct plugtest *host = host_with(keys());
  const struct plugtest_end *e;

  refused(host, SPEC(.api_key = "sesame-open-sesame", .peer = "192.0.2.7"), "a stranger");
  ok(plugtest_logged(host, "refused why=invalid client=- method=eth_chainId peer=192.0.2.7"),
     "is logged");
  denied(host, SPEC(.api_key = BOB, .method = "debug_x", .peer = "192.0.2.8"), "a client");
  ok(plugtest_logged(host, "refused why=denied client=bob method=debug_x peer=192.0.2.8"),
     "with its name");
  ok(!plugtest_logged(host, "sesame") && !plugtest_logged(host, BOB), "no key is logged");
  for (unsigned i = 0; i < 100; i++)
    (void)plugtest_ask(host, SPEC(.peer = i < 8 ? "192.0.2.9" : "192.0.2.10"));
  ok(plugtest_logged(host, "peer=192.0.2.9"), "ten lines come in a minute");
  ok(!plugtest_logged(host, "peer=192.0.2.10"), "and no more");
  plugtest_advance(host, 60000);
  refused(host, SPEC(.peer = "192.0.2.11"), "a minute later");
  ok(plugtest_logged(host, "peer=192.0.2.11 listener=127.0.0.1:8645 suppressed=92"),
     "the log says how many are missing");
  e = plugtest_ask(host, SPEC(.api_key = ALICE, .explain = true));
  ok(strstr(e->story, "auth: alice") != NULL, "the story says who it is: %s", e->story);
  e = plugtest_ask(host, SPEC(.api_key = "x", .explain = true));
  ok(strstr(e->story, "auth: refused, invalid") != NULL, "and why not: %s", e->story);
  done(host);
}

static void
test_kinds(void)
{
  struct plugtest *host = host_with(keys());

  for (uint32_t kind = EGW_KIND_CALL; kind <= EGW_KIND_SUBCALL; kind *= 2) {
    const struct plugtest_end *e =
      plugtest_ask(host, SPEC(.kind = kind, .transport = "ws", .method = "eth_call"));

    ok(e->over && !e->skipped && e->sent == 0, "kind %u needs a key", kind);
    e = plugtest_ask(host, SPEC(.kind = kind, .transport = "ws", .api_key = ALICE));
    ok(e->over && !e->is_error && e->sent == 1, "and is let in with one");
  }
  let_in(host, SPEC(.kind = EGW_KIND_SUBCALL, .transport = "internal"), "",
         "what the gateway starts by itself");
  done(host);
}

/* --- configurations that are refused ----------------------------------------------------- */

static void
test_bad_options(void)
{
  static const char *const bads[][2] = {
    { "", "nobody could be let in" },
    { "anonymous = ( \"et*h\" );", "anonymous: \"et*h\"" },
    { "keys = ( { name = \"a\"; } );", "neither a key nor a uid" },
    { "keys = ( { key = \"" ALICE "\"; } );", "name" },
    { "keys = ( { name = \"a:b\"; key = \"" ALICE "\"; } );", "name: must be" },
    { "keys = ( { name = \"a\"; key = \"short\"; } );", "key: is too short" },
    { "keys = ( { name = \"a\"; key = \"sha256:12\"; } );", "key: has no 64" },
    { "keys = ( { name = \"a\"; key = \"a key of some words\"; } );", "key: has spaces" },
    { "keys = ( { name = \"a\"; key = \"schl\xc3\xbcssel-0123456789\"; } );",
      "key: has spaces" },
    { "keys = ( { name = \"a\"; key = \"" ALICE "\"; }, { name = \"b\"; key = \"" ALICE
      "\"; } );", "key: is there already" },
    { "keys = ( { name = \"a\"; key = \"" ALICE "\"; methods = ( \"a b\" ); } );",
      "methods: " },
    { "keys = ( { name = \"a\"; key = \"" ALICE "\"; deny = ( \"\" ); } );", "deny: " },
    { "keys = ( { name = \"a\"; key = \"" ALICE "\"; expires = \"soon\"; } );",
      "expires: is no" },
    { "keys = ( { name = \"a\"; uid = \"no-such-user-here\"; } );",
      "uid: \"no-such-user-here\"" },
    { "keys = ( { name = \"a\"; uid = \"1x\"; } );", "uid: \"1x\"" },
    { "uids = ( \"7\", \"7\" );", "uids: \"7\" is there" },
    { "keys_file = \"/nonexistent/keys\";", "keys_file: No such file" },
    { "keys_file = \"/\";", "keys_file: it is not a regular" },
    { "jwt = ( { } );", "either secret or public_key" },
    { "jwt = ( { secret = \"short\"; } );", "secret: is too short" },
    { "jwt = ( { secret = \"" SECRET "\"; name = \"a b\"; } );", "name: must be" },
    { "jwt = ( { secret = \"" SECRET "\"; leeway = \"1h\"; } );", "leeway: " },
    { "jwt = ( { public_key = \"/dev/null\"; } );", "public_key: holds no" },
    { "token_cache = -1; uids = ( \"7\" );", "token_cache: " },
    { "key = \"x\"; uids = ( \"7\" );", "did you mean \"keys\"?" },
  };

  for (size_t i = 0; i < COUNT(bads); i++) {
    struct plugtest *host = plugtest_new(so, bads[i][0]);

    ok(plugtest_refused(host), "refused: %s", bads[i][0]);
    if (!ok(strstr(plugtest_messages(host), bads[i][1]) != NULL, "and why"))
      printf("#   %s\n", plugtest_messages(host));
    ok(strstr(plugtest_messages(host), ALICE) == NULL &&
         strstr(plugtest_messages(host), SECRET) == NULL, "without the secret");
    is_int(plugtest_free(host), 0, "no rule was broken");
  }
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

int
main(void)
{
  const char *build = getenv("EGW_BUILD"), *token;
  char options[200];

  snprintf(so, sizeof so, "%s/plugins/middleware/auth/auth.so", build == NULL ? "." : build);
  test_ways();
  test_methods();
  test_expiry();
  test_anonymous();
  test_users();
  test_file();
  test_secret_tokens();
  test_public_tokens();
  test_token_cache();
  test_http_status();
  test_log();
  test_kinds();
  test_bad_options();
  plugtest_generic(so, keys(), SPEC(.api_key = ALICE, .method = "eth_call"), report);
  snprintf(options, sizeof options, "jwt = ( { secret = \"" SECRET "\"; } );");
  token = token_of(NULL, SECRET, HS, "{\"sub\":\"ann\",\"exp\":1800000100}");
  plugtest_generic(so, options, SPEC(.authorization = field("Bearer", token)), report);
  return done_testing();
}
