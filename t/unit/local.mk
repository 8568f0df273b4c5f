# SPDX-License-Identifier: MIT
# One block for each unit test:
#   unit_tests += t/unit/base-buf.t
#   t_unit_base_buf_t_SOURCES = t/unit/base-buf.c
#   t_unit_base_buf_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/obs-log.t
t_unit_obs_log_t_SOURCES = t/unit/obs-log.c
t_unit_obs_log_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/obs-metrics.t
t_unit_obs_metrics_t_SOURCES = t/unit/obs-metrics.c
t_unit_obs_metrics_t_LDADD = src/libegw.a $(core_libs)

# Tests of transport plugins: t/lib/transport-host.h is the plugin's host. The plugin finds the
# host's functions in the program, so its symbols are visible.
transport_host = \
	t/lib/transport-host-link.c \
	t/lib/transport-host-log.c \
	t/lib/transport-host-options.c \
	t/lib/transport-host-parts.h \
	t/lib/transport-host.c \
	t/lib/transport-host.h \
	$(NULL)
transport_host_cflags = $(AM_CFLAGS) -fvisibility=default -I$(top_srcdir)/t/lib
transport_host_ldflags = $(AM_LDFLAGS) -Wl,--export-dynamic
#   unit_tests += t/unit/transport-x.t
#   t_unit_transport_x_t_SOURCES = t/unit/transport-x.c $(transport_host)
#   t_unit_transport_x_t_CFLAGS = $(transport_host_cflags)
#   t_unit_transport_x_t_LDFLAGS = $(transport_host_ldflags)
#   t_unit_transport_x_t_LDADD = src/libegw.a $(UV_LIBS) -ldl -lpthread

unit_tests += t/unit/push-match.t
t_unit_push_match_t_SOURCES = t/unit/push-match.c
t_unit_push_match_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/head-blocks.t
t_unit_head_blocks_t_SOURCES = t/unit/head-blocks.c
t_unit_head_blocks_t_LDADD = src/libegw.a $(core_libs)

# Base and rpc.
unit_tests += \
	t/unit/base-buf.t \
	t/unit/base-arena.t \
	t/unit/base-map.t \
	t/unit/base-net.t \
	t/unit/base-wheel.t \
	t/unit/base-out.t \
	t/unit/base-memory.t \
	t/unit/rpc-scan.t \
	t/unit/rpc-json.t \
	t/unit/rpc-envelope.t \
	t/unit/rpc-reply.t \
	t/unit/rpc-error.t \
	t/unit/rpc-method.t \
	t/unit/rpc-notes.t \
	$(NULL)
t_unit_base_buf_t_SOURCES = t/unit/base-buf.c
t_unit_base_buf_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_arena_t_SOURCES = t/unit/base-arena.c
t_unit_base_arena_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_map_t_SOURCES = t/unit/base-map.c
t_unit_base_map_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_net_t_SOURCES = t/unit/base-net.c
t_unit_base_net_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_wheel_t_SOURCES = t/unit/base-wheel.c
t_unit_base_wheel_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_out_t_SOURCES = t/unit/base-out.c
t_unit_base_out_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_memory_t_SOURCES = t/unit/base-memory.c
t_unit_base_memory_t_LDADD = src/libegw.a $(core_libs)
t_unit_base_memory_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc \
	-Wl,--wrap=realloc -Wl,--wrap=free
unit_tests += t/unit/rpc-eth.t
t_unit_rpc_eth_t_SOURCES = t/unit/rpc-eth.c
t_unit_rpc_eth_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_scan_t_SOURCES = t/unit/rpc-scan.c t/unit/rpc-data.h
t_unit_rpc_scan_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_json_t_SOURCES = t/unit/rpc-json.c t/unit/rpc-data.h
t_unit_rpc_json_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_envelope_t_SOURCES = t/unit/rpc-envelope.c t/unit/rpc-data.h
t_unit_rpc_envelope_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_reply_t_SOURCES = t/unit/rpc-reply.c t/unit/rpc-data.h
t_unit_rpc_reply_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_error_t_SOURCES = t/unit/rpc-error.c
t_unit_rpc_error_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_method_t_SOURCES = t/unit/rpc-method.c t/unit/rpc-data.h
t_unit_rpc_method_t_LDADD = src/libegw.a $(core_libs)
t_unit_rpc_notes_t_SOURCES = t/unit/rpc-notes.c
t_unit_rpc_notes_t_LDADD = src/libegw.a $(core_libs)

