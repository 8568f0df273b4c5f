/* SPDX-License-Identifier: MIT */
/* Parts of the middleware `auth`: base64, the fields of a request, the table of keys (and
 * that it takes the same time whichever key it is), files of keys. */
#include "auth-kit.h"

#include "../../plugins/middleware/auth/base64.h"
#include "../../plugins/middleware/auth/credential.h"
#include "../../plugins/middleware/auth/keyfile.h"

/* --- base64 ------------------------------------------------------------------------------ */

static void
test_base64(void)
{
  static const struct {
    const char *text;
    enum base64 form;
    const char *bytes; /* NULL: refused */
  } cases[] = {
    { "", BASE64_PLAIN, "" },          { "Zg==", BASE64_PLAIN, "f" },
    { "Zm8=", BASE64_PLAIN, "fo" },    { "Zm9v", BASE64_PLAIN, "foo" },
    { "Zm9vYg==", BASE64_PLAIN, "foob" }, { "Zm9vYmE=", BASE64_PLAIN, "fooba" },
    { "+/+/", BASE64_PLAIN, "\xfb\xff\xbf" }, { "-_-_", BASE64_URL, "\xfb\xff\xbf" },
    { "Zg", BASE64_URL, "f" },         { "Zm8", BASE64_URL, "fo" },
    { "Zg", BASE64_PLAIN, NULL },      { "Zg==", BASE64_URL, NULL },
    { "Zh==", BASE64_PLAIN, NULL },    { "Zh", BASE64_URL, NULL },
    { "Zm9", BASE64_URL, NULL },       { "Z", BASE64_URL, NULL },
    { "Z===", BASE64_PLAIN, NULL },    { "====", BASE64_PLAIN, NULL },
    { "Zm=v", BASE64_PLAIN, NULL },    { "-_-_", BASE64_PLAIN, NULL },
    { "+/+/", BASE64_URL, NULL },      { "Zm9v\n", BASE64_URL, NULL },
    { "Zm 9v", BASE64_URL, NULL },     { "Zm9vZm9v", BASE64_URL, "foofoo" },
    { "Zm9vZm9vZg", BASE64_URL, NULL },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    unsigned char out[6];
    long n = base64_decode(slice_of(cases[i].text), cases[i].form, out, sizeof out);

    if (cases[i].bytes == NULL)
      is_int(n, -1, "case %zu is refused", i);
    else
      is_bytes((char *)out, n < 0 ? 0 : (size_t)n, cases[i].bytes,
               cases[i].text);
  }
}

/* --- fields ------------------------------------------------------------------------------ */

static struct egw_slice
maybe(const char *text)
{
  return text == NULL ? (struct egw_slice){ NULL, 0 } : slice_of(text);
}

