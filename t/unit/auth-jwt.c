/* SPDX-License-Identifier: MIT */
/* Tokens of the middleware `auth`: the examples of RFC 7515, what is refused and why, and
 * the table of verified ones. */
#include "auth-kit.h"

#include "../../plugins/middleware/auth/base64.h"
#include "../../plugins/middleware/auth/tokens.h"

#define NOW INT64_C(1800000000)

static EVP_PKEY *rsa, *ec, *other_ec;

/* --- RFC 7515, appendix A ---------------------------------------------------------------- */

#define RFC_PAYLOAD                                                                         \
  "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0" \
  "cnVlfQ"

static void
test_rfc_hmac(void)
{
  static const char token[] = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." RFC_PAYLOAD
                              ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  unsigned char secret[64];
  struct issuer issuer = { .grant = { .name = "rfc" }, .issuer = "joe" };
  char identity[ISSUER_IDENTITY_MAX];
  struct jwt jwt;
  int64_t until;

  is_int(base64_decode(EGW_LIT("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3"
                               "Yj0iPS4hcgUuTwjAzZr1Z9CAow"),
                       BASE64_URL, secret, sizeof secret),
         64, "RFC 7515 A.1: its key");
  ok(jwt_key_secret(&issuer.key, secret, sizeof secret) == NULL, "is one");
  is_int(jwt_parse(EGW_LIT(token), &jwt), 0, "its token");
  is_int(issuer_check(&issuer, &jwt, 1300819379, &until, identity), ISSUER_YES, "is good");
  is_int(until, 1300819380, "until its \"exp\"");
  ok(strcmp(identity, "rfc") == 0, "without a subject the issuer's name");
  is_int(issuer_check(&issuer, &jwt, 1300819380, &until, identity), ISSUER_EXPIRED,
         "and then no more");
  issuer_close(&issuer);
}

static void
test_rfc_ecdsa(void)
{
  static const char token[] =
    "eyJhbGciOiJFUzI1NiJ9." RFC_PAYLOAD ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfT"
    "jDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
  static const unsigned char head[] = { 0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                        0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04 };
  unsigned char der[sizeof head + 64];
  const unsigned char *p = der;
  struct jwt_key key = { .alg = JWT_ES256 };
  struct jwt jwt;

  memcpy(der, head, sizeof head);
  is_int(base64_decode(EGW_LIT("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"), BASE64_URL,
                       der + sizeof head, 32), 32, "RFC 7515 A.3: its key's x");
  is_int(base64_decode(EGW_LIT("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"), BASE64_URL,
                       der + sizeof head + 32, 32), 32, "and y");
  key.public_key = d2i_PUBKEY(NULL, &p, sizeof der);
  ok(key.public_key != NULL, "they are a key");
  is_int(jwt_parse(EGW_LIT(token), &jwt), 0, "its token");
  ok(jwt_verify(&jwt, &key), "is good");
  jwt.signature[63] ^= 1;
  ok(!jwt_verify(&jwt, &key), "but not with another signature");
  memset(jwt.signature, 0, 64);
  ok(!jwt_verify(&jwt, &key), "nor with zeros");
  jwt_key_free(&key);
}

/* --- algorithms -------------------------------------------------------------------------- */

static enum issuer_says
check(const struct issuer *issuer, const char *token, int64_t now)
{
  char identity[ISSUER_IDENTITY_MAX];
  struct jwt jwt;
  int64_t until;

  if (jwt_parse(slice_of(token), &jwt) < 0)
    return ISSUER_NO;
  return issuer_check(issuer, &jwt, now, &until, identity);
}

static struct issuer
open_issuer(struct issuer issuer)
{
  const char *about, *why = issuer_open(&issuer, &about);

  if (why != NULL)
    ok(false, "issuer: %s %s", about == NULL ? "" : about, why);
  return issuer;
}

#define EXP "{\"exp\":1800000100}"

