/* SPDX-License-Identifier: MIT */
/* cache: answers are kept as long as they are true, and given to whoever asks the same again.
 *
 *   ask.c     what a call asks, read from its params
 *   plan.c    which block that is by the head, and what a result proves
 *   key.c     the canonical bytes of the question; params written anew
 *   rules.c   facts about methods
 *   store.c   the bytes
 *   tiers.c   disk and Redis, for what can't change any more
 *
 * A question about a block that is not final is kept under the block's hash, so nothing has to be taken
 * back when the chain turns: nobody asks for the other block any more. Only transactions and ranges of
 * logs, whose key can't name the block, are pinned to it (struct store_pin) and looked at with each hit.
 *
 * To know which block an answer is of, the node is asked by the block's hash where it takes that, and
 * the result is looked at where it names its block. What a node answers to a question that was
 * written anew, other than a result of that block, is never shown: the client's own question is
 * sent then. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/middleware.h>
#include "key.h"
#include "store.h"
#include "tiers.h"

enum metric {
  METRIC_HITS, METRIC_MISSES, METRIC_BYPASSES, METRIC_STORED, METRIC_EVICTED,
  METRIC_EVICTED_SECONDS, METRIC_REORGED, METRIC_FLUSHES, METRIC_HIT_BYTES, METRIC_BYTES,
  METRIC_ENTRIES, METRIC_REWRITTEN, METRIC_RESENT, METRIC_REFUSED,
  METRIC_TIERS                    /* the first of TIERS_METRICS */
};

enum { TAGS_AUTO, TAGS_ALWAYS, TAGS_NEVER };

struct cache {
  uint64_t memory, max_value;
  int tags;
  struct tiers_options below;
  struct shared *shared;
};

/* What all workers share; the instance itself is const once they run. */
struct shared {
  struct store *store;
  struct tiers *tiers;            /* or NULL */
  atomic_uint flushes;            /* an answer asked for before the last one is not kept */
  pthread_mutex_t lock;           /* of the rest */
  uint64_t version;               /* of the newest head that was taken note of */
  bool has_identity, has_anchor;
  struct key_identity identity;   /* the chain, as last known */
  struct egw_block anchor;        /* a block that was final */
};

#define METHODS 512u              /* a power of two, well above the number of methods there are */
#define STRIKES 3u
#define OFF_MS 600000u            /* so long a method's block is not given by hash after a refusal */
#define OFF_SHORT_MS 60000u       /* ...after answers that may have had other reasons */

struct method {
  struct rules_method rules;      /* info NULL: a free slot */
  uint64_t off_until;
  unsigned strikes;
};

/* Of one worker. */
struct mine {
  struct method methods[METHODS];
  struct egw_buf *tip;            /* the answer to eth_blockNumber, while that is tip_number */
  uint64_t tip_number;
  struct tiers_desk *tiers;       /* or NULL */
};

enum phase {
  PHASE_PASS,                     /* none of ours */
  PHASE_ASKED,                    /* below, as the client sent it */
  PHASE_REWRITTEN,                /* below, in other words */
  PHASE_RESENT,                   /* that came to nothing: below, as the client sent it */
  PHASE_CONTROL                   /* a command that may change what was true */
};

struct state {
  enum phase phase;
  unsigned flushes;               /* when it went down */
  int64_t code;                   /* RESENT: of the error before, or 0 */
  struct egw_slice key, params;   /* the client's params */
  struct plan plan;
  struct tiers_wait wait;
};

static const char *const tags_choices[] = { "auto", "always", "never", NULL };

