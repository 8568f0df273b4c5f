/* SPDX-License-Identifier: MIT */
/* What every loadable module of ethrpc-gw has in common: the descriptor, typed options,
 * metrics, the log.
 *
 * A plugin is a shared object that exports one symbol, `egw_plugin_entry`, a pointer to its
 * const descriptor (EGW_REGISTER does it). The descriptor begins with `struct egw_plugin`
 * and is either a `struct egw_middleware` or a `struct egw_transport`.
 *
 * Life of an instance: the host allocates `instance_size` zeroed bytes, fills in the options
 * by the table, then calls configure() on the main thread; on each worker it allocates
 * `worker_size` zeroed bytes and calls worker_start(); at the end worker_stop() on each
 * worker, then unconfigure() on the main thread. From worker_start() on `self` is const.
 *
 * ABI: a different major is refused; a newer minor is accepted if its symbols resolve. New
 * fields come only at the end of egw_middleware and egw_transport (the host reads
 * `struct_size` bytes and takes the rest as zero); egw_plugin, egw_option and egw_metric
 * have reserved words instead, since they are embedded or stand in arrays.
 */
#ifndef ETHRPC_GW_PLUGIN_H
#define ETHRPC_GW_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define EGW_MAGIC UINT32_C(0x45475731) /* "EGW1" */
#define EGW_ABI_MAJOR 1
#define EGW_ABI_MINOR 0

/* Gaps on purpose: kinds may come between. */
enum egw_type {
  EGW_TYPE_MIDDLEWARE = 1000,
  EGW_TYPE_TRANSPORT = 2000
};

struct egw_worker; /* one thread with its loop; see loop.h */
struct egw_conf;   /* one section of the configuration */

/* --- options ---------------------------------------------------------------------- */

/* How an option's text is read and which C type the field has. */
enum egw_option_type {
  EGW_OPT_END = 0,
  EGW_OPT_BOOL,     /* bool           true | false */
  EGW_OPT_INT,      /* int64_t        a whole number */
  EGW_OPT_SIZE,     /* uint64_t       bytes: "64MiB", "10kB", "512" */
  EGW_OPT_DURATION, /* uint64_t       milliseconds: "250ms", "5s", "2m", "1h" */
  EGW_OPT_RATIO,    /* double         from 0 to 1: 0.2, or "20%" */
  EGW_OPT_STRING,   /* const char *   text; NULL when no default is given */
  EGW_OPT_SECRET,   /* const char *   text that is never printed; "file:PATH" reads a file */
  EGW_OPT_ENUM,     /* int            index into `choices` */
  EGW_OPT_LIST,     /* struct egw_strings   ( "a", "b" ) or [ "a", "b" ] */
  EGW_OPT_SECTION   /* nothing is stored: a group or list that configure() reads by
                       egw_conf_section() */
};

enum {
  EGW_OPTION_REQUIRED = 1,  /* an error when it is missing */
  EGW_OPTION_RELOAD = 2,    /* a change takes effect on reload without losing state */
  EGW_OPTION_SECRET = 4     /* LIST: its strings are never printed, as those of SECRET */
};

/* A list of strings; owned by the host, valid as long as the instance. */
struct egw_strings {
  const char *const *v;
  size_t n;
};

/* One row of an option table; the table ends with EGW_OPTION_END. The same table feeds the
 * parser, range checks, --check-config, --dump-config, --dump-plugin and the manual test. */
struct egw_option {
  const char *name;            /* lower case, words joined by _ */
  enum egw_option_type type;
  size_t offset;               /* of the field in the instance */
  const char *fallback;        /* default, as text (LIST: words joined by commas); NULL: zero /
                                  NULL / empty */
  const char *help;            /* one line, without a full stop */
  int64_t min, max;            /* INT, SIZE, DURATION: inclusive; both 0: unchecked */
  const char *const *choices;  /* ENUM: NULL-terminated */
  uint32_t flags;              /* EGW_OPTION_* */
  void *reserved[2];
};

#define EGW_OPTION_END { 0 }

/* --- metrics ---------------------------------------------------------------------- */

enum egw_metric_kind {
  EGW_METRIC_END = 0,
  EGW_METRIC_COUNTER, /* only grows */
  EGW_METRIC_GAUGE    /* goes up and down; the sum over the workers is shown */
};

