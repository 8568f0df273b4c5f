# SPDX-License-Identifier: MIT
if HAVE_CURL
plugin_PROGRAMS += plugins/transport/http/http.so
plugins_transport_http_http_so_SOURCES = plugins/transport/http/http.c
plugins_transport_http_http_so_CFLAGS = $(plugin_cflags) $(CURL_CFLAGS)
plugins_transport_http_http_so_LDFLAGS = $(plugin_ldflags)
plugins_transport_http_http_so_LDADD = $(CURL_LIBS) $(UV_LIBS) $(OPENSSL_LIBS)
endif
