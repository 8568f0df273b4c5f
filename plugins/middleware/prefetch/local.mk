# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/prefetch/prefetch.so
plugins_middleware_prefetch_prefetch_so_SOURCES = \
	plugins/middleware/prefetch/ahead.c \
	plugins/middleware/prefetch/ahead.h \
	plugins/middleware/prefetch/prefetch.c \
	plugins/middleware/prefetch/shape.c \
	plugins/middleware/prefetch/shape.h \
	plugins/middleware/prefetch/track.c \
	plugins/middleware/prefetch/track.h \
	plugins/middleware/prefetch/walk.c \
	plugins/middleware/prefetch/walk.h \
	plugins/middleware/prefetch/warm.c \
	plugins/middleware/prefetch/warm.h \
	$(NULL)
plugins_middleware_prefetch_prefetch_so_CFLAGS = $(plugin_cflags)
plugins_middleware_prefetch_prefetch_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/prefetch/ethrpc-gw-prefetch.pod
