/* SPDX-License-Identifier: MIT */
/* Limits that several gateways have in common, in the middleware `ratelimit`: some tables,
 * a ledger that answers some time later, and clients that want more than they may have. */
#include "../lib/tap.h"

#include "../../plugins/middleware/ratelimit/account.h"
#include "../../plugins/middleware/ratelimit/clients.h"

#define GATEWAYS 4u
#define DELAY_MS 7u

/* What a ledger does, as the script in ledger.c. */
enum ledger_kind { HONEST, DEAD, DEAF, ZERO, HUGE_DEBT };
struct ledger {
  enum ledger_kind kind;
  uint64_t at_us;
};

static uint64_t
tell(struct ledger *ledger, uint64_t us, uint64_t most_us, uint64_t now_us)
{
  if (ledger->kind == ZERO)
    return 0;
  if (ledger->kind == HUGE_DEBT)
    return INT64_MAX;
  if (ledger->at_us < now_us)
    ledger->at_us = now_us;
  ledger->at_us += us;
  if (ledger->at_us > now_us + most_us)
    ledger->at_us = now_us + most_us;
  return ledger->at_us - now_us;
}

struct gateway {
  struct clients *clients;
  enum { QUIET, UNDERWAY, PAUSE } state;
  uint64_t at;                  /* ms: when that ends */
  bool good;
  uint64_t owed_us;
};

struct world {
  struct gateway gateways[GATEWAYS];
  struct ledger ledger;
  struct rate each;
  bool total;                   /* that of all together is shared, each is none */
  unsigned told, twice;         /* twice: while something was told already */
};

static struct world
open_world(const char *rate, uint64_t burst, enum ledger_kind kind, bool total)
{
  struct world world = { .ledger.kind = kind, .total = total };
  struct clients_limits limits = { .most = 64 };
  struct rate parsed;

  if (rate_parse(rate, &parsed) < 0)
    ok(false, "%s is a rate", rate);
  if (burst > 0)
    rate_set_burst(&parsed, burst);
  if (total)
    limits.total = parsed;
  else
    world.each = parsed;
  for (unsigned i = 0; i < GATEWAYS; i++)
    world.gateways[i].clients = clients_new(&limits);
  return world;
}

static void
close_world(struct world *world)
{
  is_int(world->twice, 0, "nothing is told twice at once");
  for (unsigned i = 0; i < GATEWAYS; i++)
    clients_free(world->gateways[i].clients);
}

static void
begin(struct world *world, struct gateway *g, uint64_t us, uint64_t now)
{
  const struct rate *rate = world->total ? clients_total_rate(g->clients) : &world->each;

  world->twice += g->state != QUIET;
  world->told++;
  g->state = UNDERWAY;
  g->at = now + DELAY_MS;
  g->good = world->ledger.kind != DEAF;
  if (g->good)
    g->owed_us = tell(&world->ledger, us, account_most_us(rate), now * 1000);
}

/* What ledger.c does with replies and timers. */
static void
deliver(struct world *world, struct gateway *g, uint64_t now)
{
  struct clients_call call = { .who = { .kind = ADDRESS_V4 }, .each = &world->each,
                               .now = now };
  uint64_t us;

  if (g->state == QUIET || now < g->at)
    return;
  if (g->state == UNDERWAY) {
    if (g->good)
      clients_told(g->clients, &call, world->total, g->owed_us);
    g->state = PAUSE;
    g->at = now + ACCOUNT_EVERY_MS;
    return;
  }
  g->state = QUIET;
  us = clients_more(g->clients, &call, world->total);
  if (us > 0)
    begin(world, g, us, now);
}

/* One call; whether it came through. */
static bool
try(struct world *world, struct gateway *g, uint64_t now)
{
  struct clients_call call = { .who = { .kind = ADDRESS_V4 }, .each = &world->each,
                               .cost = RATE_CALL, .now = now,
                               .share = world->ledger.kind != DEAD };
  struct clients_taken taken = clients_take(g->clients, &call);
  uint64_t due = world->total ? taken.total_due_us : taken.due_us;

  if (due > 0)
    begin(world, g, due, now);
  return taken.wait_ms == 0;
}