core_kit = t/lib/core.c t/lib/core.h
unit_tests += t/unit/chain-order.t
t_unit_chain_order_t_SOURCES = t/unit/chain-order.c $(core_kit)
t_unit_chain_order_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/upstream-dispatch.t
t_unit_upstream_dispatch_t_SOURCES = t/unit/upstream-dispatch.c $(core_kit)
t_unit_upstream_dispatch_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/upstream-batch.t
t_unit_upstream_batch_t_SOURCES = t/unit/upstream-batch.c $(core_kit)
t_unit_upstream_batch_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/listen-ipc-frame.t
t_unit_listen_ipc_frame_t_SOURCES = t/unit/listen-ipc-frame.c
t_unit_listen_ipc_frame_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/rpc-request.t
t_unit_rpc_request_t_SOURCES = t/unit/rpc-request.c $(core_kit)
t_unit_rpc_request_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/push-filters.t
t_unit_push_filters_t_SOURCES = t/unit/push-filters.c $(core_kit)
t_unit_push_filters_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/push-pass.t
t_unit_push_pass_t_SOURCES = t/unit/push-pass.c $(core_kit)
t_unit_push_pass_t_LDADD = src/libegw.a $(core_libs)

if HAVE_CURL
unit_tests += t/unit/transport-http.t t/unit/transport-http-pool.t
t_unit_transport_http_t_SOURCES = t/unit/transport-http.c t/lib/http-node.c t/lib/http-node.h \
	$(transport_host)
t_unit_transport_http_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_http_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_http_t_LDADD = src/libegw.a $(UV_LIBS) $(OPENSSL_LIBS) -ldl -lpthread
t_unit_transport_http_pool_t_SOURCES = t/unit/transport-http-pool.c t/lib/http-node.c \
	t/lib/http-node.h $(transport_host)
t_unit_transport_http_pool_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_http_pool_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_http_pool_t_LDADD = src/libegw.a $(UV_LIBS) -ldl -lpthread
unit_tests += t/unit/transport-http-tls.t
t_unit_transport_http_tls_t_SOURCES = t/unit/transport-http-tls.c t/lib/test-node-parts.h \
	t/lib/test-node-ws.c t/lib/test-node.c t/lib/test-node.h $(transport_host)
t_unit_transport_http_tls_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_http_tls_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_http_tls_t_LDADD = src/libegw.a $(UV_LIBS) $(OPENSSL_LIBS) -ldl -lpthread
endif

# Configuration and plugins.
unit_tests += \
	t/unit/conf-dump.t \
	t/unit/conf-load.t \
	t/unit/conf-url.t \
	t/unit/conf-value.t \
	$(NULL)
t_unit_conf_dump_t_SOURCES = t/unit/conf-dump.c t/unit/conf-kit.h
t_unit_conf_dump_t_LDADD = src/libegw.a $(core_libs)
t_unit_conf_load_t_SOURCES = t/unit/conf-load.c t/unit/conf-kit.h
t_unit_conf_load_t_LDADD = src/libegw.a $(core_libs)
t_unit_conf_url_t_SOURCES = t/unit/conf-url.c
t_unit_conf_url_t_LDADD = src/libegw.a $(core_libs)
t_unit_conf_value_t_SOURCES = t/unit/conf-value.c
t_unit_conf_value_t_LDADD = src/libegw.a $(core_libs)

# Multiplexed transports: t/lib/test-node.h is the node they talk to.
test_node = \
	t/lib/test-node-parts.h \
	t/lib/test-node-ws.c \
	t/lib/test-node.c \
	t/lib/test-node.h \
	$(NULL)
