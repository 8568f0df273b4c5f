/* SPDX-License-Identifier: MIT */
/* What the middleware `logsplit` reads out of errors: texts of many nodes and providers,
 * and of errors that mean something else. */
#include "../lib/tap.h"
#include <ethrpc-gw/json.h>
#include "../../plugins/middleware/logsplit/complaint.h"

#define FROM 1000000u
#define TO 1099999u /* 100,000 blocks */

static struct complaint
read_error(int64_t code, const char *message)
{
  struct egw_reply reply = { .outcome = EGW_OK, .is_error = true, .code = code };
  struct egw_buf *text = egw_buf_new(0);
  struct egw_slice slice = { message, strlen(message) };
  struct complaint c;

  if (text == NULL || egw_json_quote(text, slice) < 0)
    abort();
  reply.message = egw_buf_slice(text);
  c = complaint_read(&reply, FROM, TO);
  egw_buf_unref(text);
  return c;
}

static const struct {
  int64_t code;
  const char *message;
  enum complaint_kind kind;
  uint64_t blocks;
} errors[] = {
  { -32602, "query exceeds max block range 50000", COMPLAINT_RANGE, 50000 },
  { -32602, "query exceeds max results 20000, retry with the range 1000000-1000099",
    COMPLAINT_RESULTS, 100 },
  { -32602, "query exceeds max results 20000, retry with the range 1000000-1099999",
    COMPLAINT_RESULTS, 0 },
  { -32602, "range 100000 exceeds limit of 10000", COMPLAINT_RANGE, 10000 },
  { -32005, "query returned more than 10000 results. Try with this block range [0xF4240, 0xF427B].",
    COMPLAINT_RESULTS, 60 },
  { -32005, "query returned more than 10000 results", COMPLAINT_RESULTS, 0 },
  { -32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block "
            "range and no limit on the response size, or you can request any block range with a cap "
            "of 10K logs in the response. Based on your parameters and the response size limit, this "
            "block range should work: [0xf4240, 0xf4623]", COMPLAINT_RESULTS, 996 },
  { -32600, "You can make eth_getLogs requests with up to a 500 block range. Based on your "
            "parameters, this block range should work: [0xf4240, 0xf4433]", COMPLAINT_RANGE, 500 },
  { -32614, "eth_getLogs is limited to a 10,000 range", COMPLAINT_RANGE, 10000 },
  { -32614, "no words", COMPLAINT_RANGE, 0 },
  { -32012, "requested range too large", COMPLAINT_RANGE, 0 },
  { -32000, "exceed maximum block range: 5000", COMPLAINT_RANGE, 5000 },
  { -32000, "block range is larger than max block range, block range = 100000, max block range = "
            "5000", COMPLAINT_RANGE, 5000 },
  { -32000, "block range is larger than max block range, block range = 99999, max block range = "
            "5000", COMPLAINT_RANGE, 5000 },
  { -32000, "requested too many blocks from 1000000 to 1099999, maximum is set to 2048",
    COMPLAINT_RANGE, 2048 },
  { -32000, "block range too large (100000), maximum allowed is 1000 blocks", COMPLAINT_RANGE, 1000 },
  { -32000, "Block range is too wide", COMPLAINT_RANGE, 0 },
  { -32000, "range too large, max is 1k blocks", COMPLAINT_RANGE, 1000 },
  { -32005, "block range too large, max range: 30000", COMPLAINT_RANGE, 30000 },
  { -32000, "Requested range exceeds maximum range limit", COMPLAINT_RANGE, 0 },
  { -32000, "response size should not greater than 150000000 bytes", COMPLAINT_RESULTS, 0 },
  { -32008, "Response is too big", COMPLAINT_RESULTS, 0 },
  { -32008, "", COMPLAINT_RESULTS, 0 },
  { -32000, "Too many results, please limit your query", COMPLAINT_RESULTS, 0 },
  { -32602, "Please specify less number of addresses.", COMPLAINT_FILTER, 0 },
  { -32602, "exceed max addresses or topics per search position", COMPLAINT_FILTER, 0 },
  /* Other things in like words. */
  { 3, "execution reverted: block range is too wide", COMPLAINT_NONE, 0 },
  { -32000, "execution reverted: range too large", COMPLAINT_NONE, 0 },
  { -32000, "invalid block range params", COMPLAINT_NONE, 0 },
  { -32602, "block range extends beyond current head block", COMPLAINT_NONE, 0 },
  { -32005, "rate limit exceeded, try again in 100ms", COMPLAINT_NONE, 0 },
  { -32005, "daily request count exceeded, request rate limited", COMPLAINT_NONE, 0 },
  { -32000, "header not found", COMPLAINT_NONE, 0 },
  { -32000, "unknown block", COMPLAINT_NONE, 0 },
  { -32601, "the method does not exist or is not available here", COMPLAINT_NONE, 0 },
  { -32051, "request timed out", COMPLAINT_NONE, 0 },
  { -32000, "", COMPLAINT_NONE, 0 },
  { -32000, "block range 99999999999999999999999999999999", COMPLAINT_RANGE, 0 },
  { -32000, "try with this block range [0xffffffffffffffffff, 0x", COMPLAINT_RESULTS, 0 },
  { -32000, "try with this block range [0x0, 0xffffffffffffffff]", COMPLAINT_RESULTS, 0 },
  { -32000, "block range [", COMPLAINT_RANGE, 0 },
};

int
main(void)
{
  struct egw_reply missing = { .outcome = EGW_BAD_REPLY, .is_error = true, .code = -32008 };
  char *big = calloc(1, 100001);
  size_t i;

  for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
    struct complaint c = read_error(errors[i].code, errors[i].message);

    ok(c.kind == errors[i].kind && c.blocks == errors[i].blocks, "%lld %.60s",
       (long long)errors[i].code, errors[i].message);
    if (c.kind != errors[i].kind || c.blocks != errors[i].blocks)
      printf("# kind %d, want %d; %llu blocks, want %llu\n", (int)c.kind, (int)errors[i].kind,
             (unsigned long long)c.blocks, (unsigned long long)errors[i].blocks);
  }
  is_int(complaint_read(&missing, 1, 100).kind, COMPLAINT_RESULTS, "no message at all: the code");
  if (big == NULL)
    abort();
  memset(big, '1', 100000);
  is_int(read_error(-32000, big).kind, COMPLAINT_NONE, "a very long text");
  is_int(read_error(-32012, big).kind, COMPLAINT_RANGE, "and a code that tells");
  big[1024] = '\0';
  memcpy(big, "block range ", 12);
  is_int(read_error(-32000, big).kind, COMPLAINT_RANGE, "a text as long as is read");
  free(big);
  return done_testing();
}