static const struct egw_option options[] = {
  { .name = "memory", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, memory),
    .fallback = "256MiB", .min = 1 << 20, .max = INT64_C(1) << 44,
    .help = "bytes of answers, keys and bookkeeping kept in memory" },
  { .name = "max_value", .type = EGW_OPT_SIZE, .offset = offsetof(struct cache, max_value),
    .fallback = "4MiB", .min = 1, .max = INT64_C(1) << 40,
    .help = "longer results are not kept" },
  { .name = "tags", .type = EGW_OPT_ENUM, .offset = offsetof(struct cache, tags),
    .fallback = "auto", .choices = tags_choices,
    .help = "when latest, safe, finalized and left out blocks are resolved to the block they mean" },
  TIERS_OPTIONS(cache, below),
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  [METRIC_HITS] = { .name = "hits", .kind = EGW_METRIC_COUNTER,
                    .help = "calls answered from the cache" },
  [METRIC_MISSES] = { .name = "misses", .kind = EGW_METRIC_COUNTER,
                      .help = "calls that could have been kept, but were not here" },
  [METRIC_BYPASSES] = { .name = "bypasses", .kind = EGW_METRIC_COUNTER,
                        .help = "calls whose answer could not be kept" },
  [METRIC_STORED] = { .name = "stored", .kind = EGW_METRIC_COUNTER, .help = "answers put in" },
  [METRIC_EVICTED] = { .name = "evicted", .kind = EGW_METRIC_COUNTER,
                       .help = "answers thrown out for room" },
  [METRIC_EVICTED_SECONDS] = { .name = "evicted_seconds", .kind = EGW_METRIC_COUNTER,
                               .help = "their age when they went, summed up" },
  [METRIC_REORGED] = { .name = "reorged", .kind = EGW_METRIC_COUNTER,
                       .help = "answers dropped because their block is not canonical any more" },
  [METRIC_FLUSHES] = { .name = "flushes", .kind = EGW_METRIC_COUNTER,
                       .help = "times everything was thrown out because history changed" },
  [METRIC_HIT_BYTES] = { .name = "hit_bytes", .kind = EGW_METRIC_COUNTER,
                         .help = "bytes of results answered from the cache" },
  [METRIC_BYTES] = { .name = "bytes", .kind = EGW_METRIC_GAUGE,
                     .help = "bytes of answers, keys and bookkeeping in memory" },
  [METRIC_ENTRIES] = { .name = "entries", .kind = EGW_METRIC_GAUGE,
                       .help = "answers in memory" },
  [METRIC_REWRITTEN] = { .name = "rewritten", .kind = EGW_METRIC_COUNTER,
                         .help = "calls sent on with their block by hash or number" },
  [METRIC_RESENT] = { .name = "resent", .kind = EGW_METRIC_COUNTER,
                      .help = "calls sent once more as the client wrote them" },
  [METRIC_REFUSED] = { .name = "refused", .kind = EGW_METRIC_COUNTER,
                       .help = "times a method's block by hash was found to be refused" },
  TIERS_METRICS(METRIC_TIERS),
  EGW_METRIC_TABLE_END
};

static struct shared *
shared_of(const struct egw_at *at)
{
  return ((const struct cache *)at->self)->shared;
}

static void
count_change(const struct egw_at *at, const struct store_change *change)
{
  egw_count(at, METRIC_BYTES, change->bytes);
  egw_count(at, METRIC_ENTRIES, change->entries);
  if (change->evicted != 0) {
    egw_count(at, METRIC_EVICTED, (int64_t)change->evicted);
    egw_count(at, METRIC_EVICTED_SECONDS, (int64_t)(change->evicted_ms / 1000));
  }
}

/* --- life ------------------------------------------------------------------------------------------ */

static int
cache_configure(void *self, struct egw_conf *section)
{
  struct cache *c = self;

  c->shared = calloc(1, sizeof(*c->shared));
  if (c->shared != NULL)
    c->shared->store = store_new(c->memory);
  if (c->shared == NULL || c->shared->store == NULL)
    return egw_conf_error(section, NULL, "out of memory");
  pthread_mutex_init(&c->shared->lock, NULL); /* can't fail without attributes */
  return tiers_configure(section, &c->below, c->max_value, METRIC_TIERS, &c->shared->tiers);
}

