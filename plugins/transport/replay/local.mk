# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/transport/replay/replay.so
plugins_transport_replay_replay_so_SOURCES = \
	plugins/transport/replay/replay-tape.c \
	plugins/transport/replay/replay.c \
	plugins/transport/replay/replay.h \
	$(NULL)
plugins_transport_replay_replay_so_CFLAGS = $(plugin_cflags)
plugins_transport_replay_replay_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/transport/replay/ethrpc-gw-replay.pod
