# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/transport/ws/ws.so
plugins_transport_ws_ws_so_SOURCES = plugins/transport/ws/ws.c
plugins_transport_ws_ws_so_CFLAGS = $(plugin_cflags)
plugins_transport_ws_ws_so_LDFLAGS = $(plugin_ldflags)
plugins_transport_ws_ws_so_LDADD = $(LWS_LIBS) $(UV_LIBS)
