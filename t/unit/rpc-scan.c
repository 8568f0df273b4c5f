/* SPDX-License-Identifier: MIT */
/* The JSON scanner: grammar, UTF-8, events, depth; the same result in every flavour and
 * whichever way the bytes are cut. */
#include <dirent.h>
#include "rpc/scan.h"
#include "rpc-data.h"
#include "../lib/tap.h"

static const char *const flavours[] = { "scalar", "sse2", "avx2" };
#define FLAVOURS 3u

static uint64_t seed = 11;

static unsigned
rnd(unsigned below)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % below);
}

/* --- all that a scan says, in a form that can be compared ---------------------------- */

struct outcome {
  enum scan_status status;
  uint64_t consumed, offset, top_begin, events, digest;
  enum egw_json_kind top;
  const char *why;
};

static void
outcome_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
              uint64_t to, void *arg)
{
  struct outcome *o = arg;
  uint64_t parts[4] = { event, kind, from, to };
  unsigned i;

  (void)scan;
  o->events++;
  for (i = 0; i < 4; i++)
    o->digest = (o->digest ^ parts[i]) * UINT64_C(0x100000001b3) + 1;
}

/* Scans the text in pieces that end at the given offsets. Each piece is memory of its own. */
static struct outcome
scan_pieces(struct egw_slice text, unsigned depth, const size_t *ends, size_t count)
{
  struct outcome o = { .digest = 5 };
  struct scan scan;
  size_t i, from = 0, used = 0, to;
  char *piece;

  scan_init(&scan, depth, outcome_event, &o);
  o.status = SCAN_MORE;
  for (i = 0; i <= count && o.status == SCAN_MORE; i++) {
    to = i < count ? ends[i] : text.len;
    piece = data_exact(text.ptr + from, to - from);
    o.status = scan_feed(&scan, piece, to - from, &used);
    o.consumed += used;
    free(piece);
    from = to;
  }
  if (o.status == SCAN_MORE)
    o.status = scan_finish(&scan);
  o.offset = scan.offset;
  o.top = scan.top;
  o.top_begin = scan.top_begin;
  o.why = o.status == SCAN_BAD ? scan.why : NULL;
  return o;
}

static bool
outcome_same(const struct outcome *a, const struct outcome *b)
{
  return a->status == b->status && a->consumed == b->consumed && a->offset == b->offset &&
         a->top_begin == b->top_begin && a->events == b->events && a->digest == b->digest &&
         a->top == b->top && a->why == b->why;
}

/* Scans in all flavours, whole, and in each flavour in random pieces; true if all agree. */
static bool
all_agree(struct egw_slice text, struct outcome *first)
{
  struct outcome o;
  size_t ends[8], i, f;
  bool same = true;

  scan_force("scalar");
  *first = scan_pieces(text, SCAN_DEPTH_MAX, NULL, 0);
  for (f = 0; f < FLAVOURS; f++) {
    if (!scan_force(flavours[f]))
      continue;
    o = scan_pieces(text, SCAN_DEPTH_MAX, NULL, 0);
    same = same && outcome_same(&o, first);
    for (i = 0; i < 8; i++)
      ends[i] = (i > 0 ? ends[i - 1] : 0) + rnd((unsigned)text.len / 6 + 2);
    for (i = 0; i < 8 && ends[i] <= text.len; i++) {}
    o = scan_pieces(text, SCAN_DEPTH_MAX, ends, i);
    same = same && outcome_same(&o, first);
  }
  return same;
}

/* --- JSONTestSuite ------------------------------------------------------------------- */

/* What RFC 8259 leaves open and this scanner takes: any number, escapes that are well formed,
 * 500 levels. Refused is all else: bytes that are not UTF-8, other encodings, a byte order
 * mark. */
static bool
open_case_taken(const char *name)
{
  static const char *const taken[] = {
    "i_number_", "i_object_key_lone_2nd_surrogate", "i_string_1st_surrogate_but_2nd_missing",
    "i_string_1st_valid_surrogate_2nd_invalid", "i_string_incomplete_surrogate",
    "i_string_invalid_lonely_surrogate", "i_string_invalid_surrogate",
    "i_string_inverted_surrogates", "i_string_lone_second_surrogate",
    "i_structure_500_nested_arrays",
  };
  size_t i;

  for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
    if (strncmp(name, taken[i], strlen(taken[i])) == 0)
      return true;
  return false;
}

