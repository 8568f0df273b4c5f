/* SPDX-License-Identifier: MIT */
/* From tags to block numbers. */
#include "resolve.h"

#include <ethrpc-gw/json.h>

#define BELIEVED 128u /* a node that is further above the tip is not believed */

enum tag { TAG_NONE, TAG_NUMBER, TAG_UNKNOWN };

/* What tags mean. */
struct tags {
  const struct egw_head *head;
  uint64_t latest;
};

uint64_t
resolve_latest(const struct egw_at *at)
{
  const struct egw_head *head = egw_head(at);
  uint64_t latest = head->tip.number;
  struct egw_upstream_info info;
  unsigned i;

  for (i = 0; egw_upstream(at, i, &info); i++)
    if (info.has_head && info.head > latest && info.head - head->tip.number <= BELIEVED)
      latest = info.head;
  return latest;
}

/* What a block reference is that is no object. A missing one, and null: the latest block. */
static enum tag
tag_of(const struct tags *tags, struct egw_slice value, uint64_t *number)
{
  const struct egw_head *head = tags->head;
  enum egw_json_kind kind = egw_json_kind(value);

  if (kind == EGW_JSON_NONE || kind == EGW_JSON_NULL || egw_json_equals(value, "latest"))
    *number = tags->latest;
  else if (egw_json_equals(value, "safe") && head->has_safe)
    *number = head->safe.number;
  else if (egw_json_equals(value, "finalized") && head->has_finalized)
    *number = head->finalized.number;
  else if (egw_json_equals(value, "safe") || egw_json_equals(value, "finalized") ||
           egw_json_equals(value, "pending"))
    return TAG_UNKNOWN;
  else
    return TAG_NONE;
  return head->known ? TAG_NUMBER : TAG_UNKNOWN;
}

static int
put_number(struct egw_buf *out, uint64_t number)
{
  return egw_buf_printf(out, "\"0x%llx\"", (unsigned long long)number);
}

/* Appends one more item of an array or object. */
static int
put(struct egw_buf *out, struct egw_slice key, struct egw_slice value)
{
  if (egw_buf_slice(out).len > 1 && egw_buf_append(out, ",", 1) != 0)
    return -1;
  if (key.ptr != NULL &&
      (egw_buf_append(out, key.ptr, key.len) != 0 || egw_buf_append(out, ":", 1) != 0))
    return -1;
  return egw_buf_append(out, value.ptr, value.len);
}

/* The array with element `index` replaced, or added behind the last. */
static enum resolved
replace(struct egw_slice params, size_t index, struct egw_slice with, struct egw_buf **out)
{
  struct egw_buf *buf = egw_buf_new(params.len + with.len + 4);
  struct egw_slice key, value, none = { NULL, 0 };
  size_t cursor = 0, i = 0;
  bool good = buf != NULL && egw_buf_append(buf, "[", 1) == 0;

  for (; good && egw_json_next(params, &cursor, &key, &value); i++)
    good = put(buf, none, i == index ? with : value) == 0;
  if (good && i <= index)
    good = put(buf, none, with) == 0;
  if (!good || egw_buf_append(buf, "]", 1) != 0) {
    egw_buf_unref(buf);
    return RESOLVED_NO_MEMORY;
  }
  *out = buf;
  return RESOLVED_NEW;
}

