/* SPDX-License-Identifier: MIT */
/* Reading and printing filters. */
#include "filter.h"

#include <inttypes.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>

/* Members that are read here: each may be there once. "after" and "count" page through the
 * results of the whole range, which parts can't know. */
enum member { FROM, TO, HASH, ADDRESS, TOPICS, AFTER, COUNT, MEMBERS };
static const char *const member_names[MEMBERS] = {
  "fromBlock", "toBlock", "blockHash", "address", "topics", "after", "count"
};

static bool
read_members(struct egw_slice object, struct egw_slice found[MEMBERS])
{
  struct egw_slice key, value;
  size_t cursor = 0;
  unsigned i;

  while (egw_json_next(object, &cursor, &key, &value))
    for (i = 0; i < MEMBERS; i++) {
      if (!egw_json_equals(key, member_names[i]))
        continue;
      if (found[i].ptr != NULL)
        return false;
      found[i] = value;
    }
  return true;
}

static bool
is_absent(struct egw_slice value)
{
  return value.ptr == NULL || egw_json_kind(value) == EGW_JSON_NULL;
}

/* A number, or a tag that the head knows. What is left out is the latest block. */
static bool
resolve(struct egw_slice value, const struct egw_head *head, uint64_t *number)
{
  if (!is_absent(value) && egw_json_kind(value) != EGW_JSON_STRING)
    return false;
  if (!is_absent(value) && egw_json_u64(value, number) == 0)
    return true;
  if (egw_json_equals(value, "earliest")) {
    *number = 0;
    return true;
  }
  if (!head->known)
    return false;
  if (is_absent(value) || egw_json_equals(value, "latest"))
    *number = head->tip.number;
  else if (egw_json_equals(value, "safe") && head->has_safe)
    *number = head->safe.number;
  else if (egw_json_equals(value, "finalized") && head->has_finalized)
    *number = head->finalized.number;
  else
    return false;
  return true;
}

/* An end above the tip, as far as that is known: nodes may know of more, or say that there are
 * no such blocks. Then it goes down as it is written. */
static struct egw_slice
end_above(struct egw_slice to, uint64_t number, const struct egw_head *head)
{
  if (!head->known)
    return (struct egw_slice){ NULL, 0 };
  if (number > head->tip.number)
    return to;
  if (head->settled || (!is_absent(to) && !egw_json_equals(to, "latest")))
    return (struct egw_slice){ NULL, 0 };
  return EGW_LIT("\"latest\"");
}

static size_t
count_elements(struct egw_slice array)
{
  struct egw_slice key, value;
  size_t cursor = 0, n = 0;

  while (egw_json_next(array, &cursor, &key, &value))
    n++;
  return n;
}

/* An array of two elements or more, or missing. */
static struct egw_slice
alternatives_of(struct egw_slice value, size_t *count)
{
  *count = egw_json_kind(value) == EGW_JSON_ARRAY ? count_elements(value) : 0;
  return *count >= 2 ? value : (struct egw_slice){ NULL, 0 };
}

bool
filter_read(struct filter *filter, struct egw_slice params, const struct egw_head *head)
{
  struct egw_slice found[MEMBERS] = { { NULL, 0 } };

  *filter = (struct filter){ .params = params };
  if (egw_json_kind(params) != EGW_JSON_ARRAY)
    return false;
  filter->object = egw_json_element(params, 0);
  if (egw_json_kind(filter->object) != EGW_JSON_OBJECT ||
      !read_members(filter->object, found) ||
      !is_absent(found[HASH]) || found[AFTER].ptr != NULL || found[COUNT].ptr != NULL ||
      !resolve(found[FROM], head, &filter->from) || !resolve(found[TO], head, &filter->to))
    return false;
  filter->last = end_above(found[TO], filter->to, head);
  if (head->known && filter->to > head->tip.number)
    filter->to = head->tip.number;
  if (filter->from > filter->to)
    return false;
  filter->address = alternatives_of(found[ADDRESS], &filter->addresses);
  if (egw_json_kind(found[TOPICS]) == EGW_JSON_ARRAY) {
    filter->topics = found[TOPICS];
    filter->first_topic =
        alternatives_of(egw_json_element(found[TOPICS], 0), &filter->alternatives);
  }
  return true;
}

