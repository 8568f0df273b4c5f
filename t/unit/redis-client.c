/* SPDX-License-Identifier: MIT */
/* The Redis client against servers that are slow, dead, or lie. */
#include <ethrpc-gw/plugin.h>
#include "../lib/fake-redis.h"
#include "../../plugins/common/redis/redis.h"

static struct redis_address address;
static struct redis_client *client;

static struct {
  unsigned count, failed;
  enum redis_kind kind;
  int64_t integer;
  size_t items;
  char text[64];
  uint64_t at_ms;
} got;

static char say[256];           /* what GET is answered by; "": nothing */
static char seen[256];          /* the greeting */
static bool mute_ping;

static void
polite(struct fake_conn *conn, const redisReply *command)
{
  if (fake_is(command, "GET")) {
    if (say[0] != '\0')
      fake_say(conn, say);
    return;
  }
  for (size_t i = 0; i < command->elements; i++)
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", command->element[i]->str);
  if (!fake_is(command, "PING"))
    fake_say(conn, "+OK\r\n");
  else if (!mute_ping)
    fake_say(conn, "+PONG\r\n");
}

static void
take(void *arg, const struct redis_answer *answer)
{
  (void)arg;
  got.count++;
  got.failed += answer->kind == REDIS_FAILED;
  got.kind = answer->kind;
  got.integer = answer->integer;
  got.items = answer->count;
  got.at_ms = egw_now_ms(&kit_worker);
  snprintf(got.text, sizeof got.text, "%.*s", (int)answer->text.len,
           answer->text.ptr == NULL ? "" : answer->text.ptr);
}

static struct redis_ask *
get(const char *key)
{
  struct egw_slice args[2] = { EGW_LIT("GET"), { key, strlen(key) } };

  return redis_ask(client, args, 2, take, NULL);
}

static bool usable(void) { return redis_client_usable(client); }
static bool unusable(void) { return !redis_client_usable(client); }
static bool answered(void) { return got.count > 0; }
static bool again(void) { return fake.conns > 1; }

static void
begin(const char *user, size_t max_reply)
{
  char url[128];
  struct redis_options options = { .address = &address, .area = "test", .what = "redis",
                                   .timeout_ms = 50, .max_reply = max_reply,
                                   .max_in_flight = 8, .max_unsent = 1 << 20 };

  memset(&got, 0, sizeof got);
  seen[0] = '\0';
  mute_ping = false;
  fake_start(polite);
  snprintf(url, sizeof url, "redis://%s127.0.0.1:%d/%s", user, fake.port,
           user[0] != '\0' ? "3" : "");
  ok(redis_address_read(url, &address) == NULL, "an address");
  client = redis_client_new(&options, &kit_worker);
}

static void
end(void)
{
  redis_client_free(client);
  redis_address_free(&address);
  fake_stop();
  kit_pass(20);
}

/* One GET that is answered by `bytes`. */
static void
ask_for(const char *bytes)
{
  memset(&got, 0, sizeof got);
  snprintf(say, sizeof say, "%s", bytes);
  if (get("k") == NULL)
    printf("# not taken\n");
  kit_until(answered, 3000);
}

static void
test_addresses(void)
{
  static const struct { const char *text; bool fine; } rows[] = {
    { "redis://127.0.0.1", true }, { "redis://:pw@10.1.2.3:7000/2", true },
    { "redis://me:p%40w@[::1]/0", true }, { "redis://cache.internal", true },
    { "unix:/run/redis.sock", true }, { "redis://172.31.0.1", true },
    { "redis://8.8.8.8", false }, { "redis://[2001:db8::1]", false },
    { "redis://172.32.0.1", false }, { "rediss://127.0.0.1", false },
    { "unix:relative", false }, { "redis://", false }, { "redis://127.0.0.1/x", false },
    { "redis://127.0.0.1/1?a", false }, { "redis://127.0.0.1/65536", false },
    { "http://127.0.0.1", false }, { "", false }, { "redis://me@127.0.0.1", false },
  };
  struct redis_address a;
  const char *why;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    why = redis_address_read(rows[i].text, &a);
    ok((why == NULL) == rows[i].fine, "%s: %s", rows[i].text, why == NULL ? "fine" : why);
    redis_address_free(&a);
  }
  ok(redis_address_read("redis://me:p%40w@[::1]:7/5", &a) == NULL &&
         strcmp(a.host, "::1") == 0 && strcmp(a.user, "me") == 0 &&
         strcmp(a.password, "p@w") == 0 && a.port == 7 && a.db == 5, "its parts");
  redis_address_free(&a);
  why = redis_address_read("redis://:hunter2@8.8.8.8", &a);
  ok(why != NULL && strstr(why, "hunter2") == NULL, "no secret in the reason");
  redis_address_free(&a);
}

