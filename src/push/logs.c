/* SPDX-License-Identifier: MIT */
/* A block's logs: see logs.h. */
#include "push/logs.h"

#include <stdlib.h>
#include <string.h>
#include <ethrpc-gw/eth.h>
#include <ethrpc-gw/json.h>
#include "base/checked.h"

static struct log_set *
set_alloc(size_t count)
{
  struct log_set *set;
  size_t size;

  if (!size_mul(count, sizeof(set->v[0]), &size) || !size_add(size, sizeof(*set), &size))
    return NULL;
  set = calloc(1, size);
  if (set != NULL) {
    atomic_init(&set->refs, 1);
    set->count = count;
  }
  return set;
}

static bool
read_entry(struct egw_slice raw, struct log_entry *out)
{
  struct egw_slice topics = egw_json_member(raw, "topics"), topic;
  size_t cursor = 0;

  out->raw = raw;
  if (egw_json_kind(raw) != EGW_JSON_OBJECT || egw_json_kind(topics) != EGW_JSON_ARRAY ||
      egw_hex_read(egw_json_member(raw, "address"), out->address, 20) != 20)
    return false;
  while (egw_json_next(topics, &cursor, NULL, &topic))
    if (out->topic_count >= LOG_TOPICS ||
        egw_hex_read(topic, out->topics[out->topic_count++], 32) != 32)
      return false;
  return true;
}

static size_t
elements(struct egw_slice array)
{
  struct egw_slice value;
  size_t cursor = 0, n = 0;

  while (egw_json_next(array, &cursor, NULL, &value))
    n++;
  return n;
}

struct log_set *
log_set_new(struct egw_buf *buf, struct egw_slice result)
{
  struct log_set *set;
  struct egw_slice raw;
  size_t cursor = 0, i = 0;

  if (egw_json_kind(result) != EGW_JSON_ARRAY)
    return NULL;
  set = set_alloc(elements(result));
  if (set == NULL)
    return NULL;
  set->buf = egw_buf_ref(buf);
  while (egw_json_next(result, &cursor, NULL, &raw))
    if (!read_entry(raw, &set->v[i++])) {
      log_set_unref(set);
      return NULL;
    }
  return set;
}

/* Appends the log with "removed":true in the place of whatever it says. */
static int
append_removed(struct egw_buf *buf, struct egw_slice raw)
{
  struct egw_slice key, value;
  size_t cursor = 0;

  if (egw_buf_append(buf, "{", 1) < 0)
    return -1;
  while (egw_json_next(raw, &cursor, &key, &value)) {
    if (egw_json_equals(key, "removed"))
      continue;
    if (egw_buf_append(buf, key.ptr, key.len) < 0 || egw_buf_append(buf, ":", 1) < 0 ||
        egw_buf_append(buf, value.ptr, value.len) < 0 || egw_buf_append(buf, ",", 1) < 0)
      return -1;
  }
  return egw_buf_append(buf, "\"removed\":true}", 15);
}

struct log_set *
log_set_removed(const struct log_set *set)
{
  struct log_set *out = set_alloc(set->count);
  size_t i, from = 0;
  const char *bytes;

  if (out == NULL)
    return NULL;
  out->buf = egw_buf_new(egw_buf_slice(set->buf).len + 1);
  for (i = 0; i < set->count; i++) {
    const struct log_entry *log = &set->v[set->count - 1 - i];

    if (out->buf == NULL || append_removed(out->buf, log->raw) < 0) {
      log_set_unref(out);
      return NULL;
    }
    out->v[i] = *log;
    out->v[i].raw.len = egw_buf_slice(out->buf).len - from;
    from += out->v[i].raw.len;
  }
  bytes = out->buf != NULL ? egw_buf_slice(out->buf).ptr : NULL;
  for (i = 0, from = 0; i < out->count; i++) { /* the buffer stays where it is from here on */
    out->v[i].raw.ptr = bytes + from;
    from += out->v[i].raw.len;
  }
  return out;
}

struct log_set *
log_set_ref(struct log_set *set)
{
  atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
  return set;
}

void
log_set_unref(struct log_set *set)
{
  if (set == NULL || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1)
    return;
  egw_buf_unref(set->buf);
  free(set);
}
