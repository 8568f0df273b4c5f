# SPDX-License-Identifier: MIT
# The Redis client, compiled into each plugin that uses it: $(redis_sources) in _SOURCES,
# $(HIREDIS_CFLAGS) in _CFLAGS, $(HIREDIS_LIBS) $(UV_LIBS) in _LDADD. Without hiredis it is empty.
redis_files = \
	plugins/common/redis/address.c \
	plugins/common/redis/answer.c \
	plugins/common/redis/client.c \
	plugins/common/redis/conn.c \
	plugins/common/redis/parts.h \
	plugins/common/redis/redis.h \
	src/conf/url.c \
	$(NULL)
redis_sources =
if HAVE_HIREDIS
redis_sources += $(redis_files)
endif
EXTRA_DIST += $(redis_files)
