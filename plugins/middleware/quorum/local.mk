# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/quorum/quorum.so
plugins_middleware_quorum_quorum_so_SOURCES = \
	plugins/middleware/quorum/ballot.c \
	plugins/middleware/quorum/fingerprint.c \
	plugins/middleware/quorum/fingerprint.h \
	plugins/middleware/quorum/quorum.c \
	plugins/middleware/quorum/quorum.h \
	plugins/middleware/quorum/resolve.c \
	plugins/middleware/quorum/resolve.h \
	plugins/middleware/quorum/vote.c \
	$(NULL)
plugins_middleware_quorum_quorum_so_CFLAGS = $(plugin_cflags)
plugins_middleware_quorum_quorum_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/quorum/ethrpc-gw-quorum.pod
