/* SPDX-License-Identifier: MIT */
/* The shared tier: see share.h. */
#include "share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>

#define EPOCH_MS 1000u          /* how old what is known of it may be */
#define EPOCH_DIGITS 20u
#define PREFIX_MAX 128u
#define KEY_MAX (PREFIX_MAX + EPOCH_DIGITS + 2 * RECORD_DIGEST + 8)
#define IN_FLIGHT 1024u
#define UNSENT (16u << 20)
#define KEY_ROOM (1u << 20)     /* a record's key and head, on top of the longest value */
#define WRITE_FACTOR 50u        /* writes may take so many times longer than lookups... */
#define WRITE_MIN_MS 1000u      /* ...or so long */

struct share {
  const struct share_options *options;
  struct egw_worker *worker;
  struct redis_client *reads, *writes;
  char epoch[EPOCH_DIGITS + 1];
  bool known, asked;            /* the epoch; a question for it is under way */
  unsigned flushes;             /* of the options' common ones: when the epoch was asked for */
  uint64_t known_ms;
  bool raise, raising;          /* it is this worker's to raise; under way... */
  bool again;                   /* ...and once more after that */
  struct share_counts counts;
};

struct share_read {
  struct share *share;
  struct redis_ask *ask;
  share_fn *fn;
  void *arg;
  size_t key_len;
  char key[];
};

/* --- the epoch --------------------------------------------------------------------------- */

static bool
is_epoch(struct egw_slice text)
{
  size_t i;

  for (i = 0; i < text.len; i++)
    if (text.ptr[i] < '0' || text.ptr[i] > '9')
      return false;
  return text.len > 0 && text.len <= EPOCH_DIGITS;
}

static void
on_epoch(void *arg, const struct redis_answer *answer)
{
  struct share *s = arg;
  struct egw_slice text = answer->text;

  s->asked = false;
  if (answer->kind == REDIS_NIL)
    text = EGW_LIT("0");
  s->known = (answer->kind == REDIS_NIL || answer->kind == REDIS_STRING) && is_epoch(text);
  s->known_ms = egw_now_ms(s->worker);
  if (s->known)
    snprintf(s->epoch, sizeof s->epoch, "%.*s", (int)text.len, text.ptr);
  else if (answer->kind != REDIS_FAILED)
    s->counts.errors++;
}

/* What is read while it is being raised may be the old one, which on another connection comes
 * first. share_flush() counts in the other order, so that no flush is missed in between. */
static void
ask_epoch(struct share *s)
{
  unsigned flushes = atomic_load(&s->options->common->flushes);
  char name[PREFIX_MAX + 8];
  struct egw_slice args[2] = { EGW_LIT("GET"), { name, 0 } };

  if (s->asked || atomic_load(&s->options->common->raising) > 0)
    return;
  args[1].len = (size_t)snprintf(name, sizeof name, "%sepoch", s->options->prefix);
  s->flushes = flushes;
  s->asked = redis_ask(s->reads, args, 2, on_epoch, s) != NULL;
}

static void raise_epoch(struct share *s);

static void
on_ready(void *arg)
{
  ask_epoch(arg);
}

static void
on_raised(void *arg, const struct redis_answer *answer)
{
  struct share *s = arg;

  s->raising = false;
  if (answer->kind != REDIS_INTEGER) {
    s->counts.errors++;
    return; /* tried again by the next one that would use it */
  }
  if (s->again) {
    raise_epoch(s);
    return;
  }
  s->raise = false;
  atomic_fetch_sub(&s->options->common->raising, 1);
}

static void
raise_epoch(struct share *s)
{
  char name[PREFIX_MAX + 8];
  struct egw_slice args[2] = { EGW_LIT("INCR"), { name, 0 } };

  args[1].len = (size_t)snprintf(name, sizeof name, "%sepoch", s->options->prefix);
  s->again = false;
  s->raising = redis_ask(s->writes, args, 2, on_raised, s) != NULL;
}

static void
on_writes_ready(void *arg)
{
  struct share *s = arg;

  if (s->raise && !s->raising)
    raise_epoch(s);
}

void
share_flush(struct share *s)
{
  if (!s->raise)
    atomic_fetch_add(&s->options->common->raising, 1);
  s->raise = true;
  atomic_fetch_add(&s->options->common->flushes, 1);
  if (s->raising)
    s->again = true;
  else
    raise_epoch(s);
}

/* Whether the epoch is known well enough; if not, that is seen to. */
static bool
epoch_is_known(struct share *s)
{
  bool stale;

  if (s->raise && !s->raising)
    raise_epoch(s);
  if (atomic_load(&s->options->common->raising) > 0)
    return false;
  if (s->flushes != atomic_load(&s->options->common->flushes))
    s->known = false;
  stale = !s->known || egw_now_ms(s->worker) - s->known_ms > EPOCH_MS;
  if (stale)
    ask_epoch(s);
  return s->known;
}

/* --- keys -------------------------------------------------------------------------------- */

/* The length; 0: memory is short. */
static size_t
make_key(const struct share *s, struct egw_slice key, char out[KEY_MAX])
{
  static const char hex[] = "0123456789abcdef";
  unsigned char digest[RECORD_DIGEST];
  int n;
  unsigned i;

  if (record_digest(key, digest) < 0)
    return 0;
  n = snprintf(out, KEY_MAX, "%s1:%s:", s->options->prefix, s->epoch);
  if (n < 0 || (size_t)n > KEY_MAX - 2 * RECORD_DIGEST)
    return 0;
  for (i = 0; i < RECORD_DIGEST; i++) {
    out[n++] = hex[digest[i] >> 4];
    out[n++] = hex[digest[i] & 15];
  }
  return (size_t)n;
}

