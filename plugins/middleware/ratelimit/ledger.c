/* SPDX-License-Identifier: MIT */
/* The ledger that several gateways share. */
#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "account.h"
#include "../../common/redis/redis.h"

#define TIMEOUT_MS 500u
#define WARN_EVERY_MS 60000u

/* The server's clock counts, so those of the gateways need not agree. A key lives as long
 * as something is owed. */
static const char script[] =
  "local t=redis.call('TIME') "
  "local now=t[1]*1000000+t[2] "
  "local at=tonumber(redis.call('GET',KEYS[1]) or 0) or 0 "
  "if at<now then at=now end "
  "at=math.min(at+tonumber(ARGV[1]),now+tonumber(ARGV[2])) "
  "redis.call('SET',KEYS[1],string.format('%.0f',at),'PX',math.ceil((at-now)/1000)+1) "
  "return math.ceil(at-now)";

struct telling;
struct ledger {
  struct ledger_options options;
  struct redis_client *redis;
  struct telling *tellings;
  struct egw_at at;              /* for counting */
  uint64_t warn_at_ms;
};

/* One account that is being told: a command is on its way, or the timer runs until the next
 * one. */
struct telling {
  struct ledger *ledger;
  struct telling *next, **back;
  struct clients_call call;      /* whose it is */
  bool total;                    /* that of all together */
  struct egw_timer timer;
  size_t key_len;
  char key[];
};

struct ledger *
ledger_new(const struct ledger_options *options, struct egw_worker *worker)
{
  struct redis_options redis = { .address = options->address, .area = "ratelimit",
                                 .what = "redis", .timeout_ms = TIMEOUT_MS, .max_reply = 4096,
                                 .max_in_flight = 4096, .max_unsent = 1 << 20 };
  struct ledger *ledger = calloc(1, sizeof *ledger);

  if (ledger == NULL)
    return NULL;
  ledger->options = *options;
  ledger->at.worker = worker;
  ledger->redis = redis_client_new(&redis, worker);
  if (ledger->redis != NULL)
    return ledger;
  free(ledger);
  return NULL;
}

static void
telling_end(struct telling *telling)
{
  egw_timer_stop(telling->ledger->at.worker, &telling->timer);
  if (telling->next != NULL)
    telling->next->back = telling->back;
  *telling->back = telling->next;
  free(telling);
}

void
ledger_free(struct ledger *ledger)
{
  if (ledger == NULL)
    return;
  redis_client_free(ledger->redis);
  while (ledger->tellings != NULL)
    telling_end(ledger->tellings);
  free(ledger);
}

bool
ledger_usable(const struct ledger *ledger)
{
  return ledger != NULL && redis_client_usable(ledger->redis);
}

/* The text is the server's, not a client's; it may name a key, which is no secret. */
static void
warn(struct ledger *ledger, const struct redis_answer *answer)
{
  uint64_t now = egw_now_ms(ledger->at.worker);

  if (answer->kind != REDIS_ERROR || now < ledger->warn_at_ms)
    return;
  ledger->warn_at_ms = now + WARN_EVERY_MS;
  egw_log(EGW_WARN, "ratelimit", "redis can't keep the common counters: %.*s",
          (int)(answer->text.len > 160 ? 160 : answer->text.len), answer->text.ptr);
}

static const struct rate *
rate_of(const struct telling *telling)
{
  return telling->total ? clients_total_rate(telling->ledger->options.clients)
                        : telling->call.each;
}

/* What is taken from now on is told after it. */
static void
telling_pause(struct telling *telling)
{
  egw_timer_start(telling->ledger->at.worker, &telling->timer, ACCOUNT_EVERY_MS);
}

static void told(void *arg, const struct redis_answer *answer);

static void
telling_send(struct telling *telling, uint64_t us)
{
  struct ledger *ledger = telling->ledger;
  char owed[24], most[24];
  struct egw_slice args[] = {
    EGW_LIT("EVAL"), EGW_LIT(script), EGW_LIT("1"), { telling->key, telling->key_len },
    { owed, 0 }, { most, 0 }
  };

  args[4].len = (size_t)snprintf(owed, sizeof owed, "%" PRIu64, us);
  args[5].len = (size_t)snprintf(most, sizeof most, "%" PRIu64,
                                 account_most_us(rate_of(telling)));
  if (redis_ask(ledger->redis, args, sizeof args / sizeof args[0], told, telling) == NULL)
    telling_pause(telling);
}

static void
tell_more(struct egw_timer *timer)
{
  struct telling *telling = timer->arg;
  uint64_t us =
      clients_more(telling->ledger->options.clients, &telling->call, telling->total);

  if (us > 0)
    telling_send(telling, us);
  else
    telling_end(telling);
}

static void
told(void *arg, const struct redis_answer *answer)
{
  struct telling *telling = arg;
  struct ledger *ledger = telling->ledger;
  bool good = answer->kind == REDIS_INTEGER && answer->integer >= 0;

  egw_count(&ledger->at,
            good ? ledger->options.told_metric : ledger->options.failed_metric, 1);
  telling->call.now = egw_now_ms(ledger->at.worker);
  if (good)
    clients_told(ledger->options.clients, &telling->call, telling->total,
                 (uint64_t)answer->integer);
  else
    warn(ledger, answer);
  telling_pause(telling);
}

/* Gateways with other limits have other keys. */
static int
name_key(char *key, size_t size, const struct ledger *ledger, const struct rate *rate,
         const char *network, const struct client_key *who)
{
  const char *prefix = ledger->options.prefix;

  if (who == NULL)
    return snprintf(key, size, "%s%s:total:%" PRIu64 "/%" PRIu64, prefix, network, rate->gain,
                    rate->price);
  return snprintf(key, size, "%s%s:%" PRIu32 ":%" PRIx64 ":%" PRIu64 "/%" PRIu64, prefix,
                  network, who->kind, who->value, rate->gain, rate->price);
}

static void
tell(struct ledger *ledger, const struct rate *rate, const char *network,
     const struct clients_call *call, bool total, uint64_t us)
{
  const struct client_key *who = total ? NULL : &call->who;
  int len = name_key(NULL, 0, ledger, rate, network, who);
  struct telling *telling = len <= 0 ? NULL : calloc(1, sizeof *telling + (size_t)len + 1);

  if (telling == NULL) {
    clients_give_up(ledger->options.clients, call, total);
    return;
  }
  telling->ledger = ledger;
  telling->call = *call;
  telling->total = total;
  telling->timer = (struct egw_timer){ .fn = tell_more, .arg = telling };
  telling->key_len = (size_t)len;
  (void)name_key(telling->key, (size_t)len + 1, ledger, rate, network, who);
  telling->next = ledger->tellings;
  telling->back = &ledger->tellings;
  if (telling->next != NULL)
    telling->next->back = &telling->next;
  ledger->tellings = telling;
  telling_send(telling, us);
}

void
ledger_tell(struct ledger *ledger, const struct egw_at *at, const char *network,
            const struct clients_call *call, const struct clients_taken *taken)
{
  ledger->at = *at;
  ledger->at.state = NULL;
  if (taken->due_us > 0)
    tell(ledger, call->each, network, call, false, taken->due_us);
  if (taken->total_due_us > 0)
    tell(ledger, clients_total_rate(ledger->options.clients), network, call, true,
         taken->total_due_us);
}
