# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/batch/batch.so
plugins_middleware_batch_batch_so_SOURCES = plugins/middleware/batch/batch.c
plugins_middleware_batch_batch_so_CFLAGS = $(plugin_cflags)
plugins_middleware_batch_batch_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/batch/ethrpc-gw-batch.pod
