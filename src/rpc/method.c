/* SPDX-License-Identifier: MIT */
/* The method table and its index: an open hash over name length and the first and last eight
 * bytes, filled in once. Rows never change, so the longest probe is known and short whatever
 * name a client makes up. */
#include <pthread.h>
#include <string.h>
#include "rpc/method.h"

#define READ true, false
#define ONCE false, false
#define ADMIN false, true
#define ADMIN_READ true, true
/* Through a second macro, so that `use` has become its two words. */
#define ROW(name, class, kind, param, idempotent, changes, cost)                            \
  { name, EGW_CLASS_##class, EGW_BLOCK_##kind, param, idempotent, changes, cost },
#define METHOD(name, class, kind, param, use, cost)                                         \
  METHOD_ROW(#name, class, kind, param, use, cost)
#define METHOD_ROW(...) ROW(__VA_ARGS__)

static const struct egw_method_info rows[] = {
#include "rpc/methods.def"
};

#undef METHOD

#define ROWS ((unsigned)(sizeof(rows) / sizeof(rows[0])))
#define INDEX_SIZE 2048u /* a power of two, several times the rows */
_Static_assert(sizeof(rows) / sizeof(rows[0]) * 4 <= INDEX_SIZE, "the index is too small");

/* Row number + 1, 0: free. */
static uint16_t method_slots[INDEX_SIZE];
static uint8_t method_lengths[INDEX_SIZE];
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static uint64_t
method_load(const char *p)
{
  uint64_t x;

  memcpy(&x, p, sizeof(x));
  return x;
}

static unsigned
method_hash(struct egw_slice name)
{
  char small[8] = { 0 };
  uint64_t a, b;

  if (name.len >= 8) {
    a = method_load(name.ptr);
    b = method_load(name.ptr + name.len - 8);
  } else {
    if (name.len > 0)
      memcpy(small, name.ptr, name.len);
    a = b = method_load(small);
  }
  a = (a ^ (b << 23 | b >> 41)) * UINT64_C(0x9e3779b97f4a7c15) + name.len;
  b = b * UINT64_C(0xc2b2ae3d27d4eb4f);
  return (unsigned)((a ^ b ^ (a >> 29)) * UINT64_C(0xd6e8feb86659fd93) >> 48) &
         (INDEX_SIZE - 1);
}

static void
method_build(void)
{
  struct egw_slice name;
  unsigned i, at;

  for (i = 0; i < ROWS; i++) {
    name = (struct egw_slice){ rows[i].name, strlen(rows[i].name) };
    at = method_hash(name);
    while (method_slots[at] != 0)
      at = (at + 1) & (INDEX_SIZE - 1);
    method_slots[at] = (uint16_t)(i + 1);
    method_lengths[at] = (uint8_t)name.len;
  }
}

const struct egw_method_info *
method_find(struct egw_slice name)
{
  const struct egw_method_info *row;
  unsigned at;

  pthread_once(&method_once, method_build);
  for (at = method_hash(name); method_slots[at] != 0; at = (at + 1) & (INDEX_SIZE - 1)) {
    row = &rows[method_slots[at] - 1];
    if (method_lengths[at] == name.len && memcmp(row->name, name.ptr, name.len) == 0)
      return row;
  }
  return NULL;
}

unsigned
method_count(void)
{
  return ROWS;
}

unsigned
method_index(const struct egw_method_info *row)
{
  return (unsigned)(row - rows);
}

const struct egw_method_info *
method_row(unsigned index)
{
  return index < ROWS ? &rows[index] : NULL;
}

const char *
method_class_name(enum egw_class method_class)
{
  static const char *const names[] = {
    [EGW_CLASS_UNKNOWN] = "unknown",
    [EGW_CLASS_CONSTANT] = "constant",
    [EGW_CLASS_BY_HASH] = "by-hash",
    [EGW_CLASS_BY_BLOCK] = "by-block",
    [EGW_CLASS_BY_TX] = "by-tx",
    [EGW_CLASS_RANGE] = "range",
    [EGW_CLASS_HEAD] = "head",
    [EGW_CLASS_STATEFUL] = "stateful",
    [EGW_CLASS_SUBSCRIPTION] = "subscription",
    [EGW_CLASS_BROADCAST] = "broadcast",
    [EGW_CLASS_WRITE] = "write",
  };

  return (unsigned)method_class < sizeof(names) / sizeof(names[0]) ? names[method_class]
                                                                  : names[0];
}
