# SPDX-License-Identifier: MIT
cache_record = \
	plugins/middleware/cache/record.c \
	plugins/middleware/cache/record.h \
	$(NULL)
cache_disk_files = \
	plugins/middleware/cache/book-open.c \
	plugins/middleware/cache/book-parts.h \
	plugins/middleware/cache/book.c \
	plugins/middleware/cache/book.h \
	plugins/middleware/cache/disk-parts.h \
	plugins/middleware/cache/disk-queue.c \
	plugins/middleware/cache/disk.c \
	plugins/middleware/cache/disk.h \
	$(NULL)
cache_share_files = \
	plugins/middleware/cache/share.c \
	plugins/middleware/cache/share.h \
	$(NULL)
EXTRA_DIST += $(cache_record) $(cache_disk_files) $(cache_share_files)
cache_disk =
cache_share =
if HAVE_LMDB
cache_disk += $(cache_record) $(cache_disk_files)
endif
if HAVE_HIREDIS
cache_share += $(cache_share_files) $(redis_sources)
if !HAVE_LMDB
cache_share += $(cache_record)
endif
endif
plugin_PROGRAMS += plugins/middleware/cache/cache.so
plugins_middleware_cache_cache_so_SOURCES = \
	plugins/middleware/cache/answer.c \
	plugins/middleware/cache/ask.c \
	plugins/middleware/cache/ask.h \
	plugins/middleware/cache/cache.c \
	plugins/middleware/cache/cache.h \
	plugins/middleware/cache/history.c \
	plugins/middleware/cache/key.c \
	plugins/middleware/cache/key.h \
	plugins/middleware/cache/lookup.c \
	plugins/middleware/cache/plan.c \
	plugins/middleware/cache/plan.h \
	plugins/middleware/cache/rules.c \
	plugins/middleware/cache/rules.h \
	plugins/middleware/cache/store.c \
	plugins/middleware/cache/store.h \
	plugins/middleware/cache/tiers.c \
	plugins/middleware/cache/tiers.h \
	$(cache_disk) $(cache_share) \
	$(NULL)
plugins_middleware_cache_cache_so_CFLAGS = $(plugin_cflags) $(LMDB_CFLAGS) $(HIREDIS_CFLAGS)
plugins_middleware_cache_cache_so_LDFLAGS = $(plugin_ldflags)
plugins_middleware_cache_cache_so_LDADD = $(LMDB_LIBS) $(HIREDIS_LIBS) $(UV_LIBS) $(OPENSSL_LIBS) \
	-lpthread
dist_man_pods += plugins/middleware/cache/ethrpc-gw-cache.pod
