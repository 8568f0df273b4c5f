/* SPDX-License-Identifier: MIT */
/* Example 1: the smallest stage. It sees every call and lets it pass.
 *
 *   cc -fPIC -shared $(pkg-config --cflags ethrpc-gw) example1-pass.c -o example1-pass.so
 *   middleware = ( { use = "/path/to/example1-pass.so"; } );                             */
#include <ethrpc-gw/middleware.h>

static enum egw_verdict
pass_request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
  return EGW_NEXT;
}

static const struct egw_middleware pass = {
  .plugin = { EGW_HEAD(struct egw_middleware, EGW_TYPE_MIDDLEWARE), .name = "example1-pass",
              .version = "1.0", .summary = "Lets every call pass" },
  .kinds = EGW_KIND_ALL,
  .request = pass_request,
};

EGW_REGISTER(pass)
