# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/chain/api.c \
	src/chain/call.c \
	src/chain/call.h \
	src/chain/chain.c \
	src/chain/chain.h \
	src/chain/parts.h \
	src/chain/stages.c \
	src/chain/story.c \
	src/chain/subcall.c \
	$(NULL)