static void
cache_unconfigure(void *self)
{
  struct cache *c = self;

  if (c->shared == NULL)
    return;
  if (c->shared->store != NULL)
    pthread_mutex_destroy(&c->shared->lock);
  tiers_free(c->shared->tiers);
  store_free(c->shared->store);
  free(c->shared);
}

static int
cache_worker_start(const void *self, void *mine, struct egw_worker *worker)
{
  const struct cache *c = self;

  ((struct mine *)mine)->tiers = tiers_start(c->shared->tiers, worker);
  return 0;
}

static void
cache_worker_stop(const void *self, void *mine, struct egw_worker *worker)
{
  struct mine *m = mine;

  (void)self;
  (void)worker;
  tiers_stop(m->tiers);
  egw_buf_unref(m->tip);
}

static bool
cache_wants(const void *self, const struct egw_method_info *method)
{
  const struct cache *c = self;

  if (method != NULL && method->method_class == EGW_CLASS_HEAD && c->tags == TAGS_NEVER)
    return false;
  return rules_want(method);
}

/* The worker's slot for a method; there are always free ones. */
static struct method *
method_of(struct mine *mine, const struct egw_method_info *info)
{
  size_t i = (size_t)((uintptr_t)info / sizeof(*info)) & (METHODS - 1);

  while (mine->methods[i].rules.info != NULL && mine->methods[i].rules.info != info)
    i = (i + 1) & (METHODS - 1);
  if (mine->methods[i].rules.info == NULL)
    rules_of(info, &mine->methods[i].rules);
  return &mine->methods[i];
}

/* --- history ------------------------------------------------------------------------------------------ */

/* What was true may be no more: nothing stays, and nothing that is on its way comes in. `same`: the chain
 * still has the same identity, so that keys don't tell the old answers from the new ones. */
static void
cache_flush(const struct egw_at *at, bool same)
{
  struct shared *shared = shared_of(at);
  struct store_change change = { 0 };

  atomic_fetch_add(&shared->flushes, 1);
  tiers_flush(((struct mine *)at->mine)->tiers, at, same);
  store_clear(shared->store, &change);
  count_change(at, &change);
  egw_count(at, METRIC_FLUSHES, 1);
}

/* Whether a block that was final is gone: a development chain was reset, or nodes of another one stand
 * behind the name now. */
static bool
is_rewound(const struct shared *shared, const struct egw_head *head)
{
  unsigned char hash[32];

  if (!shared->has_anchor || !head->known)
    return false;
  if (!egw_head_hash(head, shared->anchor.number, hash))
    return head->tip.number < shared->anchor.number;
  return memcmp(hash, shared->anchor.hash, 32) != 0;
}

enum history { HISTORY_SAME, HISTORY_REWOUND, HISTORY_OTHER };

/* Takes note of the chain. */
static enum history
note_head(struct shared *shared, const struct egw_head *head)
{
  enum history history = is_rewound(shared, head) ? HISTORY_REWOUND : HISTORY_SAME;
  struct key_identity identity;
  bool known = key_identity(head, &identity);

  if (head->version <= shared->version)
    return HISTORY_SAME; /* another worker was here with this one, or with a newer one */
  shared->version = head->version;
  if (known && shared->has_identity &&
      memcmp(&identity, &shared->identity, sizeof(identity)) != 0)
    history = HISTORY_OTHER;
  if (known) {
    shared->identity = identity;
    shared->has_identity = true;
  }
  if (history != HISTORY_SAME)
    shared->has_anchor = false;
  if (head->known && head->has_finalized &&
      (!shared->has_anchor || head->finalized.number > shared->anchor.number)) {
    shared->anchor = head->finalized;
    shared->has_anchor = true;
  }
  return history;
}

