/* SPDX-License-Identifier: MIT */
/* What a stage costs a call: requests of a client are taken apart, pass 0, 1, 4 or 16 stages, the
 * last stage answers, and the answers are put together; no sockets, one thread. The slope over
 * the number of stages is the cost of one. Two kinds of stages: "call" has a request callback that
 * lets the call pass, "call+reply" one for the reply as well.
 *
 *   bench/micro-chain [--lines] [--rounds N] [--ms N]
 *
 * Prints nanoseconds of the thread's processor time for each call, the median of the rounds, in
 * which the chains take turns; --lines prints "RESULT kind stages ns" for each round instead. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "chain/call.h"
#include "gateway/gateway.h"
#include "head/head.h"
#include "listen/parts.h"
#include "listen/session.h"
#include "obs/log.h"
#include "upstream/upstream.h"

#define CHAINS 7u
#define BURST 32u             /* calls for each turn of the loop */
#define ROUNDS_MAX 1000u
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":[]}"

struct setup {
  const char *kind;
  unsigned stages;
  struct session session;
  double ns[ROUNDS_MAX];
};

static struct setup setups[CHAINS] = {
  { .kind = "none", .stages = 0 },
  { .kind = "call", .stages = 1 }, { .kind = "call", .stages = 4 },
  { .kind = "call", .stages = 16 },
  { .kind = "call+reply", .stages = 1 }, { .kind = "call+reply", .stages = 4 },
  { .kind = "call+reply", .stages = 16 },
};

static struct gateway gateway;
static struct conf conf;
static struct conf_network conf_network;
static struct conf_listener conf_listener;
static struct listener listener;
static struct network networks[CHAINS];
static struct head heads[CHAINS];
static struct egw_worker worker;
static struct listen_worker listen_worker;
static struct egw_buf *result;
static unsigned long answered;

static void
bench_die(const char *what)
{
  fprintf(stderr, "micro-chain: %s\n", what);
  exit(1);
}

static double
bench_now(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- stages ---------------------------------------------------------------------------------- */

static enum egw_verdict
pass_request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
  return EGW_NEXT;
}

static enum egw_verdict
pass_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  (void)at;
  (void)call;
  (void)reply;
  return EGW_NEXT;
}

static enum egw_verdict
last_request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  return egw_answer(call, egw_buf_ref(result));
}

static struct plugin one_way = {
  .middleware = { .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
                              .name = "call" },
                  .kinds = EGW_KIND_ALL, .request = pass_request },
};

static struct plugin both_ways = {
  .middleware = { .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
                              .name = "call+reply" },
                  .kinds = EGW_KIND_ALL, .request = pass_request, .reply = pass_reply },
};

static struct plugin answers = {
  .middleware = { .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
                              .name = "answers" },
                  .kinds = EGW_KIND_ALL, .request = last_request },
};

/* --- the session ------------------------------------------------------------------------------- */

static void
on_reply(struct session *session, void *cookie, struct out *out)
{
  (void)session;
  (void)cookie;
  if (out == NULL || out->open)
    bench_die("no whole answer");
  out_free(out);
  answered++;
}

static void
on_ready(struct session *session)
{
  (void)session;
}

static void
on_close(struct session *session, bool now, int code, const char *reason)
{
  (void)session;
  (void)now;
  (void)code;
  (void)reason;
}

static const struct session_ops ops = { on_reply, NULL, on_ready, on_close };

/* --- a worker without sockets ------------------------------------------------------------------ */

static void
make_network(unsigned n, unsigned *index)
{
  struct network *network = &networks[n];
  unsigned i, stages = setups[n].stages;
  struct plugin *kind = strcmp(setups[n].kind, "call") == 0 ? &one_way : &both_ways;

  *network = (struct network){ .conf = &conf_network, .name = "bench", .index = n,
                               .gateway = &gateway, .stage_count = stages + 1,
                               .head = &heads[n] };
  network->stages = calloc(stages + 1, sizeof(*network->stages));
  network->upstreams = calloc(1, sizeof(*network->upstreams));
  if (network->stages == NULL || network->upstreams == NULL || head_init(&heads[n]) < 0)
    bench_die("no memory");
  for (i = 0; i <= stages; i++) {
    struct plugin *plugin = i == stages ? &answers : kind;

    network->stages[i] = (struct egw_stage){ .plugin = plugin, .mw = &plugin->middleware,
                                             .name = plugin->middleware.plugin.name,
                                             .network = network, .index = (*index)++ };
  }
  if (network_make_chains(network) < 0)
    bench_die("no memory");
}

