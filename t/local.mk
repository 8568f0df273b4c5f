# SPDX-License-Identifier: MIT
# unit_tests: programs t/unit/NAME.t from t/unit/NAME.c, linked with the core.
unit_tests =
script_tests =

include t/unit/local.mk
include t/scripts.mk

check_PROGRAMS += $(unit_tests)
EXTRA_DIST += t/lib/tap.h t/tsan.supp $(script_tests)

test_jobs = 4
.PHONY: check-prove
check-local: check-prove
check-prove: all $(check_PROGRAMS)
	@test -n "$(PROVE)" || { echo "prove is needed to run the tests (Debian: perl)"; exit 1; }
	EGW_BUILD="$(abs_top_builddir)" EGW_SOURCE="$(abs_top_srcdir)" \
	$(PROVE) --jobs $(test_jobs) --timer $(PROVE_FLAGS) \
	  $(unit_tests) $(addprefix $(top_srcdir)/,$(script_tests))