static void
cache_head(const struct egw_at *at, const struct egw_head *head)
{
  struct shared *shared = shared_of(at);
  enum history history;

  pthread_mutex_lock(&shared->lock);
  history = note_head(shared, head);
  pthread_mutex_unlock(&shared->lock);
  if (history == HISTORY_SAME)
    return;
  egw_log(EGW_WARN, "cache", history == HISTORY_OTHER
                                 ? "the chain is another one: everything kept is thrown out"
                                 : "a final block is gone: everything kept is thrown out");
  cache_flush(at, history == HISTORY_REWOUND);
}

/* --- hits ------------------------------------------------------------------------------------------------ */

/* Whether the key names its chain: others are for this process only. */
static bool
is_of_chain(struct egw_slice key)
{
  static const struct key_identity unknown;

  return memcmp(key.ptr, unknown.bytes, KEY_IDENTITY) != 0;
}

/* Answers that are true for ever went into the memory. */
static void
cache_lasting(const struct egw_at *at, struct egw_slice key, struct egw_buf *value)
{
  if (is_of_chain(key))
    tiers_keep(((struct mine *)at->mine)->tiers, at, key, value);
}

static void
put(const struct egw_at *at, struct egw_slice key, struct egw_buf *value,
    const struct store_pin *pin)
{
  struct store_change change = { 0 };

  if (store_put(shared_of(at)->store, key, egw_buf_ref(value), pin, egw_now_ms(at->worker),
                &change))
    egw_count(at, METRIC_STORED, 1);
  count_change(at, &change);
}

/* Whether an entry is true now. One whose block has become final stays for ever; one whose block is not
 * canonical goes. */
static bool
holds(const struct egw_at *at, struct egw_slice key, const struct store_found *found)
{
  const struct egw_head *head = egw_head(at);
  struct shared *shared = shared_of(at);
  struct store_change change = { 0 };
  unsigned char hash[32];

  if (!found->pinned)
    return true;
  if (!egw_head_hash(head, found->pin.number, hash))
    return false;
  if (memcmp(hash, found->pin.hash, 32) != 0) {
    if (store_drop(shared->store, key, &found->pin, &change))
      egw_count(at, METRIC_REORGED, 1);
    count_change(at, &change);
    return false;
  }
  if (!plan_is_final(head, found->pin.number))
    return head->live;
  if (store_unpin(shared->store, key, &found->pin))
    cache_lasting(at, key, found->value);
  return true;
}

static struct egw_buf *
look_up(const struct egw_at *at, struct egw_slice key)
{
  struct store_found found;

  if (!store_get(shared_of(at)->store, key, &found))
    return NULL;
  if (holds(at, key, &found))
    return found.value;
  egw_buf_unref(found.value);
  return NULL;
}

static enum egw_verdict
hit(const struct egw_at *at, struct egw_call *call, struct egw_buf *value)
{
  egw_count(at, METRIC_HITS, 1);
  egw_count(at, METRIC_HIT_BYTES, (int64_t)egw_buf_slice(value).len);
  egw_set_cache_status(call, "hit");
  egw_explain(call, "cache: hit");
  return egw_answer_part(call, value, egw_buf_slice(value), false);
}

static enum egw_verdict
bypass(const struct egw_at *at, struct egw_call *call)
{
  egw_count(at, METRIC_BYPASSES, 1);
  egw_set_cache_status(call, "bypass");
  egw_explain(call, "cache: bypass");
  return EGW_NEXT;
}

/* --- on the way down ----------------------------------------------------------------------------------- */

static bool
tags_now(const struct cache *c, const struct egw_head *head)
{
  if (!head->known || !head->live || !head->settled)
    return false;
  return c->tags == TAGS_ALWAYS || (c->tags == TAGS_AUTO && head->pushed);
}

