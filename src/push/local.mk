# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/push/push.c \
	src/push/push.h \
	src/push/subscription.c \
	src/push/subscription.h \
	$(NULL)
