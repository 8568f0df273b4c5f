# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/log/log.so
plugins_middleware_log_log_so_SOURCES = \
	plugins/middleware/log/log-sink.c \
	plugins/middleware/log/log-sink.h \
	plugins/middleware/log/log.c \
	$(NULL)
plugins_middleware_log_log_so_CFLAGS = $(plugin_cflags)
plugins_middleware_log_log_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/log/ethrpc-gw-log.pod