static enum egw_verdict
answer_tip(const struct egw_at *at, struct egw_call *call)
{
  const struct egw_head *head = egw_head(at);
  struct mine *mine = at->mine;

  if (!tags_now(at->self, head))
    return bypass(at, call);
  if (mine->tip == NULL || mine->tip_number != head->tip.number) {
    egw_buf_unref(mine->tip);
    mine->tip = egw_buf_new(24);
    mine->tip_number = head->tip.number;
    if (mine->tip == NULL ||
        egw_buf_printf(mine->tip, "\"0x%llx\"", (unsigned long long)head->tip.number) < 0) {
      egw_buf_unref(mine->tip);
      mine->tip = NULL;
      return bypass(at, call);
    }
  }
  return hit(at, call, egw_buf_ref(mine->tip));
}

/* Nothing was found: the call goes to the node, in other words where that is needed. */
static enum egw_verdict
cache_miss(const struct egw_at *at, struct egw_call *call)
{
  const struct method *m = method_of(at->mine, egw_method_info(call));
  struct state *state = at->state;
  struct egw_slice params;
  struct ask ask;

  egw_count(at, METRIC_MISSES, 1);
  egw_set_cache_status(call, "miss");
  state->params = egw_params(call);
  state->flushes = atomic_load(&shared_of(at)->flushes);
  if (state->plan.rewrite == REWRITE_NO) {
    egw_explain(call, "cache: miss");
    state->phase = PHASE_ASKED;
    return EGW_NEXT;
  }
  if (!ask_read(&m->rules, state->params, &ask))
    return EGW_NEXT;
  params = key_rewrite(call, &ask, &state->plan);
  if (params.ptr == NULL || egw_set_params(call, params) < 0)
    return EGW_NEXT; /* no memory: as it is, and it is not kept */
  egw_explain(call, "cache: miss, asked for block %llu by its %s",
              (unsigned long long)state->plan.number,
              state->plan.rewrite == REWRITE_HASH ? "hash" : "number");
  egw_count(at, METRIC_REWRITTEN, 1);
  state->phase = PHASE_REWRITTEN;
  return EGW_NEXT;
}

/* A final block's answer may be here under the block's hash, from before it was final. */
static struct egw_buf *
look_up_by_hash(const struct egw_at *at, struct egw_call *call, const struct rules_method *rules,
                const struct ask *ask)
{
  const struct state *state = at->state;
  struct key_identity identity;
  struct egw_buf *value;
  struct egw_slice key;
  struct plan plan;

  if (!plan_by_hash(&state->plan, egw_head(at), &plan))
    return NULL;
  key_identity(egw_head(at), &identity);
  key = key_make(call, &identity, rules, ask, &plan);
  value = key.ptr == NULL ? NULL : look_up(at, key);
  if (value != NULL) {
    put(at, state->key, value, NULL);
    cache_lasting(at, state->key, value);
  }
  return value;
}

/* What the tiers below said to a call that waited for them. */
static void
on_tiers(const struct egw_at *at, struct egw_call *call, struct egw_buf *value)
{
  const struct state *state = at->state;

  if (value == NULL) {
    egw_resume(call, cache_miss(at, call));
    return;
  }
  put(at, state->key, value, NULL);
  egw_resume(call, hit(at, call, value));
}

/* Not in memory: what can't change may be in the tiers below. Whether that is so of a transaction, only
 * its answer can tell. */
static enum egw_verdict
look_below(const struct egw_at *at, struct egw_call *call)
{
  struct state *state = at->state;

  if ((state->plan.lasting || state->plan.form == PLAN_ALL) && is_of_chain(state->key) &&
      tiers_look(((struct mine *)at->mine)->tiers, at, call, state->key, &state->wait, on_tiers))
    return EGW_WAIT;
  return cache_miss(at, call);
}

static void
cache_cancel(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  tiers_cancel(&((struct state *)at->state)->wait);
}

