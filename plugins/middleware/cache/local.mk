# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/cache/cache.so
plugins_middleware_cache_cache_so_SOURCES = \
	plugins/middleware/cache/ask.c \
	plugins/middleware/cache/ask.h \
	plugins/middleware/cache/cache.c \
	plugins/middleware/cache/key.c \
	plugins/middleware/cache/key.h \
	plugins/middleware/cache/plan.c \
	plugins/middleware/cache/plan.h \
	plugins/middleware/cache/rules.c \
	plugins/middleware/cache/rules.h \
	plugins/middleware/cache/store.c \
	plugins/middleware/cache/store.h \
	$(NULL)
plugins_middleware_cache_cache_so_CFLAGS = $(plugin_cflags)
plugins_middleware_cache_cache_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/cache/ethrpc-gw-cache.pod
