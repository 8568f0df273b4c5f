/* SPDX-License-Identifier: MIT */
/* The shared tier against a server that keeps what it gets, and one that lies. */
#include <ethrpc-gw/plugin.h>
#include "../lib/fake-redis.h"
#include "../../plugins/middleware/cache/share.h"

static struct share_common common;
static struct share_options options = { .prefix = "t:", .timeout_ms = 100,
                                        .max_value = 1 << 20, .common = &common };
static struct share *share;

/* What the server has: a few keys. */
static struct {
  char name[160];
  char *bytes;
  size_t len;
} kept[16];
static unsigned kept_count, gets, sets;
static char last_ttl[32];
static long epoch;
static const char *lie;         /* said to each GET of a record */
static bool mute_sets;

static enum share_outcome outcome;
static char got[64];
static unsigned answers;
static struct share_counts counts;

static void
on_get(struct fake_conn *conn, const char *name)
{
  char number[32];

  if (strcmp(name, "t:epoch") == 0) {
    if (epoch == 0)
      fake_say(conn, "$-1\r\n");
    else
      fake_say_bulk(conn, number, (size_t)snprintf(number, sizeof number, "%ld", epoch));
    return;
  }
  gets++;
  if (lie != NULL) {
    fake_say(conn, lie);
    return;
  }
  for (unsigned i = kept_count; i-- > 0;)
    if (strcmp(kept[i].name, name) == 0) {
      fake_say_bulk(conn, kept[i].bytes, kept[i].len);
      return;
    }
  fake_say(conn, "$-1\r\n");
}

static void
on_set(struct fake_conn *conn, const redisReply *command)
{
  const redisReply *name = command->element[1], *value = command->element[2];

  sets++;
  if (mute_sets)
    return;
  if (kept_count < 16) {
    snprintf(kept[kept_count].name, sizeof kept[0].name, "%s", name->str);
    kept[kept_count].bytes = malloc((size_t)value->len + 1);
    if (kept[kept_count].bytes == NULL)
      abort();
    memcpy(kept[kept_count].bytes, value->str, (size_t)value->len);
    kept[kept_count++].len = (size_t)value->len;
  }
  snprintf(last_ttl, sizeof last_ttl, "%s",
           command->elements == 5 ? command->element[4]->str : "");
  fake_say(conn, "+OK\r\n");
}

static void
serve(struct fake_conn *conn, const redisReply *command)
{
  char number[32];

  if (fake_is(command, "GET")) {
    on_get(conn, command->element[1]->str);
  } else if (fake_is(command, "SET")) {
    on_set(conn, command);
  } else if (fake_is(command, "INCR")) {
    snprintf(number, sizeof number, ":%ld\r\n", ++epoch);
    fake_say(conn, number);
  } else {
    fake_say(conn, "+PONG\r\n");
  }
}

static void
take(void *arg, enum share_outcome o, struct egw_buf *value)
{
  (void)arg;
  answers++;
  outcome = o;
  got[0] = '\0';
  if (value != NULL)
    snprintf(got, sizeof got, "%.*s", (int)egw_buf_slice(value).len, egw_buf_slice(value).ptr);
  egw_buf_unref(value);
}

static bool answered(void) { return answers > 0; }
static bool is_raised(void) { return epoch == 1; }

static bool
counted(void)
{
  struct share_counts c;

  share_take_counts(share, &c);
  counts.stored += c.stored;
  counts.dropped += c.dropped;
  counts.errors += c.errors;
  return counts.stored + counts.dropped + counts.errors > 0;
}

/* A lookup is taken: the answer is awaited. */
static bool
asks(void)
{
  answers = 0;
  return share_get(share, EGW_LIT("question"), take, NULL) != NULL;
}

static enum share_outcome
look(void)
{
  if (!kit_until(asks, 3000)) {
    printf("# no lookup was taken\n");
    return SHARE_LATE;
  }
  kit_until(answered, 3000);
  return outcome;
}

static void
keep(const char *value)
{
  /* What comes before the connection for writes is there is dropped. */
  do {
    counts = (struct share_counts){ 0 };
    share_put(share, EGW_LIT("question"), (struct egw_slice){ value, strlen(value) });
  } while (kit_until(counted, 3000) && counts.dropped > 0);
}

static void
begin(const char *secret)
{
  char url[64];

  fake_start(serve);
  gets = sets = 0;
  epoch = 0;
  lie = NULL;
  mute_sets = false;
  last_ttl[0] = '\0';
  memset(&common, 0, sizeof common);
  snprintf(url, sizeof url, "redis://127.0.0.1:%d", fake.port);
  if (redis_address_read(url, &options.address) != NULL)
    abort();
  options.codec = record_codec_new(secret);
  share = share_new(&options, &kit_worker);
}

static void
end(void)
{
  share_free(share);
  record_codec_free(options.codec);
  redis_address_free(&options.address);
  while (kept_count > 0)
    free(kept[--kept_count].bytes);
  fake_stop();
  kit_pass(30);
}