static enum egw_verdict
look(const struct egw_at *at, struct egw_call *call, const struct method *m)
{
  const struct egw_head *head = egw_head(at);
  struct state *state = at->state;
  struct plan_terms terms = { .head = head, .tags = tags_now(at->self, head),
                              .by_hash = egw_now_ms(at->worker) >= m->off_until };
  struct key_identity identity;
  struct egw_buf *value;
  struct ask ask;

  if (!ask_read(&m->rules, egw_params(call), &ask) ||
      !plan_make(&m->rules, &ask, &terms, &state->plan))
    return bypass(at, call);
  key_identity(head, &identity);
  state->key = key_make(call, &identity, &m->rules, &ask, &state->plan);
  if (state->key.ptr == NULL)
    return bypass(at, call);
  value = look_up(at, state->key);
  if (value == NULL)
    value = look_up_by_hash(at, call, &m->rules, &ask);
  return value != NULL ? hit(at, call, value) : look_below(at, call);
}

static enum egw_verdict
cache_request(const struct egw_at *at, struct egw_call *call)
{
  struct method *m = method_of(at->mine, egw_method_info(call));
  struct state *state = at->state;

  if (m->rules.control) {
    cache_flush(at, true);
    state->phase = PHASE_CONTROL;
    return EGW_NEXT;
  }
  if (egw_kind(call) == EGW_KIND_NOTIFICATION)
    return EGW_NEXT;
  return m->rules.tip ? answer_tip(at, call) : look(at, call, m);
}

/* --- on the way up ------------------------------------------------------------------------------------- */

/* An error that says that the node doesn't like the question, not what it found. */
static bool
is_refusal(int64_t code)
{
  return code == -32602 || code == -32600 || code == -32700 || code == -32004;
}

/* Whether an error would be the same had the question been the client's own: a revert is an answer, and
 * limits and unknown methods have nothing to do with the block. */
static bool
is_own_error(const struct egw_reply *reply)
{
  return reply->code == 3 || reply->code == -32005 || reply->code == -32601 ||
         reply->http_status == 429 ||
         (reply->message.ptr != NULL &&
          memmem(reply->message.ptr, reply->message.len, "revert", 6) != NULL);
}

/* The client's own question came back after a rewritten one had come to nothing. */
static void
learn(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct method *m = method_of(at->mine, egw_method_info(call));
  const struct state *state = at->state;
  uint64_t now = egw_now_ms(at->worker);

  if (state->plan.rewrite != REWRITE_HASH || reply->outcome != EGW_OK || reply->is_error)
    return;
  m->strikes++;
  if (!is_refusal(state->code) && m->strikes < STRIKES)
    return;
  m->off_until = now + (is_refusal(state->code) ? OFF_MS : OFF_SHORT_MS);
  m->strikes = 0;
  egw_count(at, METRIC_REFUSED, 1);
  egw_log(EGW_INFO, "cache", "%s: blocks are not given by hash for a while, a node refuses that",
          m->rules.info->name);
}

static enum egw_verdict
resend(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct state *state = at->state;

  if (egw_set_params(call, state->params) < 0)
    return egw_refuse(call, -32603, "out of memory");
  egw_count(at, METRIC_RESENT, 1);
  egw_explain(call, "cache: sent as it was asked");
  state->code = reply->is_error ? reply->code : 0;
  state->phase = PHASE_RESENT;
  return EGW_AGAIN;
}

/* Whether the node that answered has all blocks of the plan. */
static bool
is_archive(const struct egw_at *at, const struct plan *plan, const struct egw_reply *reply)
{
  uint64_t first = plan->form == PLAN_RANGE ? plan->first : plan->number;
  struct egw_upstream_info info;

  return reply->upstream_index != EGW_NO_UPSTREAM &&
         egw_upstream(at, reply->upstream_index, &info) && info.has_lowest &&
         info.lowest <= first;
}

/* A result of so many bytes is kept, if the chain is still the same and nothing was flushed. */
static bool
may_keep(const struct egw_at *at, const struct egw_reply *reply)
{
  const struct cache *c = at->self;
  const struct state *state = at->state;
  struct key_identity identity;

  key_identity(egw_head(at), &identity);
  return reply->body.len <= c->max_value &&
         state->flushes == atomic_load(&c->shared->flushes) &&
         memcmp(identity.bytes, state->key.ptr, KEY_IDENTITY) == 0;
}