static void
test_algorithms(void)
{
  const char *rsa_path = public_file(rsa, "rsa"), *ec_path = public_file(ec, "ec");
  struct issuer hs = open_issuer((struct issuer){ .secret = SECRET, .grant.name = "hs" });
  struct issuer rs =
    open_issuer((struct issuer){ .public_key = rsa_path, .grant.name = "rs" });
  struct issuer es =
    open_issuer((struct issuer){ .public_key = ec_path, .grant.name = "es" });
  const struct issuer *issuers[] = { &hs, &rs, &es };
  const char *tokens[] = { token_of(NULL, SECRET, "{\"alg\":\"HS256\"}", EXP),
                           token_of(rsa, NULL, "{\"alg\":\"RS256\"}", EXP),
                           token_of(ec, NULL, "{\"alg\":\"ES256\"}", EXP) };
  char pem[2048] = "";
  FILE *file = fopen(rsa_path, "re");

  for (size_t i = 0; i < 3; i++)
    for (size_t k = 0; k < 3; k++)
      is_int(check(issuers[k], tokens[i], NOW), i == k ? ISSUER_YES : ISSUER_NO,
             "token %zu at issuer %zu", i, k);
  is_int(check(&es, token_of(other_ec, NULL, "{\"alg\":\"ES256\"}", EXP), NOW), ISSUER_NO,
         "another key of the same kind");
  if (file == NULL || fread(pem, 1, sizeof pem - 1, file) == 0)
    ok(false, "the key's file");
  fclose(file);
  is_int(check(&rs, token_of(NULL, pem, "{\"alg\":\"HS256\"}", EXP), NOW), ISSUER_NO,
         "the public key as a secret of HMAC");
  is_int(check(&rs, token_of(NULL, pem, "{\"alg\":\"RS256\"}", EXP), NOW), ISSUER_NO,
         "nor under RS256");
  is_int(check(&hs, token_of(ec, NULL, "{\"alg\":\"HS256\"}", EXP), NOW), ISSUER_NO,
         "a signature as HMAC");
  issuer_close(&hs);
  issuer_close(&rs);
  issuer_close(&es);
  unlink(rsa_path);
  unlink(ec_path);
}

static void
test_headers(void)
{
  static const struct {
    const char *header;
    int r;
  } cases[] = {
    { "{\"alg\":\"HS256\"}", 0 },
    { "{\"typ\":\"JWT\",\"alg\":\"HS256\",\"kid\":\"a\",\"x\":[1]}", 0 },
    { "{\"\\u0061lg\":\"HS\\u003256\"}", 0 },
    { "{\"alg\":\"none\"}", -1 },
    { "{\"alg\":\"None\"}", -1 },
    { "{\"alg\":\"\"}", -1 },
    { "{\"alg\":null}", -1 },
    { "{\"alg\":[\"HS256\"]}", -1 },
    { "{\"alg\":\"hs256\"}", -1 },
    { "{\"alg\":\"HS384\"}", -1 },
    { "{\"alg\":\"HS256\",\"alg\":\"none\"}", -1 },
    { "{\"alg\":\"none\",\"alg\":\"HS256\"}", -1 },
    { "{\"alg\":\"HS256\",\"crit\":[\"exp\"],\"exp\":1}", -1 },
    { "{\"alg\":\"HS256\",\"cr\\u0069t\":[]}", -1 },
    { "{\"alg\":\"HS256\",\"kid\":1}", -1 },
    { "{\"alg\":\"HS256\",\"kid\":\"a\",\"kid\":\"b\"}", -1 },
    { "{}", -1 },
    { "[\"HS256\"]", -1 },
    { "\"HS256\"", -1 },
    { "{\"alg\":\"HS256\"", -1 },
    { "{\"alg\":\"HS256\"} x", -1 },
    { "{alg:HS256}", -1 },
  };
  struct jwt jwt;

  for (size_t i = 0; i < COUNT(cases); i++)
    is_int(jwt_parse(slice_of(token_of(NULL, SECRET, cases[i].header, EXP)), &jwt), cases[i].r,
           "header %s", cases[i].header);
}

