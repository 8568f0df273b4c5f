/* SPDX-License-Identifier: MIT */
/* Fuzzes the replies of a Redis server: the first byte says how many are expected and in
 * what pieces the rest comes. No more are made than are expected, and each is within its
 * bounds. */
#include <stdlib.h>
#include <string.h>
#include "../plugins/common/redis/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
  if (!holds)
    abort();
}

static void
check_answer(const struct redis_answer *a, unsigned depth)
{
  size_t i;

  check(a->kind >= REDIS_NIL && a->kind <= REDIS_ARRAY && depth < 16);
  if (a->kind == REDIS_STRING || a->kind == REDIS_STATUS || a->kind == REDIS_ERROR)
    check(a->buf != NULL && a->text.ptr == egw_buf_slice(a->buf).ptr &&
          a->text.len == egw_buf_slice(a->buf).len);
  else
    check(a->buf == NULL);
  check(a->kind == REDIS_ARRAY ? a->items != NULL && a->count <= 64 : a->count == 0);
  for (i = 0; i < a->count; i++)
    check_answer(&a->items[i], depth + 1);
}

/* false: the server is not to be listened to any more. */
static bool
take(redisReader *reader, struct redis_expected *expected)
{
  void *reply;

  for (;;) {
    reply = NULL;
    if (redisReaderGetReply(reader, &reply) != REDIS_OK)
      return false;
    if (reply == NULL)
      return true;
    check(expected->replies > 0);
    expected->replies--;
    check_answer(reply, 0);
    redis_answer_free(reply);
  }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct redis_expected expected = { 0 };
  redisReader *reader;
  size_t at, piece;

  if (size < 1)
    return 0;
  expected.replies = data[0] & 7;
  piece = (size_t)(data[0] >> 3) + 1;
  reader = redis_reader_new(&expected);
  check(reader != NULL);
  for (at = 1; at < size; at += piece)
    if (redisReaderFeed(reader, (const char *)data + at,
                        size - at < piece ? size - at : piece) != REDIS_OK ||
        !take(reader, &expected))
      break;
  redisReaderFree(reader);
  return 0;
}
