/* SPDX-License-Identifier: MIT */
/* The plugin test host: memory and clocks. malloc() and its kin are counted, and can be made
 * to fail within callbacks of the plugin; the monotonic clock is the virtual one there. */
#include "plugtest-parts.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local bool inside;

void
plugtest_enter(struct plugtest *host)
{
  if (inside)
    plugtest_fault(host, "a callback within a callback");
  inside = true;
}

void
plugtest_leave(struct plugtest *host)
{
  (void)host;
  inside = false;
}

bool
plugtest_pause(void)
{
  bool was = inside;

  inside = false;
  return was;
}

void
plugtest_resume(bool was)
{
  inside = was;
}

void
plugtest_fail_alloc(struct plugtest *host, unsigned n)
{
  host->fail_after = n;
  host->failed_one = false;
}

bool
plugtest_alloc_failed(const struct plugtest *host)
{
  return host->failed_one;
}

bool
plugtest_fails_now(void)
{
  struct plugtest *host = plugtest_host;

  if (!inside || host == NULL || host->fail_after == 0 || --host->fail_after > 0)
    return false;
  host->failed_one = true;
  return true;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
  if (inside && plugtest_host != NULL && id == CLOCK_MONOTONIC) {
    ts->tv_sec = (time_t)(plugtest_host->now_ms / 1000);
    ts->tv_nsec = (long)(plugtest_host->now_ms % 1000) * 1000000;
    return 0;
  }
  return (int)syscall(SYS_clock_gettime, id, ts);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC

/* glibc's own, behind the names that this file takes. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static atomic_long blocks;

static void *
count(void *p)
{
  if (p != NULL)
    atomic_fetch_add(&blocks, 1);
  return p;
}

static void *
failed(void)
{
  errno = ENOMEM;
  return NULL;
}

void *
malloc(size_t size)
{
  return plugtest_fails_now() ? failed() : count(__libc_malloc(size));
}

void *
calloc(size_t n, size_t size)
{
  return plugtest_fails_now() ? failed() : count(__libc_calloc(n, size));
}

void *
realloc(void *p, size_t size)
{
  void *q;

  if (plugtest_fails_now())
    return failed();
  if (p == NULL)
    return count(__libc_malloc(size));
  q = __libc_realloc(p, size);
  if (q == NULL && size == 0)
    atomic_fetch_sub(&blocks, 1);
  return q;
}

void
free(void *p)
{
  if (p != NULL)
    atomic_fetch_sub(&blocks, 1);
  __libc_free(p);
}

long
plugtest_blocks(void)
{
  return atomic_load(&blocks);
}

#else

long
plugtest_blocks(void)
{
  return 0;
}

#endif