static void
keep(const struct egw_at *at, const struct egw_reply *reply, enum plan_verdict verdict,
     const struct rules_block *block)
{
  const struct state *state = at->state;
  struct store_pin pin = { .number = block->number };
  /* A copy of its own size: the reply's buffer has its envelope and room to spare. */
  struct egw_buf *copy = egw_buf_copy(reply->body);

  if (copy == NULL)
    return;
  memcpy(pin.hash, block->hash, 32);
  put(at, state->key, copy, verdict == PLAN_KEEP_PINNED ? &pin : NULL);
  if (verdict == PLAN_KEEP_LASTING)
    cache_lasting(at, state->key, copy);
  egw_buf_unref(copy);
}

/* A result that came in. */
static enum egw_verdict
judge(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct method *m = method_of(at->mine, egw_method_info(call));
  struct state *state = at->state;
  struct rules_block pin = { .number = state->plan.number };
  enum plan_verdict verdict;
  struct ask ask;

  memcpy(pin.hash, state->plan.hash, 32);
  if (!ask_read(&m->rules, state->params, &ask))
    return EGW_NEXT;
  verdict = plan_result(&m->rules, &ask, &state->plan, egw_head(at), reply->body,
                        is_archive(at, &state->plan, reply), &pin);
  if (verdict == PLAN_WRONG && state->phase == PHASE_REWRITTEN)
    return resend(at, call, reply);
  if (state->plan.rewrite == REWRITE_HASH)
    m->strikes = 0;
  if (verdict >= PLAN_KEEP && may_keep(at, reply))
    keep(at, reply, verdict, &pin);
  return EGW_NEXT;
}

static enum egw_verdict
cache_reply(const struct egw_at *at, struct egw_call *call, const struct egw_reply *reply)
{
  struct state *state = at->state;
  enum egw_verdict verdict = EGW_NEXT;

  if (state->phase == PHASE_CONTROL)
    cache_flush(at, true);
  if (state->phase == PHASE_RESENT)
    learn(at, call, reply);
  if (state->phase != PHASE_ASKED && state->phase != PHASE_REWRITTEN)
    return EGW_NEXT;
  if (reply->outcome == EGW_OK && reply->is_error && state->phase == PHASE_REWRITTEN &&
      !is_own_error(reply))
    return resend(at, call, reply);
  if (reply->outcome == EGW_OK && !reply->is_error && !reply->partial)
    verdict = judge(at, call, reply);
  /* Stages above see the params they sent down. */
  if (verdict == EGW_NEXT && state->phase == PHASE_REWRITTEN &&
      egw_set_params(call, state->params) < 0)
    return egw_refuse(call, -32603, "out of memory");
  return verdict;
}

/* A command whose answer never came may have been carried out all the same. */
static void
cache_finish(const struct egw_at *at, struct egw_call *call)
{
  (void)call;
  if (((const struct state *)at->state)->phase == PHASE_CONTROL)
    cache_flush(at, true);
}

static const struct egw_middleware cache = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE),
              .name = "cache", .version = "1.1",
              .summary = "keep answers as long as they are true",
              .options = options, .metrics = metrics,
              .instance_size = sizeof(struct cache), .worker_size = sizeof(struct mine),
              .configure = cache_configure, .unconfigure = cache_unconfigure,
              .worker_start = cache_worker_start, .worker_stop = cache_worker_stop },
  .call_size = sizeof(struct state),
  .kinds = EGW_KIND_CALL | EGW_KIND_NOTIFICATION | EGW_KIND_SUBCALL,
  .need = EGW_NEED_WHOLE,
  .request = cache_request,
  .reply = cache_reply,
  .cancel = cache_cancel,
  .finish = cache_finish,
  .wants = cache_wants,
  .head = cache_head,
};
EGW_REGISTER(cache)
