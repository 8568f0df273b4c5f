# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/upstream/batch.c \
	src/upstream/batch.h \
	src/upstream/batch-pace.c \
	src/upstream/batch-reply.c \
	src/upstream/conn.c \
	src/upstream/dispatch.c \
	src/upstream/exchange.c \
	src/upstream/group.c \
	src/upstream/heed.c \
	src/upstream/inbound.c \
	src/upstream/link.c \
	src/upstream/parts.h \
	src/upstream/route.c \
	src/upstream/upstream.h \
	src/upstream/want.c \
	$(NULL)
