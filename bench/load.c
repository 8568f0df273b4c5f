/* SPDX-License-Identifier: MIT */
/* Load over any of the gateway's transports, from one thread: see load.h for its parts and --help
 * for what it can do. Replies are read, not looked at, but for their ends (load-reply.c). */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "load.h"

static const char usage[] =
  "Usage: bench/load [OPTION]... http|ws|ipc PORT-OR-PATH [BODY]\n"
  "       bench/load http|ws|ipc PORT-OR-PATH CONNECTIONS MILLISECONDS [BODY]\n"
  "Asks over many connections, and prints counts and latencies (in microseconds) as one line of\n"
  "JSON; in the second form \"RESULT answers microseconds p50 p99 bytes-of-an-answer\".\n"
  "\n"
  "What is asked: BODY as it is (http: without one, GET), or\n"
  "  -f, --requests FILE    JSON-RPC requests, one a line, in an order by chance; each gets an id\n"
  "                         of its own\n"
  "  -z, --zipf S           of the file by Zipf rank with exponent S, instead of in turn\n"
  "  -x, --distinct         of the file in turn, and on each further turn with three digits of\n"
  "                         the last long hexadecimal string changed: asked hardly ever twice\n"
  "  -t, --template TEXT    TEXT, with its %d, %x, %040x counted up, and an id of its own\n"
  "  -p, --path PATH        the target of HTTP requests; default /\n"
  "When:\n"
  "  -r, --rate R           open loop: R calls a second, whatever the answers; latencies count\n"
  "                         from when a call was due, even if no connection was free for it.\n"
  "                         Without it: closed loop, each connection asks when it has its answer\n"
  "  -a, --arrivals HOW     of the open loop: poisson (default) or fixed\n"
  "  -c, --connections N    1 (default) to 10,000 and more\n"
  "  -P, --pipeline N       calls at a time of a connection, over ws and ipc; default 1, with\n"
  "                         --rate 64\n"
  "  -s, --seconds S        how long; default 5\n"
  "  -n, --calls N          how many calls, instead (or whichever comes first)\n"
  "  -w, --warmup S         seconds before, that do not count; default 0\n"
  "  -d, --drain S          how long the open loop waits for answers at the end; default 1\n"
  "  -S, --seed N           of all chance, and where templates count from; default 1\n"
  "  -h, --help             print this, and end\n"
  "\n"
  "Printed are calls (answered), rate, latencies, bytes; errors: JSON-RPC errors by code; http:\n"
  "answers with another status than 200, which count nowhere else; transport_errors: calls that\n"
  "a lost connection took along; lost: such connections, which are dialled again; refused: such\n"
  "attempts; strays: replies with an id that was not asked; unsent, unanswered: so at the end\n"
  "(with --rate they count in the latencies with the time so far); busy: the share of a processor\n"
  "that this program used: near 1, it is what is measured.\n";

static const struct option long_options[] = {
  { "requests", required_argument, NULL, 'f' }, { "zipf", required_argument, NULL, 'z' },
  { "distinct", no_argument, NULL, 'x' },       { "template", required_argument, NULL, 't' },
  { "path", required_argument, NULL, 'p' },     { "rate", required_argument, NULL, 'r' },
  { "arrivals", required_argument, NULL, 'a' }, { "connections", required_argument, NULL, 'c' },
  { "pipeline", required_argument, NULL, 'P' }, { "seconds", required_argument, NULL, 's' },
  { "calls", required_argument, NULL, 'n' },    { "warmup", required_argument, NULL, 'w' },
  { "drain", required_argument, NULL, 'd' },    { "seed", required_argument, NULL, 'S' },
  { "help", no_argument, NULL, 'h' },           { NULL, 0, NULL, 0 },
};

struct options options = { .target = "/", .connections = 1, .drain = 1, .seed = 1 };

_Noreturn void
die(const char *what)
{
  fprintf(stderr, "bench/load: %s: %s\n", what, strerror(errno));
  exit(1);
}

_Noreturn void
fail(const char *what)
{
  fprintf(stderr, "bench/load: %s\n", what);
  exit(1);
}

