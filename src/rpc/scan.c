/* SPDX-License-Identifier: MIT */
/* The scanner's outside: life, feeding, whole texts. The loop is in scan-loop.h. */
#include <string.h>
#include "rpc/scan-string.h"

void
scan_init(struct scan *scan, unsigned max_depth, scan_fn *fn, void *arg)
{
  memset(scan, 0, sizeof(*scan));
  scan->fn = fn;
  scan->arg = arg;
  scan->max_depth = max_depth < 1                ? 1
                    : max_depth > SCAN_DEPTH_MAX ? SCAN_DEPTH_MAX
                                                 : max_depth;
  scan->state = SCAN_ST_VALUE;
}

enum scan_status
scan_feed(struct scan *scan, const char *bytes, size_t len, size_t *used)
{
  if (len == 0) { /* `bytes` may be NULL */
    *used = 0;
    return scan->state == SCAN_ST_DONE  ? SCAN_DONE
           : scan->state == SCAN_ST_BAD ? SCAN_BAD
                                        : SCAN_MORE;
  }
  return scan_run(scan, (const unsigned char *)bytes, len, used);
}

enum scan_status
scan_finish(struct scan *scan)
{
  switch ((enum scan_state)scan->state) {
  case SCAN_ST_DONE:
    return SCAN_DONE;
  case SCAN_ST_ZERO:
  case SCAN_ST_INT:
  case SCAN_ST_FRACTION:
  case SCAN_ST_EXPONENT:
    if (scan->depth == 0) {
      scan->state = SCAN_ST_DONE;
      return SCAN_DONE;
    }
    break;
  case SCAN_ST_BAD:
    return SCAN_BAD;
  default:
    break;
  }
  scan->state = SCAN_ST_BAD;
  scan->why = scan->top == EGW_JSON_NONE ? "no value" : "the text ends too early";
  return SCAN_BAD;
}

bool
scan_in_key(const struct scan *scan)
{
  return scan->depth == 1 && scan->sub == 1 && scan->state >= SCAN_ST_STRING &&
         scan->state <= SCAN_ST_UTF8;
}

bool
scan_valid(struct egw_slice text, unsigned max_depth, const char **why)
{
  struct scan scan;
  enum scan_status status;
  size_t used;

  scan_init(&scan, max_depth, NULL, NULL);
  status = scan_feed(&scan, text.ptr, text.len, &used);
  if (status == SCAN_MORE)
    status = scan_finish(&scan);
  for (; status == SCAN_DONE && used < text.len; used++) {
    if (memchr(" \t\r\n", text.ptr[used], 4) == NULL) {
      status = SCAN_BAD;
      scan.why = "something follows the value";
    }
  }
  if (why != NULL)
    *why = status == SCAN_DONE ? NULL : scan.why;
  return status == SCAN_DONE;
}
