# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/base/arena.c \
	src/base/arena.h \
	src/base/backoff.h \
	src/base/buf.c \
	src/base/buf.h \
	src/base/budget.h \
	src/base/checked.h \
	src/base/hash.c \
	src/base/keccak.c \
	src/base/list.h \
	src/base/lws-compat.h \
	src/base/map.c \
	src/base/map.h \
	src/base/net.c \
	src/base/net.h \
	src/base/out.c \
	src/base/out.h \
	src/base/span.c \
	src/base/span.h \
	src/base/ticks.h \
	src/base/wheel.c \
	src/base/wheel.h \
	$(NULL)
