# SPDX-License-Identifier: MIT
# Whole-program tests, one file a line.
script_tests += \
	$(NULL)
