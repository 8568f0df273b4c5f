# SPDX-License-Identifier: MIT
# Whole-program tests, one file a line.
script_tests += \
	t/wire-s-faults.t \
	t/admin-pages.t \
	t/bench-load.t \
	t/bench-plot.t \
	t/bench-smoke.t \
	t/client-facts.t \
	t/conf-cli.t \
	t/docs-options.t \
	t/demo-chain.t \
	t/kit-selftest.t \
	t/lifecycle.t \
	t/mw-auth.t \
	t/mw-ratelimit-redis.t \
	t/mw-ratelimit.t \
	t/mw-logsplit.t \
	t/mw-prefetch.t \
	t/plugins-example.t \
	t/push-anvil.t \
	t/push-churn.t \
	t/push-resume.t \
	t/push-story.t \
	t/replay-recorded.t \
	t/mw-batch.t \
	t/mw-cache.t \
	t/mw-cache-disk.t \
	t/mw-cache-redis.t \
	t/mw-coalesce.t \
	t/mw-failover.t \
	t/mw-failover-anvil.t \
	t/mw-quorum.t \
	t/wire-a-ids.t \
	t/wire-b-batches.t \
	t/wire-c-params.t \
	t/wire-d-json.t \
	t/wire-e-http.t \
	t/wire-f-served.t \
	t/wire-f-ws.t \
	t/wire-g-ipc.t \
	t/wire-h-cache.t \
	t/wire-i-heads.t \
	t/wire-i-routing.t \
	t/wire-j-health.t \
	t/wire-k-secrets.t \
	t/wire-l-resources.t \
	t/wire-m-policy.t \
	t/wire-stream.t \
	t/differential-anvil.t \
	t/differential-chain.t \
	t/differential-geth.t \
	t/failover-kill.t \
	t/head-odd.t \
	t/head-track.t \
	t/interop-alloy.t \
	t/interop-cast.t \
	t/interop-ethers.t \
	t/interop-fork.t \
	t/interop-go.t \
	t/interop-limits.t \
	t/interop-restart.t \
	t/interop-viem.t \
	t/interop-web3js.t \
	t/interop-web3py.t \
	$(NULL)

# A stage for the one about clients.
check_PROGRAMS += t/lib/tell.so
t_lib_tell_so_SOURCES = t/lib/tell.c
t_lib_tell_so_CFLAGS = $(plugin_cflags)
t_lib_tell_so_LDFLAGS = $(plugin_ldflags)

# Their kit.
EXTRA_DIST += \
	t/lib/chain.py \
	t/lib/clients.py \
	t/lib/fakenode.py \
	t/lib/fastnode.py \
	t/lib/gateway.py \
	t/lib/keccak.py \
	t/lib/model.py \
	t/lib/net.py \
	t/lib/rawjson.py \
	t/lib/realredis.py \
	t/lib/story.py \
	t/lib/tap.py \
	t/lib/wire.py \
	t/lib/wsframe.py \
	$(NULL)

# Real nodes and clients; t/interop/install puts them outside the tree.
EXTRA_DIST += \
	t/interop/install \
	t/interop/package.json \
	t/interop/requirements.txt \
	t/interop/Probe.sol \
	t/interop/Probe.json \
	t/interop/common.mjs \
	t/interop/limits.mjs \
	t/interop/limits.py \
	t/interop/ethers.mjs \
	t/interop/viem.mjs \
	t/interop/web3js.mjs \
	t/interop/watch.mjs \
	t/interop/watch.py \
	t/interop/web3py.py \
	t/interop/cast.py \
	t/interop/alloy/Cargo.toml \
	t/interop/alloy/src/main.rs \
	t/interop/go/go.mod \
	t/interop/go/go.sum \
	t/interop/go/main.go \
	t/lib/differential.py \
	t/lib/interop.py \
	t/lib/nodes.py \
	$(NULL)

# The build itself: how it is configured, made, linked, installed, packed.
script_tests += \
	t/build-configure.t \
	t/build-dist.t \
	t/build-headers.t \
	t/build-includes.t \
	t/build-install.t \
	t/build-service.t \
	t/build-symbols.t \
	$(NULL)
EXTRA_DIST += t/lib/buildtree.py
