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
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
fuzz_programs =
fuzz_core = fuzz/libcore.a $(core_libs)

# What a target needs beside the core.
fuzz_cache_parts = plugins/middleware/cache/ask.c plugins/middleware/cache/key.c \
	plugins/middleware/cache/plan.c plugins/middleware/cache/rules.c
fuzz_ranges_parts = plugins/middleware/logsplit/complaint.c \
	plugins/middleware/logsplit/filter.c plugins/middleware/prefetch/shape.c
fuzz_quorum_parts = plugins/middleware/quorum/fingerprint.c

if FUZZERS
noinst_LIBRARIES += fuzz/libcore.a
fuzz_libcore_a_SOURCES = $(src_libegw_a_SOURCES)
fuzz_libcore_a_CFLAGS = $(fuzz_cflags)
endif

unit_tests += fuzz/replay-array.t
fuzz_replay_array_t_SOURCES = fuzz/replay.c fuzz/fuzz-array.c
fuzz_replay_array_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-array
fuzz_fuzz_array_SOURCES = fuzz/fuzz-array.c
fuzz_fuzz_array_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_array_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_array_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-auth.t
fuzz_replay_auth_t_SOURCES = fuzz/replay.c fuzz/fuzz-auth.c $(auth_parts)
fuzz_replay_auth_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-auth
fuzz_fuzz_auth_SOURCES = fuzz/fuzz-auth.c $(auth_parts)
fuzz_fuzz_auth_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_auth_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_auth_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-cache.t
fuzz_replay_cache_t_SOURCES = fuzz/replay.c fuzz/fuzz-cache.c $(fuzz_cache_parts)
fuzz_replay_cache_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-cache
fuzz_fuzz_cache_SOURCES = fuzz/fuzz-cache.c $(fuzz_cache_parts)
fuzz_fuzz_cache_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_cache_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_cache_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-envelope.t
fuzz_replay_envelope_t_SOURCES = fuzz/replay.c fuzz/fuzz-envelope.c
fuzz_replay_envelope_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-envelope
fuzz_fuzz_envelope_SOURCES = fuzz/fuzz-envelope.c
fuzz_fuzz_envelope_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_envelope_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_envelope_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-gate.t
fuzz_replay_gate_t_SOURCES = fuzz/replay.c fuzz/fuzz-gate.c
fuzz_replay_gate_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-gate
fuzz_fuzz_gate_SOURCES = fuzz/fuzz-gate.c
fuzz_fuzz_gate_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_gate_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_gate_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-ipc.t
fuzz_replay_ipc_t_SOURCES = fuzz/replay.c fuzz/fuzz-ipc.c
fuzz_replay_ipc_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-ipc
fuzz_fuzz_ipc_SOURCES = fuzz/fuzz-ipc.c
fuzz_fuzz_ipc_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_ipc_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_ipc_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-logs.t
fuzz_replay_logs_t_SOURCES = fuzz/replay.c fuzz/fuzz-logs.c
fuzz_replay_logs_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-logs
fuzz_fuzz_logs_SOURCES = fuzz/fuzz-logs.c
fuzz_fuzz_logs_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_logs_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_logs_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-proxies.t
fuzz_replay_proxies_t_SOURCES = fuzz/replay.c fuzz/fuzz-proxies.c
fuzz_replay_proxies_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-proxies
fuzz_fuzz_proxies_SOURCES = fuzz/fuzz-proxies.c
fuzz_fuzz_proxies_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_proxies_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_proxies_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-quorum.t
fuzz_replay_quorum_t_SOURCES = fuzz/replay.c fuzz/fuzz-quorum.c $(fuzz_quorum_parts)
fuzz_replay_quorum_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-quorum
fuzz_fuzz_quorum_SOURCES = fuzz/fuzz-quorum.c $(fuzz_quorum_parts)
fuzz_fuzz_quorum_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_quorum_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_quorum_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-ranges.t
fuzz_replay_ranges_t_SOURCES = fuzz/replay.c fuzz/fuzz-ranges.c $(fuzz_ranges_parts)
fuzz_replay_ranges_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-ranges
fuzz_fuzz_ranges_SOURCES = fuzz/fuzz-ranges.c $(fuzz_ranges_parts)
fuzz_fuzz_ranges_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_ranges_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_ranges_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-reply.t
fuzz_replay_reply_t_SOURCES = fuzz/replay.c fuzz/fuzz-reply.c
fuzz_replay_reply_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-reply
fuzz_fuzz_reply_SOURCES = fuzz/fuzz-reply.c
fuzz_fuzz_reply_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_reply_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_reply_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-scan.t
fuzz_replay_scan_t_SOURCES = fuzz/replay.c fuzz/fuzz-scan.c
fuzz_replay_scan_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-scan
fuzz_fuzz_scan_SOURCES = fuzz/fuzz-scan.c
fuzz_fuzz_scan_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_scan_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_scan_LDADD = $(fuzz_core)
endif

if HAVE_HIREDIS
unit_tests += fuzz/replay-record.t
fuzz_replay_record_t_SOURCES = fuzz/replay.c fuzz/fuzz-record.c $(cache_record)
fuzz_replay_record_t_LDADD = src/libegw.a $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-record
fuzz_fuzz_record_SOURCES = fuzz/fuzz-record.c $(cache_record)
fuzz_fuzz_record_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_record_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_record_LDADD = $(fuzz_core)
endif

unit_tests += fuzz/replay-redis.t
fuzz_replay_redis_t_SOURCES = fuzz/replay.c fuzz/fuzz-redis.c plugins/common/redis/answer.c
fuzz_replay_redis_t_CFLAGS = $(AM_CFLAGS) $(HIREDIS_CFLAGS)
fuzz_replay_redis_t_LDADD = src/libegw.a $(HIREDIS_LIBS) $(core_libs)
if FUZZERS
fuzz_programs += fuzz/fuzz-redis
fuzz_fuzz_redis_SOURCES = fuzz/fuzz-redis.c plugins/common/redis/answer.c
fuzz_fuzz_redis_CFLAGS = $(fuzz_cflags) $(HIREDIS_CFLAGS)
fuzz_fuzz_redis_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_redis_LDADD = $(HIREDIS_LIBS) $(fuzz_core)
endif
endif

noinst_PROGRAMS += $(fuzz_programs)
EXTRA_DIST += fuzz/corpus fuzz/fuzz-record.c fuzz/fuzz-redis.c

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
