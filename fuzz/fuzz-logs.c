/* SPDX-License-Identifier: MIT */
/* Fuzzes what heads and subscriptions read: headers, lists of logs, filters. The first line is a filter,
 * the rest a header or a list of logs. What is made of valid JSON must be valid JSON. */
#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/json.h>
#include "head/blocks.h"
#include "push/logs.h"
#include "push/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool right)
{
  if (!right)
    abort();
}

static void
headers(struct egw_slice text)
{
  struct egw_buf *raw = header_raw(text);
  struct block before, after;
  unsigned char bloom[256];

  if (raw == NULL)
    return;
  check(egw_json_valid(egw_buf_slice(raw)));
  if (block_parse(text, &before)) {
    check(block_parse(egw_buf_slice(raw), &after));
    check(before.number == after.number && memcmp(before.hash, after.hash, HASH_LEN) == 0);
  }
  (void)bloom_read(egw_buf_slice(raw), bloom);
  egw_buf_unref(raw);
}

static void
logs(struct egw_slice text, const struct log_filter *filter)
{
  struct egw_buf *buf = egw_buf_copy(text);
  struct log_set *set = buf != NULL ? log_set_new(buf, egw_buf_slice(buf)) : NULL;
  struct log_set *back = set != NULL ? log_set_removed(set) : NULL;
  size_t i;

  for (i = 0; back != NULL && i < set->count; i++) {
    const struct log_entry *taken = &back->v[set->count - 1 - i];

    check(egw_json_valid(taken->raw));
    check(egw_json_kind(egw_json_member(taken->raw, "removed")) == EGW_JSON_TRUE);
    if (filter != NULL)
      check(log_filter_matches(filter, &set->v[i]) == log_filter_matches(filter, taken));
  }
  log_set_unref(back);
  log_set_unref(set);
  egw_buf_unref(buf);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  const char *text = (const char *)data, *line = memchr(text, '\n', size);
  size_t first = line != NULL ? (size_t)(line - text) : 0;
  struct egw_slice head = { text, first };
  struct egw_slice rest = { text + first, size - first };
  static const unsigned char none[256];
  struct log_filter *filter = NULL;
  const char *why;

  if (first != 0 && egw_json_valid(head))
    filter = log_filter_new(head, &why);
  if (filter != NULL)
    (void)log_filter_bloom(filter, none);
  if (egw_json_valid(rest)) {
    headers(rest);
    logs(rest, filter);
  }
  log_filter_free(filter);
  return 0;
}