static void
test_forms(void)
{
  static const char *const bads[] = {
    "", ".", "..", "...", "a.b", "a.b.c.d", "e30.e30.", ".e30.e30", "e30..e30",
    "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.!!!!",
    "eyJhbGciOiJIUzI1NiJ9.e3.AAAA", "eyJhbGciOiJIUzI1NiJ9=.e30.AAAA",
    " eyJhbGciOiJIUzI1NiJ9.e30.AAAA", "eyJhbGciOiJIUzI1NiJ9.e30.AAA A",
  };
  struct jwt jwt;
  char *large;

  for (size_t i = 0; i < COUNT(bads); i++)
    is_int(jwt_parse(slice_of(bads[i]), &jwt), -1, "no token: \"%s\"", bads[i]);
  is_int(jwt_parse(EGW_LIT("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"), &jwt), 0, "but this is");
  large = malloc(JWT_MAX + 1);
  memset(large, 'A', JWT_MAX + 1);
  memcpy(large, "eyJhbGciOiJIUzI1NiJ9.", 21);
  memcpy(large + JWT_MAX - 4, ".AAAA", 5);
  is_int(jwt_parse((struct egw_slice){ large, JWT_MAX + 1 }, &jwt), -1, "too long");
  is_int(jwt_parse((struct egw_slice){ large + 1, JWT_MAX }, &jwt), -1, "cut at the front");
  memcpy(large + 30, ".", 1);
  is_int(jwt_parse((struct egw_slice){ large, 2000 }, &jwt), -1,
         "a signature that is too long");
  free(large);
}

/* --- claims ------------------------------------------------------------------------------ */

static const struct {
  const char *payload;
  enum issuer_says says;
} payloads[] = {
  { "{\"exp\":1800000001}", ISSUER_YES },
  { "{\"exp\":1800000001.5}", ISSUER_YES },
  { "{\"exp\":1799999971}", ISSUER_YES },
  { "{\"exp\":1799999970}", ISSUER_EXPIRED },
  { "{\"exp\":0}", ISSUER_EXPIRED },
  { "{\"exp\":-1}", ISSUER_NO },
  { "{\"exp\":1e12}", ISSUER_NO },
  { "{\"exp\":\"1800000001\"}", ISSUER_NO },
  { "{\"exp\":\"0x7fffffff\"}", ISSUER_NO },
  { "{\"exp\":99999999999999999999}", ISSUER_NO },
  { "{\"exp\":9223372036854775807}", ISSUER_NO },
  { "{\"exp\":72057594037927936}", ISSUER_YES },
  { "{\"exp\":null}", ISSUER_NO },
  { "{\"exp\":1,\"exp\":1800000001}", ISSUER_NO },
  { "{\"exp\":1800000001,\"\\u0065xp\":1800000001}", ISSUER_NO },
  { "{\"EXP\":1800000001}", ISSUER_NO },
  { "{}", ISSUER_NO },
  { "[]", ISSUER_NO },
  { "{\"exp\":1800000001", ISSUER_NO },
  { "x", ISSUER_NO },
  { "{\"exp\":1800000001,\"nbf\":1800000030}", ISSUER_YES },
  { "{\"exp\":1800000001,\"nbf\":1800000031}", ISSUER_NO },
  { "{\"exp\":1800000001,\"iat\":1800000030}", ISSUER_YES },
  { "{\"exp\":1800000001,\"iat\":1800000031}", ISSUER_NO },
  { "{\"exp\":1800000001,\"aud\":\"x\"}", ISSUER_NO },
  { "{\"exp\":1800000001,\"iss\":\"x\"}", ISSUER_YES },
  { "{\"exp\":1800000001,\"iss\":1}", ISSUER_NO },
  { "{\"exp\":1800000001,\"sub\":\"alice\"}", ISSUER_YES },
  { "{\"exp\":1800000001,\"sub\":\"a\\nb\"}", ISSUER_NO },
  { "{\"exp\":1800000001,\"sub\":\"\\u0000\"}", ISSUER_NO },
  { "{\"exp\":1800000001,\"sub\":\"\"}", ISSUER_NO },
  { "{\"exp\":1800000001,\"sub\":7}", ISSUER_NO },
};

static void
test_claims(void)
{
  struct issuer hs = open_issuer((struct issuer){ .secret = SECRET, .grant.name = "hs",
                                                  .leeway_ms = 29001 });

  for (size_t i = 0; i < COUNT(payloads); i++)
    is_int(check(&hs, token_of(NULL, SECRET, "{\"alg\":\"HS256\"}", payloads[i].payload), NOW),
           payloads[i].says, "payload %s", payloads[i].payload);
  issuer_close(&hs);
}

