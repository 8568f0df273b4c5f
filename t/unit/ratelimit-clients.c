/* SPDX-License-Identifier: MIT */
/* The table of the middleware `ratelimit`, used by several threads at once: what is let
 * through is exact, and nobody is counted twice. */
#include "../lib/tap.h"

#include <pthread.h>
#include "../../plugins/middleware/ratelimit/clients.h"

#define THREADS 4u
#define ROUNDS 20000u

struct job {
  struct clients *clients;
  const struct rate *each;
  unsigned number, keys;
  uint64_t now, step;            /* ms, and how far it goes each round */
  unsigned allowed;
  int64_t added, evicted;
};

static void *
work(void *arg)
{
  struct job *job = arg;
  unsigned seed = job->number + 1;

  for (unsigned i = 0; i < ROUNDS; i++) {
    struct client_key who = { .kind = ADDRESS_V4 };
    struct clients_taken taken;

    seed = seed * 1103515245u + 12345u;
    who.value = (seed >> 8) % job->keys;
    taken = clients_take(job->clients, &(struct clients_call){ .who = who, .each = job->each,
                                                               .cost = RATE_CALL,
                                                               .now = job->now });
    job->now += job->step;
    job->allowed += taken.wait_ms == 0;
    job->added += taken.added;
    job->evicted += taken.evicted;
  }
  return NULL;
}

struct limits {
  struct rate each;
  struct clients_limits table;
};

static struct job
run(const struct limits *limits, unsigned keys, uint64_t step)
{
  struct clients *clients = clients_new(&limits->table);
  struct job jobs[THREADS], sum = { 0 };
  pthread_t threads[THREADS];

  for (unsigned i = 0; i < THREADS; i++) {
    jobs[i] = (struct job){ .clients = clients, .each = &limits->each, .number = i,
                            .keys = keys,
                            .now = 1000 + (step > 0 ? i : 0), .step = step };
    if (clients == NULL || pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) {
      printf("Bail out! no memory or thread\n");
      exit(1);
    }
  }
  for (unsigned i = 0; i < THREADS; i++) {
    (void)pthread_join(threads[i], NULL);
    sum.allowed += jobs[i].allowed;
    sum.added += jobs[i].added;
    sum.evicted += jobs[i].evicted;
  }
  clients_free(clients);
  return sum;
}

static struct limits
limits_of(const char *each, uint64_t burst, const char *total, uint64_t most)
{
  struct limits limits = { .table = { .most = most } };

  if (each != NULL && (rate_parse(each, &limits.each) < 0))
    ok(false, "%s is a rate", each);
  if (each != NULL)
    rate_set_burst(&limits.each, burst);
  if (total != NULL && rate_parse(total, &limits.table.total) < 0)
    ok(false, "%s is a rate", total);
  return limits;
}

int
main(void)
{
  struct limits limits = limits_of("1/h", 7, NULL, 65536);
  struct job sum = run(&limits, 100, 0);

  is_int(sum.allowed, 700, "100 clients on 4 threads: 7 calls for each");
  is_int(sum.added, 100, "100 clients are counted");
  is_int(sum.evicted, 0, "none is evicted");

  limits = limits_of("1/h", 7, "1000/h", 65536);
  rate_set_burst(&limits.table.total, 300);
  sum = run(&limits, 100, 0);
  ok(sum.allowed >= 150 && sum.allowed <= 300, "together no more than the total: %u",
     sum.allowed);

  limits = limits_of(NULL, 0, "100000/s", 65536);
  sum = run(&limits, 1, 0);
  is_int(sum.allowed, 50000, "one client, one instant: half of the total's burst");

  limits = limits_of("1/h", 7, "1000000/s", 128);
  sum = run(&limits, 5000, 0);
  ok(sum.added > 0 && sum.added <= 128, "a small table holds: %lld", (long long)sum.added);
  ok(sum.evicted > 10000, "by evicting: %lld", (long long)sum.evicted);

  limits = limits_of("10/s", 10, NULL, 65536);
  sum = run(&limits, 1, 1); /* 20 s on each thread's clock; they drift apart */
  ok(sum.allowed >= 10 + 199 && sum.allowed <= 10 + 201,
     "clocks that are not quite together give no more: %u", sum.allowed);
  return done_testing();
}
