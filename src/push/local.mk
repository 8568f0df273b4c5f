# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/push/filter-ask.c \
	src/push/filter-ask.h \
	src/push/filters.c \
	src/push/filters.h \
	src/push/hub.c \
	src/push/hub.h \
	src/push/local.c \
	src/push/local.h \
	src/push/logs.c \
	src/push/logs.h \
	src/push/match.c \
	src/push/match.h \
	src/push/notice.c \
	src/push/notice.h \
	src/push/pending.c \
	src/push/pending.h \
	src/push/push.c \
	src/push/push.h \
	src/push/resume.c \
	src/push/resume.h \
	src/push/subscription.c \
	src/push/subscription.h \
	src/push/syncing.c \
	src/push/syncing.h \
	$(NULL)
