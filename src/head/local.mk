# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/head/blocks.c \
	src/head/blocks.h \
	src/head/feed.c \
	src/head/finality.c \
	src/head/follow.c \
	src/head/head.h \
	src/head/identity.c \
	src/head/news.c \
	src/head/parts.h \
	src/head/question.c \
	src/head/snapshot.c \
	src/head/tell.c \
	src/head/track.c \
	src/head/walk.c \
	$(NULL)
