/* SPDX-License-Identifier: MIT */
/* What upstreams say, and whether two say the same. */
#include "quorum.h"

#include <string.h>
#include <strings.h>
#include <ethrpc-gw/json.h>

#define CODE_REVERT 3
#define CODE_REVERT_PARITY (-32015)

static bool
has_text(struct egw_slice in, const char *text)
{
  return in.ptr != NULL && memmem(in.ptr, in.len, text, strlen(text)) != NULL;
}

/* The call ran and was reverted: that is an answer. Any other error says there is none. */
static bool
is_revert(const struct egw_reply *reply)
{
  return reply->code == CODE_REVERT || reply->code == CODE_REVERT_PARITY ||
         has_text(reply->message, "execution reverted") ||
         has_text(reply->message, "VM Exception while processing transaction: revert");
}

/* The network has the block, but this upstream does not: it says null, or answers a filter as
 * if there were nothing in it. */
static bool
lacks_block(const struct ballot *ballot, const struct vote *vote)
{
  struct egw_upstream_info info;

  if (!ballot->exists)
    return false;
  if (egw_json_kind(vote->body) == EGW_JSON_NULL)
    return true;
  return ballot->is_filter && egw_upstream(&ballot->at, vote->upstream, &info) &&
         info.has_head && info.head < ballot->need;
}

static enum said
said_by(const struct ballot *ballot, const struct vote *vote, const struct egw_reply *reply)
{
  enum said none = ballot->recent ? SAID_LATE : SAID_ERROR;

  if (reply->is_error)
    return is_revert(reply) ? SAID_REVERT : none;
  return lacks_block(ballot, vote) ? none : SAID_RESULT;
}

void
vote_take(const struct ballot *ballot, struct vote *vote, const struct egw_reply *reply)
{
  if (reply->outcome != EGW_OK || reply->partial || reply->buf == NULL) {
    vote->said = SAID_NOTHING;
    return;
  }
  vote->buf = egw_buf_ref(reply->buf);
  vote->body = reply->body;
  vote->data = reply->data;
  vote->said = said_by(ballot, vote, reply);
}

/* The hex digits of a revert's data: "0x08..", "Reverted 0x08.."; null and "0x" are none. */
static struct egw_slice
revert_digits(struct egw_slice data)
{
  const char *x;

  if (egw_json_kind(data) != EGW_JSON_STRING)
    return (struct egw_slice){ "", 0 };
  x = memmem(data.ptr, data.len, "0x", 2);
  if (x == NULL)
    return (struct egw_slice){ "", 0 };
  x += 2; /* up to the closing quote: */
  return (struct egw_slice){ x, data.len - 1 - (size_t)(x - data.ptr) };
}

static bool
same_revert(const struct vote *a, const struct vote *b)
{
  struct egw_slice x = revert_digits(a->data), y = revert_digits(b->data);

  return x.len == y.len && strncasecmp(x.ptr, y.ptr, x.len) == 0;
}

/* Of a result, made when it is needed: mostly the bytes are equal. */
static bool
print_of(const struct quorum *q, struct vote *vote)
{
  if (!vote->has_print)
    vote->has_print = fingerprint(&q->key, vote->body, &q->ignore, &vote->print) == 0;
  return vote->has_print;
}

static bool
same(const struct quorum *q, struct vote *a, struct vote *b)
{
  if (a->said != b->said)
    return false;
  if (a->said == SAID_REVERT)
    return same_revert(a, b);
  if (a->body.len == b->body.len && memcmp(a->body.ptr, b->body.ptr, a->body.len) == 0)
    return true;
  return print_of(q, a) && print_of(q, b) && fingerprint_same(&a->print, &b->print);
}

void
vote_group(const struct quorum *q, struct ballot *ballot, struct vote *vote)
{
  unsigned self = (unsigned)(vote - ballot->votes), i;

  vote->group = self;
  if (!vote_counts(vote))
    return;
  for (i = 0; i < ballot->cast; i++) {
    struct vote *other = &ballot->votes[i];

    if (i != self && vote_counts(other) && same(q, other, vote)) {
      vote->group = other->group;
      return;
    }
  }
}

void
ballot_tally(const struct ballot *ballot, struct tally *out)
{
  unsigned counts[UPSTREAMS_MAX] = { 0 }, i;

  memset(out, 0, sizeof *out);
  for (i = 0; i < ballot->cast; i++) {
    const struct vote *vote = &ballot->votes[i];

    out->errors += vote->said == SAID_ERROR || vote->said == SAID_LATE;
    out->late += vote->said == SAID_LATE;
    if (!vote_counts(vote))
      continue;
    out->votes++;
    out->groups += counts[vote->group]++ == 0;
  }
  for (i = 0; i < ballot->cast; i++)
    if (counts[i] > out->best_count) {
      out->best = i;
      out->best_count = counts[i];
    }
}
