# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/coalesce/coalesce.so
plugins_middleware_coalesce_coalesce_so_SOURCES = \
	plugins/middleware/coalesce/coalesce.c \
	plugins/middleware/coalesce/flights.c \
	plugins/middleware/coalesce/flights.h \
	$(NULL)
plugins_middleware_coalesce_coalesce_so_CFLAGS = $(plugin_cflags)
plugins_middleware_coalesce_coalesce_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/coalesce/ethrpc-gw-coalesce.pod