static void
suite_file(const char *name, unsigned count[3])
{
  struct egw_slice text;
  char path[512];
  const char *why;
  size_t f;
  bool want = name[0] == 'y' || (name[0] == 'i' && open_case_taken(name)), got, right = true;

  snprintf(path, sizeof(path), "JSONTestSuite/test_parsing/%s", name);
  text = data_file(data_path(path));
  for (f = 0; f < FLAVOURS; f++) {
    if (!scan_force(flavours[f]))
      continue;
    got = scan_valid(text, SCAN_DEPTH_MAX, &why);
    right = right && got == want && (got ? why == NULL : why != NULL);
  }
  if (!right)
    ok(false, "%s is %s", name, want ? "accepted" : "refused");
  else
    count[name[0] == 'y' ? 0 : name[0] == 'n' ? 1 : 2]++;
  data_free(text);
}

static void
test_suite(void)
{
  DIR *dir = opendir(data_path("JSONTestSuite/test_parsing"));
  struct dirent *entry;
  unsigned count[3] = { 0 };

  if (dir == NULL) {
    tap_skip("JSONTestSuite is not there");
    return;
  }
  while ((entry = readdir(dir)) != NULL)
    if (strstr(entry->d_name, ".json") != NULL)
      suite_file(entry->d_name, count);
  closedir(dir);
  is_int(count[0], 95, "JSONTestSuite: y_ files accepted in every flavour");
  is_int(count[1], 188, "JSONTestSuite: n_ files refused in every flavour");
  is_int(count[2], 35, "JSONTestSuite: i_ files as decided");
}

/* --- small texts --------------------------------------------------------------------- */

static const struct {
  const char *text;
  bool valid;
} small[] = {
  { "0", true }, { "-0", true }, { "-1.5e+10", true }, { "1E5", true }, { "1e400", true },
  { "123456789012345678901234567890", true }, { " [ ] ", true }, { "{ }", true },
  { "[1,2.0,-3e-1,0,\"\"]", true }, { "{\"a\":1,\"b\":[true,false,null]}", true },
  { "{\"\\u0061\\n\\\"\\\\\\/\":\"\\ud800\\uDC00 \\ud800\"}", true },
  { "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", true },
  { "{\"a\" : { \"b\" : [ { } , [ ] ] } }", true },
  { "\t\r\n \"x\" \t\r\n", true }, { "true", true }, { "null ", true },
  { "[\"0123456789012345678901234567890123456789\\t\",\"0x\"]", true },
  { "[[[[1]],[]],{\"k\":{}}]", true }, { "{\"a\":\"b\",\"a\":\"c\"}", true },
  { "\"\x7f\"", true },
  { "", false }, { " ", false }, { "-", false }, { "+1", false }, { "01", false },
  { "1.", false },
  { "1.e1", false }, { "1e", false }, { "1e+", false }, { ".5", false }, { "--1", false },
  { "1 2", false }, { "[1 2]", false }, { "[1,]", false }, { "[,1]", false }, { "[", false },
  { "]", false }, { "[}", false }, { "{]", false }, { "{\"a\"}", false },
  { "{\"a\":}", false },
  { "{\"a\":1,}", false }, { "{,}", false }, { "{1:2}", false }, { "{\"a\" 1}", false },
  { "{\"a\":1 \"b\":2}", false }, { "{\"a\"::1}", false }, { "tru", false }, { "truE", false },
  { "nulll", false }, { "True", false }, { "'a'", false }, { "\"a", false }, { "\"\\", false },
  { "\"\\x\"", false }, { "\"\\u12\"", false }, { "\"\\u12g4\"", false },
  { "\"\x01\"", false },
  { "\"\x1f\"", false }, { "\"\n\"", false }, { "\"\xff\"", false }, { "\"\xc3\"", false },
  { "\"\xc0\xaf\"", false }, { "\"\xed\xa0\x80\"", false }, { "\"\xe0\x80\x80\"", false },
  { "\"\xf4\x90\x80\x80\"", false }, { "\"\xf5\x80\x80\x80\"", false }, { "\"\x80\"", false },
  { "\"\xe2\x82\"", false }, { "{}x", false }, { "{} {}", false }, { "\xef\xbb\xbf{}", false },
  { "[\x0c]", false }, { "[1]\x0b", false }, { "/**/1", false }, { "NaN", false },
  { "[\"a\",\n\"\xc3(\"]", false }, { "{\"a\":1}}", false }, { "[1]]", false },
  { "\\u0031", false },
};
#define SMALL (sizeof(small) / sizeof(small[0]))