static const struct {
  const char *authorization, *api_key, *path_key;
  enum credential_kind kind;
  const char *text;
} fields[] = {
  { NULL, NULL, NULL, CREDENTIAL_NONE, "" },
  { "Bearer abc", NULL, NULL, CREDENTIAL_BEARER, "abc" },
  { "bEARER  a.b.c \t", NULL, NULL, CREDENTIAL_BEARER, "a.b.c" },
  { "Bearer", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Bearer ", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Bearer\tabc", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Bearer a b", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Bearer a\x80", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Bearerabc", NULL, NULL, CREDENTIAL_BAD, "" },
  { "abc", NULL, NULL, CREDENTIAL_BAD, "" },
  { "", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Digest username=x", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Basic dTprZXk=", NULL, NULL, CREDENTIAL_KEY, "key" },
  { "basic OmE6Yg==", NULL, NULL, CREDENTIAL_KEY, "a:b" },
  { "Basic a2V5", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Basic dTo=", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Basic !", NULL, NULL, CREDENTIAL_BAD, "" },
  { "Basic ", NULL, NULL, CREDENTIAL_BAD, "" },
  { NULL, " key ", NULL, CREDENTIAL_KEY, "key" },
  { NULL, "", NULL, CREDENTIAL_BAD, "" },
  { NULL, NULL, "key", CREDENTIAL_KEY, "key" },
  { NULL, NULL, "", CREDENTIAL_BAD, "" },
  { "Bearer a", "b", "c", CREDENTIAL_BEARER, "a" },
  { NULL, "b", "c", CREDENTIAL_KEY, "b" },
  { "nonsense", "b", "c", CREDENTIAL_BAD, "" },
};

static void
test_credentials(void)
{
  for (size_t i = 0; i < COUNT(fields); i++) {
    struct credential c;

    credential_read(&c, maybe(fields[i].authorization), maybe(fields[i].api_key),
                    maybe(fields[i].path_key));
    is_int(c.kind, fields[i].kind, "case %zu: its kind", i);
    if (fields[i].kind >= CREDENTIAL_KEY)
      is_bytes(c.text.ptr, c.text.len, fields[i].text, "its text");
    credential_forget(&c);
    ok(memchr(c.decoded, 'k', sizeof c.decoded) == NULL, "case %zu: no copy is left", i);
  }
}

static void
test_long_credentials(void)
{
  char *text = malloc(CREDENTIAL_MAX + 9);
  struct egw_slice none = { NULL, 0 };
  struct credential c;

  memset(text, 'x', CREDENTIAL_MAX + 8);
  memcpy(text, "Bearer ", 7);
  credential_read(&c, (struct egw_slice){ text, CREDENTIAL_MAX + 7 }, none, none);
  is_int(c.kind, CREDENTIAL_BEARER, "a long one");
  credential_read(&c, (struct egw_slice){ text, CREDENTIAL_MAX + 8 }, none, none);
  is_int(c.kind, CREDENTIAL_BAD, "one that is too long");
  memcpy(text, "Basic  ", 7);
  credential_read(&c, (struct egw_slice){ text, 7 + 1400 }, none, none);
  is_int(c.kind, CREDENTIAL_BAD, "a Basic one that is too long");
  free(text);
}

/* --- the table of keys ------------------------------------------------------------------- */

static void
make_digest(unsigned char digest[KEYS_DIGEST], size_t i)
{
  EVP_Digest(&i, sizeof i, digest, NULL, EVP_sha256(), NULL);
}

static struct keys *
many_keys(size_t n)
{
  static const struct grant grant = { .name = "x", .expires = GRANT_FOR_EVER };
  struct keys *keys = keys_new();
  unsigned char digest[KEYS_DIGEST];

  for (size_t i = 0; i < n; i++) {
    make_digest(digest, i);
    if (keys_add(keys, digest, &grant) != KEYS_ADDED)
      ok(false, "key %zu is added", i);
  }
  return keys;
}

static void
test_find(void)
{
  struct keys *keys = keys_new();
  unsigned char digest[KEYS_DIGEST];
  char names[100][8];
  unsigned right = 0, others = 0;

  make_digest(digest, 0);
  ok(keys_find(keys, digest) == NULL, "no key is found among none");
  for (size_t i = 0; i < 100; i++) {
    struct grant grant = { .name = names[i] };

    snprintf(names[i], sizeof names[i], "k%zu", i);
    make_digest(digest, i);
    is_int(keys_add(keys, digest, &grant), KEYS_ADDED, "key %zu is added", i);
  }
  is_int(keys_add(keys, digest, &(struct grant){ .name = "again" }), KEYS_TWICE,
         "one is not added twice");
  for (size_t i = 0; i < 100; i++) {
    const struct grant *found;

    make_digest(digest, i);
    found = keys_find(keys, digest);
    right += found != NULL && found->name == names[i];
    for (unsigned bit = 0; bit < 8 * KEYS_DIGEST; bit++) {
      digest[bit / 8] ^= (unsigned char)(1u << bit % 8);
      others += keys_find(keys, digest) != NULL;
      digest[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
  }
  is_int(right, 100, "each is found");
  is_int(others, 0, "none that differs in one bit is");
  is_int((long long)keys_count(keys), 100, "their number");
  keys_free(keys);
}

/* The shortest of many runs, in ns: what it takes when nothing else disturbs. */
static uint64_t
shortest(const struct keys *keys, const unsigned char digest[KEYS_DIGEST])
{
  static volatile uintptr_t sink;
  uint64_t best = UINT64_MAX;

  for (unsigned i = 0; i < 400; i++) {
    struct timespec a, b;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &a);
    sink = (uintptr_t)keys_find(keys, digest);
    clock_gettime(CLOCK_MONOTONIC, &b);
    ns = (uint64_t)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
    if (ns < best)
      best = ns;
  }
  (void)sink;
  return best;
}

/* Stopping at the first key, or at the first byte that differs, would make times differ by
 * orders of magnitude. */
static void
test_constant_time(void)
{
  struct keys *keys = many_keys(KEYS_MAX);
  unsigned char digest[KEYS_DIGEST];
  uint64_t first, last, none, near;

  make_digest(digest, 0);
  first = shortest(keys, digest);
  make_digest(digest, KEYS_MAX - 1);
  last = shortest(keys, digest);
  digest[KEYS_DIGEST - 1] ^= 1;
  near = shortest(keys, digest);
  memset(digest, 0, sizeof digest);
  none = shortest(keys, digest);
  printf("# %u keys: first %u ns, last %u, none %u, near %u\n", KEYS_MAX, (unsigned)first,
         (unsigned)last, (unsigned)none, (unsigned)near);
  ok(first < last * 3 / 2 && last < first * 3 / 2, "the first key takes as long as the last");
  ok(none < last * 3 / 2 && last < none * 3 / 2, "and as none");
  ok(near < none * 3 / 2 && none < near * 3 / 2, "and as one that is nearly right");
  make_digest(digest, KEYS_MAX);
  is_int(keys_add(keys, digest, &(struct grant){ .name = "x" }), KEYS_TOO_MANY,
         "there is a limit to their number");
  keys_free(keys);
}

/* --- files of keys ----------------------------------------------------------------------- */

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void
test_file(void)
{
  static const char text[] = "# name key\n\n  alice\tsha256:" HEX "a \r\n"
                             "bob@x.y sha256:" HEX "b eth_* !eth_getLogs net_version "
                             "expires=2027-01-31T12:00:00Z\n"
                             "carol sha256:" HEX "c *";
  struct keys *keys = keys_new();
  char why[KEYFILE_WHY] = "";
  struct keyfile *file = keyfile_parse(strdup(text), keys, why);
  unsigned char digest[KEYS_DIGEST];
  const struct grant *grant;

  ok(file != NULL, "a file of keys: %s", why);
  is_int((long long)keys_count(keys), 3, "has three");
  keys_read_hex(HEX "a", 64, digest);
  grant = keys_find(keys, digest);
  ok(grant != NULL && strcmp(grant->name, "alice") == 0 && grant->expires == GRANT_FOR_EVER,
     "the first one's name");
  ok(grant != NULL && grant_allows(grant, EGW_LIT("debug_x")), "it may call all");
  keys_read_hex(HEX "B", 64, digest);
  grant = keys_find(keys, digest);
  ok(grant != NULL && strcmp(grant->name, "bob@x.y") == 0 && grant->expires == 1801396800,
     "the second one's name and end");
  ok(grant != NULL && grant_allows(grant, EGW_LIT("eth_call")) &&
       grant_allows(grant, EGW_LIT("net_version")), "it may call these");
  ok(grant != NULL && !grant_allows(grant, EGW_LIT("eth_getLogs")) &&
       !grant_allows(grant, EGW_LIT("net_versions")) &&
       !grant_allows(grant, EGW_LIT("eth")) && !grant_allows(grant, EGW_LIT("debug_x")),
     "but not these");
  keys_read_hex(HEX "c", 64, digest);
  grant = keys_find(keys, digest);
  ok(grant != NULL && grant_allows(grant, EGW_LIT("debug_x")), "the third one all");
  keyfile_free(file);
  keys_free(keys);
}

static void
test_bad_files(void)
{
  static const char *const bads[][2] = {
    { "alice\n", "line 1: no \"sha256:\"" },
    { "\nalice sha256:aa\n", "line 2: no \"sha256:\"" },
    { "alice key-in-the-clear\n", "line 1: no \"sha256:\"" },
    { "alice sha256:" HEX "g\n", "line 1: no \"sha256:\"" },
    { "a:b sha256:" HEX "a\n", "line 1: the name" },
    { "a sha256:" HEX "a et*h\n", "line 1: a word" },
    { "a sha256:" HEX "a !\n", "line 1: a word" },
    { "a sha256:" HEX "a expire=2027-01-01\n", "line 1: a word" },
    { "a sha256:" HEX "a expires=2027-02-30\n", "line 1: expires=" },
    { "a sha256:" HEX "a expires=tomorrow\n", "line 1: expires=" },
    { "a sha256:" HEX "a\n#\nb sha256:" HEX "a\n", "line 3: the key is there" },
  };

  for (size_t i = 0; i < COUNT(bads); i++) {
    struct keys *keys = keys_new();
    char why[KEYFILE_WHY] = "";
    struct keyfile *file = keyfile_parse(strdup(bads[i][0]), keys, why);

    ok(file == NULL && strncmp(why, bads[i][1], strlen(bads[i][1])) == 0, "%s: %s", bads[i][1],
       why);
    ok(strstr(why, "clear") == NULL, "no key is repeated");
    keyfile_free(file);
    keys_free(keys);
  }
}

static void
test_dates(void)
{
  static const struct {
    const char *text;
    int64_t seconds; /* -1: refused */
  } cases[] = {
    { "1970-01-02", 86400 },          { "2027-01-31", 1801353600 },
    { "2028-02-29T23:59:59Z", 1835481599 }, { "2027-02-29", -1 },
    { "2027-1-31", -1 },              { "2027-01-31T12:00:00", -1 },
    { "2027-13-01", -1 },             { "", -1 },
    { "2027-01-31T12:00:00+", -1 },   { "2027-01-31Z", -1 },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    int64_t seconds = -1;
    int r = grant_read_date(cases[i].text, &seconds);

    is_int(r, cases[i].seconds < 0 ? -1 : 0, "date \"%s\"", cases[i].text);
    is_int(seconds, cases[i].seconds, "its seconds");
  }
}

int
main(void)
{
  test_base64();
  test_credentials();
  test_long_credentials();
  test_find();
  test_constant_time();
  test_file();
  test_bad_files();
  test_dates();
  return done_testing();
}
