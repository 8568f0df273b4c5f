# SPDX-License-Identifier: MIT
src_libegw_a_SOURCES += \
	$(NULL)
