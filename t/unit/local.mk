# SPDX-License-Identifier: MIT
# One block for each unit test:
#   unit_tests += t/unit/base-buf.t
#   t_unit_base_buf_t_SOURCES = t/unit/base-buf.c
#   t_unit_base_buf_t_LDADD = src/libegw.a $(core_libs)
