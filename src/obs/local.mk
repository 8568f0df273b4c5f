# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	src/obs/log.c \
	src/obs/log.h \
	src/obs/metrics.c \
	src/obs/metrics.h \
	src/obs/prometheus.c \
	src/obs/secret.c \
	src/obs/secret.h \
	$(NULL)
