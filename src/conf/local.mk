# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/conf/args.c \
	src/conf/conf.c \
	src/conf/conf.h \
	src/conf/dump.c \
	src/conf/file.c \
	src/conf/file.h \
	src/conf/listener.c \
	src/conf/network.c \
	src/conf/option.c \
	src/conf/schema.c \
	src/conf/section.c \
	src/conf/text.c \
	src/conf/unknown.c \
	src/conf/url.c \
	src/conf/url.h \
	src/conf/value.c \
	src/conf/value.h \
	$(NULL)
