/* SPDX-License-Identifier: MIT */
/* Joining: the elements' bytes are copied as they are. Parts of a group, which have results
 * of the same blocks, are put in order by block and index. */
#include "parts.h"

#include <stdlib.h>
#include <ethrpc-gw/json.h>

struct element {
  uint64_t block, index;
  struct egw_slice text;
};

struct elements {
  struct element *all;
  size_t count, room;
};

static int
add_element(struct elements *e, struct egw_slice text)
{
  struct element *one;

  if (e->count == e->room) {
    size_t room = e->room == 0 ? 64 : e->room * 2;
    struct element *all = reallocarray(e->all, room, sizeof(*all));

    if (all == NULL)
      return -1;
    e->all = all;
    e->room = room;
  }
  one = &e->all[e->count++];
  *one = (struct element){ .text = text };
  if (egw_json_u64(egw_json_member(text, "blockNumber"), &one->block) < 0 ||
      egw_json_u64(egw_json_member(text, "logIndex"), &one->index) < 0)
    one->block = one->index = UINT64_MAX; /* it can't be placed: at the end */
  return 0;
}

static int
collect(struct elements *e, const struct part *first, unsigned group)
{
  const struct part *part;

  for (part = first; part != NULL && part->group == group; part = part->next) {
    struct egw_slice key, value;
    size_t cursor = 0;

    while (egw_json_next(part->array, &cursor, &key, &value))
      if (add_element(e, value) < 0)
        return -1;
  }
  return 0;
}

static int
compare(const void *left, const void *right)
{
  const struct element *a = left, *b = right;

  if (a->block != b->block)
    return a->block < b->block ? -1 : 1;
  if (a->index != b->index)
    return a->index < b->index ? -1 : 1;
  return a->text.ptr < b->text.ptr ? -1 : a->text.ptr > b->text.ptr;
}

static int
append(struct egw_buf *out, struct egw_slice text)
{
  if (text.len == 0)
    return 0;
  if (egw_buf_slice(out).len > 1 && egw_buf_append(out, ",", 1) < 0)
    return -1;
  return egw_buf_append(out, text.ptr, text.len);
}

/* An address that the client named twice gives its logs twice: once is right. */
static int
append_group(struct egw_buf *out, const struct part *first)
{
  struct elements e = { 0 };
  int r = collect(&e, first, first->group);
  size_t i;

  if (r == 0 && e.count > 1)
    qsort(e.all, e.count, sizeof(*e.all), compare);
  for (i = 0; r == 0 && i < e.count; i++)
    if (i == 0 || e.all[i].index == UINT64_MAX || e.all[i].block != e.all[i - 1].block ||
        e.all[i].index != e.all[i - 1].index)
      r = append(out, e.all[i].text);
  free(e.all);
  return r;
}

struct egw_buf *
parts_join(const struct parts *parts)
{
  const struct part *part;
  struct egw_buf *out;
  size_t bytes = 2;
  unsigned group = 0;
  int r;

  for (part = parts->first; part != NULL; part = part->next)
    bytes += part->inner.len + 1;
  out = egw_buf_new(bytes);
  if (out == NULL)
    return NULL;
  r = egw_buf_append(out, "[", 1);
  for (part = parts->first; part != NULL && r == 0; part = part->next) {
    if (part->group == 0)
      r = append(out, part->inner);
    else if (part->group != group)
      r = append_group(out, part);
    group = part->group;
  }
  if (r < 0 || egw_buf_append(out, "]", 1) < 0) {
    egw_buf_unref(out);
    return NULL;
  }
  return out;
}
