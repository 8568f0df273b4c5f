/* SPDX-License-Identifier: MIT */
/* How fast the JSON scanner is: bytes for each second of processor time for each flavour, on full
 * blocks made here or on the files named on the command line (one text, or one text a line; of
 * recordings with ">> " and "<< " in front of the lines, the replies).
 *
 *   bench/micro-scan [--lines] [--seconds S] [--at-least BYTES] [FILE...]
 *   bench/micro-scan --once FLAVOUR [--work check|reply] [--passes N] [--at-least BYTES] [FILE...]
 *
 * --lines prints "RESULT flavour work bytes-each-second" for a script; --at-least leaves out
 * shorter texts; --once makes N passes with one flavour and measures nothing, for who counts
 * instructions from outside (status 3: this processor has no such flavour). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "rpc/envelope.h"

struct corpus {
  struct egw_buf *buf;
  size_t *ends;        /* where each text ends */
  size_t count, cap, bytes;
};

enum bench_work { BENCH_VALID, BENCH_REPLY };

struct options {
  bool lines;
  double seconds;
  size_t at_least;
  const char *once;
  enum bench_work work;
  unsigned long passes;
};

static double
bench_now(void)
{
  struct timespec ts;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
bench_die(const char *what)
{
  fprintf(stderr, "micro-scan: %s\n", what);
  exit(1);
}

/* The text that was appended to the buffer since the last call. */
static void
corpus_end(struct corpus *c)
{
  size_t len = egw_buf_slice(c->buf).len;

  if (c->count == c->cap) {
    c->cap = c->cap * 2 + 16;
    c->ends = realloc(c->ends, c->cap * sizeof(*c->ends));
    if (c->ends == NULL)
      bench_die("no memory");
  }
  c->ends[c->count++] = len;
  c->bytes = len;
}

static void
corpus_put(struct corpus *c, const char *text)
{
  if (egw_buf_append(c->buf, text, strlen(text)) != 0)
    bench_die("no memory");
}

static void
corpus_hex(struct corpus *c, const char *key, size_t digits, uint64_t *seed)
{
  size_t i;

  corpus_put(c, "\"");
  corpus_put(c, key);
  corpus_put(c, "\":\"0x");
  for (i = 0; i < digits; i++) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (egw_buf_append(c->buf, &"0123456789abcdef"[*seed >> 60], 1) != 0)
      bench_die("no memory");
  }
  corpus_put(c, "\",");
}

static void
corpus_transaction(struct corpus *c, uint64_t *seed)
{
  corpus_put(c, "{");
  corpus_hex(c, "blockHash", 64, seed);
  corpus_hex(c, "blockNumber", 7, seed);
  corpus_hex(c, "from", 40, seed);
  corpus_hex(c, "gas", 5, seed);
  corpus_hex(c, "gasPrice", 9, seed);
  corpus_hex(c, "maxFeePerGas", 10, seed);
  corpus_hex(c, "maxPriorityFeePerGas", 8, seed);
  corpus_hex(c, "hash", 64, seed);
  corpus_hex(c, "input", 8 + 64 * (size_t)(*seed >> 61), seed);
  corpus_hex(c, "nonce", 2 + (size_t)(*seed >> 62), seed);
  corpus_hex(c, "to", 40, seed);
  corpus_hex(c, "transactionIndex", 2, seed);
  corpus_hex(c, "value", 1 + (size_t)(*seed >> 60), seed);
  corpus_hex(c, "type", 1, seed);
  corpus_put(c, "\"accessList\":[],");
  corpus_hex(c, "chainId", 1, seed);
  corpus_hex(c, "v", 1, seed);
  corpus_hex(c, "yParity", 1, seed);
  corpus_hex(c, "r", 64, seed);
  corpus_hex(c, "s", 64, seed);
  corpus_put(c, "\"removed\":false}");
}

