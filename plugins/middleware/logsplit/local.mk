# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/logsplit/logsplit.so
plugins_middleware_logsplit_logsplit_so_SOURCES = \
	plugins/middleware/logsplit/complaint.c \
	plugins/middleware/logsplit/complaint.h \
	plugins/middleware/logsplit/filter.c \
	plugins/middleware/logsplit/filter.h \
	plugins/middleware/logsplit/join.c \
	plugins/middleware/logsplit/logsplit.c \
	plugins/middleware/logsplit/onechain.c \
	plugins/middleware/logsplit/onechain.h \
	plugins/middleware/logsplit/parts.c \
	plugins/middleware/logsplit/parts.h \
	plugins/middleware/logsplit/split.c \
	plugins/middleware/logsplit/split.h \
	$(NULL)
plugins_middleware_logsplit_logsplit_so_CFLAGS = $(plugin_cflags)
plugins_middleware_logsplit_logsplit_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/logsplit/ethrpc-gw-logsplit.pod