static struct egw_slice
small_text(size_t i)
{
  return (struct egw_slice){ data_exact(small[i].text, strlen(small[i].text)),
                             strlen(small[i].text) };
}

static void
test_small(void)
{
  struct egw_slice text;
  const char *why;
  size_t i, f;
  char nul[] = { '[', '\0', ']' };
  bool right;

  for (i = 0; i < SMALL; i++) {
    text = small_text(i);
    for (f = 0, right = true; f < FLAVOURS; f++) {
      if (scan_force(flavours[f]))
        right = right && scan_valid(text, 8, &why) == small[i].valid;
    }
    ok(right, "small text %zu is %s", i, small[i].valid ? "accepted" : "refused");
    data_free(text);
  }
  ok(!scan_valid((struct egw_slice){ nul, 3 }, 8, NULL), "a NUL is no white space");
  ok(!scan_valid((struct egw_slice){ NULL, 0 }, 8, &why) && strcmp(why, "no value") == 0,
     "a missing text is none, with a reason");
}

/* Cuts every small text in two and in three at every place, and into single bytes. */
static void
test_cuts(void)
{
  struct outcome whole, cut;
  struct egw_slice text;
  size_t i, f, ends[64], n;
  unsigned wrong = 0, cuts = 0;

  for (f = 0; f < FLAVOURS; f++) {
    if (!scan_force(flavours[f]))
      continue;
    for (i = 0; i < SMALL; i++) {
      text = small_text(i);
      whole = scan_pieces(text, 8, NULL, 0);
      for (ends[0] = 0; ends[0] <= text.len; ends[0]++) {
        for (ends[1] = ends[0]; ends[1] <= text.len; ends[1]++, cuts++) {
          cut = scan_pieces(text, 8, ends, 2);
          wrong += !outcome_same(&whole, &cut);
        }
      }
      for (n = 0; n < text.len && n < 64; n++)
        ends[n] = n + 1;
      cut = scan_pieces(text, 8, ends, n);
      wrong += !outcome_same(&whole, &cut);
      data_free(text);
    }
  }
  ok(wrong == 0 && cuts > 10000, "%u cuts change nothing (%u do)", cuts, wrong);
}

/* --- UTF-8 --------------------------------------------------------------------------- */