static void
test_wanted(void)
{
  static const struct {
    struct issuer issuer;
    const char *header, *payload;
    enum issuer_says says;
  } cases[] = {
    { { .issuer = "joe" }, "", ",\"iss\":\"joe\"", ISSUER_YES },
    { { .issuer = "joe" }, "", ",\"iss\":\"jo\"", ISSUER_NO },
    { { .issuer = "joe" }, "", "", ISSUER_NO },
    { { .audience = "gw" }, "", ",\"aud\":\"gw\"", ISSUER_YES },
    { { .audience = "gw" }, "", ",\"aud\":[\"x\",\"gw\"]", ISSUER_YES },
    { { .audience = "gw" }, "", ",\"aud\":[\"x\",[\"gw\"]]", ISSUER_NO },
    { { .audience = "gw" }, "", ",\"aud\":\"g\"", ISSUER_NO },
    { { .audience = "gw" }, "", ",\"aud\":{\"gw\":1}", ISSUER_NO },
    { { .audience = "gw" }, "", "", ISSUER_NO },
    { { .kid = "k1" }, ",\"kid\":\"k1\"", "", ISSUER_YES },
    { { .kid = "k1" }, ",\"kid\":\"k2\"", "", ISSUER_NO },
    { { .kid = "k1" }, ",\"kid\":\"k11\"", "", ISSUER_NO },
    { { .kid = "k1" }, "", "", ISSUER_NO },
    { { .max_age_ms = 60000 }, "", ",\"iat\":1799999941", ISSUER_YES },
    { { .max_age_ms = 60000 }, "", ",\"iat\":1799999940", ISSUER_EXPIRED },
    { { .max_age_ms = 60000 }, "", "", ISSUER_NO },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    struct issuer issuer = cases[i].issuer;
    char header[100], payload[200];

    issuer.secret = SECRET;
    issuer.grant.name = "x";
    issuer = open_issuer(issuer);
    snprintf(header, sizeof header, "{\"alg\":\"HS256\"%s}", cases[i].header);
    snprintf(payload, sizeof payload, "{\"exp\":1800000001%s}", cases[i].payload);
    is_int(check(&issuer, token_of(NULL, SECRET, header, payload), NOW), cases[i].says,
           "wanted %zu: %s %s", i, header, payload);
    issuer_close(&issuer);
  }
}

