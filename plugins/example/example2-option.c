/* SPDX-License-Identifier: MIT */
/* Example 2: an option. Refuses methods whose name begins with one of some prefixes:
 *
 *   middleware = ( { use = "example2-option"; refuse = ( "debug_", "trace_" ); } );      */
#include <string.h>
#include <ethrpc-gw/middleware.h>

struct refuse {
  struct egw_strings prefixes;
};

static const struct egw_option options[] = {
  { .name = "refuse", .type = EGW_OPT_LIST, .offset = offsetof(struct refuse, prefixes),
    .help = "What the names of refused methods begin with", .flags = EGW_OPTION_REQUIRED },
  EGW_OPTION_END
};

static enum egw_verdict
refuse_request(const struct egw_at *at, struct egw_call *call)
{
  const struct refuse *self = at->self;
  struct egw_slice method = egw_method(call);

  for (size_t i = 0; i < self->prefixes.n; i++) {
    size_t len = strlen(self->prefixes.v[i]);

    if (method.len >= len && memcmp(method.ptr, self->prefixes.v[i], len) == 0)
      return egw_refuse(call, -32601, "this method is not served here");
  }
  return EGW_NEXT;
}

static const struct egw_middleware refuse = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "example2-option",
              .version = "1.0", .summary = "Refuses methods by the beginning of their names",
              .options = options, .instance_size = sizeof(struct refuse) },
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD, /* others rely on it: it must see every kind of call */
  .request = refuse_request,
};

EGW_REGISTER(refuse)