static int
append(struct egw_buf *out, struct egw_slice bytes)
{
  return egw_buf_append(out, bytes.ptr, bytes.len);
}

/* `count` elements of an array, from `first` on. */
static int
print_some(struct egw_buf *out, struct egw_slice array, size_t first, size_t count)
{
  struct egw_slice key, value;
  size_t cursor = 0, i = 0;

  if (egw_buf_append(out, "[", 1) < 0)
    return -1;
  for (; egw_json_next(array, &cursor, &key, &value) && i < first + count; i++)
    if (i >= first &&
        ((i > first && egw_buf_append(out, ",", 1) < 0) || append(out, value) < 0))
      return -1;
  return egw_buf_append(out, "]", 1);
}

static int
print_topics(const struct filter *filter, const struct filter_part *part, struct egw_buf *out)
{
  struct egw_slice key, value;
  size_t cursor = 0;
  bool first = true;

  if (egw_buf_append(out, "[", 1) < 0)
    return -1;
  while (egw_json_next(filter->topics, &cursor, &key, &value)) {
    if (first ? print_some(out, value, part->topic, part->topics) < 0
              : egw_buf_append(out, ",", 1) < 0 || append(out, value) < 0)
      return -1;
    first = false;
  }
  return egw_buf_append(out, "]", 1);
}

static int
print_member(const struct filter *filter, const struct filter_part *part,
             struct egw_slice key, struct egw_slice value, struct egw_buf *out)
{
  if (egw_json_equals(key, member_names[FROM]) || egw_json_equals(key, member_names[TO]) ||
      egw_json_equals(key, member_names[HASH]))
    return 0;
  if (egw_buf_append(out, ",", 1) < 0 || append(out, key) < 0 ||
      egw_buf_append(out, ":", 1) < 0)
    return -1;
  if (part->addresses != 0 && value.ptr == filter->address.ptr)
    return print_some(out, value, part->address, part->addresses);
  if (part->topics != 0 && value.ptr == filter->topics.ptr)
    return print_topics(filter, part, out);
  return append(out, value);
}

/* Which blocks. */
static int
print_blocks(const struct filter *filter, const struct filter_part *part, struct egw_buf *out)
{
  char text[2 * sizeof(part->hash) + 3];

  if (part->by_hash) {
    egw_hex_print(part->hash, sizeof(part->hash), text);
    return egw_buf_printf(out, "\"blockHash\":\"%s\"", text);
  }
  if (egw_buf_printf(out, "\"fromBlock\":\"0x%" PRIx64 "\",\"toBlock\":", part->from) < 0)
    return -1;
  if (filter->last.ptr != NULL && part->to == filter->to)
    return append(out, filter->last);
  return egw_buf_printf(out, "\"0x%" PRIx64 "\"", part->to);
}

int
filter_print(const struct filter *filter, const struct filter_part *part, struct egw_buf *out)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  if (egw_buf_append(out, "[{", 2) < 0 || print_blocks(filter, part, out) < 0)
    return -1;
  while (egw_json_next(filter->object, &cursor, &key, &value))
    if (print_member(filter, part, key, value, out) < 0)
      return -1;
  if (egw_buf_append(out, "}", 1) < 0)
    return -1;
  cursor = 0;
  (void)egw_json_next(filter->params, &cursor, &key, &value); /* the filter itself */
  while (egw_json_next(filter->params, &cursor, &key, &value))
    if (egw_buf_append(out, ",", 1) < 0 || append(out, value) < 0)
      return -1;
  return egw_buf_append(out, "]", 1);
}
