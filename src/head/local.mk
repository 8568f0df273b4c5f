# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/head/head.h \
	src/head/snapshot.c \
	$(NULL)