/* One row of a metric table; a row's index is its id in egw_count(). Exported as
 * ethrpcgw_<plugin>_<name>{instance="..."}; counters get the suffix _total. */
struct egw_metric {
  const char *name;
  enum egw_metric_kind kind;
  const char *help;
  void *reserved[2];
};

#define EGW_METRIC_TABLE_END { 0 }

/* --- the descriptor --------------------------------------------------------------- */

/* The head of every descriptor. Const, in read-only memory, valid while loaded. */
struct egw_plugin {
  uint32_t magic;
  uint16_t abi_major, abi_minor;
  uint32_t struct_size;        /* of the whole descriptor, as the plugin was compiled */
  uint32_t type;               /* enum egw_type */
  const char *name;            /* [a-z][a-z0-9-]*, the name used in the configuration */
  const char *version;
  const char *summary;         /* one line */
  const struct egw_option *options; /* or NULL */
  const struct egw_metric *metrics; /* or NULL */
  size_t instance_size, worker_size;

  /* Main thread, options already filled in: cross-checks and sub-sections. 0, or -1 after
   * reporting by egw_conf_error(). */
  int (*configure)(void *self, struct egw_conf *section);
  /* Main thread: frees what configure() made; also called when configure() failed. */
  void (*unconfigure)(void *self);
  /* Worker thread, before the first call. 0, or -1 (the reason by egw_log()): the gateway
   * refuses to start. */
  int (*worker_start)(const void *self, void *mine, struct egw_worker *worker);
  /* Worker thread, after the last call. */
  void (*worker_stop)(const void *self, void *mine, struct egw_worker *worker);
  void *reserved[4];
};

#define EGW_HEAD(struct_type, plugin_type)                                                  \
  .magic = EGW_MAGIC, .abi_major = EGW_ABI_MAJOR, .abi_minor = EGW_ABI_MINOR,               \
  .struct_size = sizeof(struct_type), .type = (plugin_type)

#if defined(__GNUC__)
#define EGW_EXPORT __attribute__((visibility("default")))
#else
#define EGW_EXPORT
#endif

/* Makes `descriptor` (whose member `plugin` is the head) the plugin of this shared object. */
#define EGW_REGISTER(descriptor)                                                            \
  extern const struct egw_plugin *const egw_plugin_entry;                                   \
  EGW_EXPORT const struct egw_plugin *const egw_plugin_entry = &(descriptor).plugin;

/* --- configuration beyond scalars --------------------------------------------------- */

/* Reports "file:line: ..." against `key` of the section (NULL: the section itself) and
 * returns -1. Errors are collected; the generation is refused after all are known. Main
 * thread, in configure() only. The text must hold no secret. */
int egw_conf_error(struct egw_conf *section, const char *key, const char *fmt, ...)
    EGW_PRINTF(3, 4);

/* Warns in the same form; the configuration stays valid. */
void egw_conf_warn(struct egw_conf *section, const char *key, const char *fmt, ...)
    EGW_PRINTF(3, 4);

/* The sub-section `key` (a group), or NULL. Valid during configure(). */
struct egw_conf *egw_conf_section(struct egw_conf *section, const char *key);

/* Number of elements of the list `key`, 0 if it is missing; element `index` of it when that
 * is a group, else NULL. */
size_t egw_conf_count(struct egw_conf *section, const char *key);
struct egw_conf *egw_conf_element(struct egw_conf *section, const char *key, size_t index);

/* Reads a sub-section by an option table of its own into `target` (zeroed by the caller).
 * Strings live as long as the instance. 0, or -1 when an error was reported. */
int egw_conf_read(struct egw_conf *section, const struct egw_option *options, void *target);

/* Whether a listener of that name is configured (egw_client.listener): rules for one that is not
 * there are a mistake worth a warning. Main thread, in configure(). */
bool egw_conf_has_listener(const struct egw_conf *section, const char *name);

/* --- log -------------------------------------------------------------------------- */

enum egw_level { EGW_ERROR, EGW_WARN, EGW_INFO, EGW_DEBUG, EGW_TRACE };

/* Whether lines of `level` are written: to skip the work of making them. Any thread. */
bool egw_log_on(enum egw_level level);

/* Writes one line. `area` is a short constant word ("ipc", "cache"). The text is escaped and
 * cut by the host; it must hold no secret and no upstream URL. Any thread. */
void egw_log(enum egw_level level, const char *area, const char *fmt, ...) EGW_PRINTF(3, 4);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
