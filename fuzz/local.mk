# SPDX-License-Identifier: MIT
# libFuzzer targets: ./configure CC=clang --enable-fuzzers. Each compiles what it needs itself,
# with the sanitizers, so that the library's own objects stay as they are.
#
#   make fuzz [FUZZ_SECONDS=60]   runs each on its corpus in fuzz/corpus/<target>/
FUZZ_SECONDS = 60
fuzz_cflags = $(AM_CFLAGS) -U_FORTIFY_SOURCE -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -fno-omit-frame-pointer
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer,address,undefined
fuzz_programs =
fuzz_rpc_sources = \
	src/base/buf.c \
	src/rpc/envelope.c \
	src/rpc/error.c \
	src/rpc/json-quote.c \
	src/rpc/json.c \
	src/rpc/reply.c \
	src/rpc/scan-string.c \
	src/rpc/scan.c \
	$(NULL)

if FUZZERS
fuzz_programs += fuzz/fuzz-scan
fuzz_fuzz_scan_SOURCES = fuzz/fuzz-scan.c $(fuzz_rpc_sources)
fuzz_fuzz_scan_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_scan_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-envelope
fuzz_fuzz_envelope_SOURCES = fuzz/fuzz-envelope.c $(fuzz_rpc_sources)
fuzz_fuzz_envelope_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_envelope_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-reply
fuzz_fuzz_reply_SOURCES = fuzz/fuzz-reply.c $(fuzz_rpc_sources)
fuzz_fuzz_reply_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_reply_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-logs
fuzz_fuzz_logs_SOURCES = fuzz/fuzz-logs.c src/base/hash.c src/base/keccak.c src/base/map.c \
	src/head/blocks.c src/push/logs.c src/push/match.c src/rpc/hex.c $(fuzz_rpc_sources)
fuzz_fuzz_logs_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_logs_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-ipc
fuzz_fuzz_ipc_SOURCES = fuzz/fuzz-ipc.c src/listen/ipc-frame.c src/base/buf.c src/rpc/scan.c \
	src/rpc/scan-string.c
fuzz_fuzz_ipc_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_ipc_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-array
fuzz_fuzz_array_SOURCES = fuzz/fuzz-array.c $(fuzz_rpc_sources)
fuzz_fuzz_array_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_array_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-gate
fuzz_fuzz_gate_SOURCES = fuzz/fuzz-gate.c src/listen/gate.c src/listen/gate-policy.c \
	src/listen/gate-names.c
fuzz_fuzz_gate_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_gate_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-quorum
fuzz_fuzz_quorum_SOURCES = fuzz/fuzz-quorum.c plugins/middleware/quorum/fingerprint.c \
	$(fuzz_rpc_sources)
fuzz_fuzz_quorum_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_quorum_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-auth
fuzz_fuzz_auth_SOURCES = fuzz/fuzz-auth.c $(auth_parts) $(fuzz_rpc_sources)
fuzz_fuzz_auth_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_auth_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_auth_LDADD = $(OPENSSL_LIBS)

fuzz_programs += fuzz/fuzz-proxies
fuzz_fuzz_proxies_SOURCES = fuzz/fuzz-proxies.c src/listen/proxies.c src/base/net.c \
	src/listen/gate.c src/listen/gate-policy.c src/listen/gate-names.c
fuzz_fuzz_proxies_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_proxies_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-cache
fuzz_fuzz_cache_SOURCES = fuzz/fuzz-cache.c plugins/middleware/cache/ask.c \
	plugins/middleware/cache/key.c plugins/middleware/cache/plan.c \
	plugins/middleware/cache/rules.c $(fuzz_rpc_sources)
fuzz_fuzz_cache_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_cache_LDFLAGS = $(fuzz_ldflags)

fuzz_programs += fuzz/fuzz-ranges
fuzz_fuzz_ranges_SOURCES = fuzz/fuzz-ranges.c plugins/middleware/logsplit/complaint.c \
	plugins/middleware/logsplit/filter.c plugins/middleware/prefetch/shape.c \
	src/rpc/hex.c $(fuzz_rpc_sources)
fuzz_fuzz_ranges_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_ranges_LDFLAGS = $(fuzz_ldflags)

if HAVE_HIREDIS
fuzz_programs += fuzz/fuzz-record fuzz/fuzz-redis
fuzz_fuzz_record_SOURCES = fuzz/fuzz-record.c $(cache_record) src/base/buf.c
fuzz_fuzz_record_CFLAGS = $(fuzz_cflags)
fuzz_fuzz_record_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_record_LDADD = $(OPENSSL_LIBS)
fuzz_fuzz_redis_SOURCES = fuzz/fuzz-redis.c plugins/common/redis/answer.c src/base/buf.c
fuzz_fuzz_redis_CFLAGS = $(fuzz_cflags) $(HIREDIS_CFLAGS)
fuzz_fuzz_redis_LDFLAGS = $(fuzz_ldflags)
fuzz_fuzz_redis_LDADD = $(HIREDIS_LIBS)
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