unit_tests += t/unit/transport-ipc.t
t_unit_transport_ipc_t_SOURCES = t/unit/transport-ipc.c $(test_node) $(transport_host)
t_unit_transport_ipc_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_ipc_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_ipc_t_LDADD = src/libegw.a $(UV_LIBS) $(OPENSSL_LIBS) -ldl -lpthread
unit_tests += t/unit/transport-ws.t t/unit/transport-ws-connect.t
t_unit_transport_ws_t_SOURCES = t/unit/transport-ws.c t/unit/transport-ws-kit.h $(test_node) \
	$(transport_host)
t_unit_transport_ws_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_ws_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_ws_t_LDADD = src/libegw.a $(UV_LIBS) $(OPENSSL_LIBS) -ldl -lpthread
t_unit_transport_ws_connect_t_SOURCES = t/unit/transport-ws-connect.c t/unit/transport-ws-kit.h \
	$(test_node) $(transport_host)
t_unit_transport_ws_connect_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_ws_connect_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_ws_connect_t_LDADD = src/libegw.a $(UV_LIBS) $(OPENSSL_LIBS) -ldl -lpthread
unit_tests += t/unit/plugin-loader.t
t_unit_plugin_loader_t_SOURCES = t/unit/plugin-loader.c
t_unit_plugin_loader_t_LDFLAGS = $(AM_LDFLAGS) -Wl,--export-dynamic
t_unit_plugin_loader_t_LDADD = src/libegw.a $(core_libs)
EXTRA_DIST += t/unit/bad/plugin.c

# WebSocket and IPC sessions: the kit answers the requests.
listen_kit = t/lib/listen-kit.c t/lib/listen-kit.h
listen_kit_ldflags = $(AM_LDFLAGS) -Wl,--wrap=request_start -Wl,--wrap=request_cancel_all
unit_tests += t/unit/listen-ws.t
t_unit_listen_ws_t_SOURCES = t/unit/listen-ws.c $(listen_kit)
t_unit_listen_ws_t_LDFLAGS = $(listen_kit_ldflags)
t_unit_listen_ws_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/listen-ipc.t
t_unit_listen_ipc_t_SOURCES = t/unit/listen-ipc.c $(listen_kit)
t_unit_listen_ipc_t_LDFLAGS = $(listen_kit_ldflags)
t_unit_listen_ipc_t_LDADD = src/libegw.a $(core_libs)

# Listeners: the real ones, with a stand-in for all that is behind them.
http_kit = t/lib/http-kit.c t/lib/http-kit-client.c t/lib/http-kit.h
unit_tests += \
	t/unit/listen-gate.t \
	t/unit/listen-facts.t \
	t/unit/listen-http.t \
	t/unit/listen-limits.t \
	t/unit/listen-proxies.t \
	t/unit/listen-sockets.t \
	t/unit/listen-tls.t \
	$(NULL)
t_unit_listen_sockets_t_SOURCES = t/unit/listen-sockets.c $(http_kit)
t_unit_listen_sockets_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_tls_t_SOURCES = t/unit/listen-tls.c $(http_kit)
t_unit_listen_tls_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_gate_t_SOURCES = t/unit/listen-gate.c t/unit/rpc-data.h
t_unit_listen_gate_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_facts_t_SOURCES = t/unit/listen-facts.c
t_unit_listen_facts_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_proxies_t_SOURCES = t/unit/listen-proxies.c
t_unit_listen_proxies_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_http_t_SOURCES = t/unit/listen-http.c $(http_kit)
t_unit_listen_http_t_LDADD = src/libegw.a $(core_libs)
t_unit_listen_limits_t_SOURCES = t/unit/listen-limits.c $(http_kit)
t_unit_listen_limits_t_LDADD = src/libegw.a $(core_libs)

