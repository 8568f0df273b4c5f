/* SPDX-License-Identifier: MIT */
/* What happens when memory runs out: each allocation of a piece of work fails in turn, once;
 * the work must say so, keep what it had, and leak nothing. The linker puts the functions
 * below in place of malloc() and its kin. */
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/out.h"
#include "rpc/envelope.h"
#include "../lib/tap.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

static long fail_at, calls, live; /* fail_at 0: never */

static bool
refuse(void)
{
  return ++calls == fail_at;
}

void *
__wrap_malloc(size_t size)
{
  void *p = refuse() ? NULL : __real_malloc(size);

  live += p != NULL;
  return p;
}

void *
__wrap_calloc(size_t n, size_t size)
{
  void *p = refuse() ? NULL : __real_calloc(n, size);

  live += p != NULL;
  return p;
}

void *
__wrap_realloc(void *p, size_t size)
{
  void *q = refuse() ? NULL : __real_realloc(p, size);

  live += p == NULL && q != NULL;
  return q;
}

void
__wrap_free(void *p)
{
  live -= p != NULL;
  __real_free(p);
}

/* Each piece of work: 0 when it was all done, -1 when memory was short; anything else: wrong. */

static int
work_buf(void)
{
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("abc"));
  int rc = 0, i;
  size_t len;

  if (buf == NULL)
    return -1;
  for (i = 0; i < 300 && rc == 0; i++) {
    len = egw_buf_slice(buf).len;
    rc = i % 2 == 0 ? egw_buf_append(buf, "0123456789", 10) : egw_buf_printf(buf, "%09d", i);
    if (rc != 0 && egw_buf_slice(buf).len != len)
      rc = 1; /* the contents must be as they were */
  }
  if (rc == 0)
    rc = egw_json_quote(buf, EGW_LIT("x\ny\xff"));
  egw_buf_unref(buf);
  return rc;
}

static int
work_arena(void)
{
  struct arena_pool pool;
  struct arena arena;
  int rc = 0, i;

  arena_pool_init(&pool, 1);
  arena_init(&arena, &pool);
  for (i = 0; i < 40 && rc == 0; i++)
    rc = arena_alloc(&arena, i % 10 == 9 ? 10000 : 700) == NULL ? -1 : 0;
  if (rc == 0 && arena_copy(&arena, EGW_LIT("text")) == NULL)
    rc = -1;
  arena_free(&arena);
  arena_pool_free(&pool);
  return rc;
}

static int
work_map(void)
{
  static char names[200][4];
  struct u64map numbers = { 0 };
  struct strmap strings = { 0 };
  unsigned i;
  int rc = 0;

  for (i = 0; i < 200 && rc == 0; i++) {
    snprintf(names[i], sizeof(names[i]), "%u", i);
    rc = u64map_put(&numbers, i, names[i]);
    if (rc == 0)
      rc = strmap_put(&strings, (struct egw_slice){ names[i], strlen(names[i]) }, names[i]);
  }
  while (i-- > 1) /* what was put before is all there */
    if (u64map_get(&numbers, i - 1) != names[i - 1] ||
        strmap_get(&strings, (struct egw_slice){ names[i - 1], strlen(names[i - 1]) }) !=
          names[i - 1])
      rc = 1;
  u64map_free(&numbers);
  strmap_free(&strings);
  return rc;
}

static int
work_out(void)
{
  struct egw_buf *buf = egw_buf_copy(EGW_LIT("shared bytes"));
  struct out *out = out_new(2, 10);
  int rc = buf == NULL || out == NULL ? -1 : 0, i;
  size_t bytes;

  for (i = 0; i < 100 && rc == 0; i++) {
    bytes = out->bytes;
    if (i % 3 == 0)
      rc = out_add(out, egw_buf_ref(buf), (struct egw_slice){ egw_buf_slice(buf).ptr, 3 });
    else if (i % 3 == 1)
      rc = out_add_static(out, EGW_LIT("static"));
    else
      rc = out_add_copy(out, EGW_LIT("copied text of some length"));
    if (rc != 0 && out->bytes != bytes)
      rc = 1;
  }
  out_free(out);
  if (buf != NULL && atomic_load(&buf->refs) != 1)
    rc = 1; /* every reference was given back */
  egw_buf_unref(buf);
  return rc;
}

static int
work_message(void)
{
  struct rpc_message m;
  int rc;

  rpc_message_parse(EGW_LIT("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]"), 100, &m);
  rc = m.shape == RPC_BATCH ? 0 : m.fault == RPC_FAULT_INTERNAL ? -1 : 1;
  rpc_message_free(&m);
  return rc;
}

static int
work_print(void)
{
  struct egw_buf *buf = egw_buf_new(0);
  int rc;

  if (buf == NULL)
    return -1;
  rc = rpc_request_print(buf, 1, EGW_LIT("eth_call"), EGW_LIT("[]"));
  if (rc == 0)
    rc = rpc_error_print(buf, -32000, EGW_LIT("message"));
  egw_buf_unref(buf);
  return rc;
}

static void
run(const char *name, int (*work)(void))
{
  long n, needed, before = live;
  unsigned wrong = 0;

  fail_at = calls = 0;
  wrong += work() != 0;
  needed = calls;
  for (n = 1; n <= needed; n++) {
    fail_at = n;
    calls = 0;
    wrong += work() != -1;
  }
  fail_at = 0;
  ok(wrong == 0 && needed > 0, "%s: each of %ld allocations may fail", name, needed);
  is_int(live, before, "%s: nothing leaks", name);
}

int
main(void)
{
  (void)hash_u64(0); /* makes the key of the process */
  run("buffers", work_buf);
  run("arenas", work_arena);
  run("maps", work_map);
  run("messages out", work_out);
  run("messages in", work_message);
  run("printing", work_print);
  return done_testing();
}
