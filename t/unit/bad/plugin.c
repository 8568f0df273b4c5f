/* SPDX-License-Identifier: MIT */
/* Plugins for t/unit/plugin-loader.c, which compiles this file once for each with -DBAD_...: a
 * good one, and ones that are wrong in what only the loader sees. */
#include <ethrpc-gw/middleware.h>
#include <ethrpc-gw/transport.h>

#ifndef NAME
#define NAME "good"
#endif
#ifndef MAJOR
#define MAJOR EGW_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR EGW_ABI_MINOR
#endif
#ifndef MAGIC
#define MAGIC EGW_MAGIC
#endif
#ifndef SCHEMES
#define SCHEMES "good"
#endif

#ifdef BAD_SYMBOL
void egw_of_the_future(void);
#endif

#ifdef BAD_TRANSPORT

static int
open_link(struct egw_link *link)
{
  (void)link;
  return 0;
}

static void
close_link(struct egw_link *link)
{
  (void)link;
}

static void
take(struct egw_link *link, struct egw_xchg *xchg)
{
  (void)link;
  (void)xchg;
}

static void
more(struct egw_link *link, struct egw_xchg *xchg, struct egw_conn *conn)
{
  (void)link;
  (void)xchg;
  (void)conn;
}

static const struct egw_transport plugin = {
  .plugin = {
    EGW_HEAD(struct egw_transport, EGW_TYPE_TRANSPORT), .name = NAME, .version = "1",
    .summary = "A test",
  },
  .schemes = SCHEMES,
  .caps = EGW_T_BATCH,
  .link_size = 16,
  .open = open_link,
  .close = close_link,
  .submit = take,
  .abort = take,
  .more = more,
};

#else

struct self {
  bool flag;
  uint64_t size;
};

static const struct egw_option options[] = {
  { .name = "flag", .type = EGW_OPT_BOOL, .offset = offsetof(struct self, flag),
    .fallback = "true", .flags = EGW_OPTION_RELOAD, .help = "A flag" },
  { .name = "size", .type = EGW_OPT_SIZE, .offset = offsetof(struct self, size),
    .fallback = "1MiB", .min = 1, .max = 1 << 30, .help = "A size" },
  EGW_OPTION_END
};

static const struct egw_metric metrics[] = {
  { .name = "seen", .kind = EGW_METRIC_COUNTER, .help = "Calls seen" },
  { .name = "held", .kind = EGW_METRIC_GAUGE, .help = "Calls held" },
  EGW_METRIC_TABLE_END
};

static enum egw_verdict
request(const struct egw_at *at, struct egw_call *call)
{
  (void)at;
  (void)call;
#ifdef BAD_SYMBOL
  egw_of_the_future();
#endif
  egw_log(EGW_DEBUG, "good", "a call");
  return EGW_NEXT;
}

static const struct egw_middleware plugin = {
  .plugin = {
    .magic = MAGIC,
    .abi_major = MAJOR,
    .abi_minor = MINOR,
#ifdef BAD_OLD
    .struct_size = sizeof(struct egw_plugin),
#else
    .struct_size = sizeof(struct egw_middleware),
#endif
    .type = EGW_TYPE_MIDDLEWARE,
    .name = NAME,
    .version = "1.2.3",
    .summary = "A test",
    .options = options,
    .metrics = metrics,
    .instance_size = sizeof(struct self),
  },
  .kinds = EGW_KIND_ALL,
  .flags = EGW_STAGE_GUARD,
  .call_size = 24,
  .request = request,
};

#endif

#if defined(BAD_NO_ENTRY)
const void *const egw_not_the_entry = &plugin;
#elif defined(BAD_NULL_ENTRY)
extern const struct egw_plugin *const egw_plugin_entry;
const struct egw_plugin *const egw_plugin_entry = NULL;
#else
EGW_REGISTER(plugin)
#endif
