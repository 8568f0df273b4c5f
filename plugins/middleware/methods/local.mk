# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/methods/methods.so
plugins_middleware_methods_methods_so_SOURCES = plugins/middleware/methods/methods.c
plugins_middleware_methods_methods_so_CFLAGS = $(plugin_cflags)
plugins_middleware_methods_methods_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/methods/ethrpc-gw-methods.pod
