# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/worker/mailbox.c \
	src/worker/mailbox.h \
	src/worker/resolve.c \
	src/worker/resolve.h \
	src/worker/worker.c \
	src/worker/worker.h \
	$(NULL)