unit_tests += t/unit/transport-replay.t
t_unit_transport_replay_t_SOURCES = t/unit/transport-replay.c $(transport_host)
t_unit_transport_replay_t_CFLAGS = $(transport_host_cflags)
t_unit_transport_replay_t_LDFLAGS = $(transport_host_ldflags)
t_unit_transport_replay_t_LDADD = src/libegw.a $(UV_LIBS) -ldl -lpthread

unit_tests += t/unit/docs-errors.t
t_unit_docs_errors_t_SOURCES = t/unit/docs-errors.c
t_unit_docs_errors_t_LDADD = src/libegw.a $(core_libs)

# Tests of middleware plugins: t/lib/plugtest.h is the plugin's host, whose functions the plugin finds
# in the program.
plugtest = \
	t/lib/plugtest-api.c \
	t/lib/plugtest-call.c \
	t/lib/plugtest-generic.c \
	t/lib/plugtest-loop.c \
	t/lib/plugtest-memory.c \
	t/lib/plugtest-node.c \
	t/lib/plugtest-parts.h \
	t/lib/plugtest-route.c \
	t/lib/plugtest.c \
	t/lib/plugtest.h \
	$(NULL)
plugtest_cflags = $(AM_CFLAGS) -fvisibility=default
plugtest_ldflags = $(AM_LDFLAGS) -Wl,--export-dynamic
#   unit_tests += t/unit/plugin-x.t
#   t_unit_plugin_x_t_SOURCES = t/unit/plugin-x.c $(plugtest)
#   t_unit_plugin_x_t_CFLAGS = $(plugtest_cflags)
#   t_unit_plugin_x_t_LDFLAGS = $(plugtest_ldflags)
#   t_unit_plugin_x_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-examples.t
t_unit_plugin_examples_t_SOURCES = t/unit/plugin-examples.c $(plugtest)
t_unit_plugin_examples_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_examples_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_examples_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-log.t t/unit/plugin-methods.t
t_unit_plugin_log_t_SOURCES = t/unit/plugin-log.c $(plugtest)
t_unit_plugin_log_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_log_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_log_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_methods_t_SOURCES = t/unit/plugin-methods.c $(plugtest)
t_unit_plugin_methods_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_methods_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_methods_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/conf-docs.t
t_unit_conf_docs_t_SOURCES = t/unit/conf-docs.c t/unit/conf-kit.h
t_unit_conf_docs_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-batch.t
t_unit_plugin_batch_t_SOURCES = t/unit/plugin-batch.c $(plugtest)
t_unit_plugin_batch_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_batch_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_batch_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-coalesce.t
t_unit_plugin_coalesce_t_SOURCES = t/unit/plugin-coalesce.c $(plugtest)
t_unit_plugin_coalesce_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_coalesce_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_coalesce_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-prefetch.t t/unit/plugin-prefetch-limits.t
t_unit_plugin_prefetch_limits_t_SOURCES = t/unit/plugin-prefetch-limits.c \
	t/unit/prefetch-kit.h $(plugtest)
t_unit_plugin_prefetch_limits_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_prefetch_limits_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_prefetch_limits_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_prefetch_t_SOURCES = t/unit/plugin-prefetch.c t/unit/prefetch-kit.h $(plugtest)
t_unit_plugin_prefetch_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_prefetch_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_prefetch_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/logsplit-complaint.t t/unit/plugin-logsplit.t
t_unit_logsplit_complaint_t_SOURCES = t/unit/logsplit-complaint.c \
	plugins/middleware/logsplit/complaint.c
t_unit_logsplit_complaint_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_logsplit_t_SOURCES = t/unit/plugin-logsplit.c $(plugtest)
t_unit_plugin_logsplit_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_logsplit_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_logsplit_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/cache-rules.t t/unit/cache-store.t t/unit/plugin-cache.t \
	t/unit/plugin-cache-reorg.t
t_unit_cache_rules_t_SOURCES = t/unit/cache-rules.c plugins/middleware/cache/ask.c \
	plugins/middleware/cache/key.c plugins/middleware/cache/plan.c \
	plugins/middleware/cache/rules.c
