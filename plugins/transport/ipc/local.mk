# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/transport/ipc/ipc.so
plugins_transport_ipc_ipc_so_SOURCES = plugins/transport/ipc/ipc.c
plugins_transport_ipc_ipc_so_CFLAGS = $(plugin_cflags)
plugins_transport_ipc_ipc_so_LDFLAGS = $(plugin_ldflags)
plugins_transport_ipc_ipc_so_LDADD = $(UV_LIBS)