static enum resolved
replace_number(struct egw_slice params, size_t index, uint64_t number, struct egw_buf **out)
{
  struct egw_buf *text = egw_buf_new(32);
  enum resolved r = RESOLVED_NO_MEMORY;

  if (text != NULL && put_number(text, number) == 0)
    r = replace(params, index, egw_buf_slice(text), out);
  egw_buf_unref(text);
  return r;
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

/* A number, a tag, a hash, or an object of EIP-1898. */
static enum resolved
resolve_block(const struct tags *tags, const struct egw_method_info *info,
              struct egw_slice params, struct egw_buf **out, uint64_t *need)
{
  size_t index = (size_t)info->block_param;
  struct egw_slice block = egw_json_element(params, index);
  uint64_t number;

  if (block.ptr == NULL &&
      (info->block_kind != EGW_BLOCK_ID || count_elements(params) != index))
    return RESOLVED_AS_IS; /* for the upstreams to refuse */
  if (egw_json_kind(block) == EGW_JSON_OBJECT) {
    struct egw_slice inner = egw_json_member(block, "blockNumber");

    if (inner.ptr == NULL)
      return RESOLVED_AS_IS;
    block = inner;
  }
  switch (tag_of(tags, block, &number)) {
  case TAG_NUMBER:
    *need = number;
    return replace_number(params, index, number, out);
  case TAG_UNKNOWN:
    return RESOLVED_NOT;
  case TAG_NONE:
    break;
  }
  if (block.len < 64 && egw_json_u64(block, &number) == 0)
    *need = number;
  return RESOLVED_AS_IS;
}

/* One end of a filter's range: into `out` as a member. 1: it was a tag, 0: not, -1: no memory,
 * -2: it can't be said. */
static int
resolve_end(const struct tags *tags, struct egw_slice filter, const char *name,
            struct egw_buf *out, uint64_t *need)
{
  struct egw_slice value = egw_json_member(filter, name);
  uint64_t number;
  enum tag tag = tag_of(tags, value, &number);

  if (tag == TAG_UNKNOWN)
    return -2;
  if (egw_buf_slice(out).len > 1 && egw_buf_append(out, ",", 1) != 0)
    return -1;
  if (egw_buf_printf(out, "\"%s\":", name) != 0)
    return -1;
  if (tag == TAG_NONE) {
    if (egw_json_u64(value, &number) == 0 && number > *need)
      *need = number;
    return egw_buf_append(out, value.ptr, value.len);
  }
  if (number > *need)
    *need = number;
  return put_number(out, number) == 0 ? 1 : -1;
}

static int
copy_rest(struct egw_slice filter, struct egw_buf *out)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  while (egw_json_next(filter, &cursor, &key, &value))
    if (!egw_json_equals(key, "fromBlock") && !egw_json_equals(key, "toBlock") &&
        put(out, key, value) != 0)
      return -1;
  return 0;
}

/* A filter object. */
static enum resolved
resolve_filter(const struct tags *tags, size_t index, struct egw_slice params,
               struct egw_buf **out, uint64_t *need)
{
  struct egw_slice filter = egw_json_element(params, index);
  enum resolved r = RESOLVED_NO_MEMORY;
  struct egw_buf *text;
  int from = -1, to = -1;

  if (egw_json_kind(filter) != EGW_JSON_OBJECT ||
      egw_json_member(filter, "blockHash").ptr != NULL)
    return RESOLVED_AS_IS;
  text = egw_buf_new(filter.len + 64);
  if (text != NULL && egw_buf_append(text, "{", 1) == 0 && copy_rest(filter, text) == 0) {
    from = resolve_end(tags, filter, "fromBlock", text, need);
    to = from < 0 ? from : resolve_end(tags, filter, "toBlock", text, need);
  }
  if (to == -2)
    r = RESOLVED_NOT;
  else if (to >= 0 && from + to == 0)
    r = RESOLVED_AS_IS;
  else if (to >= 0 && egw_buf_append(text, "}", 1) == 0)
    r = replace(params, index, egw_buf_slice(text), out);
  egw_buf_unref(text);
  return r;
}

enum resolved
resolve_params(const struct egw_head *head, uint64_t latest,
               const struct egw_method_info *info, struct egw_slice params,
               struct egw_buf **out, uint64_t *need)
{
  struct tags tags = { head, latest };

  *out = NULL;
  *need = 0;
  if (info == NULL || info->block_param < 0)
    return RESOLVED_AS_IS;
  if (egw_json_kind(params) != EGW_JSON_ARRAY)
    return RESOLVED_NOT;
  switch (info->block_kind) {
  case EGW_BLOCK_NUMBER: case EGW_BLOCK_ID:
    return resolve_block(&tags, info, params, out, need);
  case EGW_BLOCK_FILTER:
    return resolve_filter(&tags, (size_t)info->block_param, params, out, need);
  default:
    return RESOLVED_AS_IS;
  }
}