/* How many calls come through in `ms` at `n` gateways that are asked each millisecond. */
static unsigned
flood(struct world *world, unsigned n, uint64_t from, uint64_t ms)
{
  unsigned allowed = 0;

  for (uint64_t now = from; now < from + ms; now++)
    for (unsigned i = 0; i < n; i++) {
      struct gateway *g = &world->gateways[i];

      deliver(world, g, now);
      for (unsigned k = 0; k < 3; k++)
        allowed += try(world, g, now);
    }
  return allowed;
}

/* --- tests ------------------------------------------------------------------------------- */

static void
test_rate_holds(void)
{
  static const struct {
    const char *rate;
    uint64_t burst;
    bool total;
    unsigned per_minute, slack; /* calls let through too many: each has a burst, once */
    unsigned least;             /* per cent of the rate; a small burst loses some of it */
  } cases[] = {
    { "100/s", 0, false, 6000, 460, 98 },  { "100/s", 1, false, 6000, 80, 85 },
    { "1000/s", 100, false, 60000, 900, 98 }, { "10/s", 10, false, 600, 50, 98 },
    { "30/m", 5, false, 30, 25, 98 },      { "100/s", 0, true, 6000, 460, 98 },
  };

  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct world world = open_world(cases[i].rate, cases[i].burst, HONEST, cases[i].total);
    unsigned first = flood(&world, GATEWAYS, 1000, 60000);
    unsigned later = flood(&world, GATEWAYS, 61000, 60000);
    unsigned least = cases[i].per_minute * cases[i].least / 100;

    ok(first >= least && first <= cases[i].per_minute + cases[i].slack,
       "%s at four gateways: %u in the first minute", cases[i].rate, first);
    ok(later >= least && later <= cases[i].per_minute * 11 / 10 + 2, "%u in the second",
       later);
    ok(world.told <= GATEWAYS * 120000 / ACCOUNT_EVERY_MS + GATEWAYS, "told %u times",
       world.told);
    close_world(&world);
  }
}

/* Who calls at one gateway gets all of it there. */
static void
test_alone(void)
{
  struct world world = open_world("100/s", 0, HONEST, false);
  unsigned allowed = flood(&world, 1, 1000, 60000);

  ok(allowed >= 6000 && allowed <= 6110, "at one of four gateways: %u", allowed);
  close_world(&world);
}

/* What was used up elsewhere is known here at the second call. */
static void
test_news(void)
{
  struct world world = open_world("10/h", 10, HONEST, false);
  unsigned allowed = 0;

  is_int(flood(&world, 1, 1000, 300), 10, "a burst at one gateway");
  deliver(&world, &world.gateways[0], 2000);
  for (unsigned i = 0; i < 50; i++) {
    deliver(&world, &world.gateways[1], 2000 + 10 * i);
    allowed += try(&world, &world.gateways[1], 2000 + 10 * i);
  }
  is_int(allowed, 1, "leaves one call at another, which had not heard of it");
  close_world(&world);
}

static void
test_dead(void)
{
  static const enum ledger_kind kinds[] = { DEAD, DEAF, ZERO };

  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    struct world world = open_world("100/s", 0, kinds[i], false);
    unsigned allowed = flood(&world, 1, 1000, 60000);

    ok(allowed >= 6000 && allowed <= 6110, "a ledger of kind %d: each alone, %u",
       (int)kinds[i], allowed);
    close_world(&world);
  }
}

/* It can keep a client out for some seconds after each call, not for ever. */
static void
test_lying(void)
{
  struct world world = open_world("100/s", 0, HUGE_DEBT, false);
  unsigned allowed = flood(&world, 1, 1000, 60000);

  ok(allowed >= 60000 / 9000 && allowed < 600, "a ledger that claims the worst: %u", allowed);
  close_world(&world);
}

/* After a time alone what is still owed is told, not all that was ever taken. */
static void
test_back(void)
{
  struct world world = open_world("100/s", 0, DEAD, false);
  unsigned alone = flood(&world, 2, 1000, 60000), together;

  ok(alone >= 12000 && alone <= 12220, "two gateways without a ledger: %u", alone);
  world.ledger.kind = HONEST;
  together = flood(&world, 2, 61000, 60000);
  ok(together >= 5700 && together <= 6200, "and with one: %u", together);
  close_world(&world);
}

int
main(void)
{
  test_rate_holds();
  test_alone();
  test_news();
  test_dead();
  test_lying();
  test_back();
  return done_testing();
}
