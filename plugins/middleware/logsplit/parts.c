/* SPDX-License-Identifier: MIT */
/* Cutting. */
#include "split.h"

#define BLOCKS_MAX 128u

static struct part *
part_new(struct parts *parts, struct split *split, struct egw_call *call,
         const struct filter_part *what)
{
  struct part *part = egw_alloc(call, sizeof(*part));

  if (part == NULL)
    return NULL;
  part->split = split;
  part->what = *what;
  parts->count++;
  return part;
}

int
parts_make(struct parts *parts, struct split *split, uint64_t size, uint64_t tail)
{
  uint64_t from = split->filter.from, to = split->filter.to;
  uint64_t before = tail > from && tail <= to ? tail - 1 : to; /* the last block to be cut */
  struct part **end = &parts->first;

  if (tail > from && before / size - from / size >= parts->max)
    return 1;
  for (;;) {
    uint64_t left = size - 1 - from % size; /* to the end of this piece */
    struct filter_part what = { .from = from, .to = to };

    if (from < tail)
      what.to = left < before - from ? from + left : before;
    if (parts->count == parts->max)
      return 1;
    *end = part_new(parts, split, split->call, &what);
    if (*end == NULL)
      return -1;
    end = &(*end)->next;
    if (what.to == to)
      return 0;
    from = what.to + 1;
  }
}

/* Puts a copy of `part`, for `what`, behind it. */
static struct part *
insert(struct parts *parts, struct part *part, struct egw_call *call,
       const struct filter_part *what)
{
  struct part *one = part_new(parts, part->split, call, what);

  if (one == NULL)
    return NULL;
  one->group = part->group;
  one->next = part->next;
  part->next = one;
  return one;
}

static enum cut
cut_range(struct parts *parts, struct part *part, struct egw_call *call,
          const struct complaint *why)
{
  uint64_t from = part->what.from, to = part->what.to, span = to - from;
  unsigned room = parts->max > parts->count ? parts->max - parts->count : 0;
  uint64_t size = why->blocks != 0 && why->blocks <= span ? why->blocks : span / 2 + 1;
  struct part *at = part;

  if (span == 0)
    return CUT_NOT;
  if (span / size > room && why->kind != COMPLAINT_RANGE)
    size = span / 2 + 1; /* a proposal for the densest place need not hold for all */
  if (span / size > room)
    return CUT_TOO_MANY;
  part->what.to = from + size - 1;
  while (at->what.to != to) {
    struct filter_part what = part->what;

    what.from = at->what.to + 1;
    what.to = size - 1 < to - what.from ? what.from + size - 1 : to;
    at = insert(parts, at, call, &what);
    if (at == NULL)
      return CUT_NO_MEMORY;
  }
  return CUT_DONE;
}

/* Both halves have results of the same blocks. */
static enum cut
halve(struct parts *parts, struct part *part, struct egw_call *call,
      const struct filter_part *first, const struct filter_part *second)
{
  if (parts->count >= parts->max)
    return CUT_TOO_MANY;
  if (part->group == 0)
    part->group = ++parts->groups;
  part->what = *first;
  return insert(parts, part, call, second) != NULL ? CUT_DONE : CUT_NO_MEMORY;
}

static enum cut
cut_filter(struct parts *parts, struct part *part, struct egw_call *call,
           const struct filter *filter)
{
  struct filter_part a = part->what, b = part->what;
  size_t addresses = a.addresses != 0 ? a.addresses
                     : filter->address.ptr != NULL ? filter->addresses : 0;
  size_t topics = a.topics != 0 ? a.topics
                  : filter->first_topic.ptr != NULL ? filter->alternatives : 0;

  if (addresses >= 2) {
    a.addresses = addresses / 2;
    b.address = a.address + a.addresses;
    b.addresses = addresses - a.addresses;
  } else if (topics >= 2) {
    a.topics = topics / 2;
    b.topic = a.topic + a.topics;
    b.topics = topics - a.topics;
  } else {
    return CUT_NOT;
  }
  return halve(parts, part, call, &a, &b);
}

enum cut
parts_cut(struct parts *parts, struct part *part, struct egw_call *call,
          const struct filter *filter, const struct complaint *why)
{
  enum cut cut;

  part->tries = 0;
  if (why->kind == COMPLAINT_FILTER) {
    cut = cut_filter(parts, part, call, filter);
    return cut != CUT_NOT ? cut : cut_range(parts, part, call, why);
  }
  cut = cut_range(parts, part, call, why);
  return cut != CUT_NOT ? cut : cut_filter(parts, part, call, filter);
}

static bool
blocks_known(const struct filter_part *what, const struct egw_head *head)
{
  unsigned char hash[32];
  uint64_t n;

  if (!head->known || what->to > head->tip.number || what->to - what->from >= BLOCKS_MAX)
    return false;
  for (n = what->from; n <= what->to; n++)
    if (!egw_head_hash(head, n, hash))
      return false;
  return true;
}

enum cut
parts_cut_blocks(struct parts *parts, struct part *part, struct egw_call *call,
                 const struct egw_head *head)
{
  struct filter_part what = part->what;
  uint64_t to = what.to;

  if (!blocks_known(&what, head))
    return CUT_NOT;
  if (to - what.from > parts->max - parts->count)
    return CUT_TOO_MANY;
  what.by_hash = true;
  for (;;) {
    what.to = what.from;
    (void)egw_head_hash(head, what.from, what.hash);
    part->what = what;
    if (what.from++ == to)
      return CUT_DONE;
    part = insert(parts, part, call, &what);
    if (part == NULL)
      return CUT_NO_MEMORY;
  }
}

void
parts_clear(struct parts *parts)
{
  struct part *part;

  for (part = parts->first; part != NULL; part = part->next) {
    egw_buf_unref(part->buf);
    part->buf = NULL;
  }
  parts->first = NULL;
  parts->count = 0;
}