static void
test_simple(void)
{
  begin(NULL);
  is_int(look(), SHARE_MISS, "nothing is there");
  keep("{\"a\":[1,2]}");
  is_int(counts.stored, 1, "an answer is stored");
  ok(kept_count == 1 && strncmp(kept[0].name, "t:1:0:", 6) == 0 && strlen(kept[0].name) == 70,
     "under %s", kept[0].name);
  ok(last_ttl[0] == '\0', "for ever");
  ok(look() == SHARE_HIT && strcmp(got, "{\"a\":[1,2]}") == 0, "and found");
  options.ttl_ms = 1500;
  keep("1");
  ok(strcmp(last_ttl, "1500") == 0, "or for so long: %s", last_ttl);
  options.ttl_ms = 0;
  end();
}

static void
test_lies(void)
{
  static const char *const lies[] = { "$4\r\nnull\r\n", "$0\r\n\r\n", ":1\r\n", "*0\r\n",
                                      "+OK\r\n",
                                      "-LOADING Redis is loading the dataset in memory\r\n",
                                      "$20\r\nEGWCaaaaaaaaaaaaaaaa\r\n" };
  char *bytes;

  begin(NULL);
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    lie = lies[i];
    is_int(look(), SHARE_BAD, "lie %zu", i);
  }
  lie = NULL;
  keep("{\"a\":[1,2]}");
  bytes = kept[0].bytes;
  bytes[kept[0].len - 3] ^= 1;
  is_int(look(), SHARE_BAD, "a value that was changed");
  bytes[kept[0].len - 3] ^= 1;
  kept[0].len--;
  is_int(look(), SHARE_BAD, "one that was cut");
  kept[0].len++;
  is_int(look(), SHARE_HIT, "the right one");
  keep("{\"a\":[1,2}");
  is_int(look(), SHARE_BAD, "one that is no JSON, with the right checksum");
  keep("null");
  is_int(look(), SHARE_BAD, "null");
  end();
}

/* Who does not know the secret can't make anything up. */
static void
test_secret(void)
{
  struct record_codec *other;

  begin("ours");
  look();
  keep("true");
  is_int(look(), SHARE_HIT, "with the secret");
  other = options.codec;
  options.codec = record_codec_new("theirs");
  is_int(look(), SHARE_BAD, "with another one");
  record_codec_free(options.codec);
  options.codec = record_codec_new(NULL);
  is_int(look(), SHARE_BAD, "without");
  record_codec_free(options.codec);
  options.codec = other;
  end();
}

/* After a flush nothing that was there is found, by no other worker and after no restart. */
static void
test_flush(void)
{
  struct share *first;
  struct redis_address address;

  begin(NULL);
  look();
  keep("true");
  is_int(look(), SHARE_HIT, "there");
  share_flush(share);
  ok(!asks(), "not asked for until that is done");
  is_int(look(), SHARE_MISS, "gone");
  is_int(epoch, 1, "raised once");
  keep("false");
  ok(look() == SHARE_HIT && strcmp(got, "false") == 0, "a new answer is found");
  first = share;
  address = options.address;
  share = share_new(&options, &kit_worker);
  ok(look() == SHARE_HIT && strcmp(got, "false") == 0, "by another worker too");
  share_flush(first);
  is_int(look(), SHARE_MISS, "a flush by the one holds for the other");
  options.address = address;
  share_free(first);
  end();
}

/* A flush while the server is away is made up for as soon as it is back, whoever asks then. */
static void
test_flush_away(void)
{
  begin(NULL);
  look();
  keep("true");
  is_int(look(), SHARE_HIT, "there");
  fake_stop();
  kit_pass(50);
  share_flush(share);
  ok(!asks(), "the server is away: nothing is asked");
  fake_restart();
  ok(kit_until(is_raised, 8000), "it is back: the epoch is raised, though nobody asked");
  is_int(look(), SHARE_MISS, "what was there is gone");
  end();
}

static void
test_silence(void)
{
  begin(NULL);
  is_int(look(), SHARE_MISS, "it answers");
  lie = "";
  is_int(look(), SHARE_LATE, "it does not");
  answers = 0;
  ok(!asks(), "then it is not asked");
  lie = NULL;
  is_int(look(), SHARE_MISS, "until it speaks again");
  mute_sets = true;
  counts = (struct share_counts){ 0 };
  for (int i = 0; i < 1100; i++)
    share_put(share, EGW_LIT("question"), EGW_LIT("1"));
  counted();
  is_int(counts.dropped, 1100 - 1024, "writes in flight are bounded");
  end();
}

int
main(void)
{
  kit_start();
  test_simple();
  test_lies();
  test_secret();
  test_flush();
  test_flush_away();
  test_silence();
  ok(kit_end(), "no handle is left");
  return done_testing();
}
