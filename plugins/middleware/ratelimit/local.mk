# SPDX-License-Identifier: MIT
ratelimit_ledger_files = \
	plugins/middleware/ratelimit/ledger.c \
	plugins/middleware/ratelimit/ledger.h \
	$(NULL)
EXTRA_DIST += $(ratelimit_ledger_files)
ratelimit_ledger =
if HAVE_HIREDIS
ratelimit_ledger += $(ratelimit_ledger_files) $(redis_sources)
endif
plugin_PROGRAMS += plugins/middleware/ratelimit/ratelimit.so
plugins_middleware_ratelimit_ratelimit_so_SOURCES = \
	plugins/middleware/ratelimit/account.c \
	plugins/middleware/ratelimit/account.h \
	plugins/middleware/ratelimit/address.c \
	plugins/middleware/ratelimit/address.h \
	plugins/middleware/ratelimit/clients.c \
	plugins/middleware/ratelimit/clients.h \
	plugins/middleware/ratelimit/config.c \
	plugins/middleware/ratelimit/rate.c \
	plugins/middleware/ratelimit/rate.h \
	plugins/middleware/ratelimit/ratelimit.c \
	plugins/middleware/ratelimit/ratelimit.h \
	plugins/middleware/ratelimit/rules.c \
	plugins/middleware/ratelimit/rules.h \
	plugins/middleware/ratelimit/total.c \
	plugins/middleware/ratelimit/total.h \
	src/base/net.c \
	$(ratelimit_ledger) \
	$(NULL)
plugins_middleware_ratelimit_ratelimit_so_CFLAGS = $(plugin_cflags) $(HIREDIS_CFLAGS)
plugins_middleware_ratelimit_ratelimit_so_LDFLAGS = $(plugin_ldflags)
plugins_middleware_ratelimit_ratelimit_so_LDADD = $(HIREDIS_LIBS) $(UV_LIBS) -lpthread
dist_man_pods += plugins/middleware/ratelimit/ethrpc-gw-ratelimit.pod
