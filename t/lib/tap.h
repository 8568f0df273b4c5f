/* SPDX-License-Identifier: MIT */
/* TAP for unit tests in C: each test is one program that prints its results. */
#ifndef T_LIB_TAP_H
#define T_LIB_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5))) static inline bool
tap_ok(bool pass, const char *file, int line, const char *fmt, ...)
{
  va_list ap;

  tap_count++;
  if (!pass)
    tap_failed++;
  printf("%sok %d - ", pass ? "" : "not ", tap_count);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  if (!pass)
    printf("#   failed at %s:%d\n", file, line);
  fflush(stdout);
  return pass;
}

/* ok(condition, "name", ...) */
#define ok(pass, ...) tap_ok((pass), __FILE__, __LINE__, __VA_ARGS__)

/* Compares two integers and shows both when they differ. */
#define is_int(got, want, ...)                                                              \
  do {                                                                                      \
    long long tap_g = (long long)(got), tap_w = (long long)(want);                          \
    if (!ok(tap_g == tap_w, __VA_ARGS__))                                                   \
      printf("#   got %lld, want %lld\n", tap_g, tap_w);                                    \
  } while (0)

/* Compares bytes with a C string and shows both when they differ. */
static inline bool
tap_is_bytes(const char *got, size_t len, const char *want, const char *file, int line,
             const char *name)
{
  bool same = got != NULL && len == strlen(want) && memcmp(got, want, len) == 0;

  tap_ok(same, file, line, "%s", name);
  if (!same)
    printf("#   got  '%.*s'\n#   want '%s'\n", got == NULL ? 4 : (int)len, got == NULL ? "NULL" : got,
           want);
  return same;
}
#define is_bytes(got, len, want, name) tap_is_bytes((got), (len), (want), __FILE__, __LINE__, (name))
#define is_slice(slice, want, name) is_bytes((slice).ptr, (slice).len, (want), (name))

static inline void
tap_skip(const char *why)
{
  tap_count++;
  printf("ok %d # SKIP %s\n", tap_count, why);
}

/* The whole test does not apply here. */
static inline void
skip_all(const char *why)
{
  printf("1..0 # SKIP %s\n", why);
  exit(0);
}

/* Prints the plan; the value of main(). */
static inline int
done_testing(void)
{
  printf("1..%d\n", tap_count);
  return tap_failed == 0 ? 0 : 1;
}

#endif
