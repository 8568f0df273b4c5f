# SPDX-License-Identifier: MIT
if HAVE_CURL
plugin_PROGRAMS += plugins/transport/http/http.so
plugins_transport_http_http_so_SOURCES = \
	plugins/transport/common/auth.c \
	plugins/transport/common/auth.h \
	plugins/transport/http/http-easy.c \
	plugins/transport/http/http-headers.c \
	plugins/transport/http/http-loop.c \
	plugins/transport/http/http-names.c \
	plugins/transport/http/http-pool.c \
	plugins/transport/http/http.c \
	plugins/transport/http/http.h \
	$(NULL)
plugins_transport_http_http_so_CFLAGS = $(plugin_cflags) $(CURL_CFLAGS)
plugins_transport_http_http_so_LDFLAGS = $(plugin_ldflags)
plugins_transport_http_http_so_LDADD = $(CURL_LIBS) $(UV_LIBS) $(OPENSSL_LIBS)
endif
dist_man_pods += plugins/transport/http/ethrpc-gw-http.pod
