/* SPDX-License-Identifier: MIT */
/* Filters on the owner of a hub: what they keep of events, what ends them. No node, no calls: the
 * questions come straight to filters_answer(), the events from hub_tell(). */
#include "../lib/tap.h"
#include "../lib/core.h"
#include "base/buf.h"
#include "push/filter-ask.h"
#include "push/filters.h"

#define ADDRESS "0x00000000000000000000000000000000000000aa"
#define LOG(address, index)                                                                 \
  "{\"address\":\"" address "\",\"topics\":[],\"logIndex\":\"" index "\",\"removed\":false}"
#define OTHER LOG("0x00000000000000000000000000000000000000bb", "0x1")
#define SWEEP_MS 5000u
#define FOUR_MINUTES 48u   /* sweeps */

static struct hub *hub;

/* --- the questions ----------------------------------------------------------------------- */

/* A new filter of the kind; its id, or "" when that is refused (then *code). */
static void
make(enum hub_kind kind, const char *object, char *id, int *code)
{
  struct filter_ask ask = { .hub = hub, .what = FILTER_NEW, .kind = kind };
  const char *why;

  if (kind == HUB_LOGS) {
    ask.filter = log_filter_new((struct egw_slice){ object, strlen(object) }, &why);
    ask.object = egw_buf_copy((struct egw_slice){ object, strlen(object) });
  }
  filters_answer(hub, &ask);
  *code = ask.code;
  id[0] = '\0';
  if (ask.result != NULL)
    snprintf(id, SUBSCRIPTION_ID_LEN + 1, "%.34s", egw_buf_slice(ask.result).ptr + 1);
  egw_buf_unref(ask.result);
  egw_buf_unref(ask.object);
  log_filter_free(ask.filter);
}

static void
made(enum hub_kind kind, const char *object, char *id)
{
  int code;

  make(kind, object, id, &code);
}

/* The answer as text, or the error's code in front of its message. */
static const char *
asked(enum filter_what what, const char *id)
{
  static char text[4096];
  struct filter_ask ask = { .hub = hub, .what = what };
  struct egw_slice result;

  snprintf(ask.id, sizeof(ask.id), "%s", id);
  filters_answer(hub, &ask);
  if (ask.message != NULL) {
    snprintf(text, sizeof(text), "%d %s", ask.code, ask.message);
  } else {
    result = egw_buf_slice(what == FILTER_LOGS ? ask.object : ask.result);
    snprintf(text, sizeof(text), "%.*s", (int)(result.len < 4000 ? result.len : 4000),
             result.ptr);
  }
  egw_buf_unref(ask.object);
  egw_buf_unref(ask.result);
  return text;
}

static void
gives(enum filter_what what, const char *id, const char *want, const char *name)
{
  const char *got = asked(what, id);

  is_bytes(got, strlen(got), want, name);
}

/* --- the events ---------------------------------------------------------------------------- */

/* What a tracker would do: the head has a new version, and then its events are told. */
static uint64_t
turn(void)
{
  return atomic_fetch_add(&core.head.version, 1) + 1;
}

static void
tell_head(uint64_t version, unsigned char byte)
{
  struct hub_event *event = hub_event_new(hub, HUB_HEADS);

  event->version = event->first_version = version;
  memset(event->hash, byte, sizeof(event->hash));
  event->buf = egw_buf_copy(EGW_LIT("{}"));
  hub_tell(hub, event);
}

static void
tell_logs(uint64_t version, uint64_t first, bool removed, const char *text)
{
  struct hub_event *event = hub_event_new(hub, HUB_LOGS);
  struct egw_buf *buf = egw_buf_copy((struct egw_slice){ text, strlen(text) });
  struct log_set *set = log_set_new(buf, egw_buf_slice(buf));

  event->version = version;
  event->first_version = first;
  event->removed = removed;
  event->logs = removed ? log_set_removed(set) : log_set_ref(set);
  log_set_unref(set);
  egw_buf_unref(buf);
  hub_tell(hub, event);
}

static void
tell_pending(size_t len)
{
  struct hub_event *event = hub_event_new(hub, HUB_PENDING);
  size_t i;

  event->buf = egw_buf_new(len);
  for (i = 0; i < len; i += 16)
    if (egw_buf_append(event->buf, "\"fedcba987654321", 16) < 0)
      abort();
  hub_tell(hub, event);
}

