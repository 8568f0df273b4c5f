# SPDX-License-Identifier: MIT
# Measuring programs: built by name (make bench-micro-scan) or, so that they stay fit to be, by
# `make check`; never by `make all`.
check_PROGRAMS += bench/micro-scan
bench_micro_scan_SOURCES = bench/micro-scan.c
bench_micro_scan_LDADD = src/libegw.a $(core_libs)

.PHONY: bench-micro-scan
bench-micro-scan: bench/micro-scan$(EXEEXT)
	bench/micro-scan$(EXEEXT)

# What a hit of the cache costs.
check_PROGRAMS += bench/micro-cache
bench_micro_cache_SOURCES = bench/micro-cache.c plugins/middleware/cache/ask.c \
	plugins/middleware/cache/key.c plugins/middleware/cache/plan.c \
	plugins/middleware/cache/rules.c plugins/middleware/cache/store.c
bench_micro_cache_LDADD = src/libegw.a $(core_libs)

.PHONY: bench-micro-cache
bench-micro-cache: bench/micro-cache$(EXEEXT)
	bench/micro-cache$(EXEEXT)

# What a stage costs a call.
check_PROGRAMS += bench/micro-chain
bench_micro_chain_SOURCES = bench/micro-chain.c
bench_micro_chain_LDADD = src/libegw.a $(core_libs)

.PHONY: bench-micro-chain
bench-micro-chain: bench/micro-chain$(EXEEXT)
	bench/micro-chain$(EXEEXT)

# These three and instructions for a byte: see bench/micro.py.
.PHONY: bench-micro
bench-micro: bench/micro-scan$(EXEEXT) bench/micro-cache$(EXEEXT) bench/micro-chain$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/micro.py $(BENCH_FLAGS)

# The gateway beside nginx and HAProxy: see bench/proxy.py.
# What t/bench-smoke.t runs.
check_PROGRAMS += bench/node bench/idle bench/load bench/fanout bench/blocks/raw
bench_node_SOURCES = bench/node.c bench/node-result.c bench/node.h
bench_idle_SOURCES = bench/idle.c
bench_load_SOURCES = bench/load.c bench/load-conn.c bench/load-hist.c bench/load-reply.c \
	bench/load-request.c bench/load-run.c bench/load.h
bench_load_LDADD = -lm
bench_fanout_SOURCES = bench/fanout.c
bench_blocks_raw_SOURCES = bench/blocks/raw.c
EXTRA_DIST += bench/proxy.py bench/batch.py bench/walk.py bench/push.py bench/hits.py \
	bench/report.py bench/scale.py bench/plot.py bench/micro.py \
	bench/memory.py bench/growth.py bench/bigreply.py bench/workers.py bench/all.py \
	bench/mix.py bench/peers.py bench/peers/nginx.conf bench/peers/haproxy.cfg \
	bench/peers/erpc.yaml bench/peers/erpc-cache.yaml bench/peers/proxyd.toml

.PHONY: bench-proxy
bench-proxy: ethrpc-gw$(EXEEXT) bench/node$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/proxy.py $(BENCH_FLAGS)

# What arrays of calls are worth: see bench/batch.py.
.PHONY: bench-batch
bench-batch: ethrpc-gw$(EXEEXT) bench/node$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/batch.py $(BENCH_FLAGS)

# A walk through full blocks, near to the node and far from it: see bench/walk.py.
.PHONY: bench-walk
bench-walk: ethrpc-gw$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/walk.py $(BENCH_FLAGS)

# A thousand full blocks by real clients: see bench/blocks.py.
EXTRA_DIST += bench/blocks.py bench/blocks/chains.py bench/blocks/fetchers.py \
	bench/blocks/web3py.py bench/blocks/install bench/blocks/alloy/Cargo.toml \
	bench/blocks/alloy/src/main.rs

.PHONY: bench-blocks
bench-blocks: ethrpc-gw$(EXEEXT) bench/blocks/raw$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/blocks.py $(BENCH_FLAGS)

# A head told to thousands of subscribers: see bench/push.py.
.PHONY: bench-push
bench-push: ethrpc-gw$(EXEEXT) bench/fanout$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/push.py $(BENCH_FLAGS)

# Answers from the cache beside nginx, and what pollers cost the node: see bench/hits.py.
.PHONY: bench-hits
bench-hits: ethrpc-gw$(EXEEXT) bench/load$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/hits.py $(BENCH_FLAGS)

# What a call costs when there is more of everything: see bench/scale.py.
.PHONY: bench-scale
bench-scale: ethrpc-gw$(EXEEXT) bench/load$(EXEEXT) bench/micro-cache$(EXEEXT) \
		plugins/example/example1-pass.so$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/scale.py $(BENCH_FLAGS)

# A mixed load, beside nginx, HAProxy, eRPC and proxyd: see bench/mix.py.
.PHONY: bench-mix
bench-mix: ethrpc-gw$(EXEEXT) bench/node$(EXEEXT) bench/load$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/mix.py $(BENCH_FLAGS)

# Idle, with idle sessions, for a long reply, after millions of calls: see bench/memory.py.
.PHONY: bench-memory
bench-memory: ethrpc-gw$(EXEEXT) bench/node$(EXEEXT) bench/idle$(EXEEXT) bench/load$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/memory.py $(BENCH_FLAGS)

# What a second worker is worth: see bench/workers.py.
.PHONY: bench-workers
bench-workers: ethrpc-gw$(EXEEXT) bench/load$(EXEEXT)
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/workers.py $(BENCH_FLAGS)

# All of them, one after the other: make bench BENCH_FLAGS="--write docs/benchmarks.md"; and tiny,
# to see that they run: make bench-quick
bench_programs = ethrpc-gw$(EXEEXT) bench/node$(EXEEXT) bench/idle$(EXEEXT) bench/load$(EXEEXT) \
	bench/fanout$(EXEEXT) bench/micro-scan$(EXEEXT) bench/micro-cache$(EXEEXT) \
	bench/micro-chain$(EXEEXT) bench/blocks/raw$(EXEEXT)
.PHONY: bench bench-quick
bench bench-quick: all $(bench_programs)
	@quick=; test $@ = bench || quick=--quick; \
	EGW_BUILD="$(abs_top_builddir)" $(PYTHON3) $(srcdir)/bench/all.py $$quick $(BENCH_FLAGS)