/* RFC 3629 by value, not by ranges of bytes: decode, then ask what the number may be. */
static bool
utf8_valid(const unsigned char *p, size_t len)
{
  static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
  unsigned long code;
  size_t n, i;

  while (len > 0) {
    n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > len)
      return false;
    code = n == 1 ? *p : *p & (0x7fu >> n);
    for (i = 1; i < n; i++) {
      if (p[i] >> 6 != 2)
        return false;
      code = code << 6 | (p[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      return false;
    p += n;
    len -= n;
  }
  return true;
}

static void
test_utf8(void)
{
  static const unsigned char at[] = { 'a',  0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
                                      0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef,
                                      0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff };
  const unsigned n = sizeof(at), all = n * n * n * n;
  unsigned char text[48];
  unsigned i, wrong = 0, good = 0;
  bool want;

  scan_force(scan_force("avx2") ? "avx2" : "scalar");
  memset(text, 'x', sizeof(text));
  text[0] = text[sizeof(text) - 1] = '"';
  for (i = 0; i < all; i++) {
    text[3] = at[i % n];
    text[4] = at[i / n % n];
    text[5] = at[i / n / n % n];
    text[6] = at[i / n / n / n];
    want = utf8_valid(text + 3, 5);
    good += want;
    wrong += want != scan_valid((struct egw_slice){ (char *)text, sizeof(text) }, 1, NULL);
  }
  ok(wrong == 0 && good > 100, "%u sequences of bytes: %u are UTF-8", all, good);
}

/* --- random and recorded texts ------------------------------------------------------- */

/* Appends a random value; no recursion: `room` levels are kept as a string of closers. */
static size_t
random_text(char *out, size_t cap)
{
  static const char *const atoms[] = {
    "0", "-12.5e3", "true", "null", "\"\"", "\"0x0123456789abcdef0123456789abcdef01234567\"",
    "\"a\\\"b\\\\\"", "\"\\u00e9\xc3\xa9\xf0\x9f\x98\x80 and more text to fill a vector\"",
    "\"0x0\"", "[]", "{}", "false", "1e9",
  };
  char closers[64];
  size_t len = 0, depth = 0;
  const char *atom;

  for (;;) {
    if (depth > 0 && closers[depth - 1] == '}')
      len += (size_t)snprintf(out + len, cap - len, "\"key%u\"%s:", rnd(1000), &" "[rnd(2)]);
    if (depth < 60 && rnd(3) == 0 && len < cap / 2) {
      closers[depth] = rnd(2) == 0 ? '}' : ']';
      out[len++] = closers[depth] == '}' ? '{' : '[';
      depth++;
      continue;
    }
    atom = atoms[rnd(sizeof(atoms) / sizeof(atoms[0]))];
    memcpy(out + len, atom, strlen(atom));
    len += strlen(atom);
    while (depth > 0 && (rnd(3) == 0 || len > cap / 2))
      out[len++] = closers[--depth];
    if (depth == 0)
      return len;
    out[len++] = ',';
    if (rnd(8) == 0)
      out[len++] = " \n\t\r"[rnd(4)];
  }
}

static void
mutate(char *text, size_t len)
{
  static const char spice[] = "\"\\{}[]:,0e.- \x01\x80\xc3\xe2\xf0\xff/utfn";

  text[rnd((unsigned)len)] = rnd(4) == 0 ? (char)rnd(256) : spice[rnd(sizeof(spice) - 1)];
}

static void
test_random(void)
{
  static char text[4096];
  struct outcome o;
  unsigned i, j, differ = 0, bad = 0, broken = 0;
  size_t len;

  for (i = 0; i < 3000; i++) {
    len = random_text(text, sizeof(text));
    differ += !all_agree((struct egw_slice){ text, len }, &o);
    bad += o.status != SCAN_DONE || o.consumed != len;
    for (j = rnd(3) + 1; j > 0; j--)
      mutate(text, len);
    differ += !all_agree((struct egw_slice){ text, len }, &o);
    broken += o.status == SCAN_BAD;
  }
  is_int(bad, 0, "random JSON is accepted");
  ok(broken > 1000, "most of it is refused when it was changed (%u)", broken);
  is_int(differ, 0, "every flavour and every cut says the same");
}

/* Every line of a recording, then the same with a byte changed. */
static void
test_recorded(const char *name)
{
  struct egw_slice file = data_file(data_path(name)), left = file, line;
  struct outcome o;
  unsigned lines = 0, looked = 0, bad = 0, differ = 0;
  char *copy;

  if (file.ptr == NULL) {
    tap_skip("the recording is not there");
    return;
  }
  while (data_line(&left, &line)) {
    if (line.len > 3 && (line.ptr[0] == '>' || line.ptr[0] == '<')) {
      line.ptr += 3;
      line.len -= 3;
    }
    if (line.len < 2 || (line.ptr[0] != '{' && line.ptr[0] != '['))
      continue;
    if (lines++ % 20 != 0 && lines > 400) /* of the largest files a part will do */
      continue;
    looked++;
    differ += !all_agree(line, &o);
    bad += o.status != SCAN_DONE;
    copy = data_exact(line.ptr, line.len);
    mutate(copy, line.len);
    differ += !all_agree((struct egw_slice){ copy, line.len }, &o);
    free(copy);
  }
  is_int(bad, 0, "%s: %u of %u texts, all valid", name, looked, lines);
  is_int(differ, 0, "%s: every flavour and every cut says the same", name);
  data_free(file);
}

/* --- depth, events, ends ------------------------------------------------------------- */

static bool
depth_valid(const char *open, const char *close, size_t n, unsigned max)
{
  size_t a = strlen(open), b = strlen(close), i;
  char *text = malloc(n * (a + b));
  bool valid;

  if (text == NULL)
    abort();
  for (i = 0; i < n; i++) {
    memcpy(text + i * a, open, a);
    memcpy(text + n * a + i * b, close, b);
  }
  valid = scan_valid((struct egw_slice){ text, n * (a + b) }, max, NULL);
  free(text);
  return valid;
}

static void
test_depth(void)
{
  struct outcome o;
  char *text;

  ok(depth_valid("[", "]", 128, 128) && !depth_valid("[", "]", 129, 128),
     "arrays: 128 and 129 of 128");
  ok(depth_valid("[", "]", 512, 9999) && !depth_valid("[", "]", 513, 9999), "at most 512");
  ok(depth_valid("[", "]", 1, 1) && !depth_valid("[", "]", 2, 1), "1 and 2 of 1");
  ok(depth_valid("[", "]", 1, 0), "0 means 1");
  ok(depth_valid("[{\"a\":[", "]}]", 40, 120) && !depth_valid("[{\"a\":[", "]}]", 40, 119),
     "arrays and objects mixed");
  text = malloc(1000000);
  if (text == NULL)
    abort();
  memset(text, '[', 1000000);
  o = scan_pieces((struct egw_slice){ text, 1000000 }, 128, NULL, 0);
  ok(o.status == SCAN_BAD && o.offset == 128, "a million brackets end at the first too many");
  free(text);
}

struct event_log {
  char text[1000];
  size_t len;
  unsigned stop_at, seen;
};

static void
log_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
          uint64_t to, void *arg)
{
  struct event_log *log = arg;

  if (log->len < sizeof(log->text))
    log->len += (size_t)snprintf(log->text + log->len, sizeof(log->text) - log->len,
                                 "%c%d:%d-%d ", "kbe"[event], kind, (int)from, (int)to);
  if (++log->seen == log->stop_at)
    scan->stop = true;
}

static enum scan_status
run_log(const char *text, struct event_log *log, struct scan *scan, size_t *used)
{
  scan_init(scan, 10, log_event, log);
  return scan_feed(scan, text, strlen(text), used);
}

static void
test_events(void)
{
  struct event_log log = { .len = 0 };
  struct scan scan;
  size_t used;

  is_int(run_log(" {\"a\":1,\"b\":{\"c\":[]}, \"d\":\"x\"}tail", &log, &scan, &used),
         SCAN_DONE,
         "an object with something behind it");
  is_bytes(log.text, log.len,
           "k5:2-5 b4:6-0 e4:6-7 k5:8-11 b7:12-0 e7:12-20 k5:22-25 b5:26-0 e5:26-29 ",
           "keys and members of the outermost object only");
  is_int(used, 30, "it ends at its brace");
  is_int(scan_feed(&scan, "more", 4, &used), SCAN_DONE, "nothing more is taken");
  is_int(used, 0, "not a byte");
  ok(scan.top == EGW_JSON_OBJECT && scan.top_begin == 1 && scan.offset == 30,
     "its place is known");
  log = (struct event_log){ .len = 0 };
  run_log("[null, [1,2] ,-5]", &log, &scan, &used);
  is_bytes(log.text, log.len, "b1:1-0 e1:1-5 b6:7-0 e6:7-12 b4:14-0 e4:14-16 ",
           "elements of the outermost array");
  log = (struct event_log){ .stop_at = 2 };
  is_int(run_log("{\"a\":1,\"b\":2}", &log, &scan, &used), SCAN_BAD,
         "the callback can stop it");
  ok(log.seen == 2 && used == 5 && scan.why != NULL, "at once");
  is_int(scan_feed(&scan, "1", 1, &used), SCAN_BAD, "and it stays stopped");
}

static void
test_ends(void)
{
  struct event_log log = { .len = 0 };
  struct scan scan;
  size_t used;

  is_int(run_log("12", &log, &scan, &used), SCAN_MORE, "a number may go on");
  is_int(scan_finish(&scan), SCAN_DONE, "until the text ends");
  is_int(scan_finish(&scan), SCAN_DONE, "which can be said twice");
  is_int(run_log("12 ", &log, &scan, &used), SCAN_DONE, "or something else comes");
  is_int(used, 2, "which is not part of it");
  is_int(log.seen, 0, "a number has no members");
  run_log("-", &log, &scan, &used);
  is_int(scan_finish(&scan), SCAN_BAD, "a sign is no number");
  run_log("[1", &log, &scan, &used);
  is_int(scan_finish(&scan), SCAN_BAD, "nor is an open array an end");
  run_log("{\"abc", &log, &scan, &used);
  ok(scan_in_key(&scan) && scan.key_from == 1, "in a key");
  run_log("{\"abc\":\"x", &log, &scan, &used);
  ok(!scan_in_key(&scan), "not in a value");
  run_log("[{\"abc", &log, &scan, &used);
  ok(!scan_in_key(&scan), "not in a key further down");
  is_int(scan_feed(&scan, NULL, 0, &used), SCAN_MORE, "no bytes are no end");
}

int
main(void)
{
  const char *flavour = scan_flavour();

  ok(scan_force(flavour) && !scan_force("mmx"), "the flavour is %s", flavour);
  test_suite();
  test_small();
  test_cuts();
  test_utf8();
  test_random();
  test_recorded("replay/execution-apis.io");
  test_recorded("replay/erigon-mainnet-le64k.io");
  test_recorded("replay/mainnet-blocks-and-misc.io");
  test_recorded("geth-batches/shovel-block-18000000.json");
  test_recorded("loadmix/requests.ndjson");
  test_depth();
  test_events();
  test_ends();
  return done_testing();
}