static void
start(void)
{
  core_start(0, 1, EGW_NEED_NONE, true);
  hub = core_hub();
}

/* --- tests ----------------------------------------------------------------------------------- */

static void
test_heads(void)
{
  char one[64], two[64];
  uint64_t old;

  start();
  turn();
  old = turn();
  made(HUB_HEADS, NULL, one);
  ok(strlen(one) == 34 && strncmp(one, "0x", 2) == 0, "a filter has an id: %s", one);
  gives(FILTER_CHANGES, one, "[]", "nothing at first");
  tell_head(old, 0x11);
  gives(FILTER_CHANGES, one, "[]", "what the head knew before is not new");
  tell_head(turn(), 0x22);
  made(HUB_HEADS, NULL, two);
  tell_head(turn(), 0x33);
  gives(FILTER_CHANGES, one,
        "[\"0x2222222222222222222222222222222222222222222222222222222222222222\","
        "\"0x3333333333333333333333333333333333333333333333333333333333333333\"]",
        "new blocks, in order");
  gives(FILTER_CHANGES, one, "[]", "once");
  gives(FILTER_CHANGES, two,
        "[\"0x3333333333333333333333333333333333333333333333333333333333333333\"]",
        "another one has what came after it");
  gives(FILTER_LOGS, one, "-32000 filter not found", "it is none of logs");
  gives(FILTER_UNINSTALL, one, "true", "it is uninstalled");
  gives(FILTER_UNINSTALL, one, "false", "once");
  gives(FILTER_CHANGES, one, "-32000 filter not found", "and then gone");
  is_int(atomic_load(&hub->wanted[HUB_HEADS]), 1, "one is left");
  core_stop();
}

static void
move(struct block *const *dropped, unsigned dropped_count, struct block *const *added,
     unsigned added_count)
{
  turn();
  hub_moved(hub, dropped, dropped_count, added, added_count);
}

/* A block is taken away and comes again with no other in its place: who has had it is not told of it a
 * second time, unlike who began in between. */
static void
test_again(void)
{
  struct block one = { .number = 1 }, two = { .number = 2 }, other = { .number = 2 };
  struct block *const first[] = { &one, &two }, *const second[] = { &two };
  struct block *const third[] = { &other };
  char early[64], late[64], hash_two[67], hash_other[67], want[160];

  start();
  memset(one.hash, 0x01, sizeof(one.hash));
  memset(two.hash, 0x02, sizeof(two.hash));
  memset(other.hash, 0x03, sizeof(other.hash));
  one.raw = egw_buf_copy(EGW_LIT("{}"));
  two.raw = egw_buf_ref(one.raw);
  other.raw = egw_buf_ref(one.raw);
  hash_text(two.hash, hash_two);
  hash_text(other.hash, hash_other);
  made(HUB_HEADS, NULL, early);
  move(NULL, 0, first, 2);
  asked(FILTER_CHANGES, early);
  move(second, 1, NULL, 0);
  made(HUB_HEADS, NULL, late);
  move(NULL, 0, second, 1);
  gives(FILTER_CHANGES, early, "[]", "a block that is there again is not told again");
  snprintf(want, sizeof(want), "[\"%s\"]", hash_two);
  gives(FILTER_CHANGES, late, want, "but to who did not know of it");
  move(second, 1, NULL, 0);
  move(NULL, 0, second, 1);
  gives(FILTER_CHANGES, late, "[]", "once, too");
  move(second, 1, third, 1);
  move(third, 1, second, 1);
  snprintf(want, sizeof(want), "[\"%s\",\"%s\"]", hash_other, hash_two);
  gives(FILTER_CHANGES, early, want, "with another one in between it is");
  egw_buf_unref(one.raw);
  egw_buf_unref(two.raw);
  egw_buf_unref(other.raw);
  core_stop();
}

