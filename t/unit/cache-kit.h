/* SPDX-License-Identifier: MIT */
/* For tests of the middleware `cache` in its host: a chain whose head moves, and asking. */
#ifndef T_UNIT_CACHE_KIT_H
#define T_UNIT_CACHE_KIT_H

#include "../lib/plugtest.h"
#include "../lib/tap.h"

#define KIT_BLOCKS 400u

/* The chain as the host tells it to the plugin. The hash of a block is its number's low
 * byte 28 times behind its branch and its number, so that tests can name it. */
struct kit {
  struct plugtest *host;
  struct egw_head head;
  unsigned char branch[KIT_BLOCKS]; /* of each block */
  char hash[8][80];                 /* kit_hash() gives these in turn */
  unsigned hash_at;
  char text[8][400];                /* kit_text() too */
  unsigned text_at;
};

static char kit_so[1000];

static inline void
kit_fill(const struct kit *k, unsigned number, unsigned char out[32])
{
  memset(out, (int)(number & 0xff), 32);
  out[0] = k->branch[number];
  out[1] = (unsigned char)(number >> 8);
  out[2] = (unsigned char)number;
}

/* "0x.." of the block that is canonical now. */
static inline const char *
kit_hash(struct kit *k, unsigned number)
{
  char *out = k->hash[k->hash_at++ % 8];
  unsigned char raw[32];
  unsigned i;

  kit_fill(k, number, raw);
  strcpy(out, "0x");
  for (i = 0; i < 32; i++)
    snprintf(out + 2 + 2 * i, 3, "%02x", raw[i]);
  return out;
}

__attribute__((format(printf, 2, 3))) static inline const char *
kit_text(struct kit *k, const char *fmt, ...)
{
  char *out = k->text[k->text_at++ % 8];
  va_list ap;

  va_start(ap, fmt);
  vsnprintf(out, sizeof k->text[0], fmt, ap);
  va_end(ap);
  return out;
}

/* Tells the plugin of the head as it is in k->head, with the hashes from `lowest` on. */
static inline void
kit_tell(struct kit *k)
{
  static struct egw_block blocks[KIT_BLOCKS];
  unsigned n, count = 0;

  for (n = (unsigned)k->head.lowest; k->head.known && n <= k->head.tip.number; n++) {
    blocks[count].number = n;
    kit_fill(k, n, blocks[count++].hash);
  }
  if (k->head.known) {
    kit_fill(k, (unsigned)k->head.tip.number, k->head.tip.hash);
    kit_fill(k, (unsigned)k->head.safe.number, k->head.safe.hash);
    kit_fill(k, (unsigned)k->head.finalized.number, k->head.finalized.hash);
  }
  plugtest_head(k->host, &k->head, blocks, count);
}

/* The chain has a new tip. */
static inline void
kit_mine(struct kit *k, unsigned tip)
{
  k->head.tip.number = tip;
  kit_tell(k);
}

/* The blocks from `number` on are others now; the tip stays at its height. */
static inline void
kit_reorg(struct kit *k, unsigned number)
{
  unsigned n;

  for (n = number; n < KIT_BLOCKS; n++)
    k->branch[n]++;
  k->head.reorgs++;
  kit_tell(k);
}

/* A host, of whose head nothing is known. */
static inline void
kit_open_unknown(struct kit *k, const char *options)
{
  memset(k, 0, sizeof *k);
  k->host = plugtest_new(kit_so, options);
  if (plugtest_refused(k->host)) {
    printf("Bail out! %s\n", plugtest_messages(k->host));
    exit(1);
  }
}

/* Tip 120, safe 110, final 100, hashes from 80 on; an upstream that pushes. */
static inline void
kit_open(struct kit *k, const char *options)
{
  kit_open_unknown(k, options);
  k->head = (struct egw_head){ .known = true, .live = true, .pushed = true, .settled = true,
                               .has_safe = true, .has_finalized = true, .has_chain_id = true,
                               .has_genesis = true, .lowest = 80, .chain_id = 1 };
  k->head.tip.number = 120;
  k->head.safe.number = 110;
  k->head.finalized.number = 100;
  kit_tell(k);
}

/* A second passes: what is safe and final is known for sure. */
static inline void
kit_settle(struct kit *k)
{
  plugtest_advance(k->host, 1000);
}

/* What the node answers from now on. */
#define kit_script(k, ...)                                                                  \
  do {                                                                                      \
    struct plugtest_reply kit_replies[] = { __VA_ARGS__ };                                  \
    plugtest_script((k)->host, kit_replies, sizeof kit_replies / sizeof kit_replies[0]);    \
  } while (0)

static inline const struct plugtest_end *
kit_ask(struct kit *k, const char *method, const char *params)
{
  return plugtest_ask(k->host, &(struct plugtest_spec){ .method = method, .params = params });
}

/* Whether the answer came from the cache, and is `want`. */
static inline bool
kit_hit(struct kit *k, const char *method, const char *params, const char *want)
{
  const struct plugtest_end *end = kit_ask(k, method, params);
  bool yes = end->over && end->sent == 0 && !end->is_error && strcmp(end->body, want) == 0 &&
             end->cache_status != NULL && strcmp(end->cache_status, "hit") == 0;

  if (!yes)
    printf("# sent %u, %s: %s\n", end->sent,
           end->cache_status == NULL ? "-" : end->cache_status,
           end->body);
  return yes;
}

/* Whether the node was asked once, with `params` (NULL: as asked), and the answer is the
 * node's. */
static inline bool
kit_asked(struct kit *k, const char *method, const char *params, const char *below,
          const char *want)
{
  const struct plugtest_end *end = kit_ask(k, method, params);
  unsigned n = plugtest_reached(k->host);
  const char *got = n == 0 ? "" : plugtest_reached_params(k->host, n - 1);
  bool yes = end->over && end->sent == 1 && strcmp(end->body, want) == 0 &&
             strcmp(got, below == NULL ? params : below) == 0;

  if (!yes)
    printf("# sent %u with %s: %s\n", end->sent, got, end->body);
  return yes;
}

static inline const char *
kit_status(struct kit *k, const char *method, const char *params)
{
  const char *status = kit_ask(k, method, params)->cache_status;

  return status == NULL ? "none" : status;
}

static inline void
kit_close(struct kit *k)
{
  is_int(plugtest_free(k->host), 0, "no rule was broken");
}

static inline void
kit_init(void)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(kit_so, sizeof kit_so, "%s/plugins/middleware/cache/cache.so",
           build == NULL ? "." : build);
}

#endif
