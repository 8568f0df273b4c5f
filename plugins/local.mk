# SPDX-License-Identifier: MIT
# Each plugin is one shared object: its fragment adds to plugin_PROGRAMS and sets
# <canonical name>_SOURCES, _CFLAGS, _LDFLAGS = $(plugin_ldflags), _LDADD.
plugin_PROGRAMS =
plugin_cflags = $(AM_CFLAGS) -fPIC
plugin_ldflags = $(AM_LDFLAGS) -shared -Wl,--version-script=$(top_srcdir)/plugins/plugin.syms

include plugins/common/redis/local.mk
EXTRA_DIST += plugins/common/pattern.h
include plugins/middleware/methods/local.mk
include plugins/middleware/batch/local.mk
include plugins/middleware/auth/local.mk
include plugins/middleware/cache/local.mk
include plugins/middleware/coalesce/local.mk
include plugins/middleware/failover/local.mk
include plugins/middleware/log/local.mk
include plugins/middleware/logsplit/local.mk
include plugins/middleware/prefetch/local.mk
include plugins/middleware/quorum/local.mk
include plugins/middleware/ratelimit/local.mk
include plugins/transport/http/local.mk
include plugins/transport/ws/local.mk
include plugins/transport/ipc/local.mk
include plugins/transport/replay/local.mk
include plugins/example/local.mk
EXTRA_DIST += plugins/plugin.syms
