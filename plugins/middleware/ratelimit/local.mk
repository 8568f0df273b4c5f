# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/ratelimit/ratelimit.so
plugins_middleware_ratelimit_ratelimit_so_SOURCES = \
	plugins/middleware/ratelimit/address.c \
	plugins/middleware/ratelimit/address.h \
	plugins/middleware/ratelimit/clients.c \
	plugins/middleware/ratelimit/clients.h \
	plugins/middleware/ratelimit/config.c \
	plugins/middleware/ratelimit/rate.c \
	plugins/middleware/ratelimit/rate.h \
	plugins/middleware/ratelimit/ratelimit.c \
	plugins/middleware/ratelimit/ratelimit.h \
	plugins/middleware/ratelimit/rules.c \
	plugins/middleware/ratelimit/rules.h \
	plugins/middleware/ratelimit/total.c \
	plugins/middleware/ratelimit/total.h \
	$(NULL)
plugins_middleware_ratelimit_ratelimit_so_CFLAGS = $(plugin_cflags)
plugins_middleware_ratelimit_ratelimit_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/ratelimit/ethrpc-gw-ratelimit.pod
