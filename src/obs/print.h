/* SPDX-License-Identifier: MIT */
/* The pieces of Prometheus text. Names are given without the prefix "ethrpcgw_". All return 0,
 * or -1 when memory is short. Any thread. */
#ifndef OBS_PRINT_H
#define OBS_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <ethrpc-gw/buf.h>

enum print_kind { PRINT_COUNTER, PRINT_GAUGE, PRINT_HISTOGRAM, PRINT_SUMMARY };

/* Values may be any text: they are escaped, and invalid UTF-8 is replaced. */
struct print_label {
  const char *name, *value;
};

/* The HELP and TYPE lines. */
int print_family(struct egw_buf *out, const char *name, enum print_kind kind,
                 const char *help) EGW_MUST_CHECK;

/* One sample. */
int print_sample(struct egw_buf *out, const char *name, const struct print_label *labels,
                 size_t count, int64_t value) EGW_MUST_CHECK;

/* One sample of microseconds, written as seconds. */
int print_seconds(struct egw_buf *out, const char *name, const struct print_label *labels,
                  size_t count, int64_t us) EGW_MUST_CHECK;

/* A family of one sample without labels. */
int print_one(struct egw_buf *out, const char *name, enum print_kind kind, const char *help,
              int64_t value) EGW_MUST_CHECK;

/* The process_ families: what the kernel knows of this process. */
int print_process(struct egw_buf *out) EGW_MUST_CHECK;

/* Facts about this process, 0 when unknown. */
struct process_facts {
  uint64_t resident_bytes, virtual_bytes;
  uint64_t open_fds, max_fds;
  uint64_t cpu_us;
  double start_time;     /* seconds since 1970 */
};
void process_facts(struct process_facts *out);

#endif