static void
corpus_synthetic(struct corpus *c)
{
  uint64_t seed = 1;
  unsigned block, i;

  for (block = 0; block < 4; block++) {
    corpus_put(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{");
    corpus_hex(c, "hash", 64, &seed);
    corpus_hex(c, "logsBloom", 512, &seed);
    corpus_put(c, "\"transactions\":[");
    for (i = 0; i < 200; i++) {
      if (i > 0)
        corpus_put(c, ",");
      corpus_transaction(c, &seed);
    }
    corpus_put(c, "]}}");
    corpus_end(c);
  }
}

/* Adds the lines of a file that hold JSON, but not the requests of a recording. */
static void
corpus_file(struct corpus *c, const char *path, size_t at_least)
{
  FILE *f = fopen(path, "re");
  char *line = NULL, *at;
  size_t cap = 0;
  ssize_t len;

  if (f == NULL)
    bench_die("can't open a file");
  while ((len = getline(&line, &cap, f)) > 0) {
    at = line;
    if (len > 3 && strncmp(at, "<< ", 3) == 0) {
      at += 3;
      len -= 3;
    }
    if (len < 2 || (size_t)len < at_least || (*at != '{' && *at != '['))
      continue;
    if (!scan_valid((struct egw_slice){ at, (size_t)len }, SCAN_DEPTH_MAX, NULL))
      continue;
    if (egw_buf_append(c->buf, at, (size_t)len) != 0)
      bench_die("no memory");
    corpus_end(c);
  }
  free(line);
  fclose(f);
}

static void
bench_pass(const struct corpus *c, enum bench_work work)
{
  const char *base = egw_buf_slice(c->buf).ptr;
  struct rpc_reply_parser parser;
  size_t i, from = 0, used;

  for (i = 0; i < c->count; i++) {
    struct egw_slice text = { base + from, c->ends[i] - from };

    if (work == BENCH_VALID) {
      if (!scan_valid(text, SCAN_DEPTH_MAX, NULL))
        bench_die("a text is not valid");
    } else {
      rpc_reply_begin(&parser);
      if (rpc_reply_feed(&parser, text.ptr, text.len, 0, &used) != SCAN_DONE)
        bench_die("a text is not a reply");
    }
    from = c->ends[i];
  }
}

static void
bench_flavour(const struct corpus *c, const char *flavour, enum bench_work work,
              const struct options *o)
{
  static const char *const names[] = { "check", "reply" };
  double begin, now, rate;
  unsigned passes = 0;

  if (!scan_force(flavour))
    return;
  bench_pass(c, work);
  begin = bench_now();
  do {
    bench_pass(c, work);
    passes++;
    now = bench_now();
  } while (now - begin < o->seconds);
  rate = (double)c->bytes * passes / (now - begin);
  if (o->lines)
    printf("RESULT %s %s %.0f\n", flavour, names[work], rate);
  else
    printf("%-7s %-6s %7.2f GB/s\n", flavour, names[work], rate / 1e9);
}

static void
bench_once(const struct corpus *c, const struct options *o)
{
  unsigned long i;

  if (!scan_force(o->once)) {
    fprintf(stderr, "micro-scan: no flavour %s on this processor\n", o->once);
    exit(3);
  }
  for (i = 0; i < o->passes; i++)
    bench_pass(c, o->work);
}

static void
bench_all(const struct corpus *c, const struct options *o)
{
  static const char *const flavours[] = { "scalar", "sse2", "avx2" };
  size_t i;

  for (i = 0; i < 3; i++)
    bench_flavour(c, flavours[i], BENCH_VALID, o);
  for (i = 0; i < 3; i++)
    bench_flavour(c, flavours[i], BENCH_REPLY, o);
}

static void
bench_options(int argc, char **argv, struct options *o)
{
  static const struct option known[] = {
    { "lines", no_argument, NULL, 'l' }, { "seconds", required_argument, NULL, 's' },
    { "at-least", required_argument, NULL, 'a' }, { "once", required_argument, NULL, 'o' },
    { "work", required_argument, NULL, 'w' }, { "passes", required_argument, NULL, 'p' },
    { NULL, 0, NULL, 0 }
  };
  int c;

  while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
    switch (c) {
    case 'l': o->lines = true; break;
    case 's': o->seconds = strtod(optarg, NULL); break;
    case 'a': o->at_least = strtoul(optarg, NULL, 10); break;
    case 'o': o->once = optarg; break;
    case 'w': o->work = strcmp(optarg, "reply") == 0 ? BENCH_REPLY : BENCH_VALID; break;
    case 'p': o->passes = strtoul(optarg, NULL, 10); break;
    default:
      fprintf(stderr, "usage: %s [--lines] [--seconds S] [--once FLAVOUR [--work check|reply] "
              "[--passes N]] [--at-least BYTES] [FILE...]\n", argv[0]);
      exit(2);
    }
}

int
main(int argc, char **argv)
{
  struct options o = { .seconds = 0.5, .passes = 1 };
  struct corpus c = { .buf = egw_buf_new(1u << 20) };
  int n;

  bench_options(argc, argv, &o);
  if (c.buf == NULL)
    bench_die("no memory");
  for (n = optind; n < argc; n++)
    corpus_file(&c, argv[n], o.at_least);
  if (optind == argc)
    corpus_synthetic(&c);
  if (c.count == 0)
    bench_die("no text to scan");
  printf("%zu texts, %zu bytes\n", c.count, c.bytes);
  if (o.once != NULL)
    bench_once(&c, &o);
  else
    bench_all(&c, &o);
  egw_buf_unref(c.buf);
  free(c.ends);
  return 0;
}