/* --- lookups ----------------------------------------------------------------------------- */

/* A copy of the value, if everything about it is right. */
static struct egw_buf *
open_record(const struct share_read *r, struct egw_slice bytes)
{
  struct egw_slice value;

  if (!record_read(r->share->options->codec, bytes, (struct egw_slice){ r->key, r->key_len },
                   &value) ||
      value.len > r->share->options->max_value || !egw_json_valid(value) ||
      egw_json_kind(value) == EGW_JSON_NULL)
    return NULL;
  return egw_buf_keep(value);
}

static void
on_answer(void *arg, const struct redis_answer *answer)
{
  struct share_read *r = arg;
  enum share_outcome outcome = SHARE_BAD;
  struct egw_buf *value = NULL;

  if (answer->kind == REDIS_FAILED)
    outcome = SHARE_LATE;
  else if (answer->kind == REDIS_NIL)
    outcome = SHARE_MISS;
  else if (answer->kind == REDIS_STRING)
    value = open_record(r, answer->text);
  if (value != NULL)
    outcome = SHARE_HIT;
  r->fn(r->arg, outcome, value);
  free(r);
}

struct share_read *
share_get(struct share *s, struct egw_slice key, share_fn *fn, void *arg)
{
  char name[KEY_MAX];
  struct egw_slice args[2] = { EGW_LIT("GET"), { name, 0 } };
  struct share_read *r;

  if (!epoch_is_known(s) || !redis_client_usable(s->reads))
    return NULL;
  args[1].len = make_key(s, key, name);
  r = args[1].len == 0 ? NULL : malloc(sizeof(*r) + key.len);
  if (r == NULL)
    return NULL;
  *r = (struct share_read){ .share = s, .fn = fn, .arg = arg, .key_len = key.len };
  memcpy(r->key, key.ptr, key.len);
  r->ask = redis_ask(s->reads, args, 2, on_answer, r);
  if (r->ask != NULL)
    return r;
  free(r);
  return NULL;
}

void
share_cancel(struct share_read *read)
{
  redis_cancel(read->ask);
  free(read);
}

/* --- writes ------------------------------------------------------------------------------ */

static void
on_stored(void *arg, const struct redis_answer *answer)
{
  struct share *s = arg;

  if (answer->kind == REDIS_STATUS)
    s->counts.stored++;
  else if (answer->kind == REDIS_FAILED)
    s->counts.dropped++;
  else
    s->counts.errors++;
}

static bool
send_record(struct share *s, struct egw_slice key, struct egw_slice value,
            struct egw_buf *room)
{
  size_t len = record_size(key.len, value.len);
  char *bytes = egw_buf_room(room, len);
  char name[KEY_MAX], ttl[24];
  struct egw_slice args[5] = { EGW_LIT("SET"), { name, 0 }, { NULL, 0 }, EGW_LIT("PX") };

  args[1].len = make_key(s, key, name);
  if (bytes == NULL || args[1].len == 0 ||
      record_write(s->options->codec, bytes, key, value) < 0)
    return false;
  args[2] = (struct egw_slice){ bytes, len };
  args[4].ptr = ttl;
  args[4].len = (size_t)snprintf(ttl, sizeof ttl, "%llu",
                                 (unsigned long long)s->options->ttl_ms);
  return redis_ask(s->writes, args, s->options->ttl_ms == 0 ? 3 : 5, on_stored, s) != NULL;
}

void
share_put(struct share *s, struct egw_slice key, struct egw_slice value)
{
  size_t len = record_size(key.len, value.len);
  struct egw_buf *room;

  if (len == 0 || len > s->options->max_value + KEY_ROOM || !epoch_is_known(s) ||
      !redis_client_usable(s->writes)) {
    s->counts.dropped++;
    return;
  }
  room = egw_buf_new(len);
  if (room == NULL || !send_record(s, key, value, room))
    s->counts.dropped++;
  egw_buf_unref(room);
}

/* --- life -------------------------------------------------------------------------------- */

struct share *
share_new(const struct share_options *options, struct egw_worker *worker)
{
  struct redis_options o = { .address = &options->address, .area = "cache",
                             .what = "redis (lookups)", .timeout_ms = options->timeout_ms,
                             .max_reply = options->max_value + KEY_ROOM,
                             .max_in_flight = IN_FLIGHT, .max_unsent = 1 << 20,
                             .ready = on_ready };
  struct share *s = calloc(1, sizeof(*s));

  if (s == NULL)
    return NULL;
  s->options = options;
  s->worker = worker;
  o.ready_arg = s;
  s->reads = redis_client_new(&o, worker);
  o.ready = on_writes_ready;
  o.what = "redis (writes)";
  o.timeout_ms *= WRITE_FACTOR;
  if (o.timeout_ms < WRITE_MIN_MS)
    o.timeout_ms = WRITE_MIN_MS;
  o.max_reply = 4096;
  o.max_unsent = UNSENT;
  s->writes = redis_client_new(&o, worker);
  if (s->reads != NULL && s->writes != NULL)
    return s;
  share_free(s);
  return NULL;
}

void
share_free(struct share *s)
{
  if (s == NULL)
    return;
  redis_client_free(s->reads);
  redis_client_free(s->writes);
  free(s);
}

void
share_take_counts(struct share *s, struct share_counts *out)
{
  *out = s->counts;
  s->counts = (struct share_counts){ 0 };
}
