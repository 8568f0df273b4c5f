# SPDX-License-Identifier: MIT
# Fuzz targets. `make check` runs each on its corpus in fuzz/corpus/<target>/ (fuzz/replay.c), in
# any build. libFuzzer's programs: ./configure CC=clang --enable-fuzzers, then
#
#   make fuzz [FUZZ_SECONDS=60]
#
# They take the core from a library of their own that has the sanitizers, so that the core's own
# objects stay as they are.
FUZZ_SECONDS = 60
fuzz_cflags = $(AM_CFLAGS) -U_FORTIFY_SOURCE -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer
fuzz_names = array auth cache envelope gate ipc logs proxies quorum ranges reply scan

# What a target needs beside the core.
fuzz_auth_parts = $(auth_parts)
fuzz_cache_parts = plugins/middleware/cache/ask.c plugins/middleware/cache/key.c \
	plugins/middleware/cache/plan.c plugins/middleware/cache/rules.c
fuzz_quorum_parts = plugins/middleware/quorum/fingerprint.c
fuzz_ranges_parts = plugins/middleware/logsplit/complaint.c \
	plugins/middleware/logsplit/filter.c plugins/middleware/prefetch/shape.c
fuzz_record_parts = $(cache_record)
fuzz_redis_parts = plugins/common/redis/answer.c

unit_tests += fuzz/replay-array.t
fuzz_replay_array_t_SOURCES = fuzz/replay.c fuzz/fuzz-array.c
fuzz_replay_array_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-auth.t
fuzz_replay_auth_t_SOURCES = fuzz/replay.c fuzz/fuzz-auth.c $(fuzz_auth_parts)
fuzz_replay_auth_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-cache.t
fuzz_replay_cache_t_SOURCES = fuzz/replay.c fuzz/fuzz-cache.c $(fuzz_cache_parts)
fuzz_replay_cache_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-envelope.t
fuzz_replay_envelope_t_SOURCES = fuzz/replay.c fuzz/fuzz-envelope.c
fuzz_replay_envelope_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-gate.t
fuzz_replay_gate_t_SOURCES = fuzz/replay.c fuzz/fuzz-gate.c
fuzz_replay_gate_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-ipc.t
fuzz_replay_ipc_t_SOURCES = fuzz/replay.c fuzz/fuzz-ipc.c
fuzz_replay_ipc_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-logs.t
fuzz_replay_logs_t_SOURCES = fuzz/replay.c fuzz/fuzz-logs.c
fuzz_replay_logs_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-proxies.t
fuzz_replay_proxies_t_SOURCES = fuzz/replay.c fuzz/fuzz-proxies.c
fuzz_replay_proxies_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-quorum.t
fuzz_replay_quorum_t_SOURCES = fuzz/replay.c fuzz/fuzz-quorum.c $(fuzz_quorum_parts)
fuzz_replay_quorum_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-ranges.t
fuzz_replay_ranges_t_SOURCES = fuzz/replay.c fuzz/fuzz-ranges.c $(fuzz_ranges_parts)
fuzz_replay_ranges_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-reply.t
fuzz_replay_reply_t_SOURCES = fuzz/replay.c fuzz/fuzz-reply.c
fuzz_replay_reply_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-scan.t
fuzz_replay_scan_t_SOURCES = fuzz/replay.c fuzz/fuzz-scan.c
fuzz_replay_scan_t_LDADD = src/libegw.a $(core_libs)

if HAVE_HIREDIS
fuzz_names += record redis
unit_tests += fuzz/replay-record.t
fuzz_replay_record_t_SOURCES = fuzz/replay.c fuzz/fuzz-record.c $(fuzz_record_parts)
fuzz_replay_record_t_LDADD = src/libegw.a $(core_libs)

unit_tests += fuzz/replay-redis.t
fuzz_replay_redis_t_SOURCES = fuzz/replay.c fuzz/fuzz-redis.c $(fuzz_redis_parts)
fuzz_replay_redis_t_CFLAGS = $(AM_CFLAGS) $(HIREDIS_CFLAGS)
fuzz_replay_redis_t_LDADD = src/libegw.a $(HIREDIS_LIBS) $(core_libs)
endif

EXTRA_DIST += fuzz/corpus fuzz/fuzz-record.c fuzz/fuzz-redis.c

fuzz_programs = $(fuzz_names:%=fuzz/fuzz-%)
if FUZZERS
noinst_LIBRARIES += fuzz/libcore.a
fuzz_libcore_a_SOURCES = $(src_libegw_a_SOURCES)
fuzz_libcore_a_CFLAGS = $(fuzz_cflags)
all-local: $(fuzz_programs)
endif

$(fuzz_programs): fuzz/fuzz-%: fuzz/fuzz-%.c fuzz/libcore.a
	$(AM_V_CCLD)$(COMPILE) $(HIREDIS_CFLAGS) $(fuzz_cflags) $(AM_LDFLAGS) $(LDFLAGS) -o $@ $< \
	  $(patsubst %,$(top_srcdir)/%,$(filter %.c,$(fuzz_$*_parts))) fuzz/libcore.a $(HIREDIS_LIBS) \
	  $(core_libs)
CLEANFILES += $(fuzz_programs)

# New inputs go to the build's folder, not to the seeds.
.PHONY: fuzz
fuzz: $(fuzz_programs)
	@for p in $(fuzz_programs); do \
	  name=$${p#fuzz/fuzz-}; mkdir -p fuzz/found/$$name; \
	  echo "$$p: $(FUZZ_SECONDS) s"; \
	  $$p -max_total_time=$(FUZZ_SECONDS) -print_final_stats=0 -verbosity=0 \
	    -artifact_prefix=fuzz/found/$$name- fuzz/found/$$name \
	    $(top_srcdir)/fuzz/corpus/$$name || exit 1; \
	done