t_unit_cache_rules_t_LDADD = src/libegw.a $(core_libs)
t_unit_cache_store_t_SOURCES = t/unit/cache-store.c plugins/middleware/cache/store.c
t_unit_cache_store_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_cache_t_SOURCES = t/unit/plugin-cache.c t/unit/cache-kit.h $(plugtest)
t_unit_plugin_cache_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_cache_t_LDFLAGS = $(plugtest_ldflags) -Wl,--no-as-needed
# The plugin's libraries stay loaded: glibc keeps some bytes each time one comes and goes.
t_unit_plugin_cache_t_LDADD = src/libegw.a $(core_libs) $(LMDB_LIBS) $(HIREDIS_LIBS)
t_unit_plugin_cache_reorg_t_SOURCES = t/unit/plugin-cache-reorg.c t/unit/cache-kit.h $(plugtest)
t_unit_plugin_cache_reorg_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_cache_reorg_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_cache_reorg_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/plugin-ratelimit.t t/unit/ratelimit-clients.t
t_unit_ratelimit_clients_t_SOURCES = t/unit/ratelimit-clients.c \
	plugins/middleware/ratelimit/account.c plugins/middleware/ratelimit/clients.c plugins/middleware/ratelimit/rate.c \
	plugins/middleware/ratelimit/total.c
t_unit_ratelimit_clients_t_LDADD = -lpthread
t_unit_plugin_ratelimit_t_SOURCES = t/unit/plugin-ratelimit.c t/unit/ratelimit-kit.h $(plugtest)
t_unit_plugin_ratelimit_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_ratelimit_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_ratelimit_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/auth-jwt.t t/unit/auth-parts.t t/unit/plugin-auth.t
t_unit_auth_jwt_t_SOURCES = t/unit/auth-jwt.c t/unit/auth-kit.h $(auth_parts)
t_unit_auth_jwt_t_LDADD = src/libegw.a $(core_libs)
t_unit_auth_parts_t_SOURCES = t/unit/auth-parts.c t/unit/auth-kit.h $(auth_parts)
t_unit_auth_parts_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_auth_t_SOURCES = t/unit/plugin-auth.c t/unit/auth-kit.h $(plugtest)
t_unit_plugin_auth_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_auth_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_auth_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/ratelimit-account.t
t_unit_ratelimit_account_t_SOURCES = t/unit/ratelimit-account.c \
	plugins/middleware/ratelimit/account.c plugins/middleware/ratelimit/clients.c \
	plugins/middleware/ratelimit/rate.c plugins/middleware/ratelimit/total.c
t_unit_ratelimit_account_t_LDADD = -lpthread
unit_tests += t/unit/plugin-ratelimit-clients.t
t_unit_plugin_ratelimit_clients_t_SOURCES = t/unit/plugin-ratelimit-clients.c \
	t/unit/ratelimit-kit.h $(plugtest)
t_unit_plugin_ratelimit_clients_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_ratelimit_clients_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_ratelimit_clients_t_LDADD = src/libegw.a $(core_libs)
if HAVE_HIREDIS
unit_tests += t/unit/redis-client.t
t_unit_redis_client_t_SOURCES = t/unit/redis-client.c t/lib/fake-redis.h $(redis_sources)
t_unit_redis_client_t_CFLAGS = $(AM_CFLAGS) $(HIREDIS_CFLAGS)
t_unit_redis_client_t_LDADD = src/libegw.a $(HIREDIS_LIBS) $(core_libs)
endif
EXTRA_DIST += t/unit/redis-client.c t/lib/fake-redis.h
unit_tests += t/unit/quorum-fingerprint.t t/unit/plugin-quorum.t
t_unit_quorum_fingerprint_t_SOURCES = t/unit/quorum-fingerprint.c \
	plugins/middleware/quorum/fingerprint.c
