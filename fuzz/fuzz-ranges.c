/* SPDX-License-Identifier: MIT */
/* Fuzzes what the middleware prefetch and logsplit read: params (the same call for another block must
 * have the same shape, a part of a filter must be what was asked for) and errors' texts. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include "../plugins/middleware/logsplit/complaint.h"
#include "../plugins/middleware/logsplit/filter.h"
#include "../plugins/middleware/prefetch/shape.h"
#include "rpc/scan.h"

#define DEPTH 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

static const struct egw_method_info methods[] = {
  { .name = "eth_getBlockByNumber", .block_kind = EGW_BLOCK_NUMBER, .block_param = 0 },
  { .name = "eth_getBalance", .block_kind = EGW_BLOCK_ID, .block_param = 1 },
  { .name = "eth_getLogs", .block_kind = EGW_BLOCK_FILTER, .block_param = 0 },
};

static void
shapes(struct egw_slice params)
{
  struct shape shape, again;
  size_t i;

  for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
    struct egw_buf *out;
    uint64_t number;

    if (!shape_read(&shape, &methods[i], params))
      continue;
    check(shape.unit > 0 && shape.number < SHAPE_NUMBER_MAX);
    number = shape.number ^ 0xabcd;
    if (number + shape.unit >= SHAPE_NUMBER_MAX)
      continue;
    out = egw_buf_new(0);
    check(out != NULL && shape_print(&shape, number, out) == 0);
    check(scan_valid(egw_buf_slice(out), DEPTH, NULL));
    if (egw_buf_slice(out).len <= SHAPE_TEXT_MAX) {
      check(shape_read(&again, &methods[i], egw_buf_slice(out)));
      check(again.number == number && again.unit == shape.unit);
      check(shape_hash(&again, 7) == shape_hash(&shape, 7));
    }
    egw_buf_unref(out);
  }
}

static void
filters(struct egw_slice params)
{
  struct egw_head head = { .known = true, .settled = true, .tip = { .number = 1000 } };
  struct filter filter, again;
  struct filter_part part;
  struct egw_buf *out;

  if (!filter_read(&filter, params, &head))
    return;
  check(filter.from <= filter.to && filter.to <= 1000);
  part = (struct filter_part){ .from = filter.from + (filter.to - filter.from) / 2,
                               .to = filter.to };
  if (filter.addresses >= 2)
    part.addresses = filter.addresses - (part.address = filter.addresses / 2);
  if (filter.alternatives >= 2)
    part.topics = filter.alternatives - (part.topic = filter.alternatives / 2);
  out = egw_buf_new(0);
  check(out != NULL && filter_print(&filter, &part, out) == 0);
  check(scan_valid(egw_buf_slice(out), DEPTH, NULL));
  check(filter_read(&again, egw_buf_slice(out), &head));
  check(again.from == part.from && again.to == part.to);
  check(again.last.len == filter.last.len);
  check(filter.addresses < 2 || again.addresses == part.addresses);
  check(filter.alternatives < 2 || again.alternatives == part.topics);
  egw_buf_unref(out);
}

static void
complaints(struct egw_slice message)
{
  struct egw_reply reply = { .outcome = EGW_OK, .is_error = true, .message = message };
  struct complaint c = complaint_read(&reply, 1000, 1099);

  check(c.blocks < 100);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct egw_slice text = { (const char *)data, size };

  if (size == 0 || !scan_valid(text, DEPTH, NULL))
    return 0;
  shapes(text);
  filters(text);
  complaints(text);
  return 0;
}
