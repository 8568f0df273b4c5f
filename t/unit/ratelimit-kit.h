/* SPDX-License-Identifier: MIT */
/* What the tests of the middleware `ratelimit` share. */
#ifndef T_UNIT_RATELIMIT_KIT_H
#define T_UNIT_RATELIMIT_KIT_H

#include "../lib/tap.h"

#include "../lib/plugtest.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static char so[1000]; /* the plugin's path */

static inline struct plugtest *
host_with(const char *options)
{
  struct plugtest *host = plugtest_new(so, options);

  if (!plugtest_refused(host))
    return host;
  printf("Bail out! %s\n", plugtest_messages(host));
  exit(1);
}

static inline void
done(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

/* Whether the call came through. *wait gets the time that a refusal names. */
static inline bool
try_spec(struct plugtest *host, const struct plugtest_spec *spec, unsigned *wait)
{
  static const char before[] = "rate limit exceeded, try again in ";
  struct plugtest_call *call = plugtest_call(host, spec);
  const struct plugtest_end *e;
  bool allowed;

  plugtest_run(host);
  e = plugtest_end(call);
  allowed = e->over && !e->is_error && e->sent == 1;
  if (!allowed && (!e->over || e->outcome != EGW_OK || e->code != -32005 || e->sent != 0 ||
                   strncmp(e->message, before, sizeof before - 1) != 0))
    ok(false, "a refusal: code %lld, message %s", (long long)e->code, e->message);
  if (wait != NULL)
    *wait = allowed ? 0 : (unsigned)strtoul(e->message + sizeof before - 1, NULL, 10);
  plugtest_forget(call);
  return allowed;
}

static inline bool
try(struct plugtest *host, const char *peer, unsigned *wait)
{
  return try_spec(host, &(struct plugtest_spec){ .peer = peer }, wait);
}

/* How many of `n` calls at once come through. */
static inline unsigned
burst(struct plugtest *host, const char *peer, unsigned n)
{
  unsigned allowed = 0;

  while (n-- > 0)
    allowed += try(host, peer, NULL);
  return allowed;
}

#define A "192.0.2.1"
#define B "192.0.2.2"

static inline void
find_plugin(void)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/middleware/ratelimit/ratelimit.so",
           build == NULL ? "." : build);
}

#endif