uint64_t
now_ns(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* splitmix64 */
uint64_t
random_next(uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;

  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

double
random_unit(uint64_t *state)
{
  return ((double)(random_next(state) >> 11) + 1.0) / 9007199254740992.0;
}

/* --- options --------------------------------------------------------------------------------- */

static double
number(const char *name, const char *text, double lowest, double highest)
{
  char *end;
  double value = strtod(text, &end);

  if (*text == '\0' || *end != '\0' || !(value >= lowest && value <= highest)) {
    fprintf(stderr, "bench/load: %s: \"%s\" is not a number from %g to %g\n", name, text, lowest,
            highest);
    exit(2);
  }
  return value;
}

static void
set_arrivals(const char *text)
{
  options.fixed = strcmp(text, "fixed") == 0;
  if (!options.fixed && strcmp(text, "poisson") != 0)
    fail("--arrivals is poisson or fixed");
}

static void
set_option(int option, const char *text)
{
  switch (option) {
  case 'f': options.file = text; break;
  case 'z': options.zipf = number("--zipf", text, 0.01, 10); break;
  case 'x': options.distinct = true; break;
  case 't': options.template_text = text; break;
  case 'p': options.target = text; break;
  case 'r': options.rate = number("--rate", text, 0.01, 1e7); break;
  case 'a': set_arrivals(text); break;
  case 'c': options.connections = (unsigned long)number("--connections", text, 1, 100000); break;
  case 'P': options.pipeline = (unsigned long)number("--pipeline", text, 1, PIPELINE_MAX); break;
  case 's': options.seconds = number("--seconds", text, 0.001, 86400); break;
  case 'n': options.calls = (unsigned long)number("--calls", text, 1, 1e12); break;
  case 'w': options.warmup = number("--warmup", text, 0, 3600); break;
  case 'd': options.drain = number("--drain", text, 0, 3600); break;
  case 'S': options.seed = (uint64_t)number("--seed", text, 0, 4e9); break;
  case 'h': fputs(usage, stdout); exit(0);
  default: fputs("Try bench/load --help.\n", stderr); exit(2);
  }
}

static void
set_kind(const char *text)
{
  if (strcmp(text, "http") != 0 && strcmp(text, "ws") != 0 && strcmp(text, "ipc") != 0)
    fail("the transport is http, ws or ipc");
  options.kind = strcmp(text, "ipc") == 0 ? IPC : strcmp(text, "ws") == 0 ? WS : HTTP;
}

static void
set_rest(char **argv, int left)
{
  if (left < 2 || left > 5) {
    fputs(usage, stderr);
    exit(2);
  }
  set_kind(argv[0]);
  options.where = argv[1];
  options.old_form = left > 3;
  if (options.old_form) {
    options.connections = (unsigned long)number("CONNECTIONS", argv[2], 1, 100000);
    options.seconds = number("MILLISECONDS", argv[3], 1, 1e8) / 1e3;
    options.body = left > 4 ? argv[4] : NULL;
  } else {
    options.body = left > 2 ? argv[2] : NULL;
  }
  if (options.kind != IPC)
    (void)number("PORT", options.where, 1, 65535);
}

/* What does not go together. */
static void
check(void)
{
  bool ids = options.file != NULL || options.template_text != NULL;

  if ((options.file != NULL) + (options.template_text != NULL) + (options.body != NULL) > 1)
    fail("one of BODY, --requests and --template");
  if ((options.zipf > 0 || options.distinct) && options.file == NULL)
    fail("--zipf and --distinct go with --requests");
  if (options.zipf > 0 && options.distinct)
    fail("--zipf or --distinct, not both");
  if (options.pipeline == 0)
    options.pipeline = options.rate > 0 && options.kind != HTTP && ids ? 64 : 1;
  if (options.pipeline > 1 && options.kind == HTTP)
    fail("--pipeline: over http a connection has one call at a time");
  if (options.pipeline > 1 && !ids)
    fail("--pipeline needs ids: --requests or --template");
  if (options.seconds == 0)
    options.seconds = options.calls != 0 ? 86400 : 5;
}

/* --- what is reported ------------------------------------------------------------------------ */

static void
print_codes(const char *name, bool status)
{
  const char *comma = "";
  size_t i;

  printf(",\"%s\":{", name);
  for (i = 0; i < CODES_MAX; i++) {
    uint64_t count = status ? counts.statuses[i].count : counts.errors[i].count;
    if (count == 0)
      break;
    printf("%s\"%ld\":%llu", comma, status ? counts.statuses[i].code : counts.errors[i].code,
           (unsigned long long)count);
    comma = ",";
  }
  printf("}");
}

static void
report(void)
{
  static const struct { const char *name; double share; } shares[] = {
    { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 } };
  double seconds = (double)counts.window_ns / 1e9;
  const struct { const char *name; uint64_t value; } rest[] = {
    { "transport_errors", counts.transport_errors }, { "lost", counts.lost },
    { "refused", counts.refused }, { "strays", counts.strays }, { "unsent", counts.unsent },
    { "unanswered", counts.unanswered } };
  size_t i;

  printf("{\"calls\":%llu,\"seconds\":%.6f,\"rate\":%.1f", (unsigned long long)counts.calls,
         seconds, (double)counts.in_time / seconds);
  for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
    printf(",\"%s\":%.1f", shares[i].name, hist_us(shares[i].share));
  printf(",\"max\":%.1f,\"bytes\":%llu", hist_max_us(), (unsigned long long)counts.bytes);
  print_codes("errors", false);
  print_codes("http", true);
  for (i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
    printf(",\"%s\":%llu", rest[i].name, (unsigned long long)rest[i].value);
  printf(",\"busy\":%.3f}\n", counts.busy);
}

static void
report_old(void)
{
  if (counts.calls == 0)
    fail("no answer");
  printf("RESULT %llu %llu %.0f %.0f %llu\n", (unsigned long long)counts.calls,
         (unsigned long long)(counts.window_ns / 1000), hist_us(0.5), hist_us(0.99),
         (unsigned long long)(counts.bytes / counts.calls));
}

int
main(int argc, char **argv)
{
  int option;

  while ((option = getopt_long(argc, argv, "f:z:xt:p:r:a:c:P:s:n:w:d:S:h", long_options,
                               NULL)) >= 0)
    set_option(option, optarg);
  set_rest(argv + optind, argc - optind);
  check();
  requests_open();
  run();
  if (options.old_form)
    report_old();
  else
    report();
  return 0;
}