static void
test_logs(void)
{
  char all[64], some[64], late[64];
  uint64_t came, back;

  start();
  made(HUB_LOGS, "{}", all);
  made(HUB_LOGS, "{\"address\":\"" ADDRESS "\",\"fromBlock\":\"0x1\"}", some);
  came = turn();
  tell_logs(came, came, false, "[" LOG(ADDRESS, "0x0") "," OTHER "]");
  gives(FILTER_CHANGES, some, "[" LOG(ADDRESS, "0x0") "]", "the logs that are wanted");
  made(HUB_LOGS, "{}", late);
  back = turn();
  tell_logs(back, came, true, "[" LOG(ADDRESS, "0x0") "," OTHER "]");
  ok(strstr(asked(FILTER_CHANGES, some), "\"removed\":true") != NULL, "taken back");
  gives(FILTER_CHANGES, late, "[]", "but not where it was never told");
  ok(strstr(asked(FILTER_CHANGES, all), "\"removed\":true},{\"address\":\"" ADDRESS) != NULL,
     "all: in reverse order");
  gives(FILTER_LOGS, some, "{\"address\":\"" ADDRESS "\",\"fromBlock\":\"0x1\"}",
        "eth_getFilterLogs asks by its own object");
  gives(FILTER_UNINSTALL, all, "true", "they end");
  gives(FILTER_UNINSTALL, some, "true", "each");
  gives(FILTER_UNINSTALL, late, "true", "of them");
  ok(list_empty(&hub->filters) && atomic_load(&hub->wanted[HUB_LOGS]) == 0,
     "and nobody wants logs any more");
  core_stop();
}

static void
test_expiry(void)
{
  char polled[64], left[64];
  unsigned i;

  start();
  made(HUB_HEADS, NULL, polled);
  made(HUB_LOGS, "{}", left);
  for (i = 0; i < FOUR_MINUTES; i++)
    core_advance(SWEEP_MS);
  gives(FILTER_CHANGES, polled, "[]", "four minutes without a poll: it is there");
  for (i = 0; i < FOUR_MINUTES; i++)
    core_advance(SWEEP_MS);
  is_int(atomic_load(&hub->wanted[HUB_LOGS]), 0, "eight minutes: it has ended by itself");
  gives(FILTER_CHANGES, left, "-32000 filter not found", "and is not found");
  gives(FILTER_CHANGES, polled, "[]", "the one that was polled meanwhile is");
  for (i = 0; i < FOUR_MINUTES * 2; i++)
    core_advance(SWEEP_MS);
  is_int(atomic_load(&hub->wanted[HUB_HEADS]), 0, "in the end that, too");
  core_stop();
}

static void
test_overflow(void)
{
  char lazy[64], heads[64], broken[64];
  struct hub_event *event;
  unsigned i;

  start();
  made(HUB_PENDING, NULL, lazy);
  made(HUB_HEADS, NULL, heads);
  made(HUB_LOGS, "{}", broken);
  for (i = 0; i < 16; i++)
    tell_pending((1 << 20) - 64);
  is_int(atomic_load(&hub->wanted[HUB_PENDING]), 1, "just below 16 MiB all is kept");
  tell_pending(1 << 20);
  is_int(atomic_load(&hub->wanted[HUB_PENDING]), 0, "then it ends rather than have a hole");
  gives(FILTER_CHANGES, lazy, "-32000 filter not found", "and is not found");
  event = hub_event_new(hub, HUB_LOGS);
  event->broken = true;
  hub_tell(hub, event);
  gives(FILTER_CHANGES, broken, "-32000 filter not found", "so does one whose event was lost");
  gives(FILTER_CHANGES, heads, "[]", "others go on");
  core_stop();
}

static void
test_bounds(void)
{
  char id[64], first[64];
  int code = 0;
  unsigned i;

  start();
  made(HUB_HEADS, NULL, first);
  for (i = 1; i < 10000 && code == 0; i++)
    make(HUB_HEADS, NULL, id, &code);
  is_int(code, 0, "ten thousand filters");
  make(HUB_HEADS, NULL, id, &code);
  is_int(code, -32006, "one more is refused");
  gives(FILTER_UNINSTALL, first, "true", "one ends");
  make(HUB_HEADS, NULL, id, &code);
  is_int(code, 0, "and there is room");
  hub_stop(hub);
  is_int(atomic_load(&hub->wanted[HUB_HEADS]), 0, "all end with the hub");
  gives(FILTER_CHANGES, id, "-32054 shutting down", "and then there are none");
  core_stop();
}

int
main(void)
{
  test_heads();
  test_again();
  test_logs();
  test_expiry();
  test_overflow();
  test_bounds();
  return done_testing();
}
