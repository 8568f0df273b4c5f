# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/admin/admin.c \
	src/admin/admin.h \
	src/admin/status.c \
	src/admin/status.h \
	$(NULL)
