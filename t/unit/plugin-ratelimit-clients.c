/* SPDX-License-Identifier: MIT */
/* The middleware `ratelimit`: who is one client and who has no limit; fair use of the common
 * bucket; the bound of the table. */
#include "ratelimit-kit.h"

/* --- clients ------------------------------------------------------------------------- */

static void
test_clients(void)
{
  static const struct {
    const char *one, *other;
    bool same;
  } pairs[] = {
    { "192.0.2.1", "192.0.2.2", false },
    { "192.0.2.1", "::ffff:192.0.2.1", true },
    { "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true },
    { "2001:db8:1:2::1", "2001:db8:1:3::1", false },
    { "2001:db8::1", "2001:DB8:0:0:0::2", true },
    { "::1", "127.0.0.1", false },
    { "0.0.0.1", "0:0:0:1::", false },
    { "uid 1000", "uid 1001", false },
    { "uid 1000", "uid 1000", true },
    { "local", "uid 0", false },
    { "fe80::1%eth0", "fe80::1%eth1", false },
  };

  for (size_t i = 0; i < COUNT(pairs); i++) {
    struct plugtest *host = host_with("per_client = \"3/h\"; burst = 3;");

    (void)burst(host, pairs[i].one, 3);
    is_int(burst(host, pairs[i].other, 4), pairs[i].same ? 0 : 3, "%s and %s are %s",
           pairs[i].one, pairs[i].other, pairs[i].same ? "one" : "two");
    is_int(plugtest_metric(host, "clients"), pairs[i].same ? 1 : 2, "and counted so");
    done(host);
  }
}

static void
test_same_client(void)
{
  static const struct plugtest_spec specs[] = {
    { .transport = "http", .listener = "a" },          { .transport = "ws", .session = 2 },
    { .transport = "http", .listener = "b" },          { .transport = "http", .remote = true },
    { .transport = "http", .network = "other" },       { .transport = "ws", .session = 3 },
  };
  struct plugtest *host = host_with("per_client = \"1/h\"; burst = 4;");
  unsigned allowed = 0;

  for (size_t i = 0; i < COUNT(specs); i++)
    allowed += try_spec(host, &specs[i], NULL);
  is_int(allowed, 4, "an address is one client on all listeners and sessions");
  is_int(plugtest_metric(host, "clients"), 1, "one");
  done(host);
}

/* --- clients with a name ------------------------------------------------------------- */

static unsigned
burst_as(struct plugtest *host, const char *identity, const char *peer, unsigned n)
{
  unsigned allowed = 0;

  while (n-- > 0)
    allowed += try_spec(host, &(struct plugtest_spec){ .identity = identity, .peer = peer },
                        NULL);
  return allowed;
}

static void
test_names(void)
{
  static const struct {
    const char *options;
    unsigned alice, bob, nobody;  /* how many of 20 come through */
  } cases[] = {
    { "per_client = \"3/h\"; burst = 3;", 3, 3, 3 },
    { "per_client = \"3/h\"; burst = 3; key_burst = 4;", 4, 4, 3 },
    { "per_client = \"3/h\"; burst = 3; per_key = \"5/h\"; key_burst = 5;", 5, 5, 3 },
    { "per_client = \"3/h\"; burst = 3; per_key = \"7/s\";", 7, 7, 3 },
    { "per_client = \"none\"; per_key = \"7/s\";", 7, 7, 20 },
    { "per_client = \"3/h\"; burst = 3; per_key = \"none\";", 20, 20, 3 },
    { "per_client = \"3/s\"; keys = ( { name = \"bob\"; rate = \"9/s\"; } );", 3, 9, 3 },
    { "per_client = \"3/s\"; per_key = \"4/s\"; keys = ( { name = \"zoe\"; rate = \"1/s\"; },"
      "{ name = \"bob\"; rate = \"9/h\"; burst = 8; }, { name = \"a\"; rate = \"2/s\"; } );",
      4, 8, 3 },
    { "per_client = \"3/s\"; keys = ( { name = \"bob\"; rate = \"none\"; } );", 3, 20, 3 },
    { "per_client = \"none\"; keys = ( { name = \"bob\"; rate = \"2/s\"; } );", 20, 2, 20 },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    struct plugtest *host = host_with(cases[i].options);
    unsigned bob;

    is_int(burst_as(host, "alice", A, 20), cases[i].alice, "alice: %s", cases[i].options);
    bob = burst_as(host, "bob", A, 1);
    bob += burst_as(host, "bob", B, 19);
    is_int(bob, cases[i].bob, "bob, from two addresses");
    is_int(burst_as(host, NULL, A, 20), cases[i].nobody, "nobody, from that of alice");
    is_int(burst_as(host, "alice", B, 20), cases[i].alice == 20 ? 20 : 0,
           "alice is alice anywhere");
    done(host);
  }
}

/* Names and addresses are apart, whatever they look like; both are within the total. */
static void
test_name_or_address(void)
{
  struct plugtest *host = host_with("per_client = \"2/h\"; burst = 2; total = \"50/s\";");

  is_int(burst_as(host, A, B, 5), 2, "a client called as an address is");
  is_int(burst_as(host, NULL, A, 5), 2, "is not the address");
  is_int(burst_as(host, "uid 7", B, 5), 2, "nor one called as a user is");
  is_int(burst_as(host, NULL, "uid 7", 5), 2, "the user");
  is_int(plugtest_metric(host, "clients"), 4, "they are four");
  done(host);
  host = host_with("per_client = \"none\"; per_key = \"none\"; total = \"50/s\";");
  is_int(burst_as(host, "alice", A, 100), 25, "one with a name has half of the total at once");
  done(host);
  host = host_with("exempt = ( \"192.0.2.1\" ); per_key = \"1/h\";");
  is_int(burst_as(host, "alice", A, 20), 20, "an exempt address is exempt for all");
  done(host);
}

static void
test_exempt(void)
{
  static const struct {
    const char *exempt, *peer;
    bool remote, is;
  } cases[] = {
    { "", "127.0.0.1", false, false },
    { "", "uid 0", false, false },
    { "\"local\"", "127.0.0.1", false, true },
    { "\"local\"", "uid 1000", false, true },
    { "\"local\"", "127.0.0.1", true, false },
    { "\"192.0.2.1\"", "192.0.2.1", true, true },
    { "\"192.0.2.1\"", "::ffff:192.0.2.1", true, true },
    { "\"192.0.2.1\"", "192.0.2.2", true, false },
    { "\"::ffff:192.0.2.1\"", "192.0.2.1", true, true },
    { "\"10.0.0.0/8\"", "10.255.255.255", true, true },
    { "\"10.0.0.0/8\"", "11.0.0.0", true, false },
    { "\"10.0.0.0/8\"", "a00::", true, false },
    { "\"192.168.4.0/22\"", "192.168.7.255", true, true },
    { "\"192.168.4.0/22\"", "192.168.8.0", true, false },
    { "\"::ffff:10.0.0.0/104\"", "10.1.2.3", true, true },
    { "\"0.0.0.0/0\"", "8.8.8.8", true, true },
    { "\"0.0.0.0/0\"", "2001:db8::1", true, false },
    { "\"::/0\"", "2001:db8::1", true, true },
    { "\"::/0\"", "uid 7", true, false },
    { "\"2001:db8::/33\"", "2001:db8:7fff::1", true, true },
    { "\"2001:db8::/33\"", "2001:db8:8000::1", true, false },
    { "\"2001:db8::1\"", "2001:db8::2", true, false },
    { "\"192.0.2.9/32\", \"2001:db8::1/128\"", "2001:db8::1", true, true },
  };

  for (size_t i = 0; i < COUNT(cases); i++) {
    char options[200];
    struct plugtest *host;
    unsigned allowed = 0;

    snprintf(options, sizeof options,
             "per_client = \"1/h\"; total = \"2/h\"; exempt = ( %s );", cases[i].exempt);
    host = host_with(options);
    for (unsigned n = 0; n < 20; n++)
      allowed += try_spec(host, &(struct plugtest_spec){ .peer = cases[i].peer,
                                                         .remote = cases[i].remote }, NULL);
    is_int(allowed, cases[i].is ? 20 : 1, "exempt = ( %s ): %s", cases[i].exempt,
           cases[i].peer);
    is_int(plugtest_metric(host, "clients"), cases[i].is ? 0 : 1, "and its place");
    done(host);
  }
}

/* --- all together -------------------------------------------------------------------- */

static const char *
peer_number(unsigned n)
{
  static char text[32];

  snprintf(text, sizeof text, "10.%u.%u.%u", n >> 16 & 255, n >> 8 & 255, n & 255);
  return text;
}

/* One that asks every ms, and one that asks every 50. */
static void
test_greedy(const char *options, unsigned greedy_least)
{
  struct plugtest *host = host_with(options);
  unsigned greedy = 0, modest = 0;

  for (unsigned ms = 0; ms < 30000; ms++) {
    plugtest_advance(host, 1);
    greedy += try(host, A, NULL);
    if (ms >= 10000 && ms % 50 == 0)
      modest += try(host, B, NULL);
  }
  is_int(modest, 400, "%s: all calls of the modest one are let through", options);
  ok(greedy >= greedy_least && greedy + modest <= 3000 + 100,
     "and the greedy one gets what is left: %u", greedy);
  done(host);
}

static void
test_shares(void)
{
  struct plugtest *host = host_with("per_client = \"none\"; total = \"100/s\";");
  unsigned got[5] = { 0 }, least = 100000, most = 0, sum = 0;

  for (unsigned ms = 0; ms < 30000; ms++) {
    plugtest_advance(host, 1);
    for (unsigned i = 0; i < 5; i++)        /* the first ones ask more often, and first */
      for (unsigned n = i; n < 5; n++)
        got[i] += try(host, peer_number(i), NULL);
  }
  for (unsigned i = 0; i < 5; i++) {
    least = got[i] < least ? got[i] : least;
    most = got[i] > most ? got[i] : most;
    sum += got[i];
  }
  ok(sum >= 3000 && sum <= 3100, "five want everything: %u together", sum);
  ok(least > 500 && most < 700, "and get nearly the same: %u to %u", least, most);
  done(host);
}

/* What somebody used while nobody else was there is not held against him. */
static void
test_latecomers(void)
{
  struct plugtest *host = host_with("per_client = \"none\"; total = \"90/s\";");
  unsigned got[3] = { 0 };

  for (unsigned ms = 0; ms < 60000; ms++) {
    plugtest_advance(host, 1);
    (void)try(host, peer_number(0), NULL);
  }
  for (unsigned ms = 0; ms < 20000; ms++) {
    plugtest_advance(host, 1);
    for (unsigned i = 0; i < 3; i++)
      got[(i + ms) % 3] += try(host, peer_number((i + ms) % 3), NULL);
  }
  ok(got[0] > 550 && got[1] > 550 && got[2] > 550,
     "after a minute alone, a third each: %u %u %u", got[0], got[1], got[2]);
  done(host);
}

static void
test_both_limits(void)
{
  struct plugtest *host = host_with("per_client = \"2/s\"; total = \"20/s\";");

  is_int(burst(host, A, 1000), 2, "a client has its limit");
  is_int(burst(host, B, 1000), 2, "what was refused took nothing from the total");
  for (unsigned i = 0; i < 20; i++)
    (void)burst(host, peer_number(i), 1);
  is_int(plugtest_metric(host, "allowed"), 20, "the total holds for all");
  plugtest_advance(host, 100);
  for (unsigned i = 20; i < 40; i++)
    (void)burst(host, peer_number(i), 1);
  is_int(plugtest_metric(host, "allowed"), 22, "and comes back");
  done(host);
  host = host_with("per_client = \"2/h\"; burst = 2; total = \"10/s\";");
  for (unsigned i = 0; i < 20; i++)
    (void)burst(host, peer_number(i), 1);
  is_int(burst(host, A, 100), 0, "the total is used up");
  plugtest_advance(host, 30000);
  is_int(burst(host, A, 100), 2, "what the total refused took nothing from the client");
  done(host);
}

/* --- the table ----------------------------------------------------------------------- */

#define MANY 20000u

static void
test_bound(const char *options, long long most)
{
  struct plugtest *host = host_with(options);
  unsigned allowed = 0;

  is_int(burst(host, A, 10), 5, "%s: one client has used up its burst", options);
  for (unsigned i = 0; i < MANY; i++)
    allowed += try(host, peer_number(i), NULL);
  is_int(allowed, MANY, "many others are let through");
  ok(plugtest_metric(host, "clients") <= most, "at most %lld are kept: %lld", most,
     (long long)plugtest_metric(host, "clients"));
  is_int(plugtest_metric(host, "clients") + plugtest_metric(host, "evicted"), MANY + 1,
         "the others were evicted");
  is_int(burst(host, A, 10), 0, "the one who is over the limit was not forgotten");
  is_int(burst(host, peer_number(MANY - 1), 1), 1, "the last one is known or new");
  done(host);
}

/* Those that have most left go first, however they came to stand in the heap. */
static void
test_order(void)
{
  struct plugtest *host = host_with("per_client = \"5/s\"; max_clients = 64;");
  unsigned kept = 0;

  for (unsigned i = 0; i < 64; i++)
    (void)burst(host, peer_number(i), 1);
  for (unsigned i = 0; i < 32; i++)
    (void)burst(host, peer_number((i * 11) % 32), 1 + i % 2); /* one after the other... */
  for (unsigned i = 0; i < 32; i++)
    (void)burst(host, peer_number(31 - i), 5);                /* ...until none is left */
  for (unsigned i = 100; i < 1000; i++)
    (void)burst(host, peer_number(i), 1);
  is_int(plugtest_metric(host, "evicted"), 900, "900 come late, 900 go");
  for (unsigned i = 0; i < 32; i++)
    kept += burst(host, peer_number(i), 1) == 0;
  is_int(kept, 32, "none of those with an empty bucket");
  done(host);
}

/* Clients whose buckets are full make room, and are no loss. */
static void
test_idle(void)
{
  struct plugtest *host = host_with("per_client = \"5/s\"; max_clients = 1000;");

  for (unsigned i = 0; i < MANY; i++) {
    (void)try(host, peer_number(i), NULL);
    plugtest_advance(host, 1);
  }
  is_int(plugtest_metric(host, "evicted"), 0, "100,000 clients in 100 s: none was evicted");
  ok(plugtest_metric(host, "clients") < 400, "those that are idle leave: %lld are there",
     (long long)plugtest_metric(host, "clients"));
  done(host);
}

/* Table against a plain model: each client has its own bucket, whoever comes and goes. */
static void
test_model(void)
{
  enum { CLIENTS = 300, CALLS = 60000 };
  static unsigned debt[CLIENTS], at[CLIENTS];
  struct plugtest *host = host_with("per_client = \"10/s\"; burst = 4; max_clients = 8192;");
  unsigned now = 0, wrong = 0, seed = 7;

  for (unsigned n = 0; n < CALLS; n++) {
    unsigned i, back;

    seed = seed * 1103515245u + 12345u;
    i = (seed >> 16) % CLIENTS * ((seed >> 9) % 3) / 2; /* some ask more often */
    if (n % 4 == 0) {
      plugtest_advance(host, 1);
      now++;
    }
    back = (now - at[i]) * 10; /* in thousandths of a call */
    debt[i] = debt[i] > back ? debt[i] - back : 0;
    at[i] = now;
    if (try(host, peer_number(i), NULL) != (debt[i] <= 3000))
      wrong++;
    if (debt[i] <= 3000)
      debt[i] += 1000;
  }
  is_int(wrong, 0, "60,000 calls of 300 clients are judged as by a model");
  ok(plugtest_metric(host, "refused") > 1000, "%lld refused",
     (long long)plugtest_metric(host, "refused"));
  done(host);
}

int
main(void)
{
  find_plugin();
  test_clients();
  test_same_client();
  test_names();
  test_name_or_address();
  test_exempt();
  test_greedy("per_client = \"none\"; total = \"100/s\";", 2500);
  test_greedy("per_client = \"100/s\"; total = \"100/s\";", 2500);
  test_greedy("per_client = \"60/s\"; total = \"100/s\";", 1750);
  test_shares();
  test_latecomers();
  test_both_limits();
  test_bound("per_client = \"5/s\"; max_clients = 1000;", 1000);
  test_bound("per_client = \"5/s\"; max_clients = 65;", 65);
  test_bound("per_client = \"5/s\"; max_clients = 2;", 2);
  test_order();
  test_idle();
  test_model();
  return done_testing();
}
