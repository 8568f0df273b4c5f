/* SPDX-License-Identifier: MIT */
/* The reply to an array: whose each element is, and what it means when there is no array. */
#include <string.h>
#include "base/buf.h"
#include "upstream/parts.h"

#define TEXT_MAX 512u /* bytes of a refusal that are looked at */

/* --- refusals ------------------------------------------------------------------------ */

static bool
mentions(const char *text, const char *const *words)
{
  for (; *words != NULL; words++)
    if (strcasestr(text, *words) != NULL)
      return true;
  return false;
}

/* There is no code for it that nodes agree on (-32005, -32007, -32010, -32011, -32600 are
 * used), so the words decide; where they don't, nothing is learned from one reply. */
static enum objection
objection_words(struct egw_slice raw)
{
  static const char *const rate[] = { "rate", "per second", "requests per", "quota", "credits",
                                      "capacity", NULL };
  static const char *const never[] = { "not supported", "unsupported", "disabled",
      "not enabled",
                                       "not allowed", "forbidden", NULL };
  static const char *const size[] = { "too large", "too big", "too many", "too long", "limit",
                                      "exceed", "maximum", "max ", NULL };
  char text[TEXT_MAX + 1];
  size_t len = raw.len < TEXT_MAX ? raw.len : TEXT_MAX;

  if (raw.ptr == NULL)
    return OBJECTION_UNCLEAR;
  memcpy(text, raw.ptr, len);
  text[len] = '\0';
  if (mentions(text, rate))
    return OBJECTION_UNCLEAR;
  if (mentions(text, never))
    return OBJECTION_ARRAYS;
  return mentions(text, size) ? OBJECTION_SMALLER : OBJECTION_UNCLEAR;
}

enum objection
objection_of(struct egw_slice text, int status)
{
  bool json = text.ptr != NULL && egw_json_kind(text) == EGW_JSON_OBJECT;

  if (status == 429 || status == 503)
    return OBJECTION_NONE; /* it has other worries */
  if (status == 413)
    return OBJECTION_SMALLER;
  if (status >= 500 && !json)
    return OBJECTION_NONE; /* a proxy speaking for a node that is away */
  return objection_words(text);
}

bool
objection_in(const struct rpc_reply *reply)
{
  char text[TEXT_MAX];
  long len;

  if (reply->kind != RPC_REPLY_ERROR || reply->code == 3 || reply->message.ptr == NULL)
    return false;
  len = egw_json_string(reply->message, text, sizeof(text) - 1);
  if (len < 0)
    return false;
  text[len] = '\0';
  return strcasestr(text, "batch") != NULL || strcasestr(text, "response too large") != NULL;
}

/* --- dealing out --------------------------------------------------------------------- */

/* Most nodes keep the order, so `likely` is tried first. */
static struct egw_xchg *
find(const struct array *a, uint64_t id, size_t likely)
{
  unsigned i;

  if (likely < a->count && a->members[likely] != NULL && a->members[likely]->id == id)
    return a->members[likely];
  for (i = 0; i < a->count; i++)
    if (a->members[i] != NULL && a->members[i]->id == id)
      return a->members[i];
  return NULL;
}

static enum objection
part_refused(struct inbound *part)
{
  struct rpc_reply reply;

  if (part->parser.error_kind != EGW_JSON_OBJECT)
    return OBJECTION_NONE;
  inbound_judge(part, &reply);
  return objection_in(&reply) ? objection_words(reply.message) : OBJECTION_NONE;
}

/* One element to its member; a made-up or second one to nobody. */
static void
deal_one(struct array *a, size_t at, enum objection *refused)
{
  const struct egw_xchg *carrier = a->carrier;
  struct inbound part = { 0 };
  struct egw_xchg *x = NULL;
  enum objection how;
  uint64_t id;

  if (inbound_take(&part, carrier->in.buf, a->elements.items[at]) &&
      rpc_reply_early_id(&part.parser, NULL, &id))
    x = find(a, id, at);
  how = x != NULL ? part_refused(&part) : OBJECTION_NONE;
  if (how != OBJECTION_NONE)
    *refused = how;
  if (x == NULL || how != OBJECTION_NONE) {
    inbound_end(&part, a->link->worker->gateway);
    return;
  }
  batch_leave(x);
  x->in = part;
  x->http_status = carrier->http_status;
  x->retry_after_ms = carrier->retry_after_ms;
  xchg_complete(x, EGW_OK, NULL);
}

void
array_deal(struct array *a, enum objection *refused)
{
  size_t i, n = a->elements.count < a->elements.room ? a->elements.count : a->elements.room;

  *refused = OBJECTION_NONE;
  for (i = 0; i < n && a->left != 0; i++)
    deal_one(a, i, refused);
}
