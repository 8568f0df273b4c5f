# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/rpc/answer.c \
	src/rpc/answer.h \
	src/rpc/envelope.c \
	src/rpc/envelope.h \
	src/rpc/error.c \
	src/rpc/error.h \
	src/rpc/hex.c \
	src/rpc/json-quote.c \
	src/rpc/json.c \
	src/rpc/key.h \
	src/rpc/method.c \
	src/rpc/method.h \
	src/rpc/notes.c \
	src/rpc/notes.h \
	src/rpc/methods.def \
	src/rpc/reply.c \
	src/rpc/request.c \
	src/rpc/request.h \
	src/rpc/scan-loop.h \
	src/rpc/scan-string.c \
	src/rpc/scan-string.h \
	src/rpc/scan.c \
	src/rpc/scan.h \
	$(NULL)
