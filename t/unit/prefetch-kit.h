/* SPDX-License-Identifier: MIT */
/* What the tests of the middleware `prefetch` have in common. */
#ifndef T_UNIT_PREFETCH_KIT_H
#define T_UNIT_PREFETCH_KIT_H

#include "../lib/tap.h"

#include "../lib/plugtest.h"

#define BLOCK "eth_getBlockByNumber"

static char so[1000];             /* the plugin; see find_plugin() */

/* As a node with a cache in front answers: what was fetched is kept. */
static const struct plugtest_reply kept[] = { { .result = "{\"a\":1}", .delay_ms = 20,
                                                .cached = true } };

static inline struct plugtest *
host_with(const char *options, uint64_t tip)
{
  struct plugtest *host = plugtest_new(so, options);
  struct egw_head head = { .known = tip != 0, .live = true, .tip = { .number = tip } };

  if (plugtest_refused(host)) {
    printf("Bail out! %s\n", plugtest_messages(host));
    exit(1);
  }
  plugtest_script(host, kept, 1);
  plugtest_head(host, &head, NULL, 0);
  return host;
}

static inline struct plugtest_call *
ask_as(struct plugtest *host, uint64_t session, const char *method, const char *params)
{
  struct plugtest_call *call = plugtest_call(host, &(struct plugtest_spec){
    .method = method, .params = params, .session = session, .transport = "ws" });

  plugtest_run(host);
  return call;
}

/* `form` with the number in the place of "#x", or of #X, #w (four digits), #d. */
static inline void
print(char out[300], const char *form, uint64_t number)
{
  unsigned long long n = number;
  size_t at = strcspn(form, "#");
  char digits[30];

  switch (form[at + 1]) {
  case 'x': (void)snprintf(digits, sizeof digits, "%llx", n); break;
  case 'X': (void)snprintf(digits, sizeof digits, "%llX", n); break;
  case 'w': (void)snprintf(digits, sizeof digits, "%04llx", n); break;
  default: (void)snprintf(digits, sizeof digits, "%llu", n);
  }
  (void)snprintf(out, 300, "%.*s%s%s", (int)at, form, digits, form + at + 2);
}

static inline void
ask(struct plugtest *host, const char *form, uint64_t number)
{
  char params[300];

  print(params, form, number);
  ask_as(host, 1, BLOCK, params);
}

#define HEX "[\"0x#x\",true]"

/* Asks for `count` blocks from `first` on, each when the one before was answered. */
static inline void
walk(struct plugtest *host, const char *form, uint64_t first, int step, unsigned count)
{
  for (unsigned i = 0; i < count; i++) {
    ask(host, form, first + (uint64_t)(int64_t)((int)i * step));
    plugtest_advance(host, 20);
  }
}

static inline bool
reached(const struct plugtest *host, const char *params)
{
  for (unsigned i = 0; i < plugtest_reached(host); i++)
    if (strcmp(plugtest_reached_params(host, i), params) == 0)
      return true;
  return false;
}

static inline int64_t
metric(const struct plugtest *host, const char *name)
{
  return plugtest_metric(host, name);
}

static inline void
finish(struct plugtest *host)
{
  is_int(plugtest_free(host), 0, "no rule was broken");
}

static inline void
find_plugin(void)
{
  const char *build = getenv("EGW_BUILD");

  snprintf(so, sizeof so, "%s/plugins/middleware/prefetch/prefetch.so",
           build == NULL ? "." : build);
}

#endif
