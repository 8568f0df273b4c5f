# SPDX-License-Identifier: MIT
plugin_PROGRAMS += plugins/middleware/failover/failover.so
plugins_middleware_failover_failover_so_SOURCES = \
	plugins/middleware/failover/breaker.c \
	plugins/middleware/failover/breaker.h \
	plugins/middleware/failover/budget.c \
	plugins/middleware/failover/budget.h \
	plugins/middleware/failover/choose.c \
	plugins/middleware/failover/classify.c \
	plugins/middleware/failover/classify.h \
	plugins/middleware/failover/errors.def \
	plugins/middleware/failover/failover.c \
	plugins/middleware/failover/failover.h \
	plugins/middleware/failover/hedge.c \
	plugins/middleware/failover/latency.c \
	plugins/middleware/failover/latency.h \
	plugins/middleware/failover/nonce.c \
	plugins/middleware/failover/rawtx.c \
	plugins/middleware/failover/retry.c \
	plugins/middleware/failover/subject.c \
	plugins/middleware/failover/subject.h \
	plugins/middleware/failover/telling.c \
	plugins/middleware/failover/telling.h \
	plugins/middleware/failover/trial.c \
	plugins/middleware/failover/txhash.c \
	plugins/middleware/failover/txhash.h \
	plugins/middleware/failover/witness.c \
	$(NULL)
plugins_middleware_failover_failover_so_CFLAGS = $(plugin_cflags)
plugins_middleware_failover_failover_so_LDFLAGS = $(plugin_ldflags)
dist_man_pods += plugins/middleware/failover/ethrpc-gw-failover.pod
