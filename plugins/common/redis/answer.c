/* SPDX-License-Identifier: MIT */
/* Replies: made by hiredis' reader, by functions that bound what a server may ask of
 * memory. */
#include <stdlib.h>
#include <hiredis/hiredis.h>
#include "parts.h"

#define ITEMS_MAX 64u

/* Where the value of this task goes: its place in the array around it, or memory of its
 * own. */
static struct redis_answer *
place(const redisReadTask *task)
{
  const struct redis_expected *expected = task->privdata;

  if (task->parent != NULL) {
    struct redis_answer *around = task->parent->obj;

    return &around->items[task->idx];
  }
  if (expected->replies == 0)
    return NULL;
  return calloc(1, sizeof(struct redis_answer));
}

/* Undoes place(); NULL ends the reading. */
static void *
failed(const redisReadTask *task, struct redis_answer *answer)
{
  if (task->parent == NULL)
    free(answer);
  return NULL;
}

static void *
make_string(const redisReadTask *task, char *text, size_t len)
{
  struct redis_answer *a = place(task);

  if (a == NULL)
    return NULL;
  switch (task->type) {
  case REDIS_REPLY_STRING: a->kind = REDIS_STRING; break;
  case REDIS_REPLY_STATUS: a->kind = REDIS_STATUS; break;
  case REDIS_REPLY_ERROR: a->kind = REDIS_ERROR; break;
  default: return failed(task, a);
  }
  a->buf = egw_buf_copy((struct egw_slice){ text, len });
  if (a->buf == NULL)
    return failed(task, a);
  a->text = egw_buf_slice(a->buf);
  return a;
}

static void *
make_items(const redisReadTask *task, size_t count)
{
  struct redis_answer *a = place(task);

  if (a == NULL)
    return NULL;
  if (count > ITEMS_MAX)
    return failed(task, a);
  a->items = calloc(count == 0 ? 1 : count, sizeof(*a->items));
  if (a->items == NULL)
    return failed(task, a);
  a->kind = REDIS_ARRAY;
  a->count = count;
  return a;
}

static void *
make_integer(const redisReadTask *task, long long value)
{
  struct redis_answer *a = place(task);

  if (a == NULL)
    return NULL;
  a->kind = REDIS_INTEGER;
  a->integer = value;
  return a;
}

static void *
make_nil(const redisReadTask *task)
{
  struct redis_answer *a = place(task);

  if (a == NULL)
    return NULL;
  a->kind = REDIS_NIL;
  return a;
}

/* Arrays in arrays: the reader allows a few levels, so this ends. */
static void
clear(struct redis_answer *a)
{
  size_t i;

  for (i = 0; i < a->count; i++)
    clear(&a->items[i]);
  free(a->items);
  egw_buf_unref(a->buf);
}

void
redis_answer_free(struct redis_answer *answer)
{
  if (answer == NULL)
    return;
  clear(answer);
  free(answer);
}

static void
free_object(void *object)
{
  redis_answer_free(object);
}

/* Since hiredis 1.0 lengths are size_t, and there are types of RESP3, which was not asked
 * for. */
#if HIREDIS_MAJOR >= 1
static void *
make_array(const redisReadTask *task, size_t count)
{
  return make_items(task, count);
}

static void *
make_double(const redisReadTask *task, double value, char *text, size_t len)
{
  (void)task, (void)value, (void)text, (void)len;
  return NULL;
}

static void *
make_bool(const redisReadTask *task, int value)
{
  (void)task, (void)value;
  return NULL;
}
#else
static void *
make_array(const redisReadTask *task, int count)
{
  return make_items(task, count < 0 ? SIZE_MAX : (size_t)count);
}
#endif

redisReader *
redis_reader_new(struct redis_expected *expected)
{
  static redisReplyObjectFunctions functions = {
    .createString = make_string,
    .createArray = make_array,
    .createInteger = make_integer,
    .createNil = make_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = make_double,
    .createBool = make_bool,
#endif
    .freeObject = free_object,
  };
  redisReader *reader = redisReaderCreateWithFunctions(&functions);

  if (reader != NULL)
    reader->privdata = expected;
  return reader;
}
