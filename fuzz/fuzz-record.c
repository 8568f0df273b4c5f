/* SPDX-License-Identifier: MIT */
/* Fuzzes what the cache reads back from disk and Redis. The input: which byte to change,
 * the length of the key, a key and a value; or, after a zero, any bytes as a record. Only
 * what was written may be read. */
#include <stdlib.h>
#include <string.h>
#include "../plugins/middleware/cache/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
  if (!holds)
    abort();
}

/* A record that was made, and one that was changed at one byte, or cut. */
static void
check_made(const struct record_codec *codec, size_t at, unsigned char flip,
           struct egw_slice key, struct egw_slice value)
{
  size_t len = record_size(key.len, value.len);
  struct egw_slice whole = { malloc(len), len }, got;
  char *bytes = (char *)(uintptr_t)whole.ptr;

  check(bytes != NULL && record_write(codec, bytes, key, value) == 0);
  check(record_read(codec, whole, key, &got) && got.len == value.len &&
        memcmp(got.ptr, value.ptr, got.len) == 0);
  check(!record_read(codec, (struct egw_slice){ bytes, at % len }, key, &got));
  if (flip != 0) {
    bytes[at % len] = (char)(bytes[at % len] ^ flip);
    check(!record_read(codec, whole, key, &got));
  }
  free(bytes);
}

/* Anything: if it passes, it is all there. */
static void
check_any(const struct record_codec *codec, struct egw_slice bytes, struct egw_slice key)
{
  struct egw_slice value;

  if (!record_read(codec, bytes, key, &value))
    return;
  check(value.ptr >= bytes.ptr && value.ptr + value.len == bytes.ptr + bytes.len);
  check(record_size(key.len, value.len) == bytes.len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct record_codec *codec;
  const char *text = (const char *)data;
  struct egw_slice key, value;

  if (codec == NULL)
    codec = record_codec_new(NULL);
  check(codec != NULL);
  if (size < 4)
    return 0;
  if (data[0] == 0) {
    check_any(codec, (struct egw_slice){ text + 1, size - 1 }, EGW_LIT("question"));
    return 0;
  }
  key = (struct egw_slice){ text + 4, data[3] > size - 4 ? size - 4 : data[3] };
  value = (struct egw_slice){ key.ptr + key.len, size - 4 - key.len };
  check_made(codec, (size_t)data[1] << 8 | data[2], data[0], key, value);
  return 0;
}
