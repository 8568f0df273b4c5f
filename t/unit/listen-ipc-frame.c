/* SPDX-License-Identifier: MIT */
/* The IPC framer: what it finds in a stream does not depend on how the stream is split. */
#include "listen/ipc-frame.h"
#include "../lib/tap.h"

#define LIMIT 4096

/* What was found, as text: values as they are, "!" broken, "%" too large, "?" lost, "#" over
 * the budget; each followed by a newline. */
struct found {
  char text[1 << 16];
  size_t len;
};

static void
note(struct found *found, enum frame_found what, struct egw_buf *text)
{
  struct egw_slice s = EGW_LIT("");

  switch (what) {
  case FRAME_VALUE: s = egw_buf_slice(text); break;
  case FRAME_BROKEN: s = EGW_LIT("!"); break;
  case FRAME_TOO_LARGE: s = EGW_LIT("%"); break;
  case FRAME_LOST: s = EGW_LIT("?"); break;
  case FRAME_OVERLOADED: s = EGW_LIT("#"); break;
  default: s = EGW_LIT("memory"); break;
  }
  if (found->len + s.len + 1 < sizeof(found->text)) {
    memcpy(found->text + found->len, s.ptr, s.len);
    found->len += s.len;
    found->text[found->len++] = '\n';
    found->text[found->len] = '\0';
  }
  egw_buf_unref(text);
}

/* Feeds a piece from memory that is gone afterwards. `pause`: stop after each thing found. */
static void
feed(struct frame *frame, const char *bytes, size_t len, bool pause, struct found *found)
{
  char *piece = malloc(len + 1);
  enum frame_found what;
  struct egw_buf *text = NULL;

  memcpy(piece, bytes, len);
  frame_feed(frame, piece, len);
  if (pause) {
    frame_keep(frame);
    free(piece);
    piece = NULL;
  }
  while ((what = frame_next(frame, &text)) != FRAME_MORE) {
    note(found, what, text);
    text = NULL;
    if (pause)
      frame_keep(frame);
  }
  free(piece);
}

static void
finish(struct frame *frame, struct found *found)
{
  struct egw_buf *text = NULL;
  enum frame_found what = frame_finish(frame, &text);

  if (what != FRAME_MORE)
    note(found, what, text);
  frame_free(frame);
}

