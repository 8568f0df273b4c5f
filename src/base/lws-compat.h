/* SPDX-License-Identifier: MIT */
/* What differs between versions of libwebsockets, for all who make contexts. */
#ifndef BASE_LWS_COMPAT_H
#define BASE_LWS_COMPAT_H

#include <libwebsockets.h>

/* Where a context of libwebsockets logs. From 4.3 on all contexts of the process share one such
 * thing by default and count its users without a lock, which must be right to the end or the
 * library aborts: contexts of several threads need one each. To be kept as long as the context.
 * Before 4.3 there is nothing to share. */
struct lws_own_log {
#if LWS_LIBRARY_VERSION_NUMBER >= 4003000
  struct lws_log_cx cx;
#else
  int levels;
#endif
};

/* `levels`: LLL_*; `emit` gets the lines. */
static inline void
lws_own_log_init(struct lws_own_log *log, int levels, void (*emit)(int level, const char *line))
{
#if LWS_LIBRARY_VERSION_NUMBER >= 4003000
  *log = (struct lws_own_log){ .cx = { .lll_flags = (uint32_t)levels } };
  log->cx.u.emit = emit;
#else
  log->levels = levels;
  (void)emit;
#endif
}

/* For lws_create_context() and for lws_create_vhost(), which does not take it from the context. */
static inline void
lws_own_log_use(struct lws_own_log *log, struct lws_context_creation_info *info)
{
#if LWS_LIBRARY_VERSION_NUMBER >= 4003000
  info->log_cx = &log->cx;
#else
  (void)log;
  (void)info;
#endif
}

#endif
