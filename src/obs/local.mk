# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/obs/families.c \
	src/obs/families.h \
	src/obs/heads.c \
	src/obs/log.c \
	src/obs/log.h \
	src/obs/metrics.c \
	src/obs/metrics.h \
	src/obs/print.c \
	src/obs/print.h \
	src/obs/process.c \
	src/obs/prometheus.c \
	src/obs/secret.c \
	src/obs/secret.h \
	$(NULL)
