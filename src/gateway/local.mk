# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/gateway/build.c \
	src/gateway/discover.c \
	src/gateway/discover.h \
	src/gateway/gateway.h \
	src/gateway/notify.c \
	src/gateway/notify.h \
	src/gateway/run.c \
	src/gateway/version.c \
	src/gateway/version.h \
	$(NULL)
