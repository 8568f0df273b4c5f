# SPDX-License-Identifier: MIT
# Measuring programs: built by name only (make bench-micro-scan), never by `make all`.
EXTRA_PROGRAMS = bench/micro-scan
CLEANFILES += $(EXTRA_PROGRAMS)
bench_micro_scan_SOURCES = bench/micro-scan.c
bench_micro_scan_LDADD = src/libegw.a $(core_libs)

.PHONY: bench-micro-scan
bench-micro-scan: bench/micro-scan$(EXEEXT)
	bench/micro-scan$(EXEEXT)