static void
make_worker(void)
{
  unsigned i, index = 0;

  one_way.head = &one_way.middleware.plugin;
  both_ways.head = &both_ways.middleware.plugin;
  answers.head = &answers.middleware.plugin;
  conf_network = (struct conf_network){ .name = "bench", .timeout = 60000,
                                        .stream_threshold = 1u << 20, .poll_interval = 1000 };
  conf_listener.limits = (struct conf_limits){
    .max_request = 1u << 20, .max_batch_items = 1000, .max_batch_reply = 1u << 20,
    .max_reply = 1u << 20, .max_queue = 1u << 20, .max_in_flight = 4096 };
  listener.conf = &conf_listener;
  gateway.conf = &conf;
  gateway.networks = networks;
  gateway.network_count = CHAINS;
  gateway.workers = &worker;
  gateway.worker_count = 1;
  result = egw_buf_copy(EGW_LIT("\"0x1\""));
  for (i = 0; i < CHAINS; i++)
    make_network(i, &index);
  if (result == NULL || worker_init(&worker, &gateway, 0, 1) < 0 ||
      head_worker_init(&worker) < 0 || stages_start(&worker) < 0)
    bench_die("the worker does not start");
  worker.state = WORKER_RUNNING;
  worker.listen = &listen_worker;
  for (i = 0; i < CHAINS; i++)
    session_init(&setups[i].session, &ops, CLIENT_IPC, &worker, &listener, &networks[i]);
}

static void
free_worker(void)
{
  unsigned i;

  for (i = 0; i < CHAINS; i++)
    session_gone(&setups[i].session);
  stages_stop(&worker);
  worker_close(&worker);
  worker_loop(&worker);
  stages_free(&worker);
  head_worker_free(&worker);
  worker_free(&worker);
  for (i = 0; i < CHAINS; i++) {
    network_free_chains(&networks[i]);
    head_free(&heads[i]);
    free(networks[i].stages);
    free(networks[i].upstreams);
  }
  egw_buf_unref(result);
}

/* --- measuring ------------------------------------------------------------------------------- */

static void
burst(struct setup *setup)
{
  unsigned long want = answered + BURST;
  unsigned i;

  for (i = 0; i < BURST; i++) {
    struct egw_buf *text = egw_buf_copy(EGW_LIT(CALL));

    if (text == NULL || request_start(&setup->session, NULL, text, NULL) == NULL)
      bench_die("no memory");
  }
  for (i = 0; answered != want; i++) {
    if (i > 1000)
      bench_die("a call is not answered");
    uv_run(&worker.loop, UV_RUN_NOWAIT);
  }
}

/* Nanoseconds for each call. */
static double
measure(struct setup *setup, unsigned long ms)
{
  double begin = bench_now(), now;
  unsigned long calls = 0;
  unsigned i;

  do {
    for (i = 0; i < 10; i++)
      burst(setup);
    calls += 10 * BURST;
    now = bench_now();
  } while (now - begin < (double)ms / 1e3);
  return (now - begin) / (double)calls * 1e9;
}

static int
by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static void
report(unsigned rounds)
{
  struct setup *s;

  for (s = setups; s < setups + CHAINS; s++) {
    qsort(s->ns, rounds, sizeof(s->ns[0]), by_value);
    printf("%-10s %3u stages %8.0f ns a call", s->kind, s->stages, s->ns[rounds / 2]);
    if (s->stages != 0)
      printf(" %+8.1f ns a stage", (s->ns[rounds / 2] - setups[0].ns[rounds / 2]) / s->stages);
    printf("\n");
  }
}

int
main(int argc, char **argv)
{
  static const struct option known[] = { { "lines", no_argument, NULL, 'l' },
                                         { "rounds", required_argument, NULL, 'r' },
                                         { "ms", required_argument, NULL, 'm' },
                                         { NULL, 0, NULL, 0 } };
  unsigned long rounds = 7, ms = 100;
  unsigned round, i;
  bool lines = false;
  int c;

  while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
    switch (c) {
    case 'l': lines = true; break;
    case 'r': rounds = strtoul(optarg, NULL, 10); break;
    case 'm': ms = strtoul(optarg, NULL, 10); break;
    default:
      fprintf(stderr, "usage: %s [--lines] [--rounds N] [--ms N]\n", argv[0]);
      return 2;
    }
  if (rounds == 0 || rounds > ROUNDS_MAX)
    bench_die("1 to 1000 rounds");
  log_setup(EGW_ERROR, LOG_TEXT, STDERR_FILENO); /* a stage that was preempted is not slow */
  make_worker();
  for (i = 0; i < CHAINS; i++)
    (void)measure(&setups[i], ms / 4);
  for (round = 0; round < rounds; round++)
    for (i = 0; i < CHAINS; i++) {
      struct setup *setup = &setups[(i + round) % CHAINS];

      setup->ns[round] = measure(setup, ms);
      if (lines)
        printf("RESULT %s %u %.2f\n", setup->kind, setup->stages, setup->ns[round]);
    }
  if (!lines)
    report((unsigned)rounds);
  free_worker();
  return 0;
}
