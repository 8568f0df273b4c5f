/* SPDX-License-Identifier: MIT */
/* The log: one line an event on stderr (or a file), as key=value text or JSON. Text is escaped
 * (control characters, quotes, invalid UTF-8) and cut at LOG_TEXT_MAX bytes, so that an event
 * is always one line; a stalled reader loses lines (counted), never holds a worker: the
 * descriptor is written without blocking. The logger is the program's one global.
 *
 *   2026-01-02T03:04:05.678Z warn ipc: connection lost upstream=reth ...
 *
 * Any thread. The public half (egw_log, egw_log_on) is in ethrpc-gw/plugin.h. */
#ifndef OBS_LOG_H
#define OBS_LOG_H

#include <stdio.h>
#include <ethrpc-gw/plugin.h>

#define LOG_TEXT_MAX 1024

enum log_format { LOG_TEXT, LOG_JSON };

/* Before the workers start; fd is not closed by the logger. */
void log_setup(enum egw_level level, enum log_format format, int fd);

/* "error".."trace" -> level; -1 if it is none of them. */
int log_level_parse(const char *word);
const char *log_level_name(enum egw_level level);

/* Lines lost because the reader stalled. */
unsigned long long log_lost(void);

/* Each configured secret is registered once (before the workers start); whatever is logged
 * afterwards has it replaced by "***", in raw, percent-encoded and base64 form. Copied.
 * Secrets shorter than 6 bytes are ignored, since they would blank ordinary words. */
int log_secret(const char *secret) EGW_MUST_CHECK;

/* Replaces registered secrets in `text` (NUL-terminated) by *** in place: also used for error
 * messages of upstreams. */
void log_scrub(char *text);

/* Whether `bytes` hold a registered secret in one of the forms above. */
bool log_has_secret(struct egw_slice bytes);

#endif
