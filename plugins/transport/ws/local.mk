# SPDX-License-Identifier: MIT
# Never unloaded (nodelete): libwebsockets keeps pointers to its functions.
plugin_PROGRAMS += plugins/transport/ws/ws.so
plugins_transport_ws_ws_so_SOURCES = \
	plugins/transport/common/auth.c \
	plugins/transport/common/auth.h \
	plugins/transport/common/pool.c \
	plugins/transport/common/pool.h \
	plugins/transport/ws/ws-connect.c \
	plugins/transport/ws/ws-hub.c \
	plugins/transport/ws/ws-io.c \
	plugins/transport/ws/ws-tls.c \
	plugins/transport/ws/ws.c \
	plugins/transport/ws/ws.h \
	$(NULL)
plugins_transport_ws_ws_so_CFLAGS = $(plugin_cflags)
plugins_transport_ws_ws_so_LDFLAGS = $(plugin_ldflags) -Wl,-z,nodelete
plugins_transport_ws_ws_so_LDADD = $(LWS_LIBS) $(UV_LIBS) $(OPENSSL_LIBS)
dist_man_pods += plugins/transport/ws/ethrpc-gw-ws.pod
