# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/plugin/check.c \
	src/plugin/dump.c \
	src/plugin/loader.c \
	src/plugin/loader.h \
	$(NULL)
EXTRA_DIST += src/plugin/ethrpc-gw.syms
