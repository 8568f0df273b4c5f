/* SPDX-License-Identifier: MIT */
/* Finding the number in params, and putting another one in its place. */
#include "shape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>

static bool
is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* How `value` is written: as "0x1a", or as 26 (which some nodes take). */
static bool
read_slot(struct shape_slot *slot, struct egw_slice params, struct egw_slice value,
          uint64_t *number)
{
  size_t i;

  *slot = (struct shape_slot){ .at = (size_t)(value.ptr - params.ptr), .len = value.len };
  if (value.len == 0 || egw_json_u64(value, number) < 0 || *number >= SHAPE_NUMBER_MAX)
    return false;
  if (is_digit(value.ptr[0])) {
    for (i = 0; i < value.len; i++)
      if (!is_digit(value.ptr[i]))
        return false;
    return true;
  }
  if (value.len < 5 || value.len > 20 || memcmp(value.ptr, "\"0x", 3) != 0)
    return false;
  slot->quoted = true;
  slot->width = value.ptr[3] == '0' ? (uint8_t)(value.len - 4) : 1;
  for (i = 3; i + 1 < value.len; i++)
    slot->upper |= value.ptr[i] >= 'A' && value.ptr[i] <= 'F';
  return true;
}

/* A number, or an object of EIP-1898 with nothing but one. */
static bool
read_block(struct shape *shape, struct egw_slice block)
{
  struct egw_slice key, value = block, more;
  size_t cursor = 0;

  if (egw_json_kind(block) == EGW_JSON_OBJECT &&
      (!egw_json_next(block, &cursor, &key, &value) || !egw_json_equals(key, "blockNumber") ||
       egw_json_next(block, &cursor, &key, &more)))
    return false;
  shape->count = 1;
  shape->unit = 1;
  return read_slot(&shape->slots[0], shape->params, value, &shape->number);
}

/* fromBlock and toBlock, each once, both numbers. */
static bool
read_window(struct shape *shape, struct egw_slice filter)
{
  struct egw_slice key, value;
  uint64_t from = 0, to = 0;
  size_t cursor = 0;
  bool first_is_from = true;
  unsigned n = 0;

  if (egw_json_kind(filter) != EGW_JSON_OBJECT)
    return false;
  while (egw_json_next(filter, &cursor, &key, &value)) {
    bool is_from = egw_json_equals(key, "fromBlock");

    if (!is_from && !egw_json_equals(key, "toBlock"))
      continue;
    if (n == 2 || (n == 1 && is_from == first_is_from) ||
        !read_slot(&shape->slots[n], shape->params, value, is_from ? &from : &to))
      return false;
    if (n++ == 0)
      first_is_from = is_from;
  }
  if (n != 2 || from > to)
    return false;
  shape->count = 2;
  shape->number = from;
  shape->unit = to - from + 1;
  shape->slots[first_is_from ? 1 : 0].plus = to - from;
  return true;
}

bool
shape_read(struct shape *shape, const struct egw_method_info *method, struct egw_slice params)
{
  struct egw_slice block;

  memset(shape, 0, sizeof(*shape));
  if (params.len > SHAPE_TEXT_MAX || egw_json_kind(params) != EGW_JSON_ARRAY)
    return false;
  shape->method = (struct egw_slice){ method->name, strlen(method->name) };
  shape->params = params;
  block = egw_json_element(params, (size_t)method->block_param);
  if (block.ptr == NULL)
    return false;
  return method->block_kind == EGW_BLOCK_FILTER ? read_window(shape, block)
                                                : read_block(shape, block);
}

static uint64_t
hash_bytes(uint64_t h, const char *bytes, size_t len)
{
  size_t i;

  for (i = 0; i < len; i++)
    h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
  return (h ^ len) * UINT64_C(0x100000001b3);
}

uint64_t
shape_hash(const struct shape *shape, uint64_t seed)
{
  uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);
  size_t at = 0;
  unsigned i;

  h = hash_bytes(h, shape->method.ptr, shape->method.len);
  for (i = 0; i < shape->count; i++) {
    h = hash_bytes(h, shape->params.ptr + at, shape->slots[i].at - at);
    h = (h ^ shape->slots[i].plus) * UINT64_C(0x100000001b3);
    at = shape->slots[i].at + shape->slots[i].len;
  }
  h = hash_bytes(h, shape->params.ptr + at, shape->params.len - at);
  return h ^ h >> 29;
}

int
shape_print(const struct shape *shape, uint64_t number, struct egw_buf *out)
{
  size_t at = 0;
  unsigned i;

  for (i = 0; i < shape->count; i++) {
    const struct shape_slot *s = &shape->slots[i];
    uint64_t n = number + s->plus;
    int r;

    if (egw_buf_append(out, shape->params.ptr + at, s->at - at) < 0)
      return -1;
    if (!s->quoted)
      r = egw_buf_printf(out, "%" PRIu64, n);
    else if (s->upper)
      r = egw_buf_printf(out, "\"0x%0*" PRIX64 "\"", (int)s->width, n);
    else
      r = egw_buf_printf(out, "\"0x%0*" PRIx64 "\"", (int)s->width, n);
    if (r < 0)
      return -1;
    at = s->at + s->len;
  }
  return egw_buf_append(out, shape->params.ptr + at, shape->params.len - at);
}

int
shape_keep(struct shape *kept, const struct shape *shape, const struct egw_method_info *method)
{
  char *copy = malloc(shape->params.len);

  if (copy == NULL)
    return -1;
  memcpy(copy, shape->params.ptr, shape->params.len);
  *kept = *shape;
  kept->method = (struct egw_slice){ method->name, strlen(method->name) };
  kept->params.ptr = copy;
  return 0;
}

void
shape_free(struct shape *kept)
{
  free((char *)(uintptr_t)kept->params.ptr);
  kept->params = (struct egw_slice){ NULL, 0 };
}