t_unit_quorum_fingerprint_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_quorum_t_SOURCES = t/unit/plugin-quorum.c $(plugtest)
t_unit_plugin_quorum_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_quorum_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_quorum_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/failover-classify.t t/unit/failover-parts.t t/unit/plugin-failover.t
unit_tests += t/unit/plugin-failover-hedge.t t/unit/plugin-failover-tx.t
t_unit_plugin_failover_hedge_t_SOURCES = t/unit/plugin-failover-hedge.c t/unit/failover-kit.h \
	$(plugtest)
t_unit_plugin_failover_hedge_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_failover_hedge_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_failover_hedge_t_LDADD = src/libegw.a $(core_libs)
t_unit_failover_classify_t_SOURCES = t/unit/failover-classify.c \
	plugins/middleware/failover/classify.c
t_unit_failover_classify_t_LDADD = src/libegw.a $(core_libs)
t_unit_failover_parts_t_SOURCES = t/unit/failover-parts.c \
	plugins/middleware/failover/budget.c plugins/middleware/failover/latency.c \
	plugins/middleware/failover/txhash.c
t_unit_failover_parts_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_failover_t_SOURCES = t/unit/plugin-failover.c t/unit/failover-kit.h $(plugtest)
t_unit_plugin_failover_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_failover_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_failover_t_LDADD = src/libegw.a $(core_libs)
t_unit_plugin_failover_tx_t_SOURCES = t/unit/plugin-failover-tx.c t/unit/failover-kit.h $(plugtest)
t_unit_plugin_failover_tx_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_failover_tx_t_LDFLAGS = $(plugtest_ldflags)
t_unit_plugin_failover_tx_t_LDADD = src/libegw.a $(core_libs)
if HAVE_LMDB
unit_tests += t/unit/cache-book.t t/unit/cache-disk.t
t_unit_cache_book_t_SOURCES = t/unit/cache-book.c $(cache_disk)
t_unit_cache_book_t_LDADD = src/libegw.a $(LMDB_LIBS) $(core_libs)
t_unit_cache_disk_t_SOURCES = t/unit/cache-disk.c t/lib/worker-kit.h $(cache_disk)
t_unit_cache_disk_t_LDADD = src/libegw.a $(LMDB_LIBS) $(core_libs)
endif
EXTRA_DIST += t/unit/cache-book.c t/unit/cache-disk.c t/lib/worker-kit.h
if HAVE_HIREDIS
unit_tests += t/unit/cache-share.t
t_unit_cache_share_t_SOURCES = t/unit/cache-share.c t/lib/fake-redis.h t/lib/worker-kit.h \
	$(cache_share_files) $(cache_record) $(redis_sources)
t_unit_cache_share_t_CFLAGS = $(AM_CFLAGS) $(HIREDIS_CFLAGS)
t_unit_cache_share_t_LDADD = src/libegw.a $(HIREDIS_LIBS) $(core_libs)
endif
EXTRA_DIST += t/unit/cache-share.c
if HAVE_LMDB
if HAVE_HIREDIS
unit_tests += t/unit/plugin-cache-tiers.t
t_unit_plugin_cache_tiers_t_SOURCES = t/unit/plugin-cache-tiers.c t/unit/cache-kit.h $(plugtest)
t_unit_plugin_cache_tiers_t_CFLAGS = $(plugtest_cflags)
t_unit_plugin_cache_tiers_t_LDFLAGS = $(plugtest_ldflags) -Wl,--no-as-needed
t_unit_plugin_cache_tiers_t_LDADD = src/libegw.a $(core_libs) $(LMDB_LIBS) $(HIREDIS_LIBS)
endif
endif
EXTRA_DIST += t/unit/plugin-cache-tiers.c
unit_tests += t/unit/base-ticks.t
t_unit_base_ticks_t_SOURCES = t/unit/base-ticks.c
t_unit_base_ticks_t_LDADD = src/libegw.a $(core_libs)
unit_tests += t/unit/base-span.t
t_unit_base_span_t_SOURCES = t/unit/base-span.c
t_unit_base_span_t_LDADD = src/libegw.a $(core_libs)
