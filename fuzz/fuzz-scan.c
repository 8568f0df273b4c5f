/* SPDX-License-Identifier: MIT */
/* Fuzzes the JSON scanner: every flavour, whole and in pieces, must say the same of any bytes;
 * what it calls valid must be safe for the raw JSON readers. The first byte decides the
 * cuts. */
#include <stdlib.h>
#include <string.h>
#include "rpc/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
  enum scan_status status;
  uint64_t consumed, top_begin, digest;
  const char *why;
};

static void
on_event(struct scan *scan, enum scan_event event, enum egw_json_kind kind, uint64_t from,
         uint64_t to, void *arg)
{
  struct outcome *o = arg;

  (void)scan;
  o->digest = (o->digest ^ (uint64_t)event ^ (uint64_t)kind << 8) * UINT64_C(0x100000001b3);
  o->digest = (o->digest ^ from) * UINT64_C(0x100000001b3);
  o->digest = (o->digest ^ to) * UINT64_C(0x100000001b3);
}

/* Scans in pieces of `step` bytes, each in memory of its own size. */
static struct outcome
run(const char *flavour, const uint8_t *data, size_t size, size_t step)
{
  struct outcome o = { .status = SCAN_MORE };
  struct scan scan;
  size_t at, len, used;
  char *piece;

  if (!scan_force(flavour))
    scan_force("scalar");
  scan_init(&scan, 64, on_event, &o);
  for (at = 0; at < size && o.status == SCAN_MORE; at += len) {
    len = size - at < step ? size - at : step;
    piece = malloc(len);
    if (piece == NULL)
      abort();
    memcpy(piece, data + at, len);
    o.status = scan_feed(&scan, piece, len, &used);
    o.consumed += used;
    free(piece);
  }
  if (o.status == SCAN_MORE)
    o.status = scan_finish(&scan);
  o.top_begin = scan.top_begin;
  o.why = o.status == SCAN_BAD ? scan.why : NULL;
  return o;
}

static void
check_same(const struct outcome *a, const struct outcome *b)
{
  if (a->status != b->status || a->consumed != b->consumed || a->digest != b->digest ||
      a->top_begin != b->top_begin || a->why != b->why)
    abort();
}

/* A valid text, read with the plugins' functions. */
static void
check_readers(const uint8_t *data, size_t size)
{
  struct egw_slice text = { (const char *)data, size }, key, value;
  size_t cursor = 0, members = 0;
  char out[256];
  uint64_t number;

  while (egw_json_next(text, &cursor, &key, &value)) {
    if (!scan_valid(value, 64, NULL) || (key.ptr != NULL && !scan_valid(key, 1, NULL)))
      abort(); /* what was cut out of valid JSON is valid */
    members++;
    (void)egw_json_string(value, out, sizeof(out));
    (void)egw_json_u64(value, &number);
  }
  if (egw_json_kind(text) == EGW_JSON_ARRAY && members > 0 &&
      egw_json_element(text, members - 1).ptr == NULL)
    abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char *const flavours[] = { "scalar", "sse2", "avx2" };
  struct outcome whole, other;
  size_t i, step;

  if (size == 0)
    return 0;
  step = (size_t)data[0] % 67 + 1;
  data++;
  size--;
  whole = run("scalar", data, size, size + 1);
  for (i = 0; i < 3; i++) {
    other = run(flavours[i], data, size, size + 1);
    check_same(&whole, &other);
    other = run(flavours[i], data, size, step);
    check_same(&whole, &other);
  }
  if (scan_valid((struct egw_slice){ (const char *)data, size }, 64, NULL))
    check_readers(data, size);
  return 0;
}
