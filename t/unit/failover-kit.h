/* SPDX-License-Identifier: MIT */
/* What the tests of the plugin `failover` share: a host with some upstreams. */
#ifndef T_UNIT_FAILOVER_KIT_H
#define T_UNIT_FAILOVER_KIT_H

#include "../lib/tap.h"

#include "../lib/plugtest.h"

static char so[1000];

static struct plugtest *
host_with(const char *options, unsigned upstreams)
{
  static const struct egw_upstream_info infos[3] = { { .name = "a", .up = true },
                                                     { .name = "b", .up = true },
                                                     { .name = "c", .up = true } };
  struct plugtest *host = plugtest_new(so, options);

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  plugtest_upstreams(host, infos, upstreams);
  return host;
}

/* The network's tip, and where the upstreams are. */
static inline void
heads(struct plugtest *host, uint64_t tip, uint64_t a, uint64_t b)
{
  struct egw_upstream_info infos[2] = {
    { .name = "a", .up = true, .has_head = true, .head = a },
    { .name = "b", .up = true, .has_head = true, .head = b },
  };
  struct egw_head head = {
    .known = true, .live = true, .settled = true, .tip = { .number = tip }, .block_ms = 1000
  };

  plugtest_upstreams(host, infos, 2);
  plugtest_head(host, &head, &head.tip, 1);
}

static struct plugtest_call *
start(struct plugtest *host, const char *method, const char *params)
{
  struct plugtest_call *c = plugtest_call(
      host, &(struct plugtest_spec){ .method = method, .params = params, .explain = true });

  plugtest_run(host);
  return c;
}

#define SCRIPT(host, ...)                                                                     \
  do {                                                                                        \
    struct plugtest_reply script_[] = { __VA_ARGS__ };                                        \
    plugtest_script(host, script_, sizeof script_ / sizeof script_[0]);                       \
  } while (0)

/* The upstreams that call `index` may go to, as a mask. */
static inline uint64_t
only(const struct plugtest *host, unsigned index)
{
  return plugtest_reached_route(host, index).only;
}

static inline bool
answered(const struct plugtest_call *c, const char *body)
{
  return plugtest_end(c)->over && strcmp(plugtest_end(c)->body, body) == 0;
}

static inline void
end(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static void
report(bool pass, const char *what)
{
  ok(pass, "%s", what);
}

static inline void
find_so(void)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/middleware/failover/failover.so",
           build == NULL ? "." : build);
}

#endif