/* As consensus clients make them for a node's engine API. */
static void
test_age_alone(void)
{
  struct issuer issuer = open_issuer((struct issuer){
    .secret = "0x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    .encoding = ISSUER_HEX, .max_age_ms = 60000, .grant.name = "cl" });
  static const char raw[] = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
                            "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";

  is_int((long long)issuer.key.secret_len, 32, "a secret in hex has 32 bytes");
  ok(memcmp(issuer.key.secret, raw, 32) == 0, "which are these");
  issuer_close(&issuer);
  issuer = open_issuer((struct issuer){ .secret = SECRET, .max_age_ms = 60000,
                                        .grant.name = "cl" });
  is_int(check(&issuer, token_of(NULL, SECRET, "{\"alg\":\"HS256\"}", "{\"iat\":1800000000}"),
               NOW + 59), ISSUER_YES, "a token with nothing but \"iat\"");
  is_int(check(&issuer, token_of(NULL, SECRET, "{\"alg\":\"HS256\"}", "{\"iat\":1800000000}"),
               NOW + 60), ISSUER_EXPIRED, "ends by its age");
  issuer_close(&issuer);
}

/* --- keys that are refused --------------------------------------------------------------- */

static void
test_bad_keys(void)
{
  EVP_PKEY *small = EVP_RSA_gen(1024), *p384 = EVP_EC_gen("P-384");
  const char *small_path = public_file(small, "small"), *p384_path = public_file(p384, "p384");
  const struct {
    struct issuer issuer;
    const char *about, *why;
  } bads[] = {
    { { .secret = NULL }, NULL, "either" },
    { { .secret = SECRET, .public_key = small_path }, NULL, "either" },
    { { .secret = "0123456789012345678901234567890" }, "secret", "is too short" },
    { { .secret = "00", .encoding = ISSUER_HEX }, "secret", "is too short" },
    { { .secret = "xy", .encoding = ISSUER_HEX }, "secret", "is not written in" },
    { { .secret = "123", .encoding = ISSUER_HEX }, "secret", "is not written in" },
    { { .secret = "!", .encoding = ISSUER_BASE64 }, "secret", "is not written in" },
    { { .secret = "AAAA", .encoding = ISSUER_BASE64 }, "secret", "is too short" },
    { { .public_key = "/nonexistent/key.pem" }, "public_key", "No such file" },
    { { .public_key = "/dev/null" }, "public_key", "holds no public key" },
    { { .public_key = small_path }, "public_key", "holds an RSA key of less" },
    { { .public_key = p384_path }, "public_key", "holds neither" },
  };

  for (size_t i = 0; i < COUNT(bads); i++) {
    struct issuer issuer = bads[i].issuer;
    const char *about, *why = issuer_open(&issuer, &about);

    ok(why != NULL && strncmp(why, bads[i].why, strlen(bads[i].why)) == 0,
       "bad key %zu: %s", i, why == NULL ? "accepted" : why);
    ok(about == bads[i].about || (about != NULL && bads[i].about != NULL &&
                                  strcmp(about, bads[i].about) == 0), "and its option");
    issuer_close(&issuer);
  }
  unlink(small_path);
  unlink(p384_path);
  EVP_PKEY_free(small);
  EVP_PKEY_free(p384);
}

/* --- verified ones ----------------------------------------------------------------------- */

static struct token
numbered(unsigned i, int64_t until)
{
  struct token token = { .until = until };

  token.digest[0] = (unsigned char)(i & 0xff);
  token.digest[31] = (unsigned char)(i >> 8);
  return token;
}

static void
test_tokens(void)
{
  struct tokens tokens;
  struct token t;
  unsigned kept = 0;

  is_int(tokens_init(&tokens, 16), 0, "room for 16 tokens");
  for (unsigned i = 0; i < 1000; i++) {
    t = numbered(i, NOW + 100);
    tokens_put(&tokens, &t, NOW);
  }
  for (unsigned i = 0; i < 1000; i++) {
    t = numbered(i, 0);
    kept += tokens_get(&tokens, t.digest) != NULL;
  }
  is_int(kept, 16, "16 of 1000 are kept");
  for (unsigned i = 0; i < 4; i++) { /* of one set */
    t = numbered(256 * i, NOW + (i == 2 ? 0 : 100));
    tokens_put(&tokens, &t, NOW);
  }
  t = numbered(0, 0);
  ok(tokens_get(&tokens, t.digest) != NULL, "one is used");
  t = numbered(256 * 4, NOW + 100);
  tokens_put(&tokens, &t, NOW);
  t = numbered(256 * 2, 0);
  ok(tokens_get(&tokens, t.digest) == NULL, "another takes the place of what has expired");
  t = numbered(256 * 5, NOW + 100);
  tokens_put(&tokens, &t, NOW);
  t = numbered(256, 0);
  ok(tokens_get(&tokens, t.digest) == NULL, "or of what was used longest ago");
  t = numbered(0, 0);
  ok(tokens_get(&tokens, t.digest) != NULL, "which is not the first");
  tokens_free(&tokens);
  is_int(tokens_init(&tokens, 0), 0, "room for none");
  tokens_put(&tokens, &t, NOW);
  ok(tokens_get(&tokens, t.digest) == NULL, "keeps none");
  tokens_free(&tokens);
}

int
main(void)
{
  rsa = EVP_RSA_gen(2048);
  ec = EVP_EC_gen("P-256");
  other_ec = EVP_EC_gen("P-256");
  test_rfc_hmac();
  test_rfc_ecdsa();
  test_algorithms();
  test_headers();
  test_forms();
  test_claims();
  test_wanted();
  test_age_alone();
  test_bad_keys();
  test_tokens();
  EVP_PKEY_free(rsa);
  EVP_PKEY_free(ec);
  EVP_PKEY_free(other_ec);
  return done_testing();
}
