# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/upstream/conn.c \
	src/upstream/dispatch.c \
	src/upstream/exchange.c \
	src/upstream/group.c \
	src/upstream/inbound.c \
	src/upstream/link.c \
	src/upstream/parts.h \
	src/upstream/route.c \
	src/upstream/upstream.h \
	$(NULL)
