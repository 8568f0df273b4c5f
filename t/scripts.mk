# SPDX-License-Identifier: MIT
# Whole-program tests, one file a line.
script_tests += \
	t/admin-pages.t \
	t/kit-selftest.t \
	t/lifecycle.t \
	t/replay-recorded.t \
	t/wire-a-ids.t \
	t/wire-b-batches.t \
	t/wire-c-params.t \
	t/wire-d-json.t \
	t/wire-e-http.t \
	t/wire-f-ws.t \
	t/wire-g-ipc.t \
	t/wire-k-secrets.t \
	t/wire-l-resources.t \
	t/wire-m-policy.t \
	t/wire-s-faults.t \
	t/wire-stream.t \
	$(NULL)

# Their kit.
EXTRA_DIST += \
	t/lib/chain.py \
	t/lib/clients.py \
	t/lib/fakenode.py \
	t/lib/gateway.py \
	t/lib/rawjson.py \
	t/lib/tap.py \
	t/lib/wire.py \
	t/lib/wsframe.py \
	$(NULL)