static void
test_answers(void)
{
  begin("", 4096);
  ok(get("k") == NULL, "nothing is taken while it connects");
  ok(kit_until(usable, 3000), "it connects");
  ok(strcmp(seen, "PING ") == 0, "greeting: %s", seen);
  ask_for("$5\r\nhello\r\n");
  ok(got.kind == REDIS_STRING && strcmp(got.text, "hello") == 0, "a string");
  ask_for("$-1\r\n");
  ok(got.kind == REDIS_NIL, "nil");
  ask_for(":-42\r\n");
  ok(got.kind == REDIS_INTEGER && got.integer == -42, "an integer");
  ask_for("-LOADING Redis is loading\r\n");
  ok(got.kind == REDIS_ERROR && strncmp(got.text, "LOADING", 7) == 0, "an error");
  ask_for("*3\r\n:1\r\n$1\r\na\r\n*1\r\n$-1\r\n");
  ok(got.kind == REDIS_ARRAY && got.items == 3, "an array");
  ok(usable() && fake.conns == 1, "one connection for all");
  end();
}

static void
test_greeting(void)
{
  begin("me:secret@", 4096);
  ok(kit_until(usable, 3000), "it connects");
  ok(strcmp(seen, "AUTH me secret SELECT 3 PING ") == 0, "user, password and database: %s",
     seen);
  end();
}

static void
test_lies(void)
{
  static const char *const lies[] = {
    "garbage\r\n", "$5\r\nhello\r\n$5\r\nworld\r\n", "*1000000000\r\n:1\r\n",
    "$999999999999999\r\n", "*65\r\n", "$-2\r\n", ":1x\r\n", "$8192\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
  };

  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    begin("", 4096);
    ok(kit_until(usable, 3000), "connected");
    ask_for(lies[i]);
    ok(got.count == 1, "lie %zu: the call ends once (kind %d)", i, (int)got.kind);
    kit_until(unusable, 1000);
    ok(kit_until(again, 5000) && kit_until(usable, 3000), "and it connects again");
    end();
  }
}

/* A reply without an end is not collected for ever. */
static void
test_flood(void)
{
  static char flood[65536];

  begin("", 4096);
  kit_until(usable, 3000);
  memset(flood, 'x', sizeof flood);
  say[0] = '\0';
  get("k");
  kit_pass(5);
  fake_say(fake.last, "$100000000\r\n");
  for (int i = 0; i < 4; i++)
    fake_say_bytes(fake.last, flood, sizeof flood);
  kit_until(answered, 1000);
  ok(got.failed == 1 && strcmp(redis_client_why(client), "its reply is too long") == 0,
     "a reply that is too long ends the connection: %s", redis_client_why(client));
  end();
}

static void
test_slow(void)
{
  uint64_t before;

  begin("", 4096);
  kit_until(usable, 3000);
  say[0] = '\0';
  uv_update_time(&kit_worker.loop);
  before = egw_now_ms(&kit_worker);
  ok(get("k") != NULL, "asked");
  ok(kit_until(answered, 1000) && got.failed == 1, "no answer in time is a failure");
  ok(got.at_ms - before >= 50 && got.at_ms - before < 150, "after %d ms",
     (int)(got.at_ms - before));
  ok(get("k") == NULL, "nothing is sent after one that is overdue");
  fake_say(fake.last, "$4\r\nlate\r\n");
  ok(kit_until(usable, 1000) && fake.conns == 1, "the late reply is dropped, and it goes on");
  is_int(got.count, 1, "it was not given to anybody");
  ask_for("$3\r\nnew\r\n");
  ok(strcmp(got.text, "new") == 0, "the next one gets its own");
  /* It says nothing more. */
  say[0] = '\0';
  get("k");
  ok(kit_until(again, 3000), "one that stays overdue ends the connection");
  end();
}

static void
test_stalled_from_the_start(void)
{
  begin("", 4096);
  mute_ping = true;
  kit_pass(400);
  ok(unusable() && fake.conns >= 2 && fake.conns <= 5,
     "a server that is silent is never usable; %u attempts", fake.conns);
  mute_ping = false;
  ok(kit_until(usable, 5000), "until it speaks");
  end();
}

static void
test_bounds(void)
{
  struct redis_ask *asks[9];

  begin("", 4096);
  kit_until(usable, 3000);
  say[0] = '\0';
  for (int i = 0; i < 9; i++)
    asks[i] = get("k");
  ok(asks[7] != NULL && asks[8] == NULL, "eight in flight, no more");
  redis_cancel(asks[0]);
  redis_cancel(asks[7]);
  kit_until(again, 3000);
  is_int(got.failed, 6, "all but those given up hear of the end");
  end();
}

static void
test_gone(void)
{
  begin("", 4096);
  kit_until(usable, 3000);
  say[0] = '\0';
  get("k");
  kit_pass(5);
  fake_close(fake.last);
  ok(kit_until(answered, 1000) && got.failed == 1, "a connection that ends");
  ok(kit_until(usable, 5000) && fake.conns == 2, "is made again");
  get("k");
  memset(&got, 0, sizeof got);
  redis_client_free(client);
  client = NULL;
  is_int(got.failed, 1, "what is in flight at the end fails");
  redis_client_free(NULL);
  redis_address_free(&address);
  fake_stop();
  kit_pass(20);
}

static void
test_nobody(void)
{
  begin("", 4096);
  fake_stop();
  kit_pass(300);
  ok(unusable(), "nobody listens: %s", redis_client_why(client));
  end();
}

int
main(void)
{
  kit_start();
  test_addresses();
  test_answers();
  test_greeting();
  test_lies();
  test_flood();
  test_slow();
  test_stalled_from_the_start();
  test_bounds();
  test_gone();
  test_nobody();
  ok(kit_end(), "no handle is left");
  return done_testing();
}
