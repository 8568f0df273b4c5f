# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/transport/ipc/ipc.so
plugins_transport_ipc_ipc_so_SOURCES = \
	plugins/transport/common/pool.c \
	plugins/transport/common/pool.h \
	plugins/transport/ipc/ipc.c \
	$(NULL)
plugins_transport_ipc_ipc_so_CFLAGS = $(plugin_cflags)
plugins_transport_ipc_ipc_so_LDFLAGS = $(plugin_ldflags)
plugins_transport_ipc_ipc_so_LDADD = $(UV_LIBS)
dist_man_pods += plugins/transport/ipc/ethrpc-gw-ipc.pod