static const struct {
  const char *name, *in, *want;
} table[] = {
  { "nothing", "", "" },
  { "white space", " \r\n\t\n", "" },
  { "one, no newline", "{\"id\":1}", "{\"id\":1}\n" },
  { "one with newline", "{\"id\":1}\n", "{\"id\":1}\n" },
  { "one with CRLF", "{\"id\":1}\r\n", "{\"id\":1}\n" },
  { "back to back", "{\"a\":1}{\"b\":[2]}[{}]{}", "{\"a\":1}\n{\"b\":[2]}\n[{}]\n{}\n" },
  { "space around", "  {\"a\" : 1 }\t\n [ ] ", "{\"a\" : 1 }\n[ ]\n" },
  { "brackets in strings", "{\"a\":\"}{][\\\"\\\\\"}{\"b\":\"\\u007d\"}",
    "{\"a\":\"}{][\\\"\\\\\"}\n{\"b\":\"\\u007d\"}\n" },
  { "UTF-8", "{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}[]",
    "{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}\n[]\n" },
  { "scalars", "5 null\ntrue\"x\"-1.5e3{}", "5\nnull\ntrue\n\"x\"\n-1.5e3\n{}\n" },
  { "a number at the end", "{}17", "{}\n17\n" },
  { "byte order mark", "\xef\xbb\xbf{\"a\":1}\n\xef\xbb\xbf[1]", "{\"a\":1}\n[1]\n" },
  { "half a byte order mark", "\xef\xbb{\"a\":1}\n{\"b\":2}", "!\n{\"a\":1}\n{\"b\":2}\n" },
  { "a mark alone at the end", "{}\xef\xbb", "{}\n!\n" },
  { "broken, balanced, no newline", "{\"a\" 1}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "broken, balanced, newline", "{\"a\" 1}\n{\"b\":2}\n", "!\n{\"b\":2}\n" },
  { "broken, nested", "[{\"a\":[1,,{\"x\":\"]]\\\"\"}]}]{\"b\":2}", "!\n{\"b\":2}\n" },
  { "broken, other bracket", "[1}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "broken string", "{\"a\":\"\\x\"}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "invalid UTF-8", "{\"a\":\"\xed\xa0\x80\xff\",\"b\":{}}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "unclosed, next line", "{\"a\" 1\n{\"b\":2}\n", "!\n{\"b\":2}\n" },
  { "unclosed string, next line", "{\"a\":\"x\n{\"b\":2}\n", "!\n{\"b\":2}\n" },
  { "broken over lines", "{\n \"a\" 1,\n \"b\": 2\n}\n{\"b\":2}\n", "!\n{\"b\":2}\n" },
  { "words", "not json\n{\"b\":2}", "!\n{\"b\":2}\n" },
  { "words, no newline", "not json{\"b\":2}", "!\n{\"b\":2}\n" },
  { "words, CRLF", "GET / HTTP/1.1\r\n[2]", "!\n[2]\n" },
  { "single quotes", "{'a':1}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "trailing comma", "{\"a\":1,}{\"b\":2}", "!\n{\"b\":2}\n" },
  { "bad top string", "\"\\x\" {\"b\":2}", "!\n{\"b\":2}\n" },
  { "closing bracket", "}\n{\"b\":2}", "!\n{\"b\":2}\n" },
  { "NUL", "{\"a\":1}x\n{\"b\":2}", "{\"a\":1}\n!\n{\"b\":2}\n" },
  { "two broken ones", "{\"a\" 1}\n[1,]\n{}", "!\n!\n{}\n" },
  { "cut off", "{\"a\":[1,2", "!\n" },
  { "cut off in a string", "{}{\"a", "{}\n!\n" },
  { "broken and cut off", "{\"a\" 1", "!\n" },
};

static const char *
show(const struct found *found)
{
  return found->text;
}

/* Every way to split the input in two, and byte by byte, paused or not. */
static void
check_splits(const char *name, const char *in, size_t len, const char *want)
{
  static struct found found;
  unsigned wrong = 0;
  size_t cut, i;
  int pause;

  for (pause = 0; pause < 2; pause++) {
    for (cut = 0; cut <= len; cut++) {
      struct frame frame;

      frame_init(&frame, 64, LIMIT, NULL);
      memset(&found, 0, sizeof(found));
      feed(&frame, in, cut, pause != 0, &found);
      feed(&frame, in + cut, len - cut, pause != 0, &found);
      finish(&frame, &found);
      wrong += strcmp(show(&found), want) != 0;
      if (wrong == 1)
        printf("# cut %zu pause %d: %s\n", cut, pause, show(&found));
    }
    struct frame frame;

    frame_init(&frame, 64, LIMIT, NULL);
    memset(&found, 0, sizeof(found));
    for (i = 0; i < len; i++)
      feed(&frame, in + i, 1, pause != 0, &found);
    finish(&frame, &found);
    wrong += strcmp(show(&found), want) != 0;
  }
  is_int(wrong, 0, "%s: the same for each split", name);
}

/* Every way to split in three, for streams of several values. */
static void
check_thirds(void)
{
  static const char in[] = "\xef\xbb\xbf{\"a\":\"\\u00e4\xc3\xa4\"} [1,-2.5e+1]\n"
                           "{\"x\" 1}{\"b\":{}}7 ";
  static const char want[] = "{\"a\":\"\\u00e4\xc3\xa4\"}\n[1,-2.5e+1]\n!\n{\"b\":{}}\n7\n";
  static struct found found;
  size_t len = sizeof(in) - 1, a, b;
  unsigned wrong = 0;

  for (a = 0; a <= len; a++)
    for (b = a; b <= len; b++) {
      struct frame frame;

      frame_init(&frame, 64, LIMIT, NULL);
      memset(&found, 0, sizeof(found));
      feed(&frame, in, a, false, &found);
      feed(&frame, in + a, b - a, (a + b) % 2 == 0, &found);
      feed(&frame, in + b, len - b, false, &found);
      finish(&frame, &found);
      wrong += strcmp(found.text, want) != 0;
    }
  is_int(wrong, 0, "every split in three");
}

static void
check_limits(void)
{
  static char big[LIMIT * 3];
  static struct found found;
  struct frame frame;
  size_t i;

  memset(big, '[', 65);
  memset(big + 65, ']', 65);
  memcpy(big + 130, "{}", 2);
  check_splits("too deep", big, 132, "!\n{}\n");

  big[0] = '"';
  memset(big + 1, 'x', LIMIT - 2);
  big[LIMIT - 1] = '"';
  memset(&found, 0, sizeof(found));
  frame_init(&frame, 64, LIMIT, NULL);
  feed(&frame, big, LIMIT, false, &found);
  is_int(found.len, LIMIT + 1, "a value of exactly the limit");
  feed(&frame, "{}", 2, false, &found);
  is_int(found.len, LIMIT + 4, "and one behind it");
  frame_free(&frame);

  memset(&found, 0, sizeof(found));
  frame_init(&frame, 64, LIMIT - 1, NULL);
  for (i = 0; i < LIMIT; i += 64)
    feed(&frame, big + i, 64, false, &found);
  feed(&frame, "{}", 2, false, &found);
  is_bytes(found.text, found.len, "%\n", "one byte more, and nothing behind it");
  finish(&frame, &found);
  is_bytes(found.text, found.len, "%\n", "nor at the end");

  memset(&found, 0, sizeof(found));
  memset(big, 'x', sizeof(big));
  frame_init(&frame, 64, LIMIT, NULL);
  for (i = 0; i < sizeof(big); i += 64)
    feed(&frame, big + i, 64, false, &found);
  is_bytes(found.text, found.len, "!\n?\n", "no value behind garbage within the limit");
  frame_free(&frame);
}

static void
check_budget(void)
{
  static struct found found;
  struct budget budget = { .limit = 100 };
  struct frame frame;
  size_t i;

  memset(&found, 0, sizeof(found));
  frame_init(&frame, 64, LIMIT, &budget);
  feed(&frame, "{\"a\":\"", 6, false, &found);
  is_int(budget.used, 6, "an unfinished value is in the budget");
  for (i = 0; i < 20; i++)
    feed(&frame, "0123456789", 10, false, &found);
  is_bytes(found.text, found.len, "#\n", "it is given up when there is no room");
  is_int(budget.used, 0, "and takes none then");
  feed(&frame, "\"} {\"b\":1}", 10, false, &found);
  is_bytes(found.text, found.len, "#\n{\"b\":1}\n", "the value behind it is found");
  feed(&frame, "{\"c\":\"", 6, false, &found);
  feed(&frame, "xxxxxxxxxxxxxxxx\"}[1,", 21, false, &found);
  is_int(budget.used, 3, "what follows a value is in the budget");
  frame_free(&frame);
  is_int(budget.used, 0, "nothing is left in the budget");

  memset(&found, 0, sizeof(found));
  frame_init(&frame, 64, LIMIT, &budget);
  frame_feed(&frame, "{\"a\":\"", 6);
  frame_keep(&frame);
  is_int(budget.used, 6, "kept bytes are in the budget");
  frame_free(&frame);
}

/* Each byte is scanned once and moved rarely: a long value in small pieces is quick. */
static void
check_long(void)
{
  static struct found found;
  struct frame frame;
  struct egw_buf *text = NULL;
  const size_t total = 8u << 20;
  char *value = malloc(total);
  size_t i, got = 0;

  memset(value, 'x', total);
  memcpy(value, "[\"", 2);
  memcpy(value + total - 2, "\"]", 2);
  frame_init(&frame, 64, total, NULL);
  for (i = 0; i < total; i += 100) {
    frame_feed(&frame, value + i, total - i < 100 ? total - i : 100);
    while (frame_next(&frame, &text) == FRAME_VALUE) {
      got = egw_buf_slice(text).len;
      ok(got == total && memcmp(egw_buf_slice(text).ptr, value, total) == 0,
         "8 MB in pieces of 100");
      egw_buf_unref(text);
    }
  }
  is_int(got, total, "found once");
  finish(&frame, &found);
  free(value);
}

int
main(void)
{
  size_t i;

  for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
    check_splits(table[i].name, table[i].in, strlen(table[i].in), table[i].want);
  check_splits("NUL byte", "{\"a\":\0}{\"b\":2}", 14, "!\n{\"b\":2}\n");
  check_thirds();
  check_limits();
  check_budget();
  check_long();
  return done_testing();
}
